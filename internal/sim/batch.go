package sim

import (
	"slices"

	"bellwether/internal/driver"
	"bellwether/internal/election"
	"bellwether/internal/ensemble"
	"bellwether/internal/peerwire"
	"bellwether/internal/replica"
	"bellwether/internal/sim/check"
	"bellwether/internal/sim/client"
	"bellwether/internal/sim/machine"
	"bellwether/internal/zab"
	"bellwether/wire"
)

// push passes an event to the loop.
func (v *server) push(e replica.Event) {
	if v.up {
		v.inbox = append(v.inbox, e)
		v.scheduleBatch()
	}
}

// scheduleBatch schedules a batch, unless one is scheduled.
func (v *server) scheduleBatch() {
	if v.due || v.stepped || v.paused || v.crowded || !v.up {
		return
	}
	v.due = true
	d := v.sim.random.Below(150)
	if v.sim.random.Below(256) == 0 {
		d += v.sim.random.Below(20 * machine.Millisecond)
	}
	v.later(d, v.batch)
}

// tick adds a tick every quarter of tickTime.
func (v *server) tick() {
	quarter := v.sim.opt.TickMS * machine.Millisecond / 4
	v.later(v.Clock.When(v.Clock.Mono(v.sim.now)+quarter)-v.sim.now, func() {
		v.ticked = true
		v.watchDisk()
		v.scheduleBatch()
		v.tick()
	})
}

// batch begins to carry out the events that wait, or some of them. The others wait for a
// later batch. A tick comes after all events that have arrived.
func (v *server) batch() {
	v.due = false
	if v.crowded {
		return
	}
	v.at, v.began = v.Clock.Time(v.sim.now), v.sim.now
	n := len(v.inbox)
	if n > 1 && v.sim.random.Below(8) == 0 {
		if n = int(v.sim.random.Between(1, int64(n))); n < len(v.inbox) {
			v.sim.reach(situationBatchCut)
		}
	}
	if at := v.cuts(); at > 0 {
		n = min(n, at)
	}
	v.events = slices.Clone(v.inbox[:n])
	v.inbox = slices.Delete(v.inbox, 0, n)
	v.stepped = true
	v.busyAfter = v.drawBusyAfter(v.events)
	v.shutOut = v.standing.Disabled != ""
	ticked := v.ticked && len(v.inbox) == 0
	if ticked {
		v.ticked = false
	}
	v.ticks = ticked
	v.order.Begin(v.at, len(v.events), ticked)
	v.continueBatch()
}

