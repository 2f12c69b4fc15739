package replica

import (
	"bellwether/internal/tree"
	"bellwether/wire"
)

// A local session owns no ephemerals, because no other server could delete them when the
// session ends. Before it creates one it becomes a global session: this server sends the
// leader a createSession with the session's id and timeout, before the request and over
// the same link. From then on only the history tells what the session is:
//
//   - The createSession is applied here: the session is global.
//   - A term starts here and the history up to that point does not contain the
//     createSession: it never will (keep.go). The session stays local and gets its full
//     timeout. Its waiting requests are sent again.
//   - The tree is rebuilt from a snapshot. The session may have become global and ended
//     before that snapshot. This server forgets it; if the snapshot contains it, it is
//     global.

// upgrade makes a local session global if the request needs that. It returns the error
// code if the session may not be upgraded. For a multi the leader finds the operation
// that causes the error.
func (r *Replica) upgrade(c *conn, q *Request) wire.Code {
	if !r.locals.has(c.session) {
		return wire.OK
	}
	mayUpgrade := r.member.opt.UpgradeLocal
	switch {
	case !mayUpgrade && q.Op == wire.OpMulti: // not decoded here: the leader does that
		return wire.OK
	case q.Op == wire.OpMulti && !tree.MultiCreatesEphemeral(q.decodedMulti()),
		q.Op != wire.OpMulti && !tree.CreatesEphemeral(q.Op, q.Body):
		return wire.OK
	case !mayUpgrade:
		return wire.ErrEphemeralOnLocalSession
	}
	r.locals.startUpgrade(c.session)
	return r.proposeSession(c.session, c.timeout)
}

// startUpgrade records that the createSession of a local session is on its way to the leader.
func (l *locals) startUpgrade(id wire.SessionID) {
	l.open[id].upgrading = true
	l.expiry.Remove(id)
}

// renew gives each local session its full timeout from now on, including those whose
// upgrade was lost.
func (l *locals) renew(now int64) {
	for id, s := range l.open {
		l.put(id, s.timeoutMS, now)
	}
}

// dropUpgrading removes the sessions that may have become global.
func (l *locals) dropUpgrading() {
	for id, s := range l.open {
		if s.upgrading {
			l.remove(id)
		}
	}
}

// localElsewhere reports, on the leader, whether a session that it does not know may be a
// local session of another server: another server made its id, and it is not a global
// session that ended recently. A learner may still forward requests of a global session
// that has ended, because it does not know of the end yet.
func (r *Replica) localElsewhere(id wire.SessionID) bool {
	return r.member.opt.LocalSessions && !r.ending[id] && !r.member.endedSessions.has(id) &&
		uint8(id>>56) != uint8(r.opt.ServerID)
}

// endedSessions holds the global sessions that ended recently, in two generations. A session is
// kept for at least as long as a learner may lag behind, so every learner hears of the
// end before the session is dropped here, or is disconnected.
type endedSessions struct {
	young, old map[wire.SessionID]struct{}
	turn       int64 // Mono time at which the sessions in young move to old
}

func (g *endedSessions) has(id wire.SessionID) bool {
	_, young := g.young[id]
	_, old := g.old[id]
	return young || old
}

func (g *endedSessions) add(id wire.SessionID) {
	if g.young == nil {
		g.young = map[wire.SessionID]struct{}{}
	}
	g.young[id] = struct{}{}
}

// age drops the old generation if it is time. A generation lasts as long as a learner may
// lag behind (lagMax).
func (g *endedSessions) age(now, lagMax int64) {
	if now >= g.turn {
		g.young, g.old, g.turn = nil, g.young, now+lagMax
	}
}
