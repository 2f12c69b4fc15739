package replica

import (
	"bellwether/internal/tree"
	"bellwether/wire"
)

// A server without a quorum can answer the reads of clients that say that
// they take such a server (Connect.ReadOnly), as ZooKeeper's read-only mode
// does: where the operator wants it, once there has been no leader for a
// while, and always where the disk is full, from when the server has left the
// quorum. Their sessions live on this server alone and end with that time:
// when a leader is decided on all of them are closed, and begin anew with it.
//
// They read the tree as clients last saw it. What a start, a truncation or a
// snapshot of a leader has put into the tree may not be committed; until the
// server has served in a term with it, it is not shown.
type readOnly struct {
	serves bool
	since  int64 // Mono since which it looks for a leader
	shown  bool  // it has served in a term: the tree is committed
	// first is the first of the ids given out in this time of service.
	first    wire.SessionID
	sessions map[wire.SessionID]int32 // their timeouts
	expiry   *tree.Expiry
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
	case m.role != wire.Looking || !m.readers.shown || m.log.Fresh():
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
		a.sessions, a.expiry = map[wire.SessionID]int32{}, tree.NewExpiry(r.opt.TickMS)
		r.happened(ReadOnlyBegan{r.tree.LastZxid()})
		r.admitReaders()
	case !due && a.serves:
		a.serves = false
		r.happened(ReadOnlyEnded{})
		for _, c := range r.connections() {
			if c.readOnly {
				r.end(c)
			}
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

// admitReader opens a session, or takes up one of this time of service. Of any
// other session nothing is known here: its client is sent elsewhere.
func (r *Replica) admitReader(c *conn) {
	a, e := &r.member.readers, &c.ask
	timeout, known := a.sessions[e.Session]
	switch {
	case !e.ReadOnly:
		r.end(c)
	case r.behind(c):
	case e.Session == 0:
		id := r.newID()
		a.sessions[id] = c.timeout
		a.expiry.Add(id, c.timeout, r.now.Mono)
		r.attachReader(c, id)
	case !known && (e.Session < a.first || e.Session >= r.nextID):
		r.end(c)
	case !known:
		r.refuse(c, "probably expired")
	case r.refusal(e) != "":
		r.refuse(c, r.refusal(e))
	default:
		if timeout != c.timeout {
			a.sessions[e.Session] = c.timeout
		}
		a.expiry.Add(e.Session, c.timeout, r.now.Mono)
		r.attachReader(c, e.Session)
	}
}

// attachReader makes c the connection of a session of this server alone.
func (r *Replica) attachReader(c *conn, id wire.SessionID) {
	c.readOnly = true
	r.attach(c, id)
}

// readRequest answers a request on a session of this server alone.
func (r *Replica) readRequest(c *conn, q *Request) {
	switch {
	case q.Op == wire.OpCloseSession:
		r.outputs.push(Output{Kind: Reply, Conn: c.id, Request: q,
			Header: wire.ReplyHeader{Xid: q.Xid, Zxid: r.tree.LastZxid()}})
		r.forgetReader(c.session)
		return
	case q.verdict == wire.OK && ReadOnlyRefuses(q.Op):
		q.verdict = wire.ErrNotReadOnly
	}
	r.answerNow(c, q)
}

// forgetReader ends a session of this server alone.
func (r *Replica) forgetReader(id wire.SessionID) {
	a := &r.member.readers
	delete(a.sessions, id)
	a.expiry.Remove(id)
	if c := r.owners[id]; c != nil {
		r.end(c)
	}
}

// touchReaders takes which sessions were heard from.
func (r *Replica) touchReaders(sessions []Touch) {
	for _, t := range sessions {
		r.member.readers.expiry.Touch(t.Session, t.Mono)
	}
}

// expireReaders ends the sessions of this server alone that were not heard from.
func (r *Replica) expireReaders() {
	if r.now.Mono < r.grace {
		return
	}
	for _, id := range r.member.readers.expiry.Due(r.now.Mono) {
		r.happened(SessionExpired{id, r.member.readers.sessions[id]})
		r.forgetReader(id)
	}
}
