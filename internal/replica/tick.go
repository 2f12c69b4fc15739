package replica

import (
	"fmt"

	"bellwether/internal/tree"
	"bellwether/wire"
)

// TickLate: the process did not run for a while, or the machine slept.
type TickLate struct{ GapMS int64 }

func (h TickLate) String() string {
	return fmt.Sprintf("nothing ran for %dms; sessions get one more tick to be heard", h.GapMS)
}

// lateTicks is how many ticks may pass between two Tick events before the
// clients' waiting packets get a chance to be read first: for one tick nothing
// expires then.
const lateTicks = 2

// tick does what time alone demands.
func (r *Replica) tick() {
	if r.member != nil {
		r.wake()
		r.yield()
		r.zabReady() // the touches that came before this tick count
	}
	gap := r.now.Mono - r.lastTick
	r.lastTick = r.now.Mono
	if gap > lateTicks*r.opt.TickMS {
		r.happened(TickLate{gap})
		r.grace = r.now.Mono + r.opt.TickMS
		return
	}
	if r.now.Mono >= r.grace {
		r.expireLocals()
	}
	if r.member != nil && r.member.leader != nil {
		r.member.gone.age(r.now.Mono, r.member.leader.LagMax())
	}
	if !r.decides() || r.handsOver() || r.alone != nil && r.alone.full {
		return // closeSession cannot be logged: nothing expires
	}
	if r.now.Mono >= r.grace {
		r.expire(r.expiry.Due(r.now.Mono))
	}
	r.sweepContainers(gap)
}

// expire proposes to close the sessions whose deadline has passed.
func (r *Replica) expire(due []wire.SessionID) {
	for _, id := range due {
		timeout, ok := r.tree.Session(id)
		if !ok {
			continue
		}
		if c := r.owners[id]; c != nil {
			timeout = c.timeout
		}
		r.happened(SessionExpired{id, timeout})
		r.ending[id] = true
		r.propose(tree.Request{Session: id, Op: wire.OpCloseSession})
	}
}

// expireNow is expire of a session whose deadline has not passed.
func (r *Replica) expireNow(id wire.SessionID) {
	if r.locals.has(id) {
		r.happened(SessionExpired{id, r.locals.open[id].timeoutMS})
		r.closeLocal(id)
		return
	}
	if r.decides() && !r.handsOver() && r.lives(id) && (r.alone == nil || !r.alone.full) {
		r.expiry.Remove(id)
		r.expire([]wire.SessionID{id})
	}
}

// sweep is the state of removing containers and TTL znodes.
type sweep struct {
	next  int64    // Mono of the next look through the tree
	due   []string // found and not proposed yet
	owing int64    // part of the allowance left over, in ms times the rate
}

// sweepContainers proposes to delete containers and TTL znodes that are due,
// as many as the rate allows for the time that has passed.
func (r *Replica) sweepContainers(gapMS int64) {
	s := &r.sweep
	if len(s.due) == 0 {
		s.owing = 0
		if r.now.Mono < s.next {
			return
		}
		s.next = r.now.Mono + r.opt.ContainerCheckMS
		s.due = r.tree.DueContainers(r.now.Wall)
	}
	s.owing += gapMS * r.opt.ContainersPerMinute
	n := min(s.owing/60_000, int64(len(s.due)))
	s.owing -= n * 60_000
	for _, p := range s.due[:n] {
		path := wire.PathRequest{Path: p}
		r.propose(tree.Request{Op: wire.OpDeleteContainer, Body: wire.Append(nil, &path)})
	}
	s.due = s.due[n:]
}
