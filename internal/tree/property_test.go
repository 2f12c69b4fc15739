package tree

import (
	"bytes"
	"fmt"
	"testing"

	"bellwether/internal/quota"
	"bellwether/internal/record"
	"bellwether/wire"

	"pgregory.net/rapid"
)

// writer draws requests for few paths and sessions, so that requests affect each other.
type writer struct {
	*rapid.T
	sessions []wire.SessionID
}

func newWriter(t *rapid.T) *writer {
	return &writer{t, []wire.SessionID{alice, bob, 0x300000000000003}}
}

func (w *writer) path() string {
	path := ""
	for range rapid.IntRange(1, 3).Draw(w.T, "depth") {
		path += "/" + rapid.SampledFrom([]string{"a", "b", "c"}).Draw(w.T, "name")
	}
	if rapid.IntRange(0, 15).Draw(w.T, "special") == 0 {
		return rapid.SampledFrom([]string{"/", quota.Root + "/a", quota.Root + "/a/" + quota.LimitsName, quota.Root + "/a/" + quota.StatsName, "/zookeeper/x", "/a-", "/a/"}).Draw(w.T, "path")
	}
	return path
}

func (w *writer) data() []byte {
	return rapid.SampledFrom([][]byte{nil, {}, []byte("x"), []byte("some data"), []byte("count=1,bytes=2")}).Draw(w.T, "data")
}

func (w *writer) acl() []wire.ACL {
	return rapid.SampledFrom([][]wire.ACL{
		wire.OpenACL(), wire.OpenACL(), wire.OpenACL(), {acl(31, "digest:a:b")}, {acl(31, "auth:")}, {acl(31, "ip:1.2.3.4"), acl(7, "world:anyone")},
	}).Draw(w.T, "acl")
}

// op draws an operation that is allowed in a multi.
func (w *writer) op() wire.Op {
	version := rapid.SampledFrom([]int32{-1, -1, 0, 1}).Draw(w.T, "version")
	switch rapid.IntRange(0, 9).Draw(w.T, "op") {
	case 0, 1, 2, 3:
		op := rapid.SampledFrom([]wire.OpCode{wire.OpCreate, wire.OpCreate2, wire.OpCreateContainer}).Draw(w.T, "create")
		return wire.Op{Type: op, Request: &wire.CreateRequest{
			Path: w.path(), Data: w.data(), ACL: w.acl(), Flags: rapid.Int32Range(0, 4).Draw(w.T, "flags")}}
	case 4:
		return wire.Op{Type: wire.OpCreateTTL, Request: &wire.CreateTTLRequest{CreateRequest: wire.CreateRequest{
			Path: w.path(), Data: w.data(), ACL: w.acl(), Flags: rapid.Int32Range(5, 6).Draw(w.T, "flags")}, TTL: 5}}
	case 5, 6, 7:
		return wire.Op{Type: wire.OpDelete, Request: &wire.PathVersionRequest{Path: w.path(), Version: version}}
	case 8:
		return wire.Op{Type: wire.OpSetData, Request: &wire.SetDataRequest{Path: w.path(), Data: w.data(), Version: version}}
	}
	return wire.Op{Type: wire.OpCheck, Request: &wire.PathVersionRequest{Path: w.path(), Version: version}}
}

// request returns a random write.
func (w *writer) request() *Request {
	req := &Request{Session: rapid.SampledFrom(w.sessions).Draw(w.T, "session"), Identities: []wire.ID{id("digest:a:b")}}
	var rec wire.Record
	switch rapid.IntRange(0, 19).Draw(w.T, "request") {
	case 0:
		return &Request{Session: req.Session, Op: wire.OpCreateSession, Body: []byte{0, 0, 1, 0}}
	case 1:
		return closeSession(req.Session)
	case 2:
		req.Op, rec = wire.OpSetACL, &wire.SetACLRequest{Path: w.path(), ACL: w.acl(), Version: -1}
	case 3:
		return deleteContainer(w.path())
	case 4, 5, 6:
		m := &wire.MultiRequest{}
		for range rapid.IntRange(0, 4).Draw(w.T, "ops") {
			m.Ops = append(m.Ops, w.op())
		}
		req.Op, rec = wire.OpMulti, m
	default:
		op := w.op()
		for op.Type == wire.OpCheck {
			op = w.op()
		}
		req.Op, rec = op.Type, op.Request
	}
	req.Body = wire.Append(nil, rec)
	return req
}

