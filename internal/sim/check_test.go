package sim

import (
	"path"
	"slices"
	"testing"
	"time"

	"bellwether/internal/claim"
	"bellwether/internal/claim/lines"
	"bellwether/internal/ensemble"
	"bellwether/internal/record"
	"bellwether/internal/replica"
	"bellwether/internal/sim/check"
	"bellwether/internal/store"
	"bellwether/internal/tree"
	"bellwether/internal/zab"
	"bellwether/wire"
)

// setTxn returns a transaction that is told from others by its mark.
func setTxn(z wire.Zxid, mark string) *record.Txn {
	return &record.Txn{
		TxnHeader: record.TxnHeader{Session: 1, Cxid: int32(z.Counter()), Zxid: z, Type: wire.OpSetData},
		Body:      &record.SetDataTxn{Path: "/zookeeper", Data: []byte(mark)},
	}
}

func z(epoch wire.Epoch, counter uint32) wire.Zxid { return wire.MakeZxid(epoch, counter) }

// broken is a sequence of observations of which the last one breaks a rule and no earlier
// one does.
type broken struct {
	rule  string
	rules func(h *check.History, s *Sim) check.Checker
	sees  func(h *check.History, s *Sim, a, b *server) []any
}

// brokenRules break each rule on purpose, because a checker that detects nothing is
// worthless.
var brokenRules = []broken{
	{"a request carried out twice", func(*check.History, *Sim) check.Checker { return newAtMostOnce() }, func(_ *check.History, _ *Sim, a, _ *server) []any {
		again := setTxn(z(1, 2), "x")
		again.Cxid = 1
		return []any{check.Committed{Server: a.id, Index: 1, Txn: setTxn(z(1, 1), "x")}, check.Committed{Server: a.id, Index: 2, Txn: again}}
	}},
	{"an answered write that nobody has", func(h *check.History, _ *Sim) check.Checker { return ackedWrites{h} }, func(h *check.History, _ *Sim, _, _ *server) []any {
		h.Add(setTxn(z(1, 1), "x"))
		c := &client{}
		return []any{
			answered{&call{client: c, session: 1, xid: 1, op: wire.OpSetData}, response{header: wire.ReplyHeader{Zxid: z(1, 1)}}},
			answered{&call{client: c, session: 1, xid: 2, op: wire.OpSetData}, response{header: wire.ReplyHeader{Zxid: z(1, 2)}}},
		}
	}},
	{"another's write for an answer", func(h *check.History, _ *Sim) check.Checker { return ackedWrites{h} }, func(h *check.History, _ *Sim, _, _ *server) []any {
		h.Add(setTxn(z(1, 1), "x"))
		return []any{answered{&call{client: &client{}, session: 2, xid: 1, op: wire.OpSetData}, response{header: wire.ReplyHeader{Zxid: z(1, 1)}}}}
	}},
	{"answers out of order", func(*check.History, *Sim) check.Checker { return sessionOrder{} }, func(_ *check.History, _ *Sim, _, _ *server) []any {
		return []any{answered{&call{client: &client{}, xid: 1}, response{header: wire.ReplyHeader{Xid: 2}}}}
	}},
	{"older than what was shown", func(*check.History, *Sim) check.Checker { return sessionOrder{} }, func(_ *check.History, _ *Sim, _, _ *server) []any {
		return []any{answered{&call{client: &client{seen: z(1, 2)}, xid: 1}, response{header: wire.ReplyHeader{Xid: 1, Zxid: z(1, 1)}}}}
	}},
	{"an event behind the answer that knows of it", func(h *check.History, _ *Sim) check.Checker { return newWatchOrder(h) }, func(h *check.History, _ *Sim, _, _ *server) []any {
		h.Add(setTxn(z(1, 1), "x"))
		c := &client{watches: []watch{{path: "/zookeeper"}}}
		return []any{
			answered{&call{client: c}, response{}},
			answered{&call{client: c}, response{header: wire.ReplyHeader{Zxid: z(1, 1)}}},
		}
	}},
	{"an event that nobody watches for", func(h *check.History, _ *Sim) check.Checker { return newWatchOrder(h) }, func(_ *check.History, _ *Sim, _, _ *server) []any {
		c := &client{watches: []watch{{path: "/a"}}}
		return []any{
			notified{c, tree.Event{Type: wire.EventNodeDataChanged, Path: "/a"}},
			notified{c, tree.Event{Type: wire.EventNodeChildrenChanged, Path: "/a"}},
		}
	}},
	{"a later write with an earlier zxid", func(*check.History, *Sim) check.Checker { return newRealTime() }, func(_ *check.History, _ *Sim, _, _ *server) []any {
		first, second := &call{client: &client{}, op: wire.OpSetData}, &call{client: &client{}, op: wire.OpSetData}
		return []any{
			issued{first}, answered{first, response{header: wire.ReplyHeader{Zxid: z(1, 2)}}},
			issued{second}, answered{second, response{header: wire.ReplyHeader{Zxid: z(1, 1)}}},
		}
	}},
	{"a read behind a sync that shows the past", func(*check.History, *Sim) check.Checker { return newRealTime() }, func(_ *check.History, _ *Sim, _, _ *server) []any {
		write, read := &call{client: &client{}, op: wire.OpSetData}, &call{client: &client{}, op: wire.OpGetData, synced: true}
		return []any{
			issued{write}, answered{write, response{header: wire.ReplyHeader{Zxid: z(1, 2)}}},
			issued{read}, answered{read, response{header: wire.ReplyHeader{Zxid: z(1, 1)}}},
		}
	}},
	{"a session that ends before its deadline", func(_ *check.History, s *Sim) check.Checker { return claims{s} }, func(_ *check.History, s *Sim, a, _ *server) []any {
		holder(s, 9)
		end := &record.Txn{TxnHeader: record.TxnHeader{Session: 9, Zxid: z(1, 1), Type: wire.OpCloseSession}, Body: &record.CloseSessionTxn{}}
		return []any{check.Committed{Server: a.id, Index: 1, Txn: setTxn(z(1, 1), "x")}, check.Committed{Server: a.id, Index: 1, Txn: end}}
	}},
	{"two candidates that lead", func(_ *check.History, s *Sim) check.Checker { return claims{s} }, func(_ *check.History, s *Sim, _, _ *server) []any {
		one := holder(s, 9)
		return []any{termBegan{one, 1}, termBegan{&candidate{runner: runner{c: &client{}}}, 2}}
	}},
	{"a term that is prolonged into another's", func(_ *check.History, s *Sim) check.Checker { return claims{s} }, func(_ *check.History, s *Sim, _, _ *server) []any {
		one, two := holder(s, 9), holder(s, 10)
		idle := newCandidate(one.c)
		s.clients = []*client{one.c, two.c}
		return []any{termProven{idle}, termProven{one}}
	}},
	{"a reader beside a writer", func(_ *check.History, s *Sim) check.Checker { return claims{s} }, func(_ *check.History, s *Sim, _, _ *server) []any {
		s.opt.Recipe = ReadWriteLock
		one := holder(s, 9)
		one.shared = true
		return []any{termBegan{&candidate{runner: runner{c: &client{}}, shared: true}, 1}, termBegan{&candidate{runner: runner{c: &client{}}}, 2}}
	}},
	{"more than the leases", func(_ *check.History, s *Sim) check.Checker { return claims{s} }, func(_ *check.History, s *Sim, _, _ *server) []any {
		s.opt.Recipe, s.opt.Leases = Semaphore, 2
		one := holder(s, 9)
		two := holder(s, 10)
		began := termBegan{two, 1}
		s.clients = []*client{one.c, two.c}
		return []any{began, termBegan{&candidate{runner: runner{c: &client{}}}, 2}}
	}},
	{"a read of what is gone", func(h *check.History, _ *Sim) check.Checker { return shown{h} }, func(h *check.History, _ *Sim, _, _ *server) []any {
		create := &record.Txn{TxnHeader: record.TxnHeader{Zxid: z(1, 1), Type: wire.OpCreate}, Body: &record.CreateTxn{Path: "/a", ACL: wire.OpenACL()}}
		h.Add(create)
		h.Add(&record.Txn{TxnHeader: record.TxnHeader{Zxid: z(1, 2), Type: wire.OpDelete}, Body: &record.DeleteTxn{Path: "/a"}})
		read := func(at wire.Zxid, err wire.Code) answered {
			return answered{&call{client: &client{}, op: wire.OpExists, path: "/a"},
				response{header: wire.ReplyHeader{Zxid: at, Err: err}, record: &wire.StatResponse{Stat: wire.Stat{Mzxid: z(1, 1)}}}}
		}
		return []any{read(z(1, 1), wire.OK), read(z(1, 2), wire.ErrNoNode), read(z(1, 2), wire.OK)}
	}},
	{"an answer from behind the history", func(h *check.History, _ *Sim) check.Checker { return shown{h} }, func(h *check.History, _ *Sim, _, _ *server) []any {
		return []any{answered{&call{client: &client{}, op: wire.OpSync}, response{header: wire.ReplyHeader{Zxid: z(1, 1)}}}}
	}},
	{"a write that nobody has issued", func(*check.History, *Sim) check.Checker { return newAsIssued() }, func(_ *check.History, _ *Sim, a, _ *server) []any {
		asked := func(xid int32) issued {
			return issued{&call{client: &client{}, session: 1, xid: xid, op: wire.OpSetData}}
		}
		return []any{asked(1), check.Committed{Server: a.id, Index: 1, Txn: setTxn(z(1, 1), "x")}, check.Committed{Server: a.id, Index: 2, Txn: setTxn(z(1, 2), "x")}}
	}},
	{"writes in another order than issued", func(*check.History, *Sim) check.Checker { return newAsIssued() }, func(_ *check.History, _ *Sim, a, _ *server) []any {
		asked := func(xid int32) issued {
			return issued{&call{client: &client{}, session: 1, xid: xid, op: wire.OpSetData}}
		}
		return []any{asked(1), asked(2), check.Committed{Server: a.id, Index: 1, Txn: setTxn(z(1, 2), "x")}, check.Committed{Server: a.id, Index: 2, Txn: setTxn(z(2, 1), "x")}}
	}},
	{"an event of nothing", func(h *check.History, _ *Sim) check.Checker { return newRealEvents(h) }, func(h *check.History, _ *Sim, _, _ *server) []any {
		h.Add(setTxn(z(1, 1), "x"))
		event := func(at wire.Zxid) notified {
			return notified{&client{}, tree.Event{Type: wire.EventNodeDataChanged, Path: "/zookeeper", Zxid: at}}
		}
		return []any{event(z(1, 1)), event(z(1, 2))}
	}},
	{"events in another order than the changes", func(h *check.History, _ *Sim) check.Checker { return newRealEvents(h) }, func(h *check.History, _ *Sim, _, _ *server) []any {
		h.Add(setTxn(z(1, 1), "x"))
		h.Add(setTxn(z(1, 2), "x"))
		c := &client{}
		event := func(at wire.Zxid) notified {
			return notified{c, tree.Event{Type: wire.EventNodeDataChanged, Path: "/zookeeper", Zxid: at}}
		}
		return []any{event(z(1, 2)), event(z(1, 1))}
	}},
	{"an end of a holder's session in the log of who could lead", func(_ *check.History, s *Sim) check.Checker { return possibleLeaders{s} }, func(_ *check.History, s *Sim, a, b *server) []any {
		holder(s, 9)
		end := &record.Txn{TxnHeader: record.TxnHeader{Session: 9, Zxid: z(1, 1), Type: wire.OpCloseSession}, Body: &record.CloseSessionTxn{}}
		r := roster{places: []place{votes, votes}}
		s.servers = []*server{a, b}
		for _, v := range s.servers {
			v.members, v.log, v.tree = r.list(), zab.NewLog(0, 0), newTree()
		}
		b.saved.Current = 1 // a could not be elected, but b could
		return []any{check.Ordered{Server: a.id, Duty: &replica.Duty{Append: []*record.Txn{end}}}, check.Ordered{Server: b.id, Duty: &replica.Duty{Append: []*record.Txn{end}}}}
	}},
	{"a token that is older than the last", func(*check.History, *Sim) check.Checker { return &fence{} }, func(_ *check.History, s *Sim, _, _ *server) []any {
		one := holder(s, 9)
		return []any{termBegan{one, 2}, termBegan{one, 3}, termBegan{one, 2}}
	}},
	{"an old token that is admitted", func(*check.History, *Sim) check.Checker { return &fence{} }, func(_ *check.History, s *Sim, _, _ *server) []any {
		over := func(token wire.Zxid) *term { return &term{k: holder(s, 9), token: token} }
		return []any{used{over(2), true}, used{over(3), true}, used{over(2), false}, used{over(2), true}}
	}},
	{"a holder that is refused", func(*check.History, *Sim) check.Checker { return &fence{} }, func(_ *check.History, s *Sim, _, _ *server) []any {
		k := holder(s, 9)
		return []any{used{&term{k: k, token: 2}, false}, used{&term{k: k, line: k.line, token: 2}, false}}
	}},
	{"a guard that lets an old token through", func(*check.History, *Sim) check.Checker { return &fence{} }, func(_ *check.History, _ *Sim, a, _ *server) []any {
		write := func(counter uint32, token string) check.Committed {
			set := &record.SetDataTxn{Path: guardedPath, Data: []byte(token)}
			return check.Committed{Server: a.id, Index: int(counter), Txn: &record.Txn{TxnHeader: record.TxnHeader{Session: 1, Zxid: z(1, counter), Type: wire.OpMulti},
				Body: &record.MultiTxn{Ops: []record.SubTxn{{Type: wire.OpCheck, Body: &record.CheckTxn{}}, {Type: wire.OpSetData, Body: set}}}}}
		}
		return []any{write(1, "7"), write(2, "9"), write(3, "8")}
	}},
}

