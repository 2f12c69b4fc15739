package server

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"bellwether/internal/authority"
	"bellwether/internal/config"
	"bellwether/internal/ensemble"
	"bellwether/internal/peerwire"
	"bellwether/internal/secure"
	"bellwether/wire"
)

// certs is a private authority with certificates for servers and clients in a folder.
type certs struct {
	t   *testing.T
	dir string
}

func newCerts(t *testing.T) *certs {
	t.Helper()
	c := &certs{t, t.TempDir()}
	c.renew(1)
	return c
}

// renew issues all certificates, for a number of days.
func (c *certs) renew(days int) {
	c.t.Helper()
	local := []string{"127.0.0.1", "localhost"}
	if _, err := authority.Init(authority.Plan{Dir: c.dir, Days: days, Now: time.Now(), Subjects: []authority.Subject{
		{File: "server.pem", Name: "server", Hosts: local}, {File: "client.pem", Name: "alice"}, {File: "root.pem", Name: "root"},
		{File: "elsewhere.pem", Name: "elsewhere", Hosts: []string{"elsewhere.example"}},
	}}); err != nil {
		c.t.Fatal(err)
	}
}

// settings returns the settings of a family.
func (c *certs) settings(f secure.Family, also ...string) secure.Settings {
	c.t.Helper()
	values := map[string]secure.Value{
		string(f) + "keyStore.location":   {Text: filepath.Join(c.dir, "server.pem")},
		string(f) + "trustStore.location": {Text: filepath.Join(c.dir, authority.CertFile)},
	}
	for _, kv := range also {
		k, v, _ := strings.Cut(kv, "=")
		values[string(f)+k] = secure.Value{Text: v}
	}
	s, err := secure.Parse(f, values)
	if err != nil {
		c.t.Fatal(err)
	}
	return s
}

// client returns the configuration of a client that shows a certificate; "" for none.
func (c *certs) client(file string) *tls.Config {
	c.t.Helper()
	roots := x509.NewCertPool()
	b, err := os.ReadFile(filepath.Join(c.dir, authority.CertFile))
	if err != nil || !roots.AppendCertsFromPEM(b) {
		c.t.Fatal("no authority", err)
	}
	conf := &tls.Config{RootCAs: roots, ServerName: "localhost"}
	if file != "" {
		file = filepath.Join(c.dir, file)
		pair, err := tls.LoadX509KeyPair(file, file)
		if err != nil {
			c.t.Fatal(err)
		}
		conf.Certificates = []tls.Certificate{pair}
	}
	return conf
}

// dialTLS opens a connection with TLS and a session. It returns nil if that fails.
func (r *running) dialTLS(at net.Addr, conf *tls.Config) *client {
	r.t.Helper()
	nc, err := tls.Dial("tcp", at.String(), conf)
	if err != nil {
		return nil
	}
	r.t.Cleanup(func() { nc.Close() })
	c := &client{t: r.t, nc: nc}
	c.write(wire.AppendFrame(nil, &wire.ConnectRequest{TimeoutMS: lastingMS, Password: make([]byte, 16), HasReadOnly: true}))
	nc.SetReadDeadline(time.Now().Add(eventTimeout))
	b, err := wire.ReadFrame(nc, nil, 1<<20)
	if err != nil || wire.Decode(b, &c.session) != nil || c.session.Session == 0 {
		return nil
	}
	return c
}

