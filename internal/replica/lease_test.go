package replica

import (
	"testing"

	"bellwether/internal/leasequery"
	"bellwether/internal/tree"
	"bellwether/wire"
)

// TestSyncAnswersTheLeaseQuestion: a sync whose path is the lease question is answered
// with the length of the lease, one tick. Any other path, including null, is returned as
// it is.
func TestSyncAnswersTheLeaseQuestion(t *testing.T) {
	r := New(tree.New(tree.Options{}), Options{ServerID: 1, TickMS: 2000}, Time{Wall: 1})
	r.Step(Time{Wall: 1}, Connect{Conn: 1, TimeoutMS: 10_000})
	r.Step(Time{Wall: 1}, Synced{Zxid: 1, Generation: r.Ready().Duties[0].Generation})
	if o, ok := r.Next(); !ok || o.Kind != Attached || o.Session == 0 {
		t.Fatalf("no session: %+v", o)
	}
	for _, c := range []struct{ path, want wire.NullString }{
		{wire.Text(leasequery.Question), wire.Text(leasequery.Answer(2000))},
		{wire.Text("/a"), wire.Text("/a")},
		{wire.Text(leasequery.Question + "x"), wire.Text(leasequery.Question + "x")},
		{wire.NullString{}, wire.NullString{}},
	} {
		body := wire.Append(nil, &wire.NullPathRequest{Path: c.path})
		r.Step(Time{Wall: 1}, &Request{Conn: 1, Xid: 7, Op: wire.OpSync, Body: body})
		o, ok := r.Next()
		if !ok || o.Header.Err != wire.OK {
			t.Fatalf("%v: %+v", c.path, o)
		}
		if got := o.Response.(*wire.NullPathResponse).Path; got != c.want {
			t.Errorf("%v: answered %v, want %v", c.path, got, c.want)
		}
	}
}
