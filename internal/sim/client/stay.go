package client

import (
	"bellwether/internal/claim"
	"bellwether/internal/sim/check"
	"bellwether/wire"
)

// stay is a claim.Stay as long as a candidate's bid of one term is known to exist. It goes on after the candidate has
// resigned, because it does not notice that a znode is deleted.
type stay struct {
	*claim.Stay
	session wire.SessionID
}

// stays begins a stay with a term.
func (k *Candidate) stays() {
	k.stay = &stay{claim.NewStay(k.c.Session, k.lease), k.c.Session}
}

// step passes an event to the stay, then the latest proof, as package recipe does, and shows the stay to the checkers.
func (s *stay) step(k *Candidate, ev claim.Event) {
	if s == nil {
		return
	}
	now := k.now()
	before := s.Left(now)
	s.Step(now, ev)
	if k.c.Session == s.session {
		s.Step(now, claim.Confirmed{Lease: k.lease})
	}
	k.c.group.See(check.Stayed{
		Holder: check.Holder{Client: k.c.ID, Session: s.session, Proven: s.Proof() == nil, Left: s.Left(now), Timeout: k.observed().Timeout},
		Before: before, Present: k.c.Session,
	})
}