// continueBatch carries out the steps of the batch until the batch is over or takes long. In the
// latter case it continues later.
func (v *server) continueBatch() {
	for !v.sim.ended() {
		switch v.order.Next() {
		case driver.Step:
			e := v.events[v.order.Index()]
			if v.getsBusy(func() { v.step(e); v.continueBatch() }) {
				return
			}
			v.step(e)
		case driver.Tick:
			for _, c := range v.conns {
				if c.session != 0 {
					v.order.Hear(&c.hearing, c.session, c.timeoutMS)
				}
			}
			if v.leads() {
				v.sim.see(check.Ticked{Server: v.id, Epoch: v.standing.Epoch, Mono: v.at.Mono})
			}
			v.order.Tick()
			v.pingLate()
			v.nearExpiry()
		case driver.AllStepped:
			if v.getsBusy(v.continueBatch) || v.pauses() {
				return
			}
		case driver.Log:
			v.queueDuties(v.order.Ready.Duties)
		case driver.Send:
			v.sendOut(&v.order.Ready)
		case driver.Apply:
			for _, txn := range v.order.Ready.Committed {
				v.sim.see(check.Applies{Server: v.id, Txn: txn})
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
		case driver.BatchDone:
			v.endBatch()
			return
		}
	}
}

// pingLate makes careless clients send a ping in the moment in which their sessions expire.
func (v *server) pingLate() {
	if v.sim.opt.Careless < 0 || v.sim.calm {
		return
	}
	for _, c := range v.conns {
		if c.session != 0 && c.heard.Load() == driver.Sealed {
			v.clientsOf(c.session, (*client.Client).PingNow)
		}
	}
}

// pauses reports whether the process gets no processor now. If so, the batch continues
// later.
func (v *server) pauses() bool {
	if v.sim.random.Below(64) != 0 {
		return false
	}
	left := len(v.inbox)
	v.later(v.sim.random.Below(10*machine.Millisecond), func() {
		if len(v.inbox) > left {
			v.sim.reach(situationPause)
		}
		v.continueBatch()
	})
	return true
}

// step passes one event to the replica. Before that, it updates what the server itself keeps:
// connections, the tree, links and the log writer.
func (v *server) step(e replica.Event) {
	switch ev := e.(type) {
	case *replica.Request:
		if c := v.conn(ev.Conn); c != nil {
			c.touch(ev.Started)
		}
	case replica.Rebuilt:
		for _, c := range v.conns {
			c.ended = c.ended || c.readOnly // a read-only session ends when the tree is replaced, so that no client reads from two trees
		}
		v.tree, v.lacksTree = ev.Tree, false
		v.seen = position{zxid: -1, shown: v.seen.shown}
		v.sim.see(check.Rebuilt{Server: v.id})
	case replica.Vote:
		v.seeVote(ev.Event)
	case replica.Linked:
		v.linked = ev.Link
		v.hears(ev.Link, nil)
	case replica.Zab:
		switch z := ev.Event.(type) {
		case zab.Received:
			v.hears(z.Link, z.Packet)
		case zab.Refused:
			v.knowsFull = v.writer.full
			v.writer.journal.Reopen()
			v.endsAt(z.Zxid)
			v.sim.see(check.Undone{Server: v.id, Zxid: z.Zxid})
			v.shutOut = v.shutOut || v.replica.Status().Disabled != ""
		case zab.Installed:
			v.lacksTree = v.tree.LastZxid() < z.Zxid
		case zab.Opened:
			if !v.listens {
				v.hangUp(z.Link)
			}
		}
	case replica.Disconnected:
		v.forget(ev.Conn)
	case replica.LogFree:
		v.knowsFull, v.shutOut = false, false
	}
	v.replica.Step(v.at, e)
}

// endBatch ends a batch.
func (v *server) endBatch() {
	v.stepped = false
	v.keeps()
	v.oneConnectionEach()
	v.leavesMoved()
	v.sawSyncs()
	v.led = v.standing.Serving
	enabled := v.standing.Disabled == "" // a server whose disk has just become full does not vote, though its term has not ended yet
	s := check.Standing{Server: v.id, Members: v.members, Mono: v.at.Mono, Looks: v.standing.Role == peerwire.Looking && enabled, Dials: v.dialsLeader != peerwire.NoServer, Serves: v.led && enabled, Ticked: v.ticks}
	if v.leads() {
		s.Leads, s.Linked = v.standing.Epoch, v.quorumLinked()
	}
	v.sim.see(s)
	v.lease = driver.LeaseOf(v.replica.Lease(), v.at)
	v.setAlarm()
	if len(v.inbox) > 0 || v.ticked {
		v.scheduleBatch()
	}
}

// quorumLinked reports whether a quorum consists of this server and of servers that have a link to it.
func (v *server) quorumLinked() bool {
	has := func(id ensemble.ServerID) bool {
		return id == v.id || slices.ContainsFunc(v.links, func(l *link) bool {
			i, open := l.at(v)
			return open && i == 1 && l.ends[0].id == id
		})
	}
	return check.HasQuorum(v.members, has) && (v.proposed == nil || check.HasQuorum(v.proposed, has))
}

// keeps reports the connections that the server has kept over a change of leaders.
func (v *server) keeps() {
	for _, c := range v.conns {
		if c.from != 0 && !c.ended {
			v.sim.see(check.Kept{Server: v.id, From: c.from, To: v.standing.Epoch, Session: c.session})
		}
		c.from = 0
	}
}

// oneConnectionEach checks that no session has two connections to the server.
func (v *server) oneConnectionEach() {
	for i, c := range v.conns {
		for _, o := range v.conns[:i] {
			if c.session != 0 && c.session == o.session && !c.ended && !o.ended && c.readOnly == o.readOnly {
				v.sim.fail("Sessions", "server %d serves two connections of session %v", v.id, c.session)
				return
			}
		}
	}
}

// attachment says where and when a session was given to a connection last.
type attachment struct {
	server *server
	conn   replica.ConnID
	zxid   wire.Zxid // the last transaction that the server had applied
}

// leavesMoved checks that the server has closed the connections of sessions that have moved to other servers, as
// soon as it has applied the moves.
func (v *server) leavesMoved() {
	s := v.sim
	if s.opt.Compatible > 0 || s.opt.LocalSessions > 0 {
		return // a move under a leader of ZooKeeper, and one of a local session, is no transaction
	}
	for _, c := range v.conns {
		now, known := s.attachments[c.session]
		if known && now.server != v && !c.ended && !c.readOnly && v.replica.Applied() >= now.zxid {
			s.fail("Sessions", "server %d keeps a connection of session %v, which has moved to server %d at %v", v.id, c.session, now.server.id, now.zxid)
			return
		}
	}
}

// setAlarm schedules a batch for the time at which the replica wants to be woken.
func (v *server) setAlarm() {
	if v.order.WakeAt() == replica.Never {
		return
	}
	at := max(v.Clock.When(v.order.WakeAt()*machine.Millisecond), v.sim.now+1)
	if v.alarm > v.sim.now && v.alarm <= at {
		return
	}
	v.alarm = at
	v.later(at-v.sim.now, func() {
		if v.alarm == at {
			v.alarm = 0
		}
		if v.Clock.Mono(v.sim.now)/machine.Millisecond >= v.order.WakeAt() {
			v.scheduleBatch()
		} else if v.alarm == 0 {
			v.setAlarm()
		}
	})
}

// queueDuties passes duties to the log writer.
func (v *server) queueDuties(duties []replica.Duty) {
	for i := range duties {
		v.sim.see(check.Ordered{Server: v.id, Duty: &duties[i], Void: v.writer.journal.Void()})
		v.recordDuty(&duties[i])
		v.endsOrdered(&duties[i])
		v.ordered = max(v.ordered, duties[i].SaveCurrent)
		v.writer.take(duties[i])
	}
}

// sendOut sends the messages that may leave before the committed transactions are applied.
func (v *server) sendOut(rd *replica.Ready) {
	for _, m := range rd.Votes {
		v.notify(m)
	}
	v.nextHeartbeat = rd.NextHeartbeat
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
		if v.sim.ended() || !ok {
			return !v.sim.ended()
		}
		v.effect(&o)
		if v.getsBusy(func() {
			if v.apply() {
				v.continueBatch()
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
	v.counts(rd.Members)
	v.listens = rd.Listen
	v.dialLeader(rd.Dial)
	for _, h := range rd.Observations {
		v.recordObservation(h)
	}
	if rd.Stop != "" {
		v.sim.fail("EqualDigest", "%d stops: %s", v.id, rd.Stop)
	}
	if len(rd.Observations) > 0 || len(rd.Votes) > 0 {
		v.sim.see(check.Electing{Server: v.id, Reports: rd.Observations, Votes: rd.Votes, Batch: v.began, Mono: v.at.Mono, Log: v.log.Last(),
			Wiped: v.unknown && !v.has && v.ordered == 0, Full: v.knowsFull, Disabled: v.replica.Status().Disabled != "", ShutOut: v.shutOut})
	}
}

// seeVote shows the checkers what a server hears of others in an election.
func (v *server) seeVote(e election.Event) {
	switch e := e.(type) {
	case election.Heard:
		v.sim.see(check.VoteHeard{Server: v.id, From: e.From, Notification: &e.Notification, First: e.First, Serves: v.standing.Serving, Batch: v.began})
	case election.Down:
		v.sim.see(check.VoterDown{Server: v.id, Peer: e.Server, Batch: v.began})
	}
}

// readLog answers a request for old transactions from the disk, after a while.
func (v *server) readLog(q zab.ReadLog) {
	v.later(v.diskTime(), func() { v.whenDiskAnswers(func() { v.answerRead(q) }) })
}

func (v *server) answerRead(q zab.ReadLog) {
	a := zab.LogRead{Link: q.Link, OK: true}
	for txn, err := range v.store.ReadLog(q.After) {
		if err != nil {
			a.OK = false
			if v.rotten {
				v.sim.reach(situationRotNotSent)
			}
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
