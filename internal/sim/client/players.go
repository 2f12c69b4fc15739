package client

import "bellwether/internal/claim"

// players combines several players of one client into one.
type players []player

func (p players) attached() {
	for _, x := range p {
		x.attached()
	}
}

func (p players) disconnected() {
	for _, x := range p {
		x.disconnected()
	}
}

func (p players) expired() {
	for _, x := range p {
		x.expired()
	}
}

func (p players) proven(at claim.Moment) {
	for _, x := range p {
		x.proven(at)
	}
}

func (p players) crashed() {
	for _, x := range p {
		x.crashed()
	}
}

func (p players) pingsOften() bool {
	for _, x := range p {
		if x.pingsOften() {
			return true
		}
	}
	return false
}

// follower follows the content of one znode as long as its process lives. It never ends,
// because no request of it is refused in a run.
type follower struct {
	Runner
	begin    func() operation
	takeNews func() // takes what the state machine has found out, if anything; called after each step
	m        operation
}

func newFollower(c *Client) *follower {
	f := &follower{}
	f.Runner = Runner{c: c, step: f.step}
	return f
}

func (f *follower) attached() {
	if f.m == nil {
		f.m = f.begin()
	}
	f.step(claim.Attached{Session: f.c.Session})
}

func (f *follower) crashed() {
	f.drop()
	f.m = nil
}

// step passes an event to the state machine and carries out what the machine asks for.
func (f *follower) step(ev claim.Event) {
	m := f.m
	if m == nil {
		return
	}
	m.Step(f.now(), ev)
	rd := m.Ready()
	f.takeNews()
	if m.Over() {
		f.c.group.Fail("Work", "follower %d: %T has %v: %v", f.c.ID, m, m.Outcome(), m.Err())
		return
	}
	f.request(rd.Request)
	f.wake(rd.Wake)
}
