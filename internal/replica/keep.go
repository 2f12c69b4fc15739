package replica

import (
	"bellwether/internal/fifo"
	"bellwether/internal/peerwire"
	"bellwether/internal/zab"
	"bellwether/wire"
)

// Client connections can outlive a change of leaders. While there is none a
// server holds what its clients ask, for a third of their timeout at most, and
// for stalledHoldMS at most while its disk does not answer.
// Then the fate of each write in flight is known:
//
//   - its transaction is in the history of the new leader. It is answered when
//     that is applied here, before this server serves: a connection's requests
//     are matched in order, as ever.
//   - it is not in that history, so it never will be: the epoch in which it
//     was asked for is over, and with it every link on which it could still
//     be under way. It is asked for again.
//
// That holds for a history that goes on from one leader of our kind to the
// next: the mark of attach.go has closed, on every server, the connections
// that their client has left for another, so that nothing old is asked for
// behind what a client's newest connection did. Where another kind of leader
// was or may have been in between, or the tree was made anew, all are closed.

// keep reports whether a connection outlives the end of a term.
func (r *Replica) keep(c *conn) bool {
	m := r.member
	switch {
	case !m.opt.KeepClients, m.resting != "": // without room for the log it is not to be waited for
		return false
	case m.serving && !m.ours():
		return false
	case m.serving:
		c.since = m.heard()
	}
	return true
}

// heard is when a leader was last heard, or was last certain to be one.
func (m *member) heard() int64 {
	if m.learner != nil {
		return m.learner.Heard()
	}
	return m.leader.Heard()
}

// closeAll ends all connections with a session.
func (r *Replica) closeAll() {
	for _, c := range r.connections() {
		if c.session != 0 {
			r.end(c)
		}
	}
}

// resumeKept goes on with the connections that were kept since an epoch.
func (r *Replica) resumeKept(before wire.Epoch) {
	m := r.member
	again := m.epoch == before+1
	for _, c := range r.connections() {
		switch {
		case c.session == 0:
		case !m.ours(), !again && (m.epoch != before || c.inFlight()):
			r.end(c)
		default:
			r.askAgain(c)
		}
	}
	pings := m.pings
	m.pings = fifo.Queue[heldPing]{}
	for pings.Len() > 0 {
		if p := pings.Pop(); !p.conn.gone {
			r.ping(p.conn, p.q)
		}
	}
}

// inFlight reports whether the leader was asked for something of which it is
// not known what has become.
func (c *conn) inFlight() bool {
	for i := range c.waiting.Len() {
		if z := (*c.waiting.At(i)).zxid; z > 0 || z == forwarded {
			return true
		}
	}
	return false
}

// askAgain puts everything that waits on a connection to the new leader.
func (r *Replica) askAgain(c *conn) {
	switch {
	case r.locals.knows(c.session):
	case r.decides():
		r.keeps(c.session, r.opt.ServerID)
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
	r.proceed(c)
}
