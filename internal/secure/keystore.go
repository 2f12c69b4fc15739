package secure

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"crypto/x509"
	"encoding/asn1"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"unicode"
)

// Limits of what is read from files and peers.
const (
	fileMax  = 4 << 20 // bytes of a key store, a trust store or a password file
	chainMax = 16      // certificates of a chain
)

// StoreType is the format of a key store or trust store.
type StoreType string

// The formats that can be read.
const (
	PEM    StoreType = "PEM"
	PKCS12 StoreType = "PKCS12"
	JKS    StoreType = "JKS"
)

// StoreFile is a key store or a trust store as the settings name it. If Location is empty, there is no
// such store.
type StoreFile struct {
	Location     string
	Type         StoreType
	Password     Secret
	PasswordPath string // a file with the password; if it is set, Password does not count
	KeyFile      string // a PEM file with the private key, for a key store of type PEM that does not hold it
	key          string // the key of zoo.cfg that names the location, for errors
}

// Secret is a text that is hidden when it is printed.
type Secret string

// String implements fmt.Stringer.
func (s Secret) String() string {
	if s == "" {
		return ""
	}
	return "(secret)"
}

// GoString implements fmt.GoStringer.
func (s Secret) GoString() string { return s.String() }

// MarshalText implements encoding.TextMarshaler, for JSON and logs.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// FileError says why a key store, trust store or password file cannot be used.
type FileError struct {
	Key    string // the key of zoo.cfg that names the file
	File   string
	Err    error
	Remedy string
}

func (e *FileError) Error() string {
	text := fmt.Sprintf("%s: %s: %v", e.Key, e.File, e.Err)
	if e.Remedy != "" {
		text += ": " + e.Remedy
	}
	return text
}

// Unwrap returns the cause.
func (e *FileError) Unwrap() error { return e.Err }

// contents holds what a key store or trust store holds.
type contents struct {
	keys    []keyEntry
	trusted []*x509.Certificate
	others  int // number of certificates or entries that are not trusted, for errors
	alone   int // number of private keys to which no certificate belongs, for errors
}

// keyEntry is a private key with its certificate and the issuers of that. The chain is
// not empty, and the key belongs to its first certificate.
type keyEntry struct {
	key   crypto.Signer
	chain []*x509.Certificate
}

// readFile reads a file of at most fileMax bytes.
func readFile(name string) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, fileMax+1))
	if err == nil && len(b) > fileMax {
		err = fmt.Errorf("the file is larger than %d MiB", fileMax>>20)
	}
	return b, err
}

// storeBytes are the contents of a store's files.
type storeBytes struct {
	store    []byte
	password []byte // of PasswordPath
}

// wipe overwrites the password.
func (b storeBytes) wipe() { clear(b.password) }

// read reads the files of a store.
func (f StoreFile) read() (storeBytes, error) {
	var b storeBytes
	var err error
	if f.Location == "" {
		return b, nil
	}
	if b.store, err = readFile(f.Location); err != nil {
		return b, f.fault(err, "correct "+f.key+", or let the server's user read the file")
	}
	if f.KeyFile != "" {
		key, err := readFile(f.KeyFile)
		if err != nil {
			return b, &FileError{f.key, f.KeyFile, err, "name the file with the private key, or let this user read it"}
		}
		b.store = append(append(b.store, '\n'), key...)
	}
	if f.PasswordPath != "" {
		if b.password, err = readFile(f.PasswordPath); err != nil {
			key := strings.TrimSuffix(f.key, "location") + "passwordPath"
			return b, &FileError{key, f.PasswordPath, err, "correct " + key + ", or let the server's user read the file"}
		}
	}
	return b, nil
}

// password returns the password of a store. As in ZooKeeper, a line feed at the end of the password file
// is removed, and nothing else. The password of a file is not copied, so that wipe overwrites it.
func (f StoreFile) password(b storeBytes) []byte {
	if f.PasswordPath == "" {
		return []byte(f.Password)
	}
	return bytes.TrimSuffix(b.password, []byte("\n"))
}

// load returns the keys of a store or, if keys is false, its trusted certificates. It returns at least
// one, or an error.
func (f StoreFile) load(b storeBytes, keys bool) (contents, error) {
	password := f.password(b)
	c, err := parseStore(b.store, f.Type, password, keys)
	switch {
	case err != nil:
	case keys && len(c.keys) == 0 && c.alone > 0 && c.others == 0:
		err = errOnlyKey
	case keys && len(c.keys) == 0 && c.alone > 0:
		err = fmt.Errorf("%w any certificate in it", errOtherKey)
	case keys && len(c.keys) == 0:
		err = errNoKey
	case !keys && len(c.trusted) == 0 && c.others > 0:
		err = errNotTrusted
	case !keys && len(c.trusted) == 0:
		err = errNoAuthority
	}
	if err != nil {
		return c, f.fault(err, f.remedy(err, password, keys))
	}
	return c, nil
}

func (f StoreFile) fault(err error, remedy string) error {
	return &FileError{f.key, f.Location, err, remedy}
}

// What a store can lack. errOtherKey is followed by the certificate.
var (
	errEmpty       = errors.New("the file is empty")
	errCut         = errors.New("the file ends in the middle of a PEM block")
	errNoKey       = errors.New("there is no private key in the file")
	errOnlyKey     = errors.New("the file has a private key and no certificate")
	errOtherKey    = errors.New("the private key in the file does not belong to")
	errNoAuthority = errors.New("there is no certificate in the file")
	errNotTrusted  = errors.New("none of the certificates in the file is marked as trusted")
)