// leader is a tree with the zxid and the clock of a leader.
type leader struct {
	tree *Tree
	z    wire.Zxid
	now  int64
}

func newLeader(seed uint64) *leader {
	l := &leader{tree: New(Options{Seed: seed, ExtendedTypes: true}), now: 1000}
	for _, id := range []wire.SessionID{alice, bob} {
		l.tree.Apply(l.prepare(&Request{Session: id, Op: wire.OpCreateSession, Body: []byte{0, 0, 1, 0}}))
	}
	return l
}

// prepare prepares a request. It returns nil if the tree proposes nothing.
func (l *leader) prepare(req *Request) *record.Txn {
	l.now++
	txn, _ := l.tree.Prepare(req, l.z+1, l.now)
	if txn != nil {
		l.z++
	}
	return txn
}

// audit compares every count and index of the tree with its znodes.
func audit(t rapid.TB, tree *Tree) {
	t.Helper()
	var nodes, ephemerals, size int64
	refs := map[int32]int{}
	lists := 0
	walk(tree.root, func(n *node) {
		nodes++
		refs[n.acl]++
		path := tree.path(n)
		if n != tree.root {
			size += int64(len(path) + n.dataLen())
			if tree.find(path) != n {
				t.Fatalf("%s is not where its path says", path)
			}
		} else {
			size += int64(len("/") + n.dataLen())
		}
		var list nodeList
		switch k, _ := tree.o.kindOf(n.owner); k {
		case kindEphemeral:
			ephemerals++
			list = tree.sessions[wire.SessionID(n.owner)].owned
		case kindContainer:
			list = tree.containers
		case kindTTL:
			list = tree.ttls
		default:
			return
		}
		lists++
		if list[n.slot] != n {
			t.Fatalf("%s is not on its list", path)
		}
	})
	listed := len(tree.containers) + len(tree.ttls)
	live := 0
	for id, s := range tree.sessions {
		listed += len(s.owned)
		if s.live {
			live++
		} else if len(s.owned) == 0 {
			t.Fatalf("session %v is neither live nor owns an ephemeral, but has an entry", id)
		}
	}
	if nodes != tree.nodes+1 || ephemerals != tree.ephemerals || listed != lists || live != tree.live {
		t.Fatalf("counts: %d znodes, %d ephemerals, %d listed, %d live; tree says %d %d %d %d",
			nodes, ephemerals, lists, live, tree.nodes+1, tree.ephemerals, listed, tree.live)
	}
	if size != tree.bytes {
		t.Fatalf("%d bytes, tree says %d", size, tree.bytes)
	}
	for i, e := range tree.acls.entries {
		if i != 0 && e.refs != refs[int32(i)] {
			t.Fatalf("ACL %v has %d znodes, tree says %d", e.list, refs[int32(i)], e.refs)
		}
	}
	if n, first := tree.DigestMismatches(); n != 0 || recomputed(tree) != tree.digest {
		t.Fatalf("digest %d, recomputed %d, mismatches %v", tree.digest, recomputed(tree), first)
	}
}

// TestDigestFollowsTheTree: after any write, the tree's digest is the one that the leader
// predicted, all counts are right, and a failed multi has changed nothing.
func TestDigestFollowsTheTree(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w, l := newWriter(t), newLeader(1)
		for range rapid.IntRange(1, 60).Draw(t, "writes") {
			txn := l.prepare(w.request())
			if txn == nil {
				continue
			}
			m, _ := txn.Body.(*record.MultiTxn)
			var before []string
			if m != nil && m.Failed() {
				before = dump(l.tree)
			}
			l.tree.Apply(txn)
			audit(t, l.tree)
			if before != nil {
				after := dump(l.tree)
				if d := diff(before[:len(before)-1], after[:len(after)-1]); d != "" {
					t.Fatalf("a failed multi changed%s", d)
				}
			}
		}
	})
}

