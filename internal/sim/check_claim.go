package sim

import (
	"fmt"

	"bellwether/wire"
)

// termBegan: a candidate's term begins.
type termBegan struct{ k *candidate }

// claims: as long as a candidate's deadline has not passed its session lives,
// and no two candidates have such a deadline at a time.
type claims struct{ sim *Sim }

func (claims) name() string { return "Claims" }

func (c claims) see(o any) string {
	switch e := o.(type) {
	case termBegan:
		for _, other := range c.sim.clients {
			if k := other.candidate; k != nil && k != e.k && k.holds() {
				return fmt.Sprintf("candidates %d and %d lead at the same time", e.k.c.id, other.id)
			}
		}
	case committed:
		if e.txn.Type != wire.OpCloseSession {
			return ""
		}
		for _, other := range c.sim.clients {
			if k := other.candidate; k != nil && other.session == e.txn.Session && k.holds() {
				return fmt.Sprintf("session %v of candidate %d is ended by %v, its term lasts %v yet",
					e.txn.Session, other.id, e.txn.Zxid, k.line.Left(k.now()))
			}
		}
	}
	return ""
}

// holds reports whether a candidate may take itself for the leader now.
func (k *candidate) holds() bool { return k.line.Left(k.now()) > 0 }
