package tree

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"bellwether/internal/quota"
	"bellwether/internal/record"
	"bellwether/wire"
)

func stat(czxid wire.Zxid, owner int64) record.StatPersisted {
	return record.StatPersisted{Czxid: czxid, Mzxid: czxid, Pzxid: czxid, Owner: owner}
}

// begin returns the beginning of a snapshot: the znodes that every snapshot has.
func begin(t *testing.T, o Options) (*Tree, *Loader) {
	t.Helper()
	tree := New(o)
	l := tree.Loader()
	l.Reset()
	for _, path := range []string{"", zookeeperPath, configPath, quota.Root} {
		mustNode(t, l, path, openKey, record.StatPersisted{})
	}
	return tree, l
}

func mustNode(t *testing.T, l *Loader, path string, acl int64, s record.StatPersisted) {
	t.Helper()
	if err := l.Node(path, &record.DataNode{Data: []byte{}, ACL: acl, Stat: s}); err != nil {
		t.Fatal(err)
	}
}

// TestUnsoundSnapshots: a snapshot that is not a tree is refused, and an older snapshot
// can be loaded afterwards.
func TestUnsoundSnapshots(t *testing.T) {
	_, l := begin(t, Options{})
	for _, path := range []string{"/missing/x", "x", "/", "/a/", "/a//b", quota.Root, "/\x00/x"} {
		if err := l.Node(path, &record.DataNode{ACL: openKey}); err == nil {
			t.Errorf("a snapshot with the path %q is accepted", path)
		}
	}
	tree := New(Options{})
	l = tree.Loader()
	l.Reset()
	l.Session(5, 1000)
	if err := l.Node("/a", &record.DataNode{ACL: openKey}); err == nil {
		t.Error("a znode before the root is accepted")
	}
	if err := l.SnapshotDone(1, nil); err == nil {
		t.Error("a snapshot without a root is accepted")
	}
	l.Reset()
	if z := loadSampleSnapshot(t, l, "snapshot.3c"); z != 0x3c || len(l.Finish()) != 0 {
		t.Error("the older snapshot does not load")
	}
	if _, ok := tree.Session(5); ok {
		t.Error("a session of the unsound snapshot is left")
	}
}

// TestLogWithoutSnapshot: after Reset the log is replayed over an empty tree.
func TestLogWithoutSnapshot(t *testing.T) {
	tree := New(Options{})
	tree.Apply(sampleTxns(t)[0])
	l := tree.Loader()
	l.Reset()
	for _, txn := range sampleTxns(t) {
		l.Txn(txn)
	}
	l.Finish()
	checkSample(t, tree)
}

// TestDeadOwners: ephemerals of sessions that are not open are removed at the end of
// loading and not before, because the log may still open these sessions.
func TestDeadOwners(t *testing.T) {
	tree, l := begin(t, Options{})
	l.Session(7, 1000)
	mustNode(t, l, "/p", openKey, stat(1, 0))
	mustNode(t, l, "/p/live", openKey, stat(2, 7))
	mustNode(t, l, "/p/late", openKey, stat(3, 8))
	mustNode(t, l, "/p/dead2", openKey, stat(4, 10))
	mustNode(t, l, "/p/dead1", openKey, stat(4, 11))
	mustNode(t, l, "/ttl", openKey, stat(5, record.TTLOwner(1000)))
	mustNode(t, l, "/container", openKey, stat(5, record.OwnerContainer))
	if err := l.SnapshotDone(5, nil); err != nil {
		t.Fatal(err)
	}
	l.Txn(&record.Txn{TxnHeader: record.TxnHeader{Zxid: 6, Session: 8, Type: wire.OpCreateSession}, Body: &record.CreateSessionTxn{TimeoutMS: 5}})
	// A server of an ensemble keeps them, because the other servers would still have
	// them.
	if l.Close(); tree.find("/p/dead1") == nil || tree.find("/p/dead2") == nil {
		t.Error("Close has removed something")
	}
	if got := fmt.Sprint(l.Finish()); got != "[/p/dead1 /p/dead2]" {
		t.Errorf("removed %s", got)
	}
	audit(t, tree)
	if n := tree.find("/p"); n.pzxid != 6 || n.children.len() != 2 {
		t.Errorf("parent %+v", n)
	}
	if c := tree.Counts(); c.TTLs != 1 || c.Containers != 1 || c.Ephemerals != 2 || c.Sessions != 2 {
		t.Errorf("counts %+v", c)
	}
}

