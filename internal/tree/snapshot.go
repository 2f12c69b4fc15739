package tree

import (
	"slices"

	"bellwether/internal/record"
	"bellwether/wire"
)

// Snapshot is the tree as a snapshot file contains it: with every effect up to Zxid, and
// with those later ones that the passes meet. Replaying the later transactions over it
// gives the same tree. It holds the read lock for snapshotSlice znodes at a time, and
// never while it yields.
//
// The passes are called in the order Sessions, ACLs, Nodes, Digest, by one goroutine.
type Snapshot struct {
	t     *Tree
	zxid  wire.Zxid
	slice int
}

// snapshotSlice is about how many znodes one hold of the lock looks at.
const snapshotSlice = 256

// Snapshot begins a snapshot. It need not be ended.
func (t *Tree) Snapshot() *Snapshot { return &Snapshot{t, t.LastZxid(), snapshotSlice} }

// Zxid returns the transaction after which the snapshot must be named.
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

// ACLs yields the ACLs by their keys. An ACL that is first used later is missing; the
// transaction that brought it is replayed.
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

// Nodes yields every znode, parents before children, the root as "". It leaves out a
// znode made after Zxid, and everything below it, because the create will be replayed.
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
	t     *Tree
	since wire.Zxid
	stack []level
	batch []walked
	kids  []*node
}

type level struct {
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
		w.stack[top] = level{}
		w.stack = w.stack[:top]
		return 0
	}
	w.kids, w.stack[top].next = at.node.kids.scan(w.kids[:0], at.next, limit)
	for _, n := range w.kids {
		if n.czxid <= w.since {
			w.visit(n, at.path+"/"+string(n.name()))
		}
	}
	return len(w.kids)
}

func (w *walker) visit(n *node, path string) {
	w.batch = append(w.batch, walked{path, record.DataNode{
		Data: n.data(), ACL: w.t.acls.entries[n.acl].key, Stat: n.persisted(),
	}})
	if n.kids != nil {
		w.stack = append(w.stack, level{node: n, path: path})
	}
}
