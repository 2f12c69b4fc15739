package sim

import (
	"bellwether/internal/claim"
)

// parts are several players of one client.
type parts []player

func (p parts) attached() {
	for _, x := range p {
		x.attached()
	}
}

func (p parts) disconnected() {
	for _, x := range p {
		x.disconnected()
	}
}

func (p parts) expired() {
	for _, x := range p {
		x.expired()
	}
}

func (p parts) proven(at claim.Moment) {
	for _, x := range p {
		x.proven(at)
	}
}

func (p parts) crashed() {
	for _, x := range p {
		x.crashed()
	}
}

func (p parts) eager() bool {
	for _, x := range p {
		if x.eager() {
			return true
		}
	}
	return false
}

// follower follows the content of one znode as long as its process lives. It never ends,
// because no request of it is refused in a run.
type follower struct {
	runner
	begin func() operation
	look  func() // takes the news, if there are any
	m     operation
}

func newFollower(c *client) *follower {
	f := &follower{}
	f.runner = runner{c: c, step: f.step}
	return f
}

func (f *follower) attached() {
	if f.m == nil {
		f.m = f.begin()
	}
	f.step(claim.Attached{Session: f.c.session})
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
	f.look()
	if m.Over() {
		f.c.sim.fail("Work", "follower %d: %T has %v: %v", f.c.id, m, m.Outcome(), m.Err())
		return
	}
	f.ask(rd.Request)
	f.wake(rd.Wake)
}
