package interop

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"bellwether/interop/target"
)

// TestGoZKCreateModes shows that every create mode creates the right kind of znode, with the
// right name and stat.
func TestGoZKCreateModes(t *testing.T) {
	eachShared(t, func(t *testing.T, s *target.Server) {
		c := dial(t, s.Addr)
		root := c.root(t, "gozk-modes")
		for i, flag := range []int32{zk.FlagSequence, zk.FlagEphemeralSequential} {
			want := numbered(root+"/s-", i)
			if got := c.create(t, root+"/s-", "x", flag); got != want {
				t.Errorf("sequential create %d made %s, want %s", i, got, want)
			}
		}
		c.create(t, root+"/e", "x", zk.FlagEphemeral)
		if _, stat, _ := c.Get(root + "/e"); stat.EphemeralOwner != c.SessionID() {
			t.Errorf("ephemeralOwner %#x, want session %#x", stat.EphemeralOwner, c.SessionID())
		}
		if _, err := c.CreateContainer(root+"/c", nil, zk.FlagContainer, world); err != nil {
			t.Errorf("container: %v", err)
		}
		if _, err := c.CreateTTL(root+"/t", nil, zk.FlagTTL, world, time.Hour); err != nil {
			t.Errorf("TTL: %v", err)
		}
		got, err := c.CreateTTL(root+"/t-", nil, zk.FlagPersistentSequentialWithTTL, world, time.Hour)
		if err != nil || got != numbered(root+"/t-", 5) {
			t.Errorf("sequential TTL made %s, %v; want number 5", got, err)
		}
		for _, name := range []string{"c", "t"} {
			if _, stat, _ := c.Exists(root + "/" + name); stat.EphemeralOwner != 0 {
				t.Errorf("%s shows ephemeralOwner %#x", name, stat.EphemeralOwner)
			}
		}
	})
}

// TestGoZKExpiredZnodesAreDeleted shows that a TTL znode is deleted when its time is over, and a
// container after its last child was deleted.
func TestGoZKExpiredZnodesAreDeleted(t *testing.T) {
	eachShared(t, func(t *testing.T, s *target.Server) {
		c := dial(t, s.Addr)
		root := c.root(t, "gozk-reap")
		if _, err := c.CreateTTL(root+"/ttl", nil, zk.FlagTTL, world, 100*time.Millisecond); err != nil {
			t.Fatal(err)
		}
		if _, err := c.CreateContainer(root+"/box", nil, zk.FlagContainer, world); err != nil {
			t.Fatal(err)
		}
		c.create(t, root+"/box/child", "", zk.FlagPersistent)
		c.remove(t, root+"/box/child")
		c.awaitGone(t, root+"/ttl")
		c.awaitGone(t, root+"/box")
	})
}

// TestGoZKCreateErrors shows which creates are refused, and with which error.
func TestGoZKCreateErrors(t *testing.T) {
	eachShared(t, func(t *testing.T, s *target.Server) {
		c := dial(t, s.Addr)
		root := c.root(t, "gozk-create")
		c.create(t, root+"/e", "", zk.FlagEphemeral)
		for _, test := range []struct {
			path string
			acl  []zk.ACL
			want error
		}{
			{root, world, zk.ErrNodeExists},
			{root + "/none/child", world, zk.ErrNoNode},
			{root + "/e/child", world, zk.ErrNoChildrenForEphemerals},
			{root + "/noacl", nil, zk.ErrInvalidACL},
			{root + "/badacl", []zk.ACL{{Perms: 31, Scheme: "nosuch", ID: "x"}}, zk.ErrInvalidACL},
			{root + "/auth", zk.AuthACL(zk.PermAll), zk.ErrInvalidACL},
			{"/zookeeper/mine", world, nil},
			{"/zookeeper", world, zk.ErrNodeExists},
		} {
			_, err := c.Create(test.path, nil, zk.FlagPersistent, test.acl)
			wantErr(t, "create "+test.path, err, test.want)
		}
		c.remove(t, "/zookeeper/mine")
	})
}

