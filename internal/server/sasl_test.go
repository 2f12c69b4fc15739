package server

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"bellwether/internal/config"
	"bellwether/internal/ensemble"
	"bellwether/internal/sasl"
	"bellwether/internal/sasl/jaas"
	"bellwether/internal/secure"
	"bellwether/wire"
)

// loginSection is a JAAS file with which alice, bob and super log in.
const loginSection = `Server {
  org.apache.zookeeper.server.auth.DigestLoginModule required user_alice="alice's" user_bob="bob's" user_super="super's";
};`

// useLogins makes clients log in by a JAAS file of this text.
func useLogins(t testing.TB, c *config.Config, text string) {
	t.Helper()
	f, err := jaas.Parse("jaas.conf", []byte(text), nil)
	if err != nil {
		t.Fatal(err)
	}
	c.SASL.JAAS, c.SASL.File, c.Access.SASLScheme = f, "jaas.conf", true
}

// loginOptions returns the options of a server to which clients log in.
func loginOptions(t testing.TB) Options {
	c := testConfig()
	useLogins(t, c, loginSection)
	return Options{Config: c}
}

// token sends a token and returns the whole answer.
func (c *client) token(token []byte) (wire.ReplyHeader, *wire.SASLResponse) {
	c.t.Helper()
	c.send(wire.OpSASL, &wire.SASLRequest{Token: token})
	in := wire.Decoder(c.frame())
	var h wire.ReplyHeader
	h.Code(&in)
	r := &wire.SASLResponse{Token: []byte("none was read")}
	r.Code(&in)
	if in.Err() != nil || in.Left() != 0 {
		c.t.Fatalf("%+v: %v, %d bytes are left", h, in.Err(), in.Left())
	}
	return h, r
}

// challenge begins a login and returns the client's exchange, and the client's answer to the
// challenge of the server.
func (c *client) challenge(user, password string) (*sasl.DigestClient, []byte) {
	c.t.Helper()
	x := sasl.NewDigestClient(sasl.DigestLogin{Service: sasl.ClientService, User: user, Password: sasl.NewSecret(password), AuthorizationID: user})
	first, _, _ := x.Step(nil)
	h, r := c.token(first)
	if h.Err != wire.OK {
		c.t.Fatal(h.Err)
	}
	answer, _, err := x.Step(r.Token)
	if err != nil {
		c.t.Fatal(err)
	}
	return x, answer
}

// logIn logs in with the right password.
func (c *client) logIn(user string) {
	c.t.Helper()
	x, answer := c.challenge(user, user+"'s")
	h, r := c.token(answer)
	if h.Err != wire.OK || h.Zxid != 0 {
		c.t.Fatalf("%s: %+v", user, h)
	}
	if _, done, err := x.Step(r.Token); !done || err != nil {
		c.t.Fatalf("%s: the proof of the server: %v", user, err)
	}
}

// createOwn returns a request for a znode with one ACL entry.
func createOwn(path, scheme, id string) *wire.CreateRequest {
	return &wire.CreateRequest{Path: path, Data: []byte("x"), ACL: []wire.ACL{{Perms: wire.PermAll, ID: wire.ID{Scheme: scheme, ID: id}}}}
}

// reads returns the result of reading a znode.
func (c *client) reads(path string) wire.Code {
	c.t.Helper()
	return c.call(wire.OpGetData, &wire.PathWatchRequest{Path: path}, &wire.DataResponse{}).Err
}

