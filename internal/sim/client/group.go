package client

import (
	"fmt"

	"bellwether/internal/claim/lines"
	"bellwether/internal/sim/check"
	"bellwether/internal/sim/machine"
)

// Group is the clients of a run, with what they share.
type Group struct {
	World
	All          []*Client
	calls        int64             // number of requests so far
	fence        lines.Fence       // the resource that claims protect
	holder       *Candidate        // the last candidate that got a claim
	rounds       bool              // holders give up soon, so that each candidate has its turn
	Handovers    int               // how often a claim passed from one holder to the next
	Transactions []*Transaction    // all two-phase-commit transactions
	Entered      int               // how often a member of a barrier was let in
	owned        map[string]string // the last owner of each part
	present      present
}

// present holds the slices that Holders, Locks, Owners and Registrants fill and return. They are
// reused by the next call.
type present struct {
	holders     []check.Holder
	locks       []check.Lock
	owners      []check.Owner
	registrants []check.Registrant
}

func NewGroup(w World) *Group { return &Group{World: w, owned: map[string]string{}} }

// Add makes a client, which does not connect yet. Its caller sets its clock and adds it to
// the network.
func (s *Group) Add(d *machine.Random) *Client {
	c := &Client{group: s, ID: len(s.All) + 1, random: d}
	c.Host = machine.Host{Name: fmt.Sprint("client ", c.ID), On: true}
	s.All = append(s.All, c)
	return c
}

// Cast gives a client its part in the recipe of the run. n is the client's number among
// those with a part.
func (s *Group) Cast(c *Client, n int) {
	switch s.Settings().Recipe {
	case Commit:
		name := ""
		if n > 0 {
			name = fmt.Sprint("s", n)
		}
		c.Player = newParty(c, name)
	case Queue, WorkQueue:
		c.Player = newWorker(c, []job{produce, consume, consume}[n%3])
	case Count:
		c.Player = newWorker(c, count)
	case DoubleBarrier, KazooBarrier:
		c.Player = newBarrierMember(c)
	case Caches:
		c.Player = newCacheClient(c)
	case Barrier:
		c.Player = newWorker(c, []job{guard, pass}[min(n, 1)])
	case Partitioner, Work:
		c.Player = newSharer(c, n)
	case MultiLocks:
		c.Player = newMultiLock(c)
	case Configuration:
		newAnnouncer(c)
	case Registration:
		c.Player = newRegistrant(c, check.Places[n%len(check.Places)])
	default:
		c.candidate = newCandidate(c)
		c.Player = c.candidate
	}
}

// LastHolder returns the client that got a claim last; nil: there is none.
func (s *Group) LastHolder() *Client {
	if s.holder == nil {
		return nil
	}
	return s.holder.c
}

// Holders returns the candidates that may consider themselves holders of a claim. It and the
// next three methods are those of a [check.Present].
func (s *Group) Holders() []check.Holder {
	p := &s.present
	p.holders = p.holders[:0]
	for _, c := range s.All {
		if k := c.candidate; k != nil && k.holds() && k.proof() {
			p.holders = append(p.holders, k.observed())
		}
	}
	return p.holders
}

// Locks returns the locks that multi-lock clients may consider theirs.
func (s *Group) Locks() []check.Lock {
	p := &s.present
	p.locks = p.locks[:0]
	for _, g := range s.multiLocks() {
		p.locks = appendHeld(p.locks, g.attempts)
	}
	return p.locks
}

// Owners returns the owners that may consider a part theirs.
func (s *Group) Owners() []check.Owner {
	p := &s.present
	p.owners = p.owners[:0]
	for _, m := range s.Sharers() {
		p.owners = appendHeld(p.owners, m.owners)
	}
	return p.owners
}

// appendHeld appends what the checkers see of those clients that may consider themselves holders and have a proof.
func appendHeld[V any, K interface {
	holds() bool
	proof() bool
	observed() V
}](to []V, clients []K) []V {
	for _, k := range clients {
		if k.holds() && k.proof() {
			to = append(to, k.observed())
		}
	}
	return to
}

// Registrants returns all registrants.
func (s *Group) Registrants() []check.Registrant {
	p := &s.present
	p.registrants = p.registrants[:0]
	for _, t := range s.RegistrantClients() {
		p.registrants = append(p.registrants, check.Registrant{Client: t.c.ID, Place: t.place, Own: t.own})
	}
	return p.registrants
}
