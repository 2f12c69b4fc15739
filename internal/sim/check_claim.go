package sim

import (
	"fmt"

	"bellwether/internal/sim/check"
	"bellwether/wire"
)

type (
	// termBegan says that a candidate's term begins.
	termBegan struct {
		k     *candidate
		token wire.Zxid
	}
	// termProven says that the session of the candidate was proven alive, which prolongs
	// its term.
	termProven struct{ k *candidate }
)

// claims checks that a candidate's session lives as long as the candidate's deadline has
// not passed. It also checks that no more candidates than allowed have such a deadline at
// the same time: one, or readers only, or as many as the semaphore has leases.
type claims struct{ sim *Sim }

func (claims) Name() string { return "Claims" }

func (c claims) See(o any) string {
	switch e := o.(type) {
	case termBegan:
		return c.beside(e.k)
	case termProven:
		if e.k.holds() {
			return c.beside(e.k)
		}
	case check.Committed:
		if e.Txn.Type != wire.OpCloseSession {
			return ""
		}
		for _, other := range c.sim.clients {
			if k := other.candidate; k != nil && other.session == e.Txn.Session && k.holds() {
				return fmt.Sprintf("session %v of candidate %d is ended by %v, its term lasts %v yet",
					e.Txn.Session, other.id, e.Txn.Zxid, k.line.Left(k.now()))
			}
		}
	}
	return ""
}

// beside returns what is wrong if another candidate holds at the same time as k and must
// not.
func (c claims) beside(k *candidate) string {
	n := 1
	for _, other := range c.sim.clients {
		o := other.candidate
		if o == nil || o == k || !o.holds() {
			continue
		}
		n++
		switch {
		case c.sim.opt.Recipe == Semaphore:
			if n > c.sim.opt.Leases {
				return fmt.Sprintf("candidate %d has a lease, and with it %d have one of %d", k.c.id, n, c.sim.opt.Leases)
			}
		case !k.shared || !o.shared:
			return fmt.Sprintf("candidates %d and %d hold at the same time", k.c.id, other.id)
		}
	}
	return ""
}

// holds reports whether a candidate may consider itself a holder now.
func (k *candidate) holds() bool { return k.line.Left(k.now()) > 0 }