// TestPipelinedEqualsOneByOne: requests that are prepared over pending ones become the
// same transactions as if each were applied before the next is prepared. A follower that
// only applies these transactions has the same tree.
func TestPipelinedEqualsOneByOne(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w, one, piped, follower := newWriter(t), newLeader(1), newLeader(2), newLeader(3)
		var waiting []*record.Txn
		for range rapid.IntRange(1, 60).Draw(t, "writes") {
			req := w.request()
			a, b := one.prepare(req), piped.prepare(req)
			if (a == nil) != (b == nil) {
				t.Fatalf("%v: one by one %v, pipelined %v", req.Op, a, b)
			}
			if a != nil {
				if !bytes.Equal(a.Append(nil), b.Append(nil)) {
					t.Fatalf("%v:\n%+v %+v\n%+v %+v", req.Op, a, a.Body, b, b.Body)
				}
				one.tree.Apply(a)
				follower.tree.Apply(b)
				waiting = append(waiting, b)
			}
			for n := rapid.IntRange(0, 2).Draw(t, "applied"); n > 0 && len(waiting) > 0; n-- {
				piped.tree.Apply(waiting[0])
				waiting = waiting[1:]
			}
		}
		for _, txn := range waiting {
			piped.tree.Apply(txn)
		}
		p := &piped.tree.pend
		if len(p.views)+len(p.sessions)+len(p.ephemerals)+p.touched.Len() != 0 {
			t.Fatalf("still pending: %+v", p)
		}
		audit(t, follower.tree)
		for name, other := range map[string]*Tree{"pipelined": piped.tree, "follower": follower.tree} {
			if d := diff(dump(one.tree), dump(other)); d != "" {
				t.Fatalf("%s differs:%s", name, d)
			}
		}
	})
}

// load copies a snapshot into another tree. It calls pause where other transactions may
// change the first tree.
func load(t rapid.TB, from *Snapshot, to *Tree, pause func()) *Loader {
	t.Helper()
	check := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	l := to.Loader()
	l.Reset()
	pause()
	check(from.Sessions(func(id wire.SessionID, ms int32) error { return l.Session(id, ms) }))
	pause()
	check(from.ACLs(func(key int64, acl []wire.ACL) error { return l.ACL(key, acl) }))
	pause()
	check(from.Nodes(func(path string, n *record.DataNode) error {
		defer pause()
		return l.Node(path, n)
	}))
	z, digest := from.Digest()
	check(l.SnapshotDone(from.Zxid(), &record.SnapshotDigest{Zxid: z, Version: record.DigestVersion, Tree: digest}))
	return l
}

// TestFuzzySnapshot: a snapshot taken while the tree changes, with the later transactions
// replayed over it, gives the same tree.
func TestFuzzySnapshot(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w, l := newWriter(t), newLeader(rapid.Uint64Range(0, 5).Draw(t, "seed"))
		var txns []*record.Txn
		write := func(most int) {
			for range rapid.IntRange(0, most).Draw(t, "writes") {
				if txn := l.prepare(w.request()); txn != nil {
					l.tree.Apply(txn)
					txns = append(txns, txn)
				}
			}
		}
		write(60)
		s := l.tree.Snapshot()
		s.slice = rapid.IntRange(1, 6).Draw(t, "slice")
		z := s.Zxid()
		copied := New(Options{Seed: 9, ExtendedTypes: true})
		loader := load(t, s, copied, func() { write(3) })
		write(10)
		for _, txn := range txns {
			if txn.Zxid > z {
				loader.Txn(txn)
			}
		}
		if dead := loader.Finish(); len(dead) > 0 {
			t.Fatalf("ephemerals without a session: %v", dead)
		}
		audit(t, copied)
		for _, h := range copied.Observations() {
			if _, ok := h.(QuotaExceeded); !ok {
				t.Fatal(h)
			}
		}
		if d := diff(dump(l.tree), dump(copied)); d != "" {
			t.Fatalf("trees differ:%s", d)
		}
	})
}

// watchModel implements ZooKeeper's rules for watches in the simplest way.
type watchModel struct {
	modes  map[*conn]map[string]modes
	events map[*conn][]string
}

func (m *watchModel) add(c *conn, path string, add modes) {
	if m.modes[c] == nil {
		m.modes[c] = map[string]modes{}
	}
	m.modes[c][path] |= add
}

func (m *watchModel) fire(typ wire.EventType, path string, z wire.Zxid) {
	for c, own := range m.modes {
		hit := false
		for at, have := range own {
			switch {
			case typ == wire.EventNodeChildrenChanged:
				if at == path && have&(childOnce|childStays) != 0 {
					hit = true
					own[at] &^= childOnce
				}
				continue
			case at == path && have&dataTable != 0:
				hit = true
				own[at] &^= dataOnce
			case have&recursive != 0 && (at == "/" || len(path) > len(at) && path[:len(at)+1] == at+"/"):
				hit = true
			}
			if at == path && typ == wire.EventNodeDeleted && have&childTable != 0 {
				hit = true
				own[at] &^= childOnce
			}
		}
		if hit {
			m.events[c] = append(m.events[c], fmt.Sprintf("%v %s %d", typ, path, z))
		}
	}
}

