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

// forward sends a request to the leader. The transaction that the leader makes of it is
// the answer.
func (r *Replica) forward(c *conn, q *Request) {
	q.zxid, q.doubtful = forwarded, !r.member.native()
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

// failed acts on an error transaction that is applied. A session-move transaction is one
// of these. ErrSessionMoved as the answer to the oldest request of a connection closes
// that connection: the client has a newer one at another server. Any other error is the
// answer to its request.
func (r *Replica) failed(txn *record.Txn, res tree.Result) {
	if res.Err == wire.ErrSessionMoved && txn.Cxid < 0 {
		r.moveApplied(txn)
		return
	}
	c := r.owners[txn.Session]
	if c != nil && res.Err == wire.ErrSessionMoved && c.waiting.Len() > 0 && (*c.waiting.First()).awaits(txn) {
		r.observe(ForwardRefused{txn.Session})
		r.end(c)
		return
	}
	r.answer(c, txn, res)
}

// input acts on what a learner has sent to this leader.
func (r *Replica) input(in zab.Input) {
	switch {
	case r.member.learner != nil: // an observer of this follower: the leader answers
		r.closeOlder(in.Revalidation.Session)
	case !r.member.leads(): // learners are not told to serve yet
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

// heardFrom records that a server has heard from a session, and which timeout it reports. A report
// shortens the timeout only while this leader merely assumes it: after that, a shorter timeout
// comes from a server that the client has left. A ZooKeeper server reports each new session with
// the timeout that it was created with, although the client may be elsewhere. So a report of the
// assumed timeout proves nothing.
func (r *Replica) heardFrom(t peerwire.TouchedSession) {
	r.hear(t.Session)
	timeout, assumed := r.expiry.Timeout(t.Session)
	if timeout == 0 {
		return // it has ended, or its end is proposed
	}
	if t.TimeoutMS > timeout || assumed && 0 < t.TimeoutMS && t.TimeoutMS < timeout {
		r.expiry.Add(t.Session, t.TimeoutMS, r.now.Mono)
	}
}

// requested carries out a request that a learner has forwarded. It always proposes a
// transaction, if only an error: the learner waits for that and nothing else.
func (r *Replica) requested(in zab.Input) {
	q := in.Request
	r.hear(q.Session)
	if q.Op == wire.OpSync {
		r.member.leader.Step(r.now.Mono, zab.Sync{Link: in.Link})
		return
	}
	if q.Op == wire.OpCreateSession {
		r.setServerOf(q.Session, in.Server)
	} else if code := r.checkServerOf(q.Session, in.Server); code != wire.OK {
		r.proposeError(q, code)
		return
	}
	if r.postponesSession(q.Session) {
		r.member.postponed = append(r.member.postponed, postponed{in: in})
		return
	}
	req := tree.Request{Session: q.Session, Cxid: q.Cxid, Op: q.Op, Body: q.Body, Identities: in.Identities, Local: r.localElsewhere(q.Session)}
	r.resent = in.Native
	txn, code := r.propose(req)
	switch {
	case txn != nil:
		r.closing(txn)
	case r.awaits != nil:
		r.postpone(in, nil)
	case code != wire.OK:
		r.proposeError(q, code)
	}
}

// checkServerOf returns OK if a learner may send requests for a session, otherwise the error
// code that answers the request.
func (r *Replica) checkServerOf(id wire.SessionID, at ensemble.ServerID) wire.Code {
	switch {
	case r.isOpen(id):
	case r.localElsewhere(id):
		return wire.OK
	default:
		return wire.ErrSessionExpired
	}
	home, known := r.member.serverOf[id]
	if known && home != at {
		return wire.ErrSessionMoved
	}
	r.setServerOf(id, at)
	return wire.OK
}

// proposeError proposes an error transaction as the answer to a request that changes
// nothing.
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

// revalidate answers a learner whose client wants to resume a session. If the session
// lives, requests for it are accepted only from that learner from now on.
func (r *Replica) revalidate(in zab.Input) {
	q := in.Revalidation
	r.hear(q.Session)
	a := peerwire.Revalidated{Session: q.Session, Valid: r.isOpen(q.Session)}
	if a.Valid {
		r.closeOlder(q.Session)
		r.dropPostponed(q.Session)
		r.setServerOf(q.Session, in.Server)
		r.expiry.Add(q.Session, q.TimeoutMS, r.now.Mono)
		if !r.member.opt.CompatibleOnly { // a ZooKeeper leader proposes nothing
			r.proposeMove(q.Session, in.Server)
		}
		if in.Native {
			return // the session-move transaction is the answer
		}
	}
	r.member.leader.Step(r.now.Mono, zab.Revalidated{Link: in.Link, Question: in.Question, Answer: a})
}

// ForwardRefused says that the leader refused a forwarded request because the session has
// moved to another server.
type ForwardRefused struct{ Session wire.SessionID }

func (h ForwardRefused) String() string {
	return fmt.Sprintf("session %v has moved to another server: its connection to this server is closed", h.Session)
}
