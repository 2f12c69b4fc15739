package check

import (
	"fmt"

	"bellwether/wire"
)

// claims checks, for terms with a proof, that a candidate's session lives as long as the candidate's deadline has
// not passed. It also checks that no more candidates than allowed have such a deadline at
// the same time: one, or readers only, or as many as the semaphore has leases. A candidate
// whose bid an operator has deleted does not count until it knows that.
type claims struct{ present Present }

func (claims) Name() string { return "Claims" }

func (c claims) See(o any) string {
	switch e := o.(type) {
	case TermBegan:
		if e.Proven {
			return c.beside(e.Holder)
		}
	case TermProven:
		if e.Proven && e.Left > 0 {
			return c.beside(e.Holder)
		}
	case Committed:
		if e.Txn.Type != wire.OpCloseSession {
			return ""
		}
		for _, k := range c.present.Holders() {
			if k.Session == e.Txn.Session {
				return fmt.Sprintf("session %v of candidate %d is ended by %v, but the candidate's term still lasts %v",
					e.Txn.Session, k.Client, e.Txn.Zxid, k.Left)
			}
		}
	}
	return ""
}

// beside returns what is wrong if another candidate holds at the same time as k and must
// not.
func (c claims) beside(k Holder) string {
	n, leases := 1, c.present.Recipe().Leases
	if k.Deleted {
		return ""
	}
	for _, o := range c.present.Holders() {
		if o.Client == k.Client || o.Deleted {
			continue
		}
		n++
		switch {
		case leases > 0:
			if n > leases {
				return fmt.Sprintf("candidate %d gets a lease: now %d candidates hold one, and there are %d", k.Client, n, leases)
			}
		case !k.Shared || !o.Shared:
			return fmt.Sprintf("candidates %d and %d hold the claim at the same time", k.Client, o.Client)
		}
	}
	return ""
}
