package secure

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// noon is the present time in the tests.
var noon = time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)

func atNoon() time.Time { return noon }

var serials atomic.Int64

// signed is a certificate with its key and its issuer.
type signed struct {
	cert *x509.Certificate
	key  crypto.Signer
	from *signed
}

// authority makes a root authority.
func authority(t testing.TB, name string) *signed {
	t.Helper()
	return (*signed)(nil).issue(t, name, func(c *x509.Certificate) { c.IsCA = true })
}

// issue makes a certificate for either end of a connection. It is valid from a month before noon to a
// month after noon. The function change may alter it, for example with hosts.
func (s *signed) issue(t testing.TB, name string, change func(*x509.Certificate)) *signed {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{
		SerialNumber: big.NewInt(serials.Add(1)),
		Subject:      pkix.Name{CommonName: name},
		NotBefore:    noon.AddDate(0, -1, 0), NotAfter: noon.AddDate(0, 2, 0),
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		BasicConstraintsValid: true,
	}
	if change != nil {
		change(c)
	}
	if c.IsCA {
		c.KeyUsage, c.ExtKeyUsage = x509.KeyUsageCertSign|x509.KeyUsageCRLSign|x509.KeyUsageDigitalSignature, nil
	}
	parent, signer := c, crypto.Signer(key)
	if s != nil {
		parent, signer = s.cert, s.key
	}
	der, err := x509.CreateCertificate(rand.Reader, c, parent, key.Public(), signer)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return &signed{cert, key, s}
}

// hosts returns a change that gives a certificate these names and addresses.
func hosts(names ...string) func(*x509.Certificate) {
	return func(c *x509.Certificate) {
		for _, name := range names {
			if ip := net.ParseIP(name); ip != nil {
				c.IPAddresses = append(c.IPAddresses, ip)
			} else {
				c.DNSNames = append(c.DNSNames, name)
			}
		}
	}
}

// pem returns the certificate and those between it and the root. If key is true, it also returns the key.
func (s *signed) pem(t testing.TB, key bool) []byte {
	t.Helper()
	var b bytes.Buffer
	if key {
		der, err := x509.MarshalPKCS8PrivateKey(s.key)
		if err != nil {
			t.Fatal(err)
		}
		_ = pem.Encode(&b, &pem.Block{Type: "PRIVATE KEY", Bytes: der})
	}
	for c := s; c != nil; c = c.from {
		if c.from != nil || c == s {
			_ = pem.Encode(&b, &pem.Block{Type: "CERTIFICATE", Bytes: c.cert.Raw})
		}
	}
	return b.Bytes()
}

// write writes a file as programs that renew certificates do: it writes a new file and renames it.
func write(t testing.TB, name string, content []byte) {
	t.Helper()
	if err := os.WriteFile(name+".new", content, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(name+".new", name); err != nil {
		t.Fatal(err)
	}
}

// settingsFor writes a key store and a trust store into a folder, and returns settings for them. more
// holds further settings: in turn a key without its prefix, and its value.
func settingsFor(t testing.TB, f Family, dir string, shown, trusted *signed, more ...string) Settings {
	t.Helper()
	key, trust := filepath.Join(dir, "key.pem"), filepath.Join(dir, "trust.pem")
	values := map[string]Value{}
	if shown != nil {
		write(t, key, shown.pem(t, true))
		values[string(f)+"keyStore.location"] = Value{Text: key}
	}
	write(t, trust, trusted.pem(t, false))
	values[string(f)+"trustStore.location"] = Value{Text: trust}
	for i := 0; i < len(more); i += 2 {
		values[string(f)+more[i]] = Value{Text: more[i+1]}
	}
	s, err := Parse(f, values)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// openStore opens a store. The present time is noon.
func openStore(t testing.TB, f Family, shown, trusted *signed, more ...string) *Store {
	t.Helper()
	s, err := openAt(settingsFor(t, f, t.TempDir(), shown, trusted, more...), atNoon)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// wants fails the test unless an error contains a text. If the text is empty, there must be no error.
func wants(t testing.TB, what string, err error, want string) {
	t.Helper()
	switch {
	case want == "" && err != nil:
		t.Errorf("%s: %v", what, err)
	case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
		t.Errorf("%s: %v; want %q", what, err, want)
	}
}