// TestOwnerForms: znodes with a TTL are recognised whether or not new ones may be
// created. The form of 3.5.3 is recognised only if that is configured.
func TestOwnerForms(t *testing.T) {
	old := int64(-1<<63 + 77)
	for _, row := range []struct {
		o     Options
		owner int64
		want  kind
		ttl   int64
	}{
		{Options{}, 0, kindPersistent, 0},
		{Options{}, record.OwnerContainer, kindContainer, 0},
		{Options{}, -1<<56 | 86_400_000, kindTTL, 86_400_000},
		{Options{ExtendedTypes: true}, -1 << 56, kindTTL, 0},
		{Options{}, -1<<56 | 1<<40, kindEphemeral, 0},
		{Options{}, int64(alice), kindEphemeral, 0},
		{Options{}, old, kindEphemeral, 0},
		{Options{Emulate353TTL: true}, old, kindTTL, 77},
		{Options{Emulate353TTL: true}, record.OwnerContainer, kindContainer, 0},
	} {
		if k, ttl := row.o.kindOf(row.owner); k != row.want || ttl != row.ttl {
			t.Errorf("%+v %#x: kind %d, ttl %d", row.o, uint64(row.owner), k, ttl)
		}
	}
}

// TestListsOfSnapshot_ZOOKEEPER_4846: ACLs of a snapshot that no znode uses are removed.
// A znode whose ACL is missing from the snapshot permits nothing until replaying the log
// sets the ACL, as a create over a fuzzy snapshot does.
func TestListsOfSnapshot_ZOOKEEPER_4846(t *testing.T) {
	tree, l := begin(t, Options{})
	me := acl(31, "digest:me:x")
	l.ACL(3, []wire.ACL{me})
	l.ACL(4, []wire.ACL{acl(1, "ip:1.2.3.4")})
	l.ACL(5, []wire.ACL{me})
	mustNode(t, l, "/a", 3, stat(1, 0))
	mustNode(t, l, "/b", 5, stat(1, 0))
	mustNode(t, l, "/fuzzy", 99, stat(9, 0))
	if err := l.SnapshotDone(5, nil); err != nil {
		t.Fatal(err)
	}
	if len(tree.acls.places) != 2 { // me and nobody
		t.Errorf("stored ACLs %v, want 2", tree.acls.places)
	}
	read := func(who string) wire.Code {
		return tree.GetData(&conn{ids: []wire.ID{id(who)}}, "/fuzzy", false, new(wire.DataResponse))
	}
	if got := read("digest:me:x"); got != wire.ErrNoAuth {
		t.Errorf("a znode whose ACL is missing answers %v", got)
	}
	res := tree.Apply(&record.Txn{
		TxnHeader: record.TxnHeader{Zxid: 9, Type: wire.OpCreate},
		Body:      &record.CreateTxn{Path: "/fuzzy", ACL: []wire.ACL{me}, ParentCversion: 3},
	})
	if res.Err != wire.ErrNodeExists || read("digest:me:x") != wire.OK || read("digest:you:x") != wire.ErrNoAuth {
		t.Errorf("%v; me %v, you %v", res.Err, read("digest:me:x"), read("digest:you:x"))
	}
	audit(t, tree)
}

// TestCreateWithoutAList: a logged create with a null ACL, which some clients sent, makes
// a znode that is open to all.
func TestCreateWithoutAList(t *testing.T) {
	tree := New(Options{})
	tree.Apply(&record.Txn{TxnHeader: record.TxnHeader{Zxid: 1, Type: wire.OpCreate}, Body: &record.CreateTxn{Path: "/a", ParentCversion: -1}})
	tree.Apply(&record.Txn{TxnHeader: record.TxnHeader{Zxid: 2, Type: wire.OpCreate}, Body: &record.CreateTxn{Path: "/a/b", ParentCversion: -1}})
	var out wire.ACLResponse
	if code := tree.GetACL(&conn{}, "/a", &out); code != wire.OK || fmt.Sprint(out.ACL) != "[{31 {world anyone}}]" {
		t.Errorf("%v %v", code, out.ACL)
	}
	if n := tree.find("/a"); n.cversion != 1 || n.pzxid != 2 {
		t.Errorf("a create with ParentCversion -1 does not increase the counter of its parent by one: %+v", n)
	}
}

