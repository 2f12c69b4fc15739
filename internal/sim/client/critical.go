package client

import (
	"bellwether/internal/sim/machine"
	"bellwether/wire"
)

// This file holds what careless clients do in critical moments, when the simulation tells them to.

// LastPing makes the client send a ping and, when that is answered, end its connection and stay away for longer than
// its session lives.
func (c *Client) LastPing() {
	if !c.napping || c.Player != nil || len(c.Calls) > 0 {
		return
	}
	session := c.Session
	c.napUntil = c.group.Now() + 2*int64(c.timeout())*machine.Millisecond
	c.Send(&Call{Op: wire.OpPing, Then: func(r *Response) {
		if r != nil && c.Session == session {
			c.awayUntil = c.group.Now() + int64(c.timeout())*machine.Millisecond + 2*c.group.Settings().TickMS*machine.Millisecond
			c.after(0, func() {
				if c.Session == session && c.Attached {
					c.Drop()
				}
			})
		}
	}})
}

// WriteNow makes the client send a write, if it can.
func (c *Client) WriteNow() {
	c.after(0, func() {
		if c.Attached && !c.Hung && c.conn != nil && c.Player == nil {
			c.create("/n4", wire.FlagPersistent)
		}
	})
}

// twin connects a second time to the server without a quorum on which the session of a reader lives, and leaves the
// first connection open for a while.
func (c *Client) twin(d *machine.Random) {
	old := c.conn
	c.again, c.resumes = c.At, true
	c.conn = nil // Drop does not close the connection
	c.Drop()
	c.group.After(d.Between(100*machine.Millisecond, 2*machine.Second), old.Close)
}

// twins asks the server on which a local session lives for the session on two connections at once.
func (c *Client) twins(d *machine.Random) {
	c.leaving = func() {
		c.after(0, func() {
			if c.conn != nil && !c.Attached && !c.Hung {
				c.twin(d)
				c.Connect()
			}
		})
	}
	c.twin(d)
}

// hop begins a new session on a server that lacks nothing but the last transaction that the client has seen. The old
// session is left to expire.
func (c *Client) hop() {
	d := c.oddities()
	if !c.hops || d == nil || !c.Attached || c.Hung || c.group.Behind(c.Seen) == 0 || c.group.Now() < c.hopsFrom {
		return
	}
	c.hopsFrom = c.group.Now() + 500*machine.Millisecond
	c.renew()
	c.Drop()
	c.again = c.group.Behind(c.Seen)
	c.Connect()
}
