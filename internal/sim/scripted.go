package sim

import (
	"bellwether/internal/sim/client"
	"bellwether/internal/sim/machine"
)

// This file plays runs in which a scenario or a recording decides what happens.

// RunUntil plays events until a condition holds, for at most within µs. It reports whether
// the condition holds and no rule is broken.
func (s *Sim) RunUntil(holds func() bool, within int64) bool {
	for end := s.now + within; !holds(); {
		if s.now > end || !s.step() {
			return false
		}
	}
	return s.failed == nil
}

// Failed returns the rule that was broken; nil: none is.
func (s *Sim) Failed() error {
	if s.failed == nil {
		return nil
	}
	return s.failed
}

// RunFor plays events for d µs.
func (s *Sim) RunFor(d int64) bool {
	end := s.now + d
	return s.RunUntil(func() bool { return s.now >= end }, d+machine.Second)
}

// scripted adds a client that does nothing by itself and connects only to the given server;
// nil: to any server.
func (s *Sim) scripted(only *server) *client.Client {
	c := s.clients.Add(s.random.Fork())
	c.Scripted = true
	if only != nil {
		c.Only = only.id
	}
	c.Clock = machine.NewClock(0)
	s.net.add(&c.Host)
	c.Connect()
	return c
}
