package replica

import (
	"bellwether/internal/peerwire"
	"bellwether/wire"
)

// A server without a quorum can answer the reads of clients that say that
// they accept such a server (Connect.ReadOnly), as ZooKeeper's read-only mode
// does: where the operator wants it, once there has been no leader for a
// while, and always where the disk is full, from when the server has left the
// quorum. A standalone server answers them while its disk is full (full.go).
// Their sessions live on this server alone (local.go) and end with that time:
// when a leader is decided on, or the disk has room, their connections are
// closed.
//
// They read the tree as clients last saw it. What a start, a truncation or a
// snapshot of a leader has put into the tree may not be committed; until the
// server has served in a term with it, it is not shown, unless the operator
// asks for that (Member.ReadUncommitted).
type readOnly struct {
	serves bool
	since  int64 // Mono since which it looks for a leader
	shown  bool  // it has served in a term: the tree is committed
	// first is the first of the ids given out in this time of service.
	first wire.SessionID
}

// readOnlyGraceMin is the least time without a leader, in ms, after which
// reads are answered; a tick if that is longer. As ZooKeeper.
const readOnlyGraceMin = 2000

// ReadOnlyBegan: clients are served that can do with a server without a quorum.
type ReadOnlyBegan struct{ Zxid wire.Zxid }

func (h ReadOnlyBegan) String() string {
	return "Read-only server started: without a quorum, clients that accept that read the state of " + h.Zxid.String()
}

// ReadOnlyEnded: no client is served any more without a quorum.
type ReadOnlyEnded struct{}

func (ReadOnlyEnded) String() string { return "Read-only server ended" }

// ReadOnlyRefuses reports whether a request is answered with NotReadOnly on a
// session of a server without a quorum.
func ReadOnlyRefuses(op wire.OpCode) bool {
	return op.IsWrite() || op == wire.OpSync || op == wire.OpCheck || op == wire.OpDeleteContainer
}

// readOnlyAt is the Mono time from which reads are answered; Never: they are
// not, or already.
func (r *Replica) readOnlyAt() int64 {
	m := r.member
	switch {
	case m.role != peerwire.Looking || !m.readers.shown && !(m.opt.ReadOnly && m.opt.ReadUncommitted) || m.log.Fresh():
		return Never
	case m.resting != "":
		return 0
	case m.opt.ReadOnly:
		return m.readers.since + max(readOnlyGraceMin, r.opt.TickMS)
	}
	return Never
}

// readOnlyWake is when reviseReadOnly is due.
func (r *Replica) readOnlyWake() int64 {
	if r.member.readers.serves {
		return Never
	}
	return r.readOnlyAt()
}

// reviseReadOnly begins or ends to serve without a quorum. What it puts out
// comes before the effects of anything that is committed later.
func (r *Replica) reviseReadOnly() {
	a := &r.member.readers
	switch due := r.now.Mono >= r.readOnlyAt(); {
	case due && !a.serves:
		a.serves, a.first = true, r.nextID
		r.happened(ReadOnlyBegan{r.tree.LastZxid()})
		r.admitReaders()
	case !due && a.serves:
		a.serves = false
		r.happened(ReadOnlyEnded{})
		r.endReaders()
	}
}

// endReaders ends the sessions that were made without a quorum or without
// room for writes, and their connections.
func (r *Replica) endReaders() {
	for _, c := range r.connections() {
		if c.readOnly {
			r.end(c)
		}
	}
	r.locals.endReaders()
}

// endReaders forgets the sessions that were made without a quorum.
func (l *locals) endReaders() {
	for id, s := range l.open {
		if s.readOnly {
			l.remove(id)
		}
	}
}

// admitReaders lets in who has waited for a leader and can do without. The
// others go on waiting, unless the disk is full: then they have to go elsewhere.
func (r *Replica) admitReaders() {
	m := r.member
	held := m.held
	m.held = nil
	for _, c := range held {
		switch {
		case c.gone:
		case m.resting != "", c.ask.ReadOnly && c.ask.Session == 0:
			r.admitReader(c)
		default:
			m.held = append(m.held, c)
		}
	}
}

// admitReader opens a session, or takes up one that lives on this server
// alone. Of any other session nothing is known here: its client is sent elsewhere.
func (r *Replica) admitReader(c *conn) {
	e := &c.ask
	switch {
	case !e.ReadOnly:
		r.end(c)
	case r.behind(c):
	case e.Session == 0:
		c.readOnly = true
		r.openLocal(c)
		r.locals.open[c.session].readOnly = true
	case r.locals.has(e.Session):
		if reason := r.refusal(e); reason != "" {
			r.refuse(c, reason)
			return
		}
		c.readOnly = true
		r.attach(c, e.Session)
	case e.Session >= r.member.readers.first && e.Session < r.nextID:
		r.refuse(c, "probably expired")
	default:
		r.end(c)
	}
}

// readRequest answers a request on a session of this server alone.
func (r *Replica) readRequest(c *conn, q *Request) {
	switch {
	case q.Op == wire.OpCloseSession:
		r.outputs.Push(Output{Kind: Reply, Conn: c.id, Request: q,
			Header: wire.ReplyHeader{Xid: q.Xid, Zxid: r.tree.LastZxid()}})
		r.closeLocal(c.session)
		return
	case q.verdict == wire.OK && ReadOnlyRefuses(q.Op):
		q.verdict = wire.ErrNotReadOnly
	}
	r.answerNow(c, q)
}
