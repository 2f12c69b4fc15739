package recipe

import (
	"context"
	"sync"
	"time"

	"bellwether/internal/claim"
	"bellwether/zk"
)

// machine is a state machine of internal/claim: the steps of one recipe, without a clock, a
// connection or a goroutine. It takes events by Step and says by Ready what has to be done
// next: at most one request to the servers, operations that take their own time, the moment of the
// next Tick, and whether the session needs frequent pings. Over reports that it takes no more events.
type machine interface {
	Step(now claim.Moment, ev claim.Event)
	Ready() claim.Ready
	Over() bool
}

// driver drives one machine over a client. All recipes share it: run is the only loop that carries
// requests and events between a machine and zk.
//
// # Events
//
// The loop steps what becomes of the session (Attached, Disconnected, Expired, Closed) before anything
// else that waits; then, as they come, the end of the context (Resign), what other goroutines tell (replies, fired
// watches, ends of operations), what a stream of tree events tells, and Tick. What a stream told before the
// servers answered a request is stepped before the Reply to it.
//
// # Goroutines
//
// The loop runs on the goroutine that calls run. Each request, each watch and each operation that start
// begins is carried out on a goroutine of its own, which hands its event to the loop over the unbuffered
// channel events. All of them end before run returns. One request is under way at a time.
//
// # Locks
//
// mu guards the machine while it is stepped and asked. Other goroutines hold it to read the machine.
// It is not held across I/O, channel operations or calls of the application.
//
// # Cancellation and closing
//
// With resigns, the end of run's context is stepped as Resign, and the loop goes on until the machine is
// over: requests under way are finished, and what the recipe has made is removed. Without it run returns
// the context's error, and cancels requests under way. When the client is closed the machine gets
// Closed. Contexts that the application holds end earlier, before the client tells a server that the
// session closes: their owners register them with Client.OnClose.
//
// # A lost connection
//
// The machine gets Disconnected. A request under way is answered with wire.ErrConnectionLoss, which leaves
// open whether it was carried out; the machine finds out, and says by Wake when it tries again. zk sets
// watches again after a reconnect. Each request names its session and is never carried out in another.
type driver struct {
	a *agent
	m machine

	// Set before run, and optional.

	resigns  bool        // the end of the context is stepped as Resign
	enough   func() bool // run also returns when it reports true; called by the loop, without mu
	first    claim.Event // stepped before anything else
	readOnly bool        // a server without a quorum is good enough: the machine only reads
	tidy     bool        // watches are given up when run returns, because what they watch stays
	// locked is called with mu held, after the machine was stepped by ev and before it is asked by Ready.
	locked func(now claim.Moment, ev claim.Event)
	// stepped is called at the end of each step, without mu. It may step again.
	stepped func(ctx context.Context, ev claim.Event)
	// start begins an operation that takes its own time. Its events come by tell, or by step before start returns.
	start func(ctx context.Context, op claim.Op)
	// carry carries out a request in place of agent.carryOut. It runs beside the loop and may set stream.
	carry func(ctx context.Context, req claim.Request) answer

	mu      sync.Mutex   // guards session, and m while it is stepped
	session zk.SessionID // the first that was attached; 0 before

	// Of the loop alone.
	status  zk.Status
	asking  bool // a request is under way
	watches map[string]*setWatch
	stream  *zk.Stream // of tree events; nil: none. While asking it belongs to carry.
	calm    func()     // ends the frequent pings; nil: there are none
	timer   *time.Timer

	events  chan heard // from the other goroutines, unbuffered
	failed  chan error // ends run with this error
	threads sync.WaitGroup
}

// heard is an event from another goroutine: a reply, the end of a watch, or any other.
type heard struct {
	ev     claim.Event
	answer *answer
	watch  *setWatch
}

func (a *agent) newDriver(m machine) *driver {
	return &driver{a: a, m: m, events: make(chan heard), failed: make(chan error, 1), watches: map[string]*setWatch{}}
}

