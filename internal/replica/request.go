package replica

import (
	"bellwether/internal/leasequery"
	"bellwether/internal/record"
	"bellwether/internal/tree"
	"bellwether/internal/zab"
	"bellwether/wire"
)

// request takes a request in the order of its connection. If it cannot be answered at
// once it waits in conn.waiting.
func (r *Replica) request(q *Request) {
	c := r.conns[q.Conn]
	if c == nil || c.session == 0 || c.closing {
		return // after a closeSession nothing is answered
	}
	q.verdict, q.zxid, q.token = q.Refuse, 0, 0
	ping := q.Op == wire.OpPing && r.member != nil // it counts when it is answered
	if r.decides() && !ping {
		r.hear(c.session)
	}
	switch {
	case c.readOnly:
		r.readRequest(c, q)
		return
	case q.verdict != wire.OK:
	case ping:
		r.ping(c, q)
		return
	case r.member != nil && !r.member.serving:
		q.zxid = held
		c.closing = q.Op == wire.OpCloseSession
	case r.ending[c.session]:
		q.verdict = wire.ErrSessionExpired
	default:
		r.begin(c, q, c.syncing())
	}
	if !q.pending() && c.waiting.Len() == 0 {
		r.answerNow(c, q)
		return
	}
	c.waiting.Push(q)
}

// begin starts what a request needs before it can be answered. A write after an
// unanswered sync is held: the leader answers a sync only when a quorum has confirmed its
// leadership, and the write could be applied before that, out of the order of its
// connection. During a leadership transfer a write is held for the next leader. A write after
// a reconfiguration that is postponed is held too.
func (r *Replica) begin(c *conn, q *Request, syncing bool) {
	switch {
	case q.Op == wire.OpCloseSession && r.locals.has(c.session) && !syncing:
		// A local session ends on this server only, after the requests before. Behind a sync the
		// session may still be upgraded, so its end is held like a write.
		c.closing = true
	case changes(q.Op) && (syncing || r.transferring() || r.postpones(c)):
		q.zxid = held
		c.closing = q.Op == wire.OpCloseSession
	case changes(q.Op):
		r.write(c, q)
	case q.Op == wire.OpSync && r.member != nil:
		q.token = r.sync(c)
	}
}

// syncing reports whether a sync of the connection is not answered yet.
func (c *conn) syncing() bool {
	for i := range c.waiting.Len() {
		if (*c.waiting.At(i)).token != 0 {
			return true
		}
	}
	return false
}

// beginHeld starts the writes that were held for a sync, up to the next unanswered sync.
func (r *Replica) beginHeld(c *conn) {
	for i := range c.waiting.Len() {
		q := *c.waiting.At(i)
		if q.token != 0 {
			return
		}
		if q.zxid == held {
			q.zxid = 0
			r.begin(c, q, false)
			r.member.unsettled = true
		}
	}
}

// changes reports whether a request becomes a transaction.
func changes(op wire.OpCode) bool { return op.IsWrite() || op == wire.OpCloseSession }

// write proposes a request, or forwards it to the leader.
func (r *Replica) write(c *conn, q *Request) {
	if r.alone != nil && r.alone.full {
		q.verdict = wire.ErrNotReadOnly
		return
	}
	if q.verdict = r.upgrade(c, q); q.verdict != wire.OK {
		return
	}
	if !r.decides() {
		r.forward(c, q)
		return
	}
	r.resent = r.member != nil && r.member.opt.KeepClients
	txn, code := r.propose(tree.Request{Session: c.session, Cxid: q.Xid, Op: q.Op, Body: q.Body,
		Multi: q.multi, Identities: q.Identities, Local: r.locals.knows(c.session)})
	switch {
	case txn != nil:
		q.zxid, q.withoutStat = txn.Zxid, r.asked.WithoutStat
		r.closing(txn)
	case r.awaits != nil:
		q.zxid = held
		c.closing = q.Op == wire.OpCloseSession
		r.postpone(zab.Input{}, c)
	case code == wire.OK: // the term is about to end: the next leader gets the request, or the connection is closed
		q.zxid = forwarded
		c.closing = q.Op == wire.OpCloseSession
	default:
		q.verdict = code
	}
}

// decodedMulti returns the decoded body of a multi. It decodes the body at the first call. It
// returns nil if the body cannot be decoded.
func (q *Request) decodedMulti() *wire.MultiRequest {
	if q.multi == nil {
		q.multi = tree.DecodeMulti(q.Body)
	}
	return q.multi
}

// closing records that the end of a session is proposed.
func (r *Replica) closing(txn *record.Txn) {
	if txn.Type != wire.OpCloseSession {
		return
	}
	r.ending[txn.Session] = true
	r.expiry.Remove(txn.Session)
	delete(r.doomed, txn.Session)
	if c := r.owners[txn.Session]; c != nil {
		c.closing = true
	}
}

// answerNow answers a request that waits for nothing more and is the oldest of its
// connection.
func (r *Replica) answerNow(c *conn, q *Request) {
	o := Output{Kind: Reply, Conn: c.id, Request: q,
		Header: wire.ReplyHeader{Xid: q.Xid, Zxid: r.tree.LastZxid(), Err: q.verdict}}
	switch {
	case q.verdict != wire.OK:
	case q.Op == wire.OpSync:
		var p wire.NullPathRequest
		if wire.Decode(q.Body, &p) != nil {
			o.Header.Err = wire.ErrMarshalling
		} else {
			o.Response = &wire.NullPathResponse{Path: r.leaseAnswer(p.Path)}
		}
	case q.Op == wire.OpCloseSession:
		r.outputs.Push(o)
		r.closeLocal(c.session)
		return
	default:
		o = Output{Kind: Turn, Conn: c.id, Request: q}
	}
	r.outputs.Push(o)
}

// leaseAnswer returns the path with which a sync is answered: the path of the request,
// unless that is leasequery.Question. With that question a client asks how old this
// server's knowledge of a session may be when it answers a ping. On a standalone server
// it is never old; the answer is one tick. In an ensemble the answer is the lease of a
// native leader. If the leader is a compatible one the path is returned unchanged.
func (r *Replica) leaseAnswer(path wire.NullString) wire.NullString {
	if !path.Valid || path.String != leasequery.Question {
		return path
	}
	ms := r.opt.TickMS
	if r.member != nil {
		ms = r.member.leaseMS()
	}
	if ms == 0 {
		return path
	}
	return wire.Text(leasequery.Answer(ms))
}
