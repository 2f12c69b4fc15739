package sim

import (
	"testing"

	"bellwether/internal/peerwire"
	"bellwether/internal/record"
	"bellwether/internal/sim/check"
	"bellwether/wire"
)

// ephemeral returns a request to create an ephemeral.
func (c *client) ephemeral(path string) *call {
	return &call{op: wire.OpCreate, path: path, value: c.mark(), body: wire.Append(nil, &wire.CreateRequest{
		Path: path, Data: []byte(c.mark()), ACL: wire.OpenACL(), Flags: wire.FlagEphemeral,
	})}
}

// everybodys counts the servers whose tree has a session.
func (s *scene) everybodys(id wire.SessionID) (n int) {
	for _, v := range s.servers {
		if _, ok := v.tree.Session(id); ok {
			n++
		}
	}
	return n
}

// TestLocalSessionsStayWithTheirServer checks that a local session, its connection and its
// watches outlive a change of leaders. The session cannot move to another server, and ends
// with its server.
func TestLocalSessionsStayWithTheirServer(t *testing.T) {
	for seed := range uint64(10) {
		s := newScene(t, Options{Seed: seed + 1, Voters: 3, KeepClients: 1, LocalSessions: 1})
		at := s.other()
		c := s.client(at)
		session, tries := c.session, c.tries
		s.carried(c.ask(c.making("/a")))
		s.carried(c.ask(get("/a", true)))
		s.Do(Act{Kind: Kill, A: int(s.leader().id)})
		s.carried(c.ask(c.setting("/a")))
		if c.session != session || c.tries != tries || s.everybodys(session) != 0 {
			t.Errorf("seed %d: session %v, before %v; connection %d, before %d", seed+1, c.session, session, c.tries, tries)
		}
		s.Do(Act{Kind: Kill, A: int(at.id)})
		s.supervise()
		s.until("it has another session", 20*second, func() bool { return c.attached && c.session != session })
	}
}

// TestUpgradesUnderADyingLeader ends the leader at some moment while a session becomes
// global. It checks that the create is carried out once, and that the session lives on all
// servers as long as its ephemeral.
func TestUpgradesUnderADyingLeader(t *testing.T) {
	for seed := range uint64(40) {
		s := newScene(t, Options{Seed: seed + 1, Voters: 3, KeepClients: 1 - 2*int(seed%2), LocalSessions: 1})
		c := s.client(s.other())
		s.carried(c.ask(c.making("/a")))
		session := c.session
		k := c.ask(c.ephemeral("/e"))
		s.RunFor(s.random.below(10 * millisecond))
		s.Do(Act{Kind: Kill, A: int(s.leader().id)})
		s.supervise()
		s.until("the client is served", 20*second, func() bool { return s.allServe() == "" && (k.done != 0 || c.tries > 1) })
		if c.session != session {
			t.Fatalf("seed %d: session %v, before %v", seed+1, c.session, session)
		}
		again := c.ask(c.ephemeral("/e2"))
		s.carried(again)
		s.until("everybody knows the session", second, func() bool { return s.everybodys(session) == 3 })
		s.carried(c.ask(&call{op: wire.OpCloseSession}))
		if left := s.history.Tree.EphemeralsBySession(); len(left) != 0 {
			t.Errorf("seed %d: left behind: %v", seed+1, left)
		}
	}
}

// TestNothingBehindTheEndOfAnUpgradedSession lets a session become global and move while
// its old server is cut off. It checks that requests which the old server forwards for the
// session after its end are not carried out.
func TestNothingBehindTheEndOfAnUpgradedSession(t *testing.T) {
	for seed := range uint64(10) {
		s := newScene(t, Options{Seed: seed + 1, Voters: 3, LocalSessions: 1})
		old := s.other()
		c := s.client(old)
		s.carried(c.ask(c.making("/a")))
		s.carried(c.ask(c.ephemeral("/e")))
		s.Do(Act{Kind: Block, A: int(s.leader().id), B: int(old.id)})
		c.ask(c.setting("/a"))
		s.RunFor(50 * millisecond)
		d := s.scripted(s.leader())
		d.session, d.timeoutMS, d.xid = c.session, c.timeoutMS, 1000
		s.until("the session has moved", 10*second, func() bool { return d.attached })
		s.carried(d.ask(&call{op: wire.OpCloseSession}))
		c.xid = 2000 // the second connection of the client begins to number anew
		c.ask(c.setting("/a"))
		s.RunFor(2 * second)
		if s.Failed() != nil {
			t.Fatal(s.Failed())
		}
	}
}

