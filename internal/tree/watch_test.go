package tree

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"

	"bellwether/wire"
)

// watchAs sets a watch; how names its kind.
func (w *world) watchAs(c *conn, how, path string) {
	w.Helper()
	switch how {
	case "data":
		w.tree.GetData(c, path, true, new(wire.DataResponse))
	case "exists":
		w.tree.Exists(c, path, true, new(wire.StatResponse))
	case "child":
		w.tree.Children(c, path, true, new(Listing))
	case "child2":
		w.tree.Children(c, path, true, new(Listing))
	case "persistent":
		w.tree.AddWatch(c, path, wire.WatchPersistent)
	case "recursive":
		w.tree.AddWatch(c, path, wire.WatchPersistentRecursive)
	default:
		w.Fatalf("no watch %q", how)
	}
	c.take()
}

// TestDeliveredEvents: a table shows which events each kind of watch on /w delivers for a
// sequence of writes. Zxids count from the first write.
func TestDeliveredEvents(t *testing.T) {
	writes := func(w *world) []*Request {
		return []*Request{
			create("/w/kid", 0),                 // 1
			setData("/w/kid", "x", -1),          // 2
			setData("/w", "x", -1),              // 3
			setData("/w", "x", -1),              // 4
			setACL("/w", -1, wire.OpenACL()...), // 5
			create("/w/two", 0),                 // 6
			remove("/w/kid", -1),                // 7
			create("/w/kid", 0),                 // 8
			setData("/w", "x", 99),              // 9 fails
			multi(opDelete("/w/kid"), opDelete("/w/two"), opDelete("/w")), // 10
			create("/w", 0),     // 11
			create("/other", 0), // 12
		}
	}
	for _, row := range []struct{ how, want string }{
		{"data", "3:NodeDataChanged /w"},
		{"exists", "3:NodeDataChanged /w"},
		{"child", "1:NodeChildrenChanged /w"},
		{"child2", "1:NodeChildrenChanged /w"},
		{"persistent", "1:NodeChildrenChanged /w, 3:NodeDataChanged /w, 4:NodeDataChanged /w, 6:NodeChildrenChanged /w, " +
			"7:NodeChildrenChanged /w, 8:NodeChildrenChanged /w, 10:NodeChildrenChanged /w, 10:NodeChildrenChanged /w, 10:NodeDeleted /w, 11:NodeCreated /w"},
		{"recursive", "1:NodeCreated /w/kid, 2:NodeDataChanged /w/kid, 3:NodeDataChanged /w, 4:NodeDataChanged /w, 6:NodeCreated /w/two, " +
			"7:NodeDeleted /w/kid, 8:NodeCreated /w/kid, 10:NodeDeleted /w/kid, 10:NodeDeleted /w/two, 10:NodeDeleted /w, 11:NodeCreated /w"},
		{"data child", "1:NodeChildrenChanged /w, 3:NodeDataChanged /w"},
		{"persistent data", "1:NodeChildrenChanged /w, 3:NodeDataChanged /w, 4:NodeDataChanged /w, 6:NodeChildrenChanged /w, " +
			"7:NodeChildrenChanged /w, 8:NodeChildrenChanged /w, 10:NodeChildrenChanged /w, 10:NodeChildrenChanged /w, 10:NodeDeleted /w, 11:NodeCreated /w"},
		{"persistent recursive", "1:NodeCreated /w/kid, 1:NodeChildrenChanged /w, 2:NodeDataChanged /w/kid, 3:NodeDataChanged /w, 4:NodeDataChanged /w, " +
			"6:NodeCreated /w/two, 6:NodeChildrenChanged /w, 7:NodeDeleted /w/kid, 7:NodeChildrenChanged /w, 8:NodeCreated /w/kid, 8:NodeChildrenChanged /w, " +
			"10:NodeDeleted /w/kid, 10:NodeChildrenChanged /w, 10:NodeDeleted /w/two, 10:NodeChildrenChanged /w, 10:NodeDeleted /w, 11:NodeCreated /w"},
	} {
		w := newWorld(t, Options{})
		w.ok(create("/w", 0))
		c := &conn{}
		for _, how := range fields(row.how) {
			w.watchAs(c, how, "/w")
			w.watchAs(c, how, "/w") // setting a watch twice has no further effect
		}
		first := w.z
		for _, req := range writes(w) {
			w.do(req)
		}
		got := ""
		for i, e := range c.events() {
			if i > 0 {
				got += ", "
			}
			var typ, path string
			var z wire.Zxid
			fmt.Sscanf(e, "%s %s %d", &typ, &path, &z)
			got += fmt.Sprintf("%d:%s %s", z-first, typ, path)
		}
		if got != row.want {
			t.Errorf("%s:\n got %s\nwant %s", row.how, got, row.want)
		}
	}
}

