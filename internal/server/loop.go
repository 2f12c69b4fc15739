package server

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"bellwether/internal/config"
	"bellwether/internal/driver"
	"bellwether/internal/metrics"
	"bellwether/internal/peerwire"
	"bellwether/internal/replica"
	"bellwether/internal/tree"
	"bellwether/wire"
)

// loop is the goroutine that owns the replica. It takes all waiting events and steps each
// one. Then it passes duties to the log writer, carries out the effects, and flushes the
// connections that have output.
//
// order says what comes next in a batch. events and the times belong to the batch under
// way. Only this goroutine uses the replica.
type loop struct {
	srv       *Server
	replica   *replica.Replica
	conns     map[replica.ConnID]*conn
	order     *driver.Batch
	events    []event // events of the batch under way; the memory is reused
	now       replica.Time
	clock     int64         // the server's clock when the batch began
	ticked    int64         // Mono of the last tick
	tickEvery time.Duration // the time between ticks
	arrived   int           // bytes that the batch has brought and that no duty accounts for yet
	asked     int64         // requests that were stepped and are not counted yet
	heavy     heavyQueue
	member    memberLoop
	snapshot  func() // asks the snapshotter for a snapshot
}

// ticksPerTick is the smallest number of Tick events that the replica gets in one tickTime.
const ticksPerTick = 4

// tickEvery returns the time between two Tick events: short enough for the smallest
// interval that the configuration asks for, and at least 1 ms.
func tickEvery(c *config.Config) time.Duration {
	every := c.TickTime / ticksPerTick
	if sweep := c.Tree.ContainerInterval; sweep > 0 {
		every = min(every, sweep)
	}
	return max(every, time.Millisecond)
}

func newLoop(s *Server, snapshot func()) *loop {
	l := &loop{srv: s, conns: map[replica.ConnID]*conn{}, snapshot: snapshot}
	o := s.replicaOptions()
	o.Yield = l.sendHeartbeats
	l.replica = replica.New(s.Tree(), o, s.times())
	l.order = driver.NewBatch(l.replica, l.refuses)
	return l
}

func (l *loop) run(quit <-chan struct{}) {
	s := l.srv
	defer close(s.loopEnded)
	defer s.inbox.close()
	l.tickEvery = tickEvery(s.config())
	tick := time.NewTicker(l.tickEvery)
	defer tick.Stop()
	l.member.alarm, l.member.dialled = time.NewTimer(0), dialled{server: peerwire.NoServer}
	defer l.member.alarm.Stop()
	for {
		ticked := false
		select {
		case <-s.inbox.wake:
		case <-l.member.alarm.C:
		case <-tick.C:
			ticked = true
		case <-quit:
			return
		}
		l.batch(ticked)
	}
}

// batch carries out the events that wait. It reads the clock after the inbox is drained, so
// that no ping in the batch is newer than now.
func (l *loop) batch(ticked bool) {
	s := l.srv
	s.busy.begin()
	defer s.busy.end()
	l.events = s.inbox.take(l.events)
	l.now, l.clock = s.times(), s.clock()
	l.arrived, l.asked = 0, 0
	l.order.Begin(l.now, len(l.events), ticked)
	switch ready := l.settle(); {
	case ready:
		l.resume() // after the effects of the light requests
		l.order.Repeat()
		l.settle()
	case l.heavy.ready():
		// Events that arrived while a heavy request was applied come before the next heavy
		// request.
		s.inbox.ring()
	}
	s.stats.loopTime.Observe(micro(s.clock()-l.clock), 1)
}

// settle carries out the steps of the batch, up to the flush of the connections. It reports
// whether a request that was held back could go to the replica when all events had been
// stepped.
func (l *loop) settle() (ready bool) {
	for {
		switch l.order.Next() {
		case driver.Step:
			l.take(l.order.Index())
		case driver.Tick:
			l.countSteps(l.clock)
			l.tick()
		case driver.AllStepped:
			l.countSteps(l.clock)
			ready = l.heavy.ready()
		case driver.Log:
			l.log(l.order.Ready.Duties)
		case driver.Send:
			l.sendOut(&l.order.Ready)
		case driver.Apply:
			l.apply(&l.order.Ready)
		case driver.SendHeld:
			for _, m := range l.order.Held() {
				l.srv.member.send(m)
			}
		case driver.Connect:
			l.connect(&l.order.Ready)
			for _, h := range l.order.Ready.Observations {
				l.tell(h)
			}
			if why := l.order.Ready.Stop; why != "" {
				l.srv.fail(errors.New(why))
			}
		case driver.BatchDone:
			l.srv.pendingFlush.flush()
			l.endBatch()
			return ready
		}
	}
}

// take steps an event of the batch.
func (l *loop) take(i int) {
	if i%heartbeatEvery == heartbeatEvery-1 {
		l.sendHeartbeats()
	}
	l.arrived += l.events[i].size()
	l.step(l.events[i])
}

