package tree

import (
	"fmt"
	"math"
	"slices"

	"bellwether/internal/record"
	"bellwether/wire"
)

// Loader fills a tree from a snapshot and the log after it; it is a store.Sink. Nothing
// else may use the tree until Finish or Close has returned. Without a snapshot the
// transactions are applied to the tree of an empty server.
type Loader struct {
	t      *Tree
	begun  bool // the snapshot has yielded a znode, session or ACL
	rooted bool
	acls   map[int64]int32
	// parentPath is the path of the parent of the last znode, because most znodes follow a sibling.
	parentPath string
	parent     *node
}

// Loader returns a loader for the tree.
func (t *Tree) Loader() *Loader { return &Loader{t: t} }

// Reset goes back to the tree of an empty server.
func (l *Loader) Reset() {
	l.t.mu.Lock()
	defer l.t.mu.Unlock()
	l.t.reset()
	l.t.builtIn()
	*l = Loader{t: l.t}
}

// begin removes the built-in znodes, because the snapshot contains its own.
func (l *Loader) begin() {
	if !l.begun {
		l.t.reset()
		l.begun = true
		l.acls = map[int64]int32{}
	}
}

// Session adds a session of the snapshot.
func (l *Loader) Session(id wire.SessionID, timeoutMS int32) error {
	l.begin()
	l.t.openSession(id, timeoutMS)
	return nil
}

// ACL adds an ACL of the snapshot, under the key by which the snapshot's znodes name it.
func (l *Loader) ACL(key int64, acl []wire.ACL) error {
	l.begin()
	l.acls[key] = l.t.acls.place(acl)
	return nil
}

// noAccess is used for an ACL whose key the snapshot does not contain. Such a key was
// assigned while the snapshot was written, and replaying the log sets the ACL again.
var noAccess = []wire.ACL{{Perms: 0, ID: wire.ID{Scheme: schemeWorld, ID: "anyone"}}}

func (l *Loader) place(key int64) int32 {
	if key == openKey {
		return 0
	}
	if i, ok := l.acls[key]; ok {
		return i
	}
	return l.t.acls.place(noAccess)
}

// Node adds a znode of the snapshot. It fails if the parent did not come before it, or if
// the path is not valid.
func (l *Loader) Node(path string, d *record.DataNode) error {
	l.begin()
	t := l.t
	if path == "" {
		l.rooted = true
		l.set(t.root, d)
		t.root.crc = t.crcOf("/", d.Data)
		t.digest = t.sum(t.root)
		return nil
	}
	up, name, ok := splitPath(path)
	if !ok || name == "" {
		return fmt.Errorf("snapshot: %q is not a path", path)
	}
	if l.parent == nil || up != l.parentPath {
		l.parentPath, l.parent = up, t.find(up)
	}
	if !l.rooted || l.parent == nil {
		return fmt.Errorf("snapshot: znode %q comes before its parent", path)
	}
	hash := t.key.name(name)
	if l.parent.children.get(name, hash) != nil {
		return fmt.Errorf("snapshot: znode %q comes twice", path)
	}
	n := newNode(name, hash, d.Data)
	l.set(n, d)
	t.attach(l.parent, n, path)
	return nil
}

// set gives a znode the stat and the ACL that the snapshot has for it.
func (l *Loader) set(n *node, d *record.DataNode) {
	s := &d.Stat
	n.czxid, n.mzxid, n.pzxid, n.ctime, n.mtime = s.Czxid, s.Mzxid, s.Pzxid, s.Ctime, s.Mtime
	n.version, n.cversion, n.aversion, n.owner = s.Version, s.Cversion, s.Aversion, s.Owner
	n.acl = l.place(d.ACL)
	l.t.acls.use(n.acl)
	if n == l.t.root {
		l.t.bytes += int64(len(d.Data) - n.dataLen())
		n.write("", d.Data)
	}
}

// unknown is the value of digestLog.want while the tree contains effects of later
// transactions and nobody knows of which.
var unknown = record.SnapshotDigest{Zxid: math.MaxInt64}

