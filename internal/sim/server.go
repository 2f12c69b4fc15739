package sim

import (
	"errors"
	"slices"
	"syscall"

	"bellwether/internal/driver"
	"bellwether/internal/ensemble"
	"bellwether/internal/peerwire"
	"bellwether/internal/record"
	"bellwether/internal/replica"
	"bellwether/internal/sim/check"
	"bellwether/internal/store"
	"bellwether/internal/tree"
	"bellwether/internal/zab"
	"bellwether/wire"
)

// server is a machine with a disk. While it is up, a process on it drives a replica.
//
// A process that starts or ends increases life. Scheduled work of an earlier life is
// dropped. A batch is under way exactly while stepped is true; events that arrive then wait
// in the inbox.
type server struct {
	host
	sim        *Sim
	id         ensemble.ServerID
	compatible bool                 // it behaves as a server of ZooKeeper
	members    *ensemble.Membership // the list of servers that it uses; nil: it has none yet
	absent     bool                 // the newest list does not contain it
	served     int                  // value of Sim.steps when it last began to serve

	fs      *store.Mem
	unknown bool // its disk was wiped, and it does not know its earlier history
	// syncFailed says that a failed fsync ended its last process, and that nothing was lost
	// since.
	syncFailed bool
	slowDisk   int64
	hung       bool     // its disk answers nothing
	hungTasks  []func() // work that waits until the disk answers
	space      int64    // free bytes on its disk; -1: no limit
	snapEvery  int
	rejoined   wire.Epoch    // the epoch in which it served last
	installed  bool          // its snapshot came from a leader, which may have been ahead of the snapshot's zxid
	has        bool          // it was synchronised since its disk was new
	knows      []*record.Txn // its history, except what has already been delivered
	sheds      []shed        // truncations and installations that its disk was told to carry out and has not yet

	// The following fields belong to one life of the process.
	up          bool
	paused      bool
	life        int
	replica     *replica.Replica
	tree        *tree.Tree
	log         *zab.Log
	store       *store.Store
	saved       store.Epochs // the epochs on the disk
	inbox       []replica.Event
	backlog     []func() // work that arrived while the process was stopped
	due         bool     // a batch is scheduled
	stepped     bool     // a batch is under way
	order       *driver.Batch
	events      []replica.Event // of the batch under way
	ticked      bool            // the next batch contains a tick
	nextBeat    int64           // Mono ms at which Beat is to be called
	longRequest longRequest
	busyAfter   int          // number of events or effects until the batch takes long; 0: it does not
	alarm       int64        // µs of the next alarm that is set; 0: none
	lease       driver.Lease // the lease at the end of the last batch
	led         bool         // it served at the end of the last batch
	at          replica.Time // time of the last batch
	writer      writer
	voices      map[ensemble.ServerID]*voice
	dials       ensemble.ServerID
	dialling    bool
	listens     bool
	links       []*link
	linked      zab.LinkID // link of the last Linked that was stepped
	spools      map[zab.LinkID]spool
	conns       []*conn // connections of clients
	standing    replica.Standing
	seen        position
}

// later calls the function do after d µs, in this life of the process. While the process is
// stopped, the call waits until the process goes on.
func (v *server) later(d int64, do func()) {
	life := v.life
	v.sim.after(d, func() {
		if v.up && v.life == life {
			v.arrive(do)
		}
	})
}

// arrive calls the function do, which stands for something that reaches the process. While
// the process is stopped, the call waits until the process goes on.
func (v *server) arrive(do func()) {
	switch {
	case !v.up:
	case v.paused:
		v.backlog = append(v.backlog, do)
	default:
		do()
	}
}

// start loads the disk and begins a new life.
func (v *server) start() {
	switch {
	case v.up || v.absent:
		return
	case v.members == nil: // it has no list of servers yet
		return
	case v.hung: // it cannot read its disk
		life := v.life
		v.sim.after(100*millisecond, func() {
			if v.life == life {
				v.start()
			}
		})
		return
	}
	v.on = true
	v.life++
	if v.syncFailed {
		v.syncFailed = false
		v.sim.reach(situationSyncFailed)
	}
	st, err := store.Open(v.fs, storeOptions())
	if err != nil {
		v.unloadable(err)
		return
	}
	t := newTree()
	var txns []*record.Txn
	res, err := loadInto(st, t, &txns)
	if err != nil {
		v.unloadable(err)
		return
	}
	epochs, err := st.Epochs()
	if err != nil {
		v.unloadable(err)
		return
	}
	if wrong := t.Happenings(); len(wrong) > 0 && !v.installed {
		v.sim.fail("Recovery", "%d has another tree than it had: %v", v.id, wrong[0])
		return
	}
	log := zab.NewLog(max(res.Snapshot, 0), v.sim.opt.Keep)
	for _, txn := range txns {
		if err := log.Append(txn); err != nil {
			v.sim.fail("Recovery", "%d has a gap in its log: %v", v.id, err)
			return
		}
	}
	log.MarkApplied(log.Last())
	v.begin(st, t, log, epochs)
	v.recall(txns)
	v.sim.tell("server %d starts with %v, epochs %d and %d", v.id, log.Last(), epochs.Accepted, epochs.Current)
}