// countSteps counts the requests that were stepped since start, a time of the server's clock,
// and how long that took.
func (l *loop) countSteps(start int64) {
	if l.asked > 0 {
		l.srv.stats.stepped(l.asked, l.srv.clock()-start, l.decides())
		l.asked = 0
	}
}

// refuses reports whether an event of the batch says that the disk has refused a duty.
func (l *loop) refuses(i int) bool { return driver.Refuses(l.events[i].event) }

// heartbeatEvery is how many events or effects are carried out between two checks for due
// heartbeats. Long work among them yields by itself.
const heartbeatEvery = 64

// sendHeartbeats sends the due heartbeats to learners, or answers those of the leader. A
// batch can take longer than the interval of heartbeats, so they are also sent in the
// middle of a batch. The loop itself sends them, so that a loop that hangs sends none.
func (l *loop) sendHeartbeats() {
	if yielded := l.srv.opt.Hooks.Yielded; yielded != nil {
		yielded()
	}
	m := l.srv.member
	if m == nil || l.srv.clock() < l.member.nextHeartbeat && m.pinged.Load() == 0 {
		return
	}
	send, due, next := l.replica.Heartbeat(l.srv.times(), l.srv.inbox.pings())
	l.member.setNextHeartbeat(next)
	l.send(send, due)
}

// resume passes one turn of the held-back requests to the replica: all up to and including
// the first heavy one. The next turn belongs to another batch, after the events that arrive
// meanwhile.
func (l *loop) resume() {
	start := l.srv.clock()
	for turn := false; !turn && l.heavy.ready(); {
		c, q := l.heavy.next()
		turn = heavy(q) > 0
		l.request(c, q)
		l.replica.Step(l.now, q)
	}
	l.countSteps(start)
	if l.heavy.ready() {
		l.srv.inbox.ring()
	}
}

// log passes duties to the log writer. The bytes of the batch count as waiting for the disk
// together with its first duty.
func (l *loop) log(duties []replica.Duty) {
	s := l.srv
	for _, d := range duties {
		t := driver.Task{Duty: d, Size: l.arrived, At: s.clock()}
		l.proposedNow(&t)
		l.arrived = 0
		if d.Install != nil {
			t.Received = s.member.takeReceived(d.Install.Link)
		}
		if s.inbox.log(t.Size); !s.journal.push(t) {
			s.inbox.log(-t.Size)
		}
		n := int64(len(d.Append))
		s.stats.logged.Add(n)
		if l.decides() {
			s.stats.proposals.Add(n)
		}
	}
}

// decides reports whether this server turns requests into transactions: it leads, or it is
// standalone.
func (l *loop) decides() bool { return l.srv.member == nil || l.srv.member.stats.leading() }

// step passes one event to the replica.
func (l *loop) step(e event) {
	if e.ask != nil {
		e.ask(l)
		return
	}
	switch ev := e.event.(type) {
	case *replica.Request:
		if c := l.conns[ev.Conn]; c != nil {
			c.touch(ev.Started)
			if l.heavy.hold(c, ev) {
				l.srv.stats.heavyHeld.Add(1)
				return
			}
			l.request(c, ev)
		}
	case replica.Connect:
		if ev.Session != 0 {
			l.srv.stats.reattached.Add(1)
		}
		l.conns[ev.Conn] = e.conn
	case replica.Disconnected:
		l.forget(ev.Conn)
	default:
		if l.srv.member != nil {
			l.before(ev)
		}
	}
	l.replica.Step(l.now, e.event)
}

// request accounts for a request that goes to the replica.
func (l *loop) request(c *conn, q *replica.Request) {
	l.heavy.taken(c, q)
	q.Stepped = l.clock
	if l.asked++; l.decides() {
		l.srv.stats.inboxTime.Observe(micro(l.clock-q.Started), 1)
	}
	l.refuse(q)
}

// refuse tells the replica to refuse a request that has waited too long
// (throttled_op_wait_time).
func (l *loop) refuse(q *replica.Request) {
	limit := l.srv.config().Limits.Throttle.OpWait
	if limit <= 0 || q.Op == wire.OpPing || q.Op == wire.OpCloseSession {
		return
	}
	if l.clock-q.Started > int64(limit) {
		q.Refuse = wire.ErrThrottledOp
		l.srv.stats.throttled.Add(1)
	}
}

// forget drops a connection whose reader has ended. First it tells the replica if the session
// was heard from since the last tick, because the session may outlive the connection.
func (l *loop) forget(id replica.ConnID) {
	c := l.conns[id]
	if c == nil {
		return
	}
	if heard, ok := c.heardState.Unreported(); ok && c.Session() != 0 {
		l.replica.Step(l.now, replica.Touched{Sessions: []replica.Touch{{Session: c.Session(), Mono: heard}}})
	}
	delete(l.conns, id)
	l.heavy.forget(c)
	t := l.srv.Tree()
	l.srv.writers.Go(func() { t.Forget(c) }) // the connection may have a million watches, so the loop does not wait
	// Requests of the connection that are still under way will not be answered.
	l.srv.inProcess.Add(-int64(c.outstanding.Load()))
	l.srv.inProcessBytes.Add(-c.held.Load())
	l.srv.large.Add(-c.large.Load())
}

