package tree

import (
	"fmt"
	"runtime"
	"testing"

	"bellwether/internal/record"
	"bellwether/wire"
)

// fill adds n znodes of 100 bytes to a tree, in directories of perDirectory, through the
// loader.
func fill(t testing.TB, tree *Tree, n, perDirectory int) {
	t.Helper()
	l := tree.Loader()
	l.Reset()
	node := func(path string) {
		d := &record.DataNode{Data: make([]byte, 100), ACL: openKey, Stat: record.StatPersisted{Czxid: 1, Mzxid: 1, Pzxid: 1, Ctime: 1, Mtime: 1}}
		if err := l.Node(path, d); err != nil {
			t.Fatal(err)
		}
	}
	node("")
	dir := ""
	for i := range n {
		if i%perDirectory == 0 {
			dir = fmt.Sprintf("/directory-%06d", i/perDirectory)
			node(dir)
		}
		node(fmt.Sprintf("%s/node-%010d", dir, i))
	}
	if err := l.SnapshotDone(1, nil); err != nil {
		t.Fatal(err)
	}
	l.Finish()
}

func liveHeap() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// BenchmarkMillion reports the memory of a million znodes of 100 bytes.
func BenchmarkMillion(b *testing.B) {
	for b.Loop() {
		before := liveHeap()
		tree := New(Options{Seed: 1})
		fill(b, tree, 1_000_000, 1000)
		b.ReportMetric(float64(liveHeap()-before)/1e6, "B/znode")
		runtime.KeepAlive(tree)
	}
}

func benchTree(b *testing.B) *leader {
	l := &leader{tree: New(Options{Seed: 1})}
	fill(b, l.tree, 10_000, 100)
	l.z = 1
	l.tree.Apply(l.prepare(&Request{Session: alice, Op: wire.OpCreateSession, Body: []byte{0, 0, 1, 0}}))
	return l
}

// noEventsClient is a client that ignores its events.
type noEventsClient struct{ ids []wire.ID }

func (*noEventsClient) Session() wire.SessionID { return alice }
func (c *noEventsClient) Identities() []wire.ID { return c.ids }
func (*noEventsClient) Notify(Event)            {}
func (*noEventsClient) Overflow()               {}
func (*noEventsClient) Reserve(wire.Zxid)       {}

func BenchmarkGetData(b *testing.B) {
	l := benchTree(b)
	c := &noEventsClient{ids: []wire.ID{id("ip:127.0.0.1")}}
	var out wire.DataResponse
	b.ReportAllocs()
	for b.Loop() {
		if l.tree.GetData(c, "/directory-000042/node-0000004242", false, &out) != wire.OK {
			b.Fatal("not there")
		}
	}
}

func BenchmarkSetData(b *testing.B) {
	l := benchTree(b)
	req := request(wire.OpSetData, &wire.SetDataRequest{Path: "/directory-000042/node-0000004242", Data: make([]byte, 100), Version: -1})
	b.ReportAllocs()
	for b.Loop() {
		if l.tree.Apply(l.prepare(req)).Err != wire.OK {
			b.Fatal("not set")
		}
	}
}

// BenchmarkCreateDelete creates sequential znodes and deletes each again, so that the
// tree keeps its size.
func BenchmarkCreateDelete(b *testing.B) {
	l := benchTree(b)
	req := request(wire.OpCreate, &wire.CreateRequest{
		Path: "/directory-000042/s-", Data: make([]byte, 100), ACL: wire.OpenACL(), Flags: wire.FlagEphemeralSequential})
	b.ReportAllocs()
	for b.Loop() {
		path := l.tree.Apply(l.prepare(req)).Response.(*wire.PathResponse).Path
		l.tree.Apply(l.prepare(remove(path, -1)))
	}
}

func BenchmarkWatchAndFire(b *testing.B) {
	l := benchTree(b)
	c := &noEventsClient{ids: []wire.ID{id("ip:127.0.0.1")}}
	req := request(wire.OpSetData, &wire.SetDataRequest{Path: "/directory-000042/node-0000004242", Data: make([]byte, 100), Version: -1})
	var out wire.DataResponse
	b.ReportAllocs()
	for b.Loop() {
		l.tree.GetData(c, "/directory-000042/node-0000004242", true, &out)
		l.tree.Apply(l.prepare(req))
	}
}

