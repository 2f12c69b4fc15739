package check

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"bellwether/internal/ensemble"
	"bellwether/internal/record"
	"bellwether/internal/replica"
	"bellwether/internal/tree"
	"bellwether/wire"
)

// present is a Present that always gives the same answers.
type present struct {
	recipe      Recipe
	holders     []Holder
	locks       []Lock
	owners      []Owner
	registrants []Registrant
	servers     []Server
	sessions    []wire.SessionID
	disks       []Disk
	now         int64
}

func (p *present) Now() int64                                  { return p.now }
func (p *present) Recipe() Recipe                              { return p.recipe }
func (p *present) Holders() []Holder                           { return p.holders }
func (p *present) Locks() []Lock                               { return p.locks }
func (p *present) Owners() []Owner                             { return p.owners }
func (p *present) Registrants() []Registrant                   { return p.registrants }
func (p *present) Servers() []Server                           { return p.servers }
func (p *present) Disks(bool) []Disk                           { return p.disks }
func (p *present) Sessions(ensemble.ServerID) []wire.SessionID { return p.sessions }

// closes returns the transaction that ends a session.
func closes(session wire.SessionID) *record.Txn {
	return &record.Txn{TxnHeader: record.TxnHeader{Session: session, Zxid: z(1, 1), Type: wire.OpCloseSession}, Body: &record.CloseSessionTxn{}}
}

// writes returns a write of session 1, and answer returns the answer to a request.
func writes(n int64) Request { return Request{N: n, Session: 1, Xid: int32(n), Op: wire.OpSetData} }

func answer(q Request, at wire.Zxid) Answered {
	return Answered{Request: q, Header: wire.ReplyHeader{Xid: q.Xid, Zxid: at}}
}

func event(t wire.EventType, path string, at wire.Zxid) tree.Event {
	return tree.Event{Type: t, Path: path, Zxid: at}
}

