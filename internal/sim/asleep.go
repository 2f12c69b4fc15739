package sim

// A client's process may be stopped, and its machine suspended or without
// power: its server hears nothing of that. A process that goes on finds all
// that has come meanwhile, and its clocks where they are.

// arrive does something that reaches the process; while it is stopped, when it
// goes on.
func (c *client) arrive(do func()) {
	if c.stopped {
		c.backlog = append(c.backlog, do)
		return
	}
	do()
}

// after does something in a while.
func (c *client) after(d int64, do func()) {
	c.sim.after(d, func() { c.arrive(do) })
}

// stop stops the process, or suspends the machine. A wall clock that was set
// back and a monotonic one that stands leave a holder nothing to go by, so that
// a client suffers the one or the other.
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

// setWall has the wall clock jump.
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

// powerOff ends the machine without a word: its server keeps a connection that
// nobody is at the other end of, until the session expires.
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