// TestLoginGivesAccess shows what a login by SASL gives access to, on the connection that logged
// in and on no other one, also if it has the same session.
func TestLoginGivesAccess(t *testing.T) {
	o := loginOptions(t)
	o.Config.Access.SASLSupers = []string{"alice", "nobody"}
	o.Config.Access.LetAnySASLUser = "everyone"
	s := start(t, o)
	bob := s.connect()
	bob.logIn("bob")
	for _, q := range []*wire.CreateRequest{createOwn("/bobs", "sasl", "bob"), createOwn("/auth", "auth", ""), createOwn("/all", "sasl", "everyone"), createOwn("/others", "sasl", "carl@REALM")} {
		bob.must(wire.OpCreate, q, &wire.PathResponse{})
	}
	if h := bob.call(wire.OpCreate, createOwn("/bad", "sasl", "a/b/c@D"), nil); h.Err != wire.ErrInvalidACL {
		t.Errorf("an id that is not a principal: %v", h.Err)
	}
	alice, super, none := s.connect(), s.connect(), s.connect()
	alice.logIn("alice")
	super.logIn("super")
	for _, x := range []struct {
		who    string
		c      *client
		denied []string
	}{
		{"bob", bob, []string{"/others"}},
		{"alice, who is a super user", alice, nil},
		{"the user super", super, nil},
		{"nobody", none, []string{"/bobs", "/auth", "/all", "/others"}},
	} {
		for _, path := range []string{"/bobs", "/auth", "/all", "/others"} {
			want := wire.OK
			if slices.Contains(x.denied, path) {
				want = wire.ErrNoAuth
			}
			if got := x.c.reads(path); got != want {
				t.Errorf("%s reads %s: %v, want %v", x.who, path, got, want)
			}
		}
	}
	var who wire.WhoAmIResponse
	if alice.must(wire.OpWhoAmI, nil, &who); fmt.Sprint(who.Clients) != "[{ip 127.0.0.1} {sasl alice} {super }]" {
		t.Errorf("whoAmI: %v", who.Clients)
	}
	var acl wire.ACLResponse
	if bob.must(wire.OpGetACL, &wire.PathRequest{Path: "/auth"}, &acl); fmt.Sprint(acl.ACL) != "[{31 {sasl bob}}]" {
		t.Errorf("auth became %v", acl.ACL)
	}
	again := s.dial()
	again.handshake(wire.ConnectRequest{TimeoutMS: lastingMS, Session: bob.session.Session, Password: bob.session.Password, HasReadOnly: true})
	if got := again.reads("/bobs"); again.session.Session != bob.session.Session || got != wire.ErrNoAuth {
		t.Errorf("bob's session on a connection without a login: %v", got)
	}
}

// TestRefusedLogins shows what answers tokens that prove nothing, that the connection is closed,
// that the log names the user and what to do but no password, and that other clients are not
// disturbed.
func TestRefusedLogins(t *testing.T) {
	var log logBook
	o := loginOptions(t)
	o.Log = slog.New(slog.NewTextHandler(&log, nil))
	o.Config.Limits.LoginDelay = 0
	s := start(t, o)
	other := s.connect()
	_, old := s.connect().challenge("bob", "bob's")
	for name, send := range map[string]func(c *client) []byte{
		"wrong password":         func(c *client) []byte { _, a := c.challenge("bob", "guessed"); return a },
		"unknown user":           func(c *client) []byte { _, a := c.challenge("carl", "bob's"); return a },
		"answer of another time": func(c *client) []byte { c.challenge("bob", "bob's"); return old },
		"truncated":              func(c *client) []byte { _, a := c.challenge("bob", "bob's"); return a[:len(a)/2] },
		"empty":                  func(c *client) []byte { c.challenge("bob", "bob's"); return []byte{} },
		"too long": func(c *client) []byte {
			c.challenge("bob", "bob's")
			return bytes.Repeat([]byte("x"), sasl.ResponseMax+1)
		},
		"another realm": func(c *client) []byte {
			_, a := c.challenge("bob", "bob's")
			return bytes.Replace(a, []byte(`realm="zk-sasl-md5"`), []byte(`realm="EXAMPLE.COM"`), 1)
		},
		"of GSSAPI": func(c *client) []byte {
			c.challenge("bob", "bob's")
			return []byte("\x60\x82\x02\x60\x06\x09\x2a\x86\x48\x86\xf7\x12\x01\x02\x02\x01\x00")
		},
		"after the end": func(c *client) []byte { c.logIn("bob"); return []byte{} },
	} {
		t.Run(name, func(t *testing.T) {
			c := s.connect()
			c.t = t
			h, r := c.token(send(c))
			if h != (wire.ReplyHeader{Xid: c.xid, Err: wire.ErrAuthFailed}) || r.Token != nil {
				t.Errorf("%+v %q", h, r.Token)
			}
			c.closed()
			other.must(wire.OpPing, nil, nil)
		})
	}
	text := log.String()
	if n := strings.Count(text, "a client failed to log in by SASL: "); n != 1 {
		t.Errorf("%d lines", n)
	}
	if !strings.Contains(text, "compare the client's user and password with the options user_NAME in section Server of jaas.conf") ||
		!strings.Contains(text, "addr=127.0.0.1:") || strings.Contains(text, "guessed") || strings.Contains(text, "bob's") {
		t.Error(text)
	}
	if n := s.stats.loginFailures.Value(); n != 9 {
		t.Errorf("%d failed logins are counted", n)
	}
}

