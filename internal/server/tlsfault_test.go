package server

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"io"
	"log/slog"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"bellwether/internal/authority"
	"bellwether/internal/config"
	"bellwether/internal/ensemble"
	"bellwether/internal/peerwire"
	"bellwether/internal/secure"
	"bellwether/wire"
)

// issue writes a certificate of the authority for loopback, with its key, to a file. change may alter the
// certificate before it is signed.
func (c *certs) issue(file string, change func(*x509.Certificate)) {
	c.t.Helper()
	c.issueBy(c.authority(), file, change)
}

// authority returns the certificate and the key of the authority.
func (c *certs) authority() *tls.Certificate {
	c.t.Helper()
	ca, err := tls.LoadX509KeyPair(filepath.Join(c.dir, authority.CertFile), filepath.Join(c.dir, authority.KeyFile))
	if err != nil {
		c.t.Fatal(err)
	}
	return &ca
}

// issueBy is like issue, but for a certificate of another authority; nil: it is signed by itself.
func (c *certs) issueBy(ca *tls.Certificate, file string, change func(*x509.Certificate)) {
	c.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		c.t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: file},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, DNSNames: []string{"localhost"},
	}
	change(template)
	if ca == nil {
		ca = &tls.Certificate{Leaf: template, PrivateKey: key}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, ca.Leaf, key.Public(), ca.PrivateKey)
	if err != nil {
		c.t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		c.t.Fatal(err)
	}
	text := append(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})...)
	if err := os.WriteFile(filepath.Join(c.dir, file), text, 0o600); err != nil {
		c.t.Fatal(err)
	}
}

// silent listens and never answers. It counts the connections.
func silent(t *testing.T) (address string, asked *atomic.Int64) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ln.Close() })
	asked = new(atomic.Int64)
	go func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			t.Cleanup(func() { c.Close() })
			asked.Add(1)
		}
	}()
	return ln.Addr().String(), asked
}

// TestChecksOfCertificatesEndInTime shows that a revocation list that does not arrive holds neither a
// connection beyond the time for its handshake, nor the end of the server.
func TestChecksOfCertificatesEndInTime(t *testing.T) {
	k := newCerts(t)
	address, asked := silent(t)
	k.issue("slow.pem", func(c *x509.Certificate) { c.CRLDistributionPoints = []string{"http://" + address + "/list"} })
	for _, sessionless := range []time.Duration{500 * time.Millisecond, time.Hour} {
		before := asked.Load()
		cfg := testConfig()
		cfg.Limits.Sessionless = sessionless
		cfg.TLS = config.TLS{Client: ensemble.HostPort{Host: "127.0.0.1"}, Clients: k.settings(secure.Clients, "crl=true")}
		r := start(t, Options{Config: cfg})
		began, conf := time.Now(), k.client("slow.pem")
		nc, err := net.Dial("tcp", r.SecureAddr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer nc.Close()
		client := tls.Client(nc, conf)
		if err := client.Handshake(); err != nil { // the server checks the certificate after this end's handshake
			t.Fatal(err)
		}
		eventually(t, "the server asks for the list", func() bool { return asked.Load() > before })
		if sessionless < time.Minute {
			if _, err := client.Read(make([]byte, 1)); err == nil {
				t.Error("the server sends something")
			}
			if took := time.Since(began); took > 4*time.Second {
				t.Errorf("the connection lasted %s", took)
			}
		}
		began = time.Now()
		if err := r.end(); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); took > 3*time.Second {
			t.Errorf("the server took %s to end", took)
		}
	}
}

// TestServersEndDuringChecks shows that a server of an ensemble ends although it still waits for the
// revocation list of another server.
func TestServersEndDuringChecks(t *testing.T) {
	k := newCerts(t)
	address, asked := silent(t)
	k.issue("server.pem", func(c *x509.Certificate) { c.CRLDistributionPoints = []string{"http://" + address + "/list"} })
	g := newTestEnsemble(t, 2, 0, false)
	g.change = func(c *config.Config) {
		c.TLS = config.TLS{Quorum: true, Servers: k.settings(secure.Servers, "crl=true")}
	}
	for _, m := range g.servers {
		g.start(m)
	}
	eventually(t, "a server asks for the list", func() bool { return asked.Load() > 0 })
	for _, m := range g.servers {
		began := time.Now()
		g.stopped(m)
		if took := time.Since(began); took > 3*time.Second {
			t.Errorf("server %d took %s to end", m.id, took)
		}
	}
}

