package client

import (
	"time"

	"bellwether/internal/claim"
	"bellwether/internal/claim/lines"
	"bellwether/internal/leasequery"
	"bellwether/internal/sim/check"
	"bellwether/wire"
)

// Candidate bids in an election or another line, over its client's session, again and
// again.
type Candidate struct {
	Runner
	line      bidder
	parent    string // parent of the bid
	shared    bool   // the bid is a reader's
	lease     claim.Lease
	stay      *stay         // of the last term; nil: there was none
	keepAlive bool          // it pings every tenth of the timeout
	termBegan func(*term)   // called when a term begins; may be nil
	term      *term         // the term of the present bid; nil: it has not begun
	deleted   bool          // an operator has deleted its bid, and the candidate may not know it yet
	lapsedAt  int64         // µs at which an event reached it last while the lease of its session had lapsed
	waits     bool          // it waits for any lease of a semaphore
	missing   bool          // it has had no term since BeginClaimRounds
	proving   bool          // the client is attached, and the bid does not know it yet
	late      []claim.Event // replies of an earlier connection that wait for that
}

func newCandidate(c *Client) *Candidate {
	k := &Candidate{}
	k.Runner = Runner{c: c, step: k.step}
	k.bid()
	return k
}

// attached begins or resumes the bid, with a lease from prove. A reply of an earlier connection that arrives meanwhile waits, because a
// program tells the bid first what its client has learned: the session may have a smaller timeout now.
func (k *Candidate) attached() {
	k.proving = true
	k.c.prove(&k.lease, func() { k.learned(claim.Attached{Session: k.c.Session, Lease: k.lease}) })
}

// learned steps a change of the session, and then the replies that have waited for it.
func (k *Candidate) learned(ev claim.Event) {
	k.proving = false
	k.step(ev)
	late := k.late
	k.late = nil
	for _, ev := range late {
		k.step(ev)
	}
}

// prove sets the lease from the connection: the session was alive when the client sent its hello.
// It then asks the server for how long the server may be wrong about a session, sets the delay of
// the lease to the answer, and calls the function then. If the server does not know the question,
// the delay stays at seven ticks.
func (c *Client) prove(l *claim.Lease, then func()) {
	timeout := time.Duration(c.leastMS) * time.Millisecond
	tick := time.Duration(c.group.Settings().TickMS) * time.Millisecond
	*l = claim.Lease{Sent: c.helloAt, Timeout: timeout, Delay: 7 * tick}
	c.Send(&Call{Op: wire.OpSync, Body: wire.Append(nil, &wire.PathRequest{Path: leasequery.Question}), Then: func(r *Response) {
		if r == nil || r.Header.Err != wire.OK {
			return
		}
		if p, ok := r.Record.(*wire.NullPathResponse); ok {
			if ms, ok := leasequery.ParseAnswer(p.Path.String); ok {
				l.Delay = time.Duration(ms) * time.Millisecond
			}
		}
		then()
	}})
}

// proven tells the bid that a ping sent at that moment was answered.
func (k *Candidate) proven(at claim.Moment) {
	k.lease.Sent = at
	k.step(claim.Confirmed{Lease: k.lease})
	k.c.group.See(check.TermProven{Holder: k.observed()})
}

// disconnected tells the bid of the end of a connection, and before that of its begin, if it does not know it yet.
func (k *Candidate) disconnected() {
	if k.proving && k.c.Session != 0 {
		k.proving = false
		k.step(claim.Attached{Session: k.c.Session, Lease: k.lease})
	}
	k.learned(claim.Disconnected{})
}

func (k *Candidate) expired()         { k.learned(claim.Expired{}) }
func (k *Candidate) pingsOften() bool { return k.keepAlive }

// crashed drops the bid: the next process makes its own.
func (k *Candidate) crashed() {
	k.drop()
	k.proving, k.late = false, nil
	k.keepAlive, k.stay = false, nil
	k.bid()
}

// step passes an event to the bid and carries out what the bid asks for.
func (k *Candidate) step(ev claim.Event) {
	if _, ok := ev.(claim.Reply); ok && k.proving {
		k.late = append(k.late, ev)
		return
	}
	k.stay.step(k, ev)
	now := k.now()
	overdue := k.term != nil && k.line.Left(now) <= 0
	if k.line.Deadline(now) <= 0 {
		k.lapsedAt = k.c.group.Now()
	}
	k.line.Step(now, ev)
	rd, st := k.line.Ready(), k.line.State()
	if overdue {
		k.c.group.See(check.Overdue{Holder: k.observed()})
	}
	for _, h := range rd.Observations {
		k.c.group.Tell("candidate %d: %v", k.c.ID, h)
		k.record(h)
	}
	k.keepAlive = rd.KeepAlive
	k.request(rd.Request)
	if st.Phase == lines.Done {
		k.over(st)
		k.line = nil
		k.bid()
		k.c.after(k.c.random.Below(k.pauseMax()), func() {
			if k.c.Attached && !k.c.Hung && k.line.State().Phase == lines.Joining {
				k.step(claim.Attached{Session: k.c.Session, Lease: k.lease})
			}
		})
		return
	}
	k.wake(rd.Wake)
}

// record records what the bid reports.
func (k *Candidate) record(h claim.Observation) {
	switch h := h.(type) {
	case lines.Leads:
		k.awaits(false)
		k.recordTerm(h)
	case lines.Waiting:
		k.awaits(h.For == "")
	case lines.Woken, lines.Ended:
		k.awaits(false)
	case lines.First:
		k.operatorDeletes(claim.Join(k.parent, h.Bid))
	}
}

// awaits records whether the candidate waits for any lease.
func (k *Candidate) awaits(anyLease bool) {
	if k.waits != anyLease {
		k.waits = anyLease
		k.c.group.See(check.Awaits{Client: k.c.ID, Session: k.c.Session, Any: anyLease})
	}
}

// left returns how long the candidate may still consider itself a holder.
func (k *Candidate) left() time.Duration { return k.line.Left(k.now()) }

// holds reports whether the candidate may consider itself a holder now.
func (k *Candidate) holds() bool { return k.left() > 0 }

// proof reports whether it is proven that the session lives as long as the term.
func (k *Candidate) proof() bool { return k.line.Proof() == nil }

// observed returns the candidate as the checkers see it.
func (k *Candidate) observed() check.Holder {
	return check.Holder{Client: k.c.ID, Session: k.c.Session, Shared: k.shared, Exclusive: k.exclusive(), Proven: k.proof(), Left: k.left(),
		Timeout: time.Duration(k.c.TimeoutMS) * time.Millisecond, Deleted: k.deleted, LapsedAt: k.lapsedAt}
}

// Resign makes the candidate give its bid up.
func (k *Candidate) Resign() { k.step(claim.Resign{}) }

// State returns the state of the candidate's bid.
func (k *Candidate) State() lines.State { return k.line.State() }

// over handles the end of a bid. The candidate bids again if it campaigns again or retries.
// Any other reason for the end fails the run.
func (k *Candidate) over(st lines.State) {
	if r := st.Reason; !claim.Passing(r) && r != claim.Resigned && r != claim.Occupied {
		k.c.group.Fail("Claims", "candidate %d cannot bid: %v: %v", k.c.ID, r, st.Err)
	}
}