// TestRequiredLogin shows that requests of clients without an id of a required scheme are
// answered with -124 and end their connection, and that clients with one are served.
func TestRequiredLogin(t *testing.T) {
	for name, require := range map[string]func(a *config.Access){
		"sessionRequireClientSASLAuth": func(a *config.Access) { a.RequireSASL, a.AllowSASLFailed = true, true },
		"enforce.auth":                 func(a *config.Access) { a.EnforceAuth, a.AuthSchemes = true, []string{"x509", "sasl"} },
	} {
		t.Run(name, func(t *testing.T) {
			o := loginOptions(t)
			require(&o.Config.Access)
			s := start(t, o)
			for _, q := range []struct {
				op   wire.OpCode
				body wire.Record
			}{{wire.OpPing, nil}, {wire.OpCloseSession, nil}, {wire.OpGetData, &wire.PathWatchRequest{Path: "/"}}, {wire.OpCreate, create("/a", "")}, {wire.OpWhoAmI, nil}, {9999, nil}} {
				c := s.connect()
				c.must(wire.OpAuth, auth(wire.Text("digest"), []byte("bob:pw")), nil)
				c.write(slices.Concat(request(33, q.op, q.body), request(34, wire.OpPing, nil)))
				if f := c.frame(); !bytes.Equal(f, wire.Append(nil, &wire.ReplyHeader{Xid: 33, Err: wire.ErrSessionClosedRequireAuth})) {
					t.Errorf("%v: %x", q.op, f)
				}
				c.closed()
			}
			if n := s.figure("login_required_count"); n != 6 {
				t.Errorf("%v requests are counted as refused, want 6", n)
			}
			c := s.connect()
			_, answer := c.challenge("bob", "guessed")
			if h, r := c.token(answer); h != (wire.ReplyHeader{Xid: c.xid, Err: wire.ErrSessionClosedRequireAuth}) || r.Token != nil {
				t.Errorf("a failed login: %+v", h)
			}
			c.closed()
			c = s.connect()
			c.logIn("bob")
			c.create("/a", "")
		})
	}
}

// TestRequiredSchemes shows that a login by another required scheme than sasl is enough, and
// that every client has an id of the scheme ip.
func TestRequiredSchemes(t *testing.T) {
	o := loginOptions(t)
	o.Config.Access.EnforceAuth, o.Config.Access.AuthSchemes = true, []string{"digest"}
	s := start(t, o)
	c := s.connect()
	c.must(wire.OpAuth, auth(wire.Text("digest"), []byte("bob:pw")), nil)
	c.create("/a", "")
	c = s.connect()
	_, answer := c.challenge("bob", "guessed")
	if h, _ := c.token(answer); h.Err != wire.ErrAuthFailed {
		t.Errorf("a failed login where sasl is not required: %+v", h)
	}
	c.closed()
	c = s.connect()
	c.logIn("bob")
	if h := c.call(wire.OpPing, nil, nil); h.Err != wire.ErrSessionClosedRequireAuth {
		t.Errorf("a login by sasl where digest is required: %+v", h)
	}
	c.closed()
	o = Options{Config: testConfig()}
	o.Config.Access.EnforceAuth, o.Config.Access.AuthSchemes = true, []string{"ip"}
	start(t, o).connect().create("/a", "")
}