// TestApplyTwice: a transaction that is applied to a tree which has its effects already
// changes nothing and causes no error.
func TestApplyTwice(t *testing.T) {
	w := newWorld(t, Options{ExtendedTypes: true})
	w.ok(create("/a", 0))
	w.ok(create("/a/e", wire.FlagEphemeral))
	w.ok(setData("/a", "x", -1))
	w.ok(setACL("/a", -1, acl(31, "digest:a:b"), acl(31, "world:anyone")))
	w.ok(multi(opCreate("/m", 0), opSet("/m", "y", 0)))
	before := dump(w.tree)
	for _, txn := range w.txns {
		w.tree.Apply(txn)
	}
	if d := diff(before[:len(before)-1], dump(w.tree)[:len(before)-1]); d != "" {
		t.Errorf("differs:%s", d)
	}
}

// TestReplayOverLaterZnodes: a snapshot of ZooKeeper may contain a znode that was deleted
// and created again, with its later children. The log can be replayed over it.
func TestReplayOverLaterZnodes(t *testing.T) {
	w := newWorld(t, Options{})
	for _, req := range []*Request{create("/a", 0), remove("/a", -1), create("/a", 0), create("/a/b", 0), create("/a/b/c", 1)} {
		w.ok(req)
	}
	late, copied := w.tree.Snapshot(), New(Options{})
	l := copied.Loader()
	l.Reset()
	late.ACLs(func(key int64, acl []wire.ACL) error { return l.ACL(key, acl) })
	late.Nodes(func(path string, n *record.DataNode) error { return l.Node(path, n) })
	z, digest := w.tree.Digest()
	if err := l.SnapshotDone(0, &record.SnapshotDigest{Zxid: z, Version: 2, Tree: digest}); err != nil {
		t.Fatal(err)
	}
	for _, txn := range w.txns {
		l.Txn(txn)
		audit(t, copied)
	}
	if d := diff(dump(w.tree), dump(copied)); d != "" {
		t.Errorf("differs:%s", d)
	}
}

// TestParentIsNotSetBack: a fuzzy snapshot may contain a later state of a parent than a
// transaction. Replaying the transaction does not undo that state.
func TestParentIsNotSetBack(t *testing.T) {
	header := func(z wire.Zxid) record.TxnHeader { return record.TxnHeader{Zxid: z, Type: wire.OpCreate} }
	for _, row := range []struct {
		name    string
		txn     *record.Txn
		counter int32
		pzxid   wire.Zxid
	}{
		{"earlier create", &record.Txn{TxnHeader: header(11), Body: &record.CreateTxn{Path: "/p/x", ParentCversion: 6}}, 7, 20},
		{"last create", &record.Txn{TxnHeader: header(19), Body: &record.CreateTxn{Path: "/p/x", ParentCversion: 7}}, 7, 20},
		{"later create", &record.Txn{TxnHeader: header(21), Body: &record.CreateTxn{Path: "/p/x", ParentCversion: 8}}, 8, 21},
		{"later create of what is there", &record.Txn{TxnHeader: header(21), Body: &record.CreateTxn{Path: "/p/is", ParentCversion: 8}}, 8, 21},
		{"earlier delete", &record.Txn{TxnHeader: header(12), Body: &record.DeleteTxn{Path: "/p/is"}}, 7, 20},
		{"later delete", &record.Txn{TxnHeader: header(21), Body: &record.DeleteTxn{Path: "/p/is"}}, 7, 21},
		{"later delete of what is gone", &record.Txn{TxnHeader: header(21), Body: &record.DeleteTxn{Path: "/p/gone"}}, 7, 21},
	} {
		tree, l := begin(t, Options{})
		s := stat(5, 0)
		s.Cversion, s.Pzxid = 7, 20
		mustNode(t, l, "/p", openKey, s)
		mustNode(t, l, "/p/is", openKey, stat(6, 0))
		if err := l.SnapshotDone(10, nil); err != nil {
			t.Fatal(err)
		}
		l.Txn(row.txn)
		audit(t, tree)
		if n := tree.find("/p"); n.cversion != row.counter || n.pzxid != row.pzxid {
			t.Errorf("%s: counter %d at %v, want %d at %v", row.name, n.cversion, n.pzxid, row.counter, row.pzxid)
		}
	}
}