// begin creates the state of the process.
func (v *server) begin(st *store.Store, t *tree.Tree, log *zab.Log, epochs store.Epochs) {
	v.up, v.paused, v.due, v.stepped, v.ticked = true, false, false, false, false
	v.tree, v.log, v.store, v.saved = t, log, st, epochs
	v.inbox, v.backlog, v.links, v.conns = nil, nil, nil, nil
	v.spools, v.linked = map[zab.LinkID]spool{}, 0
	v.dials, v.dialling, v.listens = peerwire.NoServer, false, false
	v.writer = writer{v: v}
	v.voices = map[ensemble.ServerID]*voice{}
	v.alarm, v.lease, v.led, v.nextBeat, v.busyAfter = 0, driver.Lease{Mono: -1}, false, replica.Never, 0
	v.standing = replica.Standing{}
	now := v.clock.time(v.sim.now)
	v.replica = replica.New(t, replica.Options{
		ServerID: v.id, TickMS: v.sim.opt.TickMS, Yield: v.beat,
		Member: &replica.Member{
			Members: v.members, Log: log, Accepted: epochs.Accepted, Current: epochs.Current,
			LocalSessions: v.sim.opt.LocalSessions > 0, UpgradeLocal: true,
			Unknown: v.unknown, Plain: v.compatible, KeepClients: v.sim.opt.KeepClients > 0, ReadOnly: v.sim.opt.ReadOnly > 0, DiskLog: true, CounterMax: v.sim.opt.CounterMax,
		},
	}, now)
	v.order = driver.NewBatch(v.replica, func(i int) bool { return driver.Refuses(v.events[i]) })
	v.seen = position{zxid: -1, shown: v.seen.shown}
	v.endsAt(log.Last())
	v.sim.see(check.Restarted{Server: v.id, Log: log.Last()})
	v.tick()
	v.rouse()
}

// unloadable handles a start that failed. If a fault of the disk is the cause, the start is
// retried. Any other cause fails the run, because no crash explains it.
func (v *server) unloadable(err error) {
	var full *store.FullError
	switch {
	case errors.Is(err, store.ErrCrashed):
		v.losePower()
	case errors.As(err, &full) || errors.Is(err, syscall.ENOSPC) || errors.Is(err, errDisk):
		v.fs.Crash(store.KeepAll)
		v.restore()
	default:
		v.sim.fail("Recovery", "%d cannot be started: %v", v.id, err)
		return
	}
	life := v.life
	v.sim.after(second, func() {
		if v.life == life {
			v.start()
		}
	})
}

// losePower loses writes that were not fsynced, or a part of them.
func (v *server) losePower() {
	before := v.fs.Lost()
	v.fs.Crash(v.crashKeeps())
	v.restore()
	after := v.fs.Lost()
	if after.Torn > before.Torn {
		v.sim.reach(situationTorn)
	}
	if after.Names > before.Names {
		v.sim.reach(situationNamesLost)
	}
}

// restore gives the disk the faults that it had before a crash.
func (v *server) restore() { v.fs.SetSpace(v.space) }

// crashKeeps draws how much a power failure keeps of what was not fsynced.
func (v *server) crashKeeps() int {
	if v.sim.random.chance(30) {
		return store.LoseAll
	}
	return 2
}

// kill ends the process. The kernel of its machine closes its connections.
func (v *server) kill() {
	if !v.up {
		return
	}
	v.end(func(c *cord, i int) {
		if v.sim.random.chance(50) {
			c.abort(i)
		} else {
			c.close(i)
		}
	})
	v.fs.Crash(store.KeepAll)
	v.restore()
}

// powerOff ends the machine. Its connections are not closed, and what was not fsynced is
// lost.
func (v *server) powerOff() {
	v.end(func(c *cord, i int) { c.vanish(i) })
	v.on, v.syncFailed = false, false
	v.losePower()
}

