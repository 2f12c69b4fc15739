package recipe

import (
	"context"
	"sync"
	"time"

	"bellwether/internal/claim"
	"bellwether/zk"
)

// machine is a state machine of internal/claim: the steps of one recipe, without a clock, a
// connection or a goroutine. Step takes an event. Ready returns what has to be done next: at most one
// request to the servers, operations that take their own time, the time of the next Tick, and whether
// the session needs frequent pings. Over reports that the machine takes no more events.
type machine interface {
	Step(now claim.Moment, ev claim.Event)
	Ready() claim.Ready
	Over() bool
}

// driver drives one machine over a client. All recipes use it: run is the only loop that carries
// requests and events between a machine and zk.
//
// # Events
//
// The loop takes changes of the session (Attached, Disconnected, Expired, Closed) before any other
// waiting event. It then takes the following events as they come: the end of the context (Resign), the events of
// other goroutines (replies, fired watches, ends of operations), the events of a stream, and Tick. If
// stream events arrived before the reply to a request, the loop steps them before that Reply.
//
// # Goroutines
//
// The loop runs on the goroutine that calls run. Each request, each watch and each operation that start
// begins runs on a goroutine of its own, which gives its event to the loop over the unbuffered
// channel events. All these goroutines end before run returns. At most one request is under way at a time.
//
// # Locks
//
// mu guards the machine while the loop calls its methods. Other goroutines hold mu to read the machine.
// It is not held across I/O, channel operations or calls of the application.
//
// # Cancellation and closing
//
// With resigns, the end of run's context becomes a Resign event, and the loop continues until the machine is
// over: it finishes requests under way, and removes what the recipe has created. Without resigns, run returns
// the context's error and cancels requests under way. When the client is closed the machine gets
// Closed. Contexts that the application holds end earlier, before the client tells a server that the
// session closes: the code that made such a context registers it with Client.OnClose.
//
// # A lost connection
//
// The machine gets Disconnected. A request under way is answered with wire.ErrConnectionLoss. The machine then
// does not know whether the request was carried out: it finds out, and Ready.Wake says when it tries again. zk sets
// watches again after a reconnect. Each request names its session and is never carried out in another one.
type driver struct {
	a *agent
	m machine

	// Optional fields, set before run.

	resigns  bool        // the end of the context becomes a Resign event
	enough   func() bool // run also returns when enough reports true; the loop calls it without mu
	first    claim.Event // stepped before any other event
	readOnly bool        // the machine only reads, so a server without a quorum can serve it
	tidy     bool        // run removes all watches at its end, because the watched znodes stay
	// afterStepLocked is called with mu held, after Step of the machine and before Ready.
	afterStepLocked func(now claim.Moment, ev claim.Event)
	// afterStep is called at the end of each step, without mu. It may call step.
	afterStep func(ctx context.Context, ev claim.Event)
	// start begins an operation that takes its own time. The operation reports its events by tell, or by step before start returns.
	start func(ctx context.Context, op claim.Op)
	// carry carries out a request in place of agent.carryOut. It runs on a goroutine
	// other than the loop's and may set stream.
	carry func(ctx context.Context, req claim.Request) answer

	mu      sync.Mutex   // guards session, and m while it is stepped
	session zk.SessionID // the first session that was attached; 0 before

	// Only the loop uses these fields.
	status     zk.Status
	requesting bool // a request is under way
	resigned   bool // the end of run's context was stepped
	watches    map[string]*setWatch
	stream     *zk.Stream    // stream of tree events; nil: none. While requesting is true, carry owns it.
	pace       time.Duration // between two frequent pings; 0: no frequent pings
	stopPings  func()        // ends the frequent pings; nil: no frequent pings
	timer      *time.Timer

	events  chan input // from the other goroutines, unbuffered
	failed  chan error // an error sent here ends run, which returns it
	threads sync.WaitGroup
}

// input is an event from another goroutine: a reply, the end of a watch, or any other.
type input struct {
	event  claim.Event
	answer *answer
	watch  *setWatch
}

