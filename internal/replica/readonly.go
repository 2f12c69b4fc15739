package replica

import (
	"bellwether/internal/peerwire"
	"bellwether/wire"
)

// readOnly is the state of read-only service: a server without a quorum can answer the
// reads of clients that accept such a server (Connect.ReadOnly), as in ZooKeeper's
// read-only mode. If the operator has enabled it, the service starts when there has been
// no leader for a while. It also starts when the disk is full and the server has left the
// quorum. A standalone server serves reads in the same way while its disk is full
// (full.go).
//
// The sessions of these clients are local (local.go). They end, and their connections are
// closed, when a leader is decided on or the disk has space again.
//
// Clients read the tree as clients last saw it. The transactions that a start, a
// truncation or a leader's snapshot has put into the tree may not be committed. The
// server does not show such a tree before it has served in a term with it, unless the
// operator has set Member.ReadUncommitted. The same holds for a tree that a full disk has taken
// back to a leader's snapshot, which has effects of transactions that are missing now.
type readOnly struct {
	serves bool
	since  int64 // Mono time since which it looks for a leader
	shown  bool  // the server has served in a term, so the tree is committed
	// first is the first session id that was assigned since the service started.
	first wire.SessionID
}

// readOnlyGraceMin is the time without a leader after which read-only service starts, in
// ms; one tick if that is longer. ZooKeeper uses the same time.
const readOnlyGraceMin = 2000

// ReadOnlyBegan says that read-only service has started.
type ReadOnlyBegan struct{ Zxid wire.Zxid }

func (h ReadOnlyBegan) String() string {
	return "Read-only server started: clients that accept a read-only server read the state of " + h.Zxid.String()
}

// ReadOnlyEnded says that read-only service has ended.
type ReadOnlyEnded struct{}

func (ReadOnlyEnded) String() string { return "Read-only server ended" }

// ReadOnlyRefuses reports whether a read-only server answers a request with
// ErrNotReadOnly.
func ReadOnlyRefuses(op wire.OpCode) bool {
	return op.IsWrite() || op == wire.OpSync || op == wire.OpCheck || op == wire.OpDeleteContainer
}

// readOnlyAt returns the Mono time from which this server may serve reads without a
// quorum; Never if it may not.
func (r *Replica) readOnlyAt() int64 {
	m := r.member
	switch {
	case m.role != peerwire.Looking || !m.readers.shown && !(m.opt.ReadOnly && m.opt.ReadUncommitted) || m.log.Fresh():
		return Never
	case r.tree.Fuzzy() && !(m.opt.ReadOnly && m.opt.ReadUncommitted):
		return Never
	case r.tree.LastZxid() > m.log.Last():
		return Never // the log on disk is shorter, and a tree that is made of it replaces this one soon
	case m.disabled != "":
		return 0
	case m.opt.ReadOnly:
		return m.readers.since + max(readOnlyGraceMin, r.opt.TickMS)
	}
	return Never
}

// readOnlyWake returns the Mono time at which reviseReadOnly is due.
func (r *Replica) readOnlyWake() int64 {
	if r.member.readers.serves {
		return Never
	}
	return r.readOnlyAt()
}

// reviseReadOnly starts or ends read-only service. Its outputs come before the effects of
// anything that is committed later.
func (r *Replica) reviseReadOnly() {
	a := &r.member.readers
	switch due := r.now.Mono >= r.readOnlyAt(); {
	case due && !a.serves:
		a.serves, a.first = true, r.nextID
		r.observe(ReadOnlyBegan{r.tree.LastZxid()})
		r.admitReaders()
	case !due && a.serves:
		a.serves = false
		r.observe(ReadOnlyEnded{})
		r.endReaders()
	}
}

// endReaders closes the connections of read-only service and ends their sessions.
func (r *Replica) endReaders() {
	for _, c := range r.connections() {
		if c.readOnly {
			r.end(c)
		}
	}
	r.locals.endReaders()
}

// endReaders removes the sessions of read-only service.
func (l *locals) endReaders() {
	for id, s := range l.open {
		if s.readOnly {
			l.remove(id)
		}
	}
}

// admitReaders admits the waiting connections that accept a read-only server. The others
// keep waiting for a leader. If the disk is full, they are closed, because no leader will
// come soon.
func (r *Replica) admitReaders() {
	m := r.member
	held := m.held
	m.held = nil
	for _, c := range held {
		switch {
		case c.ended:
		case m.disabled != "", c.ask.ReadOnly && c.ask.Session == 0:
			r.admitReader(c)
		default:
			m.held = append(m.held, c)
		}
	}
}

// admitReader gives a connection a new session, or resumes a local one. This server knows
// nothing of other sessions: it closes their connections, and the clients try another
// server.
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

// readRequest answers a request on a session of read-only service.
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
