package tree

import (
	"fmt"
	"slices"
	"testing"

	"bellwether/internal/quota"
	"bellwether/internal/record"
	"bellwether/wire"
)

// TestPermitsEveryPermission shows that the ACL must give every permission that is asked for, and that a missing znode gives none.
func TestPermitsEveryPermission(t *testing.T) {
	w := newWorld(t, Options{})
	alone := wire.ID{Scheme: "digest", ID: "a:b"}
	w.ok(createACL("/a", wire.ACL{Perms: wire.PermRead, ID: wire.ID{Scheme: "world", ID: "anyone"}}, wire.ACL{Perms: wire.PermWrite, ID: alone}))
	for _, c := range []struct {
		path            string
		perms           int32
		ids             []wire.ID
		permits, exists bool
	}{
		{"/a", 0, nil, true, true},
		{"/a", wire.PermRead, nil, true, true},
		{"/a", wire.PermWrite, nil, false, true},
		{"/a", wire.PermRead | wire.PermWrite, nil, false, true},
		{"/a", wire.PermRead | wire.PermWrite, []wire.ID{alone}, true, true},
		{"/a", wire.PermRead | wire.PermWrite | wire.PermAdmin, []wire.ID{alone}, false, true},
		{"/a", wire.PermAdmin, []wire.ID{alone}, false, true},
		{"/b", wire.PermRead, nil, false, false},
		{"/", wire.PermAll, nil, true, true},
	} {
		if permits, exists := w.tree.Permits(c.path, c.perms, c.ids); permits != c.permits || exists != c.exists {
			t.Errorf("%s, permissions %b, %v: permits %v, exists %v", c.path, c.perms, c.ids, permits, exists)
		}
	}
}

