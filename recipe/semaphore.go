package recipe

import (
	"context"
	"fmt"

	"bellwether/internal/claim"
	"bellwether/internal/claim/lines"
	"bellwether/zk"
)

// Semaphore has a number of leases. One client at a time holds each lease.
//
// A client first takes a lock, the gate, and waits for a lease while it holds the
// gate. So a lease that is released wakes one client. There are never more holders than
// leases, even if the gate fails.
type Semaphore struct {
	leases *Lock
}

// NewSemaphore prepares a semaphore at parent with n leases. All clients must give the
// same n. The leases are at parent/leases and the gate is at parent/locks, as with Curator.
// Under KazooNames they are at parent and at parent-__lock__. All these znodes are created if
// they are missing.
func NewSemaphore(c *zk.Client, parent string, n int, o *LockOptions) (*Semaphore, error) {
	opt := optionsOr(o)
	leases := lines.Config{Parent: claim.Join(parent, "leases"), Naming: opt.Naming, Rule: lines.Leases, Leases: n}
	gate := lines.Config{Parent: claim.Join(parent, "locks"), ID: opt.ID, Naming: opt.Naming, Rule: lines.Exclusive}
	switch opt.Naming {
	case CuratorLockNames:
		leases.Naming = claim.CuratorLease
	case KazooNames:
		leases.Naming, leases.Parent, gate.Parent = claim.KazooLease, parent, parent+"-__lock__"
	}
	if leases.Parent != parent {
		leases.Root, gate.Root = parent, parent
	}
	s := &Semaphore{leases: newLock(c, leases, opt, "semaphore")}
	s.leases.gate = gate
	if err := checkClient("semaphore", c, parent); err != nil {
		return s, err
	}
	if n < 1 {
		return s, fmt.Errorf("semaphore %s: %d leases, want 1 or more", parent, n)
	}
	return s, s.leases.validate(OwnNames, CuratorLockNames, KazooNames)
}

// Acquire waits until this client holds a lease, as [Lock.Lock] does for a lock.
func (s *Semaphore) Acquire(ctx context.Context) (*Hold, error) { return s.leases.Lock(ctx) }

// Do runs fn while this client holds a lease, as Lock.Do does for a lock.
func (s *Semaphore) Do(ctx context.Context, fn func(ctx context.Context, h *Hold) error) error {
	return s.leases.Do(ctx, fn)
}

// TryAcquire takes a lease only if one is free and no client waits for one; otherwise it
// returns ErrHeld. Under KazooNames it also returns ErrHeld while another client
// acquires a lease.
func (s *Semaphore) TryAcquire(ctx context.Context) (*Hold, error) { return s.leases.TryLock(ctx) }
