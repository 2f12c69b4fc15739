package recipe

import (
	"context"
	"fmt"
	"sync"
	"time"

	"bellwether/internal/claim"
	"bellwether/internal/claim/lines"
	"bellwether/zk"
)

// term is one bid: its machine, the driver that steps the machine, and the handle of its term. The goroutine of
// run steps the machine; all others read it under driver.mu.
//
// Invariants: handle is set once, before led is closed, and only if the bid led. gone is closed once, after the machine
// is over.
type term struct {
	*driver
	b   *bidder
	cfg lines.Config
	bid bidMachine

	candidacy *candidacy // only for an election, set before run; nil for a lock

	led    chan struct{}   // closed when the handle is made
	gone   chan struct{}   // closed when run has returned
	giveUp func()          // gives up the claim; the work under it must have ended
	given  <-chan struct{} // closed by giveUp

	handle *Handle   // set before led is closed
	unhook func()    // withdraws the function that the client calls when it is closed
	since  time.Time // when the handle was made; zero before that, and after its end was reported
}

// newTerm prepares a bid and the context for its run. That context ends with giveUp and carries the values of ctx.
func newTerm(ctx context.Context, b *bidder, cfg lines.Config, m bidMachine) (*term, context.Context) {
	ctx, giveUp := context.WithCancel(context.WithoutCancel(ctx))
	t := &term{
		driver: b.newDriver(m), b: b, cfg: cfg, bid: m,
		led: make(chan struct{}), gone: make(chan struct{}), giveUp: giveUp, given: ctx.Done(),
	}
	t.resigns, t.afterStepLocked = true, t.confirm
	t.afterStep = func(ctx context.Context, _ claim.Event) { t.present(ctx, t.state()) }
	return t, ctx
}

// run drives the machine until the bid is gone.
func (t *term) run(ctx context.Context) {
	defer close(t.gone)
	_ = t.driver.run(ctx) // the machine holds the reason
	if t.unhook != nil {
		t.unhook()
	}
}

// confirm gives the machine the latest proof that the session lives. If there is no
// proof, the client has dropped the session, and confirm ends the term.
func (t *term) confirm(now claim.Moment, _ claim.Event) {
	l, ok := t.b.lease(t.session)
	switch {
	case ok:
		t.bid.Step(now, claim.Confirmed{Lease: l})
	case t.bid.State().Phase == lines.Leading:
		t.bid.Step(now, claim.Closed{})
	}
}

// over reports whether the claim was given up.
func (t *term) over() bool {
	select {
	case <-t.given:
		return true
	default:
		return false
	}
}

// present makes the handle when the term begins, and ends the handle when the term ends.
func (t *term) present(ctx context.Context, s lines.State) {
	if s.Led && t.handle == nil {
		h := &Handle{t: t, bid: claim.Join(t.cfg.Parent, s.Bid), token: s.Token}
		h.ctx, h.end = context.WithCancelCause(context.WithoutCancel(ctx))
		t.handle = h
		t.unhook = t.b.c.OnClose(func() { h.end(t.b.lost(SessionClosed, nil)) })
		t.since = time.Now()
		close(t.led)
	}
	if t.handle != nil && s.Phase > lines.Leading {
		lost := t.b.lost(s.Reason, s.Err)
		t.handle.end(lost)
		if !t.since.IsZero() {
			t.b.observed("term", t.b.path, t.since, lost)
			t.since = time.Time{}
		}
	}
}

// state returns the state of the machine.
func (t *term) state() lines.State {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.bid.State()
}

// claims reports whether the bid leads or may still lead.
func (t *term) claims() bool { return t.state().Phase < lines.Leaving && !t.over() }

// left computes the result of Handle.Left.
func (t *term) left() time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.b.c.Lease().Session != t.session {
		return 0 // the session has ended or is being closed
	}
	return t.bid.Left(t.b.clock.read())
}

// verdict returns the error of a campaign whose bid ended before its term began. It returns nil if the campaign
// makes another bid.
func (t *term) verdict() error {
	switch s := t.state(); {
	case claim.Passing(s.Reason):
		return t.b.c.Err() // nil unless the client has ended, as it does with OneSession
	case s.Reason == claim.Resigned:
		return ErrResigned
	case s.Reason == claim.Occupied:
		return ErrHeld
	case s.Reason == claim.SessionClosed:
		if err := t.b.c.Err(); err != nil {
			return err
		}
		return zk.ErrClosed
	default:
		return t.b.lost(s.Reason, s.Err)
	}
}

// watchOver runs work. It calls Overrun if work still runs at the deadline.
func (t *term) watchOver(h *Handle, work func() error) error {
	if t.b.opt.Overrun == nil {
		return work()
	}
	returned := make(chan struct{})
	var watcher sync.WaitGroup
	defer watcher.Wait()
	defer close(returned)
	watcher.Go(func() { t.awaitOverrun(h, returned) })
	return work()
}

func (t *term) awaitOverrun(h *Handle, returned <-chan struct{}) {
	select {
	case <-returned:
		return
	case <-h.ctx.Done():
	}
	t.mu.Lock()
	grace := t.bid.Deadline(t.b.clock.read())
	if r := t.bid.State().Reason; r != claim.LeaseLapsed && r != claim.Resigned {
		grace = 0
	}
	t.mu.Unlock()
	timer := time.NewTimer(max(grace, 0))
	defer timer.Stop()
	select {
	case <-returned:
	case <-timer.C:
		t.b.opt.Overrun(h)
	}
}

// removalError returns the error that says why the bid was not removed, or nil.
func (t *term) removalError() error {
	if err := t.state().RemoveErr; err != nil {
		return fmt.Errorf("%s %s: the bid stays: %w", t.b.recipe, t.b.path, err)
	}
	return nil
}

// awaitGone waits until the bid is gone. It returns the context's error, or the reason
// why the bid could not be removed.
func (t *term) awaitGone(ctx context.Context) error {
	select {
	case <-t.gone:
		return t.removalError()
	case <-ctx.Done():
		return ctx.Err()
	}
}

// waitAtMost waits for the bid's removal for at most d, and only while the client has a connection.
func (t *term) waitAtMost(ctx context.Context, d time.Duration) { awaitCleanUp(ctx, t.b.c, t.gone, d) }
