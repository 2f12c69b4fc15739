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

// historyLock keeps the snapshotter and the readers of old logs apart from changes that cut or
// replace the history. The snapshotter and the readers hold mu for reading while they work. The
// log writer holds it for writing when it truncates or replaces the history, and sets urgent so
// that the others stop early.
type historyLock struct {
	mu     sync.RWMutex
	urgent atomic.Bool
	// tree is the tree that the files describe. After a change of the history, the loop makes it
	// the server's tree a little later.
	tree *tree.Tree
}

// revise runs f while no other goroutine uses the files. The tree that f returns is the one
// that the files describe from then on; nil: the tree stays the same.
func (a *historyLock) revise(f func() (*tree.Tree, error)) (*tree.Tree, error) {
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

// errInterrupted says that the history is about to change.
var errInterrupted = errors.New("interrupted: the history is being changed")

// source is a tree's snapshot that stops when the history is to be changed. It ends only
// when all that it contains is durable, because in an ensemble a quorum may have committed
// transactions that this server has not fsynced yet.
type source struct {
	*tree.Snapshot
	historyLock *historyLock
	store       *store.Store
	quit        <-chan struct{}
}

// Nodes yields the znodes.
func (s *source) Nodes(yield func(path string, n *record.DataNode) error) error {
	return s.Snapshot.Nodes(func(path string, n *record.DataNode) error {
		if s.historyLock.urgent.Load() {
			return errInterrupted
		}
		return yield(path, n)
	})
}

// syncedPoll is the interval at which a snapshot checks whether its last transactions are
// durable.
const syncedPoll = 2 * time.Millisecond

// Digest waits until all that was yielded is durable. If it gives up before, the store
// detects that the content is not durable.
func (s *source) Digest() (wire.Zxid, uint64) {
	z, digest := s.Snapshot.Digest()
	poll := time.NewTicker(syncedPoll)
	defer poll.Stop()
	for s.store.Synced() < z && !s.historyLock.urgent.Load() {
		select {
		case <-poll.C:
		case <-s.quit:
			return z, digest
		}
	}
	return z, digest
}
