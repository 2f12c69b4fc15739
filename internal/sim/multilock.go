package sim

import (
	"fmt"
	"slices"

	"bellwether/internal/claim"
	"bellwether/internal/claim/lines"
	"bellwether/wire"
)

// locksPath is the znode that contains the locks which clients take together. lockCount is
// how many there are.
const (
	locksPath = "/locks"
	lockCount = 3
)

// multiLock is a client that takes some locks together, again and again. It carries out
// what its state machine asks for.
//
// Its grabs are in the order in which they began. While busy is true, no other call
// carries out duties, so duties never overlap.
type multiLock struct {
	c     *client
	lease claim.Lease
	// session is the session for which the lease is held; 0: there is none.
	session wire.SessionID
	m       *lines.Several
	paths   []string // the locks, in the order in which the client names them
	grabs   []*grab  // in the order in which they began
	timer   runner
	had     bool // it had all its locks
	busy    bool // it is carrying out duties: later ones wait
	rounds  int  // how often it had all its locks
	mark    int  // the value of rounds when the faults ended
}

// grab takes one lock: it makes bid after bid until it has the lock.
type grab struct {
	runner
	g     *multiLock
	path  string
	line  *lines.Line // nil: the bid is gone
	often bool        // it pings every tenth of the timeout
	taken bool
	lost  bool // the lock was lost after it was taken
	told  bool // the state machine has asked for its end
}

// Observations of multi-lock clients, for the checkers.
type (
	// lockTaken says that the term of a lock begins.
	lockTaken struct {
		k     *grab
		token wire.Zxid
	}
	// lockProven says that the session was proven alive, which prolongs the term.
	lockProven struct{ k *grab }
	// allTaken says that the state machine reports to have all locks.
	allTaken struct{ g *multiLock }
)

func newMultiLock(c *client) *multiLock {
	g := &multiLock{c: c}
	g.timer = runner{c: c, step: g.step}
	g.begin()
	return g
}

// begin takes two of the locks, or all.
func (g *multiLock) begin() {
	g.paths, g.had = nil, false
	for _, i := range g.c.random.shuffled(lockCount)[:g.c.random.between(2, lockCount)] {
		g.paths = append(g.paths, fmt.Sprint(locksPath, "/", i))
	}
	g.m = lines.NewSeveral(g.paths)
	g.carryOut()
}

// step passes an event to the state machine and carries out what it asks for. Before that,
// it reports each lock that is lost: so far only the clock may know.
func (g *multiLock) step(ev claim.Event) {
	for _, k := range g.grabs {
		if k.taken && !k.lost && !k.told && !k.holds() {
			k.lost = true
			g.m.Step(claim.Moment{}, lines.LockLost{Path: k.path})
		}
	}
	g.m.Step(claim.Moment{}, ev)
	g.carryOut()
}

// carryOut carries out the duties in order. Duties that arise meanwhile come after them.
func (g *multiLock) carryOut() {
	if g.busy {
		return
	}
	g.busy = true
	for ops := g.m.Ready().Start; len(ops) > 0; ops = g.m.Ready().Start {
		for _, op := range ops {
			g.do(op)
		}
	}
	g.busy = false
	switch {
	case g.m.Over():
		g.timer.soon(500*millisecond, g.begin)
	case g.m.Held() && !g.had:
		g.had = true
		g.rounds++
		g.c.sim.tell("multi-lock client %d has %v", g.c.id, g.paths)
		g.c.sim.see(allTaken{g})
		g.leave(2 * second)
	case g.had && !g.m.Held():
		g.leave(100 * millisecond)
	}
}

// leave gives all locks up after a while.
func (g *multiLock) leave(within int64) {
	m := g.m
	g.timer.soon(within, func() {
		if g.m == m && !m.Over() {
			g.step(claim.Resign{})
		}
	})
}

func (g *multiLock) do(op claim.Op) {
	if op.Kind == claim.OpTake {
		k := &grab{g: g, path: op.Path}
		k.runner = runner{c: g.c, step: k.step}
		g.grabs = append(g.grabs, k)
		k.stand()
		return
	}
	for _, k := range g.grabs {
		if k.path == op.Path {
			k.end()
		}
	}
}

// each passes an event to all bids.
func (g *multiLock) each(ev claim.Event) {
	for _, k := range slices.Clone(g.grabs) {
		k.step(ev)
	}
}

func (g *multiLock) attached() {
	g.c.prove(&g.lease, func() {
		g.session = g.c.session
		g.each(claim.Attached{Session: g.session, Lease: g.lease})
	})
}