func (a *agent) newDriver(m machine) *driver {
	return &driver{a: a, m: m, events: make(chan input), failed: make(chan error, 1), watches: map[string]*setWatch{}}
}

// run drives the machine until the machine is over, enough reports true, the context ends or an error comes over failed.
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
	for d.nextStatus(ctx); !d.done(); d.nextStatus(ctx) {
		if err := d.takeInput(ctx, outer); err != nil {
			return err
		}
	}
	return nil
}

// takeInput waits for the next input of the loop and steps it. outer is the context of run. An error ends run.
func (d *driver) takeInput(ctx, outer context.Context) error {
	end := outer.Done()
	if d.resigned {
		end = nil
	}
	select {
	case <-end:
		if !d.resigns {
			return outer.Err()
		}
		d.resign(ctx, outer)
	case <-d.status.Changed(): // nextStatus steps the change
	case h := <-d.events:
		d.resign(ctx, outer) // the event may be a consequence of the end of the context
		d.handle(ctx, h)
	case err := <-d.failed:
		return err
	case <-d.streamReady():
		d.readStream(ctx, true)
	case <-d.timer.C:
		d.step(ctx, claim.Tick{})
	}
	return nil
}

// resign steps the end of run's context as a Resign, once, if resigns is set.
func (d *driver) resign(ctx, outer context.Context) {
	if d.resigns && !d.resigned && outer.Err() != nil {
		d.resigned = true
		d.step(ctx, claim.Resign{Err: context.Cause(outer)})
	}
}

// runAside runs the driver on a goroutine of its own. If the context ends, the machine resigns, and runAside waits for
// agent.cleanUp at most; the goroutine continues. The returned channel has the error of run once run has returned.
func (d *driver) runAside(ctx context.Context) <-chan error {
	ended, done := make(chan error, 1), make(chan struct{})
	d.resigns = true
	go func() {
		defer close(done)
		ended <- d.run(ctx)
	}()
	select {
	case <-done:
	case <-ctx.Done():
		awaitCleanUp(ctx, d.a.c, done, d.a.cleanUp)
	}
	return ended
}

// done reports whether run can return.
func (d *driver) done() bool { return d.m.Over() || d.enough != nil && d.enough() }

// nextStatus steps all changes of the session since the last call.
func (d *driver) nextStatus(ctx context.Context) {
	for {
		select {
		case <-d.status.Changed():
			s, err := d.status.Next(context.Background()) // does not wait: Changed is closed
			if err != nil {
				return
			}
			d.attached(ctx, s)
		default:
			return
		}
	}
}

