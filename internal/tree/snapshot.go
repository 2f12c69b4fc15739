package tree

import (
	"slices"

	"bellwether/internal/record"
	"bellwether/wire"
)

// Snapshot is the tree as a snapshot file contains it: with every effect of the
// transactions up to Zxid, and with those effects of later transactions that the passes
// meet. Replaying the later transactions over it gives the same tree. A pass holds the
// read lock for snapshotSlice znodes at a time, and never while it calls yield.
//
// The passes are called in the order Sessions, ACLs, Nodes, Digest, by one goroutine.
type Snapshot struct {
	t     *Tree
	zxid  wire.Zxid
	slice int
}

// snapshotSlice is about how many znodes one hold of the lock looks at.
const snapshotSlice = 256

// Snapshot begins a snapshot. The caller need not end it.
func (t *Tree) Snapshot() *Snapshot { return &Snapshot{t, t.LastZxid(), snapshotSlice} }

// Zxid returns the zxid after which the snapshot must be named.
func (s *Snapshot) Zxid() wire.Zxid { return s.zxid }

// Sessions yields the open sessions.
func (s *Snapshot) Sessions(yield func(id wire.SessionID, timeoutMS int32) error) error {
	for _, e := range s.t.sessionTable() {
		if err := yield(e.ID, e.TimeoutMS); err != nil {
			return err
		}
	}
	return nil
}

// ACLs yields the ACLs by their keys. An ACL that is first used after this pass is
// missing; the transaction that first uses it is replayed.
func (s *Snapshot) ACLs(yield func(key int64, acl []wire.ACL) error) error {
	s.t.mu.RLock()
	entries := slices.Clone(s.t.acls.entries)
	s.t.mu.RUnlock()
	slices.SortFunc(entries, func(a, b aclEntry) int { return int(a.key - b.key) })
	for _, e := range entries {
		if e.list == nil || e.key == openKey {
			continue
		}
		if err := yield(e.key, e.list); err != nil {
			return err
		}
	}
	return nil
}

// Digest returns the last applied zxid and the digest at it.
func (s *Snapshot) Digest() (wire.Zxid, uint64) { return s.t.Digest() }

// Nodes yields every znode, parents before children; the root has the path "". It leaves
// out a znode that was created after Zxid, and everything below it, because that create
// will be replayed.
func (s *Snapshot) Nodes(yield func(path string, n *record.DataNode) error) error {
	w := walker{t: s.t, since: s.zxid}
	w.start()
	for len(w.stack) > 0 || len(w.batch) > 0 {
		for i := range w.batch {
			if err := yield(w.batch[i].path, &w.batch[i].node); err != nil {
				return err
			}
		}
		w.next(s.slice)
	}
	return nil
}

// walker walks a tree that changes meanwhile, depth first. For each znode on its way down
// it keeps a cursor into the hashes of the children.
type walker struct {
	t        *Tree
	since    wire.Zxid
	stack    []walkLevel
	batch    []walked
	children []*node
	text     []byte // paths of children
}

type walkLevel struct {
	node *node
	path string // without a slash at the end
	next uint64
}

type walked struct {
	path string
	node record.DataNode
}

func (w *walker) start() {
	w.t.mu.RLock()
	defer w.t.mu.RUnlock()
	w.visit(w.t.root, "")
}

// next fills the batch with about limit znodes, under one hold of the lock.
func (w *walker) next(limit int) {
	w.t.mu.RLock()
	defer w.t.mu.RUnlock()
	w.batch = w.batch[:0]
	for left := limit; left > 0 && len(w.stack) > 0; left-- {
		left -= w.step(left)
	}
}

// step looks at some children of the deepest level and returns how many. A znode that was
// deleted meanwhile has none.
func (w *walker) step(limit int) int {
	top := len(w.stack) - 1
	at := w.stack[top]
	if at.next == hashEnd {
		w.stack[top] = walkLevel{}
		w.stack = w.stack[:top]
		return 0
	}
	w.children, w.stack[top].next = at.node.children.scan(w.children[:0], at.next, limit)
	looked := len(w.children)
	w.children = slices.DeleteFunc(w.children, func(n *node) bool { return n.czxid > w.since })
	// All paths are one string. To build it in a loop of its own also takes less time: the names are far apart in
	// memory, and the processor fetches several of them at once.
	w.text = w.text[:0]
	for _, n := range w.children {
		w.text = append(append(append(w.text, at.path...), '/'), n.name()...)
	}
	paths := string(w.text)
	for _, n := range w.children {
		size := len(at.path) + 1 + n.nameLen()
		w.visit(n, paths[:size])
		paths = paths[size:]
	}
	return looked
}

func (w *walker) visit(n *node, path string) {
	w.batch = append(w.batch, walked{path, record.DataNode{
		Data: n.data(), ACL: w.t.acls.entries[n.acl].key, Stat: n.persisted(),
	}})
	if n.children != nil {
		w.stack = append(w.stack, walkLevel{node: n, path: path})
	}
}
