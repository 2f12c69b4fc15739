package recipe

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"bellwether/internal/claim"
	"bellwether/internal/claim/lines"
	"bellwether/zk"
)

// MultiLock is several locks that are held together or not at all. Its methods may be
// called from any goroutine.
//
// A MultiLock takes its locks in the order of their paths, so that two clients that want some of
// the same locks do not wait for each other. A program that takes further locks while it holds a MultiLock must
// take them in that order too.
type MultiLock struct {
	locks []*Lock // in the order of their paths
}

// NewMultiLock combines locks of one client, each with a different parent. They are locks of NewLock, or
// sides of a ReadWriteLock.
func NewMultiLock(locks ...*Lock) (*MultiLock, error) {
	m := &MultiLock{slices.Clone(locks)}
	if slices.Contains(locks, nil) {
		return m, fmt.Errorf("multi-lock: a lock is nil: %w", zk.ErrBadArguments)
	}
	slices.SortFunc(m.locks, func(a, b *Lock) int { return strings.Compare(a.cfg.Parent, b.cfg.Parent) })
	if len(locks) == 0 {
		return m, errors.New("multi-lock: no lock is given")
	}
	for i, l := range m.locks {
		switch {
		case l.c != m.locks[0].c:
			return m, fmt.Errorf("multi-lock: the lock at %s belongs to another client than the first lock", l.cfg.Parent)
		case i > 0 && l.cfg.Parent == m.locks[i-1].cfg.Parent:
			return m, fmt.Errorf("multi-lock: %s is given twice", l.cfg.Parent)
		}
	}
	return m, nil
}

// Lock waits until it holds all locks. If it loses one while it waits for
// another, it starts again with the first. Its errors are those of [Lock.Lock]. After an error
// it holds none of the locks.
func (m *MultiLock) Lock(ctx context.Context) (*MultiHold, error) { return m.acquire(ctx, false) }

// TryLock takes all of the locks only if no client holds or waits for any of them.
// Otherwise it releases the locks that it got and returns ErrHeld.
func (m *MultiLock) TryLock(ctx context.Context) (*MultiHold, error) { return m.acquire(ctx, true) }

// Do waits as Lock does until it holds all locks, runs fn, and releases them when fn has returned,
// as [Lock.Do] does with one lock. If one of them was lost before fn returned, the error is or
// wraps ErrNotHeld and the [*LostError] of that lock.
func (m *MultiLock) Do(ctx context.Context, fn func(ctx context.Context, h *MultiHold) error) error {
	h, err := m.Lock(ctx)
	if err != nil {
		return err
	}
	return whileHeld(ctx, &m.locks[0].bidder, h, func(ctx context.Context) error { return fn(ctx, h) })
}

// MultiHold is several locks that are held together. It is over as soon as one of them is lost;
// Release then releases the others.
type MultiHold struct {
	holds []*Hold // in the order of their paths
	m     *lines.MultiLock
	mu    sync.Mutex // guards m
	ctx   context.Context
	end   context.CancelCauseFunc
}

// join makes the context of the MultiHold. The context ends when any of the holds ends.
func (h *MultiHold) join() {
	h.ctx, h.end = context.WithCancelCause(h.holds[0].ctx)
	for _, one := range h.holds[1:] {
		context.AfterFunc(one.ctx, func() { h.end(context.Cause(one.ctx)) })
	}
}

// Context returns a context that ends when any of the locks is lost, or with
// Release.
func (h *MultiHold) Context() context.Context { return h.ctx }

// Holds returns the holds of the locks in the order of their paths. Use them for their tokens.
// Release all of them with MultiHold.Release, not one by one.
func (h *MultiHold) Holds() []*Hold { return slices.Clone(h.holds) }

// Left returns how long all of the locks are held: the smallest result of Hold.Left.
func (h *MultiHold) Left() time.Duration {
	left := h.holds[0].Left()
	for _, one := range h.holds[1:] {
		left = min(left, one.Left())
	}
	return left
}

// Proof returns nil if Hold.Proof returns nil for each of the locks, and otherwise the first error.
func (h *MultiHold) Proof() error { return h.first((*Hold).Proof) }

// Lost returns nil while all of the locks are held, and afterwards the *LostError of a lock that was
// lost.
func (h *MultiHold) Lost() error { return h.first((*Hold).Lost) }

// first calls the function ask for each hold in turn, and returns the first error.
func (h *MultiHold) first(ask func(*Hold) error) error {
	for _, one := range h.holds {
		if err := ask(one); err != nil {
			return err
		}
	}
	return nil
}

// Do is [Hold.Do] for several locks: the same transaction checks the bids of all of them. If the server answers
// that one of the bids is gone, the MultiHold has ended when Do returns.
func (h *MultiHold) Do(ctx context.Context, ops ...zk.Op) ([]zk.Result, error) {
	if lost := h.Lost(); lost != nil {
		return nil, h.holds[0].shared.h.t.b.isOver(lost)
	}
	handles := make([]*Handle, len(h.holds))
	for i, one := range h.holds {
		handles[i] = one.shared.h
	}
	res, err := doGuarded(ctx, handles, ops)
	if lost := h.Lost(); lost != nil {
		h.end(lost) // the function of AfterFunc in join runs on another goroutine, and may be late
	}
	return res, err
}

// abandon ends all holds without waiting.
func (h *MultiHold) abandon() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.m.Step(claim.Moment{}, claim.Resign{})
	for _, op := range h.m.Ready().Start {
		h.at(op.Path).drop()
	}
}

// at returns the hold of the lock at a path.
func (h *MultiHold) at(path string) *Hold {
	return h.holds[slices.IndexFunc(h.holds, func(one *Hold) bool { return one.path() == path })]
}

// Release ends all holds, and then waits until their bids are gone, as
// [Hold.Release] does. It returns the errors of all of them, joined.
func (h *MultiHold) Release(ctx context.Context) error {
	h.abandon()
	var errs []error
	for _, one := range h.holds {
		errs = append(errs, one.Release(ctx))
	}
	return errors.Join(errs...)
}
