package server

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"bellwether/internal/config"
	"bellwether/internal/ensemble"
	"bellwether/internal/notice"
	"bellwether/internal/peer"
	"bellwether/internal/peerwire"
	"bellwether/internal/sasl"
	"bellwether/internal/sasl/jaas"
	"bellwether/internal/sasl/quorumauth"
	"bellwether/internal/secure"
	"bellwether/wire"
)

const peerPassword = "mypassword"

// digestLogins returns the settings of servers that log in with a password.
func digestLogins(password string) config.QuorumSASL {
	return config.QuorumSASL{
		Enable: true, LearnerRequires: true, ServerRequires: true, LearnerSection: "QuorumLearner", ServerSection: "QuorumServer",
		Learner: &jaas.Login{Digest: &jaas.Digest{Username: "test", Password: sasl.NewSecret(password)}},
		Server:  &jaas.Login{Digest: &jaas.Digest{Users: map[string]sasl.Secret{"test": sasl.NewSecret(password)}}},
	}
}

// peerLogin begins the exchange of a server with a password.
func peerLogin(password string) sasl.Exchange {
	return sasl.NewDigestClient(sasl.DigestLogin{Service: sasl.QuorumService, User: "test", Password: sasl.NewSecret(password), AuthorizationID: "test"})
}

// TestServersLogIn shows that an ensemble changes to logins by SASL in the three steps that
// ZooKeeper documents, under writes and without losing one, also if TLS is on. After the last
// step, connections without a login are refused.
func TestServersLogIn(t *testing.T) {
	for _, withTLS := range []bool{false, true} {
		t.Run(fmt.Sprint("TLS ", withTLS), func(t *testing.T) {
			g := newTestEnsemble(t, 3, 1, false)
			phase, links := config.QuorumSASL{}, config.TLS{}
			if withTLS {
				links = config.TLS{Quorum: true, Servers: newCerts(t).settings(secure.Servers)}
			}
			g.change = func(c *config.Config) {
				c.SASL.Quorum, c.TLS, c.Ensemble.ElectionRead = phase, links, 2*time.Second
			}
			for _, m := range g.servers {
				g.start(m)
			}
			g.settled()
			n := 0
			write := func() string {
				path := fmt.Sprint("/n", n)
				n++
				g.settled().connect().create(path, path)
				return path
			}
			var paths []string
			one, two, three := digestLogins(peerPassword), digestLogins(peerPassword), digestLogins(peerPassword)
			one.LearnerRequires, one.ServerRequires, two.ServerRequires = false, false, false
			for _, next := range []config.QuorumSASL{one, two, three} {
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
			if withTLS {
				return // a stranger does not come as far as the login
			}
			for _, s := range g.members.Servers() {
				refused(t, s.Addresses[0].Election(), append(hello(s.ID%3+1), make([]byte, 8)...))
			}
			self, _ := g.members.Server(g.settled().id)
			refused(t, self.Addresses[0].Quorum(), followerInfo(1, self.ID%3+1))
		})
	}
}

// hello returns the initial message of a server.
func hello(id ensemble.ServerID) []byte {
	return wire.Append(nil, &peerwire.InitialMessage{Version: peerwire.InitialOne, Server: id, Addresses: []string{"127.0.0.1:1"}})
}

// followerInfo returns the first packet of a learner that has accepted an epoch.
func followerInfo(epoch wire.Epoch, id ensemble.ServerID) []byte {
	return wire.Append(nil, &peerwire.QuorumPacket{Type: peerwire.PacketFollowerInfo, Zxid: wire.MakeZxid(epoch, 0),
		Data: wire.Append(nil, &peerwire.LearnerInfo{Server: id, Version: peerwire.QuorumVersion})})
}

// refused sends bytes to a server and fails the test if the server keeps the connection.
func refused(t *testing.T, address string, message []byte) {
	t.Helper()
	nc, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	if _, err := nc.Write(message); err != nil {
		t.Fatal(err)
	}
	ended(t, nc, address)
}

// ended fails the test if the other end does not end a connection.
func ended(t *testing.T, nc net.Conn, what string) {
	t.Helper()
	nc.SetReadDeadline(time.Now().Add(eventTimeout))
	if _, err := io.Copy(io.Discard, nc); errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("%s keeps the connection", what)
	}
}