// brokenRequests are sequences of observations that break the rules of requests, sessions
// and watches.
var brokenRequests = []broken{
	{"a request carried out twice", func(*History) Checker { return newAtMostOnce() }, func(*History) []any {
		again := setTxn(z(1, 2), "x")
		again.Cxid = 1
		return []any{Committed{a, 1, setTxn(z(1, 1), "x")}, Committed{a, 2, again}}
	}},
	{"an answered write that nobody has", func(h *History) Checker { return ackedWrites{h} }, func(h *History) []any {
		h.Add(setTxn(z(1, 1), "x"))
		return []any{answer(writes(1), z(1, 1)), answer(writes(2), z(1, 2))}
	}},
	{"another's write for an answer", func(h *History) Checker { return ackedWrites{h} }, func(h *History) []any {
		h.Add(setTxn(z(1, 1), "x"))
		other := writes(1)
		other.Session = 2
		return []any{answer(other, z(1, 1))}
	}},
	{"answers out of order", func(*History) Checker { return sessionOrder{} }, func(*History) []any {
		return []any{Answered{Request: writes(1), Header: wire.ReplyHeader{Xid: 2}}}
	}},
	{"older than what was shown", func(*History) Checker { return sessionOrder{} }, func(*History) []any {
		older := answer(writes(1), z(1, 1))
		older.Seen = z(1, 2)
		return []any{older}
	}},
	{"a client that has seen more than its server", func(*History) Checker { return sessionOrder{} }, func(*History) []any {
		return []any{Attached{Seen: z(1, 1), Zxid: z(1, 1)}, Attached{Seen: z(2, 0), Zxid: z(1, 1)}, Attached{Seen: z(1, 2), Zxid: z(1, 1)}}
	}},
	{"a request of a connection that the session has left", func(*History) Checker { return newAtMostOnce() }, func(*History) []any {
		refused := setTxn(z(1, 1), "x")
		refused.Type = wire.OpError
		return []any{SentOld{1, 1, false}, Committed{a, 1, refused}, SentOld{1, 2, false}, Committed{a, 2, setTxn(z(1, 2), "x")}}
	}},
	{"a request behind the end of its session", func(*History) Checker { return newAtMostOnce() }, func(*History) []any {
		refused := setTxn(z(1, 1), "x")
		refused.Type = wire.OpError
		return []any{SentOld{1, 1, true}, Committed{a, 1, refused}}
	}},
	{"a change that a client has seen when it sets its watches again", func(h *History) Checker { return newWatchOrder(h) }, func(h *History) []any {
		again := func(seen wire.Zxid) Issued {
			return Issued{Request{Client: 1, Op: wire.OpSetWatches, Body: wire.Append(nil, &wire.SetWatchesRequest{RelativeZxid: seen, Data: []string{"/x"}})}}
		}
		h.Note(z(1, 2), wire.OpSetData, &record.SetDataTxn{Path: "/x"})
		told := Notified{Client: 1, Event: tree.Event{Type: wire.EventNodeDataChanged, Path: "/x", Zxid: -1}}
		return []any{again(z(1, 1)), told, again(z(1, 2)), told}
	}},
	{"an event behind the answer that knows of it", func(h *History) Checker { return newWatchOrder(h) }, func(h *History) []any {
		h.Add(setTxn(z(1, 1), "x"))
		w := Watching{Watches: []Watch{{Path: "/zookeeper"}}}
		expired := wire.ReplyHeader{Zxid: z(1, 1), Err: wire.ErrSessionExpired} // its watches have ended
		return []any{Answered{Watching: w}, Answered{Watching: w, Header: expired}, Answered{Watching: w, Header: wire.ReplyHeader{Zxid: z(1, 1)}}}
	}},
	{"an event that nobody watches for", func(h *History) Checker { return newWatchOrder(h) }, func(*History) []any {
		w := Watching{Watches: []Watch{{Path: "/a"}}}
		return []any{
			Notified{Watching: w, Event: event(wire.EventNodeDataChanged, "/a", 0)},
			Notified{Watching: w, Event: event(wire.EventNodeChildrenChanged, "/a", 0)},
		}
	}},
	{"a later write with an earlier zxid", func(*History) Checker { return newRealTime() }, func(*History) []any {
		return []any{Issued{writes(1)}, answer(writes(1), z(1, 2)), Issued{writes(2)}, answer(writes(2), z(1, 1))}
	}},
	{"a read behind a sync that shows the past", func(*History) Checker { return newRealTime() }, func(*History) []any {
		read := Request{N: 2, Op: wire.OpGetData, Synced: true}
		return []any{Issued{writes(1)}, answer(writes(1), z(1, 2)), Issued{read}, answer(read, z(1, 1))}
	}},
	{"a read of what is gone", func(h *History) Checker { return shown{h} }, func(h *History) []any {
		h.Add(&record.Txn{TxnHeader: record.TxnHeader{Zxid: z(1, 1), Type: wire.OpCreate}, Body: &record.CreateTxn{Path: "/a", ACL: wire.OpenACL()}})
		h.Add(&record.Txn{TxnHeader: record.TxnHeader{Zxid: z(1, 2), Type: wire.OpDelete}, Body: &record.DeleteTxn{Path: "/a"}})
		read := func(at wire.Zxid, err wire.Code) Answered {
			return Answered{Request: Request{Op: wire.OpExists, Path: "/a"}, Header: wire.ReplyHeader{Zxid: at, Err: err}, Record: &wire.StatResponse{Stat: wire.Stat{Mzxid: z(1, 1)}}}
		}
		return []any{read(z(1, 1), wire.OK), read(z(1, 2), wire.ErrNoNode), read(z(1, 2), wire.OK)}
	}},
	{"an answer from behind the history", func(h *History) Checker { return shown{h} }, func(*History) []any {
		return []any{answer(Request{Op: wire.OpSync}, z(1, 1))}
	}},
	{"a write that nobody has issued", func(*History) Checker { return newAsIssued() }, func(*History) []any {
		return []any{Issued{writes(1)}, Committed{a, 1, setTxn(z(1, 1), "x")}, Committed{a, 2, setTxn(z(1, 2), "x")}}
	}},
	{"writes in another order than issued", func(*History) Checker { return newAsIssued() }, func(*History) []any {
		return []any{Issued{writes(1)}, Issued{writes(2)}, Committed{a, 1, setTxn(z(1, 2), "x")}, Committed{a, 2, setTxn(z(2, 1), "x")}}
	}},
	{"an event of nothing", func(h *History) Checker { return newRealEvents(h) }, func(h *History) []any {
		h.Add(setTxn(z(1, 1), "x"))
		return []any{Notified{Event: event(wire.EventNodeDataChanged, "/zookeeper", z(1, 1))}, Notified{Event: event(wire.EventNodeDataChanged, "/zookeeper", z(1, 2))}}
	}},
	{"events in another order than the changes", func(h *History) Checker { return newRealEvents(h) }, func(h *History) []any {
		h.Add(setTxn(z(1, 1), "x"))
		h.Add(setTxn(z(1, 2), "x"))
		first := Notified{Event: event(wire.EventNodeDataChanged, "/zookeeper", z(1, 2))}
		onAnother := Notified{Connection: 1, Event: event(wire.EventNodeDataChanged, "/zookeeper", z(1, 1))}
		return []any{first, onAnother, first, Notified{Event: onAnother.Event}}
	}},
}

