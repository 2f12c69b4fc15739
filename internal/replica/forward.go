package replica

import (
	"fmt"

	"bellwether/internal/ensemble"
	"bellwether/internal/peerwire"
	"bellwether/internal/record"
	"bellwether/internal/tree"
	"bellwether/internal/zab"
	"bellwether/wire"
)

// forward sends a request to the leader. Its transaction is the answer.
func (r *Replica) forward(c *conn, q *Request) {
	q.zxid = forwarded
	c.closing = q.Op == wire.OpCloseSession
	r.forwardRequest(peerwire.ForwardedRequest{Session: c.session, Cxid: q.Xid, Op: q.Op, Body: q.Body}, q.Identities)
}

// forwardCreate asks the leader for a session.
func (r *Replica) forwardCreate(id wire.SessionID, timeout []byte) {
	r.forwardRequest(peerwire.ForwardedRequest{Session: id, Op: wire.OpCreateSession, Body: timeout}, nil)
}

func (r *Replica) forwardRequest(q peerwire.ForwardedRequest, ids []wire.ID) {
	r.member.learner.Step(r.now.Mono, zab.Forward{Request: q, Identities: ids})
}

// failed answers with an error. That the session is another server's now ends
// the connection: it is not the client's newest one.
func (r *Replica) failed(txn *record.Txn, res tree.Result) {
	if res.Err == wire.ErrSessionMoved && txn.Cxid < 0 {
		r.marked(txn)
		return
	}
	c := r.owners[txn.Session]
	if c != nil && res.Err == wire.ErrSessionMoved && c.waiting.Len() > 0 && (*c.waiting.First()).awaits(txn) {
		r.happened(ForwardRefused{txn.Session})
		r.end(c)
		return
	}
	r.answer(c, txn, res)
}

// input takes, on the leader, what a learner has sent.
func (r *Replica) input(in zab.Input) {
	switch {
	case !r.member.leads(): // nobody was told to serve yet
	case in.Request != nil:
		r.requested(in)
	case in.Revalidation != nil:
		r.revalidate(in)
	default:
		for _, t := range in.Touched {
			r.heardFrom(t)
		}
	}
}

// heardFrom: a session was heard from, whose timeout its server knows best: it
// is agreed anew with each connection.
func (r *Replica) heardFrom(t peerwire.TouchedSession) {
	if r.expiry.Touch(t.Session, r.now.Mono) && t.TimeoutMS > 0 {
		r.expiry.Add(t.Session, t.TimeoutMS, r.now.Mono)
	}
}

// requested carries out a request of a learner's client. It is answered by a
// transaction in any case: that is all its server waits for.
func (r *Replica) requested(in zab.Input) {
	q := in.Request
	if q.Op == wire.OpSync {
		r.member.leader.Step(r.now.Mono, zab.Sync{Link: in.Link})
		return
	}
	if q.Op == wire.OpCreateSession {
		r.keeps(q.Session, in.Server)
	} else if code := r.entitled(q.Session, in.Server); code != wire.OK {
		r.proposeError(q, code)
		return
	}
	r.expiry.Touch(q.Session, r.now.Mono)
	req := tree.Request{Session: q.Session, Cxid: q.Cxid, Op: q.Op, Body: q.Body, Identities: in.Identities, Local: r.elsewhere(q.Session)}
	txn, code := r.propose(req)
	switch {
	case txn != nil:
		r.closing(txn)
	case code != wire.OK:
		r.proposeError(q, code)
	}
}

// entitled says whether a learner may ask in the name of a session.
func (r *Replica) entitled(id wire.SessionID, at ensemble.ServerID) wire.Code {
	switch {
	case r.lives(id):
	case r.elsewhere(id):
		return wire.OK
	default:
		return wire.ErrSessionExpired
	}
	home, known := r.member.homes[id]
	if known && home != at {
		return wire.ErrSessionMoved
	}
	r.keeps(id, at)
	return wire.OK
}

// proposeError answers a request that came to nothing.
func (r *Replica) proposeError(q *peerwire.ForwardedRequest, code wire.Code) {
	z, ok := r.nextZxid()
	if !ok {
		return
	}
	r.log(&record.Txn{
		TxnHeader: record.TxnHeader{Session: q.Session, Cxid: q.Cxid, Zxid: z, Time: r.now.Wall, Type: wire.OpError},
		Body:      &record.ErrorTxn{Err: code},
	})
}

// revalidate answers a learner whose client wants to take a session up again.
// From here on the session is that learner's.
func (r *Replica) revalidate(in zab.Input) {
	q := in.Revalidation
	a := peerwire.Revalidated{Session: q.Session, Valid: r.lives(q.Session)}
	if a.Valid {
		r.outdate(q.Session)
		r.keeps(q.Session, in.Server)
		r.expiry.Add(q.Session, q.TimeoutMS, r.now.Mono)
		r.mark(q.Session, in.Server)
		if in.Ours {
			return // the mark is the answer
		}
	}
	r.member.leader.Step(r.now.Mono, zab.Revalidated{Link: in.Link, Answer: a})
}

// ForwardRefused: this server's clients asked in the name of a session that is
// another server's now.
type ForwardRefused struct{ Session wire.SessionID }

func (h ForwardRefused) String() string {
	return fmt.Sprintf("session %v is served by another server now, the connection here is closed", h.Session)
}
