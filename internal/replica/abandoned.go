package replica

import (
	"fmt"
	"strings"

	"bellwether/internal/record"
	"bellwether/internal/tree"
	"bellwether/wire"
)

// abandonedMax is the number of abandoned requests that are remembered. Later ones are lost:
// see [AbandonedLost].
const abandonedMax = 1 << 14

// abandoned holds, by session, the requests whose connection ended before their transaction
// was applied, in the order of the session. It serves the audit log: a
// client must not be able to keep a request out of the log by closing its connection. See
// [Options.ReportAbandoned].
//
// Invariant: count is the number of requests, and no list is empty.
type abandoned struct {
	requests map[wire.SessionID][]*Request
	count    int
}

// abandon remembers those requests of a connection that may become transactions, and
// reports those that were refused but not yet answered.
func (r *Replica) abandon(c *conn) {
	a := &r.abandoned
	if !r.opt.ReportAbandoned || c.session == 0 {
		return
	}
	for i := range c.waiting.Len() {
		q := *c.waiting.At(i)
		if changes(q.Op) && q.verdict != wire.OK {
			r.outputs.Push(Output{Kind: Reply, Conn: c.id, Request: q, Header: wire.ReplyHeader{Xid: q.Xid, Err: q.verdict}})
			continue
		}
		if !changes(q.Op) || q.zxid == 0 || q.zxid == held {
			continue
		}
		if a.count == abandonedMax {
			r.observe(AbandonedLost{c.session})
			continue
		}
		q.doubtful = q.zxid == forwarded && !r.member.native()
		if a.requests == nil {
			a.requests = map[wire.SessionID][]*Request{}
		}
		a.requests[c.session] = append(a.requests[c.session], q)
		a.count++
	}
}

// settleForwarded forgets the requests of a session that were sent to a leader and have not
// come back. It is called when the transactions of these requests cannot arrive any more: a
// new connection of the session is attached here, or the session has moved to another server.
func (r *Replica) settleForwarded(id wire.SessionID) {
	r.removeAbandoned(id, func(q *Request) bool { return q.zxid == forwarded })
}

// settleTerm forgets the requests of earlier terms when a term serves. By then everything
// that has survived of those terms is applied.
func (r *Replica) settleTerm(epoch wire.Epoch) {
	for id := range r.abandoned.requests {
		r.removeAbandoned(id, func(q *Request) bool { return q.zxid == forwarded || q.zxid.Epoch() < epoch })
	}
}

// removeAbandoned forgets those requests of a session for which gone reports true.
func (r *Replica) removeAbandoned(id wire.SessionID, gone func(*Request) bool) {
	a := &r.abandoned
	list := a.requests[id]
	kept := list[:0]
	for _, q := range list {
		if !gone(q) {
			kept = append(kept, q)
		}
	}
	clear(list[len(kept):])
	a.count -= len(list) - len(kept)
	if len(kept) == 0 {
		delete(a.requests, id)
	} else {
		a.requests[id] = kept
	}
}

// reportAbandoned reports an abandoned request if txn is its transaction. If txn moves the
// session, it forgets the session's forwarded requests; if txn ends the session, all its requests.
func (r *Replica) reportAbandoned(txn *record.Txn, res tree.Result) {
	for _, q := range r.abandoned.requests[txn.Session] {
		if !q.matches(txn) {
			continue
		}
		if q.doubtful && !q.made(txn) {
			r.observe(AbandonedLost{txn.Session})
		} else {
			r.outputs.Push(Output{Kind: Reply, Conn: q.Conn, Request: q, Response: res.Response,
				Header: wire.ReplyHeader{Xid: q.Xid, Zxid: res.Zxid, Err: res.Err}})
		}
		r.removeAbandoned(txn.Session, func(other *Request) bool { return other == q })
		break
	}
	if res.Err == wire.ErrSessionMoved && txn.Cxid < 0 {
		r.settleForwarded(txn.Session)
	}
	if txn.Type == wire.OpCloseSession {
		r.removeAbandoned(txn.Session, func(*Request) bool { return true })
	}
}

// AbandonedLost says that the outcome of an abandoned request is not known, so it is not
// reported.
type AbandonedLost struct{ Session wire.SessionID }

func (h AbandonedLost) String() string {
	return fmt.Sprintf("the outcome of a request of session %v, whose connection has ended, is not known", h.Session)
}

// made reports whether a transaction is certainly that of a request, and not that of another
// request with the same xid. A ZooKeeper leader does not say when a session moves to another
// server, where the client may use its xids again. For an error transaction made returns false,
// because the transaction does not say which operation failed.
func (q *Request) made(txn *record.Txn) bool {
	var body wire.Record
	switch q.Op {
	case wire.OpCloseSession:
		return txn.Type == wire.OpCloseSession
	case wire.OpMulti:
		m := q.decodedMulti()
		t, ok := txn.Body.(*record.MultiTxn)
		if !ok || m == nil || len(m.Ops) != len(t.Ops) {
			return false
		}
		for i, op := range m.Ops {
			if !sameZnode(op.Request, t.Ops[i].Body) {
				return false
			}
		}
		return true
	case wire.OpCreate, wire.OpCreate2, wire.OpCreateContainer:
		body = new(wire.CreateRequest)
	case wire.OpCreateTTL:
		body = new(wire.CreateTTLRequest)
	case wire.OpDelete:
		body = new(wire.PathVersionRequest)
	case wire.OpSetData:
		body = new(wire.SetDataRequest)
	case wire.OpSetACL:
		body = new(wire.SetACLRequest)
	default:
		return false
	}
	return wire.Decode(q.Body, body) == nil && sameZnode(body, txn.Body)
}

// foreign reports whether a transaction is certainly not that of a request. An error transaction can be that of any.
func (q *Request) foreign(txn *record.Txn) bool {
	switch {
	case txn.Type == wire.OpError:
		return false
	case q.Op == wire.OpMulti: // whose operations can have failed
		return txn.Type != wire.OpMulti
	case q.Op == wire.OpReconfig, q.Op == wire.OpDeleteContainer:
		return false
	}
	return !q.made(txn)
}

// sameZnode reports whether a transaction does what a request asks for, with the same znode.
// The name of a sequential znode begins with the requested one.
func sameZnode(request wire.Record, txn record.TxnBody) bool {
	var asked string
	var creates, deletes, checks, sets, setsACL bool
	switch q := request.(type) {
	case *wire.CreateRequest:
		asked, creates = q.Path, true
	case *wire.CreateTTLRequest:
		asked, creates = q.Path, true
	case *wire.PathVersionRequest: // of a delete or a check
		asked, deletes, checks = q.Path, true, true
	case *wire.SetDataRequest:
		asked, sets = q.Path, true
	case *wire.SetACLRequest:
		asked, setsACL = q.Path, true
	}
	switch t := txn.(type) {
	case *record.CreateTxn:
		return creates && strings.HasPrefix(t.Path, asked)
	case *record.CreateContainerTxn:
		return creates && strings.HasPrefix(t.Path, asked)
	case *record.CreateTTLTxn:
		return creates && strings.HasPrefix(t.Path, asked)
	case *record.DeleteTxn:
		return deletes && t.Path == asked
	case *record.CheckTxn:
		return checks && t.Path == asked
	case *record.SetDataTxn:
		return sets && t.Path == asked
	case *record.SetACLTxn:
		return setsACL && t.Path == asked
	}
	return false
}