// SnapshotDone ends the snapshot named after zxid. If the digest is that of a later
// transaction, the snapshot contains effects up to that transaction, and no digest is
// compared until it has been replayed. A digest with zxid 0 shows that the snapshot came
// from a leader, unless it is that of a tree without transactions; then no digest is
// compared until Settled or Finish is called.
func (l *Loader) SnapshotDone(zxid wire.Zxid, digest *record.SnapshotDigest) error {
	t := l.t
	if l.begun && !l.rooted {
		return fmt.Errorf("snapshot %v has no root", zxid)
	}
	t.builtIn()
	t.acls.sweep()
	t.recountAll()
	t.last = zxid
	l.acls = nil
	if digest == nil || digest.Version != record.DigestVersion || t.o.DigestOff {
		return nil
	}
	switch {
	case digest.Zxid == 0 && zxid == 0 && t.isNew(): // the tree before the first transaction
	case digest.Zxid == 0:
		t.digests.fuzzy, t.digests.want = true, unknown
	case digest.Zxid == zxid:
		t.compare(zxid, digest.Version, digest.Tree)
	case digest.Zxid > zxid:
		t.digests.fuzzy, t.digests.want = true, *digest
	}
	return nil
}

// isNew reports whether no transaction has changed the tree, as its digest shows.
func (t *Tree) isNew() bool { return t.digest == New(Options{}).digest }

// Txn replays a transaction.
func (l *Loader) Txn(txn *record.Txn) error {
	l.t.Replay(txn)
	return nil
}

// Continue makes z the last applied zxid, unless a later transaction was loaded. A restored tree
// begins a history of its own, which continues after z.
func (l *Loader) Continue(z wire.Zxid) {
	l.t.mu.Lock()
	defer l.t.mu.Unlock()
	l.t.last = max(z, l.t.last)
}

// Close ends loading on a server of an ensemble. It removes nothing, because in an
// ensemble only transactions change the tree.
func (l *Loader) Close() {
	l.t.mu.Lock()
	defer l.t.mu.Unlock()
	l.close()
}

// CloseFuzzy is Close for a snapshot that a leader sent while it applied transactions.
// The snapshot contains effects of some later transactions, and nobody knows of which, so
// no digest is compared until Settled is called.
func (l *Loader) CloseFuzzy() {
	l.t.mu.Lock()
	defer l.t.mu.Unlock()
	l.t.digests.fuzzy, l.t.digests.want = true, unknown
}

// Describe writes the text of a membership into /zookeeper/config, without a transaction,
// at the membership's version. Each server of an ensemble whose membership is in a file
// does that by itself. Digests are not affected, because they do not count what is below
// /zookeeper.
func (t *Tree) Describe(members string, version, wallMS int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.applySetData(&record.SetDataTxn{Path: configPath, Data: []byte(members), Version: -1},
		&record.TxnHeader{Zxid: wire.Zxid(version), Time: wallMS})
}

// Fuzzy reports whether the tree comes from a snapshot that may contain effects of transactions which the
// tree has not applied yet. Such a tree is in a state in which it never was.
func (t *Tree) Fuzzy() bool {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.digests.fuzzy
}

// Settled says that every transaction whose effects the snapshot may contain has been
// applied. From then on digests are compared.
func (t *Tree) Settled() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.digests.fuzzy = false
}

func (l *Loader) close() {
	if d := &l.t.digests; d.fuzzy && d.want != unknown {
		d.fuzzy = false
		l.t.observe(DigestNotReached{l.t.last, d.want.Zxid})
	}
}

// Finish ends loading. It removes the ephemerals of sessions that are not open, because
// no transaction will, and returns their paths, sorted. If it returns any, the caller
// must write a snapshot before anything more is logged. Otherwise a replay over the older
// snapshot would find them again, in place of znodes created since.
func (l *Loader) Finish() []string {
	t := l.t
	t.mu.Lock()
	defer t.mu.Unlock()
	l.close()
	t.digests.fuzzy = false
	var removed []string
	for _, id := range t.deadOwners() {
		removed = append(removed, t.ownedPaths(id)...)
		t.deleteOwned(id, t.last)
	}
	slices.Sort(removed)
	return removed
}
