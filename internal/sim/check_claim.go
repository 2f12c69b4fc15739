package sim

import (
	"fmt"

	"bellwether/internal/sim/check"
	"bellwether/wire"
)

type (
	// termBegan: a candidate's term begins.
	termBegan struct {
		k     *candidate
		token wire.Zxid
	}
	// termProven: its session is proven alive, so that it goes on.
	termProven struct{ k *candidate }
)

// claims: as long as a candidate's deadline has not passed its session lives,
// and no more candidates have such a deadline at a time than may hold: one,
// readers, or as many as there are leases.
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

// beside says who holds beside a candidate and must not.
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

// holds reports whether a candidate may take itself for a holder now.
func (k *candidate) holds() bool { return k.line.Left(k.now()) > 0 }
