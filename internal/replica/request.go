package replica

import (
	"bellwether/internal/tree"
	"bellwether/wire"
)

// request takes a request in its connection's order. What cannot be answered
// at once waits in conn.waiting; what needs no transaction (a read, a sync, a
// refusal) has zxid 0 there.
func (r *Replica) request(q *Request) {
	c := r.conns[q.Conn]
	if c == nil || c.session == 0 || c.closing {
		return // ended, or asked to end before: nothing behind that is answered
	}
	q.verdict, q.zxid = q.Refuse, 0
	switch {
	case q.verdict != wire.OK:
	case r.ending[c.session]:
		q.verdict = wire.ErrSessionExpired
	case changes(q.Op):
		q.verdict = r.write(c, q)
	}
	if q.zxid == 0 && c.waiting.len() == 0 {
		r.answerNow(c, q)
		return
	}
	c.waiting.push(q)
}

// changes reports whether a request is to become a transaction.
func changes(op wire.OpCode) bool { return op.IsWrite() || op == wire.OpCloseSession }

// write proposes a request; a code other than OK is its answer instead.
func (r *Replica) write(c *conn, q *Request) wire.Code {
	if r.full {
		return wire.ErrNotReadOnly
	}
	txn, code := r.propose(tree.Request{Session: c.session, Cxid: q.Xid, Op: q.Op, Body: q.Body, Identities: q.Identities}, c, q)
	if txn != nil && txn.Type == wire.OpCloseSession {
		c.closing = true
		r.ending[c.session] = true
		r.expiry.Remove(c.session)
	}
	return code
}

// answerNow answers a request that needs no transaction, now that it is the
// connection's turn.
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
	default:
		o = Output{Kind: Turn, Conn: c.id, Request: q}
	}
	r.outputs.push(o)
}

// leaseAnswer is what sync answers with: the path it was sent, unless that is
// a client's question how old our knowledge of sessions may be when we answer
// a ping. Alone it is never old; a tick is what the rules for leases grant.
func (r *Replica) leaseAnswer(path wire.NullString) wire.NullString {
	if path.Valid && path.String == wire.LeaseQuestion {
		return wire.Text(wire.LeaseAnswer(r.opt.TickMS))
	}
	return path
}
