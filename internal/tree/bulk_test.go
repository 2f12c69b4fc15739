package tree

import (
	"fmt"
	"runtime"
	"slices"
	"testing"
	"time"

	"bellwether/internal/record"
	"bellwether/wire"
)

// TestListingWatchesDoesNotLockTheTree: watches are looked up, sorted and listed without
// the tree's lock, so another goroutine may hold it.
func TestListingWatchesDoesNotLockTheTree(t *testing.T) {
	w := newWorld(t, Options{})
	c := &conn{session: alice}
	for i := range 1000 {
		w.tree.Exists(c, fmt.Sprintf("/missing-%d", i), true, new(wire.StatResponse))
	}
	w.tree.mu.Lock()
	defer w.tree.mu.Unlock()
	for name, list := range map[string]func() int{
		"WatchesByPath":    func() int { return len(w.tree.WatchesByPath()) },
		"WatchesBySession": func() int { return len(w.tree.WatchesBySession()[0].Paths) },
		"DataWatches":      func() int { n, _, _ := w.tree.DataWatches(); return n },
	} {
		listed := make(chan int, 1)
		go func() { listed <- list() }()
		select {
		case n := <-listed:
			if n != 1000 {
				t.Errorf("%s finds %d watches", name, n)
			}
		case <-time.After(time.Minute):
			t.Fatalf("%s waits for the tree's lock", name)
		}
	}
}

// notifiedClient calls a function when it gets an event.
type notifiedClient struct {
	conn
	notify func()
}

func (c *notifiedClient) Notify(Event) { c.notify() }

// TestSetWatchesDoesNotBlockWriters: while a client sets very many watches, a transaction
// that waits for the tree's lock gets it in between.
func TestSetWatchesDoesNotBlockWriters(t *testing.T) {
	const n = 100 * watchSlice
	w := newWorld(t, Options{})
	told, before := 0, make(chan int, 1)
	c := &notifiedClient{notify: func() {
		if told++; told > 1 {
			return
		}
		go func() {
			w.tree.mu.Lock()
			before <- told
			w.tree.mu.Unlock()
		}()
		for w.tree.mu.TryRLock() { // until the writer waits
			w.tree.mu.RUnlock()
			runtime.Gosched()
		}
	}}
	r := &wire.SetWatches2Request{}
	for i := range n {
		r.Data = append(r.Data, fmt.Sprintf("/missing-%d", i))
	}
	if code := w.tree.SetWatches2(c, r); code != wire.OK || told != n {
		t.Fatalf("%v after %d events", code, told)
	}
	if got := <-before; got > 2*watchSlice {
		t.Errorf("a transaction waited for %d of %d watches", got, n)
	}
}

// TestForgetDoesNotBlockWriters: transactions are applied while the watches of a
// connection that has ended are dropped.
func TestForgetDoesNotBlockWriters(t *testing.T) {
	const n = 200 * watchSlice
	tree := New(Options{})
	for end := time.Now().Add(time.Minute); time.Now().Before(end); {
		c := &conn{}
		for i := range n {
			tree.watches.add(c, fmt.Sprintf("/missing-%d", i), dataOnce)
		}
		done := make(chan struct{})
		go func() {
			tree.Forget(c)
			close(done)
		}()
		between := false
		for left := int64(n); left > 0; {
			tree.mu.Lock()
			left = tree.watches.total.Load()
			tree.mu.Unlock()
			between = between || left > 0 && left < n
		}
		<-done
		if between {
			return
		}
	}
	t.Error("the tree was held until all watches were dropped")
}

// TestEndOfASessionWithManyEphemerals: the end of a session makes no view of an ephemeral
// or of its directory, whether there are many directories or few. Preparing and applying
// it allocate memory less than once for each ephemeral, and both yield often.
func TestEndOfASessionWithManyEphemerals(t *testing.T) {
	for _, perDirectory := range []int{10_000, 1} {
		const n = 60_000
		l := &leader{tree: New(Options{Seed: 1})}
		l.tree.Apply(l.prepare(&Request{Session: alice, Op: wire.OpCreateSession, Body: []byte{0, 0, 1, 0}}))
		ephemeralsOf(l, n, perDirectory)
		yields := 0
		l.tree.OnYield(func() { yields++ })
		before := mallocs()
		txn := l.prepare(closeSession(alice))
		if views := len(l.tree.pend.views); views > 0 {
			t.Errorf("%d znodes have views", views)
		}
		if yields < n/yieldEvery {
			t.Errorf("prepared with %d yields", yields)
		}
		yields = 0
		listed := len(txn.Body.(*record.CloseSessionTxn).Paths)
		l.tree.Apply(txn)
		if yields < n/yieldEvery {
			t.Errorf("applied with %d yields", yields)
		}
		if made := int(mallocs()-before) - listed; made > n {
			t.Errorf("%d in each directory: %d allocations, and %d for the paths of the transaction", perDirectory, made, listed)
		}
		if c := l.tree.Counts(); c.Ephemerals != 0 {
			t.Errorf("%d ephemerals are left", c.Ephemerals)
		}
		if n, first := l.tree.DigestMismatches(); n != 0 {
			t.Errorf("digest mismatch at %v", first)
		}
		if l.tree.pend.losses != nil || l.tree.pend.closings.Len() != 0 {
			t.Error("losses or closings are still pending after the session's end was applied")
		}
		audit(t, l.tree)
	}
}

