package interop

import (
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"bellwether/interop/target"
	"bellwether/zk"
)

// TestLeaderThatForgetsItsHistory: a ZooKeeper server whose log repeats older transactions at its end, as an old log thread leaves
// it (ZOOKEEPER-4712), leads. It believes that its history ends at the last of the repeated transactions, and tells
// its follower to cut off what comes after that. The Bellwether follower keeps all acknowledged writes.
func TestLeaderThatForgetsItsHistory(t *testing.T) {
	t.Parallel()
	b := target.Bellwether
	e := target.EnsembleFor(t, target.EnsembleOptions{Kinds: []target.Kind{b, b, target.Apache}, Extra: map[string]string{"initLimit": "20", "syncLimit": "10"}, Forged: true})
	if _, err := e.AwaitWhole(electionWait); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), electionWait)
	defer cancel()
	c, err := zk.Connect(ctx, e.Addrs(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close(context.Background())
	const znodes, repeatFrom, repeatThrough = 100, 40, 60
	var paths []string
	for i := range znodes {
		path := fmt.Sprint("/n", i)
		if _, _, err := c.Create(ctx, path, nil); err != nil {
			t.Fatal(err)
		}
		paths = append(paths, path)
	}
	follower, leader := e.Servers[0], e.Servers[2]
	if lost, err := missing(ctx, follower, paths); err != nil || len(lost) > 0 {
		t.Fatal(lost, err)
	}
	if err := follower.Stop(); err != nil { // everything that it has applied is on its disk then
		t.Fatal(err)
	}
	e.Kill()
	var all [][]byte
	editLog(t, follower, func(records [][]byte) [][]byte {
		all = records
		return records[:len(records)-1]
	})
	editLog(t, leader, func([][]byte) [][]byte { return append(all, all[repeatFrom:repeatThrough]...) })
	for _, s := range []*target.Server{follower, leader} {
		if err := s.Begin(); err != nil {
			t.Fatal(err)
		}
	}
	if l, err := e.AwaitLeader(electionWait); err != nil || l != 2 {
		t.Fatal(l, err)
	}
	if lost, err := missing(ctx, follower, paths); err != nil || len(lost) > 0 {
		t.Errorf("%v; it lacks %q", err, lost)
	}
}

// editLog changes the records of the only log file of a server that does not run. A record is checksum, length,
// transaction and end mark.
func editLog(t *testing.T, s *target.Server, edit func(records [][]byte) [][]byte) {
	t.Helper()
	const header, prefix, endMark = 16, 12, 1 // bytes of the file's header, of a record before the transaction, and behind it
	files, err := filepath.Glob(filepath.Join(s.Data, "version-2", "log.*"))
	if err != nil || len(files) != 1 {
		t.Fatal(files, err)
	}
	old, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	var records [][]byte
	for at := header; at+prefix <= len(old); {
		n := int(binary.BigEndian.Uint32(old[at+prefix-4:]))
		if n == 0 {
			break
		}
		end := at + prefix + n + endMark
		records = append(records, old[at:end:end])
		at = end
	}
	changed := old[:header:header]
	for _, record := range edit(records) {
		changed = append(changed, record...)
	}
	if err := os.WriteFile(files[0], changed, 0o600); err != nil {
		t.Fatal(err)
	}
}