// holder returns a candidate that leads.
func holder(s *Sim, session wire.SessionID) *candidate {
	c := &client{sim: s, id: 1, session: session, random: &random{}}
	c.clock = newClock(0)
	k := newCandidate(c)
	c.candidate = k
	s.clients = []*client{c}
	now := k.now()
	step := func(ev claim.Event) *claim.Request { k.line.Step(now, ev); return k.line.Ready().Request }
	q := step(claim.Attached{Session: session, Lease: claim.Lease{Sent: now, Timeout: 10 * time.Second, Delay: time.Second}})
	var own claim.Result
	for q != nil && k.line.State().Phase != lines.Leading {
		r := claim.Reply{N: q.N}
		for _, op := range q.Ops {
			res := claim.Result{Failed: -1, Path: op.Path}
			switch op.Kind {
			case claim.OpCreate:
				res.Path += "0000000001"
				res.Stat = wire.Stat{EphemeralOwner: session, Czxid: 1}
				own = res
			case claim.OpList:
				res.Names = []string{path.Base(own.Path)}
			case claim.OpGet:
				res.Path, res.Stat = own.Path, own.Stat
			}
			r.Results = append(r.Results, res)
		}
		q = step(r)
	}
	return k
}

func TestEachRuleCanBeBroken(t *testing.T) {
	for _, b := range slices.Concat(brokenRules, brokenCommits, brokenBarriers, brokenWork, brokenCaches, brokenStreams, brokenWords, brokenShares, brokenSeveral, brokenPlaces, brokenLocals) {
		t.Run(b.rule, func(t *testing.T) {
			s := &Sim{random: &random{1}, history: check.NewHistory(newTree())}
			s.opt.TickMS = 500
			servers := [2]*server{}
			for i := range servers {
				st, err := store.Open(store.NewMem(1), storeOptions())
				if err != nil {
					t.Fatal(err)
				}
				servers[i] = &server{sim: s, id: ensemble.ServerID(i + 1), store: st}
				servers[i].writer.v = servers[i]
			}
			s.servers = servers[:]
			c := b.rules(&s.history, s)
			all := b.sees(&s.history, s, servers[0], servers[1])
			for i, o := range all {
				wrong := c.See(o)
				if last := i == len(all)-1; (wrong != "") != last {
					t.Errorf("%s says %q of observation %d of %d", c.Name(), wrong, i+1, len(all))
				}
			}
		})
	}
}

