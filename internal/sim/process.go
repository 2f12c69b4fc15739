package sim

import (
	"errors"
	"syscall"

	"bellwether/internal/driver"
	"bellwether/internal/ensemble"
	"bellwether/internal/peerwire"
	"bellwether/internal/record"
	"bellwether/internal/replica"
	"bellwether/internal/sim/check"
	"bellwether/internal/sim/machine"
	"bellwether/internal/store"
	"bellwether/internal/tree"
	"bellwether/internal/zab"
)

// start loads the disk and begins a new life.
func (v *server) start() {
	switch {
	case v.up || v.absent:
		return
	case v.members == nil: // it has no list of servers yet
		return
	case v.hung: // it cannot read its disk
		life := v.life
		v.sim.after(100*machine.Millisecond, func() {
			if v.life == life {
				v.start()
			}
		})
		return
	}
	v.On = true
	v.life++
	if v.syncFailed {
		v.syncFailed = false
		v.sim.reach(situationSyncFailed)
	}
	st, err := store.Open(v.fs, storeOptions())
	if err == nil {
		err = v.loadMembers()
	}
	if err != nil {
		v.startFailed(err)
		return
	}
	v.load(st)
}

// load loads the tree and the log from the disk, and begins the life.
func (v *server) load(st *store.Store) {
	t := newTree()
	var txns []*record.Txn
	v.logged = driver.Logged{}
	res, err := loadInto(st, t, &keepingLoader{txns: &txns, logged: &v.logged})
	if err != nil {
		v.startFailed(err)
		return
	}
	epochs, err := st.Epochs()
	if err != nil {
		v.startFailed(err)
		return
	}
	v.noteEpochs(epochs)
	if v.sim.ended() {
		return
	}
	v.fellBack(res.Notes)
	v.installed = v.installed || v.lied && v.everFuzzy // it may have fallen back to an older snapshot
	v.findHole(max(res.Snapshot, 0), txns)
	if wrong := t.Observations(); len(wrong) > 0 && !v.installed && v.hole == "" {
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
	if v.lied {
		v.undelivered, v.removals = upTo(v.undelivered, max(res.Snapshot, 0)), nil
	}
	v.begin(st, t, log, epochs)
	v.noteFallback(promiseOf(log.Last(), epochs))
	v.tryRepaired(res.Notes)
	v.recordLoaded(txns)
	v.sim.tell("server %d starts with %v, epochs %d and %d", v.id, log.Last(), epochs.Accepted, epochs.Current)
}

// begin creates the state of the process.
func (v *server) begin(st *store.Store, t *tree.Tree, log *zab.Log, epochs store.Epochs) {
	v.up, v.leaving, v.paused, v.due, v.stepped, v.ticked = true, false, false, false, false, false
	v.tree, v.log, v.store, v.saved, v.blank = t, log, st, epochs, false
	v.accepts(epochs.Accepted)
	v.inbox, v.backlog, v.links, v.conns = nil, nil, nil, nil
	v.receivedSnapshots, v.linked = map[zab.LinkID]receivedSnapshot{}, 0
	v.dialsLeader, v.listens = peerwire.NoServer, false
	v.writer = writer{v: v}
	v.electionConns = map[ensemble.ServerID]*electionConn{}
	v.alarm, v.lease, v.led, v.nextHeartbeat, v.busyAfter = 0, driver.Lease{Mono: -1}, false, replica.Never, 0
	v.standing, v.knowsFull, v.lacksTree, v.ordered = replica.Status{}, false, false, epochs.Current
	v.shutOut, v.crowded, v.standsStill = false, false, 0
	now := v.Clock.Time(v.sim.now)
	v.replica = replica.New(t, replica.Options{
		ServerID: v.id, TickMS: v.sim.opt.TickMS, SessionMaxMS: v.sessionMax(), ContainerCheckMS: 4 * v.sim.opt.TickMS, ContainersPerMinute: containersPerMinute, ExpireMax: expireMax, Yield: v.heartbeat,
		Member: &replica.Member{
			Members: v.members, Reconfig: v.sim.opt.Reconfig > 0, Logged: v.logged.All, VotersMin: 2, Log: log, Accepted: epochs.Accepted, Current: epochs.Current,
			LocalSessions: v.sim.opt.LocalSessions > 0, UpgradeLocal: true,
			Priorities: v.sim.preferences.priorities, PreferMS: v.sim.preferences.fitMS,
			Unknown: v.unknown, CompatibleOnly: v.compatible, KeepClients: v.sim.opt.KeepClients > 0, ReadOnly: v.sim.opt.ReadOnly > 0, DiskLog: true, CounterMax: v.sim.opt.CounterMax,
		},
	}, now)
	v.order = driver.NewBatch(v.replica, func(i int) bool { return driver.Refuses(v.events[i]) })
	v.seen = position{zxid: -1, shown: v.seen.shown}
	v.endsAt(log.Last())
	v.sim.see(check.Restarted{Server: v.id, Log: log.Last()})
	v.tick()
	v.scheduleBatch()
}

// expireMax is so low that sessions that expire at the same tick end in several turns.
const expireMax = 1

// containersPerMinute makes a container or TTL znode that was found unused wait for its removal for a second or more, so
// that clients may use it meanwhile, and a leader that has found several removes them one by one.
const containersPerMinute = 60

// sessionMax returns the longest session timeout that the server gives, in ms. With Options.Careless, every second
// server gives less than clients ask for.
func (v *server) sessionMax() int32 {
	o := &v.sim.opt
	if o.Careless > 0 && v.id%2 == 0 && o.SessionTicks > 3 {
		return int32(o.SessionTicks) * 3 / 4 * int32(o.TickMS)
	}
	return int32(max(o.SessionTicks, 20)) * int32(o.TickMS)
}

// startFailed handles a start that failed. If a fault of the disk is the cause, the start is
// retried. Any other cause fails the run, because no crash explains it.
func (v *server) startFailed(err error) {
	switch {
	case errors.Is(err, store.ErrCrashed):
		v.losePower()
	case v.decayed(err), v.refusesLoss(err):
	case isFull(err) || errors.Is(err, syscall.ENOSPC) || errors.Is(err, errDisk):
		v.fs.Crash(store.KeepAll)
		v.restore()
	default:
		v.sim.fail("Recovery", "%d cannot be started: %v", v.id, err)
		return
	}
	life := v.life
	v.sim.after(machine.Second, func() {
		if v.life == life {
			v.start()
		}
	})
}

// losePower loses writes that were not fsynced, or a part of them.
func (v *server) losePower() {
	before := v.fs.Lost()
	v.noteClaims()
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

// restore sets the limit of free space again, which a crash cancels.
func (v *server) restore() { v.fs.SetSpace(v.space) }

// crashKeeps draws how much a power failure keeps of what was not fsynced.
func (v *server) crashKeeps() int {
	if v.fs.Lies() && !v.liesPartly || v.sim.random.Chance(30) {
		return store.LoseAll
	}
	return 2
}

// kill ends the process. The kernel of its machine closes its connections.
func (v *server) kill() {
	if !v.up {
		return
	}
	v.end(func(c *tcpConn, i int) {
		if v.sim.random.Chance(50) {
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
	v.end(func(c *tcpConn, i int) { c.vanish(i) })
	v.On, v.syncFailed = false, false
	v.losePower()
}

// end ends the process and its connections.
func (v *server) end(hangUp func(c *tcpConn, i int)) {
	for _, l := range v.links {
		if i, open := l.at(v); open {
			hangUp(l.tcp, i)
		}
	}
	for _, o := range v.sim.servers {
		if c := v.electionConn(o); c.tcp != nil && c.tcp.ends[c.end].open {
			hangUp(c.tcp, c.end)
		}
	}
	for _, c := range v.conns {
		if c.tcp.ends[1].open {
			hangUp(c.tcp, 1)
		}
	}
	if v.Clock.Slept >= 0 { // a suspended machine wakes up before it is started again
		v.Clock.Resume(v.sim.now)
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
	v.scheduleBatch()
}
