package sim

import (
	"time"

	"bellwether/internal/claim"
	"bellwether/internal/claim/lines"
	"bellwether/wire"
)

// electionPath is the znode below which all candidates bid.
const electionPath = "/election"

// candidate bids in an election or another line, over its client's session, again and
// again.
type candidate struct {
	runner
	line   bidder
	parent string // parent of the bid
	shared bool   // the bid is a reader's
	lease  claim.Lease
	often  bool        // it pings every tenth of the timeout
	led    func(*term) // called when a term begins; may be nil
}

func newCandidate(c *client) *candidate {
	k := &candidate{}
	k.runner = runner{c: c, step: k.step}
	k.bid()
	return k
}

// attached begins or resumes the bid, with a lease from prove.
func (k *candidate) attached() {
	k.c.prove(&k.lease, func() { k.step(claim.Attached{Session: k.c.session, Lease: k.lease}) })
}

// prove sets the lease from the connection: the session was alive when the client sent its
// hello. It then asks the server for how long the server may be wrong about a session, sets
// the delay of the lease to the answer, and calls then. If the server does not know the
// question, the delay stays at seven ticks.
func (c *client) prove(l *claim.Lease, then func()) {
	timeout := time.Duration(c.timeoutMS) * time.Millisecond
	tick := time.Duration(c.sim.opt.TickMS) * time.Millisecond
	sent := c.clock.moment(c.sim.now)
	back := time.Duration(c.mono()-c.helloAt+1) * time.Millisecond
	sent.Mono -= back
	sent.Wall -= back
	*l = claim.Lease{Sent: sent, Timeout: timeout, Delay: 7 * tick}
	c.send(&call{op: wire.OpSync, body: wire.Append(nil, &wire.PathRequest{Path: wire.LeaseQuestion}), then: func(r *response) {
		if r == nil || r.header.Err != wire.OK {
			return
		}
		if p, ok := r.record.(*wire.NullPathResponse); ok {
			if ms, ok := wire.ParseLeaseAnswer(p.Path.String); ok {
				l.Delay = time.Duration(ms) * time.Millisecond
			}
		}
		then()
	}})
}

// proven tells the bid that a ping sent at that moment was answered.
func (k *candidate) proven(at claim.Moment) {
	k.lease.Sent = at
	k.step(claim.Confirmed{Lease: k.lease})
	k.c.sim.see(termProven{k})
}

func (k *candidate) disconnected() { k.step(claim.Disconnected{}) }
func (k *candidate) expired()      { k.step(claim.Expired{}) }
func (k *candidate) eager() bool   { return k.often }

// crashed drops the bid: the next process makes its own.
func (k *candidate) crashed() {
	k.drop()
	k.often = false
	k.bid()
}

// step passes an event to the bid and carries out what the bid asks for.
func (k *candidate) step(ev claim.Event) {
	k.line.Step(k.now(), ev)
	rd, st := k.line.Ready(), k.line.State()
	for _, h := range rd.Happenings {
		k.c.sim.tell("candidate %d: %v", k.c.id, h)
		if h, leads := h.(lines.Leads); leads {
			k.began(h)
		}
	}
	k.often = rd.KeepAlive
	k.ask(rd.Request)
	if st.Phase == lines.Done {
		k.over(st)
		k.line = nil
		k.bid()
		k.c.after(k.c.random.below(k.pauseMax()), func() {
			if k.c.attached && !k.c.silent && k.line.State().Phase == lines.Joining {
				k.step(claim.Attached{Session: k.c.session, Lease: k.lease})
			}
		})
		return
	}
	k.wake(rd.Wake)
}

// over handles the end of a bid. The candidate bids again if it campaigns again or retries.
// Any other reason for the end fails the run.
func (k *candidate) over(st lines.State) {
	if r := st.Reason; !r.Passing() && r != claim.Resigned && r != claim.Occupied {
		k.c.sim.fail("Claims", "candidate %d cannot bid: %v: %v", k.c.id, r, st.Err)
	}
}
