package recipe

import (
	"context"
	"errors"
	"sync"

	"bellwether/internal/claim"
	"bellwether/zk"
)

// candidacy is one call of Campaign or Lead, or one bid of a Partitioner or of Work. It covers
// all bids that the call makes. Resign ends the candidacy, whichever bid it has at that moment.
//
// Invariant: at most one bid of an Election exists at a time. Once ended is true, last does not change.
type candidacy struct {
	cancel context.CancelCauseFunc // cancels the context with which it campaigns and leads
	over   chan struct{}           // closed by end: no further bid follows

	mu       sync.Mutex
	resigned bool
	ended    bool
	last     *term // the latest bid
}

// leading is the key of the candidacy in the context that the leading function gets.
type leading struct{}

// begin starts a candidacy of the Election, which has one at a time. The returned context ends with ctx, and with Resign.
func (e *Election) begin(ctx context.Context) (*candidacy, context.Context, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	k := &candidacy{over: make(chan struct{})}
	if before := e.present; before != nil {
		before.mu.Lock()
		defer before.mu.Unlock()
		if !before.ended || before.last != nil && before.last.claims() {
			return nil, nil, ErrCampaigning
		}
		k.last = before.last
	}
	ctx, k.cancel = context.WithCancelCause(ctx)
	e.present = k
	return k, ctx, nil
}

// candidate returns the current candidacy, or nil before the first.
func (e *Election) candidate() *candidacy {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.present
}

// campaign makes bids until one leads. It first waits until the previous bid is gone.
func (e *Election) campaign(ctx context.Context, k *candidacy, pause *claim.Backoff) (*Handle, error) {
	if last := k.bid(); last != nil {
		select {
		case <-last.gone:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return e.bidder.campaign(ctx, pause, e.start(k))
}

// start returns the function that makes and runs the next bid of a candidacy.
func (e *Election) start(k *candidacy) func(context.Context) *term {
	return func(ctx context.Context) *term {
		t, run := e.prepare(ctx, false)
		t.candidacy = k
		k.mu.Lock()
		k.last = t
		k.mu.Unlock()
		go t.run(run)
		return t
	}
}

// bid returns the latest bid, or nil before the first.
func (k *candidacy) bid() *term {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.last
}

// resign ends the candidacy. It reports whether the candidacy had ended already. If it had, resign
// gives up the handle that Campaign returned.
func (k *candidacy) resign() (ended bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.resigned = true
	k.cancel(ErrResigned)
	if k.ended && k.last != nil {
		k.last.giveUp()
	}
	return k.ended
}

// end marks that no further bid follows. It returns ErrResigned if Resign was called and err is nil or
// only the end of the context. After Resign it also gives up the handle, if there is one.
func (k *candidacy) end(ctx context.Context, err error) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.resigned && (err == nil || err == ctx.Err()) {
		err = ErrResigned
	}
	if k.resigned && k.last != nil {
		k.last.giveUp()
	}
	k.ended = true
	k.cancel(nil)
	close(k.over)
	return err
}

// stopError is an error that ends Lead in every case.
type stopError struct{ err error }

func (e *stopError) Error() string { return e.err.Error() }

func (e *stopError) Unwrap() error { return e.err }

// Stop marks an error of the function given to Lead or Run, so that Lead or Run returns
// it. Without the mark, an error of a connection or session ends only the term. If the
// function returns the result of Stop unchanged, Lead and Run return err itself.
// Stop(nil) is nil.
func Stop(err error) error {
	if err == nil {
		return nil
	}
	return &stopError{err}
}

// isTransient reports whether an error of a leading function says nothing about its work. It is true for the loss of a
// connection or a session, for a server that temporarily cannot serve, and for another term or hold that was lost
// with the session.
func isTransient(err error) bool {
	var lost *LostError
	var op *zk.OpError
	return claim.Passes(err) || errors.Is(err, zk.ErrQueueFull) ||
		errors.As(err, &op) && errors.Is(op, context.DeadlineExceeded) ||
		errors.As(err, &lost) && (lost.Reason == LeaseLapsed || lost.Reason == SessionExpired)
}
