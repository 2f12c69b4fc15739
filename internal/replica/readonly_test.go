package replica

import (
	"testing"

	"bellwether/internal/peerwire"
	"bellwether/internal/record"
	"bellwether/internal/tree"
	"bellwether/internal/zab"
	"bellwether/wire"
)

// reader asks for a session and accepts a server without a quorum.
var reader = Connect{TimeoutMS: 6000, ReadOnly: true}

// withoutQuorum returns an ensemble in which one server has been without a quorum for a while,
// with a znode /a and a session from before.
func withoutQuorum(t *testing.T, reads bool, ms int64) (h *cluster, s *server, before *client) {
	h = newCluster(t, 3, true)
	h.reads = reads
	for _, s := range h.servers {
		h.start(s)
	}
	h.run(500)
	s = h.servers[0]
	if s == h.leader() {
		s = h.servers[1]
	}
	before, conn := h.connect(s, 0)
	h.create(s, conn, 1, "/a")
	h.run(300)
	for _, o := range h.servers {
		if o != s {
			h.kill(o)
		}
	}
	h.run(ms)
	return h, s, before
}

// do sends a request on a connection and returns the answer.
func (h *cluster) do(s *server, c *client, conn ConnID, op wire.OpCode, body wire.Record) Output {
	h.t.Helper()
	n := len(c.replies)
	var b []byte
	if body != nil {
		b = wire.Append(nil, body)
	}
	s.inbox = append(s.inbox, &Request{Conn: conn, Xid: 9, Op: op, Body: b})
	h.run(10)
	if len(c.replies) != n+1 {
		h.t.Fatalf("%v: %d answers", op, len(c.replies)-n)
	}
	return c.replies[n]
}

// TestReadOnlyBegins: after two seconds without a leader, a server answers the reads of
// clients that accept a read-only server, and refuses all else. Other clients are not
// served.
func TestReadOnlyBegins(t *testing.T) {
	h, s, _ := withoutQuorum(t, true, 1300)
	waits, _ := h.ask(s, reader)
	plain, _ := h.connect(s, 0)
	if waits.session != 0 || s.r.Status().ReadOnly {
		t.Fatal("served before its time")
	}
	h.run(300)
	if waits.session == 0 || !waits.answer.ReadOnly || !s.r.Status().ReadOnly {
		t.Fatalf("the waiting client is not served: %+v", waits.answer)
	}
	if plain.closed {
		t.Error("a client that waits for a leader is disconnected too early")
	}
	if late, _ := h.connect(s, 0); !late.closed {
		t.Error("a client that does not accept a read-only server is served, or waits")
	}
	ahead := reader
	ahead.Seen = s.r.Applied() + 1
	if c, _ := h.ask(s, ahead); !c.closed {
		t.Error("a client that has seen a later state is served")
	}
	c, conn := h.ask(s, reader)
	for _, op := range []wire.OpCode{wire.OpCreate, wire.OpMulti, wire.OpSync, wire.OpCheck, wire.OpReconfig, wire.OpSetACL} {
		if o := h.do(s, c, conn, op, nil); o.Kind != Reply || o.Header.Err != wire.ErrNotReadOnly || o.Header.Zxid != s.r.Applied() {
			t.Errorf("%v: %+v", op, o)
		}
	}
	for _, op := range []wire.OpCode{wire.OpGetData, wire.OpPing, wire.OpMultiRead} {
		if o := h.do(s, c, conn, op, nil); o.Kind != Turn {
			t.Errorf("%v: %+v", op, o)
		}
	}
	if o := h.do(s, c, conn, wire.OpCloseSession, nil); o.Header.Err != wire.OK || !c.closed {
		t.Errorf("close: %+v, closed %v", o, c.closed)
	}
}

// TestReadOnlyMustBeEnabled: no client is served without a quorum unless the operator
// enables that.
func TestReadOnlyMustBeEnabled(t *testing.T) {
	h, s, _ := withoutQuorum(t, false, 5000)
	if c, _ := h.ask(s, reader); c.session != 0 || s.r.Status().ReadOnly {
		t.Error("a client is served")
	}
}