// TestManyEndsOfSessionsAtOnce: several sessions with ephemerals in the same directories
// end at once, together with other changes of the directories, in any order. Each end is
// prepared over the earlier ones, and the digests are right.
func TestManyEndsOfSessionsAtOnce(t *testing.T) {
	w := newWorld(t, Options{})
	const carol wire.SessionID = 0x100000000000003
	w.open(carol)
	sessions := []wire.SessionID{alice, bob}
	for d := range 6 {
		w.ok(create(fmt.Sprintf("/d%d", d), 0))
		for i := range 4 {
			for _, s := range sessions {
				w.ok(create(fmt.Sprintf("/d%d/%d-%x", d, i, s), wire.FlagEphemeral).by(s))
			}
		}
	}
	steps := []*Request{
		create("/d0/before", 0), // since this request, /d0 has a view of its pending state
		create("/d1/mine", wire.FlagEphemeral),
		setData("/d2/0-"+fmt.Sprintf("%x", alice), "changed", -1),
		closeSession(alice),
		create("/d3/between", 0).by(bob),
		closeSession(bob),
		remove("/d5", -1).by(carol), // it will be empty
	}
	var txns []*record.Txn
	for _, q := range steps {
		txn, code := w.prepare(q)
		if code != wire.OK || txn.Type == wire.OpError {
			t.Fatalf("%v: %v", q.Op, code)
		}
		txns = append(txns, txn)
	}
	var v view
	last := txns[5].Zxid // the end of bob's session
	for d, want := range []int32{1, 0, 0, 1, 0} {
		if !w.tree.look(fmt.Sprintf("/d%d", d), &v) || v.childCount != want || v.stat.Pzxid != last {
			t.Errorf("/d%d will have %d children and pzxid %v, want %d and %v", d, v.childCount, v.stat.Pzxid, want, last)
		}
	}
	if w.tree.look("/d5", &v) {
		t.Error("/d5 will still be there")
	}
	for _, txn := range txns {
		w.apply(txn)
	}
	if n, first := w.tree.DigestMismatches(); n != 0 {
		t.Errorf("digest mismatch at %v", first)
	}
	if c := w.tree.Counts(); c.Ephemerals != 0 {
		t.Errorf("%d ephemerals are left", c.Ephemerals)
	}
	audit(t, w.tree)
}

// TestLongMultiYields: preparing and applying a long multi both yield often.
func TestLongMultiYields(t *testing.T) {
	l := &leader{tree: New(Options{Seed: 1})}
	l.tree.Apply(l.prepare(&Request{Session: alice, Op: wire.OpCreateSession, Body: []byte{0, 0, 1, 0}}))
	l.tree.Apply(l.prepare(request(wire.OpCreate, &wire.CreateRequest{Path: "/directory-000042", ACL: wire.OpenACL()})))
	const n = 10 * yieldEvery
	yields := 0
	l.tree.OnYield(func() { yields++ })
	l.tree.Apply(l.prepare(bigMulti(n)))
	if yields < 2*n/yieldEvery {
		t.Errorf("%d yields", yields)
	}
}

func mallocs() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.Mallocs
}

// TestEventsOfASessionsEnd: when a session ends, its events come in the order of the
// paths, whether or not the transaction names all paths, and in whatever order the
// ephemerals were created.
func TestEventsOfASessionsEnd(t *testing.T) {
	for _, named := range []int{0, 3, 100} {
		w := newWorld(t, Options{})
		w.ok(create("/d", 0))
		var want []string
		for i := range 100 {
			path := fmt.Sprintf("/d/%02d", i*37%100)
			w.ok(create(path, wire.FlagEphemeral))
			want = append(want, path)
		}
		slices.Sort(want)
		c := &conn{}
		w.tree.AddWatch(c, "/d", wire.WatchPersistentRecursive)
		c.take()
		txn, _ := w.prepare(closeSession(alice))
		body := txn.Body.(*record.CloseSessionTxn)
		body.Paths = body.Paths[:named:named]
		w.apply(txn)
		for i, path := range want {
			want[i] = fmt.Sprintf("NodeDeleted %s %d", path, w.z)
		}
		if got := c.events(); !slices.Equal(got, want) {
			t.Errorf("%d paths named: %q", named, got)
		}
	}
}

// TestManyEphemeralsAreNotSorted: a closeSession lists up to sortedMax ephemerals in the order of their paths, and more in
// the order in which they were created.
func TestManyEphemeralsAreNotSorted(t *testing.T) {
	for n, sorted := range map[int]bool{10_000: true, 10_001: false} {
		w := newWorld(t, Options{})
		for i := range n {
			w.ok(create(fmt.Sprintf("/%05d", n-i), wire.FlagEphemeral))
		}
		txn, _ := w.prepare(closeSession(alice))
		if paths := txn.Body.(*record.CloseSessionTxn).Paths; len(paths) != n || slices.IsSorted(paths) != sorted {
			t.Errorf("of %d ephemerals, %d are listed, sorted: %v", n, len(paths), !sorted)
		}
	}
}

// TestEphemeralsBySessionInParts: the list is complete if nothing changes meanwhile, and
// the tree is not locked while it is made.
func TestEphemeralsBySessionInParts(t *testing.T) {
	const n = 5 * snapshotSlice
	w := newWorld(t, Options{})
	for i := range n {
		w.ok(create(fmt.Sprintf("/e%06d", n-i), wire.FlagEphemeral))
	}
	list := w.tree.EphemeralsBySession()
	if len(list) != 1 || len(list[0].Paths) != n || !slices.IsSorted(list[0].Paths) || list[0].Paths[0] != "/e000001" {
		t.Errorf("listed: %v", list)
	}
}
