package tree

import (
	"fmt"
	"slices"
	"testing"

	"bellwether/wire"
)

// TestHotWatches: the paths with the most watchers come first. For each path, HotWatches says how many
// connections a change would notify, and a change then notifies as many.
func TestHotWatches(t *testing.T) {
	var fired []string
	w := newWorld(t, Options{Fired: func(e Event, n int) { fired = append(fired, fmt.Sprintf("%v %s %d", e.Type, e.Path, n)) }})
	w.ok(create("/a", 0))
	w.ok(create("/a/b", 0))
	w.ok(create("/c", 0))
	for i := range 12 {
		c := &conn{}
		w.tree.GetData(c, "/a/b", i < 8, new(wire.DataResponse))
		w.tree.Children(c, "/a/b", i < 3, new(Listing))
		if i < 2 {
			w.tree.AddWatch(c, "/c", wire.WatchPersistent)
			w.tree.AddWatch(c, "/a", wire.WatchPersistentRecursive)
		}
		if i == 11 {
			w.tree.AddWatch(c, "/a/b", wire.WatchPersistentRecursive)
			w.tree.AddWatch(c, "/missing", wire.WatchPersistent)
			if paths, bytes := w.tree.WatchCost(c); paths != 2 || bytes < 2*watchCost {
				t.Errorf("a client with two watches: %d, %d bytes", paths, bytes)
			}
		}
	}
	want := []HotWatch{
		{Path: "/a/b", Watchers: 9, Data: 8, Children: 3, Recursive: 1, Above: 2, DataEvent: 11, ChildEvent: 3},
		{Path: "/a", Watchers: 2, Recursive: 2, DataEvent: 2},
		{Path: "/c", Watchers: 2, Persistent: 2, DataEvent: 2, ChildEvent: 2},
	}
	if got := w.tree.HotWatches(3); !slices.Equal(got, want) {
		t.Errorf("%+v", got)
	}
	if got := w.tree.HotWatches(1); len(got) != 1 || got[0] != want[0] {
		t.Errorf("the hottest: %+v", got)
	}
	if got := w.tree.HotWatches(4); len(got) != 4 || got[3].Path != "/missing" || got[3].Watchers != 1 {
		t.Errorf("with the path of a single watcher: %+v", got)
	}
	if got := w.tree.HotWatches(0); len(got) != 0 {
		t.Errorf("none asked for: %+v", got)
	}
	if paths, bytes := w.tree.WatchCost(&conn{}); paths != 0 || bytes != 0 {
		t.Errorf("a client without watches: %d, %d bytes", paths, bytes)
	}
	w.ok(create("/a/b/new", 0))
	// The clients with the data watch and the recursive watch above get one event: 8 + 1 (recursive at /a/b).
	w.ok(setData("/a/b", "x", -1))
	if got := fmt.Sprint(fired); got != "[NodeCreated /a/b/new 3 NodeChildrenChanged /a/b 3 NodeDataChanged /a/b 9]" {
		t.Errorf("events: %s", got)
	}
}

// TestEphemeralCounts: only sessions with ephemerals are counted.
func TestEphemeralCounts(t *testing.T) {
	w := newWorld(t, Options{})
	w.ok(create("/e1", wire.FlagEphemeral))
	w.ok(create("/e2", wire.FlagEphemeral))
	if got := w.tree.EphemeralCounts(); len(got) != 1 || got[alice] != 2 {
		t.Errorf("%v", got)
	}
	if !w.tree.mu.TryLock() {
		t.Fatal("the tree is locked afterwards")
	}
	w.tree.mu.Unlock()
}