// end ends the process and its connections.
func (v *server) end(hangUp func(c *cord, i int)) {
	for _, l := range v.links {
		if i, open := l.at(v); open {
			hangUp(l.cord, i)
		}
	}
	for _, o := range v.sim.servers {
		if c := v.voice(o); c.cord != nil && c.cord.ends[c.end].open {
			hangUp(c.cord, c.end)
		}
	}
	for _, c := range v.conns {
		if c.cord.ends[1].open {
			hangUp(c.cord, 1)
		}
	}
	if v.clock.slept >= 0 { // a suspended machine wakes up before it is started again
		v.clock.resume(v.sim.now)
	}
	v.up, v.paused = false, false
	v.life++
}

// pause and resume stop the process and let it go on, as signals do.
func (v *server) pause() { v.paused = v.up }

func (v *server) resume() {
	if !v.up || !v.paused {
		return
	}
	v.paused = false
	backlog := v.backlog
	v.backlog = nil
	for _, do := range backlog {
		v.arrive(do)
	}
	v.writer.next()
	v.rouse()
}

// push passes an event to the loop.
func (v *server) push(e replica.Event) {
	if v.up {
		v.inbox = append(v.inbox, e)
		v.rouse()
	}
}

// rouse schedules a batch, unless one is scheduled.
func (v *server) rouse() {
	if v.due || v.stepped || v.paused || !v.up {
		return
	}
	v.due = true
	d := v.sim.random.below(150)
	if v.sim.random.below(256) == 0 {
		d += v.sim.random.below(20 * millisecond)
	}
	v.later(d, v.batch)
}

// tick adds a tick every quarter of tickTime.
func (v *server) tick() {
	quarter := v.sim.opt.TickMS * millisecond / 4
	v.later(v.clock.when(v.clock.mono(v.sim.now)+quarter)-v.sim.now, func() {
		v.ticked = true
		v.watchDisk()
		v.rouse()
		v.tick()
	})
}

// batch begins to carry out the events that wait, or some of them. The others wait for a
// later batch. A tick comes after all events that have arrived.
func (v *server) batch() {
	v.due = false
	v.at = v.clock.time(v.sim.now)
	n := len(v.inbox)
	if n > 1 && v.sim.random.below(8) == 0 {
		if n = int(v.sim.random.between(1, int64(n))); n < len(v.inbox) {
			v.sim.reach(situationBatchCut)
		}
	}
	v.events = slices.Clone(v.inbox[:n])
	v.inbox = slices.Delete(v.inbox, 0, n)
	v.stepped = true
	v.busyAfter = v.drawBusyAfter(v.events)
	ticked := v.ticked && len(v.inbox) == 0
	if ticked {
		v.ticked = false
	}
	v.order.Begin(v.at, len(v.events), ticked)
	v.goOn()
}

// goOn carries out the steps of the batch until the batch is over or takes long. In the
// latter case it continues later.
func (v *server) goOn() {
	for v.sim.failed == nil {
		switch v.order.Next() {
		case driver.Step:
			e := v.events[v.order.Index()]
			if v.getsBusy(func() { v.step(e); v.goOn() }) {
				return
			}
			v.step(e)
		case driver.Tick:
			for _, c := range v.conns {
				if c.session != 0 {
					v.order.Hear(&c.hearing, c.session, c.timeoutMS)
				}
			}
			v.order.Tick()
		case driver.Stepped:
			if v.getsBusy(v.goOn) || v.pauses() {
				return
			}
		case driver.Log:
			v.hand(v.order.Ready.Duties)
		case driver.Send:
			v.sendOut(&v.order.Ready)
		case driver.Apply:
			for _, txn := range v.order.Ready.Committed {
				v.sim.see(check.Handed{Server: v.id, Txn: txn})
			}
			if !v.apply() {
				return
			}
		case driver.SendHeld:
			for _, m := range v.order.Held() {
				v.sendPacket(m)
			}
		case driver.Connect:
			v.connect(&v.order.Ready)
		case driver.Rest:
			v.rest()
			return
		}
	}
}

// pauses reports whether the process gets no processor now. If so, the batch continues
// later.
func (v *server) pauses() bool {
	if v.sim.random.below(64) != 0 {
		return false
	}
	left := len(v.inbox)
	v.later(v.sim.random.below(10*millisecond), func() {
		if len(v.inbox) > left {
			v.sim.reach(situationPause)
		}
		v.goOn()
	})
	return true
}