// TestGoZKDataAndVersions shows that data, versions and stat change together.
func TestGoZKDataAndVersions(t *testing.T) {
	eachShared(t, func(t *testing.T, s *target.Server) {
		c := dial(t, s.Addr)
		root := c.root(t, "gozk-data")
		first := c.set(t, root, "one")
		if first.Version != 1 || first.DataLength != 3 || first.Mzxid <= first.Czxid {
			t.Errorf("stat after the first set: %+v", first)
		}
		_, err := c.Set(root, []byte("late"), 0)
		wantErr(t, "set at an old version", err, zk.ErrBadVersion)
		data, stat, err := c.Get(root)
		if err != nil || string(data) != "one" || *stat != *first {
			t.Errorf("get: %q, %+v, %v; want the state after the set", data, stat, err)
		}
		big := strings.Repeat("x", 1<<20-200)
		c.set(t, root, big)
		if data, _, _ := c.Get(root); string(data) != big {
			t.Errorf("%d bytes came back of %d", len(data), len(big))
		}
		_, _, err = c.Get(root + "/none")
		wantErr(t, "get of no node", err, zk.ErrNoNode)
		c.create(t, root+"/child", "", zk.FlagPersistent)
		wantErr(t, "delete of a parent", c.Delete(root, -1), zk.ErrNotEmpty)
		wantErr(t, "delete at a wrong version", c.Delete(root+"/child", 7), zk.ErrBadVersion)
		c.remove(t, root+"/child")
		c.remove(t, root)
		wantErr(t, "delete of no node", c.Delete(root, -1), zk.ErrNoNode)
	})
}

// TestGoZKChildrenCounters shows that children are listed with their parent's stat, and that
// a deletion does not decrease the sequence counter.
func TestGoZKChildrenCounters(t *testing.T) {
	eachShared(t, func(t *testing.T, s *target.Server) {
		c := dial(t, s.Addr)
		root := c.root(t, "gozk-children")
		for _, name := range []string{"a", "b", "c"} {
			c.create(t, root+"/"+name, "", zk.FlagPersistent)
		}
		c.remove(t, root+"/b")
		names, stat, err := c.Children(root)
		slices.Sort(names)
		if err != nil || !slices.Equal(names, []string{"a", "c"}) {
			t.Errorf("children %v, %v", names, err)
		}
		if stat.NumChildren != 2 || stat.Cversion != 4 || stat.Pzxid <= stat.Czxid {
			t.Errorf("parent's stat %+v, want 2 children and cversion 4", stat)
		}
		if got, want := c.create(t, root+"/n-", "", zk.FlagSequence), numbered(root+"/n-", 3); got != want {
			t.Errorf("sequential create made %s, want %s", got, want)
		}
	})
}

// TestGoZKAuthAndACL shows that a znode can be restricted to digest credentials, and opened
// again.
func TestGoZKAuthAndACL(t *testing.T) {
	eachShared(t, func(t *testing.T, s *target.Server) {
		owner, other := dial(t, s.Addr), dial(t, s.Addr)
		root := owner.root(t, "gozk-acl")
		if err := owner.AddAuth("digest", []byte("ann:secret")); err != nil {
			t.Fatal(err)
		}
		path := root + "/closed"
		if _, err := owner.Create(path, []byte("v"), 0, zk.AuthACL(zk.PermAll)); err != nil {
			t.Fatal(err)
		}
		_, _, err := other.Get(path)
		wantErr(t, "get by a stranger", err, zk.ErrNoAuth)
		_, err = other.Set(path, nil, -1)
		wantErr(t, "set by a stranger", err, zk.ErrNoAuth)
		acl, _, err := owner.GetACL(path)
		if err != nil || !slices.Equal(acl, zk.DigestACL(zk.PermAll, "ann", "secret")) {
			t.Errorf("acl %v, %v", acl, err)
		}
		_, err = owner.SetACL(path, zk.WorldACL(zk.PermRead), 7)
		wantErr(t, "setacl at a wrong version", err, zk.ErrBadVersion)
		stat, err := owner.SetACL(path, zk.WorldACL(zk.PermRead), 0)
		if err != nil || stat.Aversion != 1 {
			t.Errorf("setacl: %+v, %v", stat, err)
		}
		if data, _, err := other.Get(path); err != nil || string(data) != "v" {
			t.Errorf("get once the node is open: %q, %v", data, err)
		}
		_, err = owner.Set(path, nil, -1)
		wantErr(t, "set without write permission", err, zk.ErrNoAuth)
		if _, err := dialSuper(t, s.Addr, sessionTimeout).Set(path, nil, -1); err != nil {
			t.Errorf("set by super: %v", err)
		}
	})
}

