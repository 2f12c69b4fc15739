package replica

import (
	"bellwether/internal/fifo"
	"bellwether/internal/peerwire"
	"bellwether/internal/zab"
	"bellwether/wire"
)

// Client connections can survive a change of leaders. While there is no leader, a server
// holds the requests of its clients for at most a third of their timeout, or less
// if it may not get one soon (holdBy). When there is a leader again, each write
// in flight is in one of two states:
//
//   - Its transaction is in the history of the new leader. The write is answered when
//     this server applies the transaction, before it serves clients: requests of a
//     connection are matched in order, as always.
//   - Its transaction is not in that history, and never will be: the epoch in which the
//     request was sent is over, and so is every link on which the request could still be
//     on its way. This server sends it again.
//
// This holds if the history goes from one native leader directly to the next. The
// session-move transaction (attach.go) has closed, on every server, the connections that
// clients have left, so that no old request is sent again after requests of the client's
// newest connection. If a compatible leader was or may have been in between, or the tree
// was rebuilt, all connections are closed.

// keep reports whether a connection is kept when the term ends.
func (r *Replica) keep(c *conn) bool {
	m := r.member
	switch {
	case !m.opt.KeepClients, m.disabled != "": // without space for the log, the server cannot join a leader soon
		return false
	case m.serving && !m.native():
		return false
	case m.serving:
		c.since = m.heard()
	}
	return true
}

// heard returns the Mono time at which the leader was last heard, or, on the leader, at
// which it was last known to lead.
func (m *member) heard() int64 {
	if m.learner != nil {
		return m.learner.Heard()
	}
	return m.leader.Heard()
}

// closeAll closes all connections that have a session.
func (r *Replica) closeAll() {
	for _, c := range r.connections() {
		if c.session != 0 {
			r.end(c)
		}
	}
}

// resumeKept serves the kept connections again. before is the epoch in which this server
// served last.
func (r *Replica) resumeKept(before wire.Epoch) {
	m := r.member
	again := m.epoch == before+1
	for _, c := range r.connections() {
		switch {
		case c.session == 0:
		case !m.native(), !again && (m.epoch != before || c.inFlight()):
			r.end(c)
		default:
			r.askAgain(c)
		}
	}
	pings := m.pings
	m.pings = fifo.Queue[heldPing]{}
	for pings.Len() > 0 {
		if p := pings.Pop(); !p.conn.ended {
			r.ping(p.conn, p.q)
		}
	}
}

// inFlight reports whether a request of the connection was proposed or forwarded and has
// no answer yet.
func (c *conn) inFlight() bool {
	for i := range c.waiting.Len() {
		if z := (*c.waiting.At(i)).zxid; z > 0 || z == forwarded {
			return true
		}
	}
	return false
}

// askAgain sends everything that waits on a connection to the new leader.
func (r *Replica) askAgain(c *conn) {
	switch {
	case r.locals.knows(c.session):
	case r.decides():
		r.setServerOf(c.session, r.opt.ServerID)
	default:
		told := []peerwire.TouchedSession{{Session: c.session, TimeoutMS: c.timeout}}
		r.member.learner.Step(r.now.Mono, zab.Touched{Sessions: told, Token: r.member.touch})
	}
	syncing := false
	for i := range c.waiting.Len() {
		q := *c.waiting.At(i)
		q.zxid, q.token = 0, 0
		if q.verdict == wire.OK {
			r.begin(c, q, syncing)
			syncing = syncing || q.token != 0
		}
	}
	r.answerOldest(c)
}
