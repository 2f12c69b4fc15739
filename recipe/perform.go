package recipe

import (
	"cmp"
	"context"
	"errors"
	"sync/atomic"
	"time"

	"bellwether/internal/claim"
	"bellwether/zk"
)

// operation is the state machine of a single operation.
type operation interface {
	stepper
	Over() bool
	Outcome() claim.Outcome
	Err() error
	Doubt() zk.SessionID
}

// perform drives an operation to its end. When the context ends it is given
// up, which is waited for for a while; what is left goes on in the background
// until it is done or the session ends. With a context that has ended nothing is done.
func (b *bidder) perform(ctx context.Context, op, path string, m operation) error {
	return b.performUntil(ctx, op, path, m, m.Over)
}

// performUntil is perform for a state machine that has got far enough before
// its end.
func (b *bidder) performUntil(ctx context.Context, op, path string, m operation, enough func() bool) (err error) {
	if err := ctx.Err(); err != nil {
		return err
	}
	start := time.Now()
	defer func() { b.observed(op, path, start, err) }()
	d := b.newDrive(m, enough)
	d.ending = claim.Resign{}
	var doubt atomic.Int64
	d.stepped = func(context.Context, claim.Event) { doubt.Store(int64(m.Doubt())) }
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = d.run(ctx) // which ends with the state machine
	}()
	select {
	case <-done:
	case <-ctx.Done():
		awaitTidy(ctx, b.c, done, b.opt.CleanUp)
	}
	lost := zk.SessionID(doubt.Load())
	select {
	case <-done:
		err := b.verdict(ctx, op, path, m)
		if ctx.Err() != nil && m.Outcome() == claim.Failed {
			err = errors.Join(ctx.Err(), err) // given up, and what is left could not be removed
		}
		return err
	default:
		if lost != 0 {
			return unclear(ctx, op, path, lost)
		}
		return ctx.Err()
	}
}

// verdict is the error of an operation that is over.
func (b *bidder) verdict(ctx context.Context, op, path string, m operation) error {
	switch m.Outcome() {
	case claim.Succeeded:
		return nil
	case claim.Withdrawn:
		return ctx.Err()
	case claim.Unclear:
		return unclear(ctx, op, path, m.Doubt())
	}
	if err := m.Err(); !errors.Is(err, zk.ErrClosed) {
		return err
	}
	return &zk.OpError{Op: op, Path: path, Err: cmp.Or(b.c.Err(), error(zk.ErrClosed))}
}

// unclear says that an operation was carried out once or not at all.
func unclear(ctx context.Context, op, path string, session zk.SessionID) error {
	why := cmp.Or(ctx.Err(), error(zk.ErrSessionExpired))
	return &zk.OpError{Op: op, Path: path, Err: &zk.UnknownOutcomeError{Session: session, Err: why}}
}

// follow drives an operation that goes on until the context ends, or it is not
// to. It calls next, on the caller's goroutine, whenever there may be news.
func (b *bidder) follow(ctx context.Context, op, path string, m operation, next func() (more bool)) error {
	enough := false
	d := b.newDrive(m, func() bool { return enough || m.Over() })
	d.tidy = true
	d.stepped = func(context.Context, claim.Event) { enough = enough || !next() }
	err := d.run(ctx)
	if err == nil && !enough {
		err = b.verdict(ctx, op, path, m)
	}
	return err
}