// TestSnapshotLeavesOutLaterZnodes: a snapshot leaves out znodes that were created after
// it began. Their creates are replayed, also by a server of ZooKeeper 3.8.0, which would
// keep the ACL of a znode that exists.
func TestSnapshotLeavesOutLaterZnodes(t *testing.T) {
	w := newWorld(t, Options{})
	w.ok(create("/before", 0))
	s := w.tree.Snapshot()
	w.ok(create("/after", 0))
	w.ok(create("/before/after", 0))
	got := ""
	s.Nodes(func(path string, n *record.DataNode) error {
		if outsideDigest(path) {
			return nil
		}
		got += path + " "
		return nil
	})
	if !strings.Contains(got, "/before ") || strings.Contains(got, "after") {
		t.Errorf("snapshot has %s", got)
	}
}

// TestSessionTableIsInStep_ZOOKEEPER_3144: a snapshot that is named after a zxid contains
// the session that this zxid opened.
func TestSessionTableIsInStep_ZOOKEEPER_3144(t *testing.T) {
	w := newWorld(t, Options{})
	s := w.tree.Snapshot()
	w.open(9)
	w.ok(create("/e", wire.FlagEphemeral).by(9))
	found := map[wire.SessionID]bool{}
	s.Sessions(func(id wire.SessionID, _ int32) error {
		found[id] = true
		return nil
	})
	if s.Zxid() != 2 || !found[alice] || !found[bob] {
		t.Errorf("snapshot %v has sessions %v", s.Zxid(), found)
	}
	copied := New(Options{})
	l := load(t, w.tree.Snapshot(), copied, func() {})
	if gone := l.Finish(); len(gone) != 0 || copied.find("/e") == nil {
		t.Errorf("removed %v", gone)
	}
}

// TestDigestChecks: digest mismatches are counted, and up to a limit each is reported
// once. While the snapshot is fuzzy, digests are not compared.
func TestDigestChecks(t *testing.T) {
	txn := func(z wire.Zxid, digest uint64) *record.Txn {
		return &record.Txn{TxnHeader: record.TxnHeader{Zxid: z, Type: wire.OpCreateSession, Session: 1}, Body: &record.CreateSessionTxn{},
			Digest: &record.TxnDigest{Version: 2, Tree: digest}}
	}
	tree := New(Options{})
	_, right := tree.Digest()
	tree.Apply(txn(1, right))
	tree.Apply(txn(2, right+1))
	other := txn(3, right+1)
	other.Digest.Version = 3
	tree.Apply(other)
	for z := wire.Zxid(4); z < 40; z++ {
		tree.Apply(txn(z, 5))
	}
	n, first := tree.DigestMismatches()
	if n != 37 || len(first) != 16 || first[0] != 2 || first[1] != 4 {
		t.Errorf("%d mismatches, first %v", n, first)
	}
	h := tree.Observations()
	want := "digests are not matching at zxid 0x2: 1371985504 here, 1371985505 expected; this server's tree differs from its leader's"
	if len(h) != 16 || h[0].String() != want {
		t.Errorf("%d observations, first %v", len(h), h[0])
	}

	for _, row := range []struct {
		name   string
		digest *record.SnapshotDigest
		txns   []*record.Txn
		want   int64
		told   string
	}{
		{"none", nil, []*record.Txn{txn(11, 1)}, 1, ""},
		{"zxid 0", &record.SnapshotDigest{Version: 2}, []*record.Txn{txn(11, right)}, 0, ""},
		{"zxid 0, from a leader", &record.SnapshotDigest{Version: 2}, []*record.Txn{txn(11, 1)}, 0, ""},
		{"at its name, right", &record.SnapshotDigest{Zxid: 10, Version: 2, Tree: right}, nil, 0, ""},
		{"at its name, wrong", &record.SnapshotDigest{Zxid: 10, Version: 2, Tree: 1}, nil, 1, ""},
		{"older", &record.SnapshotDigest{Zxid: 9, Version: 2, Tree: 1}, nil, 0, ""},
		{"other version", &record.SnapshotDigest{Zxid: 10, Version: 1, Tree: 1}, nil, 0, ""},
		{"later, right", &record.SnapshotDigest{Zxid: 12, Version: 2, Tree: right}, []*record.Txn{txn(11, 1), txn(12, 1), txn(13, right)}, 0, ""},
		{"later, wrong", &record.SnapshotDigest{Zxid: 12, Version: 2, Tree: 1}, []*record.Txn{txn(11, 1), txn(12, right), txn(13, 1)}, 2, ""},
		{"not reached", &record.SnapshotDigest{Zxid: 12, Version: 2, Tree: right}, []*record.Txn{txn(11, 1)}, 0,
			"the log ends at zxid 0xb, before 0xc at which the snapshot was complete: the tree may hold parts of lost transactions"},
	} {
		tree, l := begin(t, Options{})
		tree.find(configPath).aversion = -1
		if err := l.SnapshotDone(10, row.digest); err != nil {
			t.Fatal(err)
		}
		for _, txn := range row.txns {
			l.Txn(txn)
		}
		l.Finish()
		h := tree.Observations()
		if n, _ := tree.DigestMismatches(); n != row.want || row.told != "" && (len(h) != 1 || h[0].String() != row.told) || int(n) != len(h) && row.told == "" {
			t.Errorf("%s: %d mismatches, told %v", row.name, n, h)
		}
	}
}