// TestARegisterCanBeBroken checks that a register from which a client reads an overwritten
// value has no explanation.
func TestARegisterCanBeBroken(t *testing.T) {
	write := func(at int64, v string) *call {
		return &call{client: &client{id: int(at)}, op: wire.OpSetData, path: registerPath, value: v, issued: at, done: at + 1}
	}
	read := func(at int64, v string) *call {
		return &call{client: &client{id: int(at)}, op: wire.OpGetData, path: registerPath, synced: true, issued: at, done: at + 1, record: &wire.DataResponse{Data: []byte(v)}}
	}
	for _, c := range []struct {
		last  *call
		whole bool
	}{{read(7, "b"), true}, {read(7, "a"), false}} {
		s := &Sim{}
		for _, k := range []*call{write(1, "a"), read(3, "a"), write(5, "b"), c.last} {
			s.done(k)
		}
		s.checkRegister()
		if (s.failed == nil) != c.whole {
			t.Errorf("read %q last: %v", c.last.record.(*wire.DataResponse).Data, s.failed)
		}
	}
}

// TestWhatIsTurnedAwayIsNotCarriedOut checks requests that come too late, for a session
// that has moved to another server or has ended. Their refusal does not count as carried
// out, so its order does not matter.
func TestWhatIsTurnedAwayIsNotCarriedOut(t *testing.T) {
	c := newAsIssued()
	for xid := range int32(3) {
		c.See(issued{&call{client: &client{}, session: 1, xid: xid, op: wire.OpSetData}})
	}
	late := func(counter uint32, err wire.Code) check.Committed {
		return check.Committed{Txn: &record.Txn{TxnHeader: record.TxnHeader{Session: 1, Cxid: 1, Zxid: z(1, counter), Type: wire.OpError}, Body: &record.ErrorTxn{Err: err}}}
	}
	for _, o := range []check.Committed{{Txn: setTxn(z(1, 2), "x")}, late(3, wire.ErrSessionMoved), late(4, wire.ErrSessionExpired)} {
		if wrong := c.See(o); wrong != "" {
			t.Error(wrong)
		}
	}
	if c.See(late(5, wire.ErrNoNode)) == "" {
		t.Error("a write behind a later one is not seen")
	}
}
