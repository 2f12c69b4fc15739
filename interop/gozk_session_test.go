package interop

import (
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"bellwether/interop/target"
)

// TestGoZKCloseEndsEphemerals shows that closing a session deletes its ephemerals at once.
func TestGoZKCloseEndsEphemerals(t *testing.T) {
	eachShared(t, func(t *testing.T, s *target.Server) {
		c, other := dial(t, s.Addr), dial(t, s.Addr)
		root := c.root(t, "gozk-close")
		path := other.create(t, root+"/e", "", zk.FlagEphemeral)
		_, _, gone, err := c.ExistsW(path)
		if err != nil {
			t.Fatal(err)
		}
		other.Close()
		wantEvent(t, gone, zk.EventNodeDeleted, path)
	})
}

// TestGoZKReconnectKeepsSessionAndWatches shows that the session, its ephemerals and its
// watches survive a lost connection, and that changes are reported after the reconnect.
func TestGoZKReconnectKeepsSessionAndWatches(t *testing.T) {
	eachShared(t, func(t *testing.T, s *target.Server) {
		way := target.NewProxy(t, s.Addr)
		c, other := dial(t, way.Addr), dial(t, s.Addr)
		root := c.root(t, "gozk-reconnect")
		session := c.SessionID()
		mine := c.create(t, root+"/e", "", zk.FlagEphemeral)
		_, _, changed, err := c.GetW(root)
		if err != nil {
			t.Fatal(err)
		}
		_, _, born, err := c.ExistsW(root + "/later")
		if err != nil {
			t.Fatal(err)
		}
		_, _, listed, err := c.ChildrenW(mine)
		if err != nil {
			t.Fatal(err)
		}

		way.Down()
		c.await(t, zk.StateDisconnected)
		other.set(t, root, "while away")
		way.Up()
		c.await(t, zk.StateHasSession)
		if c.SessionID() != session {
			t.Fatalf("session %#x after the reconnect, was %#x", c.SessionID(), session)
		}
		wantEvent(t, changed, zk.EventNodeDataChanged, root)

		other.create(t, root+"/later", "", zk.FlagPersistent)
		wantEvent(t, born, zk.EventNodeCreated, root+"/later")
		other.remove(t, mine)
		wantEvent(t, listed, zk.EventNodeDeleted, mine)
	})
}

// TestGoZKExpiry shows that a session without a connection expires after its timeout, and its
// ephemerals with it.
func TestGoZKExpiry(t *testing.T) {
	eachShared(t, func(t *testing.T, s *target.Server) {
		way := target.NewProxy(t, s.Addr)
		c, other := dial(t, way.Addr), dial(t, s.Addr)
		root := other.root(t, "gozk-expiry")
		path := c.create(t, root+"/e", "", zk.FlagEphemeral)
		old := c.SessionID()
		_, _, gone, err := other.ExistsW(path)
		if err != nil {
			t.Fatal(err)
		}
		way.Down()
		wantEvent(t, gone, zk.EventNodeDeleted, path)
		way.Up()
		c.await(t, zk.StateExpired)
		c.await(t, zk.StateHasSession)
		if c.SessionID() == old {
			t.Errorf("session %#x was resumed after its end", old)
		}
	})
}

// TestGoZKServerIsKilledAndRestarted shows that everything acknowledged survives a kill of the
// server: znodes, sessions and ephemerals, and the client's watches.
func TestGoZKServerIsKilledAndRestarted(t *testing.T) {
	eachTarget(t, func(t *testing.T, kind target.Kind) {
		s := target.StartFor(t, kind, target.Options{})
		way := target.NewProxy(t, s.Addr)
		c := dialFor(t, way.Addr, time.Minute) // a busy machine can take longer than 10 s to restart ZooKeeper
		root := c.root(t, "gozk-restart")
		session := c.SessionID()
		mine := c.create(t, root+"/e", "kept", zk.FlagEphemeral)
		before := c.set(t, root, "kept")
		_, _, changed, err := c.GetW(root)
		if err != nil {
			t.Fatal(err)
		}

		if kind == target.Apache {
			// ZooKeeper 3.8.0 accepts connections before it has loaded its database. It may
			// then fail with a NullPointerException and leave the client, which has no
			// timeout for the handshake, without an answer.
			way.Down()
		}
		if err := s.Restart(); err != nil {
			t.Fatal(err)
		}
		way.Up()
		c.await(t, zk.StateHasSession)
		if c.SessionID() != session {
			t.Fatalf("session %#x after the restart, was %#x", c.SessionID(), session)
		}
		data, stat, err := c.Get(root)
		if err != nil || string(data) != "kept" || stat.Mzxid != before.Mzxid || stat.Version != 1 {
			t.Errorf("after the restart: %q, %+v, %v; want the stat %+v", data, stat, err, before)
		}
		if !c.exists(t, mine) {
			t.Error("the ephemeral of a live session is gone")
		}
		wantNoEvent(t, changed)
		dial(t, s.Addr).set(t, root, "new")
		wantEvent(t, changed, zk.EventNodeDataChanged, root)
	})
}
