package secure

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"
)

// connect connects two ends over loopback and returns the error of each handshake, after
// one byte in each direction.
func connect(t testing.TB, server, client *tls.Config) (state tls.ConnectionState, atServer, atClient error) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	done := make(chan error, 1)
	go func() {
		c, err := l.Accept()
		if err != nil {
			done <- err
			return
		}
		defer c.Close()
		_ = c.SetDeadline(time.Now().Add(20 * time.Second))
		s := tls.Server(c, server)
		err = s.Handshake()
		state = s.ConnectionState()
		if err == nil {
			_, err = io.CopyN(s, s, 1)
		}
		done <- err
	}()
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(20 * time.Second))
	s := tls.Client(c, client)
	if err = s.Handshake(); err == nil {
		_, err = s.Write([]byte("x"))
	}
	if err == nil {
		_, err = s.Read(make([]byte, 1))
	}
	c.Close()
	atServer = <-done
	return state, atServer, err
}

var loopback = netip.MustParseAddr("127.0.0.1")

// serverOf returns a store's configuration for accepting connections.
func serverOf(t testing.TB, s *Store) *tls.Config {
	t.Helper()
	c, err := s.Server()
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestHandshakes shows which ends accept each other, and what each end reports about the other.
func TestHandshakes(t *testing.T) {
	ca, other := authority(t, "ca"), authority(t, "other")
	between := ca.issue(t, "between", func(c *x509.Certificate) { c.IsCA = true })
	local := hosts("127.0.0.1", "localhost")
	good := ca.issue(t, "good", local)
	with := func(more ...func(*x509.Certificate)) func(*x509.Certificate) {
		return func(c *x509.Certificate) {
			local(c)
			for _, change := range more {
				change(c)
			}
		}
	}
	expired := ca.issue(t, "expired", with(func(c *x509.Certificate) { c.NotAfter = noon.Add(-time.Hour) }))
	early := ca.issue(t, "early", with(func(c *x509.Certificate) { c.NotBefore = noon.Add(time.Hour) }))
	serverOnly := ca.issue(t, "server only", with(func(c *x509.Certificate) { c.ExtKeyUsage = c.ExtKeyUsage[:1] }))
	clientOnly := ca.issue(t, "client only", with(func(c *x509.Certificate) { c.ExtKeyUsage = c.ExtKeyUsage[1:] }))
	anyUse := ca.issue(t, "any use", with(func(c *x509.Certificate) { c.ExtKeyUsage = nil }))
	elsewhere := ca.issue(t, "elsewhere", hosts("10.0.0.1", "elsewhere.example.com"))
	self := (*signed)(nil).issue(t, "self", local)

	for _, c := range []struct {
		what     string
		server   *signed
		serverOf []string
		client   *signed // nil: the client shows no certificate
		clientOf []string
		atServer string
		atClient string
	}{
		{"good", good, nil, good, nil, "", ""},
		{"chain", between.issue(t, "leaf", local), nil, between.issue(t, "leaf", local), nil, "", ""},
		{"none needed", good, []string{"clientAuth", "none"}, nil, nil, "", ""},
		{"none wanted", good, []string{"clientAuth", "want"}, nil, nil, "", ""},
		{"none shown", good, nil, nil, nil, "it showed no certificate: give it one that this server trusts",
			"it needs a certificate of ours: set keyStore.location"},
		{"wanted and bad", good, []string{"clientAuth", "want"}, expired, nil, `the certificate "CN=expired": it expired at 2026-06-01T11:00:00Z: renew it`, "its log says what is wrong with our certificate"},
		{"expired client", good, nil, expired, nil, `127.0.0.1: the certificate "CN=expired": it expired at 2026-06-01T11:00:00Z: renew it`, "it refused the connection"},
		{"early client", good, nil, early, nil, `the certificate "CN=early": it is not valid before 2026-06-01T13:00:00Z: compare the clocks`, "it refused the connection"},
		{"client with a server's certificate", good, nil, serverOnly, nil, `"CN=server only": its extended key usage does not allow this use: issue it for both serverAuth and clientAuth`, "it refused the connection"},
		{"server with a client's certificate", clientOnly, nil, good, nil, "it refused the connection", `"CN=client only": its extended key usage does not allow this use`},
		{"a client that dials as a server", good, nil, clientOnly, nil, `"CN=client only": its extended key usage does not allow this use: issue it for both serverAuth and clientAuth`, "it refused the connection"},
		{"certificates for every use", anyUse, nil, anyUse, nil, "", ""},
		{"expired server", expired, nil, good, nil, "it refused the connection", `"CN=expired": it expired at`},
		{"wrong server", elsewhere, nil, good, nil, "it refused the connection", "its names (elsewhere.example.com, 10.0.0.1) are not those of the other end (127.0.0.1, localhost): issue it for the right names, or set ssl.quorum.hostnameVerification=false"},
		{"wrong server, not verified", elsewhere, nil, good, []string{"hostnameVerification", "false"}, "", ""},
		{"wrong client", good, nil, elsewhere, nil, "are not those of the other end (127.0.0.1", "it refused the connection"},
		{"wrong client, not verified", good, []string{"clientHostnameVerification", "false"}, elsewhere, nil, "", ""},
		{"shared name", elsewhere, []string{"sharedName", "elsewhere.example.com"}, elsewhere, []string{"sharedName", "Elsewhere.example.com"}, "", ""},
		{"another shared name", good, []string{"sharedName", "zk.example.com"}, elsewhere, nil, "are not those of the other end (127.0.0.1", "it refused the connection"},
		{"server signed by itself", self, nil, good, nil, "it refused the connection", `"CN=self": it is signed by itself and not trusted: add it to ssl.quorum.trustStore.location`},
		{"old client", good, nil, good, []string{"protocol", "TLSv1.1"}, "no version of TLS is enabled at both ends", "enable the same version of TLS in enabledProtocols"},
		{"TLS 1.2", good, []string{"protocol", "TLSv1.2"}, good, nil, "", ""},
		{"no common suite", good, []string{"ciphersuites", "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384"}, good, nil, "no cipher suite is enabled at both ends that fits the certificate", "enable the same versions and cipher suites at both ends"},
	} {
		server := openStore(t, Servers, c.server, ca, append([]string{"allowReverseDnsLookup", "false"}, c.serverOf...)...)
		client := openStore(t, Servers, c.client, ca, c.clientOf...)
		_, atServer, atClient := connect(t, serverOf(t, server), client.Client(t.Context(), "localhost", loopback))
		explain := func(err error) error {
			if err == nil {
				return nil
			}
			return Explain(err, "127.0.0.1")
		}
		wants(t, c.what+", at the server", explain(atServer), c.atServer)
		wants(t, c.what+", at the client", explain(atClient), c.atClient)
		for _, err := range []error{explain(atServer), explain(atClient)} {
			if r := new(Refusal); err != nil && (!errors.As(err, &r) || r.Remedy == "" || r.Peer == "") {
				t.Errorf("%s: no remedy or peer: %v", c.what, err)
			}
		}
	}

	// In the family Clients a client needs only a certificate for clients, unlike a server that dials another one.
	clients := openStore(t, Clients, good, ca)
	_, atServer, atClient := connect(t, serverOf(t, clients), openStore(t, Clients, clientOnly, ca).Client(t.Context(), "localhost", loopback))
	wants(t, "client, at the server", atServer, "")
	wants(t, "client, at the client", atClient, "")

	// Each end trusts a different authority.
	server := openStore(t, Servers, good, other)
	config := serverOf(t, server)
	client := openStore(t, Servers, good, ca).Client(t.Context(), "localhost", loopback)
	_, atServer, _ = connect(t, config, client)
	wants(t, "client without a certificate that the server trusts", Explain(atServer, ""), "it showed no certificate")
	client.GetClientCertificate = nil
	client.Certificates = []tls.Certificate{{Certificate: [][]byte{good.cert.Raw}, PrivateKey: good.key}}
	client.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &client.Certificates[0], nil }
	_, atServer, _ = connect(t, config, client)
	wants(t, "other authority", atServer, `127.0.0.1: the certificate "CN=good": its issuer "CN=ca" is not trusted: add the certificate of "CN=ca" to ssl.quorum.trustStore.location`)
}

