package recipe

import (
	"context"
	"errors"
	"sync"

	"bellwether/internal/claim"
	"bellwether/zk"
)

// candidacy is one call of Campaign or Lead, or one bid of a Partitioner or of Work,
// with all bids that it makes. Resign ends it, whichever bid it has at that moment.
type candidacy struct {
	cancel context.CancelCauseFunc // of the context under which it campaigns and leads
	over   chan struct{}           // closed by end: no other bid follows

	mu       sync.Mutex
	resigned bool
	ended    bool
	last     *term // the latest bid
}

// leading is the key of the candidacy in the context of its leading function.
type leading struct{}

// begin claims the Election for one candidacy. Its context ends with ctx, and with Resign.
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

// candidate is the present candidacy, or nil before the first.
func (e *Election) candidate() *candidacy {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.present
}

// campaign makes bids until one leads. One bid at a time stands.
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

// start makes the next bid of a candidacy.
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

// bid is the latest bid, or nil before the first.
func (k *candidacy) bid() *term {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.last
}

// resign ends the candidacy. It reports whether that had ended already, but for a
// handle of Campaign, which is given up here.
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

// end is called when no other bid follows. It returns ErrResigned if Resign was called, and
// the error is no more than its consequence; a handle, where there is one, is given up then.
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

// stopError is an error that ends Lead, whatever it is.
type stopError struct{ err error }

func (e *stopError) Error() string { return e.err.Error() }

func (e *stopError) Unwrap() error { return e.err }

// Stop marks an error of the function given to Lead or Run, so that Lead or Run returns
// it. Without the mark, an error of a connection or session ends only the term. If the
// function returns the result of Stop as it is, Lead and Run return err itself.
// Stop(nil) is nil.
func Stop(err error) error {
	if err == nil {
		return nil
	}
	return &stopError{err}
}

// passes reports whether an error that a leading function has returned says nothing
// about its work: only that the connection or the session failed it, that a server
// could not serve for a while, or that another claim went with the session.
func passes(err error) bool {
	var lost *LostError
	var op *zk.OpError
	return claim.Passes(err) || errors.Is(err, zk.ErrQueueFull) ||
		errors.As(err, &op) && errors.Is(op, context.DeadlineExceeded) ||
		errors.As(err, &lost) && (lost.Reason == LeaseLapsed || lost.Reason == SessionExpired)
}
