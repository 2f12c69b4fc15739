package recipe

import (
	"context"
	"fmt"

	"bellwether/internal/claim"
	"bellwether/zk"
)

// Semaphore has a number of leases, each of which one holds at a time.
//
// Who wants one first waits in line at a gate, and while it holds the gate
// waits for a lease: so a lease that becomes free wakes one. No more than the
// number of leases are held whatever becomes of the gate.
type Semaphore struct {
	leases *Lock
}

// NewSemaphore prepares a semaphore at parent with n leases. All who use it
// must say the same n. Leases stand at parent/leases and the gate at
// parent/locks, as with Curator; under KazooNames at parent and parent-__lock__.
// All are created when they are missing.
func NewSemaphore(c *zk.Client, parent string, n int, o *LockOptions) (*Semaphore, error) {
	o = o.orDefault()
	leases := claim.Config{Parent: claim.Join(parent, "leases"), Naming: o.Naming, Rule: claim.Leases, Leases: n}
	gate := claim.Config{Parent: claim.Join(parent, "locks"), ID: o.ID, Naming: o.Naming, Rule: claim.Exclusive}
	switch o.Naming {
	case CuratorLockNames:
		leases.Naming = claim.CuratorLease
	case KazooNames:
		leases.Naming, leases.Parent, gate.Parent = claim.KazooLease, parent, parent+"-__lock__"
	}
	if leases.Parent != parent {
		leases.Root, gate.Root = parent, parent
	}
	s := &Semaphore{leases: newLock(c, leases, o, "semaphore")}
	s.leases.gate = gate
	if err := checkPath("semaphore", parent); err != nil {
		return s, err
	}
	if n < 1 {
		return s, fmt.Errorf("semaphore %s: %d leases, want 1 or more", parent, n)
	}
	return s, s.leases.validate(OwnNames, CuratorLockNames, KazooNames)
}

// Acquire waits for a lease, as [Lock.Lock] does for a lock.
func (s *Semaphore) Acquire(ctx context.Context) (*Hold, error) { return s.leases.Lock(ctx) }

// Do runs fn while it has a lease, as [Lock.Do] does for a lock.
func (s *Semaphore) Do(ctx context.Context, fn func(ctx context.Context, h *Hold) error) error {
	return s.leases.Do(ctx, fn)
}

// TryAcquire returns ErrHeld if no lease is free that others do not wait for.
// Under KazooNames it also does so while another acquires one.
func (s *Semaphore) TryAcquire(ctx context.Context) (*Hold, error) { return s.leases.TryLock(ctx) }
