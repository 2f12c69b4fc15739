package recipe

import (
	"context"
	"sync"
	"time"

	"bellwether/internal/claim"
	"bellwether/zk"
)

// stepper is a state machine of package claim.
type stepper interface {
	Step(claim.Moment, claim.Event)
	Ready() claim.Ready
}

// drive drives one state machine to its end, or to wherever over says. Its run
// is one goroutine; each request, each watch and what a recipe starts with go
// is another, and all end with run.
type drive struct {
	b    *bidder
	m    stepper
	over func() bool
	// stepped, if set, is called after each step, by run's goroutine.
	stepped func(context.Context, claim.Event)
	// first, if set, is stepped before anything else.
	first claim.Event
	// ending, if set, is stepped when the context ends, and what is under way
	// goes on; otherwise run returns the context's error.
	ending claim.Event
	// tidy: watches are given up in the end, as what is watched stays.
	tidy bool

	status  zk.Status
	events  chan heard // of the other goroutines, unbuffered
	failed  chan error // ends run
	watches map[string]*zk.Watch
	timer   *time.Timer
	threads sync.WaitGroup
}

// heard is what another goroutine has to tell.
type heard struct {
	ev      claim.Event
	watches []setWatch
}

func (b *bidder) newDrive(m stepper, over func() bool) *drive {
	return &drive{
		b: b, m: m, over: over,
		events: make(chan heard), failed: make(chan error, 1), watches: map[string]*zk.Watch{},
	}
}

// run drives the state machine until it is over, the context is, or something
// has failed.
func (d *drive) run(ctx context.Context) error {
	d.timer = time.NewTimer(time.Hour)
	defer d.timer.Stop()
	outer := ctx.Done()
	if d.ending != nil {
		ctx = context.WithoutCancel(ctx)
	}
	inner, cancel := context.WithCancel(ctx)
	defer d.threads.Wait()
	defer cancel()
	if d.first != nil {
		d.step(inner, d.first)
	}
	d.attached(inner, d.b.c.State())
	for !d.over() {
		select {
		case <-d.status.Changed():
			if s, err := d.status.Next(inner); err == nil {
				d.attached(inner, s)
			}
		case h := <-d.events:
			d.hear(inner, h)
		case err := <-d.failed:
			return err
		case <-d.timer.C:
			d.step(inner, claim.Tick{})
		case <-outer:
			if d.ending == nil {
				return ctx.Err()
			}
			outer = nil
			d.step(inner, d.ending)
		}
	}
	return nil
}

// attached tells the state machine what became of the session.
func (d *drive) attached(ctx context.Context, s zk.Status) {
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
func (d *drive) step(ctx context.Context, ev claim.Event) {
	d.m.Step(d.b.clock.read(), ev)
	rd := d.m.Ready()
	for _, h := range rd.Happenings {
		d.b.tell(h)
	}
	if rd.Request != nil {
		d.send(ctx, *rd.Request)
	}
	if rd.Wake > 0 {
		d.timer.Reset(rd.Wake)
	} else {
		d.timer.Stop()
	}
	if d.stepped != nil {
		d.stepped(ctx, ev) // which may step, so it comes last
	}
}

// tell hands an event to run, if that still listens.
func (d *drive) tell(ctx context.Context, ev claim.Event) { d.hand(ctx, heard{ev: ev}) }

func (d *drive) hand(ctx context.Context, h heard) {
	select {
	case d.events <- h:
	case <-ctx.Done():
		for _, w := range h.watches {
			d.leave(ctx, w)
		}
	}
}

// leave is for a watch when nobody listens any more. One of a znode is left to
// fire: what recipes watch goes soon, and to remove the watch would cost as
// much. What never was never goes.
func (d *drive) leave(ctx context.Context, w setWatch) {
	if w.absent || d.tidy {
		unwatch(ctx, d.b.c, w.Watch)
	}
}

// hear takes what another goroutine has to tell. A watch that came with a
// reply is heard from here on.
func (d *drive) hear(ctx context.Context, h heard) {
	for _, w := range h.watches {
		d.watches[w.path] = w.Watch
		d.threads.Go(func() { d.await(ctx, w) })
	}
	d.step(ctx, h.ev)
}

// send carries out a request within its session beside the loop. A watch that
// is given up stands first in its request.
func (d *drive) send(ctx context.Context, req claim.Request) {
	var watch *zk.Watch
	if op := req.Ops[0]; op.Kind == claim.OpUnwatch {
		watch = d.watches[op.Path]
		delete(d.watches, op.Path)
	}
	d.threads.Go(func() {
		a := d.b.carryOut(ctx, req, watch)
		d.hand(ctx, heard{a.Reply, a.watches})
	})
}

// await tells of a watch's event. One whose session ended is forgotten by the
// state machine already.
func (d *drive) await(ctx context.Context, w setWatch) {
	select {
	case <-w.Done():
		ev, _ := w.Wait(ctx) // an error is an event of no type
		d.tell(ctx, claim.Fired{Path: w.path, Type: ev.Type, N: w.n})
	case <-ctx.Done():
		d.leave(ctx, w)
	}
}
