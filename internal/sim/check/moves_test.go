package check

import (
	"testing"

	"bellwether/internal/ensemble"
	"bellwether/internal/peerwire"
	"bellwether/internal/record"
	"bellwether/internal/replica"
	"bellwether/internal/tree"
	"bellwether/wire"
)

// movesOf returns the rule of moves for servers 1 and 2. compatible says whether they are ZooKeeper's.
func movesOf(compatible bool) func(*History) Checker {
	return func(h *History) Checker {
		return newMoves(&present{servers: []Server{{ID: a, Compatible: compatible}, {ID: b, Compatible: compatible}}}, h)
	}
}

// movesTo returns the transaction that moves session 1 to a server.
func movesTo(v ensemble.ServerID, counter uint32) Committed {
	return Committed{a, 1, &record.Txn{TxnHeader: record.TxnHeader{Session: 1, Cxid: -1<<31 | int32(v), Zxid: z(1, counter), Type: wire.OpError},
		Body: &record.ErrorTxn{Err: wire.ErrSessionMoved}}}
}

// refused returns the transaction that refuses the request of session 1 that setTxn carries out.
func refused(counter uint32, code wire.Code) Committed {
	t := setTxn(z(1, counter), "x")
	t.Type, t.Body = wire.OpError, &record.ErrorTxn{Err: code}
	return Committed{a, 1, t}
}

func endsAt(counter uint32) Committed {
	t := closes(1)
	t.Zxid = z(1, counter)
	return Committed{a, 1, t}
}

// brokenMoves are sequences of observations that break the rules of sessions that move.
var brokenMoves = []broken{
	{"a session that moves behind its end", movesOf(false), func(*History) []any {
		return []any{movesTo(b, 1), endsAt(2), movesTo(b, 3)}
	}},
	{"a write through the server that a session has left", movesOf(false), func(*History) []any {
		received := func(v ensemble.ServerID, xid int32) Received { return Received{v, 7, 1, xid} }
		return []any{
			received(a, 1), Committed{a, 1, setTxn(z(1, 1), "x")}, received(a, 3), received(b, 4), received(a, 5), movesTo(b, 2),
			refused(3, wire.ErrSessionMoved), Committed{a, 1, setTxn(z(1, 4), "x")}, Committed{a, 1, setTxn(z(1, 5), "x")},
		}
	}},
	{"a session that is given back without what was committed", movesOf(false), func(h *History) []any {
		h.Add(setTxn(z(1, 1), "x"))
		h.Add(setTxn(z(1, 2), "x"))
		gives := func(at wire.Zxid, epoch wire.Epoch) Attached {
			return Attached{Server: a, Conn: 7, Session: 1, Zxid: at, Epoch: epoch}
		}
		return []any{gives(z(1, 1), 1), Resumes{7}, gives(z(1, 2), 1), Resumes{7}, gives(z(1, 1), 2), Resumes{7}, gives(z(1, 1), 1)}
	}},
	{"a write of an earlier connection behind the one to which the session was given", movesOf(false), func(*History) []any {
		return []any{
			Attached{Server: a, Conn: 7, Session: 1, Zxid: z(1, 1)}, Received{a, 7, 1, 2}, Received{a, 7, 1, 4}, Committed{a, 1, setTxn(z(1, 2), "x")},
			Attached{Server: b, Conn: 8, Session: 1, Zxid: z(1, 3)}, refused(4, wire.ErrSessionExpired), refused(4, wire.ErrNoNode),
		}
	}},
	{"a session that is given back before a write of an earlier connection is applied", movesOf(false), func(*History) []any {
		gives := func(conn replica.ConnID, at wire.Zxid) Attached {
			return Attached{Server: a, Conn: conn, Session: 1, Zxid: at, Epoch: 1}
		}
		return []any{
			Received{a, 7, 1, 2}, Committed{a, 1, setTxn(z(1, 2), "x")}, Resumes{6}, gives(6, z(1, 1)), Resumes{8}, gives(8, z(1, 2)),
			Resumes{9}, gives(9, z(1, 1)),
		}
	}},
}

// removalsOf returns the rule of removals at two in a second.
func removalsOf(*History) Checker {
	return newRemovals(&present{recipe: Recipe{TickMS: 1000, RemovalsPerMinute: 120}})
}

// dropsUnused returns what server a logs when it removes an unused znode.
func dropsUnused(counter uint32) Ordered {
	return Ordered{Server: a, Duty: &replica.Duty{Append: []*record.Txn{{TxnHeader: record.TxnHeader{Zxid: z(1, counter), Type: wire.OpDeleteContainer}}}}}
}

// brokenRemovals are sequences of observations that break the rule of removals.
var brokenRemovals = []broken{
	{"two removals in half a second", removalsOf, func(*History) []any {
		return []any{Ticked{a, 1, 0}, Ticked{a, 1, 500}, dropsUnused(1), Ticked{a, 1, 2000}, dropsUnused(2), dropsUnused(3), Ticked{a, 1, 2250}, dropsUnused(4), dropsUnused(5)}
	}},
	{"a removal too early, and those of another leader do not count", removalsOf, func(*History) []any {
		return []any{dropsUnused(1), Ticked{a, 1, 0}, Standing{Server: a}, dropsUnused(2), Ticked{a, 1, 0}, Ticked{a, 1, 250}, dropsUnused(3)}
	}},
}

// TestWriteOfALaterConnection checks that a write of a connection is in order although the session is then given to an
// earlier one, which its client has given up, at a server that shows more.
func TestWriteOfALaterConnection(t *testing.T) {
	c := movesOf(false)(nil)
	for _, o := range []any{
		Attached{Server: a, Conn: 8, Session: 1, Zxid: z(1, 1)}, Received{a, 8, 1, 3}, Attached{Server: b, Conn: 7, Session: 1, Zxid: z(1, 2)},
		Committed{a, 1, setTxn(z(1, 3), "x")},
	} {
		if wrong := c.See(o); wrong != "" {
			t.Error(wrong)
		}
	}
}

// TestMovesUnderZooKeeper checks that the rules of moves leave out what servers of ZooKeeper do not promise.
func TestMovesUnderZooKeeper(t *testing.T) {
	h := NewHistory(tree.New(tree.Options{Seed: 1, ExtendedTypes: true}))
	c := movesOf(true)(&h)
	h.Add(setTxn(z(1, 1), "x"))
	for _, o := range []any{
		Established{Server: a, Role: peerwire.Leading, Epoch: 1}, Received{a, 7, 1, 5}, movesTo(b, 2), Resumes{8},
		Attached{Server: b, Conn: 8, Session: 1, Epoch: 1}, Committed{a, 1, setTxn(z(1, 5), "x")},
	} {
		if wrong := c.See(o); wrong != "" {
			t.Error(wrong)
		}
	}
}