// TestServerNeedsAKey shows that a port with TLS cannot be opened without a key store.
func TestServerNeedsAKey(t *testing.T) {
	_, err := openStore(t, Clients, nil, authority(t, "ca")).Server()
	wants(t, "no key store", err, "ssl.keyStore.location=: a port with TLS needs a key and its certificate: set ssl.keyStore.location")
}

// TestLeafInTheTrustStore shows that a certificate that is itself in the trust store needs no issuer.
func TestLeafInTheTrustStore(t *testing.T) {
	self := (*signed)(nil).issue(t, "self", hosts("127.0.0.1"))
	s := openStore(t, Servers, self, self)
	_, atServer, atClient := connect(t, serverOf(t, s), s.Client(t.Context(), "", loopback))
	wants(t, "server", atServer, "")
	wants(t, "client", atClient, "")
}

// TestLongChain shows the limit of the certificates that a peer may send.
func TestLongChain(t *testing.T) {
	ca := authority(t, "ca")
	leaf := ca.issue(t, "leaf", hosts("127.0.0.1"))
	s := openStore(t, Servers, leaf, ca)
	config := s.Client(t.Context(), "", loopback)
	long := tls.Certificate{PrivateKey: leaf.key}
	for range chainMax + 1 {
		long.Certificate = append(long.Certificate, leaf.cert.Raw)
	}
	config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &long, nil }
	_, atServer, _ := connect(t, serverOf(t, s), config)
	wants(t, "long chain", atServer, "it came with 17 certificates; 16 are allowed")
}

