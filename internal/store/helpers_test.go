package store

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"bellwether/internal/record"
	"bellwether/wire"
)

// diskOf copies directories of the real file system into a memory one, durably.
func diskOf(t testing.TB, dirs ...string) *Mem {
	t.Helper()
	m := NewMem(1)
	for _, dir := range dirs {
		entries, err := os.ReadDir(filepath.Join(dir, versionDir))
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			b, err := os.ReadFile(filepath.Join(dir, versionDir, e.Name()))
			if err != nil {
				t.Fatal(err)
			}
			put(t, m, e.Name(), b)
		}
	}
	return m
}

// put writes a file into the version-2 directory of /data, durably.
func put(t testing.TB, m *Mem, name string, b []byte) {
	t.Helper()
	dir := filepath.Join("/data", versionDir)
	must(t, m.MkdirAll(dir))
	f, err := m.Create(filepath.Join(dir, name))
	must(t, err)
	if len(b) > 0 {
		_, err = f.WriteAt(b, 0)
		must(t, err)
	}
	must(t, f.Sync())
	must(t, f.Close())
	must(t, m.SyncDir(dir))
}

// get reads a file of the version-2 directory of /data.
func get(t testing.TB, m *Mem, name string) []byte {
	t.Helper()
	return read(t, m, filepath.Join("/data", versionDir, name))
}

func read(t testing.TB, fs FS, path string) []byte {
	t.Helper()
	f, err := fs.Open(path)
	must(t, err)
	size, err := f.Size()
	must(t, err)
	b := make([]byte, size)
	_, err = f.ReadAt(b, 0)
	must(t, err)
	return b
}

// names lists the version-2 directory of /data.
func names(t testing.TB, m *Mem) []string {
	t.Helper()
	entries, err := m.ReadDir(filepath.Join("/data", versionDir))
	must(t, err)
	var out []string
	for _, e := range entries {
		out = append(out, e.Name)
	}
	return out
}

func drop(t testing.TB, m *Mem, name string) {
	t.Helper()
	must(t, m.Remove(filepath.Join("/data", versionDir, name)))
	must(t, m.SyncDir(filepath.Join("/data", versionDir)))
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

var dataOptions = Options{DataDir: "/data", PreallocBytes: 4096}

// recorded keeps everything that a sink receives as text, so that it can be compared.
type recorded struct {
	snapshot []string // sessions, ACLs, nodes; then the digest
	txns     []string
	zxids    []wire.Zxid
	resets   int
}

func (r *recorded) Reset() { *r = recorded{resets: r.resets + 1} }

func (r *recorded) Session(id wire.SessionID, timeoutMS int32) error {
	r.snapshot = append(r.snapshot, fmt.Sprintf("session %v %d", id, timeoutMS))
	return nil
}

func (r *recorded) ACL(key int64, acl []wire.ACL) error {
	r.snapshot = append(r.snapshot, fmt.Sprintf("acl %d %v", key, acl))
	return nil
}

func (r *recorded) Node(path string, n *record.DataNode) error {
	r.snapshot = append(r.snapshot, fmt.Sprintf("node %q %x nil=%v acl=%d %v", path, n.Data, n.Data == nil, n.ACL, n.Stat))
	return nil
}

func (r *recorded) SnapshotDone(z wire.Zxid, d *SnapshotDigest) error {
	r.snapshot = append(r.snapshot, fmt.Sprintf("done %v %v", z, d))
	return nil
}

func (r *recorded) Txn(t *record.Txn) error {
	r.txns = append(r.txns, fmt.Sprintf("%x", t.Append(nil)))
	r.zxids = append(r.zxids, t.Zxid)
	return nil
}

func open(t testing.TB, fs FS, o Options) *Store {
	t.Helper()
	s, err := Open(fs, o)
	must(t, err)
	return s
}

// loaded opens, loads and closes the store on a disk.
func loaded(t testing.TB, fs FS) *recorded {
	t.Helper()
	s := open(t, fs, dataOptions)
	r := &recorded{}
	_, err := s.Load(r)
	must(t, err)
	must(t, s.Close())
	return r
}

// copyTree is a sink that can be written again in the order it was read.
type copyTree struct {
	Discard
	sessions []struct {
		id      wire.SessionID
		timeout int32
	}
	acls []struct {
		key int64
		acl []wire.ACL
	}
	paths  []string
	nodes  []record.DataNode
	digest *SnapshotDigest
	parts  []int64
}

func (c *copyTree) At(off int64) { c.parts = append(c.parts, off) }

func (c *copyTree) Session(id wire.SessionID, timeoutMS int32) error {
	c.sessions = append(c.sessions, struct {
		id      wire.SessionID
		timeout int32
	}{id, timeoutMS})
	return nil
}

func (c *copyTree) ACL(key int64, acl []wire.ACL) error {
	c.acls = append(c.acls, struct {
		key int64
		acl []wire.ACL
	}{key, acl})
	return nil
}

func (c *copyTree) Node(path string, n *record.DataNode) error {
	kept := *n
	kept.Data = bytes.Clone(n.Data)
	c.paths, c.nodes = append(c.paths, path), append(c.nodes, kept)
	return nil
}

func (c *copyTree) SnapshotDone(_ wire.Zxid, d *SnapshotDigest) error {
	c.digest = d
	return nil
}

func (c *copyTree) Sessions(yield func(wire.SessionID, int32) error) error {
	for _, s := range c.sessions {
		if err := yield(s.id, s.timeout); err != nil {
			return err
		}
	}
	return nil
}

func (c *copyTree) ACLs(yield func(int64, []wire.ACL) error) error {
	for _, a := range c.acls {
		if err := yield(a.key, a.acl); err != nil {
			return err
		}
	}
	return nil
}

func (c *copyTree) Nodes(yield func(string, *record.DataNode) error) error {
	for i, path := range c.paths {
		if err := yield(path, &c.nodes[i]); err != nil {
			return err
		}
	}
	return nil
}

func (c *copyTree) Digest() (wire.Zxid, uint64) {
	if c.digest == nil {
		return 0, 0
	}
	return c.digest.Zxid, c.digest.Tree
}
