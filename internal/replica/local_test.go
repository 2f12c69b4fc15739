package replica

import (
	"testing"

	"bellwether/internal/zab"
	"bellwether/wire"
)

// withLocalSessions starts three servers with local sessions. The leader comes first.
func withLocalSessions(t *testing.T, upgrade bool) (*cluster, []*server) {
	h, s := leaderFirst(t, true)
	for _, s := range h.servers {
		s.r.member.opt.LocalSessions, s.r.member.opt.UpgradeLocal = true, upgrade
	}
	return h, s
}

func (h *cluster) ephemeral(s *server, c *client, conn ConnID, path string) Output {
	return h.do(s, c, conn, wire.OpCreate, &wire.CreateRequest{Path: path, ACL: wire.OpenACL(), Flags: wire.FlagEphemeral})
}

func (h *cluster) persistent(s *server, c *client, conn ConnID, path string) Output {
	return h.do(s, c, conn, wire.OpCreate, &wire.CreateRequest{Path: path, ACL: wire.OpenACL()})
}

// known returns the number of servers whose tree has a session.
func (h *cluster) known(id wire.SessionID) (n int) {
	for _, s := range h.servers {
		if _, ok := s.r.tree.Session(id); ok && s.up {
			n++
		}
	}
	return n
}

// onLeaderAndFollower runs a test body with a local session of the leader and with one of
// a follower.
func onLeaderAndFollower(t *testing.T, upgrade bool, body func(h *cluster, s []*server, at *server)) {
	for i, name := range []string{"leader", "follower"} {
		t.Run(name, func(t *testing.T) {
			h, s := withLocalSessions(t, upgrade)
			h.t = t
			body(h, s, s[i])
		})
	}
}

// TestLocalSession: a local session needs no transaction, can write, is unknown to other
// servers, can be resumed at its own server, and ends without a transaction.
func TestLocalSession(t *testing.T) {
	onLeaderAndFollower(t, true, func(h *cluster, s []*server, at *server) {
		before := at.r.Applied()
		c, conn := h.connect(at, 0)
		if c.session == 0 || h.known(c.session) != 0 || at.r.Applied() != before || at.r.Locals() != 1 {
			h.t.Fatalf("session %v, known to %d trees, zxid %v after %v", c.session, h.known(c.session), at.r.Applied(), before)
		}
		if o := h.persistent(at, c, conn, "/a"); o.Header.Err != wire.OK || !h.exists("/a") {
			h.t.Fatalf("create: %v", o.Header.Err)
		}
		if o := h.do(at, c, conn, wire.OpPing, nil); o.Header.Xid != wire.XidPing {
			h.t.Errorf("ping: %+v", o.Header)
		}
		for _, other := range h.servers {
			if r, _ := h.connect(other, c.session); other != at && (r.session != 0 || !r.closed) {
				h.t.Errorf("resumed at another server: %v", r.session)
			}
		}
		again, conn := h.connect(at, c.session)
		if again.session != c.session || !c.closed {
			h.t.Fatalf("not resumed at its own server: %v; the older connection is closed: %v", again.session, c.closed)
		}
		before = at.r.Applied()
		if o := h.do(at, again, conn, wire.OpCloseSession, nil); o.Header.Err != wire.OK || !again.closed {
			h.t.Errorf("close: %v, closed: %v", o.Header.Err, again.closed)
		}
		if at.r.Applied() != before || at.r.Locals() != 0 {
			h.t.Errorf("the end is a transaction, or %d are left", at.r.Locals())
		}
		if r, _ := h.connect(at, c.session); r.session != 0 {
			h.t.Error("resumed after its end")
		}
	})
}

// TestLocalSessionExpires: a local session that is not heard from expires at its own
// server.
func TestLocalSessionExpires(t *testing.T) {
	onLeaderAndFollower(t, true, func(h *cluster, s []*server, at *server) {
		c, conn := h.connect(at, 0)
		for range 3 {
			h.run(4000)
			if c.closed {
				h.t.Fatal("ended although its pings are answered")
			}
			at.inbox = append(at.inbox, &Request{Conn: conn, Xid: wire.XidPing, Op: wire.OpPing})
		}
		before := at.r.Applied()
		h.run(9000)
		if !c.closed || at.r.Locals() != 0 || at.r.Applied() != before {
			h.t.Errorf("closed %v, %d left, zxid %v after %v", c.closed, at.r.Locals(), at.r.Applied(), before)
		}
	})
}

