package secure

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"
)

// listen accepts connections on the loopback address, each with its own call of serve, until the test ends.
func listen(t *testing.T, serve func(net.Conn)) (address string) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ln.Close() })
	go func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				serve(c)
			}()
		}
	}()
	return ln.Addr().String()
}

// serving returns a function that carries out a handshake and then reads until the client ends.
func serving(config *tls.Config) func(net.Conn) {
	return func(c net.Conn) {
		_, _ = io.Copy(io.Discard, tls.Server(c, config)) // an error is the refusal that the test wants to see
	}
}

// present issues a certificate that is valid at the present time: a probe uses the real clock.
func present(t *testing.T, from *signed, name string, change func(*x509.Certificate)) *signed {
	return from.issue(t, name, func(c *x509.Certificate) {
		c.NotBefore, c.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
		hosts("127.0.0.1")(c)
		if change != nil {
			change(c)
		}
	})
}

func (s *signed) pair() *tls.Certificate {
	return &tls.Certificate{Certificate: [][]byte{s.cert.Raw}, PrivateKey: s.key, Leaf: s.cert}
}

// TestProbe shows how a probe explains each fault, and what it reports of the server.
func TestProbe(t *testing.T) {
	asCA := func(c *x509.Certificate) { c.IsCA = true }
	ca, other := present(t, nil, "ca", asCA), present(t, nil, "other", asCA)
	good := present(t, ca, "good", nil)
	expired := present(t, ca, "expired", func(c *x509.Certificate) { c.NotAfter = time.Now().Add(-time.Minute) })
	elsewhere := ca.issue(t, "elsewhere", func(c *x509.Certificate) {
		hosts("zk1.example", "10.0.0.1")(c)
		c.NotAfter = time.Now().Add(time.Hour)
	})
	server := func(shown *signed, change ...func(*tls.Config)) func(net.Conn) {
		c := &tls.Config{Certificates: []tls.Certificate{*shown.pair()}, ClientCAs: pool([]*x509.Certificate{ca.cert})}
		for _, f := range change {
			f(c)
		}
		return serving(c)
	}
	need := func(c *tls.Config) { c.ClientAuth = tls.RequireAndVerifyClientCert }
	only12 := func(c *tls.Config) { c.MaxVersion = tls.VersionTLS12 }
	old := func(c *tls.Config) { c.MinVersion, c.MaxVersion = tls.VersionTLS10, tls.VersionTLS11 }

	for _, c := range []struct {
		what  string
		serve func(net.Conn)
		shown *signed
		want  string
	}{
		{"good", server(good), nil, ""},
		{"good with a certificate", server(good, need), good, ""},
		{"good with TLS 1.2", server(good, need, only12), good, ""},
		{"expired server", server(expired), nil, `"CN=expired": it expired at`},
		{"wrong name", server(elsewhere), nil, `"CN=elsewhere": it is not for the name 127.0.0.1, but for zk1.example, 10.0.0.1: connect to one of these names`},
		{"unknown authority", server(present(t, other, "good", nil)), nil, `its issuer "CN=other" is not trusted: add the certificate of "CN=other" to --tls-ca`},
		{"a client's certificate", server(present(t, ca, "client", func(c *x509.Certificate) { c.ExtKeyUsage = c.ExtKeyUsage[1:] })), nil, "its extended key usage does not allow this use"},
		{"no certificate", server(good, need), nil, "it wants a certificate of the client, and got none: show a certificate that one of its trusted authorities has issued, that is CN=ca"},
		{"no certificate, TLS 1.2", server(good, need, only12), nil, "it wants a certificate of the client, and got none"},
		{"expired client", server(good, need), expired, `it refused the certificate "CN=expired": expired certificate: it expired at`},
		{"client of another authority", server(good, need), present(t, other, "alice", nil),
			`it refused the certificate "CN=alice": unknown certificate authority: its issuer is "CN=other", and the server trusts CN=ca: use`},
		{"client of another authority, TLS 1.2", server(good, need, only12), present(t, other, "alice", nil), `it refused the certificate "CN=alice"`},
		{"old version", server(good, old), nil, "it speaks TLS 1.1 only: enable TLSv1.2 or TLSv1.3"},
		{"without TLS", func(c net.Conn) {
			b := make([]byte, 4)
			if _, err := io.ReadFull(c, b); err == nil && bytes.Equal(b, []byte("srvr")) {
				io.WriteString(c, "Zookeeper version: 3.9.5\n")
			}
		}, nil, "it answers without TLS: connect without TLS, or name the port with TLS"},
		{"HTTP", func(c net.Conn) { io.WriteString(c, "HTTP/1.1 400 Bad Request\r\n\r\n") }, nil, "it speaks HTTP without TLS"},
		{"closed", func(net.Conn) {}, nil, "it closed the connection during the handshake"},
		{"silent", func(c net.Conn) { io.Copy(io.Discard, c) }, nil, "it did not finish the handshake in time"},
	} {
		t.Run(c.what, func(t *testing.T) {
			t.Parallel()
			p := Probe{Address: listen(t, c.serve), Roots: pool([]*x509.Certificate{ca.cert}), RootsFrom: "--tls-ca"}
			if c.shown != nil {
				p.Certificate = c.shown.pair()
			}
			limit := 10 * time.Second
			if c.what == "silent" { // this case ends only when the time limit is over
				limit = 500 * time.Millisecond
			}
			ctx, cancel := context.WithTimeout(t.Context(), limit)
			defer cancel()
			seen, err := p.Run(ctx)
			wants(t, c.what, err, c.want)
			if r := new(Refusal); err != nil && (!errors.As(err, &r) || r.Remedy == "" || r.Peer != p.Address) {
				t.Errorf("no remedy or address: %v", err)
			}
			if c.want == "" && (seen.Version == "" || len(seen.Chain) == 0 || seen.Asked != (c.shown != nil)) {
				t.Errorf("%+v", seen)
			}
		})
	}
}

// TestProbeOfAClosedPort shows that a port that nobody has opened is not reported as a fault of TLS.
func TestProbeOfAClosedPort(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ln.Close()
	_, err = Probe{Address: ln.Addr().String()}.Run(t.Context())
	var unreachable *UnreachableError
	if !errors.As(err, &unreachable) || !strings.Contains(err.Error(), "refused") {
		t.Error(err)
	}
}
