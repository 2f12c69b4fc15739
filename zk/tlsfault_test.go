package zk

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// firstFailure returns the error of the first attempt to connect to a server.
func firstFailure(t *testing.T, server string, o Options) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	o.Logger = slog.New(slog.NewTextHandler(onWrite(cancel), nil)) // the client logs the first failure
	c, err := Connect(ctx, server, &o)
	if err == nil {
		c.Close(ctx)
		t.Fatal("connected")
	}
	return err.Error()
}

// answering is a server that calls f with each connection and then closes it.
func answering(t *testing.T, f func(net.Conn)) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var connections sync.WaitGroup
	connections.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			connections.Go(func() { f(conn); conn.Close() })
		}
	})
	t.Cleanup(func() { l.Close(); connections.Wait() })
	return l.Addr().String()
}

// pemFiles writes the certificate of an authority, and a pair that it has signed.
func pemFiles(t *testing.T, a *authority, name string) *TLSFiles {
	t.Helper()
	dir := t.TempDir()
	f := &TLSFiles{CA: filepath.Join(dir, "ca"), Cert: filepath.Join(dir, "cert")}
	f.write(t, a, name)
	return f
}

// write writes the files; the certificate and its key are in one file.
func (f *TLSFiles) write(t *testing.T, a *authority, name string) {
	t.Helper()
	cert, key := a.pair(t, name)
	for path, text := range map[string][]byte{f.CA: a.pem(), f.Cert: append(cert, key...)} {
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// TestWrongKindOfPort: the error names the server and says that one end uses TLS and the other does not.
func TestWrongKindOfPort(t *testing.T) {
	a := newAuthority(t)
	cert, key := a.pair(t, "zk.example")
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		t.Fatal(err)
	}
	secure := &tls.Config{Certificates: []tls.Certificate{pair}, MaxVersion: tls.VersionTLS13}
	first := func(conn net.Conn) { conn.Read(make([]byte, 1)) }
	for _, x := range []struct {
		name, want string
		serve      func(net.Conn)
		o          Options
	}{
		{"TLS to a port that answers without TLS", "without TLS: name the server's port with TLS (secureClientPort)", func(c net.Conn) { first(c); c.Write(make([]byte, 64)) }, Options{TLS: &tls.Config{}}},
		{"TLS to a port that closes", "closed the connection during the handshake; this may be a port without TLS", func(c net.Conn) { first(c) }, Options{TLS: &tls.Config{}}},
		{"no TLS to a port that sends an alert", "the port is for TLS: connect with TLS", func(c net.Conn) { first(c); c.Write([]byte{0x15, 3, 3, 0, 2, 2, 22}) }, Options{}},
		{"no TLS to a port with Go's TLS", "or its port is for TLS", func(c net.Conn) { tls.Server(c, secure).Handshake() }, Options{}},
		{"an authority that is not trusted", "add the authority of the server's certificate", func(c net.Conn) { tls.Server(c, secure).Handshake() }, Options{TLS: &tls.Config{ServerName: "zk.example"}}},
	} {
		t.Run(x.name, func(t *testing.T) {
			server := answering(t, x.serve)
			if got := firstFailure(t, server, x.o); !strings.Contains(got, x.want) || !strings.Contains(got, "server "+server) {
				t.Errorf("error is %s, want %q and the server", got, x.want)
			}
		})
	}
}

// TestServerWantsACertificate: the error says that the server refuses a client without a certificate,
// which with TLS 1.3 it does only after the handshake.
func TestServerWantsACertificate(t *testing.T) {
	a := newAuthority(t)
	files := pemFiles(t, a, "127.0.0.1")
	cert, key := a.pair(t, "zk.example")
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		t.Fatal(err)
	}
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		config := &tls.Config{Certificates: []tls.Certificate{pair}, MaxVersion: version, ClientAuth: tls.RequireAnyClientCert}
		server := answering(t, func(c net.Conn) { tls.Server(c, config).Handshake() })
		got := firstFailure(t, server, Options{TLS: &tls.Config{ServerName: "zk.example"}, TLSFiles: &TLSFiles{CA: files.CA}})
		if !strings.Contains(got, "it may need a certificate of this client") {
			t.Errorf("TLS %#x: %s", version, got)
		}
	}
}

// TestServerRefusesTheCertificate: the error names the certificate that the client showed.
func TestServerRefusesTheCertificate(t *testing.T) {
	a := newAuthority(t)
	files := pemFiles(t, a, "eve")
	cert, key := a.pair(t, "zk.example")
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		t.Fatal(err)
	}
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		config := &tls.Config{Certificates: []tls.Certificate{pair}, MaxVersion: version, ClientAuth: tls.RequireAnyClientCert}
		config.VerifyConnection = func(tls.ConnectionState) error { return errors.New("refused") }
		server := answering(t, func(c net.Conn) { tls.Server(c, config).Handshake() })
		got := firstFailure(t, server, Options{TLS: &tls.Config{ServerName: "zk.example"}, TLSFiles: files})
		if !strings.Contains(got, `the server refused the certificate "CN=eve" of this client`) {
			t.Errorf("TLS %#x: %s", version, got)
		}
	}
}

