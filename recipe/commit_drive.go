package recipe

import (
	"context"
	"sync"
	"time"

	"bellwether/internal/claim"
	"bellwether/zk"
)

// txMachine is a claim.Site or a claim.Coordinator.
type txMachine interface {
	Step(claim.Moment, claim.Event)
	Ready() claim.Ready
	State() claim.CommitState
}

// actor does what the state machine leaves to the application.
type actor struct {
	prepare func(context.Context, Tx) error
	decided func(context.Context, Tx, Decision) error
}

// txDrive drives one state machine to its end. Its run is one goroutine; each
// request, each watch and each call of the application is another, and all
// end with it.
type txDrive struct {
	b       *bidder
	path    string
	m       txMachine
	act     actor
	status  zk.Status
	events  chan claim.Event // of those goroutines, unbuffered
	failed  chan error       // of the application
	acting  bool
	timer   *time.Timer
	threads sync.WaitGroup
}

// drive runs the state machine until it is over, or the context is.
func (b *bidder) drive(ctx context.Context, path string, m txMachine, act actor) (Decision, error) {
	d := &txDrive{b: b, path: path, m: m, act: act, events: make(chan claim.Event), failed: make(chan error, 1), timer: time.NewTimer(time.Hour)}
	defer d.timer.Stop()
	inner, cancel := context.WithCancel(ctx)
	err := d.run(inner)
	cancel()
	d.threads.Wait()
	s := m.State()
	if err == nil && s.Err != nil {
		err = &zk.OpError{Op: "commit", Path: path, Err: s.Err}
	}
	return s.Decision, err
}

func (d *txDrive) run(ctx context.Context) error {
	d.attached(ctx, d.b.c.State())
	for d.m.State().Phase != claim.TxOver {
		select {
		case <-d.status.Changed():
			if s, err := d.status.Next(ctx); err == nil {
				d.attached(ctx, s)
			}
		case ev := <-d.events:
			switch ev.(type) {
			case claim.Prepared, claim.Carried:
				d.acting = false
			}
			d.step(ctx, ev)
		case err := <-d.failed:
			return err
		case <-d.timer.C:
			d.step(ctx, claim.Tick{})
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

func (d *txDrive) attached(ctx context.Context, s zk.Status) {
	d.status = s
	switch s.State {
	case zk.Connected:
		d.step(ctx, claim.Attached{Session: s.Session})
	case zk.Expired:
		d.step(ctx, claim.Expired{})
		if d.b.c.Err() != nil { // there will be no other
			d.step(ctx, claim.Closed{})
		}
	case zk.AuthFailed, zk.Closed:
		d.step(ctx, claim.Closed{})
	default:
		d.step(ctx, claim.Disconnected{})
	}
}

// step hands one event to the state machine and does what comes of it.
func (d *txDrive) step(ctx context.Context, ev claim.Event) {
	d.m.Step(d.b.clock.read(), ev)
	rd := d.m.Ready()
	for _, h := range rd.Happenings {
		d.b.tell(h)
	}
	if rd.Request != nil {
		req := *rd.Request
		d.threads.Go(func() { d.send(ctx, req) })
	}
	s := d.m.State()
	if !d.acting && (s.Phase == claim.TxPrepare || s.Phase == claim.TxDecided && !s.Carried) {
		d.acting = true
		d.threads.Go(func() { d.perform(ctx, s) })
	}
	if rd.Wake > 0 {
		d.timer.Reset(rd.Wake)
	} else {
		d.timer.Stop()
	}
}

// tell hands an event to run, if that still listens.
func (d *txDrive) tell(ctx context.Context, ev claim.Event) {
	select {
	case d.events <- ev:
	case <-ctx.Done():
	}
}

// perform calls the application. Who cannot prepare votes to abort; who
// cannot carry out a decision has to do so later.
func (d *txDrive) perform(ctx context.Context, s claim.CommitState) {
	tx := Tx{Path: d.path, Sites: s.Tx.Sites, Data: s.Tx.Data}
	if s.Phase == claim.TxPrepare {
		vote := Commit
		if err := d.act.prepare(ctx, tx); err != nil {
			vote = Abort
		}
		d.tell(ctx, claim.Prepared{Vote: vote})
		return
	}
	if err := d.act.decided(ctx, tx, s.Decision); err != nil {
		d.failed <- err
		return
	}
	d.tell(ctx, claim.Carried{})
}

// send carries out a request within its session, and then waits for its
// watches: none is told of before the reply.
func (d *txDrive) send(ctx context.Context, req claim.Request) {
	a := d.b.carryOut(ctx, req, nil)
	d.tell(ctx, a.Reply)
	for _, w := range a.watches {
		d.threads.Go(func() { d.await(ctx, w) })
	}
}

// await tells of a watch's event. One whose session ended is forgotten by the
// state machine already.
func (d *txDrive) await(ctx context.Context, w setWatch) {
	select {
	case <-w.Done():
		d.tell(ctx, claim.Fired{Path: w.path})
	case <-ctx.Done():
		// One of a znode is left to fire: with the transaction that goes soon,
		// and to remove the watch would cost as much. What never was never goes.
		if w.absent {
			unwatch(ctx, w.Watch)
		}
	}
}