// TestFailedLoginsMayStay shows that with allowSaslFailedClients a client goes on without an id,
// and cannot try another password on the same connection.
func TestFailedLoginsMayStay(t *testing.T) {
	o := loginOptions(t)
	o.Config.Access.AllowSASLFailed = true
	c := start(t, o).connect()
	_, answer := c.challenge("bob", "guessed")
	for range 3 {
		if h, r := c.token(answer); h != (wire.ReplyHeader{Xid: c.xid}) || r.Token != nil {
			t.Errorf("%+v %q", h, r.Token)
		}
		answer = []byte{}
	}
	var who wire.WhoAmIResponse
	if c.must(wire.OpWhoAmI, nil, &who); len(who.Clients) != 1 {
		t.Errorf("%v", who.Clients)
	}
}

// TestSASLWithoutTheScheme shows that without the provider a login succeeds, and gives access to
// nothing, as in ZooKeeper.
func TestSASLWithoutTheScheme(t *testing.T) {
	o := loginOptions(t)
	o.Config.Access.SASLScheme = false
	c := start(t, o).connect()
	c.logIn("bob")
	for _, q := range []*wire.CreateRequest{createOwn("/a", "sasl", "bob"), createOwn("/a", "auth", "")} {
		if h := c.call(wire.OpCreate, q, nil); h.Err != wire.ErrInvalidACL {
			t.Errorf("%+v: %v", q.ACL, h.Err)
		}
	}
}

// TestLoginsOverTLS shows that clients log in on both ports for TLS, and that the ids of the
// certificate and of the login add up.
func TestLoginsOverTLS(t *testing.T) {
	k := newCerts(t)
	o := loginOptions(t)
	o.Config.TLS = config.TLS{Client: ensemble.HostPort{Host: "127.0.0.1"}, ClientUnified: true, Clients: k.settings(secure.Clients)}
	o.Config.Access.RequireSASL = true
	s := start(t, o)
	for _, c := range []*client{s.dialTLS(s.SecureAddr(), k.client("client.pem")), s.dialTLS(s.Addr(), k.client("client.pem"))} {
		if c == nil {
			t.Fatal("the client is not served")
		}
		c.logIn("bob")
		var who wire.WhoAmIResponse
		if c.must(wire.OpWhoAmI, nil, &who); fmt.Sprint(who.Clients) != "[{ip 127.0.0.1} {x509 CN=alice} {sasl bob}]" {
			t.Errorf("%v", who.Clients)
		}
	}
	plain := s.connect()
	plain.logIn("bob")
	plain.must(wire.OpPing, nil, nil)
}

// TestAuditNamesTheLogin shows that the audit log names the user of a login.
func TestAuditNamesTheLogin(t *testing.T) {
	cfg := auditConfig(t)
	useLogins(t, cfg, loginSection)
	cfg.Access.SASLSupers = []string{"bob"}
	s := start(t, Options{Config: cfg})
	c := s.connect()
	c.logIn("bob")
	c.create("/a", "")
	if err := s.end(); err != nil {
		t.Fatal(err)
	}
	for _, r := range records(t, cfg.Audit.File) {
		if r["operation"] == "create" && r["user"] == "bob,127.0.0.1" {
			return
		}
	}
	t.Errorf("%v", records(t, cfg.Audit.File))
}

// TestSuperPassword shows that the password of the user super can be given apart from the JAAS file.
func TestSuperPassword(t *testing.T) {
	o := loginOptions(t)
	o.Config.SASL.SuperPassword = "another"
	s := start(t, o)
	c := s.connect()
	_, answer := c.challenge("super", "another")
	if h, _ := c.token(answer); h.Err != wire.OK {
		t.Errorf("%+v", h)
	}
	c = s.connect()
	_, answer = c.challenge("super", "super's")
	if h, _ := c.token(answer); h.Err != wire.ErrAuthFailed {
		t.Errorf("with the password of the file: %+v", h)
	}
}

