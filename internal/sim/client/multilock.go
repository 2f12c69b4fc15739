package client

import (
	"fmt"
	"slices"

	"bellwether/internal/claim"
	"bellwether/internal/claim/lines"
	"bellwether/internal/sim/check"
	"bellwether/internal/sim/machine"
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
// Its attempts are in the order in which they began. While busy is true, no other call
// carries out duties, so duties never overlap.
type multiLock struct {
	c     *Client
	lease claim.Lease
	// session is the session for which the lease is held; 0: there is none.
	session      wire.SessionID
	m            *lines.MultiLock
	paths        []string       // the locks, in the order in which the client names them
	attempts     []*lockAttempt // in the order in which they began
	timer        Runner
	hadAll       bool // it had all its locks
	busy         bool // it is carrying out duties: later ones wait
	rounds       int  // how often it had all its locks
	roundsBefore int  // the value of rounds when the faults ended
	attempted    int  // attempts so far
}

// lockAttempt takes one lock: it makes bid after bid until it has the lock.
type lockAttempt struct {
	Runner
	g         *multiLock
	path      string
	line      *lines.Line // nil: the bid is gone
	keepAlive bool        // it pings every tenth of the timeout
	taken     bool
	lost      bool // the lock was lost after it was taken
	mustEnd   bool // the state machine has asked to end this attempt
	number    int  // among the attempts of the client
}

func newMultiLock(c *Client) *multiLock {
	g := &multiLock{c: c}
	g.timer = Runner{c: c, step: g.step}
	g.begin()
	return g
}

// begin takes two of the locks, or all.
func (g *multiLock) begin() {
	g.paths, g.hadAll = nil, false
	for _, i := range g.c.random.Shuffled(lockCount)[:g.c.random.Between(2, lockCount)] {
		g.paths = append(g.paths, fmt.Sprint(locksPath, "/", i))
	}
	g.m = lines.NewMultiLock(g.paths)
	g.carryOut()
}

// step passes an event to the state machine and carries out what it asks for. Before that, it
// reports each lock that was lost because its time is over. The state machine does not know of
// such a lock yet.
func (g *multiLock) step(ev claim.Event) {
	for _, k := range g.attempts {
		if k.taken && !k.lost && !k.mustEnd && !k.holds() {
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
		g.timer.soon(500*machine.Millisecond, g.begin)
	case g.m.Held() && !g.hadAll:
		g.hadAll = true
		g.rounds++
		g.c.group.Tell("multi-lock client %d has %v", g.c.ID, g.paths)
		g.c.group.See(check.AllTaken{Client: g.c.ID, Paths: g.paths, Held: g.held()})
		g.releaseLater(2 * machine.Second)
	case g.hadAll && !g.m.Held():
		g.releaseLater(100 * machine.Millisecond)
	}
}

// releaseLater gives all locks up after a while.
func (g *multiLock) releaseLater(within int64) {
	m := g.m
	g.timer.soon(within, func() {
		if g.m == m && !m.Over() {
			g.step(claim.Resign{})
		}
	})
}

func (g *multiLock) do(op claim.Op) {
	if op.Kind == claim.OpTake {
		g.attempted++
		k := &lockAttempt{g: g, number: g.attempted, path: op.Path}
		k.Runner = Runner{c: g.c, step: k.step}
		g.attempts = append(g.attempts, k)
		k.bid()
		return
	}
	for _, k := range g.attempts {
		if k.path == op.Path {
			k.end()
		}
	}
}

// each passes an event to all bids.
func (g *multiLock) each(ev claim.Event) {
	for _, k := range slices.Clone(g.attempts) {
		k.step(ev)
	}
}

func (g *multiLock) attached() {
	g.c.prove(&g.lease, func() {
		g.session = g.c.Session
		g.each(claim.Attached{Session: g.session, Lease: g.lease})
	})
}

func (g *multiLock) disconnected() { g.session = 0; g.each(claim.Disconnected{}) }
func (g *multiLock) expired()      { g.session = 0; g.each(claim.Expired{}) }

func (g *multiLock) proven(at claim.Moment) {
	g.lease.Sent = at
	for _, k := range slices.Clone(g.attempts) {
		k.step(claim.Confirmed{Lease: g.lease})
		if k.holds() {
			g.c.group.See(check.LockProven{Lock: k.observed()})
		}
	}
}

func (g *multiLock) pingsOften() bool {
	return slices.ContainsFunc(g.attempts, func(k *lockAttempt) bool { return k.keepAlive })
}

// crashed drops everything: the next process takes locks of its own.
func (g *multiLock) crashed() {
	for _, k := range g.attempts {
		k.drop()
		k.line = nil
	}
	g.timer.drop()
	g.attempts, g.session, g.busy = nil, 0, false
	g.begin()
}

// holds reports whether the client may consider the lock its own now.
func (k *lockAttempt) holds() bool { return k.line != nil && k.line.Left(k.now()) > 0 }

// proof reports whether it is proven that the session lives as long as the term.
func (k *lockAttempt) proof() bool { return k.line.Proof() == nil }

// observed returns the lock as the checkers see it.
func (k *lockAttempt) observed() check.Lock {
	return check.Lock{Client: k.c.ID, Session: k.c.Session, Path: k.path, Proven: k.proof(), Attempt: k.number}
}

// held returns the locks that the client holds now.
func (g *multiLock) held() (paths []string) {
	for _, k := range g.attempts {
		if k.holds() {
			paths = append(paths, k.path)
		}
	}
	return paths
}

// bid makes a bid.
func (k *lockAttempt) bid() {
	k.line = lines.NewLine(lines.Config{Parent: k.path, ID: fmt.Sprint("multi-lock client ", k.c.ID), Nonce: k.c.random.Nonce(),
		Rule: lines.Exclusive, Try: k.c.random.Chance(5)})
	if k.g.session != 0 {
		k.step(claim.Attached{Session: k.g.session, Lease: k.g.lease})
	}
}

// end releases the lock, or gives the attempt up, after a while.
func (k *lockAttempt) end() {
	k.mustEnd = true
	k.soon(30*machine.Millisecond, func() {
		if k.line == nil {
			k.gone()
		} else {
			k.step(claim.Resign{})
		}
	})
}

// step passes an event to the bid and carries out what the bid asks for.
func (k *lockAttempt) step(ev claim.Event) {
	line := k.line
	if line == nil {
		return
	}
	line.Step(k.now(), ev)
	rd, st := line.Ready(), line.State()
	k.keepAlive = rd.KeepAlive
	for _, h := range rd.Observations {
		if h, leads := h.(lines.Leads); leads {
			k.taken = true
			k.c.group.See(check.LockTaken{Lock: k.observed(), Token: h.Token})
			k.g.step(lines.LockTaken{Path: k.path})
		}
	}
	if k.taken && !k.lost && !k.mustEnd && st.Phase > lines.Leading {
		k.lost = true
		k.g.step(lines.LockLost{Path: k.path})
	}
	k.request(rd.Request)
	switch {
	case k.line != line:
	case st.Phase != lines.Done:
		k.wake(rd.Wake)
	default:
		k.over(st)
	}
}

// over handles the end of a bid. If the client had the lock, the attempt lasts until the state
// machine asks to end it.
func (k *lockAttempt) over(st lines.State) {
	k.line = nil
	k.soon(20*machine.Millisecond, func() {
		switch {
		case k.mustEnd, !k.taken && st.Reason == claim.Occupied:
			k.gone()
		case k.taken:
		case claim.Passing(st.Reason):
			k.bid()
		default:
			k.c.group.Fail("MultiLocks", "multi-lock client %d cannot have %s: %v: %v", k.c.ID, k.path, st.Reason, st.Err)
		}
	})
}

// gone reports the end of the attempt to the state machine.
func (k *lockAttempt) gone() {
	i := slices.Index(k.g.attempts, k)
	if i < 0 {
		return
	}
	k.drop()
	k.g.attempts = slices.Delete(k.g.attempts, i, i+1)
	if k.taken {
		k.g.step(lines.LockGone{Path: k.path})
	} else {
		k.g.step(lines.LockRefused{Path: k.path})
	}
}

// multiLocks returns the multi-lock clients of the run.
func (s *Group) multiLocks() (all []*multiLock) {
	for _, c := range s.All {
		if g, ok := c.Player.(*multiLock); ok {
			all = append(all, g)
		}
	}
	return all
}

// BeginLockRounds makes each client that takes several locks together count as missing until
// it has had all its locks once more. It reports whether there are such clients.
func (s *Group) BeginLockRounds() bool {
	all := s.multiLocks()
	for _, g := range all {
		g.roundsBefore = g.rounds
	}
	return len(all) > 0
}

// LocksMissing says which clients have not had all their locks since BeginLockRounds.
func (s *Group) LocksMissing() (missing string) {
	for _, g := range s.multiLocks() {
		if g.rounds == g.roundsBefore {
			missing += fmt.Sprintf(" multi-lock client %d waits for %v", g.c.ID, g.paths)
		}
	}
	return missing
}