// TestReadOnlySessions: a global session is neither resumed nor reported as expired, so
// its client keeps looking for another server. A session that read-only service made is
// resumed, if the password is right.
func TestReadOnlySessions(t *testing.T) {
	h, s, before := withoutQuorum(t, true, 3000)
	old := reader
	pw := before.session.Password()
	old.Session, old.Password = before.session, pw[:]
	if c, _ := h.ask(s, old); !c.closed || c.answer.Kind != 0 {
		t.Errorf("a session of the ensemble: %+v", c.answer)
	}
	other := reader
	other.Session = record.FirstSessionID(2, h.now.Wall)
	pw = other.Session.Password()
	other.Password = pw[:]
	if c, _ := h.ask(s, other); !c.closed || c.answer.Kind != 0 {
		t.Errorf("a session of another server: %+v", c.answer)
	}
	c, _ := h.ask(s, reader)
	own := reader
	pw = c.session.Password()
	own.Session, own.Password = c.session, pw[:]
	again, _ := h.ask(s, own)
	if again.session != c.session || !c.closed {
		t.Errorf("its own session is not resumed: %+v", again.answer)
	}
	own.Password = make([]byte, wire.PasswordLen)
	if wrong, _ := h.ask(s, own); !wrong.closed || wrong.answer.Kind != Attached || wrong.session != 0 || again.closed {
		t.Errorf("a wrong password: %+v", wrong.answer)
	}
	h.run(9000)
	if !again.closed {
		t.Error("a silent session does not expire")
	}
	own.Password = pw[:]
	if late, _ := h.ask(s, own); late.answer.Kind != Attached || late.session != 0 {
		t.Errorf("an expired session: %+v", late.answer)
	}
}

// TestReadOnlyEnds: when there is a leader, read-only service ends: its connections are
// closed, nothing new becomes visible before that, and the sessions from before continue.
func TestReadOnlyEnds(t *testing.T) {
	h, s, before := withoutQuorum(t, true, 3000)
	c, conn := h.ask(s, reader)
	s.inbox = append(s.inbox, Touched{[]Touch{{c.session, h.now.Mono}}})
	var back *server
	for _, o := range h.servers {
		if o != s {
			back = o
		}
	}
	h.start(back)
	for end := h.now.Mono + 5000; !c.closed && h.now.Mono < end; h.run(1) {
		if s.r.Status().Role != peerwire.Looking {
			t.Fatal("served after the decision")
		}
	}
	h.run(3000)
	if !c.closed || s.r.Status().ReadOnly || !s.r.Status().Serving {
		t.Fatalf("closed %v, %+v", c.closed, s.r.Status())
	}
	s.inbox = append(s.inbox, &Request{Conn: conn, Xid: 1, Op: wire.OpGetData})
	if again, _ := h.connect(s, before.session); again.session != before.session || again.answer.ReadOnly {
		t.Errorf("a session from before: %+v", again.answer)
	}
	if gone, _ := h.connect(s, c.session); gone.session != 0 || gone.answer.Kind != Attached {
		t.Errorf("a session of read-only service: %+v", gone.answer)
	}
}

// TestReadOnlyHidesUncommitted: the transactions that a server loads at its start may not
// be committed, and are not shown.
func TestReadOnlyHidesUncommitted(t *testing.T) {
	h, s, _ := withoutQuorum(t, true, 3000)
	h.kill(s)
	h.start(s)
	h.run(5000)
	if c, _ := h.ask(s, reader); c.session != 0 || s.r.Status().ReadOnly {
		t.Error("a log is shown that may not be committed")
	}
}

// TestReadOnlyShowsTheLogOnDemand: an operator can let a read-only server show its log
// before it has found a quorum since its start. If a leader does not have what clients
// saw, it is removed; their connections are closed before that.
func TestReadOnlyShowsTheLogOnDemand(t *testing.T) {
	for _, reads := range []bool{false, true} {
		h, s, _ := withoutQuorum(t, reads, 3000)
		h.kill(s)
		h.uncommitted = true
		h.start(s)
		h.run(5000)
		c, conn := h.ask(s, reader)
		if served := c.session != 0; served != reads || s.r.Status().ReadOnly != reads {
			t.Fatalf("read-only mode %v: %+v", reads, c.answer)
		}
		if !reads {
			continue
		}
		if o := h.do(s, c, conn, wire.OpGetData, &wire.PathWatchRequest{Path: "/a"}); o.Kind != Turn {
			t.Errorf("a read: %+v", o)
		}
		if o := h.do(s, c, conn, wire.OpDelete, nil); o.Header.Err != wire.ErrNotReadOnly {
			t.Errorf("a write: %+v", o)
		}
		for _, o := range h.servers {
			if o != s {
				h.start(o)
			}
		}
		h.run(3000)
		if !c.closed || !s.r.Status().Serving {
			t.Errorf("after an election: closed %v, %+v", c.closed, s.r.Status())
		}
	}
}