// deliver carries out every effect that is due.
func (l *loop) deliver() {
	end := l.srv.clock()
	for i := 1; ; i++ {
		o, ok := l.replica.Next()
		if !ok {
			return
		}
		if i%heartbeatEvery == 0 {
			l.sendHeartbeats()
		}
		if o.Kind == replica.Reply && l.srv.audit != nil {
			l.srv.auditReply(o)
		}
		c := l.conns[o.Conn]
		if c == nil {
			if o.Kind == replica.Reply {
				l.srv.stats.unclaimed.Add(1)
			}
			continue
		}
		switch o.Kind {
		case replica.Attached:
			l.srv.attach(c, o, l.replica.Applied())
		case replica.Reply:
			c.judge(o.Header.Err, o.Response)
			o.Header.Zxid = c.shown(o.Header.Zxid)
			c.push(item{header: o.Header, record: o.Response})
			l.done(c, o.Request, o.Header.Zxid, o.Header.Err, end)
		case replica.Turn:
			l.turn(c, o.Request)
			l.done(c, o.Request, l.replica.Applied(), wire.OK, end)
		case replica.Close:
			c.finishLater()
		}
	}
}

// turn carries out a read that had to wait for its turn, unless the connection can no
// longer receive the reply.
func (l *loop) turn(c *conn, q *replica.Request) {
	if c.ended() {
		return
	}
	if err := c.read(&scratch{late: true, yield: l.sendHeartbeats}, q.Xid, q.Op, q.Body); err != nil {
		c.finishLater()
	}
}

// done accounts for a request that has been answered.
func (l *loop) done(c *conn, q *replica.Request, z wire.Zxid, code wire.Code, end int64) {
	s := l.srv
	if end-q.Started >= s.tracer.above.Load() && q.Op != wire.OpPing {
		l.describe(c, q, z, code)
	}
	l.heavy.answered(c, q)
	s.inProcess.Add(-1)
	s.inProcessBytes.Add(-q.Size)
	s.large.Add(-q.Large)
	c.held.Add(-q.Size)
	c.large.Add(-q.Large)
	s.stats.throughLoop(q.Op, end-q.Started)
	c.out.answered(q.Xid, q.Op, z, end-q.Started, end)
	c.answered()
}

// tick tells the replica which sessions were heard from, and that time has passed.
func (l *loop) tick() {
	l.late()
	for _, c := range l.conns {
		if id := c.Session(); id != 0 {
			l.order.Hear(&c.heardState, id, c.timeout.Load())
		}
	}
	l.order.Tick()
}

// lateMin is the smallest delay of a tick that counts as a pause of the process.
const lateMin = 100 * time.Millisecond

// late records that the process did not run for a while.
func (l *loop) late() {
	due := l.ticked + l.tickEvery.Milliseconds()
	if late := l.now.Mono - due; l.ticked > 0 && late > lateMin.Milliseconds() {
		l.srv.stats.pause.Observe(late*metrics.Unit, 1)
	}
	l.ticked = l.now.Mono
}

// warn returns the logger and the level for a message about a client.
func (l *loop) warn(id replica.ConnID, kind string) (*slog.Logger, slog.Level) {
	c := l.conns[id]
	if c == nil {
		return l.srv.log, l.srv.notices.Level(slog.LevelWarn, kind, "")
	}
	return l.srv.log.With("client", c.addr), l.srv.notices.Level(slog.LevelWarn, kind, c.addr.String())
}

// tell logs an observation of the replica.
func (l *loop) tell(h replica.Observation) {
	log, level := l.srv.log, slog.LevelInfo
	switch e := h.(type) {
	case replica.WritesStopped:
		l.srv.readOnly.Store(true)
		level = slog.LevelError
	case replica.WritesResumed:
		l.srv.readOnly.Store(false)
	case replica.SessionExpired:
		l.srv.stats.expired.Add(1)
	case replica.SessionRefused:
		log, level = l.warn(e.Conn, "Invalid session, "+e.Reason)
	case tree.DigestMismatch, replica.TreeDiffers, replica.TreeWrong:
		level = slog.LevelError
	case replica.Behind:
		log, level = l.warn(e.Conn, "Refusing session request: the client has seen a later state")
	case replica.StallBegan, replica.StallEnded: // diskWatch has already logged it
		level = slog.LevelDebug
	case tree.QuotaExceeded:
		level = l.srv.notices.Level(slog.LevelWarn, "quota exceeded", e.Path)
	case tree.QuotaUnreadable:
		level = l.srv.notices.Level(slog.LevelWarn, "quota cannot be read", e.Path)
	case replica.AbandonedLost:
		l.srv.audit.Lose()
		level = l.srv.notices.Level(slog.LevelWarn, "outcome of an abandoned request is not known", "")
	case replica.TickLate, replica.NoMaster, tree.DigestNotReached:
		level = slog.LevelWarn
	default:
		if l.srv.member != nil {
			log, level = l.loggerFor(h)
		}
	}
	log.Log(context.Background(), level, h.String())
}