// TestResumedSessionIsChecked shows that a client whose certificate is no longer trusted cannot use the
// session ticket of an earlier connection.
func TestResumedSessionIsChecked(t *testing.T) {
	ca, other := authority(t, "ca"), authority(t, "other")
	dir := t.TempDir()
	good := ca.issue(t, "good", hosts("127.0.0.1"))
	s, err := openAt(settingsFor(t, Clients, dir, good, ca), atNoon)
	if err != nil {
		t.Fatal(err)
	}
	server, client := serverOf(t, s), s.Client(t.Context(), "localhost", loopback)
	client.ClientSessionCache = tls.NewLRUClientSessionCache(1)
	for _, resumed := range []bool{false, true} {
		state, atServer, atClient := connect(t, server, client)
		if atServer != nil || atClient != nil || state.DidResume != resumed {
			t.Fatalf("resumed %t: %v, %v", state.DidResume, atServer, atClient)
		}
	}
	settingsFor(t, Clients, dir, good, other)
	if changed, err := s.Reload(); !changed || err != nil {
		t.Fatal(changed, err)
	}
	_, atServer, _ := connect(t, server, client)
	wants(t, "after the reload", atServer, `its issuer "CN=ca" is not trusted`)
}

// TestExplain shows the explanations of failures that have other causes than certificates.
func TestExplain(t *testing.T) {
	for _, c := range []struct {
		err  error
		want string
	}{
		{tls.RecordHeaderError{Msg: "x", RecordHeader: [5]byte{0, 0, 0, 45, 0}}, "10.0.0.1: it does not speak TLS: let it use TLS, or the port without TLS"},
		{tls.RecordHeaderError{Msg: "x", RecordHeader: [5]byte{'G', 'E', 'T', ' ', '/'}}, "10.0.0.1: it speaks HTTP without TLS"},
		{io.EOF, "it closed the connection during the handshake"},
		{context.DeadlineExceeded, "it did not finish the handshake in time"},
		{tls.AlertError(44), "our certificate is revoked: replace it"},
		{errors.New("something else"), "10.0.0.1: something else"},
		{&Refusal{Why: "because"}, "10.0.0.1: because"},
	} {
		if got := Explain(c.err, "10.0.0.1").Error(); !strings.Contains(got, c.want) {
			t.Errorf("%v: %q, want %q", c.err, got, c.want)
		}
	}
}

// TestSystemAuthorities shows that without a trust store the authorities of the system are trusted.
func TestSystemAuthorities(t *testing.T) {
	settings, err := Parse(Clients, nil)
	if err != nil {
		t.Fatal(err)
	}
	s, err := openAt(settings, atNoon)
	if err != nil {
		t.Fatal(err)
	}
	leaf := authority(t, "ca").issue(t, "leaf", hosts("127.0.0.1"))
	err = s.loaded.Load().verifier.check(context.Background(), tls.ConnectionState{PeerCertificates: []*x509.Certificate{leaf.cert}}, end{address: loopback}, true)
	wants(t, "unknown authority", err, `its issuer "CN=ca" is not trusted`)
}
