package interop

import (
	"context"
	"fmt"
	"regexp"
	"testing"
	"time"

	"bellwether/internal/record"
	"bellwether/internal/store"
	"bellwether/internal/tree"
	"bellwether/interop/target"
	"bellwether/wire"
	"bellwether/zk"
)

// spoilDisk makes the tree of a stopped server wrong: its newest snapshot has other data in a znode.
func spoilDisk(t *testing.T, dir, path string) {
	t.Helper()
	disk, err := store.Open(store.OS(), store.Options{DataDir: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer disk.Close()
	wrong := tree.New(tree.Options{})
	loader := wrong.Loader()
	if _, err := disk.Load(loader); err != nil {
		t.Fatal(err)
	}
	loader.Close()
	wrong.Apply(&record.Txn{TxnHeader: record.TxnHeader{Type: wire.OpSetData, Zxid: 1},
		Body: &record.SetDataTxn{Path: path, Data: []byte("wrong"), Version: 77}})
	if _, err := disk.WriteSnapshot(wrong.LastZxid(), wrong.Snapshot()); err != nil {
		t.Fatal(err)
	}
}

// TestTreeDiffersFromZooKeeper: the disk of a Bellwether server, which follows a ZooKeeper leader, is made wrong
// while the server is down. The digests that the leader sends show that. The server counts it and goes on, and the leader does not
// change.
func TestTreeDiffersFromZooKeeper(t *testing.T) {
	t.Parallel()
	a, b := target.Apache, target.Bellwether
	e := target.EnsembleFor(t, target.EnsembleOptions{Kinds: []target.Kind{b, a, a}, Extra: map[string]string{"initLimit": "50", "syncLimit": "20"}})
	leader, err := e.AwaitWhole(idsTimeout)
	if err != nil {
		t.Fatal(err)
	}
	us := e.Servers[0]
	if leader == 0 { // a ZooKeeper server is to lead
		us.Kill()
		if _, err := e.AwaitLeader(idsTimeout, 0); err != nil {
			t.Fatal(err)
		}
		if err := us.Begin(); err != nil {
			t.Fatal(err)
		}
		if leader, err = e.AwaitWhole(idsTimeout); err != nil || leader == 0 {
			t.Fatal(leader, err)
		}
	}
	c, err := zk.Connect(t.Context(), e.Servers[leader].Addr, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close(t.Context())
	for _, path := range []string{"/x", "/y"} {
		if _, _, err := c.Create(t.Context(), path, []byte("right")); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := e.AwaitWhole(idsTimeout); err != nil {
		t.Fatal(err)
	}
	us.Kill()
	spoilDisk(t, us.Data, "/x")
	if err := us.Begin(); err != nil {
		t.Fatal(err)
	}
	if again, err := e.AwaitWhole(idsTimeout); err != nil || again != leader {
		t.Fatal(again, err)
	}
	seen := regexp.MustCompile(`zk_digest_mismatches_count\t[1-9]`)
	for end := time.Now().Add(idsTimeout); ; {
		if _, err := c.Set(t.Context(), "/y", nil, -1); err != nil {
			t.Fatal(err)
		}
		text, err := us.Word("mntr")
		if err == nil && seen.MatchString(text) {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("no mismatches (%v): %s", err, text)
		}
	}
	if role := e.Roles(); role[leader] != "leader" {
		t.Error(role)
	}
}

// TestWrongTreesAreReplaced: the disk of a server of four processes is made wrong while they are down. Whether that server follows or
// leads after the start, or is an observer that learns from a follower, it gets a snapshot of a leader whose tree is right, and the others
// keep their trees.
func TestWrongTreesAreReplaced(t *testing.T) {
	t.Parallel()
	b := target.Bellwether
	o := target.EnsembleOptions{Observers: 1, Extra: map[string]string{"initLimit": "50", "syncLimit": "20", "observerMasterPort": "2889"}}
	for i := range 4 { // each has its own address, because all have the same observer master port
		o.Kinds, o.Places = append(o.Kinds, b), append(o.Places, target.Place{Host: fmt.Sprintf("127.33.0.%d", i+1)})
	}
	e := target.EnsembleFor(t, o)
	if _, err := e.AwaitWhole(idsTimeout); err != nil {
		t.Fatal(err)
	}
	const path = "/x"
	all := e.Servers[0].Addr + "," + e.Servers[1].Addr + "," + e.Servers[2].Addr
	c, err := zk.Connect(t.Context(), all, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { c.Close(t.Context()) }()
	if _, _, err := c.Create(t.Context(), path, []byte("right")); err != nil {
		t.Fatal(err)
	}
	replaced := regexp.MustCompile(`zk_tree_replaced_count\t[1-9]`)
	for _, wrong := range []int{0, 2, 3} { // of voters with the same history, the last one leads; the last server is the observer
		if _, err := e.AwaitWhole(idsTimeout); err != nil {
			t.Fatal(err)
		}
		for _, s := range e.Servers {
			s.Kill()
		}
		spoilDisk(t, e.Servers[wrong].Data, path)
		for _, s := range e.Servers {
			if err := s.Begin(); err != nil {
				t.Fatal(err)
			}
		}
		for end, n := time.Now().Add(idsTimeout), 0; ; n++ {
			ctx, cancel := context.WithTimeout(t.Context(), idsTimeout)
			_, _, err := c.Create(ctx, "/n", nil, zk.Sequential)
			cancel()
			text, wordErr := e.Servers[wrong].Word("mntr")
			if wordErr == nil && replaced.MatchString(text) {
				break
			}
			if time.Now().After(end) {
				t.Fatalf("server %d: no snapshot (%v, %v): %s", wrong+1, err, wordErr, text)
			}
		}
		leader, err := e.AwaitWhole(idsTimeout)
		if err != nil || leader == wrong {
			t.Fatalf("server %d leads after its tree was wrong: %v", leader+1, err)
		}
		for i, s := range e.Servers {
			text, err := s.Word("mntr")
			if err != nil || replaced.MatchString(text) != (i == wrong) {
				t.Errorf("server %d, with server %d wrong: %v, %s", i+1, wrong+1, err, text)
			}
			one, err := zk.Connect(t.Context(), s.Addr, nil)
			if err != nil {
				t.Fatal(err)
			}
			data, _, err := one.Get(t.Context(), path)
			if err != nil || string(data) != "right" {
				t.Errorf("server %d: %q, %v", i+1, data, err)
			}
			one.Close(t.Context())
		}
	}
}
