package sim

import (
	"bellwether/internal/claim"
	"bellwether/internal/claim/barrier"
	"bellwether/internal/claim/queues"
	"bellwether/internal/claim/value"
	"bellwether/internal/record"
	"bellwether/internal/sim/check"
	"bellwether/wire"
)

// brokenWork are sequences of observations that break the rules of queues and counters.
var brokenWork = []broken{
	{"an item that is put twice", itemRule, func(_ *check.History, _ *Sim, a, _ *server) []any {
		return []any{putItem(a, "entry-100-0000000001", "x"), putItem(a, "entry-100-0000000002", "x")}
	}},
	{"an item that was said not to be put", itemRule, func(_ *check.History, _ *Sim, a, _ *server) []any {
		return []any{workEnded{&worker{data: "x"}, withdrawn(queues.NewPut(queues.PutConfig{})), false}, putItem(a, "entry-100-0000000001", "x")}
	}},
	{"a put that was said to be, and is not", itemRule, func(_ *check.History, _ *Sim, a, _ *server) []any {
		return []any{workEnded{&worker{data: "x"}, done(queues.NewPut(queues.PutConfig{})), false}}
	}},
	{"an item taken out of turn", itemRule, func(_ *check.History, _ *Sim, a, _ *server) []any {
		return []any{
			putItem(a, "entry-100-0000000001", "x"), putItem(a, "entry-050-0000000002", "y"),
			lists(1, queueItems, "entry-100-0000000001", "entry-050-0000000002"), removes(a, 1, "entry-100-0000000001"),
		}
	}},
	{"an item claimed by two", itemRule, func(_ *check.History, _ *Sim, a, _ *server) []any {
		return []any{putItem(a, "entry-100-0000000001", "x"), takesClaim(a, 1), takesClaim(a, 2)}
	}},
	{"an item removed under another's claim", itemRule, func(_ *check.History, _ *Sim, a, _ *server) []any {
		return []any{putItem(a, "entry-100-0000000001", "x"), takesClaim(a, 1), removes(a, 2, "entry-100-0000000001")}
	}},
	{"another's claim ended", itemRule, func(_ *check.History, _ *Sim, a, _ *server) []any {
		return []any{putItem(a, "entry-100-0000000001", "x"), takesClaim(a, 1), wrote(a, 2, &record.DeleteTxn{Path: queueClaims + "/entry-100-0000000001"})}
	}},
	{"an item taken by who says that it has none", itemRule, func(_ *check.History, _ *Sim, a, _ *server) []any {
		return []any{putItem(a, "entry-100-0000000001", "x"), removes(a, 1, "entry-100-0000000001"),
			workEnded{someWorker(), withdrawn(queues.NewTake(queues.TakeConfig{})), false}}
	}},
	{"an acknowledgement of nothing", itemRule, func(_ *check.History, _ *Sim, a, _ *server) []any {
		return []any{workEnded{someWorker(), done(queues.NewAcknowledgement(queues.AcknowledgementConfig{Session: 1})), false}}
	}},
	{"a barrier passed while it is closed", passageRule, func(_ *check.History, _ *Sim, a, _ *server) []any {
		w, m := someWorker(), done(barrier.NewBarrier(barrierPath, barrier.OpenBarrier))
		return []any{workBegan{w, m}, workEnded{w, m, false}, shuts(a), workEnded{w, m, false}, workBegan{w, m}, workEnded{w, m, false}}
	}},
	{"a barrier closed by who has not", passageRule, func(_ *check.History, _ *Sim, a, _ *server) []any {
		w, m := someWorker(), done(barrier.NewBarrier(barrierPath, barrier.CloseBarrier))
		return []any{shuts(a), workBegan{w, m}, wrote(a, 1, &record.DeleteTxn{Path: barrierPath}), workEnded{w, m, false}, workBegan{w, m}, workEnded{w, m, false}}
	}},
	{"a number that jumps", countRule, func(_ *check.History, _ *Sim, a, _ *server) []any {
		return []any{counted(a, 1, "1"), counted(a, 1, "3")}
	}},
	{"a number counted twice by one", countRule, func(_ *check.History, _ *Sim, a, _ *server) []any {
		return []any{counted(a, 1, "1"), counted(a, 1, "2"), workEnded{someWorker(), value.NewChange(value.ChangeConfig{Path: countPath}, value.Mark{}), true}}
	}},
	{"a number counted by who says that it was not", countRule, func(_ *check.History, _ *Sim, a, _ *server) []any {
		return []any{counted(a, 1, "1"), workEnded{someWorker(), withdrawn(value.NewChange(value.ChangeConfig{Path: countPath}, value.Mark{})), false}}
	}},
	{"an id given out twice", countRule, func(_ *check.History, _ *Sim, _, _ *server) []any {
		return []any{idGiven{nil, 1}, idGiven{nil, 2}, idGiven{nil, 1}}
	}},
}

func itemRule(*check.History, *Sim) check.Checker  { return newItems() }
func countRule(*check.History, *Sim) check.Checker { return newCounts() }

func passageRule(*check.History, *Sim) check.Checker { return newPassages() }

func shuts(v *server) check.Committed { return wrote(v, 1, &record.CreateTxn{Path: barrierPath}) }

func someWorker() *worker {
	return &worker{runner: runner{c: &client{}}, sessions: []wire.SessionID{1}}
}

// wrote returns a transaction of a session.
func wrote(v *server, session wire.SessionID, body record.TxnBody) check.Committed {
	return check.Committed{Server: v.id, Index: 1, Txn: &record.Txn{TxnHeader: record.TxnHeader{Session: session}, Body: body}}
}

func putItem(v *server, name, data string) check.Committed {
	return wrote(v, 9, &record.CreateTxn{Path: queueItems + "/" + name, Data: []byte(data)})
}

func takesClaim(v *server, session wire.SessionID) check.Committed {
	return wrote(v, session, &record.CreateTxn{Path: queueClaims + "/entry-100-0000000001"})
}

func removes(v *server, session wire.SessionID, name string) check.Committed {
	return wrote(v, session, &record.DeleteTxn{Path: queueItems + "/" + name})
}

func counted(v *server, session wire.SessionID, sum string) check.Committed {
	return wrote(v, session, &record.SetDataTxn{Path: countPath, Data: []byte(sum)})
}

// lists says that a session has read a list of items.
func lists(session wire.SessionID, path string, names ...string) answered {
	return answered{&call{session: session, path: path}, response{record: &wire.ChildrenStatResponse{Children: names}}}
}

// withdrawn returns an operation that was given up before it began.
func withdrawn(m operation) operation {
	m.Step(claim.Moment{}, claim.Resign{})
	return m
}

// done returns an operation after the server has accepted each of its requests.
func done(m operation) operation {
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
