package server

import (
	"bellwether/internal/replica"
	"bellwether/wire"
)

// The loop decodes, checks and applies a request of heavyMin bytes or more in
// milliseconds: a multi of 20,000 operations takes about 40. So that many of
// them do not make everybody else's requests wait for seconds, at most
// heavyMax bytes of such requests are with the replica at a time, or one.
const (
	heavyMin = 4 << 10
	heavyMax = 1 << 20
)

// pace holds heavy requests back until earlier ones are answered. Light
// requests of other connections pass them by; those of the same connection
// keep their order behind them. Connections take turns, one heavy request each.
// It belongs to the loop.
type pace struct {
	inFlight int64   // bytes of heavy requests that the replica has and has not answered
	waiting  []*conn // those with requests held back, in the order of their turns
}

// heavy is how much a request counts: its size, 0 for a light one.
func heavy(q *replica.Request) int64 {
	if q.Size < heavyMin {
		return 0
	}
	return q.Size
}

// fits reports whether a request may go to the replica now.
func (p *pace) fits(q *replica.Request) bool {
	n := heavy(q)
	return n == 0 || p.inFlight == 0 || p.inFlight+n <= heavyMax
}

// hold keeps a request for later if it is not its turn yet. A ping never waits:
// it says nothing about other requests, and its client takes silence for the
// end of the connection.
func (p *pace) hold(c *conn, q *replica.Request) bool {
	if q.Op == wire.OpPing {
		return false
	}
	if len(c.heldBack) == 0 && p.fits(q) && (heavy(q) == 0 || len(p.waiting) == 0) {
		return false
	}
	if len(c.heldBack) == 0 {
		p.waiting = append(p.waiting, c)
	}
	c.heldBack = append(c.heldBack, q)
	return true
}

// taken notes that a request goes to the replica.
func (p *pace) taken(c *conn, q *replica.Request) {
	p.inFlight += heavy(q)
	c.heavy += heavy(q)
}

// answered notes that the replica has answered a request.
func (p *pace) answered(c *conn, q *replica.Request) {
	p.inFlight -= heavy(q)
	c.heavy -= heavy(q)
}

// ready reports whether a request that was held back may go on.
func (p *pace) ready() bool { return len(p.waiting) > 0 && p.fits(p.waiting[0].heldBack[0]) }

// next returns the request whose turn it is, and its connection. There is one:
// ready says so.
func (p *pace) next() (*conn, *replica.Request) {
	c := p.waiting[0]
	q := c.heldBack[0]
	c.heldBack[0] = nil
	if c.heldBack = c.heldBack[1:]; len(c.heldBack) > 0 && heavy(q) == 0 {
		return c, q // what it holds up to its next heavy request is one turn
	}
	p.waiting[0] = nil
	p.waiting = p.waiting[1:]
	if len(c.heldBack) > 0 {
		p.waiting = append(p.waiting, c)
	} else {
		c.heldBack = nil
	}
	return c, q
}

// forget drops what a connection that has ended has in flight and held back.
func (p *pace) forget(c *conn) {
	p.inFlight -= c.heavy
	c.heavy = 0
	if len(c.heldBack) == 0 {
		return
	}
	c.heldBack = nil
	for i, other := range p.waiting {
		if other == c {
			p.waiting = append(p.waiting[:i], p.waiting[i+1:]...)
			return
		}
	}
}
