package interop

import (
	"sync/atomic"
	"testing"

	"github.com/go-zookeeper/zk"

	"bellwether/interop/target"
)

// TestGoZKWatchesFireOnce shows that each kind of watch fires once for its change.
func TestGoZKWatchesFireOnce(t *testing.T) {
	eachShared(t, func(t *testing.T, s *target.Server) {
		c, other := dial(t, s.Addr), dial(t, s.Addr)
		root := c.root(t, "gozk-watch")
		path := root + "/n"
		_, _, born, err := c.ExistsW(path)
		if err != nil {
			t.Fatal(err)
		}
		_, _, listed, err := c.ChildrenW(root)
		if err != nil {
			t.Fatal(err)
		}
		other.create(t, path, "", zk.FlagPersistent)
		wantEvent(t, born, zk.EventNodeCreated, path)
		wantEvent(t, listed, zk.EventNodeChildrenChanged, root)

		_, _, changed, err := c.GetW(path)
		if err != nil {
			t.Fatal(err)
		}
		other.set(t, path, "1")
		other.set(t, path, "2")
		wantEvent(t, changed, zk.EventNodeDataChanged, path)

		_, _, gone, err := c.GetW(path)
		if err != nil {
			t.Fatal(err)
		}
		_, _, empty, err := c.ChildrenW(path)
		if err != nil {
			t.Fatal(err)
		}
		other.remove(t, path)
		wantEvent(t, gone, zk.EventNodeDeleted, path)
		wantEvent(t, empty, zk.EventNodeDeleted, path)
	})
}

// TestGoZKWatchNeedsItsNode shows that a failed read leaves no watch, except for exists.
func TestGoZKWatchNeedsItsNode(t *testing.T) {
	eachShared(t, func(t *testing.T, s *target.Server) {
		c := dial(t, s.Addr)
		root := c.root(t, "gozk-nowatch")
		_, _, _, err := c.GetW(root + "/none")
		wantErr(t, "get with watch", err, zk.ErrNoNode)
		_, _, _, err = c.ChildrenW(root + "/none")
		wantErr(t, "children with watch", err, zk.ErrNoNode)
		_, _, events, err := c.GetW(root)
		if err != nil {
			t.Fatal(err)
		}
		c.create(t, root+"/child", "", zk.FlagPersistent)
		c.exists(t, root)
		wantNoEvent(t, events) // a data watch does not fire for a child
		c.set(t, root, "x")
		wantEvent(t, events, zk.EventNodeDataChanged, root)
	})
}

// TestGoZKLock shows that go-zookeeper's lock admits one holder at a time.
func TestGoZKLock(t *testing.T) {
	eachShared(t, func(t *testing.T, s *target.Server) {
		const holders, turns = 4, 5
		c := dial(t, s.Addr)
		root := c.root(t, "gozk-lock")
		var inside, taken atomic.Int32
		turn := func() {
			if n := inside.Add(1); n != 1 {
				t.Errorf("%d holders at once", n)
			}
			taken.Add(1)
			if _, err := c.Set(root, []byte("a turn takes a round trip"), -1); err != nil {
				t.Error(err)
			}
			inside.Add(-1)
		}
		done := make(chan error, holders)
		for range holders {
			lock := zk.NewLock(dial(t, s.Addr).Conn, root+"/lock", world)
			go func() { done <- takeTurns(lock, turns, turn) }()
		}
		for range holders {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
		if n := taken.Load(); n != holders*turns {
			t.Errorf("%d turns were taken, want %d", n, holders*turns)
		}
	})
}

func takeTurns(lock *zk.Lock, turns int, take func()) error {
	for range turns {
		if err := lock.Lock(); err != nil {
			return err
		}
		take()
		if err := lock.Unlock(); err != nil {
			return err
		}
	}
	return nil
}