// TestCreatesEphemeral shows which requests create an ephemeral znode: creates with the flag, and multis with such a create.
func TestCreatesEphemeral(t *testing.T) {
	create := func(flags int32) *wire.CreateRequest {
		return &wire.CreateRequest{Path: "/a", ACL: wire.OpenACL(), Flags: flags}
	}
	multi := func(ops ...wire.Op) *wire.MultiRequest { return &wire.MultiRequest{Ops: ops} }
	for _, c := range []struct {
		name string
		op   wire.OpCode
		body wire.Record
		want bool
	}{
		{"persistent", wire.OpCreate, create(0), false},
		{"ephemeral", wire.OpCreate, create(wire.FlagEphemeral), true},
		{"ephemeral with its stat", wire.OpCreate2, create(wire.FlagEphemeral), true},
		{"sequential", wire.OpCreate, create(wire.FlagPersistentSequential), false},
		{"container", wire.OpCreateContainer, create(wire.FlagContainer), false},
		{"setData", wire.OpSetData, &wire.SetDataRequest{Path: "/a"}, false},
		{"multi without one", wire.OpMulti, multi(wire.Op{Type: wire.OpCreate, Request: create(0)}), false},
		{"multi with one at its end", wire.OpMulti, multi(wire.Op{Type: wire.OpDelete, Request: &wire.PathVersionRequest{Path: "/b"}},
			wire.Op{Type: wire.OpCreate, Request: create(wire.FlagEphemeral)}), true},
		{"empty multi", wire.OpMulti, multi(), false},
	} {
		if got := CreatesEphemeral(c.op, wire.Append(nil, c.body)); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
	if CreatesEphemeral(wire.OpCreate, []byte{1}) || CreatesEphemeral(wire.OpMulti, []byte{1}) || MultiCreatesEphemeral(nil) || CreatesWithoutStat(nil) != nil {
		t.Error("a request that cannot be decoded creates an ephemeral")
	}
	plain := multi(wire.Op{Type: wire.OpCreate, Request: create(0)}, wire.Op{Type: wire.OpCreate2, Request: create(0)})
	if got := CreatesWithoutStat(plain); !slices.Equal(got, []bool{true, false}) {
		t.Errorf("creates without a stat: %v", got)
	}
}

// TestNoEphemeralsOfLocalSessions: a server proposes no ephemeral znode for a local session, and anything else.
func TestNoEphemeralsOfLocalSessions(t *testing.T) {
	w := newWorld(t, Options{})
	for i, want := range []wire.Code{wire.ErrEphemeralOnLocalSession, wire.OK} {
		r := create("/a", []int32{wire.FlagEphemeral, 0}[i])
		r.Session, r.Local = 99, true
		if got := w.do(r).Err; got != want {
			t.Errorf("flags %d: %v, want %v", r.Body[len(r.Body)-1], got, want)
		}
	}
}

// TestSizesOfAnswers: the sizes that bound answers in memory are those of the data and the names, with a fixed part for each result.
func TestSizesOfAnswers(t *testing.T) {
	w := newWorld(t, Options{})
	w.ok(request(wire.OpCreate, &wire.CreateRequest{Path: "/a", Data: make([]byte, 1000), ACL: wire.OpenACL()}))
	w.ok(create("/few", 0))
	w.ok(create("/few/x", wire.FlagEphemeral))
	w.ok(create("/few/yz", wire.FlagEphemeral))
	w.ok(create("/many", 0))
	for i := range manyChildren {
		w.ok(create(fmt.Sprintf("/many/%02d", i), 0))
	}
	few := resultBytes + 2*nameBytes + len("x") + len("yz") + 2
	for _, c := range []struct {
		op   wire.OpCode
		path string
		want int
	}{
		{wire.OpGetData, "/a", resultBytes + 1000},
		{wire.OpExists, "/a", resultBytes},
		{wire.OpGetACL, "/missing", resultBytes},
		{wire.OpGetChildren, "/few", few},
		{wire.OpGetChildren2, "/few", few},
		{wire.OpGetChildren, "/a", resultBytes},
		{wire.OpGetChildren, "/many", resultBytes + nameBytes*manyChildren},
	} {
		if got := w.tree.ReadBytes(c.op, c.path); got != c.want {
			t.Errorf("%v of %s: %d bytes, want %d", c.op, c.path, got, c.want)
		}
	}
	ops := []wire.Op{{Type: wire.OpGetData, Request: &wire.PathWatchRequest{Path: "/a"}}, {Type: wire.OpGetChildren, Request: &wire.PathWatchRequest{Path: "/few"}}}
	if got, want := w.tree.MultiReadBytes(ops), resultBytes+1000+few; got != want {
		t.Errorf("multiRead: %d bytes, want %d", got, want)
	}
	c := &conn{session: alice}
	if got, want := w.tree.EphemeralsBytes(c), resultBytes+2*64; got != want {
		t.Errorf("ephemerals: %d bytes, want %d", got, want)
	}
	var out wire.MultiResponse
	if code := w.tree.MultiRead(c, ops, resultBytes+1000+few, &out); code != wire.OK || len(out.Results) != 2 {
		t.Errorf("multiRead of as much as is allowed: %v, %d results", code, len(out.Results))
	}
	if code := w.tree.MultiRead(c, ops, resultBytes+1000+few-1, &out); code != wire.ErrSystem || len(out.Results) != 1 {
		t.Errorf("multiRead of too much: %v, %d results", code, len(out.Results))
	}
	// Once somebody has listed them, the names of many children are known.
	var list Listing
	w.tree.Children(c, "/many", false, &list)
	if got, want := w.tree.ReadBytes(wire.OpGetChildren, "/many"), resultBytes+list.Many.Bytes; got != want {
		t.Errorf("many children that were listed: %d bytes, want %d", got, want)
	}
	// A multiRead lists many children as getChildren does.
	ops = []wire.Op{{Type: wire.OpGetChildren, Request: &wire.PathWatchRequest{Path: "/many"}}}
	if code := w.tree.MultiRead(c, ops, 1<<20, &out); code != wire.OK {
		t.Fatal(code)
	}
	var back wire.ChildrenResponse
	if err := wire.Decode(wire.Append(nil, out.Results[0].Response), &back); err != nil || !slices.Equal(slices.Sorted(slices.Values(back.Children)), slices.Sorted(slices.Values(list.All()))) {
		t.Errorf("%v, %d names", err, len(back.Children))
	}
}

// TestSessionDeleted: the tree tells of each ephemeral znode that it deletes because its session has ended, whether the transaction lists it or
// not, and of no other znode.
func TestSessionDeleted(t *testing.T) {
	var told []string
	w := newWorld(t, Options{SessionDeleted: func(id wire.SessionID, path string) { told = append(told, fmt.Sprint(id == alice, path)) }})
	for _, path := range []string{"/b", "/a"} {
		w.ok(create(path, wire.FlagEphemeral))
	}
	w.ok(create("/mine", 0))
	w.ok(create("/other", wire.FlagEphemeral).by(bob))
	w.ok(create("/gone", wire.FlagEphemeral))
	w.ok(request(wire.OpDelete, &wire.PathVersionRequest{Path: "/gone", Version: -1}))
	for _, listed := range [][]string{{"/a", "/gone"}, nil} {
		told = nil
		w.z++
		w.tree.Apply(&record.Txn{TxnHeader: record.TxnHeader{Session: alice, Zxid: w.z, Type: wire.OpCloseSession, Time: w.now}, Body: &record.CloseSessionTxn{Paths: listed}})
		if slices.Sort(told); listed != nil && !slices.Equal(told, []string{"true/a", "true/b"}) || listed == nil && len(told) != 0 {
			t.Errorf("listed %v: %v", listed, told)
		}
	}
}

// TestWhatServersAskTheTree: the sessions in order, the text of the membership, the preferred leader, and where a restored tree continues.
func TestWhatServersAskTheTree(t *testing.T) {
	w := newWorld(t, Options{})
	var ids []wire.SessionID
	w.tree.Sessions(func(id wire.SessionID, timeout int32) {
		if ids = append(ids, id); timeout != 30000 {
			t.Errorf("timeout %d", timeout)
		}
	})
	if !slices.Equal(ids, []wire.SessionID{alice, bob}) {
		t.Errorf("sessions %v", ids)
	}
	if _, ok := w.tree.PreferredLeader(); ok {
		t.Error("a leader is preferred")
	}
	w.tree.Describe("members", 0x100000007, 5)
	if text, at := w.tree.Described(); text != "members" || at != 0x100000007 {
		t.Errorf("%q at %v", text, at)
	}
	w = newWorld(t, Options{Reconfig: true, SkipACL: true})
	w.ok(request(wire.OpCreate, &wire.CreateRequest{Path: PreferredLeaderPath, Data: []byte("3"), ACL: wire.OpenACL()}))
	if data, ok := w.tree.PreferredLeader(); !ok || data != "3" {
		t.Errorf("%q, %v", data, ok)
	}
	for _, c := range []struct{ z, want wire.Zxid }{{2, 5}, {5, 5}, {0x200000000, 0x200000000}} {
		tree := New(Options{})
		l := tree.Loader()
		l.Reset()
		if err := l.SnapshotDone(5, nil); err != nil {
			t.Fatal(err)
		}
		l.Continue(c.z)
		l.Finish()
		if tree.LastZxid() != c.want {
			t.Errorf("continues after %v: at %v, want %v", c.z, tree.LastZxid(), c.want)
		}
	}
	tree := New(Options{})
	l := tree.Loader()
	l.Reset()
	if err := l.SnapshotDone(5, nil); err != nil {
		t.Fatal(err)
	}
	if l.CloseFuzzy(); !tree.Fuzzy() {
		t.Error("the tree of a leader that went on is not fuzzy")
	}
	if tree.Settled(); tree.Fuzzy() {
		t.Error("still fuzzy")
	}
}

// TestResetForgetsEverything: a tree that is loaded again has nothing of what it had before.
func TestResetForgetsEverything(t *testing.T) {
	w := newWorld(t, Options{ExtendedTypes: true})
	w.ok(create("/a", wire.FlagEphemeral))
	w.ok(container("/c"))
	w.ok(create("/c/x", 0))
	w.ok(request(wire.OpDelete, &wire.PathVersionRequest{Path: "/c/x", Version: -1}))
	w.ok(request(wire.OpCreateTTL, &wire.CreateTTLRequest{CreateRequest: wire.CreateRequest{Path: "/t", ACL: wire.OpenACL(), Flags: wire.FlagPersistentTTL}, TTL: 1}))
	if due := w.tree.DueContainers(1 << 50); !slices.Equal(due, []string{"/c", "/t"}) {
		t.Fatalf("%v are due", due)
	}
	fresh := New(Options{})
	for _, tree := range []*Tree{w.tree, fresh} {
		l := tree.Loader()
		l.Reset()
		for _, path := range []string{"", zookeeperPath, configPath, quota.Root} {
			mustNode(t, l, path, openKey, record.StatPersisted{})
		}
		if err := l.SnapshotDone(7, nil); err != nil {
			t.Fatal(err)
		}
		l.Finish()
	}
	z, digest := w.tree.Digest()
	if fz, fd := fresh.Digest(); w.tree.Counts() != fresh.Counts() || z != fz || digest != fd || w.tree.LastZxid() != 7 || len(w.tree.DueContainers(1<<50)) != 0 {
		t.Errorf("%+v at %v with digest %d, want %+v, %v, %d; %v are due", w.tree.Counts(), z, digest, fresh.Counts(), fz, fd, w.tree.DueContainers(1<<50))
	}
}

// TestForgottenClientHoldsNoLock: a writer whose event meets the end of a client's connection does not wait for that client.
func TestForgottenClientHoldsNoLock(t *testing.T) {
	w := newWorld(t, Options{})
	w.ok(create("/a", 0))
	c := &conn{session: alice}
	var out wire.DataResponse
	w.tree.GetData(c, "/a", true, &out)
	o := w.tree.watches.known(c)
	w.tree.Forget(c)
	if !o.mu.TryLock() {
		t.Fatal("the client's list of watches is locked for ever")
	}
	if w.tree.Counts().Watches != 0 {
		t.Errorf("%+v", w.tree.Counts())
	}
}

// TestSessionOfNobody: a session that is not open, or not any more, has no timeout.
func TestSessionOfNobody(t *testing.T) {
	w := newWorld(t, Options{})
	w.ok(closeSession(bob))
	for id, want := range map[wire.SessionID]int32{alice: 30000, bob: 0, 5: 0} {
		if timeout, open := w.tree.Session(id); timeout != want || open != (want > 0) {
			t.Errorf("session %v: timeout %d, open %v", id, timeout, open)
		}
	}
}
