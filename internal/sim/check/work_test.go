package check

import (
	"testing"

	"bellwether/internal/claim"
	"bellwether/internal/claim/barrier"
	"bellwether/internal/claim/queues"
	"bellwether/internal/claim/value"
	"bellwether/internal/ensemble"
	"bellwether/internal/record"
	"bellwether/wire"
)

// brokenWork are sequences of observations that break the rules of queues and counters.
var brokenWork = []broken{
	{"an item that is put twice", itemRule, func(_ *History) []any {
		return []any{putItem(a, "entry-100-0000000001", "x"), putItem(a, "entry-100-0000000002", "x")}
	}},
	{"an item that was said not to be put", itemRule, func(_ *History) []any {
		return []any{WorkEnded{Worker: 1, Operation: withdrawn(queues.NewPut(queues.PutConfig{})), Item: "x"}, putItem(a, "entry-100-0000000001", "x")}
	}},
	{"a put that was said to be, and is not", itemRule, func(_ *History) []any {
		return []any{WorkEnded{Worker: 1, Operation: done(queues.NewPut(queues.PutConfig{})), Item: "x"}}
	}},
	{"an item taken out of turn", itemRule, func(_ *History) []any {
		return []any{
			putItem(a, "entry-100-0000000001", "x"), putItem(a, "entry-050-0000000002", "y"),
			lists(1, QueueItems, "entry-100-0000000001", "entry-050-0000000002"), removes(a, 1, "entry-100-0000000001"),
		}
	}},
	{"an item claimed by two", itemRule, func(_ *History) []any {
		return []any{putItem(a, "entry-100-0000000001", "x"), takesClaim(a, 1), takesClaim(a, 2)}
	}},
	{"an item removed under another's claim", itemRule, func(_ *History) []any {
		return []any{putItem(a, "entry-100-0000000001", "x"), takesClaim(a, 1), removes(a, 2, "entry-100-0000000001")}
	}},
	{"another's claim ended", itemRule, func(_ *History) []any {
		return []any{putItem(a, "entry-100-0000000001", "x"), takesClaim(a, 1), wrote(a, 2, &record.DeleteTxn{Path: QueueClaims + "/entry-100-0000000001"})}
	}},
	{"an item taken by who says that it has none", itemRule, func(_ *History) []any {
		return []any{putItem(a, "entry-100-0000000001", "x"), removes(a, 1, "entry-100-0000000001"),
			ended(withdrawn(queues.NewTake(queues.TakeConfig{})), false)}
	}},
	{"an item claimed by who says that it has none", itemRule, func(_ *History) []any {
		return []any{putItem(a, "entry-100-0000000001", "x"), takesClaim(a, 1), ended(withdrawn(queues.NewTake(queues.TakeConfig{})), false)}
	}},
	{"an item asked for that was found claimed", itemRule, func(_ *History) []any {
		asks := func(name string) Issued {
			return Issued{Request{Session: 1, Op: wire.OpMulti, Path: QueueItems + "/" + name}}
		}
		return []any{asks("entry-100-0000000001"), lists(1, QueueClaims, "entry-100-0000000001"), asks("entry-100-0000000002"), asks("entry-100-0000000001")}
	}},
	{"two items claimed by one", itemRule, func(_ *History) []any {
		m := takes("entry-100-0000000001")
		return []any{putItem(a, "entry-100-0000000001", "x"), putItem(a, "entry-100-0000000002", "y"), takesClaim(a, 1), ended(m, false),
			wrote(a, 1, &record.CreateTxn{Path: QueueClaims + "/entry-100-0000000002"}), ended(m, false)}
	}},
	{"an acknowledgement of nothing", itemRule, func(_ *History) []any {
		return []any{ended(done(queues.NewAcknowledgement(queues.AcknowledgementConfig{Session: 1})), false)}
	}},
	{"a barrier passed while it is closed", barrierPassRule, func(_ *History) []any {
		m := done(barrier.NewBarrier(BarrierPath, barrier.OpenBarrier))
		return []any{WorkBegan{1, m}, ended(m, false), shuts(a), ended(m, false), WorkBegan{1, m}, ended(m, false)}
	}},
	{"a barrier closed by who has not", barrierPassRule, func(_ *History) []any {
		m := done(barrier.NewBarrier(BarrierPath, barrier.CloseBarrier))
		return []any{shuts(a), WorkBegan{1, m}, wrote(a, 1, &record.DeleteTxn{Path: BarrierPath}), ended(m, false), WorkBegan{1, m}, ended(m, false)}
	}},
	{"a number that jumps", countRule, func(_ *History) []any {
		return []any{counted(a, 1, "1"), counted(a, 1, "3")}
	}},
	{"a number counted twice by one", countRule, func(_ *History) []any {
		return []any{counted(a, 1, "1"), counted(a, 1, "2"), ended(value.NewChange(value.ChangeConfig{Path: CountPath}, value.Mark{}), true)}
	}},
	{"a number counted by who says that it was not", countRule, func(_ *History) []any {
		return []any{counted(a, 1, "1"), ended(withdrawn(value.NewChange(value.ChangeConfig{Path: CountPath}, value.Mark{})), false)}
	}},
	{"an id given out twice", countRule, func(_ *History) []any {
		return []any{IDGiven{1}, IDGiven{2}, IDGiven{1}}
	}},
}