// TestRefusedMemberBacksOff shows that a member whose certificate the others refuse, which it learns after its
// own handshake, dials them with growing pauses, and that its log says why: on the quorum port of the leader,
// and on the election ports, which the member with the largest id dials.
func TestRefusedMemberBacksOff(t *testing.T) {
	for _, x := range []struct {
		name    string
		refused int // index of the server
		port    func(ensemble.Address) string
		text    string
	}{
		{"QuorumPort", 0, ensemble.Address.Quorum, "the leader refused the connection of this server"},
		{"ElectionPort", 2, ensemble.Address.Election, "a server refused the connection of this server to its election port"},
	} {
		t.Run(x.name, func(t *testing.T) {
			k := newCerts(t)
			// The server may accept connections of the others, but they refuse it.
			k.issue("refused.pem", func(c *x509.Certificate) { c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth} })
			g := newTestEnsemble(t, 3, 0, false)
			log, dials := new(logBook), new(atomic.Int64)
			g.change = func(c *config.Config) {
				c.TLS = config.TLS{Quorum: true, Servers: k.settings(secure.Servers)}
				if int(c.Ensemble.ID) == x.refused+1 {
					c.TLS.Servers.KeyStore.Location = filepath.Join(k.dir, "refused.pem")
				}
			}
			for i, m := range g.servers {
				if i != x.refused {
					g.start(m)
				}
			}
			g.settled()
			g.book = log
			g.hooks.Dial = countDials(g.members, x.port, dials)
			g.start(g.servers[x.refused])
			backsOff(t, log, dials, x.text)
		})
	}
}

// countDials returns a function that dials, and counts the dials of one kind of port.
func countDials(members *ensemble.Membership, port func(ensemble.Address) string, dials *atomic.Int64) func(context.Context, string) (net.Conn, error) {
	ports := map[string]bool{}
	for _, s := range members.Servers() {
		ports[port(s.Addresses[0])] = true
	}
	return func(ctx context.Context, address string) (net.Conn, error) {
		if ports[address] {
			dials.Add(1)
		}
		return new(net.Dialer).DialContext(ctx, "tcp", address)
	}
}

// backsOff fails the test unless the log of a server says that it was refused, and why, and the server dials
// only a few times more.
func backsOff(t *testing.T, log *logBook, dials *atomic.Int64, refusal string) {
	t.Helper()
	eventually(t, "the refusal is logged", func() bool { return strings.Contains(log.String(), refusal) })
	before := dials.Load()
	<-time.After(3 * time.Second)
	if n := dials.Load() - before; n > 20 { // without pauses there would be a hundred
		t.Errorf("%d dials in 3 s", n)
	}
	text := log.String()
	if strings.Contains(text, "bytes that are not a packet") {
		t.Error("a refusal is called a wrong packet")
	}
	for line := range strings.Lines(text) {
		if strings.Contains(line, refusal) && !strings.Contains(line, "bad certificate") {
			t.Error(line)
		}
	}
}

// TestEveryReloadIsAnswered shows that the log answers each reload that an operator asks for, also one that
// fails for the same reason as the last one, and one that changes nothing.
func TestEveryReloadIsAnswered(t *testing.T) {
	k := newCerts(t)
	cfg := testConfig()
	cfg.TLS = config.TLS{Client: ensemble.HostPort{Host: "127.0.0.1"}, Clients: k.settings(secure.Clients)}
	var log logBook
	r := start(t, Options{Config: cfg, Log: slog.New(slog.NewTextHandler(&log, nil))})
	told := func(what, want string) {
		t.Helper()
		if got := r.Reload(r.config()).String(); got != want {
			t.Errorf("%s: %q, want %q", what, got, want)
		}
	}
	told("no change", "no key has changed")
	if n := strings.Count(log.String(), "their files have not changed"); n != 1 {
		t.Errorf("%d answers to a reload without a change", n)
	}
	if err := os.Remove(filepath.Join(k.dir, "server.pem")); err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		told("a missing file", "no key has changed; certificates are refused, and the old ones stay in use: ssl.*")
		if n := strings.Count(log.String(), "the old ones stay in use"); n != i+1 {
			t.Errorf("%d answers to %d reloads that fail", n, i+1)
		}
	}
	k.renew(2)
	told("new certificates", "no key has changed; new certificates are in use: ssl.*")
}

// TestSubjectIsTheFallback shows that a client whose certificate has no alternative name that
// ssl.x509.clientCertId* asks for is served with its subject as its id, and that the log says so. ZooKeeper
// servers that know these keys do the same.
func TestSubjectIsTheFallback(t *testing.T) {
	k := newCerts(t)
	cfg := testConfig()
	cfg.TLS = config.TLS{Client: ensemble.HostPort{Host: "127.0.0.1"}, Clients: k.settings(secure.Clients, "x509.clientCertIdType=SAN", "x509.clientCertIdSanMatchType=6")}
	var log logBook
	r := start(t, Options{Config: cfg, Log: slog.New(slog.NewTextHandler(&log, nil))})
	c := r.dialTLS(r.SecureAddr(), k.client("client.pem"))
	if c == nil {
		t.Fatal("the client is refused")
	}
	acl := []wire.ACL{{Perms: wire.PermAll, ID: wire.ID{Scheme: "x509", ID: "CN=alice"}}}
	c.must(wire.OpCreate, &wire.CreateRequest{Path: "/alices", ACL: acl}, nil)
	c.must(wire.OpGetData, &wire.PathWatchRequest{Path: "/alices"}, nil)
	if text := log.String(); !strings.Contains(text, "its subject is the id") {
		t.Error(text)
	}
}