// TestDigestOff: with digests disabled, none is computed, stored or compared.
func TestDigestOff(t *testing.T) {
	w := newWorld(t, Options{DigestOff: true})
	w.ok(create("/a", 0))
	if _, digest := w.tree.Digest(); digest != 0 || w.txns[2].Digest != nil {
		t.Errorf("digest %d, in the transaction %v", digest, w.txns[2].Digest)
	}
	w.z++
	w.apply(&record.Txn{TxnHeader: record.TxnHeader{Zxid: w.z, Type: wire.OpDelete}, Body: &record.DeleteTxn{Path: "/a"},
		Digest: &record.TxnDigest{Version: 2, Tree: 7}})
}

// TestExactDigest: the digest is not exact as long as the tree may contain effects of later transactions, and never if digests are disabled.
func TestExactDigest(t *testing.T) {
	tree := New(Options{})
	exact := func() bool {
		z, digest, ok := tree.ExactDigest()
		if wantZ, want := tree.Digest(); z != wantZ || digest != want {
			t.Errorf("%d after %v, want %d after %v", digest, z, want, wantZ)
		}
		return ok
	}
	if !exact() {
		t.Error("the digest of a new tree is not exact")
	}
	loader := tree.Loader()
	if loader.CloseFuzzy(); exact() {
		t.Error("the digest of a fuzzy tree is exact")
	}
	if tree.Settled(); !exact() {
		t.Error("the digest is not exact after the snapshot has settled")
	}
	if _, _, ok := New(Options{DigestOff: true}).ExactDigest(); ok {
		t.Error("there is an exact digest although digests are disabled")
	}
}

// TestDigestHistory: the history has the digest of every 128th transaction, and at most
// 1024 of them.
func TestDigestHistory(t *testing.T) {
	tree := New(Options{})
	for z := wire.Zxid(1); z <= 128*1030; z++ {
		tree.Apply(&record.Txn{TxnHeader: record.TxnHeader{Zxid: z, Type: wire.OpError}, Body: &record.ErrorTxn{}})
	}
	h := tree.DigestHistory()
	if len(h) != 1024 || h[0].Zxid != 128*7 || h[1023].Zxid != 128*1030 || h[5].Digest != 1371985504 {
		t.Errorf("%d entries from %v to %v", len(h), h[0], h[len(h)-1])
	}
}

// TestFuzzyStream: a snapshot sent between servers may contain effects of transactions
// that follow it. Digests are not compared until all these transactions are applied.
func TestFuzzyStream(t *testing.T) {
	tree, l := begin(t, Options{})
	mustNode(t, l, "/a", openKey, stat(2, 0))
	if err := l.SnapshotDone(2, nil); err != nil {
		t.Fatal(err)
	}
	l.CloseFuzzy()
	wrong := func(z wire.Zxid) *record.Txn {
		return &record.Txn{TxnHeader: record.TxnHeader{Zxid: z, Type: wire.OpError}, Body: &record.ErrorTxn{},
			Digest: &record.TxnDigest{Version: record.DigestVersion, Tree: 1}}
	}
	tree.Apply(wrong(3))
	if n, _ := tree.DigestMismatches(); n != 0 {
		t.Error("a digest was compared before Settled")
	}
	tree.Settled()
	tree.Apply(wrong(4))
	if n, _ := tree.DigestMismatches(); n != 1 {
		t.Error("no digest is compared after Settled")
	}
}