func (g *multiLock) disconnected() { g.session = 0; g.each(claim.Disconnected{}) }
func (g *multiLock) expired()      { g.session = 0; g.each(claim.Expired{}) }

func (g *multiLock) proven(at claim.Moment) {
	g.lease.Sent = at
	for _, k := range slices.Clone(g.grabs) {
		k.step(claim.Confirmed{Lease: g.lease})
		if k.holds() {
			g.c.sim.see(lockProven{k})
		}
	}
}

func (g *multiLock) eager() bool {
	return slices.ContainsFunc(g.grabs, func(k *grab) bool { return k.often })
}

// crashed drops everything: the next process takes locks of its own.
func (g *multiLock) crashed() {
	for _, k := range g.grabs {
		k.drop()
		k.line = nil
	}
	g.timer.drop()
	g.grabs, g.session, g.busy = nil, 0, false
	g.begin()
}

// holds reports whether the client may consider the lock its own now.
func (k *grab) holds() bool { return k.line != nil && k.line.Left(k.now()) > 0 }

// stand makes a bid.
func (k *grab) stand() {
	k.line = lines.NewLine(lines.Config{Parent: k.path, ID: fmt.Sprint("multi-lock client ", k.c.id), Nonce: k.c.random.nonce(),
		Rule: lines.Exclusive, Try: k.c.random.chance(5)})
	if k.g.session != 0 {
		k.step(claim.Attached{Session: k.g.session, Lease: k.g.lease})
	}
}

// end releases the lock, or gives the attempt up, after a while.
func (k *grab) end() {
	k.told = true
	k.soon(30*millisecond, func() {
		if k.line == nil {
			k.gone()
		} else {
			k.step(claim.Resign{})
		}
	})
}

// step passes an event to the bid and carries out what the bid asks for.
func (k *grab) step(ev claim.Event) {
	line := k.line
	if line == nil {
		return
	}
	line.Step(k.now(), ev)
	rd, st := line.Ready(), line.State()
	k.often = rd.KeepAlive
	for _, h := range rd.Happenings {
		if h, leads := h.(lines.Leads); leads {
			k.taken = true
			k.c.sim.see(lockTaken{k, h.Token})
			k.g.step(lines.LockTaken{Path: k.path})
		}
	}
	if k.taken && !k.lost && !k.told && st.Phase > lines.Leading {
		k.lost = true
		k.g.step(lines.LockLost{Path: k.path})
	}
	k.ask(rd.Request)
	switch {
	case k.line != line:
	case st.Phase != lines.Done:
		k.wake(rd.Wake)
	default:
		k.over(st)
	}
}

// over handles the end of a bid. A client that had the lock waits until it must release the
// lock.
func (k *grab) over(st lines.State) {
	k.line = nil
	k.soon(20*millisecond, func() {
		switch {
		case k.told, !k.taken && st.Reason == claim.Occupied:
			k.gone()
		case k.taken:
		case st.Reason.Passing():
			k.stand()
		default:
			k.c.sim.fail("Several", "multi-lock client %d cannot have %s: %v: %v", k.c.id, k.path, st.Reason, st.Err)
		}
	})
}

// gone reports the end of the grab to the state machine.
func (k *grab) gone() {
	i := slices.Index(k.g.grabs, k)
	if i < 0 {
		return
	}
	k.drop()
	k.g.grabs = slices.Delete(k.g.grabs, i, i+1)
	if k.taken {
		k.g.step(lines.LockGone{Path: k.path})
	} else {
		k.g.step(lines.LockRefused{Path: k.path})
	}
}

// multiLocks returns the multi-lock clients of the run.
func (s *Sim) multiLocks() (all []*multiLock) {
	for _, c := range s.clients {
		if g, ok := c.player.(*multiLock); ok {
			all = append(all, g)
		}
	}
	return all
}

// awaitMultiLocks waits until each client has had all its locks once more. Other clients
// send no requests meanwhile, so that sessions expire.
func (s *Sim) awaitMultiLocks(within int64) {
	for _, g := range s.multiLocks() {
		s.idle = true
		g.mark = g.rounds
	}
	s.await("everybody has all the locks that it takes together", within, func() (missing string) {
		for _, g := range s.multiLocks() {
			if g.rounds == g.mark {
				missing += fmt.Sprintf(" multi-lock client %d waits for %v", g.c.id, g.paths)
			}
		}
		return missing
	})
}