// given returns what a checker sees when a connection gets a session.
func given(v *server, id wire.SessionID) attached { return attached{v, &conn{v: v, id: 1}, id} }

// TestASessionThatHasEndedIsGivenToNobodyWhoAsksThen checks that a server that is behind
// may give an ended session to a connection that began before the end, but to no later one.
func TestASessionThatHasEndedIsGivenToNobodyWhoAsksThen(t *testing.T) {
	s := New(Options{Seed: 1})
	a, c := s.servers[0], newLocalSessions(s)
	for _, what := range []any{
		check.Committed{Server: a.id, Index: 1, Txn: sessionTxn(z(1, 1), wire.OpCreateSession, 7)}, attached{a, &conn{v: a, id: 1}, 7},
		check.Committed{Server: a.id, Index: 2, Txn: sessionTxn(z(1, 2), wire.OpCloseSession, 7)}, attached{a, &conn{v: a, id: 2}, 7},
	} {
		if why := c.See(what); why != "" {
			t.Error(why)
		}
		s.lastConn = 2
	}
	if c.See(attached{a, &conn{v: a, id: 3}, 7}) == "" {
		t.Error("it is given to who asks behind its end")
	}
}

func sessionTxn(z wire.Zxid, op wire.OpCode, id wire.SessionID) *record.Txn {
	return &record.Txn{TxnHeader: record.TxnHeader{Session: id, Zxid: z, Type: op}}
}

func locally(_ *check.History, s *Sim) check.Checker {
	s.opt.LocalSessions = 1
	return newLocalSessions(s)
}

// brokenLocals are sequences of observations that break the rule of local sessions.
var brokenLocals = []broken{
	{"a local session where none may be", func(_ *check.History, s *Sim) check.Checker { return newLocalSessions(s) }, func(_ *check.History, _ *Sim, a, _ *server) []any {
		return []any{check.Committed{Server: a.id, Index: 1, Txn: sessionTxn(z(1, 1), wire.OpCreateSession, 7)}, given(a, 7), given(a, 8)}
	}},
	{"a local session of two servers", locally, func(_ *check.History, _ *Sim, a, b *server) []any {
		return []any{given(a, 7), given(a, 7), given(b, 7)}
	}},
	{"a local session that moves behind its end", locally, func(_ *check.History, _ *Sim, a, b *server) []any {
		return []any{
			given(a, 7), check.Committed{Server: a.id, Index: 1, Txn: sessionTxn(z(1, 1), wire.OpCreateSession, 7)}, given(b, 7),
			check.Committed{Server: a.id, Index: 2, Txn: sessionTxn(z(1, 2), wire.OpCloseSession, 7)}, given(b, 7),
		}
	}},
	{"a session that is made again", locally, func(_ *check.History, _ *Sim, a, b *server) []any {
		return []any{check.Committed{Server: a.id, Index: 1, Txn: sessionTxn(z(1, 1), wire.OpCreateSession, 7)}, check.Committed{Server: b.id, Index: 2, Txn: sessionTxn(z(1, 2), wire.OpCreateSession, 7)}}
	}},
	{"a write behind the end of its session", locally, func(_ *check.History, _ *Sim, a, _ *server) []any {
		return []any{
			given(a, 1), answered{&call{op: wire.OpCloseSession, session: 1}, response{}},
			check.Committed{Server: a.id, Index: 1, Txn: sessionTxn(z(1, 1), wire.OpError, 1)}, check.Committed{Server: a.id, Index: 2, Txn: setTxn(z(1, 2), "x")},
		}
	}},
	{"a local session that a tree has", locally, func(_ *check.History, _ *Sim, a, _ *server) []any {
		a.tree = newTree()
		txn := &record.Txn{TxnHeader: record.TxnHeader{Session: 7, Zxid: z(1, 1), Type: wire.OpCreateSession}, Body: &record.CreateSessionTxn{TimeoutMS: 1}}
		a.tree.Apply(txn)
		return []any{check.Stands{Server: a.id, Zxid: 0}, check.Established{Server: a.id, Role: peerwire.Following, Epoch: 1, Zxid: 0}, check.Stands{Server: a.id, Zxid: z(1, 1)}}
	}},
	{"a local session that expires too early", locally, func(_ *check.History, s *Sim, a, b *server) []any {
		k := &call{op: wire.OpPing, session: 7, issued: s.now}
		s.now += second
		return []any{given(a, 7), answered{k, response{}}, turnedAway{b, 7, 4000}, turnedAway{a, 7, 1000}, turnedAway{a, 7, 4000}}
	}},
}
