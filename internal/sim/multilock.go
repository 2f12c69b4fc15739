package sim

import (
	"fmt"
	"slices"

	"bellwether/internal/claim"
	"bellwether/internal/claim/lines"
	"bellwether/wire"
)

// locksPath is the znode below which the locks are that are taken together,
// lockCount how many there are.
const (
	locksPath = "/locks"
	lockCount = 3
)

// multiLock is a client that takes some locks together, again and again. It carries
// out what its state machine wants.
type multiLock struct {
	c     *client
	lease claim.Lease
	// session is that of the lease; 0: there is none.
	session wire.SessionID
	m       *lines.Several
	paths   []string // of the locks, in the order in which it names them
	grabs   []*grab  // in the order in which they were begun
	timer   runner
	had     bool // it had all of them
	busy    bool // with its duties: others wait until those before are carried out
	rounds  int  // how often it had all of them
	mark    int  // and how often when faults ended
}

// grab is what it does about one lock: bid after bid until it has it.
type grab struct {
	runner
	g     *multiLock
	path  string
	line  *lines.Line // nil: its bid is gone
	often bool        // pings every tenth of the timeout
	taken bool
	lost  bool // and lost
	told  bool // it is to end
}

// What multi-lock clients do, for the checkers.
type (
	// lockTaken: a lock's term begins.
	lockTaken struct {
		k     *grab
		token wire.Zxid
	}
	// lockProven: its session is proven alive, so that it goes on.
	lockProven struct{ k *grab }
	// allTaken: its state machine says that it has all.
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

// step hands an event to the state machine and does what comes of it; that a
// lock is lost before, which the clock may know alone so far.
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

// carryOut does what is to be done, in order, and what comes of that behind it.
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

// leave gives all up, after a while.
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

// each steps an event in all bids.
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

// crashed: the process that is started next takes locks of its own.
func (g *multiLock) crashed() {
	for _, k := range g.grabs {
		k.drop()
		k.line = nil
	}
	g.timer.drop()
	g.grabs, g.session, g.busy = nil, 0, false
	g.begin()
}

// holds reports whether it may take the lock for its own now.
func (k *grab) holds() bool { return k.line != nil && k.line.Left(k.now()) > 0 }

// stand makes a bid.
func (k *grab) stand() {
	k.line = lines.NewLine(lines.Config{Parent: k.path, ID: fmt.Sprint("multi-lock client ", k.c.id), Nonce: k.c.random.nonce(),
		Rule: lines.Exclusive, Try: k.c.random.chance(5)})
	if k.g.session != 0 {
		k.step(claim.Attached{Session: k.g.session, Lease: k.g.lease})
	}
}

// end gives the lock back, or the attempt up, after a while.
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

// step hands an event to the bid and does what comes of it.
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

// over: the bid is gone. Who had the lock waits until it is to give it back.
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

// gone: nothing is left.
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

// multiLocks are the multi-lock clients of the run.
func (s *Sim) multiLocks() (all []*multiLock) {
	for _, c := range s.clients {
		if g, ok := c.player.(*multiLock); ok {
			all = append(all, g)
		}
	}
	return all
}

// awaitMultiLocks waits until each has had all its locks once more. Others ask for
// nothing meanwhile, so that sessions end.
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