// attached steps one status of the client as an event.
func (d *driver) attached(ctx context.Context, s zk.Status) {
	d.status = s
	switch {
	case s.State == zk.Connected, s.State == zk.ReadOnly && d.readOnly:
		lease, ok := d.a.lease(s.Session)
		if !ok { // the session is over already; the next status says so
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
	default: // includes a server without a quorum, which keeps no session alive
		d.step(ctx, claim.Disconnected{})
	}
}

// step gives one event to the machine and carries out its Ready. Only the loop's goroutine calls it.
func (d *driver) step(ctx context.Context, ev claim.Event) {
	d.mu.Lock()
	now := d.a.clock.read()
	d.m.Step(now, ev)
	if d.afterStepLocked != nil {
		d.afterStepLocked(now, ev)
	}
	rd := d.m.Ready()
	d.mu.Unlock()

	for _, h := range rd.Observations {
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
	if d.afterStep != nil {
		d.afterStep(ctx, ev)
	}
}

// ping starts or stops frequent pings of the session. It adapts their pace to the lease, whose delay may have changed.
func (d *driver) ping(on bool) {
	pace := d.pace
	if !on {
		pace = 0
	} else if l, ok := d.a.lease(d.status.Session); ok {
		pace = d.a.pace(l)
	}
	if pace == d.pace {
		return
	}
	stop := d.stopPings
	d.pace, d.stopPings = pace, nil
	if pace > 0 {
		d.stopPings = d.a.c.KeepAlive(pace)
	}
	if stop != nil {
		stop()
	}
}

// send carries out a request on a goroutine of its own. If the request removes a watch, that is its first
// operation; the end of that watch is not an event.
func (d *driver) send(ctx context.Context, req claim.Request) {
	var given *zk.Watch
	if op := req.Ops[0]; op.Kind == claim.OpUnwatch {
		if w := d.watches[op.Path]; w != nil {
			given, w.removed = w.Watch, true
			delete(d.watches, op.Path)
		}
	}
	d.requesting = true
	d.threads.Go(func() {
		var ans answer
		if d.carry != nil {
			ans = d.carry(ctx, req)
		} else {
			ans = d.a.carryOut(ctx, req, given)
		}
		d.deliver(ctx, input{event: ans.Reply, answer: &ans})
	})
}

// tell gives an event to the loop. If run has ended, tell drops the event.
func (d *driver) tell(ctx context.Context, ev claim.Event) { d.deliver(ctx, input{event: ev}) }

func (d *driver) deliver(ctx context.Context, h input) {
	select {
	case d.events <- h:
	case <-ctx.Done():
		if h.answer != nil {
			for _, w := range h.answer.watches {
				d.dropWatch(ctx, w)
			}
		}
	}
}

// handle steps an event of another goroutine. Before a reply it steps what the client
// learned earlier: changes of the session, and events of the stream. After the reply it
// starts to wait for the watches that came with the reply.
func (d *driver) handle(ctx context.Context, h input) {
	switch {
	case h.watch != nil && h.watch.removed:
		return
	case h.answer != nil:
		d.requesting = false
		d.nextStatus(ctx)
		for d.readStream(ctx, false) {
		}
		for _, w := range h.answer.watches {
			d.watches[w.path] = w
			d.threads.Go(func() { d.await(ctx, w) })
		}
	}
	d.step(ctx, h.event)
}

// await gives the event of a watch to the loop. The machine ignores the event if the watch's session has ended.
func (d *driver) await(ctx context.Context, w *setWatch) {
	select {
	case <-w.Done():
		ev, _ := w.Wait(ctx) // with an error, the event has no type
		d.deliver(ctx, input{event: claim.Fired{Path: w.path, Type: ev.Type, N: w.n}, watch: w})
	case <-ctx.Done():
		d.dropWatch(ctx, w)
	}
}

// dropWatch removes a watch that the loop does not wait for any more, if the watch would stay. A watch on a znode that the
// recipe soon deletes is not removed: it fires by itself, and removing it would cost as much as its event. A watch
// on a missing znode would stay, so dropWatch removes it.
func (d *driver) dropWatch(ctx context.Context, w *setWatch) {
	if w.absent || d.tidy {
		unwatch(ctx, d.a.c, w.Watch)
	}
}

// streamBatchMax limits how many events of a stream are stepped together. Several changes of one znode
// in a batch cost one read.
const streamBatchMax = 1024

// streamReady returns a channel that has a value when the stream has an event. While a request is under way it returns nil,
// because the request may use the stream; the events wait in the stream.
func (d *driver) streamReady() <-chan struct{} {
	if d.requesting || d.stream == nil {
		return nil
	}
	return d.stream.Ready()
}

// readStream steps waiting events of the stream, up to a batch, and reports whether there may be more. ready says
// that the caller has received a value from streamReady. readStream calls Next once for each such value.
func (d *driver) readStream(ctx context.Context, ready bool) bool {
	var told claim.TreeEvents
	defer func() {
		if len(told.Events) > 0 {
			d.step(ctx, told)
		}
	}()
	for len(told.Events) < streamBatchMax {
		if !ready {
			select {
			case <-d.streamReady():
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
			d.step(ctx, claim.TreeWatchOver{Zxid: last})
			return false
		}
		told.Events = append(told.Events, claim.TreeEvent(e))
	}
	return true
}