// TestStrangersDoNotLogIn shows that a member with another password, strangers, and packets that are
// cut off, repeated, too long or not sent at all end no term, raise no epoch and do not delay
// the others. The log names each reason once.
func TestStrangersDoNotLogIn(t *testing.T) {
	g := newTestEnsemble(t, 3, 0, false)
	var log logBook
	g.book = &log
	password := peerPassword
	g.change = func(c *config.Config) {
		c.SASL.Quorum = digestLogins(password)
		c.Ensemble.ElectionRead = 2 * time.Second
	}
	for _, m := range g.servers[:2] {
		g.start(m)
	}
	leader := g.settled()
	leader.connect().create("/before", "x")
	epoch := leader.Tree().LastZxid().Epoch()
	terms := len(leader.Elections())
	password = "another"
	g.start(g.servers[2])
	eventually(t, "the member with the other password is refused", func() bool { return strings.Count(log.String(), "refuses the login") >= 1 })

	self, _ := g.members.Server(leader.id)
	election, quorum := self.Addresses[0].Election(), self.Addresses[0].Quorum()
	victim := g.servers[1-int(leader.id-1)].id
	t.Run("bad logins", func(t *testing.T) {
		for name, prefix := range map[string][]byte{election: hello(victim), quorum: nil} {
			for what, attack := range badLogins(name, prefix) {
				t.Run(what, func(t *testing.T) {
					t.Parallel()
					attack(t)
				})
			}
		}
	})
	refused(t, quorum, followerInfo(epoch+100, victim))
	var silent []net.Conn
	for range 300 { // more than may be open at a time
		nc, err := net.Dial("tcp", election)
		if err != nil {
			t.Fatal(err)
		}
		defer nc.Close()
		nc.Write(hello(victim))
		silent = append(silent, nc)
	}
	leader.connect().create("/beside", "x")
	for _, nc := range silent {
		ended(t, nc, "a login that does not begin")
	}
	if now := leader.Tree().LastZxid().Epoch(); g.leader() != leader || now != epoch || len(leader.Elections()) != terms {
		t.Errorf("epoch %d, then %d; %d elections, then %d", epoch, now, terms, len(leader.Elections()))
	}
	if g.servers[2].serves(peerwire.Following) {
		t.Error("a member with another password follows")
	}
	for _, reason := range []string{"wrong password", "does not authenticate itself"} {
		if n := strings.Count(log.String(), reason); n == 0 || n > 20 {
			t.Errorf("%d lines say %q", n, reason)
		}
	}
}

// badLogins returns attacks on a port. Each sends prefix first, which is what a server sends there
// before its login.
func badLogins(address string, prefix []byte) map[string]func(t *testing.T) {
	packet := func(token []byte) []byte {
		return wire.Append(nil, &peerwire.QuorumAuthPacket{Status: peerwire.QuorumAuthInProgress, Token: token})
	}
	first := packet([]byte{})
	send := func(message []byte) func(t *testing.T) {
		return func(t *testing.T) { refused(t, address, append(bytes.Clone(prefix), message...)) }
	}
	long := bytes.Clone(first)
	binary.BigEndian.PutUint32(long[len(long)-4:], 1<<30)
	return map[string]func(t *testing.T){
		"no login":         send(wire.Append(nil, &peerwire.QuorumPacket{Type: peerwire.PacketPing})),
		"too long":         send(long),
		"long token":       send(append(bytes.Clone(first), packet(bytes.Repeat([]byte("x"), sasl.ResponseMax+1))...)),
		"cut off":          send(first[:len(first)-2]),
		"garbage":          send(append(bytes.Clone(first), packet([]byte("nonsense"))...)),
		"wrong password":   func(t *testing.T) { badLogin(t, address, prefix, peerLogin("another")) },
		"replayed":         func(t *testing.T) { badLogin(t, address, prefix, &repeatedAnswer{token: recordedLogin(t)}) },
		"nothing is sent":  send(nil),
		"only a beginning": send(first[:8]),
	}
}

// badLogin tries to log in and fails the test if that succeeds.
func badLogin(t *testing.T, address string, prefix []byte, x sasl.Exchange) {
	t.Helper()
	nc, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	nc.SetDeadline(time.Now().Add(eventTimeout))
	nc.Write(prefix)
	if err := quorumauth.Dial(bufio.NewReader(nc), nc, x); !errors.Is(err, quorumauth.ErrRefused) {
		t.Errorf("%s: %v", address, err)
	}
	ended(t, nc, address)
}