// TestLocalSessionIsUpgraded: the first ephemeral makes a local session global, for good.
func TestLocalSessionIsUpgraded(t *testing.T) {
	onLeaderAndFollower(t, true, func(h *cluster, s []*server, at *server) {
		c, conn := h.connect(at, 0)
		before := h.persistent(at, c, conn, "/p").Header.Zxid
		if o := h.ephemeral(at, c, conn, "/e"); o.Header.Err != wire.OK || o.Header.Zxid != before+2 {
			h.t.Fatalf("create: %v at %v after %v", o.Header.Err, o.Header.Zxid, before)
		}
		if h.known(c.session) != 3 || at.r.Locals() != 0 {
			h.t.Fatalf("known to %d trees, %d are local", h.known(c.session), at.r.Locals())
		}
		if o := h.ephemeral(at, c, conn, "/e2"); o.Header.Zxid != before+3 {
			h.t.Errorf("upgraded twice: %v after %v", o.Header.Zxid, before)
		}
		other, conn := h.connect(s[2], c.session)
		if other.session != c.session || !c.closed {
			h.t.Fatal("the global session cannot be resumed at another server")
		}
		h.do(s[2], other, conn, wire.OpCloseSession, nil)
		h.run(300)
		if h.exists("/e") || h.known(c.session) != 0 {
			h.t.Error("its ephemeral outlives it")
		}
	})
}

// TestLocalSessionOwnsNoEphemeral: without upgrading, a local session cannot create an
// ephemeral. If the create is in a multi, the answer names the operation.
func TestLocalSessionOwnsNoEphemeral(t *testing.T) {
	onLeaderAndFollower(t, false, func(h *cluster, s []*server, at *server) {
		c, conn := h.connect(at, 0)
		if o := h.ephemeral(at, c, conn, "/e"); o.Header.Err != wire.ErrEphemeralOnLocalSession {
			h.t.Errorf("create: %v", o.Header.Err)
		}
		o := h.do(at, c, conn, wire.OpMulti, &wire.MultiRequest{Ops: []wire.Op{
			{Type: wire.OpCreate, Request: &wire.CreateRequest{Path: "/p", ACL: wire.OpenACL()}},
			{Type: wire.OpCreate2, Request: &wire.CreateRequest{Path: "/s", ACL: wire.OpenACL(), Flags: wire.FlagEphemeralSequential}},
		}})
		m, ok := o.Response.(*wire.MultiResponse)
		if o.Header.Err != wire.OK || !ok || len(m.Results) != 2 || m.Results[1].Err != wire.ErrEphemeralOnLocalSession {
			h.t.Errorf("multi: %v %+v", o.Header.Err, o.Response)
		}
		if o := h.do(at, c, conn, wire.OpCreateContainer, &wire.CreateRequest{Path: "/c", ACL: wire.OpenACL(), Flags: wire.FlagContainer}); o.Header.Err != wire.OK {
			h.t.Errorf("container: %v", o.Header.Err)
		}
		if h.exists("/e") || h.exists("/p") || h.known(c.session) != 0 {
			h.t.Error("part of a refused request took effect")
		}
	})
}

// TestLocalSessionSurvivesLeaderChange: a local session and its connection survive a
// change of leaders, and its write in flight takes effect once.
func TestLocalSessionSurvivesLeaderChange(t *testing.T) {
	h, s := withLocalSessions(t, true)
	c, conn := h.connect(s[1], 0)
	h.stallDisks(s[0])
	h.create(s[1], conn, 1, "/a")
	h.run(50)
	h.kill(s[0])
	h.delay, h.delayed = nil, nil
	h.run(1500)
	if c.closed || len(c.replies) != 1 || c.replies[0].Header.Err != wire.OK || h.known(c.session) != 0 {
		t.Fatalf("closed %v, %+v", c.closed, c.replies)
	}
	if o := h.persistent(s[1], c, conn, "/b"); o.Header.Err != wire.OK {
		t.Errorf("create: %v", o.Header.Err)
	}
}

