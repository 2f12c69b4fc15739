package recipe

import (
	"cmp"
	"context"
	"errors"
	"time"

	"bellwether/internal/claim"
	"bellwether/zk"
)

// operation is the machine of a single operation. Doubt returns the session of a request whose outcome is unknown, or 0.
// WhyUnclear returns the error that kept the machine from finding out that outcome, or nil.
type operation interface {
	machine
	Outcome() claim.Outcome
	Err() error
	Doubt() zk.SessionID
	WhyUnclear() error
}

// perform drives an operation to its end. When the context ends the machine resigns, and
// perform waits at most cleanUp until the machine is over. After that the machine
// continues in the background until it is over or the session ends. If the context has
// ended before the call, perform does nothing.
func (a *agent) perform(ctx context.Context, op, path string, m operation) error {
	return a.performUntil(ctx, op, path, m, nil)
}

// performUntil is like perform, but for a machine that can be done before it is over: performUntil also returns when enough reports true.
func (a *agent) performUntil(ctx context.Context, op, path string, m operation, enough func() bool) (err error) {
	if err := ctx.Err(); err != nil {
		return err
	}
	start := time.Now()
	defer func() { a.observed(op, path, start, err) }()
	d := a.newDriver(m)
	d.enough = enough
	ended := d.runAside(ctx)
	d.mu.Lock()
	doubt := m.Doubt()
	d.mu.Unlock()
	select {
	case <-ended: // m has ended, and knows its error
		err := a.verdict(ctx, op, path, m)
		if ctx.Err() != nil && m.Outcome() == claim.Failed {
			err = errors.Join(ctx.Err(), err) // the operation was cancelled, and what it had created could not be removed
		}
		return err
	default:
		if doubt != 0 {
			return unknownOutcome(ctx, op, path, doubt, nil)
		}
		return ctx.Err()
	}
}

// conclude runs the driver of an operation on the caller's goroutine. It returns the context's error, or the verdict.
func (d *driver) conclude(ctx context.Context, op, path string, m operation) error {
	if err := d.run(ctx); err != nil {
		return err
	}
	return d.a.verdict(ctx, op, path, m)
}

// verdict returns the error of an operation that is over.
func (a *agent) verdict(ctx context.Context, op, path string, m operation) error {
	switch m.Outcome() {
	case claim.Succeeded:
		return nil
	case claim.Withdrawn:
		return ctx.Err()
	case claim.Unclear:
		return unknownOutcome(ctx, op, path, m.Doubt(), m.WhyUnclear())
	}
	if err := m.Err(); !errors.Is(err, zk.ErrClosed) {
		return err
	}
	return &zk.OpError{Op: op, Path: path, Err: cmp.Or(a.c.Err(), error(zk.ErrClosed))}
}

// unknownOutcome returns the error of an operation whose outcome is unknown: it was
// carried out once or not at all. The reason is the end of the context, otherwise why, which
// is nil if the session has ended.
func unknownOutcome(ctx context.Context, op, path string, session zk.SessionID, why error) error {
	why = cmp.Or(ctx.Err(), why, error(zk.ErrSessionExpired))
	return &zk.OpError{Op: op, Path: path, Err: &zk.UnknownOutcomeError{Session: session, Err: why}}
}

// follow drives an operation until the context ends or next returns false. It calls next after each step, on the
// caller's goroutine.
func (a *agent) follow(ctx context.Context, op, path string, m operation, next func() (more bool)) error {
	enough := false
	d := a.newDriver(m)
	d.tidy, d.enough = true, func() bool { return enough }
	d.afterStep = func(context.Context, claim.Event) { enough = enough || !next() }
	err := d.run(ctx)
	if err == nil && !enough {
		err = a.verdict(ctx, op, path, m)
	}
	return err
}