func fields(s string) []string {
	var out []string
	var f string
	for n := 0; n < len(s); n += len(f) + 1 {
		fmt.Sscan(s[n:], &f)
		out = append(out, f)
	}
	return out
}

// TestDeleteFiresOnce: a connection with a data watch and a child watch gets one event
// for a deletion, and both watches end.
func TestDeleteFiresOnce(t *testing.T) {
	w := newWorld(t, Options{})
	w.ok(create("/w", 0))
	both, child := &conn{}, &conn{}
	w.watchAs(both, "data", "/w")
	w.watchAs(both, "child", "/w")
	w.watchAs(child, "child", "/w")
	w.ok(remove("/w", -1))
	w.ok(create("/w", 0))
	w.ok(create("/w/kid", 0))
	want := fmt.Sprintf("[NodeDeleted /w %d]", w.z-2)
	for _, c := range []*conn{both, child} {
		if got := fmt.Sprint(c.events()); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	if c := w.tree.Counts(); c.Watches != 0 || c.WatchPaths != 0 {
		t.Errorf("left: %+v", c)
	}
}

// TestExistsWatchesMissing: a watch on a missing znode fires when the znode is created.
// getData and getChildren of a missing znode set no watch.
func TestExistsWatchesMissing(t *testing.T) {
	w := newWorld(t, Options{})
	c := &conn{}
	w.watchAs(c, "data", "/w")
	w.watchAs(c, "child", "/w")
	if n := w.tree.Counts().Watches; n != 0 {
		t.Errorf("%d watches", n)
	}
	w.watchAs(c, "exists", "/w")
	w.ok(create("/w", 0))
	if got := fmt.Sprint(c.events()); got != fmt.Sprintf("[NodeCreated /w %d]", w.z) {
		t.Errorf("events %s", got)
	}
}

// TestNestedRecursiveWatches: an event that matches several recursive watches of a
// connection is delivered once. A path that only begins with the same letters is not
// below the watched one.
func TestNestedRecursiveWatches(t *testing.T) {
	w := newWorld(t, Options{})
	w.ok(create("/a", 0))
	c := &conn{}
	for _, path := range []string{"/", "/a", "/a/b", "/a/b/c"} {
		w.watchAs(c, "recursive", path)
	}
	other := &conn{}
	w.watchAs(other, "recursive", "/a/b")
	w.ok(create("/a/b", 0))
	w.ok(create("/a/bc", 0))
	w.ok(setData("/", "x", -1))
	z := w.z
	if got := fmt.Sprint(c.events()); got != fmt.Sprintf("[NodeCreated /a/b %d NodeCreated /a/bc %d NodeDataChanged / %d]", z-2, z-1, z) {
		t.Errorf("events %s", got)
	}
	if got := fmt.Sprint(other.events()); got != fmt.Sprintf("[NodeCreated /a/b %d]", z-2) {
		t.Errorf("events %s", got)
	}
}

// TestEventsNeedRead: a client that may not read the znode gets no event, but its
// one-shot watch ends.
func TestEventsNeedRead(t *testing.T) {
	w := newWorld(t, Options{})
	super := id("super:")
	mine := []wire.ACL{acl(31, "digest:me:x")}
	outside, inside, boss := &conn{}, &conn{ids: []wire.ID{id("digest:me:x")}}, &conn{ids: []wire.ID{super}}
	for _, c := range []*conn{outside, inside, boss} {
		w.watchAs(c, "exists", "/n")
		w.watchAs(c, "persistent", "/n")
		w.watchAs(c, "recursive", "/")
	}
	w.ok(createACL("/n", mine...))
	w.ok(createACL("/n/kid", wire.OpenACL()...).by(alice, super))
	w.ok(remove("/n/kid", -1).by(alice, super))
	w.ok(remove("/n", -1))
	z := w.z
	if got := fmt.Sprint(outside.events()); got != fmt.Sprintf("[NodeCreated /n/kid %d NodeDeleted /n/kid %d]", z-2, z-1) {
		t.Errorf("outside: %s", got)
	}
	for _, c := range []*conn{inside, boss} {
		if got := c.events(); len(got) != 6 {
			t.Errorf("inside: %v", got)
		}
	}
	if m := w.tree.watches.modes(outside, "/n"); m != stays {
		t.Errorf("left: %b", m)
	}
}

// TestSetWatches: events that are due are delivered before the reply to setWatches, and
// their watches are not set.
func TestSetWatches(t *testing.T) {
	w := newWorld(t, Options{})
	w.ok(create("/old", 0))
	w.ok(create("/changed", 0))
	w.ok(create("/parent", 0))
	seen := w.z
	w.ok(setData("/changed", "x", -1))
	w.ok(create("/parent/kid", 0))
	c := &conn{}
	lists := wire.SetWatchesRequest{
		RelativeZxid: seen,
		Data:         []string{"/old", "/changed", "/gone", "/parent"},
		Exist:        []string{"/old", "/missing"},
		Child:        []string{"/old", "/parent", "/gone"},
	}
	if code := w.tree.SetWatches(c, &lists); code != wire.OK {
		t.Error(code)
	}
	want := fmt.Sprintf("[NodeDataChanged /changed -1 NodeDeleted /gone -1 NodeCreated /old -1 "+
		"NodeChildrenChanged /parent -1 NodeDeleted /gone -1 reply %d]", w.z)
	if got := fmt.Sprint(c.take()); got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
	for path, want := range map[string]modes{
		"/old": dataOnce | childOnce, "/changed": 0, "/gone": 0, "/missing": dataOnce, "/parent": dataOnce,
	} {
		if got := w.tree.watches.modes(c, path); got != want {
			t.Errorf("%s: %b, want %b", path, got, want)
		}
	}
	// A zxid from the future fires nothing (etcd 20221).
	ahead := &conn{}
	w.tree.SetWatches2(ahead, &wire.SetWatches2Request{
		SetWatchesRequest: wire.SetWatchesRequest{RelativeZxid: w.z + 1000, Data: []string{"/changed"}, Child: []string{"/parent"}},
		Persistent:        []string{"/changed", "/nowhere"}, PersistentRecursive: []string{"/parent"},
	})
	if got := fmt.Sprint(ahead.take()); got != fmt.Sprintf("[reply %d]", w.z) {
		t.Errorf("ahead: %s", got)
	}
	for path, want := range map[string]modes{"/changed": dataOnce | stays, "/nowhere": stays, "/parent": childOnce | recursive} {
		if got := w.tree.watches.modes(ahead, path); got != want {
			t.Errorf("%s: %b, want %b", path, got, want)
		}
	}
}

// TestCheckAndRemoveWatches: each watcher type selects its own watches, and no others are
// removed.
func TestCheckAndRemoveWatches(t *testing.T) {
	all := []string{"data", "child", "persistent", "recursive"}
	bits := map[string]modes{"data": dataOnce, "child": childOnce, "persistent": stays, "recursive": recursive}
	for _, row := range []struct {
		typ  wire.WatcherType
		hits []string
	}{
		{wire.WatcherChildren, []string{"child"}}, {wire.WatcherData, []string{"data"}}, {wire.WatcherAny, all},
		{wire.WatcherPersistent, []string{"persistent"}}, {wire.WatcherPersistentRecursive, []string{"recursive"}},
	} {
		w := newWorld(t, Options{})
		w.ok(create("/w", 0))
		other := &conn{}
		var rest modes
		c := &conn{}
		for _, how := range all {
			w.watchAs(other, how, "/w")
			one := &conn{}
			w.watchAs(one, how, "/w")
			want := wire.ErrNoWatcher
			if slices.Contains(row.hits, how) {
				want = wire.OK
			} else {
				rest |= bits[how]
			}
			if got := w.tree.CheckWatches(one, "/w", row.typ); got != want {
				t.Errorf("check of %s for type %d: %v", how, row.typ, got)
			}
			if got := w.tree.RemoveWatches(one, "/w", row.typ); got != want {
				t.Errorf("remove of %s for type %d: %v", how, row.typ, got)
			}
			if got := w.tree.RemoveWatches(one, "/w", row.typ); got != wire.ErrNoWatcher {
				t.Errorf("second remove: %v", got)
			}
			if log := one.take(); len(log) != 3 {
				t.Errorf("reserved %v", log)
			}
			w.watchAs(c, how, "/w")
		}
		w.tree.RemoveWatches(c, "/w", row.typ)
		if got := w.tree.watches.modes(c, "/w"); got != rest {
			t.Errorf("type %d leaves %b, want %b", row.typ, got, rest)
		}
		if got := w.tree.watches.modes(other, "/w"); got != dataOnce|childOnce|stays|recursive {
			t.Errorf("type %d of one connection leaves another %b", row.typ, got)
		}
		if got := w.tree.CheckWatches(c, "/w/", wire.WatcherAny); got != wire.ErrNoWatcher {
			t.Errorf("another path: %v", got)
		}
	}
}

// TestManyWatchersOnOnePath: each of many watchers gets the event once, and removing any
// one of them is fast.
func TestManyWatchersOnOnePath(t *testing.T) {
	w := newWorld(t, Options{})
	w.ok(create("/w", 0))
	conns := make([]*conn, 3000)
	for i := range conns {
		conns[i] = &conn{session: wire.SessionID(i)}
		w.watchAs(conns[i], "data", "/w")
		w.watchAs(conns[i], "persistent", "/other")
	}
	for i := 0; i < len(conns); i += 3 {
		w.tree.Forget(conns[i])
	}
	w.ok(setData("/w", "x", -1))
	for i, c := range conns {
		if got := len(c.events()); got != min(i%3, 1) {
			t.Fatalf("connection %d has %d events", i, got)
		}
	}
	if c := w.tree.Counts(); c.Watches != 4000 || c.Watchers != 2000 || c.WatchPaths != 1 {
		t.Errorf("counts %+v", c)
	}
	for _, c := range conns {
		w.tree.Forget(c)
		w.tree.Forget(c)
	}
	if c := w.tree.Counts(); c.Watches != 0 || c.Watchers != 0 || c.WatchPaths != 0 || w.tree.watches.recursive.Load() != 0 {
		t.Errorf("counts %+v", c)
	}
}

// TestRemovedWatchIsFreed: a path keeps no reference to a watch that was removed, which would keep its client in memory.
func TestRemovedWatchIsFreed(t *testing.T) {
	w := newWorld(t, Options{})
	conns := make([]*conn, 3)
	for i := range conns {
		conns[i] = &conn{session: wire.SessionID(i + 1)}
		w.watchAs(conns[i], "exists", "/w")
	}
	for _, c := range conns[1:] {
		w.tree.Forget(c)
		p := w.tree.watches.shard("/w").paths["/w"]
		for i, mine := range p.watchers[:cap(p.watchers)] {
			if i >= len(p.watchers) && mine != nil {
				t.Errorf("%d watches are left, and place %d still holds one", len(p.watchers), i)
			}
		}
	}
}

func TestWatchLists(t *testing.T) {
	w := newWorld(t, Options{})
	w.ok(create("/a", 0))
	a, b := &conn{session: alice}, &conn{session: bob}
	w.watchAs(b, "data", "/a")
	w.watchAs(a, "data", "/a")
	w.watchAs(a, "child", "/a")
	w.watchAs(a, "exists", "/b")
	w.watchAs(b, "recursive", "/")
	w.ok(create("/c", 0))
	w.watchAs(a, "child", "/c") // a child watch only: it is counted, but not listed
	want := fmt.Sprintf("[{/ [%[2]v]} {/a [%[1]v %[2]v]} {/b [%[1]v]}]", alice, bob)
	if got := fmt.Sprint(w.tree.WatchesByPath()); got != want {
		t.Errorf("by path %s", got)
	}
	want = fmt.Sprintf("[{%v [/a /b]} {%v [/ /a]}]", alice, bob)
	if got := fmt.Sprint(w.tree.WatchesBySession()); got != want {
		t.Errorf("by session %s", got)
	}
	if c := w.tree.Counts(); c.Watches != 6 || c.WatchPaths != 4 || c.Watchers != 2 || w.tree.watches.recursive.Load() != 1 {
		t.Errorf("counts %+v", c)
	}
}

// TestWatchOnAParentThatHadNone: a transaction changes many children of a znode without
// watches. A watch that is set afterwards fires at the next transaction.
func TestWatchOnAParentThatHadNone(t *testing.T) {
	w := newWorld(t, Options{})
	w.ok(create("/w", 0))
	c := &conn{}
	w.watchAs(c, "child", "/other") // so that there are watches
	w.watchAs(c, "exists", "/w/c")
	w.ok(multi(opCreate("/w/a", 0), opCreate("/w/b", 0)))
	w.watchAs(c, "persistent", "/w")
	w.ok(multi(opCreate("/w/c", 0), opDelete("/w/a")))
	want := []string{fmt.Sprintf("NodeCreated /w/c %d", w.z), fmt.Sprintf("NodeChildrenChanged /w %d", w.z), fmt.Sprintf("NodeChildrenChanged /w %d", w.z)}
	if got := c.take(); !slices.Equal(got, want) {
		t.Errorf("events %q, want %q", got, want)
	}
}

// pathKeeper keeps the paths of its events, like a connection whose client does not read.
type pathKeeper struct {
	conn
	paths []string
}

func (k *pathKeeper) Notify(e Event) { k.paths = append(k.paths, e.Path) }

// TestQueuedEventsKeepTheirPathsAlone: the paths of a session's ephemerals share memory
// while they are deleted. An event that waits for its client keeps only the memory of its
// own path.
func TestQueuedEventsKeepTheirPathsAlone(t *testing.T) {
	const sessions, each = 20, 500
	w := newWorld(t, Options{})
	name := strings.Repeat("n", 2000)
	k := new(pathKeeper)
	heap := func() int {
		w.txns = nil
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int(m.HeapAlloc)
	}
	before := heap()
	for s := range wire.SessionID(sessions) {
		w.open(1000 + s)
		for i := range each {
			w.ok(create(fmt.Sprintf("/%s%d", name, i), wire.FlagEphemeral).by(1000 + s))
		}
		w.tree.Exists(k, fmt.Sprintf("/%s%d", name, s), true, new(wire.StatResponse))
		txn, _ := w.prepare(closeSession(1000 + s))
		w.tree.Apply(txn) // without encoding and decoding it first, as in the leader
	}
	if len(k.paths) != sessions {
		t.Fatalf("%d events", len(k.paths))
	}
	if grown, text := heap()-before, sessions*each*len(name); grown > text/4 {
		t.Errorf("%d events keep %d bytes, the paths of all ephemerals took %d", sessions, grown, text)
	}
	runtime.KeepAlive(k)
	runtime.KeepAlive(w)
}