// apply fires the events of the successful operations of a transaction.
func (m *watchModel) apply(body record.TxnBody, z wire.Zxid) {
	created := func(path string) {
		up, _, _ := splitPath(path)
		m.fire(wire.EventNodeCreated, path, z)
		m.fire(wire.EventNodeChildrenChanged, canonical(up), z)
	}
	deleted := func(path string) {
		up, _, _ := splitPath(path)
		m.fire(wire.EventNodeDeleted, path, z)
		m.fire(wire.EventNodeChildrenChanged, canonical(up), z)
	}
	switch b := body.(type) {
	case *record.CreateTxn:
		created(b.Path)
	case *record.CreateContainerTxn:
		created(b.Path)
	case *record.CreateTTLTxn:
		created(b.Path)
	case *record.DeleteTxn:
		deleted(b.Path)
	case *record.SetDataTxn:
		m.fire(wire.EventNodeDataChanged, b.Path, z)
	case *record.CloseSessionTxn:
		for _, path := range b.Paths {
			deleted(path)
		}
	case *record.MultiTxn:
		if !b.Failed() {
			for _, op := range b.Ops {
				m.apply(op.Body, z)
			}
		}
	}
}

// TestWatchesExactlyOnce: each connection gets each event that it watches for exactly
// once and in order, as in the model.
func TestWatchesExactlyOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w, l := newWriter(t), newLeader(1)
		m := &watchModel{map[*conn]map[string]modes{}, map[*conn][]string{}}
		super := []wire.ID{id("super:")}
		conns := []*conn{{ids: super}, {ids: super}, {ids: super}}
		for range rapid.IntRange(1, 80).Draw(t, "steps") {
			i := rapid.IntRange(0, len(conns)-1).Draw(t, "connection")
			c, path := conns[i], w.path()
			switch rapid.IntRange(0, 12).Draw(t, "step") {
			case 0:
				if l.tree.GetData(c, path, true, new(wire.DataResponse)) == wire.OK {
					m.add(c, path, dataOnce)
				}
			case 1:
				l.tree.Exists(c, path, true, new(wire.StatResponse))
				m.add(c, path, dataOnce)
			case 2:
				if l.tree.Children(c, path, true, new(Listing)) == wire.OK {
					m.add(c, path, childOnce)
				}
			case 3:
				l.tree.AddWatch(c, path, wire.WatchPersistent)
				m.add(c, path, stays)
			case 4:
				l.tree.AddWatch(c, path, wire.WatchPersistentRecursive)
				m.add(c, path, recursive)
			case 5:
				typ := rapid.SampledFrom([]wire.WatcherType{1, 2, 3, 4, 5}).Draw(t, "type")
				has := m.modes[c][path]&selected(typ) != 0
				if got := l.tree.RemoveWatches(c, path, typ); (got == wire.OK) != has {
					t.Fatalf("remove %d at %s: %v", typ, path, got)
				}
				if has {
					m.modes[c][path] &^= selected(typ)
				}
			case 6:
				l.tree.Forget(c)
				if got, want := fmt.Sprint(c.events()), fmt.Sprint(m.events[c]); got != want {
					t.Fatalf("got  %s\nwant %s", got, want)
				}
				delete(m.modes, c)
				conns[i] = &conn{ids: super}
			default:
				if txn := l.prepare(w.request()); txn != nil {
					m.apply(txn.Body, txn.Zxid)
					l.tree.Apply(txn)
				}
			}
		}
		var total int64
		for _, c := range conns {
			if got, want := fmt.Sprint(c.events()), fmt.Sprint(m.events[c]); got != want {
				t.Fatalf("got  %s\nwant %s", got, want)
			}
			for path, want := range m.modes[c] {
				total += want.count()
				if got := l.tree.watches.modes(c, path); got != want {
					t.Fatalf("%s: %b, want %b", path, got, want)
				}
			}
		}
		if got := l.tree.Counts().Watches; got != total {
			t.Fatalf("%d watches, want %d", got, total)
		}
	})
}
