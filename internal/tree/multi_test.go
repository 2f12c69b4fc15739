package tree

import (
	"fmt"
	"slices"
	"testing"

	"bellwether/internal/record"
	"bellwether/wire"
)

// results prints the result of a multi: type and code of each operation.
func results(res Result) string {
	out := ""
	for _, r := range res.Response.(*wire.MultiResponse).Results {
		out += fmt.Sprintf("%d:%d ", r.Type, r.Err)
	}
	return out
}

// TestMultiUndecodable: a multi that contains any of these is undecodable as a whole.
func TestMultiUndecodable(t *testing.T) {
	w := newWorld(t, Options{ExtendedTypes: true})
	good := opCreate("/a", 0)
	truncated := multi(good)
	truncated.Body = truncated.Body[:len(truncated.Body)-1]
	rec := func(flags int32) wire.CreateRequest {
		return wire.CreateRequest{Path: "/b", ACL: wire.OpenACL(), Flags: flags}
	}
	for name, req := range map[string]*Request{
		"truncated":     truncated,
		"read":          multi(wire.Op{Type: wire.OpGetData, Request: &wire.PathWatchRequest{Path: "/"}}),
		"mixed":         multi(good, wire.Op{Type: wire.OpGetChildren, Request: &wire.PathWatchRequest{Path: "/"}}),
		"setACL":        multi(wire.Op{Type: wire.OpSetACL, Request: &wire.SetACLRequest{Path: "/", ACL: wire.OpenACL()}}),
		"flags":         multi(good, opCreate("/b", 7)),
		"flags below 0": multi(good, opCreate("/b", -1)),
		"ttl flags":     multi(good, opCreate("/b", 5)),
	} {
		w.expect(name, req, wire.ErrMarshalling)
	}
	ttl := wire.Op{Type: wire.OpCreateTTL, Request: &wire.CreateTTLRequest{CreateRequest: rec(7), TTL: 1}}
	if got := results(w.do(multi(good, ttl, good))); got != "-1:0 -1:-8 -1:-2 " {
		t.Errorf("flags of a createTTL: %s", got)
	}
	w.expect("session", multi(good).by(99), wire.ErrSessionExpired)
	if w.exists("/a") {
		t.Error("a refused multi left something behind")
	}
}

// TestMultiSuccess: each operation sees the effects of the earlier ones, all have the
// same zxid, and the stats are those directly after each operation.
func TestMultiSuccess(t *testing.T) {
	w := newWorld(t, Options{ExtendedTypes: true})
	ttl := wire.Op{Type: wire.OpCreateTTL, Request: &wire.CreateTTLRequest{
		CreateRequest: wire.CreateRequest{Path: "/ttl", ACL: wire.OpenACL(), Flags: 5}, TTL: 10}}
	create2 := opCreate("/n/two", 0)
	create2.Type = wire.OpCreate2
	res := w.ok(multi(
		opCreate("/n", 0), opCheck("/n", 0), opSet("/n", "one", 0), opSet("/n", "three", 1), opCheck("/n", 2),
		create2, opCreate("/n/e-", 3), opCreate("/c", 4), ttl, opDelete("/n/two"),
	))
	if got := results(res); got != "1:0 13:0 5:0 5:0 13:0 15:0 1:0 15:0 15:0 2:0 " || res.Zxid != w.z {
		t.Fatalf("results %s at %v", got, res.Zxid)
	}
	rs := res.Response.(*wire.MultiResponse).Results
	if s := rs[2].Response.(*wire.StatResponse).Stat; s.Version != 1 || s.DataLength != 3 || s.Czxid != w.z || s.Mzxid != w.z {
		t.Errorf("stat of the first setData %+v", s)
	}
	if s := rs[3].Response.(*wire.StatResponse).Stat; s.Version != 2 || s.DataLength != 5 || s.NumChildren != 0 {
		t.Errorf("stat of the second setData %+v", s)
	}
	if r := rs[5].Response.(*wire.PathStatResponse); r.Path != "/n/two" || r.Stat.Czxid != w.z {
		t.Errorf("create2 %+v", r)
	}
	if r := rs[6].Response.(*wire.PathResponse); r.Path != "/n/e-0000000001" {
		t.Errorf("sequential create %+v", r)
	}
	if s := w.stat("/n/e-0000000001"); s.EphemeralOwner != alice {
		t.Errorf("ephemeral %+v", s)
	}
	if s := w.stat("/n"); s.Pzxid != w.z || s.Cversion != 3 || s.NumChildren != 1 {
		t.Errorf("parent %+v", s)
	}
	if got := results(w.ok(multi())); got != "" {
		t.Errorf("empty multi: %s", got)
	}
	// A check is stored with the version after the requested one.
	m := w.txns[len(w.txns)-2].Body.(*record.MultiTxn)
	if c := m.Ops[4].Body.(*record.CheckTxn); c.Version != 3 {
		t.Errorf("check is stored with version %d", c.Version)
	}
	// A create2 is stored as a create, which all servers know.
	if sub := m.Ops[5]; sub.Type != wire.OpCreate {
		t.Errorf("create2 is stored as %v", sub.Type)
	}
}

