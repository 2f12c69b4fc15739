package authority

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// The files of an authority.
const (
	CertFile = "ca.pem"     // the authority's certificate: every server and client trusts it
	KeyFile  = "ca-key.pem" // the private key of the authority, with which certificates are issued
)

// How long certificates are valid.
const (
	authorityDays = 10 * 365
	backdated     = time.Hour // a certificate is valid from this time before its issue, because clocks of other machines may be late
)

// The types of PEM blocks.
const (
	pemCert = "CERTIFICATE"
	pemKey  = "PRIVATE KEY" // PKCS#8
)

// Authority is a certificate authority that keeps its key in a folder. It is not safe for
// concurrent use.
type Authority struct {
	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// Open reads the authority in dir. The error is fs.ErrNotExist if there is none.
func Open(dir string) (*Authority, error) {
	cert, err := readCert(filepath.Join(dir, CertFile))
	if err != nil {
		return nil, err
	}
	key, err := readKey(filepath.Join(dir, KeyFile))
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) { // the folder belongs to an authority, but its key is missing
			return nil, fmt.Errorf("%s is here without %s, the key of this authority: put the key back, or use another folder", CertFile, filepath.Join(dir, KeyFile))
		}
		return nil, err
	}
	if !key.PublicKey.Equal(cert.PublicKey) {
		return nil, fmt.Errorf("%s does not belong to %s: restore both from one backup", filepath.Join(dir, KeyFile), CertFile)
	}
	return &Authority{dir, cert, key}, nil
}

// Create makes an authority with a new key in dir, which it creates if it is missing. It
// replaces no file.
func Create(dir, name string, now time.Time) (*Authority, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber: serial(), Subject: pkix.Name{CommonName: name},
		NotBefore: now.Add(-backdated), NotAfter: now.AddDate(0, 0, authorityDays),
		IsCA: true, BasicConstraintsValid: true, MaxPathLenZero: true, // the authority issues certificates of servers and clients only
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageCRLSign,
	}
	cert, err := sign(template, template, &key.PublicKey, key)
	if err != nil {
		return nil, err
	}
	keyPEM, err := encodeKey(key)
	if err != nil {
		return nil, err
	}
	// The key is written first: a certificate alone would look like an authority without its key.
	for _, f := range []struct {
		name string
		b    []byte
		mode fs.FileMode
	}{{KeyFile, keyPEM, 0o600}, {CertFile, encodeCert(cert), 0o644}} {
		if err := write(filepath.Join(dir, f.name), f.b, f.mode, false); err != nil {
			return nil, err
		}
	}
	return &Authority{dir, cert, key}, nil
}

// Certificate returns the authority's certificate.
func (a *Authority) Certificate() *x509.Certificate { return a.cert }

// issue writes a new key and its certificate to a file of the authority's folder. It replaces
// the file as a whole. The certificate ends no later than the authority's.
func (a *Authority) issue(file string, s Subject, now time.Time, days int) (*x509.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	end := now.AddDate(0, 0, days)
	if end.After(a.cert.NotAfter) {
		end = a.cert.NotAfter
	}
	template := &x509.Certificate{
		SerialNumber: serial(), Subject: pkix.Name{CommonName: s.Name},
		NotBefore: now.Add(-backdated), NotAfter: end,
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	if len(s.Hosts) > 0 { // a server accepts connections, and it also dials the other servers
		template.ExtKeyUsage = append(template.ExtKeyUsage, x509.ExtKeyUsageServerAuth)
	}
	for _, host := range s.Hosts {
		if ip := net.ParseIP(host); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, host)
		}
	}
	cert, err := sign(template, a.cert, &key.PublicKey, a.key)
	if err != nil {
		return nil, fmt.Errorf("certificate of %s: %w", s.Name, err)
	}
	keyPEM, err := encodeKey(key)
	if err != nil {
		return nil, err
	}
	return cert, write(filepath.Join(a.dir, file), append(keyPEM, encodeCert(cert)...), 0o600, true)
}

// issued reports whether cert was issued by the authority for the subject.
func (a *Authority) issued(cert *x509.Certificate, s Subject) bool {
	var hosts []string
	for _, ip := range cert.IPAddresses {
		hosts = append(hosts, ip.String())
	}
	hosts = append(hosts, cert.DNSNames...)
	var want []string
	for _, host := range s.Hosts {
		if ip := net.ParseIP(host); ip != nil {
			host = ip.String()
		}
		want = append(want, host)
	}
	slices.Sort(hosts)
	slices.Sort(want)
	return cert.CheckSignatureFrom(a.cert) == nil && cert.Subject.CommonName == s.Name && slices.Equal(hosts, slices.Compact(want))
}

// serial returns a random serial number of 127 bits.
func serial() *big.Int {
	n, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		panic(err) // crypto/rand does not fail
	}
	return n.Add(n, big.NewInt(1))
}

// sign makes a certificate.
func sign(template, parent *x509.Certificate, public *ecdsa.PublicKey, key *ecdsa.PrivateKey) (*x509.Certificate, error) {
	der, err := x509.CreateCertificate(rand.Reader, template, parent, public, key)
	if err != nil {
		return nil, err
	}
	return x509.ParseCertificate(der)
}

func encodeCert(c *x509.Certificate) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: pemCert, Bytes: c.Raw})
}

func encodeKey(key *ecdsa.PrivateKey) ([]byte, error) {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: pemKey, Bytes: der}), nil
}

// readBlock returns the first PEM block of a type in a file.
func readBlock(file, typ string) ([]byte, error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	for {
		var block *pem.Block
		if block, b = pem.Decode(b); block == nil {
			return nil, fmt.Errorf("%s has no PEM block %s: restore it from a backup, or remove it", file, typ)
		}
		if block.Type == typ {
			return block.Bytes, nil
		}
	}
}

func readCert(file string) (*x509.Certificate, error) {
	der, err := readBlock(file, pemCert)
	if err != nil {
		return nil, err
	}
	c, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return c, nil
}

// readKey reads a private key that this package wrote.
func readKey(file string) (*ecdsa.PrivateKey, error) {
	der, err := readBlock(file, pemKey)
	if err != nil {
		return nil, err
	}
	parsed, err := x509.ParsePKCS8PrivateKey(der)
	if err != nil {
		return nil, fmt.Errorf("%s: not a PKCS#8 private key: restore it from a backup", file) // the cause could show parts of the key
	}
	key, ok := parsed.(*ecdsa.PrivateKey)
	if !ok {
		return nil, fmt.Errorf("%s: the key is a %T, want an ECDSA key: restore the key of this authority from a backup", file, parsed)
	}
	return key, nil
}

// write writes a file as a whole and makes it durable: after a crash the file has either its
// old or its new content. Unless replace is set, it is an error if the file exists.
func write(file string, b []byte, mode fs.FileMode, replace bool) error {
	dir := filepath.Dir(file)
	f, err := os.CreateTemp(dir, ".new-*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // after a rename there is nothing to remove
	_, err = f.Write(b)
	if err = errors.Join(err, f.Chmod(mode), f.Sync(), f.Close()); err != nil {
		return err
	}
	if replace {
		err = os.Rename(f.Name(), file)
	} else {
		err = os.Link(f.Name(), file)
	}
	if err != nil {
		return err
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
