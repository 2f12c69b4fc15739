package sim

import (
	"fmt"
	"slices"
	"strings"

	"bellwether/internal/peerwire"
	"bellwether/wire"
)

// These bounds, each a time in µs plus a number of ticks, limit how long an ensemble may
// take after the faults have ended: first until it serves again, and then until writes are
// done. Runs take up to a little more than half of that, because a term that fails at its
// beginning is given up only after ten ticks.
const (
	recoverBound, recoverTicks = 8 * second, 12
	finishBound, finishTicks   = 2 * second, 5
	recipeBound, recipeTicks   = 30 * second, 60 // sessions have to expire before recipes can end
)

// recover ends the faults and waits until the ensemble has recovered: there is one leader,
// every server serves, every request is answered, and all trees are equal.
func (s *Sim) recover() {
	if s.failed != nil {
		return
	}
	s.calm = true
	s.Do(Act{Kind: Calm}) // a run whose faults are given ends at the same time as one with random faults
	s.net.heal()
	for _, v := range s.servers {
		v.space, v.slowDisk = -1, 0
		v.fs.Calm()
		v.freeDisk()
		v.restore()
		v.wakeUp()
		v.resume()
	}
	for _, c := range s.clients {
		c.resume()
		c.suffer(Act{Kind: Return})
	}
	for _, v := range s.servers {
		v.moveOver() // complete the changes of the list that have begun
	}
	s.supervise()
	tick := s.opt.TickMS * millisecond
	s.await("one leader, whom all follow, and every client connected", recoverBound+recoverTicks*tick, s.allServe)
	finish, recipes := finishBound+finishTicks*tick, recipeBound+recipeTicks*tick
	s.endRounds(recipes)
	s.endTenancies(recipes)
	s.awaitMultiLocks(recipes)
	s.quiet = true
	last := map[*client]*call{}
	s.await("every client has a write done", finish, func() string { return s.lastWrites(last) })
	s.await("every transaction decided, carried out and gone", recipes, s.allSettled)
	s.await("every item taken and done with", recipes, s.allHandedIn)
	s.sendHome()
	s.await("nobody waits for an item, and nothing is left of queue and counter", recipes, s.allHome)
	s.await("everybody knows the last configuration and who leads", recipes, s.allInformed)
	s.await("every cache shows the tree", finish, s.allCached)
	s.await("every part owned by whom it is meant for, and every task done", recipes, s.allShared)
	asked, written := s.now, s.history.Last().Zxid
	s.await("every request answered and all trees equal", finish, func() string { return s.allDone(asked, written) })
	if s.failed == nil {
		s.checkRegister()
	}
}

// lastWrites makes each client write a new value, and again if the connection was lost. It
// says which client is not done.
func (s *Sim) lastWrites(last map[*client]*call) (missing string) {
	for _, c := range s.clients {
		k := last[c]
		switch {
		case k != nil && k.done != 0 && k.err == wire.OK:
			continue
		case c.attached && (k == nil || k.done != 0 || !slices.Contains(c.calls, k)):
			last[c] = c.ask(c.making(fmt.Sprintf("/last-%d-%d", c.id, c.xid)))
		}
		missing += fmt.Sprintf(" client %d", c.id)
	}
	return missing
}

// supervise starts servers that have ended.
func (s *Sim) supervise() {
	for _, v := range s.servers {
		v.start()
	}
	s.after(500*millisecond, s.supervise)
}

// await runs until a condition holds. If it does not hold in time, the run fails.
func (s *Sim) await(what string, within int64, holds func() string) {
	bound := s.now + within
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

// allServe says what is missing until every server serves. It returns an empty text if
// nothing is.
func (s *Sim) allServe() string {
	var missing []string
	leader, epoch := peerwire.NoServer, wire.Epoch(0)
	for _, v := range s.servers {
		if v.up && v.leads() {
			if leader != peerwire.NoServer {
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

// allDone says what is missing until every request issued by asked is answered, and every
// transaction up to written is applied. Clients in a line may still wait.
func (s *Sim) allDone(asked int64, written wire.Zxid) string {
	missing := s.allServe()
	for _, c := range s.clients {
		for _, k := range c.calls {
			if k.op != wire.OpPing && k.issued <= asked {
				missing += fmt.Sprintf(" client %d waits for the answer to %v %s", c.id, k.op, k.path)
			}
		}
	}
	for _, v := range s.servers {
		if v.up && v.seen.zxid < written {
			missing += fmt.Sprintf(" server %d is at %v, not at %v", v.id, v.seen.zxid, written)
		}
	}
	return missing
}
