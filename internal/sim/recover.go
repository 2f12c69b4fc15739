package sim

import (
	"fmt"
	"slices"
	"strings"

	"bellwether/internal/peerwire"
	"bellwether/internal/sim/client"
	"bellwether/internal/sim/machine"
	"bellwether/wire"
)

// These bounds, each a time in µs plus a number of ticks, limit how long an ensemble may take
// after the faults have ended: recoverBound until it serves again, then finishBound until writes
// are done, and recipeBound until a recipe has ended. Runs take up to a little more than half of
// that, because a term that fails at its beginning is given up only after ten ticks. They hold for
// sessions of at most sessionTicksShort; with longer ones, clients find out later that a connection is
// dead, and a recipe waits longer for the sessions of the dead.
const (
	recoverBound, recoverTicks = 8 * machine.Second, 12
	finishBound, finishTicks   = 2 * machine.Second, 5
	recipeBound, recipeTicks   = 30 * machine.Second, 60 // sessions have to expire before recipes can end
)

// sessionTicksShort is the longest session timeout for which the bounds hold as they are.
const sessionTicksShort = 8

// longer returns by how many ticks the session timeout is longer than the bounds allow for.
func (s *Sim) longer() int64 { return max(0, int64(s.opt.SessionTicks)-sessionTicksShort) }

// expiryTicks returns how many ticks the ends of all sessions may take in addition if epochs are short: each leader waits for the
// session timeout anew, and can then end only as many sessions as its epoch has counters that clients do not use to move to it.
func (s *Sim) expiryTicks() int64 {
	l := s.leader()
	if l == nil || !s.shortEpochs() {
		return 0
	}
	n := int64(0)
	l.tree.Sessions(func(wire.SessionID, int32) { n++ })
	return n / max(1, int64(s.opt.CounterMax)-int64(len(s.clients.All))) * int64(s.opt.SessionTicks)
}

// recoverWithin returns how long the ensemble may take until it serves again, in µs.
func (s *Sim) recoverWithin() int64 {
	return recoverBound + (recoverTicks+s.longer())*s.opt.TickMS*machine.Millisecond
}

// recover ends the faults and waits until the ensemble has recovered: there is one leader,
// every server serves, every request is answered, and all trees are equal.
func (s *Sim) recover() {
	if s.ended() {
		return
	}
	s.calm = true
	s.Do(Act{Kind: Calm}) // record when the faults end, so that a run whose faults are given ends them at the same time
	s.healAll()
	for _, c := range s.clients.All {
		c.Resume()
		clientFault(c, Act{Kind: Return})
	}
	for _, v := range s.servers {
		v.moveOver() // complete the changes of the list that have begun
		if v.leaving {
			v.kill()
		}
	}
	s.supervise()
	if s.waitsForHistory() {
		return
	}
	if s.opt.Reconfig > 0 { // a change in doubt may need servers that would keep a lasting fault
		s.await("no membership is in doubt, and all servers serve", s.recoverWithin(), s.allCertain)
	}
	lasted := s.endure(steadyTime)
	s.healAll()
	tick := s.opt.TickMS * machine.Millisecond
	within := s.recoverWithin()
	if s.opt.Compatible > 0 {
		within += lasted // TCP resends after growing pauses, and ZooKeeper's servers keep such a connection
	}
	s.await("there is one leader, all servers follow it, and every client is connected", within, s.allServe)
	finish, recipes := finishBound+(finishTicks+s.longer())*tick, recipeBound+(recipeTicks+7*s.longer()+s.expiryTicks())*tick
	s.finishDoubleBarriers(recipes)
	s.finishRegistrations(recipes)
	s.finishMultiLocks(recipes)
	s.finishClaims(recipes)
	s.quiet = true
	last := map[*client.Client]*client.Call{}
	s.await("every client has written once more", finish, func() string { return s.lastWrites(last) })
	s.await("every transaction is decided, carried out and removed", recipes, s.clients.TransactionsLeft)
	s.await("every item is taken and acknowledged", recipes, s.clients.ItemsLeft)
	s.clients.EndWork()
	s.await("no consumer waits for an item, and nothing is left of queue and counter", recipes, s.clients.WorkLeft)
	s.await("every announcer knows the last configuration and the leader", recipes, s.clients.Uninformed)
	s.await("every cache shows the tree", finish, s.clients.CachesBehind)
	s.await("every part is owned by the member to which it is assigned, and every task is done", recipes, s.clients.PartsMissing)
	asked, written := s.now, s.history.Last().Zxid
	s.await("every request is answered and all trees are equal", finish, func() string { return s.allDone(asked, written) })
	s.await("every server whose history has a hole has got another tree, or raises an alarm", finish, s.holesNoticed)
	s.rest()
	s.spoilTree()
	if !s.ended() {
		if wrong := s.register.Explained(); wrong != "" {
			s.fail(s.register.Name(), "%s", wrong)
		}
	}
}

// rest lets clients only read for longer than their sessions would live otherwise, while one client vanishes without
// closing its connection. No session that is in use may expire, and Expiry checks that the session of the vanished
// client does.
func (s *Sim) rest() {
	if s.ended() || s.opt.Careless < 0 || s.opt.SessionTicks > sessionTicksShort || s.opt.LocalSessions > 0 { // a local session ends when its client goes to another server
		return
	}
	s.reach(situationRest)
	long := int64(s.opt.SessionTicks+12)*s.opt.TickMS*machine.Millisecond + machine.Second
	vanished := false
	for _, c := range s.clients.All {
		switch {
		case c.Player != nil || c.Reader || !c.Attached:
		case !vanished:
			vanished = true
			c.PowerOff()
		default:
			c.Rest(s.now + long)
		}
	}
	for until := s.now + long; s.now < until && s.step(); {
	}
}

