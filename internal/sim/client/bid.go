package client

import (
	"fmt"
	"time"

	"bellwether/internal/claim"
	"bellwether/internal/claim/lines"
	"bellwether/internal/sim/check"
	"bellwether/internal/sim/machine"
)

// bidder is one bid: a line or, for a semaphore, its two lines.
type bidder interface {
	Step(now claim.Moment, ev claim.Event)
	Ready() claim.Ready
	State() lines.State
	Left(now claim.Moment) time.Duration
	Deadline(now claim.Moment) time.Duration
	Proof() error
}

// The namings whose bids may stand in the same line.
var (
	exclusiveNames = []claim.Naming{claim.Own, claim.CuratorLock, claim.KazooLock, claim.GoZKLock}
	writerNames    = []claim.Naming{claim.Own, claim.CuratorWrite, claim.KazooLock}
	readerNames    = []claim.Naming{claim.OwnRead, claim.CuratorRead, claim.KazooRead}
	electionNames  = []claim.Naming{claim.Own, claim.Plain, claim.CuratorLatch, claim.KazooLock} // names of claim.Plain contain no nonce
)

// bid makes a new bid.
func (k *Candidate) bid() {
	d := k.c.random
	cfg := lines.Config{Parent: check.LinePath, ID: fmt.Sprint("candidate ", k.c.ID), Nonce: d.Nonce(), Rule: lines.Exclusive}
	k.shared, k.deleted, k.term = false, false, nil
	k.awaits(false)
	switch k.c.group.Settings().Recipe {
	case Lock:
		cfg.Naming, cfg.Try = one(d, exclusiveNames), d.Chance(5)
		k.line = lines.NewLine(cfg)
	case ReadWriteLock:
		cfg.Naming = one(d, writerNames)
		if k.shared = d.Chance(60); k.shared {
			cfg.Rule, cfg.Naming = lines.Shared, one(d, readerNames)
		}
		k.line = lines.NewLine(cfg)
	case Semaphore:
		gate := cfg
		gate.Parent, gate.Nonce = check.LinePath+"-gate", d.Nonce()
		cfg.Rule, cfg.Leases, cfg.Try = lines.Leases, k.c.group.Settings().Leases, d.Chance(5)
		cfg.Naming = []claim.Naming{claim.Own, claim.CuratorLease}[d.Below(2)]
		k.line = lines.NewSemaphore(gate, cfg)
	default:
		cfg.Parent, cfg.Rule, cfg.Leader = check.ElectionPath, lines.Leadership, check.LeaderPath
		cfg.Quiet = time.Duration(d.Below(3)) * time.Millisecond
		if odd := k.c.oddities(); odd != nil {
			cfg.Naming = one(odd, electionNames)
		}
		k.line = lines.NewElection(cfg)
	}
	k.parent = cfg.Parent
}

func one(d *machine.Random, of []claim.Naming) claim.Naming { return of[d.Below(int64(len(of)))] }

// exclusive reports whether nobody else may hold while the candidate does.
func (k *Candidate) exclusive() bool { return k.c.group.Settings().Recipe != Semaphore && !k.shared }

// recordTerm records the beginning of a term.
func (k *Candidate) recordTerm(h lines.Leads) {
	s := k.c.group
	t := &term{k: k, line: k.line, token: h.Token, shared: k.shared, bid: claim.Join(k.parent, h.Bid)}
	k.term, k.missing = t, false
	switch {
	case k.exclusive():
		t.useResource()
	case k.shared:
		t.useAgain(machine.NewRandom(uint64(t.token)))
	}
	if s.holder != k {
		s.holder = k
		s.Handovers++
	}
	k.stays()
	k.resignLater()
	if k.termBegan != nil {
		k.termBegan(t)
	}
	s.See(check.TermBegan{Holder: k.observed(), Token: h.Token, Bid: t.bid})
}

// roundTerm is how long, in µs, a holder keeps its claim at most while others wait for their turn at the end of a run.
const roundTerm = 200 * machine.Millisecond

// BeginClaimRounds makes each candidate count as missing until it has had a term once more. Until EndClaimRounds, all
// holders soon give up. It reports whether there are candidates.
func (s *Group) BeginClaimRounds() (some bool) {
	s.rounds = true
	for _, c := range s.All {
		if k := c.candidate; k != nil {
			some, k.missing = true, true
			if k.term != nil {
				k.resignLater()
			}
		}
	}
	return some
}

// EndClaimRounds lets holders keep their claims as before.
func (s *Group) EndClaimRounds() { s.rounds = false }

// ClaimsMissing says which candidates have had no term since BeginClaimRounds.
func (s *Group) ClaimsMissing() (missing string) {
	for _, c := range s.All {
		if k := c.candidate; k != nil && k.missing {
			missing += fmt.Sprintf(" candidate %d has the state %+v", c.ID, k.State())
		}
	}
	return missing
}

// resignLater makes a holder give up its claim after a while. In some runs every holder
// gives up, in others only some holders do.
func (k *Candidate) resignLater() {
	line, d := k.line, k.c.random
	within := 5 * machine.Second
	if k.c.group.rounds {
		within = roundTerm
	} else if brief := k.c.group.Settings().TermMS; brief > 0 {
		within = 2 * brief * machine.Millisecond
	} else if !d.Chance(50) {
		return
	}
	k.c.after(d.Below(within), func() {
		if k.line == line && !k.c.Hung && !(k.c.group.Phase().Quiet && k.termBegan != nil) { // in the end the last leader stays
			k.step(claim.Resign{})
		}
	})
}

// pauseMax returns the longest time that a candidate waits between two bids.
func (k *Candidate) pauseMax() int64 {
	if brief := k.c.group.Settings().TermMS; brief > 0 {
		return brief * machine.Millisecond
	}
	return machine.Second
}
