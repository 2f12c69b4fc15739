package tree

import (
	"testing"

	"bellwether/internal/record"
	"bellwether/wire"
)

// TestFailedMultiLeavesNoTrace: a request that is prepared after a failed multi, and before the multi is
// applied, finds the tree as it was before the multi. This holds also for a znode that the multi has
// changed several times.
func TestFailedMultiLeavesNoTrace(t *testing.T) {
	fails := opCheck("/none", -1)
	for _, c := range []struct {
		name string
		ops  []wire.Op
		next *Request
		want wire.OpCode
	}{
		{"a set", []wire.Op{opSet("/n", "x", 0)}, setData("/n", "y", 0), wire.OpSetData},
		{"two sets of one znode", []wire.Op{opSet("/n", "x", 0), opSet("/n", "y", 1)}, setData("/n", "z", 0), wire.OpSetData},
		{"a create", []wire.Op{opCreate("/a", 0)}, create("/a", 0), wire.OpCreate},
		{"a create and a set", []wire.Op{opCreate("/a", 0), opSet("/a", "x", 0)}, create("/a", 0), wire.OpCreate},
		{"a set and a delete", []wire.Op{opSet("/n", "x", 0), opDelete("/n")}, setData("/n", "y", 0), wire.OpSetData},
		{"a delete and a create", []wire.Op{opDelete("/n"), opCreate("/n", 0)}, create("/n", 0), wire.OpError},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, Options{})
			w.ok(create("/n", 0))
			failed, _ := w.prepare(multi(append(c.ops, fails)...))
			next, _ := w.prepare(c.next)
			if next.Type != c.want {
				t.Errorf("the next request is prepared as %v, want %v", next.Type, c.want)
			}
			before := dump(w.tree)
			w.apply(failed)
			after := dump(w.tree)
			if d := diff(before[:len(before)-1], after[:len(after)-1]); d != "" {
				t.Errorf("the failed multi is applied:%s", d)
			}
		})
	}
}

// watcherOfReserve notes which watch it has on a path when the place of a reply is fixed.
type watcherOfReserve struct {
	conn
	tree *Tree
	path string
	has  []modes
}

func (c *watcherOfReserve) Reserve(wire.Zxid) {
	c.has = append(c.has, c.tree.watches.modes(c, c.path))
}

// TestWatchIsSetBeforeTheReply: the watch of a read is set when the place of the reply is fixed, under the
// same lock as the read. Otherwise a change in between would cause no event, although the client relies on
// the watch.
func TestWatchIsSetBeforeTheReply(t *testing.T) {
	for name, read := range map[string]func(*Tree, Client){
		"getData":     func(x *Tree, c Client) { x.GetData(c, "/n", true, new(wire.DataResponse)) },
		"exists":      func(x *Tree, c Client) { x.Exists(c, "/n", true, new(wire.StatResponse)) },
		"getChildren": func(x *Tree, c Client) { x.Children(c, "/n", true, new(Listing)) },
		"addWatch":    func(x *Tree, c Client) { x.AddWatch(c, "/n", wire.WatchPersistent) },
	} {
		w := newWorld(t, Options{})
		w.ok(create("/n", 0))
		c := &watcherOfReserve{tree: w.tree, path: "/n"}
		if read(w.tree, c); len(c.has) != 1 || c.has[0] == 0 {
			t.Errorf("%s: watches when the place of the reply was fixed: %v", name, c.has)
		}
	}
}

// TestLastZxidNeverGoesBack: a transaction that a snapshot contains already, which a starting server
// replays, does not set the last zxid back.
func TestLastZxidNeverGoesBack(t *testing.T) {
	for name, again := range map[string]func(*Tree, *record.Txn) Result{"apply": (*Tree).Apply, "replay": (*Tree).Replay} {
		w := newWorld(t, Options{DigestOff: true})
		w.ok(create("/a", 0))
		w.ok(create("/b", 0))
		last := w.tree.LastZxid()
		for _, txn := range w.txns {
			if again(w.tree, txn); w.tree.LastZxid() != last {
				t.Errorf("%s of %v: the last zxid is %v, was %v", name, txn.Zxid, w.tree.LastZxid(), last)
			}
		}
	}
}
