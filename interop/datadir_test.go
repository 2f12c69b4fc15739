package interop

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"bellwether/internal/record"
	"bellwether/internal/store"
	"bellwether/internal/tree"
	"bellwether/interop/target"
	"bellwether/wire"
)

// znode is everything that a client can see of a znode.
type znode struct {
	Data string // "null" or the quoted bytes
	Stat zk.Stat
	ACL  string
}

// Settings that keep a tree unchanged while the directory moves: no expired znode is deleted,
// and no session expires on a slow machine.
const (
	noReap      = time.Hour
	longSession = 2 * time.Minute
)

// TestDataDirectoryMovesBetweenServers moves a data directory from one kind of server to the
// other and back. After each kill, the next server must show the same tree, with the
// ephemerals of living sessions, and accept writes.
func TestDataDirectoryMovesBetweenServers(t *testing.T) {
	t.Parallel()
	for _, layout := range []struct {
		name  string
		extra map[string]string
	}{
		{"one log", nil},
		{"many logs and snapshots", map[string]string{"snapCount": "40"}},
		{"gzip", map[string]string{"snapCount": "40", "snapshot.compression.method": "gz"}},
		{"snappy", map[string]string{"snapCount": "40", "snapshot.compression.method": "snappy"}},
	} {
		t.Run(layout.name, func(t *testing.T) {
			eachTarget(t, func(t *testing.T, first target.Kind) {
				data := t.TempDir()
				extra := map[string]string{"maxSessionTimeout": "120000"}
				maps.Copy(extra, layout.extra)
				var before map[string]znode
				for turn, kind := range []target.Kind{first, otherKind(first), first} {
					s := target.StartFor(t, kind, target.Options{Data: data, Extra: extra, Reap: noReap})
					c := dialSuper(t, s.Addr, longSession)
					sameTree(t, walk(t, c), before)
					populate(t, c, turn)
					before = walk(t, c)
					s.Kill()
				}
			})
		})
	}
}

// otherKind returns the kind of server to which a directory is moved: the other kind, or the
// same one if only that is tested.
func otherKind(kind target.Kind) target.Kind {
	for _, other := range target.Kinds() {
		if other != kind {
			return other
		}
	}
	return kind
}

// TestRecordedDataDirectory shows that a recorded data directory of Apache ZooKeeper 3.8.0
// opens unchanged and gives the tree that its clients saw before the server was killed.
func TestRecordedDataDirectory(t *testing.T) {
	eachTarget(t, func(t *testing.T, kind target.Kind) {
		data := t.TempDir()
		if err := os.CopyFS(data, os.DirFS("testdata/datadir-3.8.0")); err != nil {
			t.Fatal(err)
		}
		s := target.StartFor(t, kind, target.Options{Data: data, Reap: noReap})
		sameTree(t, walk(t, dialSuper(t, s.Addr, sessionTimeout)), recorded(t))
	})
}

// TestSnapshotOfALeaderOpensAnywhere: a leader that sent a snapshot applied transactions meanwhile, so the
// snapshot holds effects of transactions that follow it in the log. No server takes them for a wrong tree.
func TestSnapshotOfALeaderOpensAnywhere(t *testing.T) {
	eachTarget(t, func(t *testing.T, kind target.Kind) {
		data := t.TempDir()
		now := tree.New(tree.Options{})
		var txns []*record.Txn
		for z := wire.Zxid(1); z <= 9; z++ {
			path, open := []string{"/a", "/b"}[z%2], []wire.ACL{{Perms: wire.PermAll, ID: wire.ID{Scheme: "world", ID: "anyone"}}}
			txn := &record.Txn{TxnHeader: record.TxnHeader{Type: wire.OpSetData, Zxid: z, Time: time.Now().UnixMilli()},
				Body: &record.SetDataTxn{Path: path, Data: fmt.Append(nil, z), Version: int32(z-1) / 2}}
			if z <= 2 {
				txn.Type, txn.Body = wire.OpCreate, &record.CreateTxn{Path: path, ACL: open, ParentCversion: int32(z)}
			}
			now.Apply(txn)
			_, digest := now.Digest()
			txn.Digest = &record.TxnDigest{Version: record.DigestVersion, Tree: digest}
			txns = append(txns, txn)
		}
		disk, err := store.Open(store.OS(), store.Options{DataDir: data})
		if err != nil {
			t.Fatal(err)
		}
		_, err = disk.Load(store.Discard{})
		if err == nil {
			_, err = disk.InstallSnapshot(3, sent{now.Snapshot(), 3})
		}
		if err = errors.Join(err, disk.Append(txns[3:]), disk.Sync(), disk.Close()); err != nil {
			t.Fatal(err)
		}
		s := target.StartFor(t, kind, target.Options{Data: data, Reap: noReap})
		if got := walk(t, dialSuper(t, s.Addr, sessionTimeout))["/b"]; got.Data != `"0x9"` || got.Stat.Version != 4 {
			t.Errorf("/b is %+v", got)
		}
		if text, err := s.Word("mntr"); err != nil || !strings.Contains(text, "zk_digest_mismatches_count\t0\n") {
			t.Errorf("it counts digest mismatches: %v\n%s", err, text)
		}
	})
}

