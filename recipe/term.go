package recipe

import (
	"context"
	"fmt"
	"sync"
	"time"

	"bellwether/internal/claim"
	"bellwether/zk"
)

// term is one bid: the state machine and what drives it. The goroutine of
// run steps it, all others read.
type term struct {
	b   *bidder
	cfg claim.Config

	candidacy *candidacy // of an election, set before run

	led    chan struct{} // closed when the handle is made
	done   chan struct{} // closed when run has returned
	resign chan struct{} // closed by giveUp
	giveUp func()        // gives up the claim; what was done under it is over

	mu      sync.Mutex
	m       machine
	session zk.SessionID
	handle  *Handle

	// Of run alone.
	status  zk.Status
	replies chan answer // room for the one request under way
	asking  bool
	watch   *zk.Watch // on the bid ahead
	path    string    // of that bid
	calm    func()    // ends the frequent pings
	unhook  func()    // takes back what the client is to call when it is closed
	timer   *time.Timer
	since   time.Time // when the handle was made; zero before, and once its end was observed
}

func newTerm(b *bidder, cfg claim.Config, m machine) *term {
	t := &term{
		b: b, cfg: cfg, m: m,
		led: make(chan struct{}), done: make(chan struct{}), resign: make(chan struct{}),
		replies: make(chan answer, 1),
	}
	t.giveUp = sync.OnceFunc(func() { close(t.resign) })
	return t
}

// run drives the state machine until the bid is gone. The context carries
// the caller's values and does not end.
func (t *term) run(ctx context.Context) {
	defer close(t.done)
	ctx, cancel := context.WithCancel(ctx)
	defer t.finish(cancel)
	t.timer = time.NewTimer(0)
	defer t.timer.Stop()
	resign := t.resign
	t.attached(ctx, t.b.c.State())
	for t.state().Phase != claim.Done {
		select { // what the session does comes first
		case <-t.status.Changed():
			t.nextStatus(ctx)
			continue
		default:
		}
		select {
		case <-t.status.Changed():
			t.nextStatus(ctx)
		case a := <-t.replies:
			t.asking = false
			t.answered(ctx, a)
		case <-t.fired():
			t.watch = nil
			t.step(ctx, claim.Fired{Path: t.path})
		case <-resign:
			resign = nil
			t.step(ctx, claim.Resign{})
		case <-t.timer.C:
			t.step(ctx, claim.Tick{})
		}
	}
}

// finish waits for what run has started.
func (t *term) finish(cancel context.CancelFunc) {
	cancel()
	if t.asking {
		<-t.replies
	}
	if t.calm != nil {
		t.calm()
	}
	if t.unhook != nil {
		t.unhook()
	}
}

func (t *term) nextStatus(ctx context.Context) {
	s, err := t.status.Next(ctx)
	if err == nil {
		t.attached(ctx, s)
	}
}

// attached tells the state machine what became of the session.
func (t *term) attached(ctx context.Context, s zk.Status) {
	t.status = s
	switch s.State {
	case zk.Connected:
		l, ok := t.b.lease(s.Session)
		if !ok { // gone again; the next status tells
			l = claim.Lease{Sent: never, Timeout: s.Timeout}
		}
		t.mu.Lock()
		if t.session == 0 {
			t.session = s.Session
		}
		t.mu.Unlock()
		t.step(ctx, claim.Attached{Session: s.Session, Lease: l})
	case zk.Expired:
		t.step(ctx, claim.Expired{})
	case zk.AuthFailed, zk.Closed:
		t.step(ctx, claim.Closed{})
	default: // a server without quorum keeps no session alive
		t.step(ctx, claim.Disconnected{})
	}
}

// answered hands a reply on. A watch that came with it is heard from here on.
func (t *term) answered(ctx context.Context, a answer) {
	for _, w := range a.watches {
		t.watch, t.path = w.Watch, w.path
	}
	t.step(ctx, a.Reply)
}

// fired is closed when the watch has fired or ended; nil without a watch.
func (t *term) fired() <-chan struct{} {
	if t.watch == nil {
		return nil
	}
	return t.watch.Done()
}

