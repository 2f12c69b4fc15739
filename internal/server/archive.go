package server

import (
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"bellwether/internal/record"
	"bellwether/internal/store"
	"bellwether/internal/tree"
	"bellwether/wire"
)

// archive keeps what writes and reads the files of the history apart from what
// takes some of it back. The keeper and the readers of old logs hold mu for
// reading, as long as that takes; the log writer for writing, when it cuts or
// replaces the history. urgent makes the others hurry.
type archive struct {
	mu     sync.RWMutex
	urgent atomic.Bool
	// tree is the one that the files belong to. It is the server's, but that
	// the loop hears of a new one a little later.
	tree *tree.Tree
}

// revise runs f while nobody else is at the files. The tree it returns is
// what they make from then on; nil: the same as before.
func (a *archive) revise(f func() (*tree.Tree, error)) (*tree.Tree, error) {
	a.urgent.Store(true)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.urgent.Store(false)
	t, err := f()
	if t != nil && err == nil {
		a.tree = t
	}
	return t, err
}

// errInterrupted: the history is about to change.
var errInterrupted = errors.New("interrupted: the history is being changed")

// source is a tree's snapshot that is given up when the history is to be
// changed, and that ends only when all it contains is durable: in an ensemble
// a quorum can have committed what this server has not synced yet.
type source struct {
	*tree.Snapshot
	archive *archive
	store   *store.Store
	quit    <-chan struct{}
}

// Nodes yields the znodes.
func (s *source) Nodes(yield func(path string, n *record.DataNode) error) error {
	return s.Snapshot.Nodes(func(path string, n *record.DataNode) error {
		if s.archive.urgent.Load() {
			return errInterrupted
		}
		return yield(path, n)
	})
}

// syncedPoll is how often a snapshot looks whether its last transactions are
// durable.
const syncedPoll = 2 * time.Millisecond

// Digest waits until what was yielded is durable. Where it gives up the store
// finds that it is not.
func (s *source) Digest() (wire.Zxid, uint64) {
	z, digest := s.Snapshot.Digest()
	poll := time.NewTicker(syncedPoll)
	defer poll.Stop()
	for s.store.Synced() < z && !s.archive.urgent.Load() {
		select {
		case <-poll.C:
		case <-s.quit:
			return z, digest
		}
	}
	return z, digest
}