// TestMultiFailure: a multi that fails changes nothing. Its results show which operation
// failed; its header does not.
func TestMultiFailure(t *testing.T) {
	w := newWorld(t, Options{})
	w.ok(create("/n", 0))
	c := &conn{}
	w.tree.Children(c, "/", true, new(Listing))
	w.tree.AddWatch(c, "/", wire.WatchPersistentRecursive)
	c.take()
	before := dump(w.tree)
	req := multi(opCreate("/a", 0), opSet("/n", "x", 0), opDelete("/n"), opCheck("/n", -1), opCreate("/b", 0), opCreate("/c", 0))
	txn, _ := w.prepare(req)
	if txn.Type != wire.OpMulti || txn.Digest == nil {
		t.Fatalf("transaction %+v", txn)
	}
	m := txn.Body.(*record.MultiTxn)
	logged := ""
	for _, op := range m.Ops {
		logged += fmt.Sprintf("%d ", op.Type)
	}
	if logged != "1 5 2 -1 -1 -1 " {
		t.Errorf("logged as %s", logged)
	}
	res := w.apply(txn)
	if got := results(res); res.Err != wire.OK || got != "-1:0 -1:0 -1:0 -1:-101 -1:-2 -1:-2 " {
		t.Errorf("results %s", got)
	}
	after := dump(w.tree)
	if d := diff(before[:len(before)-1], after[:len(after)-1]); d != "" {
		t.Errorf("something changed:%s", d)
	}
	if e := c.events(); len(e) != 0 {
		t.Errorf("events %v", e)
	}
	if len(w.tree.pend.views) != 0 || w.tree.pend.touched.Len() != 0 {
		t.Error("something is still pending")
	}
	w.expect("what the failed multi deleted", setData("/n", "y", 0), wire.OK)
}

// TestMultiChecks: each operation in a multi fails with the same code as outside a multi.
func TestMultiChecks(t *testing.T) {
	w := newWorld(t, Options{})
	w.ok(createACL("/closed", acl(2, "world:anyone")))
	w.ok(create("/n", 0))
	ttl := wire.Op{Type: wire.OpCreateTTL, Request: &wire.CreateTTLRequest{
		CreateRequest: wire.CreateRequest{Path: "/t", ACL: wire.OpenACL(), Flags: 5}, TTL: 10}}
	plain := wire.Op{Type: wire.OpCreateTTL, Request: &wire.CreateTTLRequest{
		CreateRequest: wire.CreateRequest{Path: "/t", ACL: wire.OpenACL()}, TTL: -1}}
	for _, row := range []struct {
		op   wire.Op
		want wire.Code
	}{
		{opCheck("n", -1), wire.ErrBadArguments},
		{opCheck("/missing", 0), wire.ErrNoNode},
		{opCheck("/closed", 7), wire.ErrNoAuth},
		{opCheck("/n", 7), wire.ErrBadVersion},
		{opCheck("/n", 0), wire.OK},
		{opCheck("/n", -1), wire.OK},
		{opCreate("/closed/x", 0), wire.ErrNoAuth},
		{opDelete("/closed/x"), wire.ErrNoAuth},
		{opDelete("/"), wire.ErrBadArguments},
		{opSet("/n", "", 4), wire.ErrBadVersion},
		{ttl, wire.ErrUnimplemented},
		{plain, wire.ErrBadArguments},
	} {
		r := w.ok(multi(row.op)).Response.(*wire.MultiResponse).Results[0]
		if r.Err != row.want || (r.Type == wire.OpError) != (row.want != wire.OK) {
			t.Errorf("%v %+v: %v %v, want %v", row.op.Type, row.op.Request, r.Type, r.Err, row.want)
		}
	}
}

