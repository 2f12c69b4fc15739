package zk

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"log/slog"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// authority signs certificates for a test.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) *authority {
	a := new(authority)
	var err error
	if a.key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
		t.Fatal(err)
	}
	der := a.sign(t, &x509.Certificate{IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}, a.key)
	if a.cert, err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	return a
}

// sign makes a certificate for a key. Without an authority the certificate signs itself.
func (a *authority) sign(t *testing.T, tmpl *x509.Certificate, key *ecdsa.PrivateKey) []byte {
	tmpl.SerialNumber = big.NewInt(1)
	tmpl.NotBefore, tmpl.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(100*time.Hour)
	parent := a.cert
	if parent == nil {
		parent = tmpl
	}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, parent, &key.PublicKey, a.key)
	if err != nil {
		t.Fatal(err)
	}
	return der
}

// pair returns a certificate with this name, and its key, in PEM.
func (a *authority) pair(t *testing.T, name string) (cert, key []byte) {
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	tmpl := &x509.Certificate{Subject: pkix.Name{CommonName: name}, DNSNames: []string{name}, IPAddresses: []net.IP{net.ParseIP("10.0.0.1")}}
	der := a.sign(t, tmpl, k)
	keyDER, err := x509.MarshalECPrivateKey(k)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: keyDER})
}

func (a *authority) pem() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.cert.Raw})
}

// secure makes the ensemble's servers speak TLS and ask for a certificate.
func (e *ensemble) secure(t *testing.T, a *authority, name string) {
	cert, key := a.pair(t, name)
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(a.cert)
	// With TLS 1.3 both ends would wait: the server to write a session ticket, and the client to write its
	// first request. A pipe has no buffer for them.
	config := &tls.Config{Certificates: []tls.Certificate{pair}, ClientCAs: pool, ClientAuth: tls.RequireAndVerifyClientCert, MaxVersion: tls.VersionTLS12}
	e.wrap = func(conn net.Conn) net.Conn {
		s := tls.Server(conn, config)
		if err := s.Handshake(); err == nil {
			e.mu.Lock()
			e.subjects = append(e.subjects, s.ConnectionState().PeerCertificates[0].Subject.CommonName)
			e.mu.Unlock()
		}
		return s
	}
}

// TestChecklist15TLSFilesAreReadAgain: 15. The PEM files of TLS are read again at each connection. The
// server's name or address is verified.
func TestChecklist15TLSFilesAreReadAgain(t *testing.T) {
	for _, server := range []string{"zk.example", "10.0.0.1"} {
		t.Run(server, func(t *testing.T) {
			dir := t.TempDir()
			files := &TLSFiles{CA: filepath.Join(dir, "ca"), Cert: filepath.Join(dir, "cert"), Key: filepath.Join(dir, "key")}
			bubble(t, func(t *testing.T) {
				a := newAuthority(t)
				write := func(name string) {
					cert, key := a.pair(t, name)
					for path, text := range map[string][]byte{files.CA: a.pem(), files.Cert: cert, files.Key: key} {
						if err := os.WriteFile(path, text, 0o600); err != nil {
							t.Fatal(err)
						}
					}
				}
				e := newEnsemble(t)
				e.secure(t, a, "zk.example")
				write("first")
				c := e.connect(Options{TLSFiles: files, Resolver: &names{hosts: map[string][]string{"zk.example": {"10.0.0.1"}}}}, server)
				write("second")
				synctest.Wait()
				e.cut()
				waitFor(t, c, Connecting)
				waitFor(t, c, Connected)
				e.mu.Lock()
				defer e.mu.Unlock()
				if got := strings.Join(e.subjects, " "); got != "first second" {
					t.Errorf("the server saw %s, want first second", got)
				}
			})
		})
	}
}

// TestTLSRefusesStrangers: the client refuses a server whose certificate does not have the name that was
// dialled. A missing file is an error that names the file.
func TestTLSRefusesStrangers(t *testing.T) {
	a := newAuthority(t)
	cert, key := a.pair(t, "other.example")
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		t.Fatal(err)
	}
	l, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{pair}})
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			conn.(*tls.Conn).Handshake()
			conn.Close()
		}
	}()
	defer func() { l.Close(); <-done }()
	pool := x509.NewCertPool()
	pool.AddCert(a.cert)
	for want, o := range map[string]Options{
		"not zk.example": {TLS: &tls.Config{RootCAs: pool, ServerName: "zk.example"}},
		"127.0.0.1":      {TLS: &tls.Config{RootCAs: pool}},
		"no-such-file":   {TLSFiles: &TLSFiles{CA: "no-such-file"}},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		o.Logger = slog.New(slog.NewTextHandler(onWrite(cancel), nil)) // the client logs the first failure
		_, err := Connect(ctx, l.Addr().String(), &o)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error is %v, want one that says %s", err, want)
		}
	}
}

type onWrite func()

func (f onWrite) Write(p []byte) (int, error) {
	f()
	return len(p), nil
}