// sent is a snapshot that its leader sent as that of a zxid.
type sent struct {
	store.Source
	zxid wire.Zxid
}

// Digest returns the zxid. A sent snapshot has no digest.
func (s sent) Digest() (wire.Zxid, uint64) { return s.zxid, 0 }

// populate creates znodes of every kind, and changes and deletes some.
func populate(t *testing.T, c client, turn int) {
	t.Helper()
	root := c.create(t, fmt.Sprintf("/turn%d", turn), "root", zk.FlagPersistent)
	for i := range 60 {
		path := c.create(t, fmt.Sprintf("%s/n%02d", root, i), strings.Repeat("x", i*7), zk.FlagPersistent)
		switch i % 3 {
		case 0:
			c.remove(t, path)
		case 1:
			c.set(t, path, "changed")
		}
	}
	c.create(t, root+"/e-", "mine", zk.FlagEphemeralSequential)
	c.create(t, root+"/s-", "", zk.FlagSequence)
	c.create(t, root+"/漢字-ünï", "ü", zk.FlagPersistent)
	if _, err := c.CreateContainer(root+"/box", nil, zk.FlagContainer, world); err != nil {
		t.Fatal(err)
	}
	if _, err := c.CreateTTL(root+"/ttl", []byte("t"), zk.FlagTTL, world, time.Hour); err != nil {
		t.Fatal(err)
	}
	acl := append(zk.DigestACL(zk.PermAll, "ann", "secret"), zk.ACL{Perms: zk.PermRead, Scheme: "ip", ID: "10.0.0.0/8"})
	if _, err := c.Create(root+"/acl", nil, 0, acl); err != nil {
		t.Fatal(err)
	}
	if _, err := c.SetACL(root+"/n01", zk.WorldACL(zk.PermRead), 0); err != nil {
		t.Fatal(err)
	}
	_, err := c.Multi(
		&zk.CreateRequest{Path: root + "/multi", Data: []byte("1"), Acl: world},
		&zk.SetDataRequest{Path: root + "/multi", Data: []byte("2"), Version: 0},
		&zk.DeleteRequest{Path: root + "/n02", Version: -1},
	)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Multi(&zk.CheckVersionRequest{Path: root, Version: 9}); err == nil {
		t.Fatal("a check of a wrong version passed")
	}
}

// walk returns the whole tree.
func walk(t *testing.T, c client) map[string]znode {
	t.Helper()
	tree := map[string]znode{}
	todo := []string{"/"}
	for len(todo) > 0 {
		at := todo[0]
		todo = todo[1:]
		data, stat, err := c.Get(at)
		if err != nil {
			t.Fatalf("get %s: %v", at, err)
		}
		acl, _, err := c.GetACL(at)
		if err != nil {
			t.Fatalf("getACL %s: %v", at, err)
		}
		names, _, err := c.Children(at)
		if err != nil {
			t.Fatalf("children of %s: %v", at, err)
		}
		tree[at] = znode{showData(data), *stat, fmt.Sprint(acl)}
		for _, name := range names {
			todo = append(todo, path.Join(at, name))
		}
	}
	return tree
}

func showData(data []byte) string {
	if data == nil {
		return "null"
	}
	return fmt.Sprintf("%q", data)
}

// recorded returns the tree that belongs to testdata/datadir-3.8.0.
func recorded(t *testing.T) map[string]znode {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "datadir-3.8.0", "tree.json"))
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Nodes []struct {
			Path string
			Data []byte
			Stat zk.Stat
			ACL  []zk.ACL
		}
	}
	if err := json.Unmarshal(text, &file); err != nil {
		t.Fatal(err)
	}
	tree := map[string]znode{}
	for _, n := range file.Nodes {
		tree[n.Path] = znode{showData(n.Data), n.Stat, fmt.Sprint(n.ACL)}
	}
	if len(tree) < 100 {
		t.Fatalf("tree.json holds %d nodes, want 104", len(tree))
	}
	return tree
}

// sameTree compares two trees znode by znode. An empty want is allowed for the first server
// on an empty directory.
func sameTree(t *testing.T, got, want map[string]znode) {
	t.Helper()
	if want == nil {
		return
	}
	for _, path := range slices.Sorted(maps.Keys(want)) {
		n, found := got[path]
		switch {
		case !found:
			t.Errorf("%s is missing", path)
		case n != want[path]:
			t.Errorf("%s:\n got %+v\nwant %+v", path, n, want[path])
		}
	}
	for _, path := range slices.Sorted(maps.Keys(got)) {
		if _, found := want[path]; !found {
			t.Errorf("%s is too many: %+v", path, got[path])
		}
	}
	if t.Failed() {
		t.FailNow()
	}
}
