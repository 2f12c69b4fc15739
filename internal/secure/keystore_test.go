package secure

import (
	"bytes"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// passwordOf returns the password of a recorded store, as testdata/make.sh has set it.
func passwordOf(name string) string {
	switch {
	case name == "accents.jks":
		return "pässwörd€"
	case name == "accents.p12":
		return "pässwörd"
	case name == "no-password.p12", name == "plain.p12":
		return ""
	case strings.HasSuffix(name, ".pem") && !strings.HasPrefix(name, "encrypted"):
		return ""
	}
	return "changeit"
}

// recorded returns a store of testdata.
func recorded(name string) StoreFile {
	t := map[string]StoreType{".pem": PEM, ".p12": PKCS12, ".jks": JKS}[filepath.Ext(name)]
	return StoreFile{
		Location: "testdata/stores/" + name, Type: t, Password: Secret(passwordOf(name)),
		key: "ssl.keyStore.location",
	}
}

// open reads a store as the program does.
func open(f StoreFile, keys bool) (contents, error) {
	b, err := f.read()
	if err != nil {
		return contents{}, err
	}
	return f.load(b, keys)
}

// describe returns the names in a store as testdata/Stores.java prints them.
func describe(f StoreFile, keys bool) string {
	c, err := open(f, keys)
	if err != nil {
		return "refused"
	}
	var names []string
	for _, k := range c.keys {
		var chain []string
		for _, cert := range k.chain {
			chain = append(chain, NameOf(cert))
		}
		names = append(names, strings.Join(chain, " < "))
	}
	if !keys {
		for _, cert := range c.trusted {
			names = append(names, NameOf(cert))
		}
	}
	slices.Sort(names)
	return strings.Join(slices.Compact(names), "; ")
}

// differences are the stores that this package and Java read differently.
var differences = map[string]string{
	// Java's ZooKeeper reads fewer forms of PEM keys and of passwords.
	"accents.p12 key":          "CN=rsa,O=Bellwether < CN=Test CA,O=Bellwether",
	"ec-sec1.pem key":          "CN=ec,O=Bellwether",
	"rsa-pkcs1.pem key":        "CN=rsa,O=Bellwether",
	"ed.pem key":               "CN=ed,O=Bellwether < CN=Test CA,O=Bellwether",
	"encrypted-aes128.pem key": "CN=ec,O=Bellwether < CN=Test CA,O=Bellwether",
	"encrypted-aes256.pem key": "CN=rsa,O=Bellwether < CN=Test CA,O=Bellwether",
	"encrypted-fast.pem key":   "CN=ec,O=Bellwether < CN=Test CA,O=Bellwether",
	"encrypted-des3.pem key":   "CN=ec,O=Bellwether < CN=Test CA,O=Bellwether",
	"plain.p12 key":            "CN=rsa,O=Bellwether < CN=Test CA,O=Bellwether",
	// Go's TLS has no DSA.
	"dsa.jks key": "refused",
	"dsa.p12 key": "refused",
	"dsa.pem key": "refused",
	// A server cannot work without a key. Java notices that only at the first handshake.
	"empty.jks key":         "refused",
	"only-key.p12 key":      "refused",
	"trust-openssl.p12 key": "refused",
	"trust.jks key":         "refused",
	"trust.p12 key":         "refused",
}

// TestStoresAreReadAsByJava compares what this package reads in each recorded store with what ZooKeeper
// has read in it (testdata/make.sh).
func TestStoresAreReadAsByJava(t *testing.T) {
	record, err := os.ReadFile("testdata/stores/java.txt")
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, line := range strings.Split(strings.TrimSpace(string(record)), "\n") {
		what, want, _ := strings.Cut(line, ": ")
		if other, ok := differences[what]; ok {
			if other == want {
				t.Errorf("%s: not a difference", what)
			}
			want = other
			seen++
		}
		name, use, _ := strings.Cut(what, " ")
		if got := describe(recorded(name), use == "key"); got != want {
			_, err := open(recorded(name), use == "key")
			t.Errorf("%s: got %q, want %q (%v)", what, got, want, err)
		}
	}
	if seen != len(differences) {
		t.Errorf("%d of %d differences are in the record", seen, len(differences))
	}
}

// TestUnusableStoresSayWhy shows the message for each kind of store that cannot be used.
func TestUnusableStoresSayWhy(t *testing.T) {
	with := func(name string, change func(*StoreFile)) StoreFile {
		f := recorded(name)
		change(&f)
		return f
	}
	damaged := filepath.Join(t.TempDir(), "damaged.pem")
	if err := os.WriteFile(damaged, []byte("-----BEGIN CERTIFICATE-----\n!\n-----END CERTIFICATE-----\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	wrong := func(f *StoreFile) { f.Password = "not it" }
	none := func(f *StoreFile) { f.Password = "" }
	for _, c := range []struct {
		file StoreFile
		keys bool
		want string
	}{
		{with("rsa.jks", wrong), true, "the password is wrong, or the file is damaged: correct ssl.keyStore.password"},
		{with("rsa.p12", wrong), true, "the password is wrong, or the file is damaged: correct ssl.keyStore.password"},
		{with("rsa.p12", func(f *StoreFile) { f.Password = "pÃ¤ssword" }), true, `correct ssl.keyStore.password; zoo.cfg is read as ISO-8859-1, as by ZooKeeper, so write other letters as \uXXXX, or name a file in UTF-8 with ssl.keyStore.passwordPath`},
		{with("rsa.p12", none), true, "the password is wrong, or the file is damaged: set ssl.keyStore.password"},
		{with("java8.p12", wrong), true, "the password is wrong, or the file is damaged: correct ssl.keyStore.password"},
		{with("encrypted-aes256.pem", wrong), true, "the password is wrong, or the file is damaged: correct ssl.keyStore.password"},
		{with("encrypted-3des.pem", none), true, "set ssl.keyStore.password"},
		{with("trust.jks", none), false, "set ssl.keyStore.password"},
		{recorded("cut.jks"), true, "the file is cut off or damaged"},
		{recorded("cut.p12"), true, "not a whole PKCS#12 file"},
		{recorded("cut.pem"), true, "cut.pem: the file ends in the middle of a PEM block: copy the whole file again"},
		{with("rsa.pem", func(f *StoreFile) { f.Location = damaged }), false, "the file has 1 PEM blocks, and 1 of them are damaged: write the certificates of the authorities into it again"},
		{recorded("empty.pem"), true, "empty.pem: the file is empty: use a file with the private key and its certificate"},
		{recorded("empty.p12"), true, "empty.p12: the file is empty: use a file with the private key and its certificate"},
		{recorded("empty.pem"), false, "empty.pem: the file is empty: add the certificate of the authority, or name the file that has it"},
		{recorded("empty.p12"), false, "empty.p12: the file is empty: add the certificate of the authority, or name the file that has it"},
		{recorded("no-certificate.pem"), false, "there is no certificate in the file: add the certificate of the authority, or name the file that has it"},
		{recorded("cut.pem"), false, "cut.pem: the file ends in the middle of a PEM block: copy the whole file again"},
		{recorded("only-key.p12"), true, "the file has a private key and no certificate: add the certificate of this key, and then those of its issuers"},
		{with("no-key.pem", func(f *StoreFile) { f.KeyFile = "testdata/stores/ec.pem" }), true, "no-key.pem: the private key in the file does not belong to the first certificate, CN=rsa,O=Bellwether: name the file with the private key of this certificate; testdata/stores/ec.pem has another one"},
		{recorded("empty.jks"), true, "there is no private key in the file: use a file with the private key and its certificate"},
		{recorded("empty.jks"), false, "there is no certificate in the file: add the certificate of the authority with keytool -importcert"},
		{recorded("no-key.pem"), true, "there is no private key in the file"},
		{recorded("no-certificate.pem"), true, "the file has a private key and no certificate: add the certificate of this key, and then those of its issuers"},
		{recorded("other-key.pem"), true, "other-key.pem: the private key in the file does not belong to the first certificate, CN=ec,O=Bellwether: put the certificate that belongs to this key first, or use the key that belongs to the certificate"},
		{recorded("authority-first.pem"), true, "the private key in the file does not belong to the first certificate, CN=Test CA,O=Bellwether: put the certificate that belongs to this key first, or use the key that belongs to the certificate"},
		{recorded("entry-password.jks"), true, `entry "rsa": the password of the key differs from that of the file`},
		{recorded("entry-password.jks"), true, "keytool -keypasswd"},
		{recorded("dsa.jks"), true, "a DSA key cannot be used for TLS here: use an RSA or EC key"},
		{recorded("dsa.pem"), true, "use an RSA or EC key"},
		{recorded("encrypted-scrypt.pem"), true, "scrypt is not supported, and ZooKeeper does not support it either: write it again; openssl pkcs8 -topk8"},
		{recorded("encrypted-pkcs1.pem"), true, "the private key is encrypted in the old form of openssl: write it again; openssl pkcs8 -topk8"},
		{recorded("jceks.jks"), true, "a JCEKS file, which ZooKeeper does not read either"},
		{recorded("trust-openssl.p12"), false, "none of the certificates in the file is marked as trusted: add the certificate of the authority with keytool -importcert"},
		{recorded("rsa.jks"), false, "none of the certificates in the file is marked as trusted"},
		{recorded("missing.pem"), true, "no such file or directory: correct ssl.keyStore.location"},
		{with("rsa.pem", func(f *StoreFile) { f.Location = "testdata" }), true, "is a directory"},
		{with("rsa.p12", func(f *StoreFile) { f.PasswordPath = "/dev/null" }), true, "the file of ssl.keyStore.passwordPath is empty: write the password into it"},
		{with("rsa.p12", func(f *StoreFile) { f.PasswordPath = "testdata/stores/password-crlf" }), true, "ends with a carriage return, which counts: remove it"},
		{with("rsa.p12", func(f *StoreFile) { f.PasswordPath = "testdata/missing" }), true, "correct ssl.keyStore.passwordPath"},
	} {
		_, err := open(c.file, c.keys)
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.HasPrefix(err.Error(), "ssl.keyStore.") {
			t.Errorf("%s (keys %t): %v; want %q", c.file.Location, c.keys, err, c.want)
			continue
		}
		if strings.Contains(err.Error(), "changeit") || strings.Contains(err.Error(), "not it") {
			t.Errorf("%s: the error shows the password: %v", c.file.Location, err)
		}
		if f := new(FileError); !errors.As(err, &f) || f.Remedy == "" {
			t.Errorf("%s: no remedy: %v", c.file.Location, err)
		}
	}
}

// TestPasswordFileWins shows that a password file counts instead of the password in the settings, and
// that the line feed at its end is removed.
func TestPasswordFileWins(t *testing.T) {
	f := recorded("rsa.p12")
	f.Password, f.PasswordPath = "not it", "testdata/stores/password"
	if _, err := open(f, true); err != nil {
		t.Error(err)
	}
}

// TestLargeFileIsRefused shows the limit of the size of a store.
func TestLargeFileIsRefused(t *testing.T) {
	name := filepath.Join(t.TempDir(), "large.pem")
	if err := os.WriteFile(name, make([]byte, fileMax+1), 0o600); err != nil {
		t.Fatal(err)
	}
	f := StoreFile{Location: name, Type: PEM, key: "ssl.trustStore.location"}
	if _, err := open(f, false); err == nil || !strings.Contains(err.Error(), "the file is larger than 4 MiB") {
		t.Error(err)
	}
}

// TestIterationsAreLimited shows that a file cannot demand hours of computation.
func TestIterationsAreLimited(t *testing.T) {
	lower(t, 1000)
	for _, name := range []string{"rsa.p12", "java8.p12", "encrypted-aes256.pem", "encrypted-3des.pem"} {
		if _, err := open(recorded(name), true); err == nil || !strings.Contains(err.Error(), "iterations of the key derivation") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// lower sets the limit of iterations for a test.
func lower(t testing.TB, limit int) {
	old := iterationsMax
	iterationsMax = limit
	t.Cleanup(func() { iterationsMax = old })
}

// TestSecretsAreNotPrinted shows that printing settings shows no password.
func TestSecretsAreNotPrinted(t *testing.T) {
	s := Secret("hidden")
	text, err := s.MarshalText()
	if got := s.String() + s.GoString() + string(text); err != nil || strings.Contains(got, "hidden") {
		t.Error(got)
	}
}

// TestRC2 decrypts the vectors of RFC 2268, section 5, whose keys have their full length.
func TestRC2(t *testing.T) {
	for _, c := range []struct{ key, plain, text []byte }{
		{[]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, bytes.Repeat([]byte{0xff}, 8), []byte{0x27, 0x8b, 0x27, 0xe4, 0x2e, 0x2f, 0x0d, 0x49}},
		{[]byte{0x30, 0, 0, 0, 0, 0, 0, 0}, []byte{0x10, 0, 0, 0, 0, 0, 0, 1}, []byte{0x30, 0x64, 0x9e, 0xdf, 0x9b, 0xe7, 0xd2, 0xc2}},
		{[]byte{0x88, 0xbc, 0xa9, 0x0e, 0x90, 0x87, 0x5a, 0x7f, 0x0f, 0x79, 0xc3, 0x84, 0x62, 0x7b, 0xaf, 0xb2}, make([]byte, 8), []byte{0x22, 0x69, 0x55, 0x2a, 0xb0, 0xf8, 0x5c, 0xa6}},
	} {
		got := make([]byte, 8)
		newRC2(c.key).Decrypt(got, c.text)
		if !bytes.Equal(got, c.plain) {
			t.Errorf("key %x: got %x, want %x", c.key, got, c.plain)
		}
	}
}

// TestPBMAC1 reads the examples of RFC 9579, appendix A: three good files, then files with
// a wrong number of iterations, a wrong salt and without the length of the key.
func TestPBMAC1(t *testing.T) {
	for i, want := range []string{"", "", "", errPassword.Error(), errPassword.Error(), "a key of 0 bytes does not fit the algorithm"} {
		text, err := os.ReadFile(fmt.Sprintf("testdata/rfc9579/rfc9579-a%d.txt", i+1))
		if err != nil {
			t.Fatal(err)
		}
		file, err := base64.StdEncoding.DecodeString(string(text))
		if err != nil {
			t.Fatal(err)
		}
		c, err := parseStore(file, PKCS12, []byte("1234"), true)
		wants(t, fmt.Sprintf("A.%d", i+1), err, want)
		if want == "" && len(c.keys) != 1 {
			t.Errorf("A.%d: %d keys", i+1, len(c.keys))
		}
		if _, err := parseStore(file, PKCS12, []byte("12345"), true); err == nil {
			t.Errorf("A.%d: a wrong password is accepted", i+1)
		}
	}
}

// TestLeafWithoutID shows that the certificate of a key in a PKCS#12 file is found even if the file does
// not say which one it is, and that no other certificate is taken.
func TestLeafWithoutID(t *testing.T) {
	ca := authority(t, "ca")
	one, two := ca.issue(t, "one", nil), ca.issue(t, "two", nil)
	all := []*x509.Certificate{ca.cert, one.cert, two.cert}
	id := []byte{1}
	for what, got := range map[string]*x509.Certificate{
		"without an id":         leafOf(two.key, nil, all, nil),
		"with an id":            leafOf(two.key, id, all, map[*x509.Certificate][]byte{two.cert: id}),
		"with an id of another": leafOf(two.key, id, all, map[*x509.Certificate][]byte{one.cert: id}),
	} {
		if got != two.cert {
			t.Errorf("%s: %v", what, got)
		}
	}
	if got := leafOf(two.key, nil, all[:2], nil); got != nil {
		t.Errorf("a certificate of another key: %s", NameOf(got))
	}
}
