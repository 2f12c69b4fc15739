package replica

import (
	"bellwether/internal/peerwire"
	"bellwether/internal/zab"
	"bellwether/wire"
)

// heldPing is a ping that is answered once its session is certain to have been
// heard by the leader of now.
type heldPing struct {
	conn  *conn
	q     *Request
	token uint64 // of the touch, on a learner
}

// Lease is the last Mono time at which a driver may answer a ping by itself,
// as one more that its session was heard with; Never on a standalone server. It
// is to be asked anew after each Ready, and ends as early by Wall, which goes on
// while the machine is suspended. What comes later, or on a learner, comes here
// as a Request.
func (r *Replica) Lease() int64 {
	switch m := r.member; {
	case m == nil:
		return Never
	case m.leads():
		return m.leader.Lease()
	}
	return -1
}

// sleptMin is by how many ms the clock on the wall runs ahead of the other
// between two events where the machine was suspended; less is a correction.
const sleptMin = 10

// Beat sends, while a Step, a Ready or a Next takes long, the pings of a leader
// that are due, or a learner's answers to those that have arrived: the driver calls
// it from Options.Yield or between two events. It returns all that is to be sent so
// far, as in Ready.Send, when the pings were due, and when to call Beat again on a
// leader. now may be later than the time of the next event. Beat does not use the
// tree.
func (r *Replica) Beat(now Time, arrived zab.Arrived) (send []zab.Message, due, next int64) {
	m := r.member
	next = Never
	switch {
	case m == nil:
	case m.learner != nil:
		send = m.learner.Beat(now.Mono, arrived)
	case m.leader == nil || r.slept(now) >= sleptMin: // a Step finds out that the machine was suspended
	default:
		send, due = m.leader.Beat(now.Mono)
		next = m.leader.NextBeat()
	}
	if len(send) > 0 {
		send, m.ready.Send = append(m.ready.Send, send...), nil
	}
	return send, due, next
}

// slept is for how many ms the machine has been suspended since the last event.
func (r *Replica) slept(now Time) int64 { return now.Wall - r.now.Wall - (now.Mono - r.now.Mono) }

// wakesUp notices that the machine was suspended: Mono stood meanwhile, and
// Wall did not. Clocks on the wall that are set forward look the same; that costs
// the lease until the next pings are answered.
func (r *Replica) wakesUp(now Time) {
	ms := r.slept(now)
	if r.member != nil && ms >= sleptMin {
		r.member.step(now.Mono, zab.Slept{MS: ms})
	}
}

// ping answers a ping, or holds it until the touch is confirmed: an answered
// ping is a promise that the session lives.
func (r *Replica) ping(c *conn, q *Request) {
	m := r.member
	p := heldPing{conn: c, q: q}
	if r.locals.touch(c.session, r.now.Mono) && m.serving {
		r.pong(p)
		return
	}
	if m.serving && m.learner != nil {
		m.touch++
		p.token = m.touch
		touched := []peerwire.TouchedSession{{Session: c.session, TimeoutMS: c.timeout}}
		m.learner.Step(r.now.Mono, zab.Touched{Sessions: touched, Token: p.token})
	}
	m.pings.Push(p)
	r.release()
}

// release answers, on the leader, the pings held for its lease.
func (r *Replica) release() {
	m := r.member
	if !m.leads() || m.pings.Len() == 0 || r.now.Mono > m.leader.Lease() {
		return
	}
	for m.pings.Len() > 0 {
		p := m.pings.Pop()
		r.expiry.Touch(p.conn.session, r.now.Mono)
		r.pong(p)
	}
}

// confirmed answers, on a learner, the pings whose touches the leader has
// confirmed.
func (r *Replica) confirmed(token uint64) {
	pings := &r.member.pings
	if !r.member.serving {
		return
	}
	for f := pings.First(); f != nil && f.token <= token; f = pings.First() {
		r.pong(pings.Pop())
	}
}

func (r *Replica) pong(p heldPing) {
	if p.conn.gone || r.ending[p.conn.session] {
		return
	}
	r.outputs.Push(Output{Kind: Reply, Conn: p.conn.id, Request: p.q,
		Header: wire.ReplyHeader{Xid: wire.XidPing, Zxid: r.tree.LastZxid()}})
}

// touched takes which sessions of this server were heard from.
func (r *Replica) touched(sessions []Touch) {
	if r.decides() {
		for _, t := range sessions {
			if !r.locals.touch(t.Session, t.Mono) {
				r.expiry.Touch(t.Session, t.Mono)
			}
		}
		return
	}
	var told []peerwire.TouchedSession
	for _, t := range sessions {
		if c := r.owners[t.Session]; !r.locals.touch(t.Session, t.Mono) && c != nil {
			told = append(told, peerwire.TouchedSession{Session: t.Session, TimeoutMS: c.timeout})
		}
	}
	if m := r.member; m.learner != nil && len(told) > 0 {
		m.learner.Step(r.now.Mono, zab.Touched{Sessions: told, Token: m.touch})
	}
}