// brokenClaims are sequences of observations that break the rules of claims.
var brokenClaims = []broken{
	{"a session that ends before its deadline", claimRule(0, holder(1)), func(*History) []any {
		return []any{Committed{a, 1, setTxn(z(1, 1), "x")}, Committed{a, 1, closes(9)}, Committed{a, 1, closes(1)}}
	}},
	{"two candidates that lead", claimRule(0, holder(1)), func(*History) []any {
		deleted := holder(2)
		deleted.Deleted = true
		return []any{TermBegan{holder(1), 1, ""}, TermBegan{deleted, 2, ""}, TermBegan{holder(2), 2, ""}}
	}},
	{"a term that is prolonged into another's", claimRule(0, holder(1), holder(2)), func(*History) []any {
		return []any{TermProven{Holder{Client: 3}}, TermProven{holder(1)}}
	}},
	{"a reader beside a writer", claimRule(0, reads(1)), func(*History) []any {
		return []any{TermBegan{reads(2), 1, ""}, TermBegan{holder(3), 2, ""}}
	}},
	{"more than the leases", claimRule(2, holder(1), holder(2)), func(*History) []any {
		return []any{TermBegan{holder(2), 1, ""}, TermBegan{holder(3), 2, ""}}
	}},
	{"an end of a holder's session in the log of who could lead", electedRule(true), func(*History) []any {
		end := &replica.Duty{Append: []*record.Txn{closes(1)}}
		return []any{Ordered{Server: a, Duty: &replica.Duty{Append: []*record.Txn{closes(9)}}}, Ordered{Server: a, Duty: end}, Ordered{Server: b, Duty: end}}
	}},
	{"a holder whose session a possible leader does not have", electedRule(false), func(*History) []any {
		return []any{TermProven{Holder{Client: 1, Session: 1}}, TermProven{holder(1)}}
	}},
	{"a token that is older than the last", fenceRule, func(*History) []any {
		k := holder(1)
		k.Exclusive = true
		return []any{TermBegan{k, 2, ""}, TermBegan{k, 3, ""}, TermBegan{holder(1), 1, ""}, TermBegan{k, 2, ""}}
	}},
	{"an old token that is admitted", fenceRule, func(*History) []any {
		return []any{ResourceUsed{1, 2, true, false, false}, ResourceUsed{1, 3, true, false, false}, ResourceUsed{1, 2, false, false, false}, ResourceUsed{1, 2, true, false, false}}
	}},
	{"a holder that is refused", fenceRule, func(*History) []any {
		return []any{ResourceUsed{1, 2, false, false, false}, ResourceUsed{1, 2, false, true, false}}
	}},
	{"a writer that is admitted after a newer reader", fenceRule, func(*History) []any {
		return []any{ResourceUsed{1, 2, true, false, true}, ResourceUsed{2, 4, true, false, true}, ResourceUsed{1, 2, true, false, true}, ResourceUsed{3, 3, true, false, false}}
	}},
	{"a reader that is admitted after a newer writer", fenceRule, func(*History) []any {
		return []any{ResourceUsed{1, 3, true, false, false}, ResourceUsed{2, 4, true, false, true}, ResourceUsed{3, 3, true, false, true}, ResourceUsed{3, 2, true, false, true}}
	}},
	{"two candidates that wait for any lease", func(*History) Checker { return newLeaseWaits() }, func(*History) []any {
		return []any{Awaits{1, 1, true}, Awaits{1, 1, false}, Awaits{2, 2, true}, Committed{a, 1, closes(2)}, Awaits{3, 3, true}, Awaits{3, 3, true}, Committed{a, 1, closes(9)}, Awaits{1, 1, true}}
	}},
	{"a guard that lets an old token through", fenceRule, func(*History) []any {
		write := func(counter uint32, token string) Committed {
			set := &record.SetDataTxn{Path: GuardedPath, Data: []byte(token)}
			return Committed{a, int(counter), &record.Txn{TxnHeader: record.TxnHeader{Session: 1, Zxid: z(1, counter), Type: wire.OpMulti},
				Body: &record.MultiTxn{Ops: []record.SubTxn{{Type: wire.OpCheck, Body: &record.CheckTxn{}}, {Type: wire.OpSetData, Body: set}}}}}
		}
		return []any{write(1, "7"), write(2, "9"), write(3, "8")}
	}},
}

