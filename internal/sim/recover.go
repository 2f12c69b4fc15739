package sim

import (
	"fmt"
	"strings"

	"bellwether/wire"
)

// recoverBound is how long an ensemble may take to be well again once nothing
// fails any more, in µs, beside so many ticks.
const (
	recoverBound = 30 * second
	recoverTicks = 60
)

// recover ends the faults and waits until all is well: one leader, everybody
// serves, every request is answered, all trees are equal.
func (s *Sim) recover() {
	if s.failed != nil {
		return
	}
	s.calm = true
	s.tell("no more faults")
	s.net.heal()
	for _, v := range s.servers {
		v.space, v.slowDisk = -1, 0
		v.restore()
		v.wakeUp()
		v.resume()
	}
	for _, c := range s.clients {
		c.resume()
		c.suffer(Act{Kind: Return})
	}
	for _, v := range s.servers {
		v.moveOver() // what was begun is finished
	}
	s.supervise()
	s.await("one leader, whom all follow, and every client connected", s.allServe)
	s.quiet = true
	s.await("every transaction decided, carried out and gone", s.allSettled)
	s.await("every item taken and done with", s.allHandedIn)
	s.sendHome()
	s.await("nobody waits for an item, and nothing is left of queue and counter", s.allHome)
	s.await("every request answered and all trees equal", s.allEqual)
	if s.failed == nil {
		s.checkRegister()
	}
}

// supervise starts servers that have ended.
func (s *Sim) supervise() {
	for _, v := range s.servers {
		v.start()
	}
	s.after(500*millisecond, s.supervise)
}

// await runs until a condition holds. Not in time: the run has failed.
func (s *Sim) await(what string, holds func() string) {
	bound := s.now + recoverBound + recoverTicks*s.opt.TickMS*millisecond
	for s.failed == nil {
		missing := holds()
		if missing == "" {
			return
		}
		if s.now > bound {
			s.fail("Liveness", "without faults it does not come to this: %s (%s)", what, missing)
			return
		}
		for until := s.now + 100*millisecond; s.now < until && s.step(); {
		}
	}
}

// allServe says what is missing until everybody serves.
func (s *Sim) allServe() string {
	var missing []string
	leader, epoch := wire.NoServer, wire.Epoch(0)
	for _, v := range s.servers {
		if v.up && v.leads() {
			if leader != wire.NoServer {
				missing = append(missing, fmt.Sprintf("servers %d and %d lead", leader, v.id))
			}
			leader, epoch = v.id, v.standing.Epoch
		}
	}
	for _, v := range s.servers {
		switch {
		case v.absent:
		case !v.up:
			missing = append(missing, fmt.Sprintf("server %d is down", v.id))
		case !v.standing.Serving || v.standing.Epoch != epoch:
			missing = append(missing, fmt.Sprintf("server %d does not serve in epoch %d", v.id, epoch))
		}
	}
	for _, c := range s.clients {
		if !c.attached {
			missing = append(missing, fmt.Sprintf("client %d is not connected", c.id))
		}
	}
	return strings.Join(missing, ", ")
}

// allEqual says what is missing until nothing is under way.
func (s *Sim) allEqual() string {
	missing := s.allServe()
	for _, c := range s.clients {
		for _, k := range c.calls {
			if k.op != wire.OpPing {
				missing += fmt.Sprintf(" client %d waits for the answer to %v %s", c.id, k.op, k.path)
			}
		}
	}
	for _, v := range s.servers {
		if v.up && v.seen.zxid < s.history.last().zxid {
			missing += fmt.Sprintf(" server %d is at %v, not at %v", v.id, v.seen.zxid, s.history.last().zxid)
		}
	}
	return missing
}