// step passes one event to the replica, together with what the driver keeps of it.
func (v *server) step(e replica.Event) {
	switch ev := e.(type) {
	case *replica.Request:
		if c := v.conn(ev.Conn); c != nil {
			c.touch(ev.Started)
		}
	case replica.Rebuilt:
		for _, c := range v.conns {
			c.ended = c.ended || c.readOnly // no client reads from two trees
		}
		v.tree = ev.Tree
		v.seen = position{zxid: -1, shown: v.seen.shown}
		v.sim.see(check.Rebuilt{Server: v.id})
	case replica.Linked:
		v.linked, v.dialling = ev.Link, false
	case replica.Zab:
		switch z := ev.Event.(type) {
		case zab.Refused:
			v.writer.journal.Reopen()
			v.endsAt(z.Zxid)
			v.sim.see(check.Undone{Server: v.id, Zxid: z.Zxid})
		case zab.Opened:
			if !v.listens {
				v.hangUp(z.Link)
			}
		}
	case replica.Disconnected:
		v.forget(ev.Conn)
	}
	v.replica.Step(v.at, e)
}

// rest ends a batch.
func (v *server) rest() {
	v.stepped = false
	v.led = v.standing.Serving
	v.lease = driver.LeaseOf(v.replica.Lease(), v.at)
	v.setAlarm()
	if len(v.inbox) > 0 || v.ticked {
		v.rouse()
	}
}

// setAlarm schedules a batch for the time at which the replica wants to be woken.
func (v *server) setAlarm() {
	if v.order.WakeAt() == replica.Never {
		return
	}
	at := max(v.clock.when(v.order.WakeAt()*millisecond), v.sim.now+1)
	if v.alarm > v.sim.now && v.alarm <= at {
		return
	}
	v.alarm = at
	v.later(at-v.sim.now, func() {
		if v.alarm == at {
			v.alarm = 0
		}
		if v.clock.mono(v.sim.now)/millisecond >= v.order.WakeAt() {
			v.rouse()
		} else if v.alarm == 0 {
			v.setAlarm()
		}
	})
}

// hand passes duties to the log writer.
func (v *server) hand(duties []replica.Duty) {
	for i := range duties {
		v.sim.see(check.Ordered{Server: v.id, Duty: &duties[i], Void: v.writer.journal.Void()})
		v.learn(&duties[i])
		v.writer.take(duties[i])
	}
}

// sendOut sends the messages that may leave before the committed transactions are applied.
func (v *server) sendOut(rd *replica.Ready) {
	for _, m := range rd.Votes {
		v.notify(m)
	}
	v.nextBeat = rd.NextBeat
	v.send(rd.Send)
}

// send sends messages to other servers, except those that the batch holds back until it is
// applied.
func (v *server) send(all []zab.Message) {
	if v.compatible {
		inZooKeeperOrder(all)
	}
	for _, m := range all {
		if !v.order.Hold(m) {
			v.sendPacket(m)
		}
	}
}

// apply carries out every effect that is due. It returns false if the batch takes long at
// this point, and the batch then continues later.
func (v *server) apply() bool {
	for {
		o, ok := v.replica.Next()
		v.observe()
		if v.sim.failed != nil || !ok {
			return v.sim.failed == nil
		}
		v.effect(&o)
		if v.getsBusy(func() {
			if v.apply() {
				v.goOn()
			}
		}) {
			return false
		}
	}
}

// connect ends links, reads old logs for learners, and listens or dials.
func (v *server) connect(rd *replica.Ready) {
	for _, id := range rd.Close {
		v.hangUp(id)
	}
	for _, q := range rd.ReadLog {
		v.readLog(q)
	}
	if v.listens && !rd.Listen {
		v.unlisten()
	}
	v.listens = rd.Listen
	v.seek(rd.Dial)
	for _, h := range rd.Happenings {
		v.happened(h)
	}
}

// readLog answers a request for old transactions from the disk, after a while.
func (v *server) readLog(q zab.ReadLog) {
	v.later(v.diskTime(), func() { v.onDisk(func() { v.answerRead(q) }) })
}

func (v *server) answerRead(q zab.ReadLog) {
	a := zab.LogRead{Link: q.Link, OK: true}
	for txn, err := range v.store.ReadLog(q.After) {
		if err != nil {
			a.OK = false
			break
		}
		if txn.Zxid > q.Through {
			break
		}
		a.Txns = append(a.Txns, txn)
	}
	v.sim.reach(situationDiskLog)
	v.push(replica.Zab{Event: a})
}
