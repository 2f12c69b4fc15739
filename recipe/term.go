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

// term is one bid: its machine, the driver that steps it, and the handle of its term. The goroutine of
// run steps the machine; all others read it under driver.mu.
type term struct {
	*driver
	b   *bidder
	cfg lines.Config
	bid bidMachine

	candidacy *candidacy // of an election, set before run

	led    chan struct{}   // closed when the handle is made
	gone   chan struct{}   // closed when run has returned
	giveUp func()          // gives up the claim; what was done under it is over
	given  <-chan struct{} // closed by giveUp

	handle *Handle   // set before led is closed
	unhook func()    // withdraws what the client calls when it is closed
	since  time.Time // when the handle was made; zero before, and once its end was observed
}

// newTerm prepares a bid, and the context for its run, which ends with giveUp and carries the values of ctx.
func newTerm(ctx context.Context, b *bidder, cfg lines.Config, m bidMachine) (*term, context.Context) {
	ctx, giveUp := context.WithCancel(context.WithoutCancel(ctx))
	t := &term{
		driver: b.newDriver(m), b: b, cfg: cfg, bid: m,
		led: make(chan struct{}), gone: make(chan struct{}), giveUp: giveUp, given: ctx.Done(),
	}
	t.resigns, t.locked = true, t.confirm
	t.stepped = func(ctx context.Context, _ claim.Event) { t.present(ctx, t.state()) }
	return t, ctx
}

// run drives the machine until the bid is gone.
func (t *term) run(ctx context.Context) {
	defer close(t.gone)
	_ = t.driver.run(ctx) // which ends with the machine
	if t.unhook != nil {
		t.unhook()
	}
}

// confirm steps the latest proof that the session lives. Without one a term is over: the
// client has dropped the session.
func (t *term) confirm(now claim.Moment, _ claim.Event) {
	l, ok := t.b.lease(t.session)
	switch {
	case ok:
		t.bid.Step(now, claim.Confirmed{Lease: l})
	case t.bid.State().Phase == lines.Leading:
		t.bid.Step(now, claim.Closed{})
	}
}

// over reports whether what was done under the term has ended.
func (t *term) over() bool {
	select {
	case <-t.given:
		return true
	default:
		return false
	}
}

// present makes the handle when the term begins and ends it with the term.
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

// state is how the state machine stands.
func (t *term) state() lines.State {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.bid.State()
}

// claims reports whether the bid may lead yet or does.
func (t *term) claims() bool { return t.state().Phase < lines.Leaving && !t.over() }

// left is Handle.Left.
func (t *term) left() time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.b.c.Lease().Session != t.session {
		return 0 // over, or being closed
	}
	return t.bid.Left(t.b.clock.read())
}

// verdict is the error with which a campaign ends whose bid ended before its term; nil: it makes
// another bid.
func (t *term) verdict() error {
	switch s := t.state(); {
	case s.Reason.Passing():
		return t.b.c.Err() // with OneSession
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

// watchOver runs work and calls Overrun when it outlasts the deadline.
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

// stays is why the bid was not removed, if it was not.
func (t *term) stays() error {
	if err := t.state().Stays; err != nil {
		return fmt.Errorf("%s %s: the bid stays: %w", t.b.recipe, t.b.path, err)
	}
	return nil
}

// awaitGone waits until the bid is gone.
func (t *term) awaitGone(ctx context.Context) error {
	select {
	case <-t.gone:
		return t.stays()
	case <-ctx.Done():
		return ctx.Err()
	}
}

// waitAtMost waits for the bid's removal, while the client has a connection.
func (t *term) waitAtMost(ctx context.Context, d time.Duration) { awaitTidy(ctx, t.b.c, t.gone, d) }