// TestLoginsInAnEnsemble shows that the login at a follower counts for the writes that the leader
// checks, and not for another connection.
func TestLoginsInAnEnsemble(t *testing.T) {
	g := newTestEnsemble(t, 3, 0, false)
	g.change = func(c *config.Config) { useLogins(t, c, loginSection) }
	for _, m := range g.servers {
		g.start(m)
	}
	leader := g.settled()
	bob := g.follower().connect()
	bob.logIn("bob")
	bob.must(wire.OpCreate, createOwn("/bobs", "auth", ""), &wire.PathResponse{})
	q := &wire.SetDataRequest{Path: "/bobs", Data: []byte("y"), Version: -1}
	bob.must(wire.OpSetData, q, nil)
	moved := leader.dial()
	moved.handshake(wire.ConnectRequest{TimeoutMS: lastingMS, Session: bob.session.Session, Password: bob.session.Password, HasReadOnly: true})
	if h := moved.call(wire.OpSetData, q, nil); h.Err != wire.ErrNoAuth {
		t.Errorf("the session at another server: %+v", h)
	}
	moved.logIn("bob")
	moved.must(wire.OpSetData, q, nil)
}

// TestLoginsThatCannotBeOpened shows that the start names the section and what is wrong with it.
func TestLoginsThatCannotBeOpened(t *testing.T) {
	dir := t.TempDir()
	bad := filepath.Join(dir, "bad.keytab")
	if err := os.WriteFile(bad, []byte("\x05\x02\x00\x00\x00\x30 cut"), 0o600); err != nil {
		t.Fatal(err)
	}
	kerberos := func(options string) string {
		return "Server { " + jaas.KerberosModule + " required " + options + "; };"
	}
	for _, x := range []struct{ text, want string }{
		{`Server { ` + jaas.DigestModule + ` required username="bob" password="hush"; };`, "it has no users: add options user_NAME"},
		{`Server { org.example.Other required; };`, "the login module org.example.Other is not supported"},
		{kerberos(`useTicketCache=true`), "set useKeyTab=true and keyTab"},
		{kerberos(`useKeyTab=true principal="zookeeper/host@REALM"`), "set useKeyTab=true and keyTab"},
		{kerberos(`useKeyTab=true keyTab="` + bad + `" principal="zookeeper/host@REALM"`), "set storeKey=true"},
		{kerberos(`useKeyTab=true storeKey=true keyTab="` + dir + `/none" principal="zookeeper/host@REALM"`), dir + "/none: no such file"},
		{kerberos(`useKeyTab=true storeKey=true keyTab="` + bad + `" principal="zookeeper/host@REALM"`), "keytab " + bad},
		{kerberos(`useKeyTab=true storeKey=true keyTab="` + bad + `" principal="zookeeper@REALM"`), "expected service/host@REALM"},
		{kerberos(`useKeyTab=true storeKey=true keyTab="` + bad + `" principal="zookeeper/host"`), "the principal zookeeper/host has no realm: "},
	} {
		o := Options{Config: testConfig()}
		useLogins(t, o.Config, x.text)
		o.Config.SASL.Krb5Conf = filepath.Join(dir, "krb5.conf")
		_, err := New(o)
		if err == nil || !strings.HasPrefix(err.Error(), "section Server of the JAAS file jaas.conf, with which clients log in: ") || !strings.Contains(err.Error(), x.want) || strings.Contains(err.Error(), "hush") {
			t.Errorf("%s: %v", x.text, err)
		}
	}
	o := Options{Config: testConfig()}
	o.Config.SASL.RequireKerberos, o.Config.SASL.Krb5Conf = true, filepath.Join(dir, "krb5.conf")
	if _, err := New(o); err == nil || !strings.Contains(err.Error(), "requireKerberosConfig=true: ") || !strings.Contains(err.Error(), "krb5.conf") {
		t.Error(err)
	}
}