// lacks returns what an operator can do about a store that lacks something. It is empty if err has another cause.
func (f StoreFile) lacks(err error, keys bool) string {
	switch {
	case keys && (errors.Is(err, errEmpty) || errors.Is(err, errNoKey)):
		return "use a file with the private key and its certificate"
	case errors.Is(err, errOnlyKey):
		return "add the certificate of this key, and then those of its issuers"
	case errors.Is(err, errOtherKey) && f.KeyFile != "":
		return "name the file with the private key of this certificate; " + f.KeyFile + " has another one"
	case errors.Is(err, errOtherKey):
		return "put the certificate that belongs to this key first, or use the key that belongs to the certificate"
	case errors.Is(err, errNotTrusted), f.Type != PEM && errors.Is(err, errNoAuthority):
		return "add the certificate of the authority with keytool -importcert"
	case errors.Is(err, errEmpty), errors.Is(err, errNoAuthority):
		return "add the certificate of the authority, or name the file that has it"
	}
	return ""
}

// remedy returns what an operator can do about an error of a store.
func (f StoreFile) remedy(err error, password []byte, keys bool) string {
	if text := f.lacks(err, keys); text != "" {
		return text
	}
	secret := strings.TrimSuffix(f.key, "location") + "password"
	if f.PasswordPath != "" {
		secret += "Path"
	}
	switch {
	case errors.Is(err, errPassword) && f.PasswordPath != "" && len(password) == 0:
		return "the file of " + secret + " is empty: write the password into it"
	case errors.Is(err, errPassword) && len(password) == 0:
		return "set " + secret
	case errors.Is(err, errPassword) && f.PasswordPath != "" && bytes.HasSuffix(password, []byte("\r")):
		return "the password file ends with a carriage return, which counts: remove it"
	case errors.Is(err, errPassword) && f.PasswordPath == "" && strings.HasPrefix(f.key, "ssl.") && bytes.ContainsFunc(password, func(r rune) bool { return r > unicode.MaxASCII }):
		return "correct " + secret + "; zoo.cfg is read as ISO-8859-1, as by ZooKeeper, so write other letters as \\uXXXX, or name a file in UTF-8 with " + secret + "Path"
	case errors.Is(err, errPassword):
		return "correct " + secret
	case errors.Is(err, errEntryPassword):
		return "make them equal with keytool -keypasswd"
	case errors.Is(err, errCut):
		return "copy the whole file again"
	case errors.Is(err, errDSA):
		return "use an RSA or EC key"
	case f.Type == PEM && !keys:
		return "write the certificates of the authorities into it again"
	case f.Type == PEM:
		return "write it again; openssl pkcs8 -topk8 makes a key of the right form"
	}
	return "write it again, or convert it with keytool -importkeystore -deststoretype PKCS12"
}

// parseStore reads a store. As in Java, JKS and PKCS12 files are recognised by their contents, because
// keytool writes PKCS12 by default, whatever the file name is.
func parseStore(file []byte, t StoreType, password []byte, keys bool) (contents, error) {
	switch {
	case len(file) == 0:
		return contents{}, errEmpty
	case t == PEM:
		return readPEM(file, password, keys)
	case len(file) >= 4 && (binary.BigEndian.Uint32(file) == jksMagic || binary.BigEndian.Uint32(file) == jceksMagic):
		return readJKS(file, password, keys)
	}
	return readPKCS12(file, password, keys)
}

// errDSA is the error of a DSA key.
var errDSA = errors.New("a DSA key cannot be used for TLS here")

// parseKey parses an unencrypted private key in PKCS#8, PKCS#1 or SEC 1.
func parseKey(der []byte) (crypto.Signer, error) {
	key, err := x509.ParsePKCS8PrivateKey(der)
	if err != nil {
		if k, e := x509.ParsePKCS1PrivateKey(der); e == nil {
			key, err = k, nil
		} else if k, e := x509.ParseECPrivateKey(der); e == nil {
			key, err = k, nil
		}
	}
	if err != nil {
		var info struct {
			Version   int
			Algorithm struct {
				ID     asn1.ObjectIdentifier
				Params asn1.RawValue `asn1:"optional"`
			}
		}
		if _, e := asn1.Unmarshal(der, &info); e == nil && info.Algorithm.ID.Equal(asn1.ObjectIdentifier{1, 2, 840, 10040, 4, 1}) {
			err = errDSA
		}
		return nil, fmt.Errorf("the private key: %w", err)
	}
	switch k := key.(type) {
	case *rsa.PrivateKey:
		return k, nil
	case *ecdsa.PrivateKey:
		return k, nil
	case ed25519.PrivateKey:
		return k, nil
	}
	return nil, fmt.Errorf("the private key: keys of type %T cannot be used for TLS", key)
}

// belongs reports whether a private key is the one of a certificate.
func belongs(key crypto.Signer, c *x509.Certificate) bool {
	public, ok := key.Public().(interface{ Equal(crypto.PublicKey) bool })
	return ok && public.Equal(c.PublicKey)
}

// parseCertificate parses one certificate.
func parseCertificate(der []byte) (*x509.Certificate, error) {
	c, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("a certificate cannot be read: %w", err)
	}
	return c, nil
}

func parseCertificates(all [][]byte) ([]*x509.Certificate, error) {
	var certs []*x509.Certificate
	for _, der := range all {
		c, err := parseCertificate(der)
		if err != nil {
			return nil, err
		}
		certs = append(certs, c)
	}
	return certs, nil
}