// TestGoZKUnknownAuthScheme shows that a credential of an unknown scheme closes the
// connection, as in ZooKeeper.
func TestGoZKUnknownAuthScheme(t *testing.T) {
	eachShared(t, func(t *testing.T, s *target.Server) {
		c := dial(t, s.Addr)
		wantErr(t, "addauth", c.AddAuth("nosuch", []byte("x")), zk.ErrAuthFailed)
		c.await(t, zk.StateDisconnected)
	})
}

// TestGoZKMulti shows that a multi succeeds as a whole or not at all.
func TestGoZKMulti(t *testing.T) {
	eachShared(t, func(t *testing.T, s *target.Server) {
		c := dial(t, s.Addr)
		root := c.root(t, "gozk-multi")
		results, err := c.Multi(
			&zk.CreateRequest{Path: root + "/a", Data: []byte("1"), Acl: world},
			&zk.CreateRequest{Path: root + "/a/s-", Acl: world, Flags: zk.FlagSequence},
			&zk.SetDataRequest{Path: root + "/a", Data: []byte("2"), Version: 0},
			&zk.CheckVersionRequest{Path: root + "/a", Version: 1},
			&zk.DeleteRequest{Path: root + "/a/s-0000000000", Version: 0},
		)
		if err != nil || len(results) != 5 {
			t.Fatalf("multi: %+v, %v", results, err)
		}
		if results[1].String != root+"/a/s-0000000000" || results[2].Stat.Version != 1 {
			t.Errorf("results %+v", results)
		}
		results, err = c.Multi(
			&zk.SetDataRequest{Path: root + "/a", Data: []byte("3"), Version: -1},
			&zk.CheckVersionRequest{Path: root + "/a", Version: 99},
			&zk.DeleteRequest{Path: root + "/a", Version: -1},
		)
		wantErr(t, "multi with a failing check", err, zk.ErrBadVersion)
		if len(results) != 3 || results[1].Error != zk.ErrBadVersion {
			t.Errorf("results of the failed multi: %+v", results)
		}
		if data, stat, err := c.Get(root + "/a"); string(data) != "2" || stat.Version != 1 {
			t.Errorf("after the failed multi: %q, %+v, %v", data, stat, err)
		}
		if results, err := c.Multi(); err != nil || len(results) != 0 {
			t.Errorf("empty multi: %v, %v", results, err)
		}
	})
}

// TestGoZKSyncAndReconfig shows that sync returns its path, and that a standalone server
// refuses reconfig.
func TestGoZKSyncAndReconfig(t *testing.T) {
	eachShared(t, func(t *testing.T, s *target.Server) {
		c := dial(t, s.Addr)
		if path, err := c.Sync("/zookeeper"); err != nil || path != "/zookeeper" {
			t.Errorf("sync: %q, %v", path, err)
		}
		_, err := c.IncrementalReconfig([]string{"server.2=127.0.0.1:1:2;3"}, nil, -1)
		if err == nil {
			t.Fatal("reconfig of a standalone server succeeded")
		}
		if !c.exists(t, "/zookeeper/config") {
			t.Error("no session, or no /zookeeper/config, after the refused reconfig")
		}
	})
}

// TestGoZKFourLetterWords shows that go-zookeeper's parsers accept the four-letter words.
func TestGoZKFourLetterWords(t *testing.T) {
	eachShared(t, func(t *testing.T, s *target.Server) {
		c := dial(t, s.Addr)
		if ok := zk.FLWRuok([]string{s.Addr}, eventTimeout); !ok[0] {
			t.Error("ruok was not answered with imok")
		}
		seen, _ := zk.FLWCons([]string{s.Addr}, eventTimeout)
		mine := func(one *zk.ServerClient) bool { return one.SessionID == c.SessionID() }
		if !slices.ContainsFunc(seen[0].Clients, mine) {
			t.Errorf("cons does not show session %#x: %+v", c.SessionID(), seen[0])
		}
	})
}
