package replica

import (
	"bellwether/internal/tree"
	"bellwether/wire"
)

// A session that lives on one server alone owns no ephemerals, since nobody
// else could delete them when it ends. Before it asks for one it becomes
// everybody's: a createSession with its id and timeout goes to the leader in
// front of the request, on the same way. From there on the history alone says
// what it is:
//
//   - the createSession is applied here: it is like any other.
//   - a term begins here, and it is not in the history before that: it will
//     never be (keep.go). The session lives here alone as before, with its
//     full timeout, and a request that was kept for it begins anew.
//   - the tree was made anew from a snapshot, where it may have come and gone:
//     this server forgets it. If it is in the snapshot it lives.

// upgrade makes a session everybody's where its request needs that; the code
// says that it may not. Which operation of a multi is to blame for that the
// leader says.
func (r *Replica) upgrade(c *conn, q *Request) wire.Code {
	if !r.locals.has(c.session) || !tree.CreatesEphemeral(q.Op, q.Body) {
		return wire.OK
	}
	switch {
	case r.member.opt.UpgradeLocal:
		r.locals.leave(c.session)
		return r.proposeSession(c.session, c.timeout)
	case q.Op == wire.OpMulti:
		return wire.OK
	}
	return wire.ErrEphemeralOnLocalSession
}

// leave notes that a session is on its way to become everybody's.
func (l *locals) leave(id wire.SessionID) {
	l.open[id].leaving = true
	l.expiry.Remove(id)
}

// stay gives each session its full timeout from now on, also those that were
// on their way when a term ended, unless the history has them.
func (l *locals) stay(now int64) {
	for id, s := range l.open {
		l.put(id, s.timeoutMS, now)
	}
}

// lose forgets the sessions of which it is not known whether they are
// everybody's by now.
func (l *locals) lose() {
	for id, s := range l.open {
		if s.leaving {
			l.remove(id)
		}
	}
}

// elsewhere reports, on the leader, whether a session that it does not know
// may live on another server alone: its id was not made here, and it has not
// ended of late for everybody, in which case its server may not know yet.
func (r *Replica) elsewhere(id wire.SessionID) bool {
	return r.member.opt.LocalSessions && !r.ending[id] && !r.member.gone.has(id) &&
		uint8(id>>56) != uint8(r.opt.ServerID)
}

// gone are the sessions that have ended for everybody of late, in two ages.
// A learner hears of each end before both have passed, or is cut off.
type gone struct {
	young, old map[wire.SessionID]struct{}
	turn       int64 // Mono at which the young grow old
}

func (g *gone) has(id wire.SessionID) bool {
	_, young := g.young[id]
	_, old := g.old[id]
	return young || old
}

func (g *gone) add(id wire.SessionID) {
	if g.young == nil {
		g.young = map[wire.SessionID]struct{}{}
	}
	g.young[id] = struct{}{}
}

// age lets time pass: ages are as long as a learner can lag behind.
func (g *gone) age(now, lagMax int64) {
	if now >= g.turn {
		g.young, g.old, g.turn = nil, g.young, now+lagMax
	}
}