// TestReadOnlyOnFullDisk: a server whose disk is full answers reads at once, whatever the
// configuration says. It disconnects all other clients, and becomes a full member again
// when there is space.
func TestReadOnlyOnFullDisk(t *testing.T) {
	h, s := leaderFirst(t, true)
	full := s[0]
	held, _ := h.connect(full, 0)
	z, gen := full.r.member.log.Last(), full.r.member.generation
	full.inbox = append(full.inbox, LogFull{z, gen}, Zab{zab.Refused{Zxid: z, Generation: gen, Why: "no space"}})
	h.run(10)
	if !held.closed {
		t.Error("a client waits for a server that will not come back soon")
	}
	c, conn := h.ask(full, reader)
	if st := full.r.Status(); !st.ReadOnly || st.Disabled == "" || !c.answer.ReadOnly {
		t.Fatalf("%+v, %+v", st, c.answer)
	}
	if o := h.do(full, c, conn, wire.OpDelete, nil); o.Header.Err != wire.ErrNotReadOnly {
		t.Errorf("a write: %+v", o)
	}
	full.inbox = append(full.inbox, LogFree{})
	h.run(10)
	if !c.closed || full.r.Status().ReadOnly {
		t.Error("read-only service does not end")
	}
	h.run(2000)
	if st := full.r.Status(); !st.Serving {
		t.Errorf("the server does not become a full member again: %+v", st)
	}
}

// TestReadOnlyWaitsForTheTree: a full disk has refused transactions that are in the tree of a server. Nobody reads that tree until the
// one that is made of the log on disk has replaced it.
func TestReadOnlyWaitsForTheTree(t *testing.T) {
	h, s := leaderFirst(t, true)
	full := s[0]
	_, c := h.connect(full, 0)
	h.create(full, c, 1, "/x")
	h.run(100)
	h.silent = map[*server]bool{full: true}
	z, gen := full.r.member.log.Last(), full.r.member.generation
	full.log = full.log[:len(full.log)-1]
	full.inbox = append(full.inbox, LogFull{z - 1, gen}, Zab{zab.Refused{Zxid: z - 1, Generation: gen, Why: "no space"}})
	h.run(1000)
	if st := full.r.Status(); st.ReadOnly || st.Disabled == "" || full.r.tree.LastZxid() != z {
		t.Fatalf("%+v, the tree is at %v", st, full.r.tree.LastZxid())
	}
	h.answer(full)
	h.run(1000)
	if st := full.r.Status(); !st.ReadOnly || full.r.tree.LastZxid() != z-1 {
		t.Errorf("%+v, the tree is at %v", st, full.r.tree.LastZxid())
	}
}

// TestReadOnlyHidesAFuzzyTree: a server whose full disk takes it back to a leader's snapshot does not show that tree.
func TestReadOnlyHidesAFuzzyTree(t *testing.T) {
	h, s := leaderFirst(t, true)
	full := s[0]
	z, gen := full.r.member.log.Last(), full.r.member.generation
	fuzzy := tree.New(tree.Options{Seed: 1})
	l := fuzzy.Loader()
	l.Reset()
	l.CloseFuzzy()
	full.inbox = append(full.inbox, LogFull{z, gen}, Zab{zab.Refused{Zxid: z, Generation: gen, Why: "no space"}}, Rebuilt{fuzzy})
	h.run(10)
	if st := full.r.Status(); st.ReadOnly || st.Disabled == "" {
		t.Errorf("%+v", st)
	}
	fuzzy.Settled()
	h.run(1000)
	if st := full.r.Status(); !st.ReadOnly {
		t.Errorf("the tree is settled: %+v", st)
	}
}

// TestReadOnlyLocalSessions: a local session that was made with a quorum can be resumed
// without one, at its own server, and continues with the next quorum. One that was made
// without a quorum ends.
func TestReadOnlyLocalSessions(t *testing.T) {
	h, servers := withLocalSessions(t, true)
	s := servers[1]
	s.r.member.opt.ReadOnly = true
	before, _ := h.connect(s, 0)
	others := []*server{servers[0], servers[2]}
	for _, o := range others {
		h.kill(o)
	}
	h.run(3000)
	own := reader
	pw := before.session.Password()
	own.Session, own.Password = before.session, pw[:]
	c, conn := h.ask(s, own)
	if c.session != before.session || !c.answer.ReadOnly {
		t.Fatalf("not resumed: %+v", c.answer)
	}
	if o := h.do(s, c, conn, wire.OpCreate, nil); o.Header.Err != wire.ErrNotReadOnly {
		t.Errorf("a write: %+v", o)
	}
	made, _ := h.ask(s, reader)
	if made.session == 0 || s.r.Locals() != 2 {
		t.Fatalf("%d sessions", s.r.Locals())
	}
	for _, o := range others {
		h.start(o)
		o.r.member.opt.LocalSessions = true
	}
	h.run(3000)
	if !c.closed || !made.closed || s.r.Locals() != 1 {
		t.Errorf("closed: %v and %v, %d sessions", c.closed, made.closed, s.r.Locals())
	}
	again, conn := h.connect(s, before.session)
	if again.session != before.session || again.answer.ReadOnly {
		t.Fatalf("not resumed with a quorum: %+v", again.answer)
	}
	if o := h.persistent(s, again, conn, "/a"); o.Header.Err != wire.OK {
		t.Errorf("a write with a quorum: %+v", o)
	}
}