// holder returns a candidate that holds a claim. Its session has the client's number.
func holder(client int) Holder {
	return Holder{Client: client, Session: wire.SessionID(client), Proven: true, Left: time.Second}
}

func reads(client int) Holder {
	k := holder(client)
	k.Shared = true
	return k
}

func claimRule(leases int, now ...Holder) func(*History) Checker {
	return func(*History) Checker { return claims{&present{holders: now, recipe: Recipe{Leases: leases}}} }
}

func fenceRule(*History) Checker { return &fence{} }

// electedRule returns the rule for an ensemble in which server a could not be elected, but b
// could. Client 1 holds a claim. have says whether the servers would have its session if they
// led.
func electedRule(have bool) func(*History) Checker {
	return func(*History) Checker {
		m, err := ensemble.Parse("server.1=h:1:2\nserver.2=h:3:4\n")
		if err != nil {
			panic(err)
		}
		has := func(wire.SessionID) bool { return have }
		return possibleLeaders{&present{holders: []Holder{holder(1)}, servers: []Server{
			{ID: a, Up: true, Members: m, Started: true, WouldHave: has, Current: 1},
			{ID: b, Up: true, Members: m, Started: true, WouldHave: has, Current: 2},
		}}}
	}
}

// TestNoHistoryElectsNoHistory checks that a server without history is counted for another one without, and for no
// server with history. Found by seed 1796000862202564607.
func TestNoHistoryElectsNoHistory(t *testing.T) {
	m, err := ensemble.Parse("server.1=h:1:2\nserver.2=h:3:4\n")
	if err != nil {
		t.Fatal(err)
	}
	for current, want := range map[wire.Epoch]bool{0: true, 1: false} {
		all := []Server{{ID: a, Members: m, Started: true}, {ID: b, Members: m, Started: true, Current: current}}
		if got := electable(all, b); got != want {
			t.Errorf("server %d of epoch %d could be elected: %v", b, current, got)
		}
	}
}

