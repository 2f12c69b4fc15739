package server

import (
	"bellwether/internal/fifo"
	"bellwether/internal/replica"
	"bellwether/wire"
)

// The loop needs milliseconds to decode, check and apply a request of heavyMin bytes or
// more; a multi of 20,000 operations takes about 40 ms. At most heavyMax bytes of such
// requests, or one such request, are with the replica at a time, so that other requests
// do not wait for seconds.
const (
	heavyMin = 4 << 10
	heavyMax = 1 << 20
)

// heavyQueue holds heavy requests back until earlier ones are answered. Light requests of other
// connections overtake them; those of the same connection keep their order. Connections
// take turns, with one heavy request each. Only the loop uses it. Invariants: inFlight >=
// 0; a connection is in waiting exactly while its heldBack is not empty.
type heavyQueue struct {
	inFlight int64             // bytes of unanswered heavy requests at the replica
	waiting  fifo.Queue[*conn] // connections with requests held back, in the order of their turns
}

// heavy returns the weight of a request: its size, or 0 for a light one.
func heavy(q *replica.Request) int64 {
	if q.Size < heavyMin {
		return 0
	}
	return q.Size
}

// fits reports whether a request may go to the replica now.
func (p *heavyQueue) fits(q *replica.Request) bool {
	n := heavy(q)
	return n == 0 || p.inFlight == 0 || p.inFlight+n <= heavyMax
}

// hold keeps a request for later unless it may go to the replica now. A ping is never
// held: it does not depend on other requests, and a client closes its connection if pings
// are not answered.
func (p *heavyQueue) hold(c *conn, q *replica.Request) bool {
	if q.Op == wire.OpPing {
		return false
	}
	if c.heldBack.Len() == 0 && p.fits(q) && (heavy(q) == 0 || p.waiting.Len() == 0) {
		return false
	}
	if c.heldBack.Len() == 0 {
		p.waiting.Push(c)
	}
	c.heldBack.Push(q)
	return true
}

// taken records that a request goes to the replica.
func (p *heavyQueue) taken(c *conn, q *replica.Request) {
	p.inFlight += heavy(q)
	c.heavy += heavy(q)
}

// answered records that the replica has answered a request.
func (p *heavyQueue) answered(c *conn, q *replica.Request) {
	p.inFlight -= heavy(q)
	c.heavy -= heavy(q)
}

// ready reports whether a request that is held back may go to the replica.
func (p *heavyQueue) ready() bool {
	c := p.waiting.First()
	return c != nil && p.fits(*(*c).heldBack.First())
}

// next removes and returns the next request and its connection. It may be called only if
// ready returns true.
func (p *heavyQueue) next() (*conn, *replica.Request) {
	c := *p.waiting.First()
	q := c.heldBack.Pop()
	if c.heldBack.Len() > 0 && heavy(q) == 0 {
		return c, q // the light requests before the next heavy one belong to the same turn
	}
	p.waiting.Pop()
	if c.heldBack.Len() > 0 {
		p.waiting.Push(c)
	} else {
		c.heldBack = fifo.Queue[*replica.Request]{} // an idle connection keeps no memory for it
	}
	return c, q
}

// forget drops the requests of a connection that has ended.
func (p *heavyQueue) forget(c *conn) {
	p.inFlight -= c.heavy
	c.heavy = 0
	if c.heldBack.Len() == 0 {
		return
	}
	c.heldBack = fifo.Queue[*replica.Request]{}
	p.waiting.RemoveFunc(func(other *conn) bool { return other == c })
}