// TestInstalledSnapshot: a snapshot from a leader is still fuzzy after a restart. The
// server recognises it by the digest in the file, which belongs to no transaction.
func TestInstalledSnapshot(t *testing.T) {
	tree, l := begin(t, Options{})
	if err := l.SnapshotDone(2, &record.SnapshotDigest{Version: record.DigestVersion}); err != nil {
		t.Fatal(err)
	}
	wrong := func(z wire.Zxid) *record.Txn {
		return &record.Txn{TxnHeader: record.TxnHeader{Zxid: z, Type: wire.OpError}, Body: &record.ErrorTxn{},
			Digest: &record.TxnDigest{Version: record.DigestVersion, Tree: 1}}
	}
	l.Txn(wrong(3))
	l.Close()
	tree.Apply(wrong(4))
	if n, _ := tree.DigestMismatches(); n != 0 || len(tree.Observations()) != 0 {
		t.Errorf("%d mismatches before the server serves", n)
	}
	tree.Settled()
	tree.Apply(wrong(5))
	if n, _ := tree.DigestMismatches(); n != 1 {
		t.Error("no digest is compared after Settled")
	}
}

// TestInstalledSnapshotOfNoTransactions: a snapshot named 0 that a leader sent while it applied its
// first transactions is fuzzy too. The snapshot of a new tree is not: digests are compared at once.
func TestInstalledSnapshotOfNoTransactions(t *testing.T) {
	for _, changed := range []bool{true, false} {
		tree, l := begin(t, Options{})
		if changed { // a child of the root was created while the root was sent
			l.Reset()
			mustNode(t, l, "", openKey, record.StatPersisted{Pzxid: 1, Cversion: 1})
		}
		if err := l.SnapshotDone(0, &record.SnapshotDigest{Version: record.DigestVersion}); err != nil {
			t.Fatal(err)
		}
		l.Txn(&record.Txn{TxnHeader: record.TxnHeader{Zxid: 1, Type: wire.OpError}, Body: &record.ErrorTxn{},
			Digest: &record.TxnDigest{Version: record.DigestVersion, Tree: 1}})
		l.Close()
		if n, _ := tree.DigestMismatches(); (n == 0) != changed {
			t.Errorf("snapshot of a changed tree: %v; %d mismatches", changed, n)
		}
	}
}

// TestDescribe: the znode with the membership has the membership's version, but does not
// count in the digest.
func TestDescribe(t *testing.T) {
	w := newWorld(t, Options{})
	last, digest := w.tree.Digest()
	bytes := w.tree.Counts().DataBytes
	w.tree.Describe("server.1=a\nversion=5", 5, 77)
	var r wire.DataResponse
	if code := w.tree.GetData(&conn{}, configPath, false, &r); code != wire.OK || string(r.Data) != "server.1=a\nversion=5" {
		t.Fatalf("%v, %q", code, r.Data)
	}
	if s := r.Stat; s.Version != -1 || s.Aversion != -1 || s.Mzxid != 5 || s.Mtime != 77 || s.Czxid != 0 {
		t.Errorf("stat %+v", s)
	}
	if z, d := w.tree.Digest(); z != last || d != digest {
		t.Errorf("the tree went from %v, %x to %v, %x", last, digest, z, d)
	}
	if grown := w.tree.Counts().DataBytes - bytes; grown != int64(len(r.Data)) {
		t.Errorf("counted %d bytes", grown)
	}
}

// TestSnapshotStopsAtTheFirstError: what cannot be written ends the pass, and the writer gets its own error.
func TestSnapshotStopsAtTheFirstError(t *testing.T) {
	w := newWorld(t, Options{})
	w.ok(createACL("/a", wire.ACL{Perms: wire.PermRead, ID: wire.ID{Scheme: "world", ID: "anyone"}}))
	w.ok(createACL("/b", wire.ACL{Perms: wire.PermWrite, ID: wire.ID{Scheme: "world", ID: "anyone"}}))
	full, s := errors.New("disk full"), w.tree.Snapshot()
	for name, pass := range map[string]func(func() error) error{
		"sessions": func(yield func() error) error {
			return s.Sessions(func(wire.SessionID, int32) error { return yield() })
		},
		"ACLs": func(yield func() error) error { return s.ACLs(func(int64, []wire.ACL) error { return yield() }) },
		"znodes": func(yield func() error) error {
			return s.Nodes(func(string, *record.DataNode) error { return yield() })
		},
	} {
		calls := 0
		if err := pass(func() error { calls++; return full }); err != full || calls != 1 {
			t.Errorf("%s: %v after %d calls", name, err, calls)
		}
		calls = 0
		if err := pass(func() error { calls++; return nil }); err != nil || calls < 2 {
			t.Errorf("%s: %v after %d calls, want at least 2", name, err, calls)
		}
	}
}