// step hands one event to the state machine and does what comes of it.
func (t *term) step(ctx context.Context, ev claim.Event) {
	t.mu.Lock()
	now := t.b.clock.read()
	t.m.Step(now, ev)
	t.confirm(now)
	rd, s := t.m.Ready(), t.m.State()
	t.mu.Unlock()

	for _, h := range rd.Happenings {
		t.b.tell(h)
	}
	t.ping(rd.KeepAlive)
	t.present(ctx, s)
	if rd.Request != nil {
		t.send(ctx, *rd.Request)
	}
	if rd.Wake > 0 {
		t.timer.Reset(rd.Wake)
	} else {
		t.timer.Stop()
	}
}

// confirm brings the latest proof, or the news that there will be none.
func (t *term) confirm(now claim.Moment) {
	l, ok := t.b.lease(t.session)
	switch {
	case ok:
		t.m.Step(now, claim.Confirmed{Lease: l})
	case t.m.State().Phase == claim.Leading:
		t.m.Step(now, claim.Closed{})
	}
}

// over reports whether what was done under the term has ended.
func (t *term) over() bool {
	select {
	case <-t.resign:
		return true
	default:
		return false
	}
}

// ping starts or ends the frequent pings of a leader.
func (t *term) ping(on bool) {
	switch {
	case on && t.calm == nil:
		t.calm = t.b.c.KeepAlive(t.b.opt.KeepAlive)
	case !on && t.calm != nil:
		t.calm()
		t.calm = nil
	}
}

// present makes the handle when the term begins and ends it with the term.
func (t *term) present(ctx context.Context, s claim.State) {
	if s.Led && t.handle == nil {
		h := &Handle{t: t, bid: claim.Join(t.cfg.Parent, s.Bid), token: s.Token}
		h.ctx, h.end = context.WithCancelCause(context.WithoutCancel(ctx))
		t.mu.Lock()
		t.handle = h
		t.mu.Unlock()
		t.unhook = t.b.c.OnClose(func() { h.end(t.b.lost(SessionClosed, nil)) })
		t.since = time.Now()
		close(t.led)
	}
	if t.handle != nil && s.Phase > claim.Leading {
		lost := t.b.lost(s.Reason, s.Err)
		t.handle.end(lost)
		if !t.since.IsZero() {
			t.b.observed("term", t.b.cfg.Parent, t.since, lost)
			t.since = time.Time{}
		}
	}
}

// send carries out a request beside the loop.
func (t *term) send(ctx context.Context, req claim.Request) {
	t.asking = true
	watch := t.watch
	if req.Ops[0].Kind == claim.OpUnwatch {
		t.watch = nil
	}
	go func() { t.replies <- t.b.carryOut(ctx, req, watch) }()
}

// state is how the state machine stands.
func (t *term) state() claim.State {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.m.State()
}

// claims reports whether the bid may lead yet or does.
func (t *term) claims() bool { return t.state().Phase < claim.Leaving && !t.over() }

// left is Handle.Left.
func (t *term) left() time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.b.c.Lease().Session != t.session {
		return 0 // over, or being closed
	}
	return t.m.Left(t.b.clock.read())
}

// verdict is what a campaign ends with whose bid ended before it led; nil to
// try again.
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
	grace := t.m.Deadline(t.b.clock.read())
	if r := t.m.State().Reason; r != claim.LeaseLapsed && r != claim.Resigned {
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
		return fmt.Errorf("%s %s: the bid stays: %w", t.b.recipe, t.b.cfg.Parent, err)
	}
	return nil
}

// awaitGone waits until the bid is gone.
func (t *term) awaitGone(ctx context.Context) error {
	select {
	case <-t.done:
		return t.stays()
	case <-ctx.Done():
		return ctx.Err()
	}
}

// waitAtMost waits for the bid's removal, while the client has a connection.
func (t *term) waitAtMost(ctx context.Context, d time.Duration) { awaitTidy(ctx, t.b.c, t.done, d) }
