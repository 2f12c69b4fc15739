package replica

import (
	"fmt"

	"bellwether/internal/fifo"
	"bellwether/internal/record"
	"bellwether/wire"
)

// WritesStopped says that there is no space for the transaction log.
type WritesStopped struct{ Zxid wire.Zxid }

func (h WritesStopped) String() string {
	return fmt.Sprintf("no space for the transaction log after %v: writes are refused, reads are answered, new clients are served only if they accept a read-only server; free some space", h.Zxid)
}

// WritesResumed says that there is space for the transaction log again.
type WritesResumed struct{}

func (WritesResumed) String() string {
	return "there is space for the transaction log again: writes are accepted"
}

// logFull takes back every proposal after e.Zxid. None of them is durable anywhere, so
// their clients are told that nothing was written. What is durable stays in flight, and
// Next applies it.
func (r *Replica) logFull(e LogFull) {
	a := r.alone
	if e.Generation != a.generation || a.full {
		return
	}
	a.full, a.room = true, false
	a.generation++
	a.append = nil
	a.durable = max(a.durable, min(e.Zxid, a.proposed))
	a.proposed = a.durable
	r.observe(WritesStopped{a.durable})
	r.tree.Discard()
	var lost []*record.Txn
	var kept fifo.Queue[*record.Txn]
	for a.inflight.Len() > 0 {
		if t := a.inflight.Pop(); t.Zxid <= a.durable {
			kept.Push(t)
		} else {
			lost = append(lost, t)
		}
	}
	a.inflight = kept
	for _, t := range lost {
		r.takeBack(t)
	}
	r.spare()
}

// takeBack undoes what a proposal has changed in the replica and answers its request.
func (r *Replica) takeBack(t *record.Txn) {
	id := t.Session
	switch t.Type {
	case wire.OpCreateSession:
		c := r.creating[id]
		delete(r.creating, id)
		if c != nil && !c.ended {
			r.create(c)
		}
		return
	case wire.OpCloseSession:
		r.revive(id)
	}
	c := r.owners[id]
	if c == nil {
		return
	}
	c.closing = false
	for i := range c.waiting.Len() {
		if q := *c.waiting.At(i); q.zxid == t.Zxid {
			q.zxid, q.verdict = 0, wire.ErrNotReadOnly
		}
	}
	r.answerOldest(c)
}

// logFree accepts writes again as soon as everything committed is applied. Until then the
// tree lacks changes that logFull discarded, so no new request may be prepared.
func (r *Replica) logFree() {
	a := r.alone
	a.room = a.full
	if a.room && a.inflight.Len() == 0 {
		r.acceptWrites()
	}
}

// resumeAlone lets a connection of a standalone server resume its session. If the session was
// made while the disk was full, the client must still accept a read-only server.
func (r *Replica) resumeAlone(c *conn) {
	if r.locals.has(c.ask.Session) {
		r.admitReader(c)
		return
	}
	r.attach(c, c.ask.Session)
}

// acceptWrites ends the time in which writes are refused. The sessions that were made in that
// time end. No other session expired meanwhile, and each starts again with its full
// timeout, as after a change of leaders.
func (r *Replica) acceptWrites() {
	r.alone.full, r.alone.room = false, false
	r.endReaders()
	r.observe(WritesResumed{})
	r.track()
}
