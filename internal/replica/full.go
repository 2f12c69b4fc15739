package replica

import (
	"fmt"

	"bellwether/wire"
)

// WritesStopped: the log has no room.
type WritesStopped struct{ Zxid wire.Zxid }

func (h WritesStopped) String() string {
	return fmt.Sprintf("no space for the transaction log behind %v: writes are refused, reads are answered; free some space", h.Zxid)
}

// WritesResumed: the log has room again.
type WritesResumed struct{}

func (WritesResumed) String() string {
	return "space for the transaction log: writes are accepted again"
}

// logFull takes back every proposal behind e.Zxid: none of them is durable
// anywhere, so who waits is told that nothing was written. What is durable
// stays in flight; Next applies it.
func (r *Replica) logFull(e LogFull) {
	if e.Generation != r.generation || r.full {
		return
	}
	r.full, r.room = true, false
	r.generation++
	r.append = nil
	r.durable = max(r.durable, min(e.Zxid, r.proposed))
	r.proposed = r.durable
	r.happened(WritesStopped{r.durable})
	r.tree.Discard()
	var lost []proposal
	var kept queue[proposal]
	for r.inflight.len() > 0 {
		if p := r.inflight.pop(); p.txn.Zxid <= r.durable {
			kept.push(p)
		} else {
			lost = append(lost, p)
		}
	}
	r.inflight = kept
	for _, p := range lost {
		r.takeBack(p)
	}
}

// takeBack undoes what a proposal had set in motion and answers it.
func (r *Replica) takeBack(p proposal) {
	id := p.txn.Session
	switch p.txn.Type {
	case wire.OpCreateSession:
		if p.conn != nil {
			r.end(p.conn)
		}
		return
	case wire.OpCloseSession:
		delete(r.ending, id)
		if timeout, ok := r.tree.Session(id); ok {
			r.expiry.Add(id, timeout, r.now.Mono)
		}
	}
	if p.conn == nil || p.conn.gone {
		return
	}
	p.conn.closing = false
	p.request.zxid, p.request.verdict = 0, wire.ErrNotReadOnly
	for f := p.conn.waiting.first(); f != nil && (*f).zxid == 0; f = p.conn.waiting.first() {
		r.answerNow(p.conn, p.conn.waiting.pop())
	}
}

// logFree accepts writes again, as soon as everything committed is applied:
// what the tree forgot in logFull must not be prepared over.
func (r *Replica) logFree() {
	r.room = r.full
	if r.room && r.inflight.len() == 0 {
		r.resume()
	}
}

// resume ends the time of refused writes. Nothing expired meanwhile; every
// session starts anew, as after a change of leaders.
func (r *Replica) resume() {
	r.full, r.room = false, false
	r.happened(WritesResumed{})
	r.tree.Sessions(func(id wire.SessionID, timeoutMS int32) {
		if c := r.owners[id]; c != nil {
			timeoutMS = c.timeout
		}
		r.expiry.Add(id, timeoutMS, r.now.Mono)
	})
}