// brokenMultiLocks are sequences of observations that break the rule of locks that are taken
// together.
var brokenMultiLocks = []broken{
	{"a lock with two holders", multiLockRule, func(*History) []any {
		return []any{LockTaken{lock(2, "q"), 2}, LockProven{lock(2, "q")}, LockTaken{lock(3, "p"), 3}}
	}},
	{"a holder's token that is older than the last", multiLockRule, func(*History) []any {
		return []any{LockTaken{lock(1, "p"), 3}, LockTaken{lock(2, "q"), 2}, LockTaken{lock(1, "p"), 3}}
	}},
	{"a holder of all that lacks one", multiLockRule, func(*History) []any {
		return []any{AllTaken{1, []string{"p"}, []string{"p"}}, AllTaken{1, []string{"p", "q"}, []string{"p"}}}
	}},
	{"a lock that a client holds twice", multiLockRule, func(*History) []any {
		again := lock(1, "p")
		again.Attempt = 2
		return []any{LockTaken{lock(1, "p"), 3}, LockTaken{again, 4}}
	}},
	{"a holder's session ends before its term", multiLockRule, func(*History) []any {
		return []any{Committed{a, 1, closes(99)}, Committed{a, 1, closes(1)}}
	}},
}

func multiLockRule(*History) Checker {
	return newMultiLocks(&present{locks: []Lock{lock(1, "p"), lock(2, "q")}})
}

// lock returns a lock that a client holds.
func lock(client int, path string) Lock {
	return Lock{Client: client, Session: wire.SessionID(client), Path: path, Proven: true}
}

// brokenShares are sequences of observations that break the rule of shared parts.
var brokenShares = []broken{
	{"a part with two owners", shareRule, func(*History) []any {
		return []any{PartOwned{owner("m1", 1, "p"), 2}, PartOwned{owner("m2", 2, "q"), 3}, PartProven{owner("m2", 2, "q")}, PartOwned{owner("m2", 2, "p"), 4}}
	}},
	{"a part that a member owns twice", shareRule, func(*History) []any {
		again := owner("m1", 1, "p")
		again.Attempt = 2
		return []any{PartOwned{owner("m1", 1, "p"), 2}, PartOwned{again, 3}}
	}},
	{"an owner's token that is older than the last", shareRule, func(*History) []any {
		return []any{PartOwned{owner("m1", 1, "p"), 3}, PartOwned{owner("m2", 2, "q"), 2}, PartOwned{owner("m1", 1, "p"), 2}}
	}},
	{"an owner's session ends before its term", shareRule, func(*History) []any {
		return []any{PartOwned{owner("m1", 1, "p"), 3}, Committed{a, 1, closes(99)}, Committed{a, 1, closes(1)}}
	}},
	{"a task begun that is over", shareRule, func(*History) []any {
		return []any{submits(a, "t"), TaskBegan{"m1", "t"}, TaskBegan{"m2", "u"}}
	}},
	{"a task said to be over that is not", shareRule, func(*History) []any {
		return []any{submits(a, "t"), TaskBegan{"m1", "t"}, TaskDone{"m1", "t"}}
	}},
	{"a task that goes, and nobody has begun it", shareRule, func(*History) []any {
		return []any{submits(a, "t"), wrote(a, 1, &record.DeleteTxn{Path: ShareTasks + "/t"})}
	}},
	{"a task ended by who does not own it", shareRule, func(*History) []any {
		return []any{submits(a, "t"), TaskBegan{"m1", "t"}, wrote(a, 1, &record.DeleteTxn{Path: ShareTasks + "/t"})}
	}},
}

func shareRule(h *History) Checker {
	return newShares(&present{owners: []Owner{owner("m1", 1, "p"), owner("m2", 2, "q")}}, h)
}

// owner returns a member that owns a part.
func owner(member string, session wire.SessionID, part string) Owner {
	return Owner{Member: member, Session: session, Part: part, Proven: true}
}

func submits(v ensemble.ServerID, task string) Committed {
	return wrote(v, 9, &record.CreateTxn{Path: ShareTasks + "/" + task})
}