// TestLocalSessionSurvivesLossOfQuorum: a local session does not expire for want of a
// leader while its client keeps asking for it. One that is not heard from does.
func TestLocalSessionSurvivesLossOfQuorum(t *testing.T) {
	h, s := withLocalSessions(t, true)
	c, _ := h.connect(s[1], 0)
	silent, _ := h.connect(s[1], 0)
	h.kill(s[0])
	h.kill(s[2])
	for range 8 {
		h.run(1500)
		h.connect(s[1], c.session)
	}
	h.start(s[0])
	s[0].r.member.opt.LocalSessions = true
	h.run(2000)
	if again, _ := h.connect(s[1], c.session); again.session != c.session {
		t.Errorf("resumed: %v", again.session)
	}
	if again, _ := h.connect(s[1], silent.session); again.session != 0 {
		t.Errorf("the silent one lives: %v", again.session)
	}
}

// TestUpgradeSurvivesLeaderChange: an upgrade is in flight when the leader dies. Whether
// or not the history has it, the create after it is answered once, and the session is
// global.
func TestUpgradeSurvivesLeaderChange(t *testing.T) {
	for name, stall := range map[string]func(h *cluster, s []*server){
		"lost": func(h *cluster, s []*server) {
			h.delay = func(to *server, e Event) bool { return to == s[0] && isReceived(e) }
		},
		"logged": func(h *cluster, s []*server) { h.stallDisks(nil) },
	} {
		t.Run(name, func(t *testing.T) {
			h, s := withLocalSessions(t, true)
			h.t = t
			c, conn := h.connect(s[1], 0)
			stall(h, s)
			body := wire.Append(nil, &wire.CreateRequest{Path: "/e", ACL: wire.OpenACL(), Flags: wire.FlagEphemeral})
			s[1].inbox = append(s[1].inbox, &Request{Conn: conn, Xid: 1, Op: wire.OpCreate, Body: body})
			h.run(50)
			h.kill(s[0])
			h.release()
			h.run(1500)
			if c.closed || len(c.replies) != 1 || c.replies[0].Header.Err != wire.OK {
				t.Fatalf("closed %v, %+v", c.closed, c.replies)
			}
			if h.known(c.session) != 2 || s[1].r.Locals() != 0 || !h.exists("/e") {
				t.Errorf("known to %d trees, %d are local", h.known(c.session), s[1].r.Locals())
			}
		})
	}
}

// TestLostUpgradeIsUndone: if an upgrade is lost and its request too, the session stays
// local and has its whole timeout.
func TestLostUpgradeIsUndone(t *testing.T) {
	h, s := withLocalSessions(t, true)
	c, conn := h.connect(s[1], 0)
	h.delay = func(to *server, e Event) bool { return to == s[0] && isReceived(e) }
	body := wire.Append(nil, &wire.CreateRequest{Path: "/e", ACL: wire.OpenACL(), Flags: wire.FlagEphemeral})
	s[1].inbox = append(s[1].inbox, &Request{Conn: conn, Xid: 1, Op: wire.OpCreate, Body: body})
	h.run(50)
	s[1].inbox = append(s[1].inbox, Disconnected{Conn: conn})
	h.kill(s[0])
	h.delay, h.delayed = nil, nil
	h.run(5000)
	again, conn := h.connect(s[1], c.session)
	if again.session != c.session || h.known(c.session) != 0 {
		t.Fatalf("session %v, known to %d trees", again.session, h.known(c.session))
	}
	if o := h.ephemeral(s[1], again, conn, "/e"); o.Header.Err != wire.OK || h.known(c.session) != 2 {
		t.Errorf("upgraded now: %v, known to %d trees", o.Header.Err, h.known(c.session))
	}
}

// TestZK2725MultiUpgradesSession: an ephemeral in a multi also makes a local session
// global (ZOOKEEPER-2725).
func TestZK2725MultiUpgradesSession(t *testing.T) {
	onLeaderAndFollower(t, true, func(h *cluster, s []*server, at *server) {
		c, conn := h.connect(at, 0)
		o := h.do(at, c, conn, wire.OpMulti, &wire.MultiRequest{Ops: []wire.Op{
			{Type: wire.OpCreate, Request: &wire.CreateRequest{Path: "/p", ACL: wire.OpenACL()}},
			{Type: wire.OpCreate2, Request: &wire.CreateRequest{Path: "/s", ACL: wire.OpenACL(), Flags: wire.FlagEphemeralSequential}},
		}})
		m, ok := o.Response.(*wire.MultiResponse)
		if !ok || len(m.Results) != 2 || m.Results[1].Err != wire.OK || h.known(c.session) != 3 || at.r.Locals() != 0 {
			h.t.Errorf("%+v; known to %d trees", o.Response, h.known(c.session))
		}
	})
}

