package tree

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"bellwether/internal/record"
	"bellwether/wire"
)

// TestSessionLife: a session is opened, owns ephemerals and is closed, and the
// transactions have the right content.
func TestSessionLife(t *testing.T) {
	w := newWorld(t, Options{})
	if ms, ok := w.tree.Session(alice); !ok || ms != 30000 {
		t.Errorf("session %d %v", ms, ok)
	}
	if txn := w.txns[0]; txn.Type != wire.OpCreateSession || txn.Cxid != 0 || txn.Digest == nil || txn.Digest.Tree != 1371985504 {
		t.Errorf("createSession is %+v", txn)
	}
	w.ok(create("/b", wire.FlagEphemeral))
	w.ok(create("/a", wire.FlagEphemeral))
	w.ok(create("/a0", wire.FlagEphemeral).by(bob))
	c := &conn{}
	w.tree.AddWatch(c, "/", wire.WatchPersistentRecursive)
	w.tree.AddWatch(c, "/", wire.WatchPersistent)
	c.take()
	res := w.ok(closeSession(alice))
	txn := w.txns[len(w.txns)-1]
	if got := fmt.Sprint(txn.Body.(*record.CloseSessionTxn).Paths); got != "[/a /b]" || res.Response != nil {
		t.Errorf("closeSession deletes %s, answers %v", got, res)
	}
	want := fmt.Sprintf("[NodeDeleted /a %[1]d NodeChildrenChanged / %[1]d NodeDeleted /b %[1]d NodeChildrenChanged / %[1]d]", w.z)
	if got := fmt.Sprint(c.events()); got != want {
		t.Errorf("events %s, want %s", got, want)
	}
	if _, ok := w.tree.Session(alice); ok || w.exists("/a") || !w.exists("/a0") {
		t.Error("session or ephemerals are still there, or another's are gone")
	}
	if s := w.stat("/"); s.Pzxid != w.z {
		t.Errorf("parent %+v", s)
	}
	w.expect("write of a closed session", create("/x", 0), wire.ErrSessionExpired)
	if txn, code := w.prepare(closeSession(alice)); txn != nil || code != wire.ErrSessionExpired {
		t.Errorf("closing twice: %v %v", txn, code)
	}
	w.ok(closeSession(bob))
	if c := w.tree.Counts(); c.Sessions != 0 || c.Ephemerals != 0 || len(w.tree.sessions) != 0 {
		t.Errorf("counts %+v", c)
	}
	w.open(alice)
	if txn, _ = w.prepare(closeSession(alice)); txn.Body.(*record.CloseSessionTxn).Paths == nil {
		t.Error("closeSession of a session without ephemerals has null paths, want an empty list")
	}
	if txn, code := w.prepare(&Request{Session: 5, Op: wire.OpCreateSession, Body: []byte{1}}); txn != nil || code != wire.ErrMarshalling {
		t.Errorf("createSession cut short: %v %v", txn, code)
	}
}

// TestCloseSessionSeesPending: closing a session takes into account creates and deletes
// that are not applied yet. Requests after the close fail because the session has ended.
func TestCloseSessionSeesPending(t *testing.T) {
	w := newWorld(t, Options{})
	w.ok(create("/old", wire.FlagEphemeral))
	w.ok(create("/gone", wire.FlagEphemeral))
	w.ok(create("/taken", wire.FlagEphemeral))
	var txns []*record.Txn
	step := func(req *Request) {
		txn, code := w.prepare(req)
		if txn == nil {
			t.Fatal(code)
		}
		txns = append(txns, txn)
	}
	step(create("/new", wire.FlagEphemeral))
	step(create("/brief", wire.FlagEphemeral))
	step(remove("/brief", -1))
	step(remove("/gone", -1))
	step(remove("/taken", -1).by(bob))
	step(create("/taken", wire.FlagEphemeral).by(bob))
	step(multi(opCreate("/inmulti", 1), opCheck("/missing", 0)))
	step(closeSession(alice))
	if got := fmt.Sprint(txns[len(txns)-1].Body.(*record.CloseSessionTxn).Paths); got != "[/new /old]" {
		t.Errorf("closeSession deletes %s", got)
	}
	step(create("/late", 0))
	if e, ok := txns[len(txns)-1].Body.(*record.ErrorTxn); !ok || e.Err != wire.ErrSessionExpired || txns[len(txns)-1].Digest != nil {
		t.Errorf("write after the close: %+v", txns[len(txns)-1])
	}
	step(create("/old", 0).by(bob))
	for _, txn := range txns {
		w.apply(txn)
	}
	if !w.exists("/taken") || !w.exists("/old") || w.exists("/new") || w.exists("/late") {
		t.Error("wrong znodes are left")
	}
	p := &w.tree.pend
	if len(p.views)+len(p.sessions)+len(p.ephemerals)+p.touched.Len() != 0 {
		t.Errorf("still pending: %+v", p)
	}
}