// repeatedAnswer is an exchange that repeats the answer of another one.
type repeatedAnswer struct {
	token []byte
	step  int
}

func (*repeatedAnswer) Mechanism() string { return "DIGEST-MD5" }

func (r *repeatedAnswer) Step([]byte) ([]byte, bool, error) {
	if r.step++; r.step == 1 {
		return []byte{}, false, nil
	}
	return r.token, false, nil
}

// recordedLogin returns the answer with which a server has logged in once.
func recordedLogin(t *testing.T) []byte {
	t.Helper()
	users := sasl.NewDigestUsers(sasl.QuorumService, map[string]sasl.Secret{"test": sasl.NewSecret(peerPassword)})
	client, server := peerLogin(peerPassword), sasl.NewDigestServer(users, sasl.AuthorizePeer(nil), "")
	client.Step(nil)
	challenge, _, err := server.Step(nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, _, err := client.Step(challenge)
	if err != nil {
		t.Fatal(err)
	}
	return answer
}

// TestZookeeper4886ObserverWithSmallIDLogsIn shows that a server logs in also where it dials back, so
// that an observer whose id is smaller than those of the voters joins them (ZOOKEEPER-4886).
func TestZookeeper4886ObserverWithSmallIDLogsIn(t *testing.T) {
	g := newTestEnsemble(t, 4, 0, false)
	text := strings.Replace(g.members.String(), ":participant", ":observer", 1)
	text, _, _ = strings.Cut(text, "version=")
	var err error
	if g.members, err = ensemble.Parse(text); err != nil {
		t.Fatal(err)
	}
	g.change = func(c *config.Config) { c.SASL.Quorum = digestLogins(peerPassword) }
	for _, m := range g.servers {
		g.start(m)
	}
	g.settled()
	if !g.servers[0].serves(peerwire.Observing) {
		t.Error("server 1 is no observer")
	}
	g.servers[0].connect().create("/n", "x")
}

// TestFailedLoginIsRefusedEvenIfNoneIsRequired shows that a server that requires no login refuses
// a failed one, where ZooKeeper accepts everybody, and accepts a connection that begins with
// something else or with nothing.
func TestFailedLoginIsRefusedEvenIfNoneIsRequired(t *testing.T) {
	cfg := testConfig()
	cfg.SASL.Quorum = digestLogins(peerPassword)
	cfg.SASL.Quorum.ServerRequires = false
	cfg.Ensemble.ElectionRead = eventTimeout
	notices := notice.New(testLog(t))
	t.Cleanup(notices.Close)
	a := &peerAuth{c: cfg, log: testLog(t), notices: notices}
	if err := a.openServer(cfg.SASL.Quorum.Server); err != nil {
		t.Fatal(err)
	}
	admit := a.inside(peer.Secure{}).Server
	try := func(dial func(c net.Conn)) (net.Conn, error) {
		near, far := net.Pipe()
		t.Cleanup(func() { near.Close(); far.Close() })
		go dial(far)
		return admit(near, peer.ForLearner, peerwire.NoServer, "127.0.0.1:1")
	}
	login := func(password string) func(c net.Conn) {
		return func(c net.Conn) {
			if quorumauth.Dial(bufio.NewReader(c), c, peerLogin(password)) == nil {
				c.Write([]byte("hello there"))
			}
		}
	}
	if _, err := try(login("another")); err == nil {
		t.Error("a wrong password is accepted")
	}
	for name, dial := range map[string]func(c net.Conn){
		"a login": login(peerPassword), "no login": func(c net.Conn) { c.Write([]byte("hello there")) },
	} {
		c, err := try(dial)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		b := make([]byte, 11)
		if _, err := io.ReadFull(c, b); err != nil || string(b) != "hello there" {
			t.Errorf("%s: %q, %v", name, b, err)
		}
	}
	if c, err := try(func(net.Conn) {}); c == nil || err != nil {
		t.Errorf("a server that says nothing: %v", err)
	}
	if c, err := try(func(c net.Conn) { c.Close() }); c == nil || err != nil {
		t.Errorf("a server that has said all: %v", err)
	}
}