// TestFailedHandshakeIsFinal shows that after a failed handshake a connection begins no second one, although
// reading goes on to drain the input.
func TestFailedHandshakeIsFinal(t *testing.T) {
	k := newCerts(t)
	store, err := secure.Open(k.settings(secure.Clients))
	if err != nil {
		t.Fatal(err)
	}
	conf, err := store.Server()
	if err != nil {
		t.Fatal(err)
	}
	for _, unified := range []bool{false, true} {
		near, far := net.Pipe()
		go io.Copy(io.Discard, near)
		go near.Write([]byte{22, 255, 255, 0, 1}) // the type of a TLS record, in a version that does not exist
		c := &secureConn{Conn: far, config: conf, unified: unified, budget: new(budget)}
		_, first := c.Read(make([]byte, 100))
		if failed := (*handshakeError)(nil); !errors.As(first, &failed) {
			t.Fatalf("unified %v: the first read: %v", unified, first)
		}
		near.Close() // a second handshake would end with another error
		if _, again := c.Read(make([]byte, 100)); again != first {
			t.Errorf("unified %v: the second read: %v, want %v", unified, again, first)
		}
	}
}

// TestPlainTextIsRefusedAtOnce shows that each port that takes only TLS ends a connection without TLS at once,
// not after the time for a handshake, and that the log says so once for each kind of port.
func TestPlainTextIsRefusedAtOnce(t *testing.T) {
	k := newCerts(t)
	g := newTestEnsemble(t, 3, 0, false)
	var log logBook
	g.book = &log
	g.change = func(c *config.Config) {
		c.Limits.Sessionless, c.Ensemble.ElectionRead = time.Hour, time.Hour
		c.TLS = config.TLS{Quorum: true, Servers: k.settings(secure.Servers), Client: ensemble.HostPort{Host: "127.0.0.1"}, Clients: k.settings(secure.Clients)}
	}
	for _, m := range g.servers {
		g.start(m)
	}
	leader := g.settled()
	self, _ := g.members.Server(leader.id)
	for _, at := range []string{leader.SecureAddr().String(), self.Addresses[0].Election(), self.Addresses[0].Quorum()} {
		for _, text := range []string{"s", "srvr", "srvr\n", "some text that is longer than the header of a record"} {
			nc, err := net.Dial("tcp", at)
			if err != nil {
				t.Fatal(err)
			}
			defer nc.Close()
			if _, err := io.WriteString(nc, text); err != nil {
				t.Fatal(err)
			}
			nc.SetReadDeadline(time.Now().Add(eventTimeout))
			if n, err := nc.Read(make([]byte, 100)); n > 0 || os.IsTimeout(err) {
				t.Errorf("%s answers %q with %d bytes: %v", at, text, n, err)
			}
		}
	}
	eventually(t, "the log has three lines", func() bool { return strings.Count(log.String(), "it does not speak TLS: ") >= 3 })
	if text := log.String(); strings.Count(text, "it does not speak TLS: ") > 3 {
		t.Error(text)
	}
}

// TestLeaderChangesBesideHalfHandshakes shows that connections that stop in the middle of their handshake keep
// neither the servers from electing a leader, nor clients with TLS from being served by it, although there are
// more of them on each port of each server than may wait at a time.
func TestLeaderChangesBesideHalfHandshakes(t *testing.T) {
	k := newCerts(t)
	g := newTestEnsemble(t, 3, 0, false)
	g.change = func(c *config.Config) {
		c.TLS = config.TLS{Quorum: true, Servers: k.settings(secure.Servers), Client: ensemble.HostPort{Host: "127.0.0.1"}, Clients: k.settings(secure.Clients)}
	}
	for _, m := range g.servers {
		g.start(m)
	}
	leader := g.settled()
	hold := func(address string) {
		for range 300 {
			nc, err := net.Dial("tcp", address)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { nc.Close() })
			nc.Write([]byte{22, 3, 1, 1, 0, 1})
		}
	}
	for _, m := range g.servers {
		if m == leader {
			continue
		}
		at, _ := g.members.Server(m.id)
		hold(at.Addresses[0].Election())
		hold(m.SecureAddr().String())
	}
	g.kill(leader)
	next := g.settled()
	at, _ := g.members.Server(next.id)
	hold(at.Addresses[0].Quorum())
	if c := next.dialTLS(next.SecureAddr(), k.client("client.pem")); c == nil {
		t.Error("no client is served beside half handshakes")
	} else {
		c.create("/a", "x")
	}
	g.start(leader)
	eventually(t, "the killed server follows beside half handshakes", func() bool { return leader.serves(peerwire.Following) })
	if g.leader() != next {
		t.Error("the term has ended")
	}
}
