package sim

// This file stops and resumes clients. A client's process may be stopped, and its machine
// may be suspended or lose power. The server notices none of these. A process that goes on
// finds the messages that arrived in the meantime, and it reads its clocks as they stand
// then.

// arrive calls the function do, which stands for something that reaches the process. While
// the process is stopped, the call waits until the process goes on.
func (c *client) arrive(do func()) {
	if c.stopped {
		c.backlog = append(c.backlog, do)
		return
	}
	do()
}

// after runs do after d µs.
func (c *client) after(d int64, do func()) {
	c.sim.after(d, func() { c.arrive(do) })
}

// stop stops the process or suspends the machine. A client whose wall clock was once set
// back is never suspended, and the wall clock of a client that was once suspended is never
// set back. With both clocks wrong, a holder could not notice that its time is over.
func (c *client) stop(suspend bool) {
	if c.stopped || suspend && c.setBack {
		return
	}
	c.stopped = true
	if suspend {
		c.slept = true
		c.clock.suspend(c.sim.now)
	}
	if k, ok := c.player.(*candidate); ok && k.holds() {
		c.sim.reach(situationHolderStopped)
	}
}

// resume lets the process go on.
func (c *client) resume() {
	if !c.stopped {
		return
	}
	c.stopped = false
	if c.clock.slept >= 0 {
		c.clock.resume(c.sim.now)
		c.sim.reach(situationClientSlept)
	}
	backlog := c.backlog
	c.backlog = nil
	for _, do := range backlog {
		c.arrive(do)
	}
}

// setWall moves the wall clock by some µs.
func (c *client) setWall(by int64) {
	switch {
	case by < 0 && c.slept:
		return
	case by < 0:
		c.setBack = true
		c.sim.reach(situationClientClockBack)
	}
	c.clock.offset += by
}

// powerOff ends the machine without closing its connection. The server keeps the
// connection, which has no other end, until the session expires.
func (c *client) powerOff() {
	if c.stopped {
		c.backlog = nil
		c.resume()
	}
	if c.cord != nil && c.cord.ends[0].open {
		c.cord.vanish(0)
		c.on = false
		c.sim.reach(situationHalfOpen)
	}
	c.crash()
	c.sim.after(c.sim.random.below(3*second), func() { c.on = true })
}
