package recipe

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"bellwether/zk"
)

// Hold is a lock, or a lease of a semaphore, that a client holds. It lasts until it is released
// or lost. It cannot be renewed: a program that wants the lock again gets another Hold.
// Its methods may be called from any goroutine.
type Hold struct {
	shared *sharedHandle
	ctx    context.Context
	end    context.CancelCauseFunc

	released bool // guarded by sharedHandle.mu
}

// sharedHandle holds what all Holds of one bid share: the first one, and those that Again
// has made of it.
type sharedHandle struct {
	h *Handle

	mu    sync.Mutex
	holds int // Holds not yet released
}

// hold makes one more Hold. mu is held, except for the first Hold.
func (g *sharedHandle) hold() *Hold {
	g.holds++
	h := &Hold{shared: g}
	h.ctx, h.end = context.WithCancelCause(g.h.ctx)
	return h
}

// Context returns a context that ends with the hold; its cause is a *LostError. If
// Hold.Proof returns nil and the process is not suspended, the context ends before the server can give the
// lock to another client. A process that was suspended, or got no CPU time, finds out late. Left
// reads the clocks when it is called.
func (h *Hold) Context() context.Context { return h.ctx }

// Token returns the fencing token, which is the czxid of the bid. Of two holders that exclude each other,
// the later one has the larger token, as long as the ensemble exists. Readers that hold a lock together, and
// holders of leases of a semaphore, do not exclude each other. A TokenGate refuses tokens that are too old.
func (h *Hold) Token() zk.Zxid { return h.shared.h.token }

// Bid returns the path of the bid.
func (h *Hold) Bid() string { return h.shared.h.bid }

// Left returns how long the hold lasts unless a new ping proves that the session lives for longer. It
// reads the clocks when it is called. Once the hold is over it returns 0 or less.
func (h *Hold) Left() time.Duration {
	if h.ctx.Err() != nil {
		return 0
	}
	return h.shared.h.Left()
}

// path returns the path of the lock.
func (h *Hold) path() string { return h.shared.h.t.b.path }

// Proof returns nil if it is proven that the hold ends before the server can give the
// lock away. Otherwise it returns a *NoProof. The context then ends after two thirds of the
// session timeout without an answered ping, and only token and guard protect against an
// older holder.
func (h *Hold) Proof() error { return h.shared.h.Proof() }

// Lost returns nil while the hold lasts, and afterwards a *LostError.
func (h *Hold) Lost() error {
	if h.ctx.Err() != nil {
		return context.Cause(h.ctx)
	}
	return h.shared.h.Lost()
}

// Guard returns an operation that makes a Multi fail unless the bid exists.
func (h *Hold) Guard() zk.Op { return h.shared.h.Guard() }

// Do carries out all operations or none. It carries out none unless the lock is still held: the
// same transaction checks the bid. If the hold is over it returns ErrNotHeld. If the server answers that
// the bid is gone, the hold has ended when Do returns: Lost and Context say so. After a
// zk.UnknownOutcomeError the operations may have been carried out. The results are those
// of zk.Client.Multi without the result of the guard.
func (h *Hold) Do(ctx context.Context, ops ...zk.Op) ([]zk.Result, error) {
	if lost := h.Lost(); lost != nil {
		return nil, h.shared.h.t.b.isOver(lost)
	}
	return h.shared.h.Do(ctx, ops...)
}

// Again returns another Hold of the same bid, for a function that takes a lock which its caller
// already holds. The lock is released when all of these Holds are released.
func (h *Hold) Again() (*Hold, error) {
	h.shared.mu.Lock()
	defer h.shared.mu.Unlock()
	if lost := h.Lost(); lost != nil {
		return nil, h.shared.h.t.b.isOver(lost)
	}
	return h.shared.hold(), nil
}

// Release ends the hold. The work under the lock must have ended before the call. Releasing the last Hold of
// a bid removes the bid, and Release waits until it is gone. If the context ends first, Release returns the
// context's error, and the removal continues in the background. If the server refuses to remove the bid, Release
// returns the server's error, and the bid stays until the session ends.
func (h *Hold) Release(ctx context.Context) error {
	if !h.drop() {
		return nil
	}
	return h.shared.h.t.awaitGone(ctx)
}

// releaser is a Hold or a MultiHold.
type releaser interface {
	Context() context.Context
	Lost() error
	Release(ctx context.Context) error
	abandon() // Release without waiting
}

func (h *Hold) abandon() { h.drop() }

// whileHeld runs fn while h is held, and then releases h.
func whileHeld(ctx context.Context, b *bidder, h releaser, fn func(context.Context) error) error {
	work, stop := b.workWhile(ctx, h.Context())
	defer stop()
	defer h.abandon() // also when fn panics
	err := fn(work)
	lost := h.Lost()
	bye, done := whileConnected(ctx, b.c, b.cleanUp)
	defer done()
	stays := h.Release(bye)
	switch {
	case lost != nil && !errors.Is(lost, ErrReleased): // otherwise fn itself released the hold
		if err == nil || isContextEnd(err, work) || errors.Is(err, ErrNotHeld) {
			return b.isOver(lost)
		}
		return fmt.Errorf("%w; %w", err, b.isOver(lost))
	case err == nil && bye.Err() == nil:
		return stays
	}
	return err
}

// drop ends the hold without waiting. It reports whether no Hold of the bid is left, so that the bid is given up.
func (h *Hold) drop() (last bool) {
	h.shared.mu.Lock()
	defer h.shared.mu.Unlock()
	if !h.released {
		h.released = true
		h.shared.holds--
		h.end(h.shared.h.t.b.lost(Resigned, nil))
	}
	if last = h.shared.holds == 0; last {
		h.shared.h.t.giveUp()
	}
	return last
}