// TestARegisterCanBeBroken checks which results of operations on a register have an explanation, also behind the
// first window, and with a write whose answer is lost.
func TestARegisterCanBeBroken(t *testing.T) {
	path := RegisterPaths[1]
	write := func(at int64, op wire.OpCode, v string) Answered {
		return Answered{Request: Request{Client: int(at), Op: op, Path: path, Value: v, Issued: at}, At: at + 1}
	}
	set := func(at int64, v string) Answered { return write(at, wire.OpSetData, v) }
	read := func(at int64, v string) Answered {
		return Answered{Request: Request{Client: int(at), Op: wire.OpGetData, Path: path, Synced: true, Issued: at}, At: at + 1, Record: &wire.DataResponse{Data: []byte(v)}}
	}
	none := func(at int64) Answered {
		return Answered{Request: Request{Client: int(at), Op: wire.OpGetData, Path: path, Synced: true, Issued: at}, At: at + 1, Header: wire.ReplyHeader{Err: wire.ErrNoNode}}
	}
	lost := Lost{Request{Session: 1, Xid: 9, Op: wire.OpSetData, Path: path, Value: "lost", Issued: 6}}
	done := Committed{Txn: &record.Txn{TxnHeader: record.TxnHeader{Session: 1, Cxid: 9, Type: wire.OpSetData}}}
	long := []any{write(0, wire.OpCreate, "0")}
	for i := int64(1); i <= 3*windowOps; i++ {
		long = append(long, set(3*i, fmt.Sprint(i)))
	}
	end := int64(9*windowOps + 10)
	for _, c := range []struct {
		name  string
		whole bool
		seen  []any
	}{
		{"the last value", true, []any{set(1, "a"), read(3, "a"), set(5, "b"), read(7, "b")}},
		{"an overwritten value", false, []any{set(1, "a"), read(3, "a"), set(5, "b"), read(7, "a")}},
		{"a value of nobody", false, []any{set(1, "a"), read(3, "x")}},
		{"a deleted value", false, []any{set(1, "a"), write(3, wire.OpDelete, ""), read(5, "a")}},
		{"nothing after a delete", true, []any{set(1, "a"), write(3, wire.OpDelete, ""), none(5), write(7, wire.OpCreate, "b"), read(9, "b")}},
		{"nothing after a write", false, []any{set(1, "a"), none(3)}},
		{"a write of nothing", false, []any{none(1), set(3, "a")}},
		{"a second create", false, []any{write(1, wire.OpCreate, "a"), write(3, wire.OpCreate, "b")}},
		{"a write whose answer is lost", true, []any{set(1, "a"), lost, done, read(21, "lost")}},
		{"a write that is lost", false, []any{set(1, "a"), lost, read(21, "lost")}},
		{"a lost write that comes too late", false, []any{set(1, "a"), lost, done, read(21, "lost"), read(31, "a")}},
		{"many operations", true, append(slices.Clone(long), read(end, fmt.Sprint(3*windowOps)))},
		{"an overwritten value after many operations", false, append(slices.Clone(long), read(end, fmt.Sprint(3*windowOps-5)))},
	} {
		r := Registers{Now: func() int64 { return 11 }}
		for _, o := range c.seen {
			r.See(o)
		}
		if wrong := r.Explained(); (wrong == "") != c.whole {
			t.Errorf("%s: %q", c.name, wrong)
		}
	}
}

// TestRefusedRequestsHaveNoOrder checks requests that come too late, for a session that has
// moved to another server or has ended. Their refusal does not count as carried out, so its
// order does not matter.
func TestRefusedRequestsHaveNoOrder(t *testing.T) {
	c := newAsIssued()
	for n := range int64(3) {
		c.See(Issued{writes(n)})
	}
	late := func(counter uint32, err wire.Code) Committed {
		return Committed{Txn: &record.Txn{TxnHeader: record.TxnHeader{Session: 1, Cxid: 1, Zxid: z(1, counter), Type: wire.OpError}, Body: &record.ErrorTxn{Err: err}}}
	}
	for _, o := range []Committed{{Txn: setTxn(z(1, 2), "x")}, late(3, wire.ErrSessionMoved), late(4, wire.ErrSessionExpired)} {
		if wrong := c.See(o); wrong != "" {
			t.Error(wrong)
		}
	}
	if c.See(late(5, wire.ErrNoNode)) == "" {
		t.Error("a write behind a later one is not seen")
	}
}