// TestPendingSession: a session can write before its creation is applied.
func TestPendingSession(t *testing.T) {
	w := newWorld(t, Options{})
	a, _ := w.prepare(&Request{Session: 7, Op: wire.OpCreateSession, Body: []byte{0, 0, 1, 0}})
	b, _ := w.prepare(create("/x", wire.FlagEphemeral).by(7))
	if b.Type != wire.OpCreate {
		t.Fatalf("write of a pending session is %v", b.Type)
	}
	w.apply(a)
	w.apply(b)
	if ms, _ := w.tree.Session(7); ms != 256 || w.stat("/x").EphemeralOwner != 7 {
		t.Errorf("timeout %d", ms)
	}
}

// TestDiscard: transactions that were prepared and never committed have no effect after
// Discard.
func TestDiscard(t *testing.T) {
	w := newWorld(t, Options{})
	w.ok(create("/a", 0))
	z := w.z
	w.prepare(create("/b", wire.FlagEphemeral))
	w.prepare(remove("/a", -1))
	w.prepare(closeSession(alice))
	w.prepare(&Request{Session: 9, Op: wire.OpCreateSession, Body: []byte{0, 0, 1, 0}})
	w.tree.Discard()
	w.z = z
	w.expect("exists", create("/a", 0), wire.ErrNodeExists)
	w.expect("new", create("/b", wire.FlagEphemeral), wire.OK)
	w.expect("no session", create("/c", 0).by(9), wire.ErrSessionExpired)
	if got := fmt.Sprint(w.tree.ownedPaths(alice)); got != "[/b]" {
		t.Errorf("ephemerals %s", got)
	}
}

// TestCloseSessionOfOldLogs: a closeSession without a list deletes the znodes that the
// session owns. A closeSession with a list deletes the listed znodes, whoever owns them.
func TestCloseSessionOfOldLogs(t *testing.T) {
	w := newWorld(t, Options{})
	w.ok(create("/a", wire.FlagEphemeral))
	w.ok(create("/b", wire.FlagEphemeral).by(bob))
	w.ok(create("/c", wire.FlagEphemeral).by(bob))
	header := func(id wire.SessionID) record.TxnHeader {
		w.z++
		return record.TxnHeader{Session: id, Zxid: w.z, Type: wire.OpCloseSession}
	}
	w.apply(&record.Txn{TxnHeader: header(alice)})
	if w.exists("/a") {
		t.Error("/a is left")
	}
	w.apply(&record.Txn{TxnHeader: header(99), Body: &record.CloseSessionTxn{Paths: []string{"/b", "/missing", "", "/", "x"}}})
	if w.exists("/b") || !w.exists("/c") {
		t.Error("/b is left, or /c gone")
	}
}

// TestCloseSessionWithALongList: a closeSession with very many paths can still be read,
// deletes everything, and has the right digest.
func TestCloseSessionWithALongList(t *testing.T) {
	w := newWorld(t, Options{})
	long := "/" + strings.Repeat("x", 50_000)
	for i := range 20 {
		w.ok(create(fmt.Sprintf("%s%02d", long, i), wire.FlagEphemeral))
	}
	w.ok(closeSession(alice))
	txn := w.txns[len(w.txns)-1]
	if n := len(txn.Body.(*record.CloseSessionTxn).Paths); n != 10 || len(txn.Append(nil)) > wire.FrameMax {
		t.Errorf("%d paths are listed in %d bytes", n, len(txn.Append(nil)))
	}
	if c := w.tree.Counts(); c.Ephemerals != 0 || c.Nodes != 5 {
		t.Errorf("left: %+v", c)
	}
	audit(t, w.tree)
}

// TestClosedListIsCutExactly: the list names as many paths as fit, each with the four bytes of its length.
func TestClosedListIsCutExactly(t *testing.T) {
	for _, c := range []struct {
		lengths []int
		want    int
	}{{[]int{closeListMax - 4}, 1}, {[]int{closeListMax - 3}, 0}, {[]int{100, closeListMax - 108}, 2}, {[]int{100, closeListMax - 107}, 1}} {
		var list []located
		for _, n := range c.lengths {
			list = append(list, located{path: strings.Repeat("x", n)})
		}
		if got := copied(list); len(got) != c.want {
			t.Errorf("%v: %d paths, want %d", c.lengths, len(got), c.want)
		}
	}
}