// TestTLSSessionsAreResumed: a new connection resumes a TLS session. After a change of the files it
// begins another one, so that the server sees the new certificate.
func TestTLSSessionsAreResumed(t *testing.T) {
	bubble(t, func(t *testing.T) {
		a := newAuthority(t) // its certificates are valid at the time of the bubble
		files := pemFiles(t, a, "first")
		e := newEnsemble(t)
		e.secure(t, a, "zk.example")
		wrap, resumed := e.wrap, ""
		e.wrap = func(conn net.Conn) net.Conn {
			s := wrap(conn)
			e.mu.Lock()
			defer e.mu.Unlock()
			resumed += map[bool]string{true: "resumed ", false: "begun "}[s.(*tls.Conn).ConnectionState().DidResume]
			return s
		}
		c := e.connect(Options{TLSFiles: files, TLS: &tls.Config{ServerName: "zk.example"}})
		again := func() {
			synctest.Wait()
			e.cut()
			waitFor(t, c, Connecting)
			waitFor(t, c, Connected)
		}
		again()
		files.write(t, a, "second")
		again()
		again()
		e.mu.Lock()
		defer e.mu.Unlock()
		if resumed != "begun resumed begun resumed " {
			t.Errorf("the TLS sessions were: %s", resumed)
		}
		if got := strings.Join(e.subjects, " "); got != "first first second second" {
			t.Errorf("the server saw %s", got)
		}
	})
}

// TestTLS13SessionsAreResumed: also with TLS 1.3, whose servers send tickets after the handshake.
func TestTLS13SessionsAreResumed(t *testing.T) {
	a := newAuthority(t)
	files := pemFiles(t, a, "client")
	cert, key := a.pair(t, "zk.example")
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		t.Fatal(err)
	}
	config := &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS13, ClientAuth: tls.RequireAnyClientCert}
	resumed := make(chan bool, 100)
	server := answering(t, func(conn net.Conn) {
		s := tls.Server(conn, config)
		if err := s.Handshake(); err == nil {
			s.Read(make([]byte, 64)) // the request for a session
			resumed <- s.ConnectionState().DidResume
		}
		s.Close()
	})
	c, err := Open(server, &Options{TLSFiles: files, TLS: &tls.Config{ServerName: "zk.example"}})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close(t.Context())
	if first, second := <-resumed, <-resumed; first || !second {
		t.Errorf("resumed: %v, then %v", first, second)
	}
}

// TestTLSConfigForEachConnection: TLSConfig decides for each connection, with the server's name and
// address. Without a configuration the connection has no TLS.
func TestTLSConfigForEachConnection(t *testing.T) {
	bubble(t, func(t *testing.T) {
		e := newEnsemble(t)
		var asked []Server
		e.connect(Options{
			TLSConfig: func(_ context.Context, s Server) (*tls.Config, error) {
				asked = append(asked, s)
				return nil, nil
			},
			Resolver: &names{hosts: map[string][]string{"zk.example": {"10.0.0.1"}}},
		}, "zk.example")
		if len(asked) != 1 || asked[0] != (Server{"zk.example", "10.0.0.1:2181"}) {
			t.Errorf("asked for %+v", asked)
		}
	})
}

// TestLoginBeginsBeforeTheSession: a login that cannot begin opens no session at the server, and each
// connection has a login of its own before other requests.
func TestLoginBeginsBeforeTheSession(t *testing.T) {
	bubble(t, func(t *testing.T) {
		e := newEnsemble(t)
		e.saslServer(token([]byte("end")))
		tries := 0
		c := e.connect(Options{SASL: func(context.Context, Server) (Exchange, error) {
			if tries++; tries == 1 {
				return nil, errNoListener
			}
			return echoSASL{}, nil
		}})
		if e.mu.Lock(); len(e.asked) != 1 {
			t.Errorf("%d sessions were asked for, want 1", len(e.asked))
		}
		e.mu.Unlock()
		get := make(chan error, 1)
		synctest.Wait()
		e.cut()
		waitFor(t, c, Connecting)
		go func() { _, _, err := c.Get(t.Context(), "/a"); get <- err }()
		if err := <-get; err != nil {
			t.Error(err)
		}
		if log := strings.Join(e.log(), ", "); tries != 3 || !strings.HasSuffix(log, "sasl , getData /a") {
			t.Errorf("%d logins; requests: %s", tries, log)
		}
	})
}

// TestCloseDoesNotWaitForALogin: a login that is still waiting does not delay Close.
func TestCloseDoesNotWaitForALogin(t *testing.T) {
	bubble(t, func(t *testing.T) {
		e := newEnsemble(t)
		begun := make(chan struct{})
		c := e.open(Options{SASL: func(ctx context.Context, _ Server) (Exchange, error) {
			close(begun)
			<-ctx.Done()
			return nil, ctx.Err()
		}})
		<-begun
		start := time.Now()
		if err := c.Close(t.Context()); err != nil || time.Since(start) > functionTime {
			t.Errorf("Close took %v: %v", time.Since(start), err)
		}
	})
}