// healAll ends all faults of the network, the disks and the processes.
func (s *Sim) healAll() {
	s.net.heal()
	for _, v := range s.servers {
		v.space, v.slowDisk, v.slowSnap = -1, 0, 0
		v.fs.CancelFaults()
		v.fs.EndLie()
		v.freeDisk()
		v.restore()
		v.wakeUp()
		v.resume()
	}
}

// lastWrites makes each client write a new value, and again if the connection was lost. It
// says which client is not done.
func (s *Sim) lastWrites(last map[*client.Client]*client.Call) (missing string) {
	for _, c := range s.clients.All {
		k := last[c]
		switch {
		case k != nil && k.Done != 0 && k.Err == wire.OK:
			continue
		case len(s.sick) > 0 && c.Attached && c.NoQuorum: // it stays at a read-only server, because simulated clients look for no other one
			continue
		case c.Attached && (k == nil || k.Done != 0 || !slices.Contains(c.Calls, k)):
			last[c] = c.Ask(c.Creation(fmt.Sprintf("/last-%d-%d", c.ID, c.Xid)))
		}
		missing += fmt.Sprintf(" client %d", c.ID)
	}
	return missing
}

// supervise starts servers that have ended, except those that must stay dead, and replaces the disks of those that cannot
// take part before the next election, because they have promised a later epoch: their epoch files have decayed, or a leader that
// proposed it has failed at once.
func (s *Sim) supervise() {
	for _, v := range s.servers {
		v.replaceAhead()
		if s.opt.Lasting != Dead || !slices.Contains(s.sick, v) {
			v.start()
		}
	}
	s.after(500*machine.Millisecond, s.supervise)
}

// await runs until a condition holds. If it does not hold in time, the run fails.
func (s *Sim) await(what string, within int64, holds func() string) {
	bound := s.now + within
	for !s.ended() {
		missing := holds()
		if missing == "" {
			return
		}
		if s.now > bound {
			s.fail("Liveness", "this is not reached although the faults have ended: %s (%s)", what, missing)
			return
		}
		for until := s.now + 100*machine.Millisecond; s.now < until && s.step(); {
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
	for _, c := range s.clients.All {
		if !c.Attached {
			missing = append(missing, fmt.Sprintf("client %d is not connected", c.ID))
		}
	}
	return strings.Join(missing, ", ")
}

// allCertain says what is missing until every server serves and knows that its membership
// is committed.
func (s *Sim) allCertain() string {
	missing := s.allServe()
	for _, v := range s.servers {
		if v.proposed != nil {
			missing += fmt.Sprintf(" server %d doubts version %x", v.id, v.proposed.Version())
		}
	}
	return missing
}

// allDone says what is missing until every request issued by asked is answered, and every
// transaction up to written is applied. Clients in a line may still wait.
func (s *Sim) allDone(asked int64, written wire.Zxid) string {
	missing := s.allServe()
	for _, c := range s.clients.All {
		for _, k := range c.Calls {
			if k.Op != wire.OpPing && k.Issued <= asked {
				missing += fmt.Sprintf(" client %d waits for the answer to %v %s", c.ID, k.Op, k.Path)
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

// finishDoubleBarriers brings a double barrier to its end. It checks that no living member waits for a
// dead one, that every member enters and leaves, and that nothing stays.
//
// Other clients send no requests in the meantime, because their traffic could prevent
// sessions from expiring. A new leader gives every session its full timeout again, and
// traffic can use up the counter of an epoch, and so cause a change of leaders, in less
// than that.
func (s *Sim) finishDoubleBarriers(within int64) {
	if !s.clients.HasMembers() {
		return
	}
	s.idle = true
	s.await("no znode of a dead member is left below the double barrier", within, s.clients.DeadAtGate)
	s.clients.BeginRounds()
	s.await("every member has entered and left the double barrier", within, s.clients.RoundsMissing)
	s.quiet = true
	s.await("the double barrier is empty", within, s.clients.EmptyGate)
}

// finishRegistrations brings the registrations to their end. At each place one registration stands
// with the last data that it should hold. When it leaves, the next one stands, and in the
// end nothing stays. Other clients send no requests meanwhile, so that sessions expire.
func (s *Sim) finishRegistrations(within int64) {
	if !s.clients.HasRegistrants() {
		return
	}
	s.idle = true
	s.await("a registration stands at every place", within, s.clients.PlacesMissing)
	s.clients.RenewAll()
	s.await("one registrant after the other has registered at every place, and then none", within, s.clients.VacatePlaces)
}

// finishClaims waits until each candidate has had a term once more, so that no bid waits for nothing. Other clients send
// no requests meanwhile, so that sessions expire. With long sessions that takes too long.
func (s *Sim) finishClaims(within int64) {
	if s.opt.SessionTicks > sessionTicksShort || !s.clients.BeginClaimRounds() {
		return
	}
	s.idle = true
	s.await("every candidate has had a term", within, s.clients.ClaimsMissing)
	s.clients.EndClaimRounds()
}

// finishMultiLocks waits until each client has had all its locks once more. Other clients
// send no requests meanwhile, so that sessions expire.
func (s *Sim) finishMultiLocks(within int64) {
	if s.clients.BeginLockRounds() {
		s.idle = true
	}
	s.await("every multi-lock client has had all its locks", within, s.clients.LocksMissing)
}
