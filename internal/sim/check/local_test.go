package check

import (
	"slices"
	"testing"

	"bellwether/internal/ensemble"
	"bellwether/internal/peerwire"
	"bellwether/internal/record"
	"bellwether/internal/replica"
	"bellwether/wire"
)

// unreached ignores what a run has reached.
type unreached struct{}

func (unreached) LocalResumed()  {}
func (unreached) LocalUpgraded() {}

// localRule returns the rule for trees that contain some sessions.
func localRule(allowed bool, sessions ...wire.SessionID) func(*History) Checker {
	return func(*History) Checker {
		return newLocalSessions(&present{sessions: sessions, recipe: Recipe{LocalSessions: allowed}}, unreached{})
	}
}

// given returns what a checker sees when connection 1 gets a session.
func given(v ensemble.ServerID, id wire.SessionID) Attached { return givenTo(v, 1, id) }

func givenTo(v ensemble.ServerID, conn replica.ConnID, id wire.SessionID) Attached {
	return Attached{Server: v, Conn: conn, Session: id}
}

func sessionTxn(z wire.Zxid, op wire.OpCode, id wire.SessionID) *record.Txn {
	return &record.Txn{TxnHeader: record.TxnHeader{Session: id, Zxid: z, Type: op}}
}

// brokenLocals are sequences of observations that break the rule of local sessions.
var brokenLocals = []broken{
	{"a local session where none may be", localRule(false), func(*History) []any {
		return []any{Committed{a, 1, sessionTxn(z(1, 1), wire.OpCreateSession, 7)}, given(a, 7), given(a, 8)}
	}},
	{"a local session of two servers", localRule(true), func(*History) []any {
		return []any{given(a, 7), given(a, 7), given(b, 7)}
	}},
	{"a local session that outlives its process", localRule(true), func(*History) []any {
		return []any{Restarted{Server: a}, given(a, 7), Restarted{Server: b}, given(a, 7), Restarted{Server: a}, given(a, 7)}
	}},
	{"a local session that moves behind its end", localRule(true), func(*History) []any {
		return []any{
			given(a, 7), Committed{a, 1, sessionTxn(z(1, 1), wire.OpCreateSession, 7)}, given(b, 7),
			Committed{a, 2, sessionTxn(z(1, 2), wire.OpCloseSession, 7)}, given(b, 7),
		}
	}},
	{"a session that is made again", localRule(true), func(*History) []any {
		return []any{Committed{a, 1, sessionTxn(z(1, 1), wire.OpCreateSession, 7)}, Committed{b, 2, sessionTxn(z(1, 2), wire.OpCreateSession, 7)}}
	}},
	{"a write behind the end of its session", localRule(true), func(*History) []any {
		return []any{
			given(a, 1), Answered{Request: Request{Op: wire.OpCloseSession, Session: 1}},
			Committed{a, 1, sessionTxn(z(1, 1), wire.OpError, 1)}, Committed{a, 2, setTxn(z(1, 2), "x")},
		}
	}},
	{"a local session that a tree has", localRule(true, 7), func(*History) []any {
		return []any{Stands{Server: a}, Established{Server: a, Role: peerwire.Following, Epoch: 1}, Stands{Server: a, Zxid: z(1, 1)}}
	}},
	{"a local session that expires too early", localRule(true), func(*History) []any {
		early := func(v ensemble.ServerID, timeoutMS int32) TurnedAway {
			return TurnedAway{Server: v, Session: 7, TimeoutMS: timeoutMS, At: 1_000_000}
		}
		return []any{given(a, 7), Answered{Request: Request{Op: wire.OpPing, Session: 7}}, early(b, 4000), early(a, 1000), early(a, 4000)}
	}},
}

// TestEndedSessionIsNotGivenToLaterConnections checks that a server that is behind may give
// an ended session to a connection that began before the end, but to no later one.
func TestEndedSessionIsNotGivenToLaterConnections(t *testing.T) {
	c := localRule(false)(nil)
	for _, what := range []any{
		Connected{1}, Committed{a, 1, sessionTxn(z(1, 1), wire.OpCreateSession, 7)}, givenTo(a, 1, 7),
		Connected{2}, Committed{a, 2, sessionTxn(z(1, 2), wire.OpCloseSession, 7)}, givenTo(a, 2, 7), Connected{3},
	} {
		if wrong := c.See(what); wrong != "" {
			t.Error(wrong)
		}
	}
	if c.See(givenTo(a, 3, 7)) == "" {
		t.Error("the session is given to a connection that began after its end")
	}
}

