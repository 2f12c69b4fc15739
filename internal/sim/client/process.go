package client

import (
	"bellwether/internal/sim/check"
	"bellwether/internal/sim/machine"
	"bellwether/wire"
)

// This file ends, stops and resumes clients. A client's process may be stopped, and its machine
// may be suspended or lose power. The server notices none of these. A process that is resumed
// receives the messages that arrived in the meantime, and its clocks show the present time.

// arrive calls the function do, which stands for something that reaches the process. While
// the process is stopped, the call waits until the process goes on.
func (c *Client) arrive(do func()) {
	if c.stopped {
		c.backlog = append(c.backlog, do)
		return
	}
	do()
}

// after runs do after d µs.
func (c *Client) after(d int64, do func()) {
	c.group.After(d, func() { c.arrive(do) })
}

// Stop stops the process or suspends the machine. A client whose wall clock was once set
// back is never suspended, and the wall clock of a client that was once suspended is never
// set back. With both clocks wrong, a holder could not notice that its time is over.
func (c *Client) Stop(suspend bool) {
	if c.stopped || suspend && c.setBack {
		return
	}
	c.stopped = true
	if suspend {
		c.slept = true
		c.Clock.Suspend(c.group.Now())
	}
	if k, ok := c.Player.(*Candidate); ok && k.holds() {
		c.group.Reach(HolderStopped)
	}
}

// Resume lets the process go on.
func (c *Client) Resume() {
	if !c.stopped {
		return
	}
	c.stopped = false
	if c.Clock.Slept >= 0 {
		c.Clock.Resume(c.group.Now())
		c.group.Reach(ClientSlept)
	}
	backlog := c.backlog
	c.backlog = nil
	for _, do := range backlog {
		c.arrive(do)
	}
}

// SetWall moves the wall clock by some µs.
func (c *Client) SetWall(by int64) {
	switch {
	case by < 0 && c.slept:
		return
	case by < 0:
		c.setBack = true
		c.group.Reach(ClientClockBack)
	case by >= 3600*machine.Second:
		c.group.Reach(ClientClockAhead)
	}
	c.Clock.Offset += by
}

// Jump moves the monotonic clock forward by some µs.
func (c *Client) Jump(by int64) {
	c.group.Reach(ClientJumped)
	c.Clock.Jump(by)
}

// Kill ends the process and starts another one.
func (c *Client) Kill() {
	if c.stopped {
		c.backlog = nil
		c.Resume()
	}
	c.Crash()
}

// Hang makes the client neither read nor send, but keeps its connection. Return ends that.
func (c *Client) Hang() { c.Hung = true }

func (c *Client) Return() {
	if c.Hung {
		c.Hung = false
		c.Drop()
	}
}

// crashesHere crashes the process at the step of its recipe that a scenario has chosen. It
// reports whether it did.
func (c *Client) crashesHere() bool {
	if c.Steps++; c.Steps != c.CrashAt {
		return false
	}
	if c.HangsInstead {
		c.group.Hang(c.ID)
	} else {
		c.group.Kill(c.ID)
	}
	return true
}

// PowerOff ends the machine without closing its connection. The server keeps the
// connection, which has no other end, until the session expires.
func (c *Client) PowerOff() {
	if c.stopped {
		c.backlog = nil
		c.Resume()
	}
	if c.conn != nil && c.conn.Vanish() {
		c.On = false
		c.group.Reach(HalfOpen)
	}
	c.Crash()
	c.group.After(c.group.Random().Below(3*machine.Second), func() { c.On = true })
}

// Crash ends the client's process. Its session is left to expire, and the process that is
// started next knows nothing of it.
func (c *Client) Crash() {
	if c.conn != nil {
		c.conn.Close()
	}
	for _, k := range c.Calls {
		if k.Op != wire.OpPing {
			c.group.See(check.Lost{Request: k.observed()})
		}
	}
	c.Connections++
	c.Calls, c.watches, c.treeWatches, c.conn, c.Attached, c.busy, c.Hung = nil, nil, nil, nil, false, false, false
	c.Session, c.TimeoutMS, c.Seen, c.lastEvent = 0, 0, 0, 0
	if c.Player != nil {
		c.Player.crashed()
	}
	c.later(c.random.Below(machine.Second), c.Connect)
}