// TestZK3471UpgradingSessionDoesNotExpire: a session that is becoming global does not
// expire locally: its local end would leave behind the ephemerals that it owns by then
// (ZOOKEEPER-3471).
func TestZK3471UpgradingSessionDoesNotExpire(t *testing.T) {
	h, s := withLocalSessions(t, true)
	c, conn := h.connect(s[1], 0)
	h.stallDisks(nil)
	body := wire.Append(nil, &wire.CreateRequest{Path: "/e", ACL: wire.OpenACL(), Flags: wire.FlagEphemeral})
	s[1].inbox = append(s[1].inbox, &Request{Conn: conn, Xid: 1, Op: wire.OpCreate, Body: body})
	h.run(9000)
	h.release()
	h.run(300)
	if c.closed || len(c.replies) != 1 || h.known(c.session) != 3 {
		t.Errorf("closed %v, %+v", c.closed, c.replies)
	}
}

// TestRebuiltTreeForgetsUpgrades: after the tree is rebuilt, the server does not know
// what has become of an upgrade in flight, and forgets that session.
func TestRebuiltTreeForgetsUpgrades(t *testing.T) {
	h, s := withLocalSessions(t, true)
	c, conn := h.connect(s[1], 0)
	stays, _ := h.connect(s[1], 0)
	h.delay = func(to *server, e Event) bool { return to == s[0] && isReceived(e) }
	body := wire.Append(nil, &wire.CreateRequest{Path: "/e", ACL: wire.OpenACL(), Flags: wire.FlagEphemeral})
	s[1].inbox = append(s[1].inbox, &Request{Conn: conn, Xid: 1, Op: wire.OpCreate, Body: body})
	h.run(50)
	h.kill(s[0])
	h.delay, h.delayed = nil, nil
	s[1].inbox = append(s[1].inbox, Rebuilt{h.copy(s[1].r.tree)})
	h.run(1500)
	if again, _ := h.connect(s[1], c.session); again.session != 0 {
		t.Error("lives on although it may have ended")
	}
	if again, _ := h.connect(s[1], stays.session); again.session != stays.session {
		t.Error("a session without an upgrade in flight is forgotten")
	}
}

// TestOwnSessionsAreNotLocalElsewhere: a session whose id this leader made cannot be a
// local session of another server.
func TestOwnSessionsAreNotLocalElsewhere(t *testing.T) {
	h, s := withLocalSessions(t, true)
	for _, at := range s[:2] {
		c, conn := h.connect(at, 0)
		h.do(at, c, conn, wire.OpCloseSession, nil)
		if got := s[0].r.checkServerOf(c.session, s[1].id) == wire.OK; got != (at != s[0]) {
			t.Errorf("session %v of server %d: %v", c.session, at.id, got)
		}
	}
}

// TestLocalSessionResumesAfterItsWrites: a local session that is resumed sees the writes
// of its earlier connection, and is not answered with them.
func TestLocalSessionResumesAfterItsWrites(t *testing.T) {
	h, s := withLocalSessions(t, true)
	old, id := h.connect(s[1], 0)
	h.stallDisks(s[0])
	h.create(s[1], id, 1, "/old")
	h.run(50)
	again, now := h.connect(s[1], old.session)
	h.create(s[1], now, 1, "/new")
	h.run(50)
	if again.session != 0 {
		t.Fatal("attached before the earlier write is applied")
	}
	h.release()
	h.run(300)
	h.create(s[1], now, 1, "/new")
	h.run(300)
	if len(again.replies) != 1 {
		t.Fatalf("%+v", again.replies)
	}
	r, ok := again.replies[0].Response.(*wire.PathResponse)
	if !ok || r.Path != "/new" || !h.exists("/old") {
		t.Errorf("%+v", again.replies[0].Response)
	}
}

