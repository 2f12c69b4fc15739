package sim

import (
	"fmt"
	"time"

	"bellwether/internal/claim"
	"bellwether/internal/claim/lines"
	"bellwether/wire"
)

// Recipe is the recipe for which the candidates of a run compete.
type Recipe string

// The recipes.
const (
	Election      Recipe = "election"
	Lock          Recipe = "lock"
	ReadWriteLock Recipe = "read-write lock"
	Semaphore     Recipe = "semaphore"
	Commit        Recipe = "two-phase commit"
	Queue         Recipe = "queue"
	WorkQueue     Recipe = "queue with acknowledgement"
	Count         Recipe = "counter and ids"
	DoubleBarrier Recipe = "double barrier"
	KazooBarrier  Recipe = "double barrier of kazoo"
	Barrier       Recipe = "barrier"
	Configuration Recipe = "configuration of a leader"
	Registration  Recipe = "registration"
	Caches        Recipe = "caches"
	Partitioner   Recipe = "partitioner"
	Work          Recipe = "work"
	SeveralLocks  Recipe = "several locks"
)

// Claims are the recipes in which a claim passes from one holder to the next.
var Claims = []Recipe{Election, Lock, ReadWriteLock, Semaphore}

// Recipes are all recipes. The seed draws the last one, SeveralLocks, only in place of
// Lock.
var Recipes = []Recipe{Election, Lock, ReadWriteLock, Semaphore, Commit, Queue, WorkQueue, Count, DoubleBarrier,
	KazooBarrier, Barrier, Configuration, Registration, Caches, Partitioner, Work, SeveralLocks}

// leastOf is the smallest number of candidates that a recipe needs.
var leastOf = map[Recipe]int{Commit: 3, Queue: 3, WorkQueue: 3, Count: 2, DoubleBarrier: 3, KazooBarrier: 3, Barrier: 2, Configuration: 2, Registration: 3, Partitioner: 2, Work: 2, SeveralLocks: 2}

// linePath is the znode that contains all bids except those for election.
const linePath = "/line"

// bidder is one bid: a line or, for a semaphore, its two lines.
type bidder interface {
	Step(now claim.Moment, ev claim.Event)
	Ready() claim.Ready
	State() lines.State
	Left(now claim.Moment) time.Duration
}

// The namings whose bids may stand in the same line.
var (
	exclusiveNames = []claim.Naming{claim.Own, claim.CuratorLock, claim.KazooLock, claim.GoZKLock}
	writerNames    = []claim.Naming{claim.Own, claim.CuratorWrite, claim.KazooLock}
	readerNames    = []claim.Naming{claim.OwnRead, claim.CuratorRead, claim.KazooRead}
)

// bid makes a new bid.
func (k *candidate) bid() {
	d := k.c.random
	cfg := lines.Config{Parent: linePath, ID: fmt.Sprint("candidate ", k.c.id), Nonce: d.nonce(), Rule: lines.Exclusive}
	k.shared = false
	switch k.c.sim.opt.Recipe {
	case Lock:
		cfg.Naming, cfg.Try = one(d, exclusiveNames), d.chance(5)
		k.line = lines.NewLine(cfg)
	case ReadWriteLock:
		cfg.Naming = one(d, writerNames)
		if k.shared = d.chance(60); k.shared {
			cfg.Rule, cfg.Naming = lines.Shared, one(d, readerNames)
		}
		k.line = lines.NewLine(cfg)
	case Semaphore:
		gate := cfg
		gate.Parent, gate.Nonce = linePath+"-gate", d.nonce()
		cfg.Rule, cfg.Leases, cfg.Try = lines.Leases, k.c.sim.opt.Leases, d.chance(5)
		cfg.Naming = []claim.Naming{claim.Own, claim.CuratorLease}[d.below(2)]
		k.line = lines.NewSemaphore(gate, cfg)
	default:
		cfg.Parent, cfg.Rule, cfg.Leader = electionPath, lines.Leadership, electionPath+"/LEADER"
		cfg.Quiet = time.Duration(d.below(3)) * time.Millisecond
		k.line = lines.NewElection(cfg)
	}
	k.parent = cfg.Parent
}

// nonce returns a nonce that only one bid has.
func (d *random) nonce() (n claim.Nonce) {
	for i := range n {
		n[i] = byte(d.next())
	}
	return n
}

func one(d *random, of []claim.Naming) claim.Naming { return of[d.below(int64(len(of)))] }

// exclusive reports whether nobody else may hold while the candidate does.
func (k *candidate) exclusive() bool { return k.c.sim.opt.Recipe != Semaphore && !k.shared }

// began records the beginning of a term.
func (k *candidate) began(h lines.Leads) {
	s := k.c.sim
	t := &term{k: k, line: k.line, token: h.Token, bid: claim.Join(k.parent, h.Bid)}
	if k.exclusive() {
		t.work()
	}
	if s.holder != k {
		s.holder = k
		s.handovers++
	}
	k.resignLater()
	if k.led != nil {
		k.led(t)
	}
	s.see(termBegan{k, h.Token})
}

// resignLater makes a holder give up its claim after a while. In some runs every holder
// does, in others only some do.
func (k *candidate) resignLater() {
	line, d := k.line, k.c.random
	within := 5 * second
	if brief := k.c.sim.opt.TermMS; brief > 0 {
		within = 2 * brief * millisecond
	} else if !d.chance(50) {
		return
	}
	k.c.after(d.below(within), func() {
		if k.line == line && !k.c.silent && !(k.c.sim.quiet && k.led != nil) { // in the end the last leader stays
			k.step(claim.Resign{})
		}
	})
}

// pauseMax returns the longest time that a candidate waits between two bids.
func (k *candidate) pauseMax() int64 {
	if brief := k.c.sim.opt.TermMS; brief > 0 {
		return brief * millisecond
	}
	return second
}

// crash ends the client's process. Its session is left to expire, and the process that is
// started next knows nothing of it.
func (c *client) crash() {
	if c.cord != nil {
		c.cord.close(0)
	}
	for _, k := range c.calls {
		if k.op != wire.OpPing {
			c.sim.see(lost{k})
			c.sim.lost(k)
		}
	}
	c.tries++
	c.calls, c.watches, c.streams, c.cord, c.attached, c.busy, c.silent = nil, nil, nil, nil, false, false, false
	c.session, c.timeoutMS, c.seen, c.told = 0, 0, 0, 0
	if c.player != nil {
		c.player.crashed()
	}
	c.later(c.random.below(second), c.connect)
}