func TestEphemerals(t *testing.T) {
	w := newWorld(t, Options{})
	w.ok(create("/a", 0))
	for _, path := range []string{"/a/2", "/a/1", "/ab"} {
		w.ok(create(path, wire.FlagEphemeral))
	}
	w.ok(create("/a/bob", wire.FlagEphemeral).by(bob))
	for _, row := range []struct {
		prefix wire.NullString
		want   string
	}{
		{wire.NullString{}, "[/a/1 /a/2 /ab]"}, {wire.Text(""), "[/a/1 /a/2 /ab]"}, {wire.Text(" "), "[/a/1 /a/2 /ab]"},
		{wire.Text("/"), "[/a/1 /a/2 /ab]"}, {wire.Text("/a/"), "[/a/1 /a/2]"}, {wire.Text("/a"), "[/a/1 /a/2 /ab]"}, {wire.Text("/x"), "[]"},
	} {
		c := &conn{session: alice}
		var out wire.EphemeralsResponse
		code := w.tree.Ephemerals(c, row.prefix, &out)
		if got := fmt.Sprint(out.Paths); code != wire.OK || got != row.want || out.Paths == nil {
			t.Errorf("%+v: %s, want %s", row.prefix, got, row.want)
		}
		if log := c.take(); len(log) != 1 {
			t.Errorf("reserved %v", log)
		}
	}
	want := fmt.Sprintf("[{%v [/a/1 /a/2 /ab]} {%v [/a/bob]}]", alice, bob)
	if got := fmt.Sprint(w.tree.EphemeralsBySession()); got != want {
		t.Errorf("by session %s, want %s", got, want)
	}
}

// TestExpiryBuckets: deadlines are rounded up to the end of a tick.
func TestExpiryBuckets(t *testing.T) {
	e := NewExpiry(500)
	e.Add(3, 1000, 0)   // 1500
	e.Add(1, 1000, 499) // 1500
	e.Add(2, 1000, 500) // 2000
	e.Add(4, 7000, 0)   // 7500
	due := func(now int64, want string) {
		t.Helper()
		var ids []wire.SessionID
		for _, d := range e.Due(now) {
			ids = append(ids, d.Session)
		}
		if got := fmt.Sprint(ids); got != want {
			t.Errorf("due at %d: %s, want %s", now, got, want)
		}
	}
	if at, ok := e.Next(); !ok || at != 1500 {
		t.Errorf("next %d", at)
	}
	due(1499, "[]")
	if !e.Touch(3, 700) { // 2000
		t.Error("session 3 is not known")
	}
	e.Touch(2, 100) // earlier than the last known time
	due(1500, "[0x1]")
	if e.Touch(1, 1600) || e.Touch(99, 0) {
		t.Error("an expired or unknown session is touched")
	}
	e.Add(4, 100, 1600) // 2000: a shorter timeout counts at once
	due(1999, "[]")
	if got := fmt.Sprint(e.Buckets()); got != "[{2000 [0x2 0x3 0x4]}]" {
		t.Errorf("buckets %s", got)
	}
	e.Remove(3)
	e.Remove(99)
	e.Add(5, 100, 5000)
	due(9000, "[0x2 0x4 0x5]")
	if _, ok := e.Next(); ok || len(e.sessions) != 0 {
		t.Errorf("%d sessions left", len(e.sessions))
	}
}

// TestCloseSessionAfterTheOldestPending: of several ephemerals that are under way, the oldest is created. It is then listed once at the
// end of its session, and so are the others.
func TestCloseSessionAfterTheOldestPending(t *testing.T) {
	for applied := range 4 {
		w := newWorld(t, Options{})
		var txns []*record.Txn
		for _, path := range []string{"/a", "/b", "/c"} {
			txn, code := w.prepare(create(path, wire.FlagEphemeral))
			if code != wire.OK {
				t.Fatal(code)
			}
			txns = append(txns, txn)
		}
		for _, txn := range txns[:applied] {
			w.apply(txn)
		}
		txn, _ := w.prepare(closeSession(alice))
		paths := slices.Sorted(slices.Values(txn.Body.(*record.CloseSessionTxn).Paths))
		if fmt.Sprint(paths) != "[/a /b /c]" {
			t.Errorf("%d of three are created: %v are to be deleted", applied, paths)
		}
	}
}
