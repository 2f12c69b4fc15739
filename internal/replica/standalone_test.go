package replica

import (
	"testing"

	"bellwether/internal/record"
	"bellwether/internal/tree"
	"bellwether/internal/zab"
	"bellwether/wire"
)

// TestRestoreForgetsConnections: after the tree of a standalone server was replaced, a request that is still on its way on an earlier
// connection has no effect and gets no answer, although its session lives.
func TestRestoreForgetsConnections(t *testing.T) {
	loaded := func(sessions ...wire.SessionID) *tree.Tree {
		tr := tree.New(tree.Options{Seed: 1})
		for i, id := range sessions {
			tr.Replay(&record.Txn{TxnHeader: record.TxnHeader{Session: id, Zxid: wire.Zxid(i + 1), Type: wire.OpCreateSession}, Body: &record.CreateSessionTxn{TimeoutMS: 1000}})
		}
		return tr
	}
	r := New(loaded(1), Options{ServerID: 1, TickMS: 500}, Time{Wall: 1})
	pw := wire.SessionID(1).Password()
	r.Step(r.now, Connect{Conn: 1, Session: 1, Password: pw[:], TimeoutMS: 1000})
	if o, _ := r.Next(); o.Session != 1 {
		t.Fatalf("not attached: %+v", o)
	}
	r.Restore(loaded(1, 2))
	if all := r.Expiring(); len(all) != 1 || len(all[0].Sessions) != 2 {
		t.Errorf("of the sessions of the restored tree expire %+v", all)
	}
	r.Step(r.now, &Request{Conn: 1, Xid: 1, Op: wire.OpCreate, Body: wire.Append(nil, &wire.CreateRequest{Path: "/late", ACL: wire.OpenACL()})})
	r.Step(r.now, &Request{Conn: 1, Xid: 2, Op: wire.OpGetData, Body: wire.Append(nil, &wire.PathWatchRequest{Path: "/"})})
	if rd := r.Ready(); len(rd.Duties) > 0 {
		t.Errorf("logged: %+v", rd.Duties)
	}
	if o, ok := r.Next(); ok {
		t.Errorf("answered: %+v", o)
	}
	if err := r.check(); err != nil {
		t.Error(err)
	}
}

// TestDefaultsReplaceZeros: options without a value get their defaults, and others stay.
func TestDefaultsReplaceZeros(t *testing.T) {
	var o Options
	o.defaults()
	if o.TickMS != 3000 || o.ContainerCheckMS != 60_000 || o.ContainersPerMinute != 10_000 || o.ExpireMax != 256 || o.SessionMinMS != 6000 {
		t.Errorf("%+v", o)
	}
	o = Options{TickMS: 1, ContainerCheckMS: 1, ContainersPerMinute: 1, ExpireMax: 1, SessionMinMS: 1}
	o.defaults()
	if o.TickMS != 1 || o.ContainerCheckMS != 1 || o.ContainersPerMinute != 1 || o.ExpireMax != 1 || o.SessionMinMS != 1 {
		t.Errorf("%+v", o)
	}
}

// TestStandaloneServerHasNoEnsemble: a standalone server answers pings for ever, sends no heartbeats, and has no role.
func TestStandaloneServerHasNoEnsemble(t *testing.T) {
	r := New(tree.New(tree.Options{Seed: 1}), Options{ServerID: 1, TickMS: 500}, Time{Wall: 1})
	if r.Status() != nil || r.Elections() != nil || r.PendingSyncs() != 0 || r.Stranded() || r.JoinFails() || r.Lease() != Never {
		t.Errorf("%+v, %v, %d, %v, %v, %d", r.Status(), r.Elections(), r.PendingSyncs(), r.Stranded(), r.JoinFails(), r.Lease())
	}
	if send, due, next := r.Heartbeat(Time{Mono: 1 << 40}, zab.Arrived{}); len(send) != 0 || due != 0 || next != Never {
		t.Errorf("%v, %d, %d", send, due, next)
	}
}
