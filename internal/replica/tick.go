package replica

import (
	"fmt"

	"bellwether/internal/tree"
	"bellwether/wire"
)

// TickLate says that the process did not run for a while, or that the machine was
// suspended.
type TickLate struct{ GapMS int64 }

func (h TickLate) String() string {
	return fmt.Sprintf("this server did not run for %dms; sessions get one more tick before they expire", h.GapMS)
}

// lateTicks is the number of ticks that may pass between two Tick events. After a longer
// gap nothing expires for one tick, so that packets that clients sent meanwhile can be
// read first.
const lateTicks = 2

// tick does the work that is due because time has passed.
func (r *Replica) tick() {
	gap, late := r.now.Mono-r.lastTick, r.stoodStill()
	r.lastTick = r.now.Mono
	if r.member != nil {
		r.health.ticked(r.now.Mono, gap, r.opt.TickMS)
		r.wake()
		r.yield()
		r.giveWay()
		r.prefer()
		r.compare()
		r.tellFitness()
		r.tellTree()
		r.askLeader()
		r.zabReady() // first take the touches that arrived before this tick
	}
	if late {
		r.observe(TickLate{gap})
		r.grace = r.now.Mono + r.opt.TickMS
		r.spare()
		return
	}
	if r.now.Mono >= r.grace {
		r.expireLocals()
	}
	if r.member != nil && r.member.leader != nil {
		r.member.endedSessions.age(r.now.Mono, r.member.leader.LagMax())
	}
	if !r.logsEnds() {
		return
	}
	if r.now.Mono >= r.grace {
		r.doom(r.expiry.Due(r.now.Mono))
	}
	r.sweepContainers(gap)
}

// logsEnds reports whether closeSession can be logged. Otherwise nothing expires.
func (r *Replica) logsEnds() bool {
	return r.decides() && !r.transferring() && (r.alone == nil || !r.alone.full)
}

// expirePauseMS is the longest time from when some sessions end until the next ones do, in ms, however slow the disk is.
const expirePauseMS = 10

// doom lets sessions expire. Ready proposes their ends, some at a time. A session that is heard from before its end is proposed lives on.
func (r *Replica) doom(due []tree.Overdue) {
	for _, d := range due {
		if _, ok := r.tree.Session(d.Session); ok {
			r.doomed[d.Session] = d
			r.turns.Push(d.Session)
		}
	}
}

// hear notes that the client of a session is heard from now. Only a server that decides may call it.
func (r *Replica) hear(id wire.SessionID) {
	if d, ok := r.doomed[id]; ok {
		delete(r.doomed, id)
		r.restart(d)
		return
	}
	r.expiry.Touch(id, r.now.Mono)
}

// overdue reports whether Ready has to propose the ends of expired sessions.
func (r *Replica) overdue() bool {
	return len(r.doomed) > 0 && r.logsEnds() && (r.Applied() >= r.expired || r.now.Mono >= r.expireAt)
}

// expiryWake returns the Mono time at which overdue sessions end at the latest, or Never.
func (r *Replica) expiryWake() int64 {
	if len(r.doomed) == 0 || !r.logsEnds() {
		return Never
	}
	return r.expireAt
}

// stoodStill reports whether more than lateTicks ticks have passed since the last Tick.
func (r *Replica) stoodStill() bool { return r.now.Mono-r.lastTick > lateTicks*r.opt.TickMS }

// spare takes back the expiry of the sessions whose ends are not proposed: their clients may have been heard from since, or nothing
// can be logged. Each starts again with its full timeout.
func (r *Replica) spare() {
	for r.turns.Len() > 0 {
		if id := r.turns.Pop(); r.isDoomed(id) {
			r.hear(id)
		}
	}
}

// isDoomed reports whether a session has expired and its end is not proposed.
func (r *Replica) isDoomed(id wire.SessionID) bool {
	_, ok := r.doomed[id]
	return ok
}

// revive lets a session live on whose end is not logged.
func (r *Replica) revive(id wire.SessionID) {
	delete(r.ending, id)
	if created, ok := r.tree.Session(id); ok {
		r.restart(tree.Overdue{Session: id, TimeoutMS: created, Assumed: true})
	}
}

// restart starts the timeout of a session: that of its connection to this server. If it has none, the given timeout.
func (r *Replica) restart(d tree.Overdue) {
	switch c := r.owners[d.Session]; {
	case c != nil:
		r.expiry.Add(d.Session, c.timeout, r.now.Mono)
	case d.Assumed:
		r.expiry.Assume(d.Session, d.TimeoutMS, r.now.Mono)
	default:
		r.expiry.Add(d.Session, d.TimeoutMS, r.now.Mono)
	}
}

// expire proposes to close the next expired sessions. First it takes the reports of learners that have arrived: Zab may have confirmed them.
func (r *Replica) expire() {
	if r.member != nil {
		r.zabReady()
	}
	for n := r.opt.ExpireMax; n > 0 && r.turns.Len() > 0 && r.logsEnds(); {
		if d, ok := r.doomed[r.turns.Pop()]; ok {
			r.proposeEnd(d)
			n--
		}
	}
}

// proposeEnd proposes to close a session that has expired.
func (r *Replica) proposeEnd(d tree.Overdue) {
	delete(r.doomed, d.Session)
	if _, ok := r.tree.Session(d.Session); !ok {
		return // its client has closed it
	}
	txn, _ := r.propose(tree.Request{Session: d.Session, Op: wire.OpCloseSession})
	if txn == nil { // the term is about to end
		r.restart(d)
		return
	}
	r.ending[d.Session] = true
	r.observe(SessionExpired{d.Session, d.TimeoutMS})
	r.expired, r.expireAt = txn.Zxid, r.now.Mono+expirePauseMS
}

// expireNow expires a session before its deadline.
func (r *Replica) expireNow(id wire.SessionID) {
	if r.locals.has(id) {
		r.observe(SessionExpired{id, r.locals.open[id].timeoutMS})
		r.closeLocal(id)
		return
	}
	if r.logsEnds() && r.isOpen(id) {
		r.hear(id)
		timeout, assumed := r.expiry.Timeout(id)
		r.expiry.Remove(id)
		r.proposeEnd(tree.Overdue{Session: id, TimeoutMS: timeout, Assumed: assumed})
	}
}

// sweep is the state of the search for containers and TTL znodes and of their deletion.
type sweep struct {
	next  int64    // Mono time of the next search of the tree
	due   []string // paths that were found and are not proposed yet
	owing int64    // unused allowance, in ms times the rate
}

// sweepContainers proposes to delete the containers and TTL znodes that are due, at no
// more than the configured rate.
func (r *Replica) sweepContainers(gapMS int64) {
	s := &r.sweep
	if len(s.due) == 0 {
		s.owing = 0
		if r.now.Mono < s.next {
			return
		}
		s.next = r.now.Mono + r.opt.ContainerCheckMS
		s.due = r.tree.DueContainers(r.now.Wall)
	}
	s.owing += gapMS * r.opt.ContainersPerMinute
	n := min(s.owing/60_000, int64(len(s.due)))
	s.owing -= n * 60_000
	for _, p := range s.due[:n] {
		path := wire.PathRequest{Path: p}
		r.propose(tree.Request{Op: wire.OpDeleteContainer, Body: wire.Append(nil, &path)})
	}
	s.due = s.due[n:]
}