// TestReadsAllocateNothing: a read without a watch allocates no memory.
func TestReadsAllocateNothing(t *testing.T) {
	w := newWorld(t, Options{})
	w.ok(create("/a", 0))
	w.ok(createACL("/closed", acl(1, "digest:x:y"), acl(1, "ip:127.0.0.1")))
	c := &noEventsClient{ids: []wire.ID{id("ip:127.0.0.1")}}
	var data wire.DataResponse
	var stat wire.StatResponse
	for name, read := range map[string]func() wire.Code{
		"getData":    func() wire.Code { return w.tree.GetData(c, "/a", false, &data) },
		"exists":     func() wire.Code { return w.tree.Exists(c, "/a", false, &stat) },
		"closed":     func() wire.Code { return w.tree.GetData(c, "/closed", false, &data) },
		"not exists": func() wire.Code { return w.tree.Exists(c, "/missing", false, &stat) },
	} {
		if n := testing.AllocsPerRun(100, func() { read() }); n != 0 {
			t.Errorf("%s allocates %v times", name, n)
		}
	}
}

// TestWritesAllocateLittle: the allocations of a write, from the check of the request until the transaction is
// applied, have a limit: what the tree keeps, the transaction, and the result.
func TestWritesAllocateLittle(t *testing.T) {
	l := &leader{tree: New(Options{Seed: 1})}
	fill(t, l.tree, 10, 10)
	l.z = 1
	l.tree.Apply(l.prepare(&Request{Session: alice, Op: wire.OpCreateSession, Body: []byte{0, 0, 1, 0}}))
	const path = "/directory-000000/node-0000000004"
	c := &noEventsClient{ids: []wire.ID{id("ip:127.0.0.1")}}
	set := request(wire.OpSetData, &wire.SetDataRequest{Path: path, Data: make([]byte, 100), Version: -1})
	bid := request(wire.OpCreate, &wire.CreateRequest{Path: "/directory-000000/s-", ACL: wire.OpenACL(), Flags: wire.FlagEphemeralSequential})
	var out wire.DataResponse
	for _, tt := range []struct {
		name string
		most float64
		do   func()
	}{
		{"setData", 7, func() { l.tree.Apply(l.prepare(set)) }},
		{"a watch, and a setData with its event", 11, func() {
			l.tree.GetData(c, path, true, &out)
			l.tree.Apply(l.prepare(set))
		}},
		{"create of a bid, and its delete", 25, func() {
			created := l.tree.Apply(l.prepare(bid)).Response.(*wire.PathResponse).Path
			l.tree.Apply(l.prepare(remove(created, -1)))
		}},
	} {
		tt.do()
		if n := testing.AllocsPerRun(100, tt.do); n > tt.most {
			t.Errorf("%s: %v allocations, at most %v are expected", tt.name, n, tt.most)
		}
	}
}

// BenchmarkGrow creates 400,000 znodes of 100 bytes in a thousand directories, by turns.
func BenchmarkGrow(b *testing.B) {
	var bodies [][]byte
	for i := range 400_000 {
		path := fmt.Sprintf("/directory-%06d/%d", i%1000, i)
		bodies = append(bodies, wire.Append(nil, &wire.CreateRequest{Path: path, Data: make([]byte, 100), ACL: wire.OpenACL()}))
	}
	b.ReportAllocs()
	for b.Loop() {
		l := &leader{tree: New(Options{Seed: 1})}
		fill(b, l.tree, 1000, 1)
		l.z = 1
		l.tree.Apply(l.prepare(&Request{Session: alice, Op: wire.OpCreateSession, Body: []byte{0, 0, 1, 0}}))
		for _, body := range bodies {
			if l.tree.Apply(l.prepare(&Request{Session: alice, Op: wire.OpCreate, Body: body})).Err != wire.OK {
				b.Fatal("not created")
			}
		}
	}
}
