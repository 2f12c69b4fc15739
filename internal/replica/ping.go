package replica

import (
	"bellwether/internal/peerwire"
	"bellwether/internal/zab"
	"bellwether/wire"
)

// heldPing is a ping that must not be answered before it is certain that the current
// leader counts the session as alive.
type heldPing struct {
	conn  *conn
	q     *Request
	token uint64 // on a learner: the touch that the leader must confirm first
}

// Lease returns the last Mono time at which a driver may answer a ping by itself; the
// driver then reports the session in Touched. It is Never on a standalone server and -1
// on a learner. The driver must ask again after each Ready. It must also stop when the
// same time has passed by the wall clock, which advances while the machine is suspended.
// A ping that Lease does not cover must be stepped as a Request.
func (r *Replica) Lease() int64 {
	switch m := r.member; {
	case m == nil:
		return Never
	case m.leads():
		return m.leader.Lease()
	}
	return -1
}

// sleptMin is the difference, in ms, by which the wall clock must run ahead of Mono
// between two events to show that the machine was suspended. A smaller difference is a
// clock correction.
const sleptMin = 10

// Heartbeat sends heartbeats while a Step, a Ready or a Next takes long: on a leader the
// pings that are due, on a learner the answers to pings that have arrived. The driver
// calls it from Options.Yield or between two events. Heartbeat returns all messages that
// are to be sent so far, as in Ready.Send, the time at which the pings were due, and, on
// a leader, when to call Heartbeat again. now may be later than the time of the next
// event. Heartbeat does not use the tree.
func (r *Replica) Heartbeat(now Time, arrived zab.Arrived) (send []zab.Message, due, next int64) {
	m := r.member
	next = Never
	switch {
	case m == nil:
	case m.learner != nil:
		send = m.learner.Heartbeat(now.Mono, arrived)
	case m.leader == nil || r.slept(now) >= sleptMin: // if the machine was suspended, the next Step deals with that first
	default:
		send, due = m.leader.Heartbeat(now.Mono)
		next = m.leader.NextHeartbeat()
	}
	if len(send) > 0 {
		send, m.ready.Send = append(m.ready.Send, send...), nil
	}
	return send, due, next
}

// slept returns for how many ms the machine was suspended since the last event.
func (r *Replica) slept(now Time) int64 { return now.Wall - r.now.Wall - (now.Mono - r.now.Mono) }

// wakesUp tells Zab if the machine was suspended: then Wall advanced and Mono did not. A
// wall clock that is set forward looks the same; the leader then loses its lease until
// the next pings are answered.
func (r *Replica) wakesUp(now Time) {
	ms := r.slept(now)
	if r.member != nil && ms >= sleptMin {
		r.member.step(now.Mono, zab.Slept{MS: ms})
	}
}

// ping answers a ping, or holds it until the leader has confirmed the touch, because the
// answer promises the client that its session lives.
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
		m.learner.Step(r.now.Mono, zab.Touched{Sessions: touched, Token: p.token, Waits: true})
	}
	m.pings.Push(p)
	if r.release(); m.leads() && m.pings.Len() > 0 {
		m.leader.Step(r.now.Mono, zab.Touched{Waits: true})
	}
}

// release answers the pings that a leader holds, if it has its lease.
func (r *Replica) release() {
	m := r.member
	if !m.leads() || m.pings.Len() == 0 || r.now.Mono > m.leader.Lease() {
		return
	}
	for m.pings.Len() > 0 {
		if p := m.pings.Pop(); !p.conn.ended {
			r.hear(p.conn.session)
			r.pong(p)
		}
	}
}

// confirmed answers the pings of this learner whose touches the leader has confirmed.
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
	if p.conn.ended || r.ending[p.conn.session] {
		return
	}
	r.outputs.Push(Output{Kind: Reply, Conn: p.conn.id, Request: p.q,
		Header: wire.ReplyHeader{Xid: wire.XidPing, Zxid: r.tree.LastZxid()}})
}

// touched records that sessions of this server were heard from: itself if it decides about
// the sessions, else by telling the leader.
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