// run drives the machine until it is over or enough, its context ends or a part of it fails.
func (d *driver) run(ctx context.Context) error {
	d.timer = time.NewTimer(time.Hour)
	defer d.timer.Stop()
	outer := ctx
	if d.resigns {
		ctx = context.WithoutCancel(ctx)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer d.ping(false)
	defer d.threads.Wait()
	defer cancel()
	if d.first != nil {
		d.step(ctx, d.first)
	}
	d.attached(ctx, d.a.c.State())
	resigned := !d.resigns
	resign := func() {
		if outer.Err() != nil && !resigned {
			resigned = true
			d.step(ctx, claim.Resign{Err: context.Cause(outer)})
		}
	}
	for d.nextStatus(ctx); !d.done(); d.nextStatus(ctx) {
		end := outer.Done()
		if d.resigns && resigned {
			end = nil
		}
		select {
		case <-end:
			if !d.resigns {
				return outer.Err()
			}
			resign()
		case <-d.status.Changed(): // nextStatus steps it
		case h := <-d.events:
			resign() // of which the event may be a consequence
			d.hear(ctx, h)
		case err := <-d.failed:
			return err
		case <-d.told():
			d.listen(ctx, true)
		case <-d.timer.C:
			d.step(ctx, claim.Tick{})
		}
	}
	return nil
}

// done reports whether run has nothing left to do.
func (d *driver) done() bool { return d.m.Over() || d.enough != nil && d.enough() }

// nextStatus steps what has become of the session since the last call.
func (d *driver) nextStatus(ctx context.Context) {
	for {
		select {
		case <-d.status.Changed():
			s, err := d.status.Next(context.Background()) // it is there
			if err != nil {
				return
			}
			d.attached(ctx, s)
		default:
			return
		}
	}
}

// attached steps one status of the client.
func (d *driver) attached(ctx context.Context, s zk.Status) {
	d.status = s
	switch {
	case s.State == zk.Connected, s.State == zk.ReadOnly && d.readOnly:
		lease, ok := d.a.lease(s.Session)
		if !ok { // the session is over again; the next status says so
			lease = claim.Lease{Sent: never, Timeout: s.Timeout}
		}
		d.mu.Lock()
		if d.session == 0 {
			d.session = s.Session
		}
		d.mu.Unlock()
		d.step(ctx, claim.Attached{Session: s.Session, Lease: lease})
	case s.State == zk.Expired:
		d.step(ctx, claim.Expired{})
		if d.a.c.Err() != nil { // no other session follows
			d.step(ctx, claim.Closed{})
		}
	case s.State == zk.AuthFailed, s.State == zk.Closed:
		d.step(ctx, claim.Closed{})
	default: // also a server without a quorum: it keeps no session alive
		d.step(ctx, claim.Disconnected{})
	}
}

// step gives one event to the machine and does what it says. The loop's goroutine calls it.
func (d *driver) step(ctx context.Context, ev claim.Event) {
	d.mu.Lock()
	now := d.a.clock.read()
	d.m.Step(now, ev)
	if d.locked != nil {
		d.locked(now, ev)
	}
	rd := d.m.Ready()
	d.mu.Unlock()

	for _, h := range rd.Happenings {
		d.a.tell(h)
	}
	d.ping(rd.KeepAlive)
	if rd.Request != nil {
		d.send(ctx, *rd.Request)
	}
	if rd.Wake > 0 {
		d.timer.Reset(rd.Wake)
	} else {
		d.timer.Stop()
	}
	for _, op := range rd.Start {
		d.start(ctx, op)
	}
	if d.stepped != nil {
		d.stepped(ctx, ev)
	}
}

// ping starts or ends frequent pings of the session.
func (d *driver) ping(on bool) {
	switch {
	case on && d.calm == nil:
		d.calm = d.a.c.KeepAlive(d.a.keepAlive)
	case !on && d.calm != nil:
		d.calm()
		d.calm = nil
	}
}

// send carries out a request beside the loop. A watch that it gives up is the first of its operations;
// its end is no event.
func (d *driver) send(ctx context.Context, req claim.Request) {
	var given *zk.Watch
	if op := req.Ops[0]; op.Kind == claim.OpUnwatch {
		if w := d.watches[op.Path]; w != nil {
			given, w.given = w.Watch, true
			delete(d.watches, op.Path)
		}
	}
	d.asking = true
	d.threads.Go(func() {
		var ans answer
		if d.carry != nil {
			ans = d.carry(ctx, req)
		} else {
			ans = d.a.carryOut(ctx, req, given)
		}
		d.hand(ctx, heard{ev: ans.Reply, answer: &ans})
	})
}

// tell gives an event to the loop, unless run has ended.
func (d *driver) tell(ctx context.Context, ev claim.Event) { d.hand(ctx, heard{ev: ev}) }

func (d *driver) hand(ctx context.Context, h heard) {
	select {
	case d.events <- h:
	case <-ctx.Done():
		if h.answer != nil {
			for _, w := range h.answer.watches {
				d.leave(ctx, w)
			}
		}
	}
}

// hear steps an event of another goroutine. Before a reply it steps what the client learned earlier:
// the loss of the connection, and events of the stream. A watch that came with the reply is heard from here on.
func (d *driver) hear(ctx context.Context, h heard) {
	switch {
	case h.watch != nil && h.watch.given:
		return
	case h.answer != nil:
		d.asking = false
		d.nextStatus(ctx)
		for d.listen(ctx, false) {
		}
		for _, w := range h.answer.watches {
			d.watches[w.path] = w
			d.threads.Go(func() { d.await(ctx, w) })
		}
	}
	d.step(ctx, h.ev)
}

// await tells the loop of a watch's event. A machine has forgotten a watch whose session ended already.
func (d *driver) await(ctx context.Context, w *setWatch) {
	select {
	case <-w.Done():
		ev, _ := w.Wait(ctx) // an error is an event of no type
		d.hand(ctx, heard{ev: claim.Fired{Path: w.path, Type: ev.Type, N: w.n}, watch: w})
	case <-ctx.Done():
		d.leave(ctx, w)
	}
}

// leave handles a watch for which nobody listens any more. A watch of a znode that recipes delete soon fires by itself, and to
// remove it would cost as much. One of a missing znode would stay, and is removed.
func (d *driver) leave(ctx context.Context, w *setWatch) {
	if w.absent || d.tidy {
		unwatch(ctx, d.a.c, w.Watch)
	}
}

// streamBatchMax is how many events of a stream are stepped together: many changes of one znode
// are then one read.
const streamBatchMax = 1024

// told has a value when the stream has something to tell. While a request is under way, which may use the
// stream itself, events wait in it.
func (d *driver) told() <-chan struct{} {
	if d.asking || d.stream == nil {
		return nil
	}
	return d.stream.Ready()
}

// listen steps what the stream has to tell, at most a batch, and reports whether there may be more. ready says
// that a value was received from told: Next is called once for each.
func (d *driver) listen(ctx context.Context, ready bool) bool {
	var told claim.Told
	defer func() {
		if len(told.Events) > 0 {
			d.step(ctx, told)
		}
	}()
	for len(told.Events) < streamBatchMax {
		if !ready {
			select {
			case <-d.told():
			default:
				return false
			}
		}
		ready = false
		e, err := d.stream.Next(context.Background())
		if err != nil {
			last := d.stream.Zxid()
			d.stream = nil
			d.step(ctx, told)
			told.Events = nil
			d.step(ctx, claim.WatchOver{Zxid: last})
			return false
		}
		told.Events = append(told.Events, claim.TreeEvent(e))
	}
	return true
}