// TestMultiCreateDeleteSamePathOneEventEach (etcd 17247): a multi that creates and
// deletes a path causes one event for each.
func TestMultiCreateDeleteSamePathOneEventEach(t *testing.T) {
	w := newWorld(t, Options{})
	once, stays, deep := &conn{}, &conn{}, &conn{}
	w.tree.Exists(once, "/x", true, new(wire.StatResponse))
	w.tree.Children(once, "/", true, new(Listing))
	w.tree.AddWatch(stays, "/x", wire.WatchPersistent)
	w.tree.AddWatch(deep, "/", wire.WatchPersistentRecursive)
	for _, c := range []*conn{once, stays, deep} {
		c.take()
	}
	w.ok(multi(opCreate("/x", 0), opDelete("/x"), opCreate("/x", 0), opSet("/x", "y", 0)))
	all := fmt.Sprintf("[NodeCreated /x %[1]d NodeDeleted /x %[1]d NodeCreated /x %[1]d NodeDataChanged /x %[1]d]", w.z)
	for _, row := range []struct {
		name string
		c    *conn
		want string
	}{
		{"one-shot", once, fmt.Sprintf("[NodeCreated /x %[1]d NodeChildrenChanged / %[1]d]", w.z)},
		{"persistent", stays, all},
		{"recursive", deep, all},
	} {
		if got := fmt.Sprint(row.c.events()); got != row.want {
			t.Errorf("%s: %s, want %s", row.name, got, row.want)
		}
	}
}

// TestReplayLeavesTheSameTree: Replay has the same effects as Apply, including events,
// but builds no reply. A transaction that is applied afterwards has a reply again.
func TestReplayLeavesTheSameTree(t *testing.T) {
	leader, other := newWorld(t, Options{}), newWorld(t, Options{})
	seen, told := &conn{}, &conn{}
	for _, at := range []struct {
		tree *Tree
		c    *conn
	}{{leader.tree, seen}, {other.tree, told}} {
		at.tree.AddWatch(at.c, "/", wire.WatchPersistentRecursive)
		at.c.take()
	}
	failing := multi(opCreate("/x", 0), opCheck("/missing", 1))
	for i, q := range []*Request{
		create("/a", 0), container("/c"), setData("/a", "changed", -1), setACL("/a", -1, wire.OpenACL()...),
		multi(opCreate("/a/b", 0), opSet("/a", "again", -1), opDelete("/a/b")), failing, create("/a/e", wire.FlagEphemeral), remove("/c", -1),
	} {
		txn, code := leader.prepare(q)
		if code != wire.OK {
			t.Fatalf("request %d: %v", i, code)
		}
		res := leader.tree.Apply(txn)
		if got := other.tree.Replay(txn); got != (Result{Zxid: txn.Zxid, Err: res.Err}) {
			t.Errorf("request %d: %+v, want the outcome of %+v and no response", i, got, res)
		}
	}
	_, want := leader.tree.Digest()
	if _, got := other.tree.Digest(); got != want {
		t.Errorf("digest %x, want %x", got, want)
	}
	if got, want := told.events(), seen.events(); !slices.Equal(got, want) || len(want) == 0 {
		t.Errorf("events %q, want %q", got, want)
	}
	txn, _ := leader.prepare(create("/last", 0))
	if res := other.tree.Apply(txn); res.Response == nil {
		t.Error("a transaction that is applied after a replay has no response")
	}
	audit(t, other.tree)
}