// TestClientsWithTLS shows which clients a port with TLS serves, what their certificates
// prove, and that the others are refused without harm.
func TestClientsWithTLS(t *testing.T) {
	k := newCerts(t)
	cfg := testConfig()
	cfg.TLS = config.TLS{Client: ensemble.HostPort{Host: "127.0.0.1"}, ClientUnified: true, Clients: k.settings(secure.Clients)}
	cfg.Access.X509Super = "CN=root"
	var log logBook
	r := start(t, Options{Config: cfg, Log: slog.New(slog.NewTextHandler(&log, nil))})

	secret := &wire.CreateRequest{Path: "/alices", Data: []byte("x"), ACL: []wire.ACL{{Perms: wire.PermAll, ID: wire.ID{Scheme: "x509", ID: "CN=alice"}}}}
	for _, at := range []net.Addr{r.SecureAddr(), r.Addr()} {
		c := r.dialTLS(at, k.client("client.pem"))
		if c == nil {
			t.Fatalf("a client with a certificate is refused at %v", at)
		}
		if h := c.call(wire.OpCreate, secret, nil); h.Err != wire.OK {
			t.Errorf("create with an ACL of the scheme x509: %v", h.Err)
		}
		var data wire.DataResponse
		if h := c.call(wire.OpGetData, &wire.PathWatchRequest{Path: "/alices"}, &data); h.Err != wire.OK || string(data.Data) != "x" {
			t.Errorf("alice reads %q: %v", data.Data, h.Err)
		}
		if h := r.connect().call(wire.OpGetData, &wire.PathWatchRequest{Path: "/alices"}, &data); h.Err != wire.ErrNoAuth {
			t.Errorf("a client without TLS reads alice's znode: %v", h.Err)
		}
		super := r.dialTLS(at, k.client("root.pem"))
		if h := super.call(wire.OpDelete, &wire.PathVersionRequest{Path: "/alices", Version: -1}, nil); h.Err != wire.OK {
			t.Errorf("the super user deletes: %v", h.Err)
		}
		if super := r.dialTLS(at, k.client("")); super != nil {
			t.Error("a client without a certificate is served")
		}
		if other := newCerts(t); r.dialTLS(at, &tls.Config{InsecureSkipVerify: true, Certificates: other.client("client.pem").Certificates}) != nil {
			t.Error("a client with a certificate of another authority is served")
		}
		if r.dialTLS(at, &tls.Config{InsecureSkipVerify: true, MaxVersion: tls.VersionTLS11, Certificates: k.client("client.pem").Certificates}) != nil {
			t.Error("TLS 1.1 is accepted")
		}
		if h := c.call(wire.OpGetData, &wire.PathWatchRequest{Path: "/"}, &data); h.Err != wire.OK {
			t.Errorf("the first client is disturbed: %v", h.Err)
		}
	}
	plain, err := net.Dial("tcp", r.SecureAddr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer plain.Close()
	c := &client{t: t, nc: plain}
	c.write(wire.AppendFrame(nil, &wire.ConnectRequest{TimeoutMS: lastingMS, Password: make([]byte, 16)}))
	plain.SetReadDeadline(time.Now().Add(eventTimeout))
	if b, err := wire.ReadFrame(plain, nil, 1<<20); err == nil {
		t.Errorf("a client without TLS gets an answer at the port for TLS: %x", b)
	}
	eventually(t, "the log names each reason", func() bool {
		text := log.String()
		return strings.Contains(text, "no certificate") && strings.Contains(text, "does not speak TLS")
	})
}

// TestWordsWithTLS shows that four-letter words are answered with TLS, on a port that requires TLS and on
// a port that accepts connections with and without it.
func TestWordsWithTLS(t *testing.T) {
	k := newCerts(t)
	cfg := testConfig()
	cfg.TLS = config.TLS{Client: ensemble.HostPort{Host: "127.0.0.1"}, ClientUnified: true, Clients: k.settings(secure.Clients)}
	r := start(t, Options{Config: cfg, FourLetterWords: func(*Server, FourLetterWord) (string, bool) { return "the answer\n", true }})
	for _, at := range []net.Addr{r.SecureAddr(), r.Addr()} {
		nc, err := tls.Dial("tcp", at.String(), k.client("client.pem"))
		if err != nil {
			t.Fatal(err)
		}
		defer nc.Close()
		nc.SetDeadline(time.Now().Add(eventTimeout))
		if _, err := io.WriteString(nc, "srvr"); err != nil {
			t.Fatal(err)
		}
		if b, err := io.ReadAll(nc); err != nil || string(b) != "the answer\n" {
			t.Errorf("%v answers %q: %v", at, b, err)
		}
	}
}

// TestRenewedCertificates shows that renewed files are used for new connections, that open
// connections stay, and that files that cannot be used change nothing.
func TestRenewedCertificates(t *testing.T) {
	k := newCerts(t)
	cfg := testConfig()
	cfg.TLS = config.TLS{Client: ensemble.HostPort{Host: "127.0.0.1"}, Clients: k.settings(secure.Clients)}
	r := start(t, Options{Config: cfg})
	serial := func(c *client) string {
		return c.nc.(*tls.Conn).ConnectionState().PeerCertificates[0].SerialNumber.String()
	}
	first := r.dialTLS(r.SecureAddr(), k.client("client.pem"))
	if err := os.Remove(filepath.Join(k.dir, "server.pem")); err != nil {
		t.Fatal(err)
	}
	r.Reload(r.config())
	if c := r.dialTLS(r.SecureAddr(), k.client("client.pem")); c == nil || serial(c) != serial(first) {
		t.Fatal("the loss of a file has an effect")
	}
	k.renew(2)
	r.Reload(r.config())
	second := r.dialTLS(r.SecureAddr(), k.client("client.pem"))
	if second == nil || serial(second) == serial(first) {
		t.Fatal("a renewed certificate is not used")
	}
	for _, c := range []*client{first, second} {
		if h := c.call(wire.OpGetData, &wire.PathWatchRequest{Path: "/"}, nil); h.Err != wire.OK {
			t.Errorf("after the renewal: %v", h.Err)
		}
	}
}

// TestHalfHandshakes shows that connections that do not finish their handshake end in time
// and keep nobody else from being served.
func TestHalfHandshakes(t *testing.T) {
	k := newCerts(t)
	cfg := testConfig()
	cfg.Limits.Sessionless = 500 * time.Millisecond
	cfg.TLS = config.TLS{Client: ensemble.HostPort{Host: "127.0.0.1"}, Clients: k.settings(secure.Clients)}
	r := start(t, Options{Config: cfg})
	var half []net.Conn
	for range 200 {
		nc, err := net.Dial("tcp", r.SecureAddr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer nc.Close()
		nc.Write([]byte{22, 3, 1})
		half = append(half, nc)
	}
	if r.dialTLS(r.SecureAddr(), k.client("client.pem")) == nil {
		t.Error("nobody is served beside half handshakes")
	}
	for _, nc := range half {
		nc.SetReadDeadline(time.Now().Add(eventTimeout))
		for {
			if _, err := nc.Read(make([]byte, 100)); err != nil {
				if os.IsTimeout(err) {
					t.Fatal("a half handshake is kept")
				}
				break
			}
		}
	}
}

// TestServersWithTLS shows that an ensemble forms over TLS, that a port without unification
// takes no connection without TLS, and that servers change from one to the other in the
// three steps that ZooKeeper documents, under writes, without losing one.
func TestServersWithTLS(t *testing.T) {
	k := newCerts(t)
	g := newTestEnsemble(t, 3, 0, false)
	phase := config.TLS{}
	g.change = func(c *config.Config) { c.TLS = phase }
	for _, m := range g.servers {
		g.start(m)
	}
	g.settled()
	servers := k.settings(secure.Servers, "handshakeDetectionTimeoutMillis=200")
	n := 0
	write := func() string {
		path := fmt.Sprint("/n", n)
		n++
		c := g.settled().connect()
		if h := c.call(wire.OpCreate, &wire.CreateRequest{Path: path, Data: []byte(path), ACL: wire.OpenACL()}, nil); h.Err != wire.OK {
			t.Fatalf("%s: %v", path, h.Err)
		}
		return path
	}
	var paths []string
	for _, next := range []config.TLS{
		{QuorumUnified: true, Servers: servers},               // accept both
		{Quorum: true, QuorumUnified: true, Servers: servers}, // dial with TLS
		{Quorum: true, Servers: servers},                      // refuse connections without TLS
	} {
		phase = next
		for _, m := range g.servers {
			paths = append(paths, write())
			g.stopped(m)
			paths = append(paths, write())
			g.start(m)
			g.settled()
		}
	}
	g.present(paths)
	// A fourth kind of connection: a stranger without TLS.
	for _, s := range g.members.Servers() {
		nc, err := net.Dial("tcp", s.Addresses[0].Election())
		if err != nil {
			t.Fatal(err)
		}
		defer nc.Close()
		nc.Write(make([]byte, 64))
		nc.SetReadDeadline(time.Now().Add(eventTimeout))
		// The answer may be an alert of TLS; then the connection ends.
		if _, err := io.Copy(io.Discard, nc); os.IsTimeout(err) {
			t.Error("a connection without TLS is kept")
		}
	}
}

// TestMembersProveWhoTheyAre shows that a certificate of the trusted authority is not enough
// to claim the id of a member: it must be the certificate of a server, and hold a name of
// that member's server line. A refused connection ends no term and raises no epoch.
func TestMembersProveWhoTheyAre(t *testing.T) {
	k := newCerts(t)
	g := newTestEnsemble(t, 3, 0, false)
	var log logBook
	g.book = &log
	g.change = func(c *config.Config) {
		c.TLS = config.TLS{Quorum: true, Servers: k.settings(secure.Servers, "clientHostnameVerification=false")}
	}
	for _, m := range g.servers {
		g.start(m)
	}
	leader := g.settled()
	epoch := leader.Tree().LastZxid().Epoch()
	claimed := g.follower().id
	self, _ := g.members.Server(leader.id)
	attack := func(file, address string, message []byte) {
		t.Helper()
		nc, err := tls.Dial("tcp", address, k.client(file))
		if err != nil {
			t.Fatal(err)
		}
		defer nc.Close()
		if _, err := nc.Write(message); err != nil {
			t.Fatal(err)
		}
		nc.SetReadDeadline(time.Now().Add(eventTimeout))
		for {
			if _, err := nc.Read(make([]byte, 100)); err != nil {
				if os.IsTimeout(err) {
					t.Errorf("%s keeps the connection", address)
				}
				return
			}
		}
	}
	vote := wire.Append(nil, &peerwire.InitialMessage{Version: peerwire.InitialMany, Server: claimed, Addresses: []string{"127.0.0.1:1"}})
	info := wire.Append(nil, &peerwire.QuorumPacket{Type: peerwire.PacketFollowerInfo, Zxid: wire.MakeZxid(epoch+100, 0),
		Data: wire.Append(nil, &peerwire.LearnerInfo{Server: claimed, Version: peerwire.QuorumVersion})})
	attack("elsewhere.pem", self.Addresses[0].Election(), vote)
	attack("elsewhere.pem", self.Addresses[0].Quorum(), info)
	eventually(t, "both refusals are logged", func() bool {
		return strings.Count(log.String(), fmt.Sprintf("it claims to be server.%d", claimed)) >= 2
	})
	attack("client.pem", self.Addresses[0].Election(), vote)
	attack("client.pem", self.Addresses[0].Quorum(), info)
	eventually(t, "the certificate of a client is refused", func() bool {
		return strings.Contains(log.String(), "its extended key usage does not allow this use")
	})
	eventually(t, "the refusals are counted", func() bool { return leader.figure("peer_connections_refused") >= 4 })
	if g.settled() != leader || leader.Tree().LastZxid().Epoch() != epoch {
		t.Errorf("server %d led epoch %d, now server %d leads epoch %d", leader.id, epoch, g.settled().id, g.settled().Tree().LastZxid().Epoch())
	}
}

// TestMembersShareAName shows that an ensemble whose members have one certificate, with a name that stands in no
// server line, needs ssl.quorum.sharedName.
func TestMembersShareAName(t *testing.T) {
	k := newCerts(t)
	g := newTestEnsemble(t, 3, 0, false)
	var log logBook
	g.book = &log
	also := []string{"sharedName=elsewhere.example"}
	g.change = func(c *config.Config) {
		c.TLS = config.TLS{Quorum: true, Servers: k.settings(secure.Servers, also...)}
		c.TLS.Servers.KeyStore.Location = filepath.Join(k.dir, "elsewhere.pem")
	}
	for _, m := range g.servers {
		g.start(m)
	}
	g.settled().connect().create("/a", "x")
	m := g.follower()
	g.kill(m)
	also = nil
	g.start(m)
	eventually(t, "without the key the shared certificate is refused", func() bool {
		return strings.Contains(log.String(), "its names (elsewhere.example) are not those of the other end (127.0.0.1")
	})
}

// TestFailedHandshakesDoNotFillTheLog shows that port scans cause no log lines at all, and
// that many failed handshakes with texts of the client's own cause one.
func TestFailedHandshakesDoNotFillTheLog(t *testing.T) {
	k := newCerts(t)
	cfg := testConfig()
	cfg.TLS = config.TLS{Client: ensemble.HostPort{Host: "127.0.0.1"}, Clients: k.settings(secure.Clients)}
	var log logBook
	r := start(t, Options{Config: cfg, Log: slog.New(slog.NewTextHandler(&log, nil))})
	for i := range 50 {
		nc, err := net.Dial("tcp", r.SecureAddr().String())
		if err != nil {
			t.Fatal(err)
		}
		if i%2 == 0 {
			nc.(*net.TCPConn).SetLinger(0) // the connection is reset
		}
		nc.Close()
	}
	eventually(t, "all scans are over", func() bool { return r.stats.handshakesFailed.Value() == 50 })
	if text := log.String(); strings.Contains(text, "a client was refused") {
		t.Errorf("a port scan is logged:\n%s", text)
	}
	for i := range 5 {
		dir := t.TempDir()
		a, err := authority.Create(dir, fmt.Sprint("authority ", i, strings.Repeat(".", 2000)), time.Now())
		if err != nil || a == nil {
			t.Fatal(err)
		}
		if _, err := authority.Init(authority.Plan{Dir: dir, Now: time.Now(), Subjects: []authority.Subject{{File: "client.pem", Name: "x"}}}); err != nil {
			t.Fatal(err)
		}
		stranger := &certs{t, dir}
		if r.dialTLS(r.SecureAddr(), &tls.Config{InsecureSkipVerify: true, Certificates: stranger.client("client.pem").Certificates}) != nil {
			t.Error("a stranger is served")
		}
	}
	eventually(t, "all strangers are refused", func() bool { return r.stats.handshakesFailed.Value() == 55 })
	text := log.String()
	if n := strings.Count(text, "a client was refused"); n != 1 {
		t.Errorf("%d lines", n)
	}
	for line := range strings.Lines(text) {
		if len(line) > 2*faultMax {
			t.Errorf("a line of %d bytes", len(line))
		}
	}
}

// TestTLSSessionsAreResumed shows that a client that connects again needs no full handshake,
// and keeps its identity.
func TestTLSSessionsAreResumed(t *testing.T) {
	k := newCerts(t)
	cfg := testConfig()
	cfg.TLS = config.TLS{Client: ensemble.HostPort{Host: "127.0.0.1"}, Clients: k.settings(secure.Clients)}
	r := start(t, Options{Config: cfg})
	conf := k.client("client.pem")
	conf.ClientSessionCache = tls.NewLRUClientSessionCache(8)
	for i := range 3 {
		c := r.dialTLS(r.SecureAddr(), conf)
		if c == nil {
			t.Fatal("refused")
		}
		if resumed := c.nc.(*tls.Conn).ConnectionState().DidResume; resumed != (i > 0) {
			t.Errorf("connection %d: resumed %v", i, resumed)
		}
		var who wire.WhoAmIResponse
		if h := c.call(wire.OpWhoAmI, nil, &who); h.Err != wire.OK || !slices.ContainsFunc(who.Clients, func(i wire.ClientInfo) bool { return i.Scheme == "x509" && i.User == "CN=alice" }) {
			t.Errorf("connection %d is %v: %v", i, who.Clients, h.Err)
		}
		c.nc.Close()
	}
}