// TestLocalSessionExpiresAfterJump checks that a server whose clock jumps beyond a session's timeout may report that the
// session has expired, also if its last answer arrives behind the jump, and that neither another server's jump nor one
// before the last request is a reason. Found by seed 1796001147915489202.
func TestLocalSessionExpiresAfterJump(t *testing.T) {
	jump := func(of ensemble.ServerID) Jumped { return Jumped{Server: of, At: 200_000, By: 4_000_000} }
	asked := func(at int64) Answered {
		return Answered{Request: Request{Op: wire.OpPing, Session: 7, Issued: at}}
	}
	for _, test := range []struct {
		name    string
		seen    []any
		allowed bool
	}{
		{"answered before the jump", []any{asked(100_000), jump(a)}, true},
		{"answered after the jump", []any{jump(a), asked(100_000)}, true},
		{"asked after the jump", []any{jump(a), asked(300_000)}, false},
		{"another server's jump", []any{asked(100_000), jump(b)}, false},
	} {
		c := localRule(true)(nil)
		var wrong string
		for _, what := range slices.Concat([]any{given(a, 7)}, test.seen, []any{TurnedAway{Server: a, Session: 7, TimeoutMS: 4000, At: 1_000_000}}) {
			wrong = c.See(what)
		}
		if (wrong == "") != test.allowed {
			t.Errorf("%s: %q", test.name, wrong)
		}
	}
}

// TestClosedLocalSessionWithoutAnAnswer checks that a client which has asked to close its local session, and has got no answer, may be
// told at once that the session is over. Found by seed 1796007537106448020.
func TestClosedLocalSessionWithoutAnAnswer(t *testing.T) {
	for op, allowed := range map[wire.OpCode]bool{wire.OpCloseSession: true, wire.OpSync: false} {
		c := localRule(true)(nil)
		var wrong string
		for _, what := range []any{
			given(a, 7), Answered{Request: Request{Op: wire.OpPing, Session: 7, Issued: 100_000}}, Issued{Request: Request{Op: op, Session: 7}},
			TurnedAway{Server: a, Session: 7, TimeoutMS: 4000, At: 200_000},
		} {
			wrong = c.See(what)
		}
		if (wrong == "") != allowed {
			t.Errorf("behind %v: %q", op, wrong)
		}
	}
}

// TestEndedSessionUnderDeposedLeader checks that a leader of ZooKeeper may give a session that has ended in a later
// epoch, and that neither such a leader may give one that has ended in its own epoch, nor a leader of Bellwether any.
func TestEndedSessionUnderDeposedLeader(t *testing.T) {
	for _, test := range []struct {
		name             string
		compatible, fine bool
		ended            wire.Epoch
	}{
		{"a deposed leader of ZooKeeper", true, true, 2},
		{"a leader of ZooKeeper", true, false, 1},
		{"a deposed leader of Bellwether", false, false, 2},
	} {
		c := newLocalSessions(&present{servers: []Server{{ID: a, Compatible: test.compatible}, {ID: b}}}, unreached{})
		resumed := Attached{Server: a, Conn: 2, Session: 7, Epoch: 1}
		for _, what := range []any{
			Established{a, peerwire.Leading, 1, 0}, Connected{1}, Committed{a, 1, sessionTxn(z(1, 1), wire.OpCreateSession, 7)}, givenTo(a, 1, 7),
			Established{b, peerwire.Leading, 2, 0}, Committed{b, 2, sessionTxn(z(test.ended, 2), wire.OpCloseSession, 7)}, Connected{2},
		} {
			if wrong := c.See(what); wrong != "" {
				t.Error(test.name, wrong)
			}
		}
		if wrong := c.See(resumed); (wrong == "") != test.fine {
			t.Errorf("%s gives a session that has ended: %q", test.name, wrong)
		}
	}
}