// TestEndedSessionIsNotLocal: a server forwards a request for a global session before it
// has heard that the session has ended. The leader does not mistake the session for a
// local one.
func TestEndedSessionIsNotLocal(t *testing.T) {
	h, s := withLocalSessions(t, true)
	c, conn := h.connect(s[1], 0)
	h.ephemeral(s[1], c, conn, "/e")
	h.delay = func(to *server, e Event) bool { return to == s[1] && isReceived(e) }
	s[0].inbox = append(s[0].inbox, Expire{Session: c.session})
	h.run(50)
	if h.exists("/e") {
		t.Fatal("not expired")
	}
	h.create(s[1], conn, 2, "/late")
	h.run(50)
	h.release()
	h.run(300)
	if h.exists("/late") || !c.closed {
		t.Errorf("a write after the session's end: %v, closed %v", h.exists("/late"), c.closed)
	}
}

// TestUnknownSessionsNeedLocalSetting: a leader on which local sessions are off refuses
// unknown sessions.
func TestUnknownSessionsNeedLocalSetting(t *testing.T) {
	h, s := withLocalSessions(t, true)
	s[0].r.member.opt.LocalSessions = false
	c, conn := h.connect(s[1], 0)
	if o := h.persistent(s[1], c, conn, "/a"); o.Header.Err != wire.ErrSessionExpired {
		t.Errorf("create: %v", o.Header.Err)
	}
}

func isReceived(e Event) bool {
	z, ok := e.(Zab)
	if !ok {
		return false
	}
	_, ok = z.Event.(zab.Received)
	return ok
}

// TestUpgradeHeldBySyncEnds: a sync holds both the upgrade of a session and its end. The
// session then ends for all servers.
func TestUpgradeHeldBySyncEnds(t *testing.T) {
	onLeaderAndFollower(t, true, func(h *cluster, s []*server, at *server) {
		c, conn := h.connect(at, 0)
		ask := func(xid int32, op wire.OpCode, body wire.Record) {
			q := &Request{Conn: conn, Xid: xid, Op: op}
			if body != nil {
				q.Body = wire.Append(nil, body)
			}
			at.inbox = append(at.inbox, q)
		}
		ask(1, wire.OpSync, &wire.PathRequest{Path: "/"})
		ask(2, wire.OpCreate, &wire.CreateRequest{Path: "/e", ACL: wire.OpenACL(), Flags: wire.FlagEphemeral})
		ask(3, wire.OpCloseSession, nil)
		h.run(300)
		if len(c.replies) != 3 || c.replies[1].Header.Err != wire.OK || c.replies[2].Header.Err != wire.OK || !c.closed {
			h.t.Fatalf("closed %v, %+v", c.closed, c.replies)
		}
		if h.exists("/e") || h.known(c.session) != 0 || at.r.Locals() != 0 {
			h.t.Errorf("its end is answered, but %d trees know it, and its ephemeral is there: %v", h.known(c.session), h.exists("/e"))
		}
	})
}

// TestEndedSessionsAreForgottenInTime: a session that has ended is known for at least as long as a learner may lag behind, and forgotten
// after twice that time.
func TestEndedSessionsAreForgottenInTime(t *testing.T) {
	const lagMax = 1000
	var g endedSessions
	g.age(5000, lagMax)
	for now := int64(5000); now <= 5000+4*lagMax; now += 100 {
		if now == 5900 { // just before a generation ends
			g.add(1)
		}
		g.age(now, lagMax)
		if since := now - 5900; since >= 0 && since <= lagMax && !g.has(1) || since > 2*lagMax && g.has(1) {
			t.Errorf("%d ms after the end: known %v", since, g.has(1))
		}
	}
}

// TestExpiredLocalSessionIsEnding: until the next tick, the driver is told that a local session has expired, so that nothing more of its client counts.
func TestExpiredLocalSessionIsEnding(t *testing.T) {
	h := newCluster(t, 1, true)
	h.local = true
	s := h.servers[0]
	h.kill(s)
	h.start(s)
	h.run(500)
	c, _ := h.connect(s, 0)
	if c.session == 0 || s.r.Locals() != 1 || s.r.Ending(c.session) {
		t.Fatalf("%v, %d local sessions", c.session, s.r.Locals())
	}
	for s.r.Locals() > 0 {
		h.run(1)
	}
	if !s.r.Ending(c.session) {
		t.Error("the expired session is not ending")
	}
	if h.run(500); s.r.Ending(c.session) {
		t.Error("the session is ending for ever")
	}
}