func itemRule(*History) Checker  { return newItems() }
func countRule(*History) Checker { return newCounts() }

func barrierPassRule(*History) Checker { return newBarrierPasses() }

func shuts(v ensemble.ServerID) Committed { return wrote(v, 1, &record.CreateTxn{Path: BarrierPath}) }

// ended says that worker 1 has ended an operation in session 1.
func ended(m Operation, crashed bool) WorkEnded {
	return WorkEnded{Worker: 1, Operation: m, Sessions: []wire.SessionID{1}, Session: 1, Crashed: crashed}
}

// wrote returns a transaction of a session.
func wrote(v ensemble.ServerID, session wire.SessionID, body record.TxnBody) Committed {
	return Committed{Server: v, Index: 1, Txn: &record.Txn{TxnHeader: record.TxnHeader{Session: session}, Body: body}}
}

func putItem(v ensemble.ServerID, name, data string) Committed {
	return wrote(v, 9, &record.CreateTxn{Path: QueueItems + "/" + name, Data: []byte(data)})
}

func takesClaim(v ensemble.ServerID, session wire.SessionID) Committed {
	return wrote(v, session, &record.CreateTxn{Path: QueueClaims + "/entry-100-0000000001"})
}

func removes(v ensemble.ServerID, session wire.SessionID, name string) Committed {
	return wrote(v, session, &record.DeleteTxn{Path: QueueItems + "/" + name})
}

func counted(v ensemble.ServerID, session wire.SessionID, sum string) Committed {
	return wrote(v, session, &record.SetDataTxn{Path: CountPath, Data: []byte(sum)})
}

// lists says that a session has read a list of items.
func lists(session wire.SessionID, path string, names ...string) Answered {
	return Answered{Request: Request{Session: session, Path: path}, Record: &wire.ChildrenStatResponse{Children: names}}
}

// withdrawn returns an operation that was given up before it began.
func withdrawn(m Operation) Operation {
	m.Step(claim.Moment{}, claim.Resign{})
	return m
}

// done returns an operation after the server has accepted each of its requests.
func done(m Operation) Operation {
	m.Step(claim.Moment{}, claim.Attached{Session: 1})
	for rd := m.Ready(); rd.Request != nil; rd = m.Ready() {
		res := make([]claim.Result, len(rd.Request.Ops))
		for i := range res {
			res[i].Stat.EphemeralOwner = 1
		}
		m.Step(claim.Moment{}, claim.Reply{N: rd.Request.N, Results: res})
	}
	return m
}

// takes returns an operation that has claimed an item in session 1.
func takes(name string) Operation {
	m := queues.NewTake(queues.TakeConfig{Items: QueueItems, Claims: QueueClaims, Line: "/queue.line"})
	m.Step(claim.Moment{}, claim.Attached{Session: 1})
	for rd := m.Ready(); rd.Request != nil; rd = m.Ready() {
		res := make([]claim.Result, len(rd.Request.Ops))
		for i, op := range rd.Request.Ops {
			switch {
			case op.Kind == claim.OpCreate:
				res[i].Path = op.Path + "0000000001"
			case op.Path == QueueItems:
				res[i].Names = []string{name}
			}
		}
		m.Step(claim.Moment{}, claim.Reply{N: rd.Request.N, Results: res})
	}
	return m
}

// TestClaimOfASessionThatIsOver checks that a worker which was told that its session is over may report that it has taken
// nothing, although the end of the session, and so of its claim, is not committed yet: in the moment in which it is told, and
// later. Found by seeds 1795989582210214044 and 1796060175786453086.
func TestClaimOfASessionThatIsOver(t *testing.T) {
	for _, at := range []wire.SessionID{0, 1} {
		c := newItems()
		e := ended(withdrawn(queues.NewTake(queues.TakeConfig{})), false)
		e.Session = at
		for _, o := range []any{putItem(a, "entry-100-0000000001", "x"), takesClaim(a, 1), TurnedAway{Session: 1}, e} {
			if wrong := c.See(o); wrong != "" {
				t.Error(wrong)
			}
		}
	}
}
