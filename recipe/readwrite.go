package recipe

import (
	"context"

	"bellwether/internal/claim"
	"bellwether/internal/claim/lines"
	"bellwether/zk"
)

// ReadWriteLock is held by any number of readers, or by one writer. Readers and writers
// wait in one line: a reader waits for the writers before it, a writer for all bids before
// it. A writer that waits therefore keeps later readers waiting.
//
// A client that holds one side and asks for the other side waits for itself.
type ReadWriteLock struct{ read, write *Lock }

// NewReadWriteLock prepares the lock at parent, which is created if it is missing. A
// Lock with the same parent acts as one more writer.
func NewReadWriteLock(c *zk.Client, parent string, o *LockOptions) (*ReadWriteLock, error) {
	opt := optionsOr(o)
	reads, writes := claim.OwnRead, opt.Naming
	switch opt.Naming {
	case CuratorLockNames:
		reads, writes = claim.CuratorRead, claim.CuratorWrite
	case KazooNames:
		reads = claim.KazooRead
	}
	l := &ReadWriteLock{
		read:  newLock(c, lines.Config{Parent: parent, Naming: reads, Rule: lines.Shared}, opt, "read lock"),
		write: newLock(c, lines.Config{Parent: parent, Naming: writes, Rule: lines.Exclusive}, opt, "write lock"),
	}
	return l, l.write.validate(OwnNames, CuratorLockNames, KazooNames)
}

// Lock waits until this client holds the lock as the writer. It behaves as [Lock.Lock] does.
func (l *ReadWriteLock) Lock(ctx context.Context) (*Hold, error) { return l.write.Lock(ctx) }

// RLock waits until this client holds the lock as a reader. The tokens of readers
// that hold the lock together have no order; see [TokenGate.AdmitShared].
func (l *ReadWriteLock) RLock(ctx context.Context) (*Hold, error) { return l.read.Lock(ctx) }

// TryLock is Lock without waiting for other clients, as [Lock.TryLock] is.
func (l *ReadWriteLock) TryLock(ctx context.Context) (*Hold, error) { return l.write.TryLock(ctx) }

// TryRLock is RLock without waiting for writers, as [Lock.TryLock] is.
func (l *ReadWriteLock) TryRLock(ctx context.Context) (*Hold, error) { return l.read.TryLock(ctx) }

// Reader returns the readers' side, for a MultiLock.
func (l *ReadWriteLock) Reader() *Lock { return l.read }

// Writer returns the writers' side, for a MultiLock.
func (l *ReadWriteLock) Writer() *Lock { return l.write }
