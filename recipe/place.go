package recipe

import (
	"bellwether/internal/claim/lines"
	"bellwether/zk"
)

// Place is a candidate's position in an election, as far as it knows without asking a
// server.
type Place struct {
	Stands bool // its bid stands, and leads as soon as none is before it
	Leads  bool // its handle has not ended
	// Ahead is how many bids were before it when it last looked. It looks when the
	// one right before it goes, so there may be fewer now; Candidates asks.
	Ahead int
	Bid   string  // name below the parent; empty while it is not known
	Token zk.Zxid // it has if it leads; 0 while it is not known
	// Published: it leads, and LEADER says so.
	Published bool
}

// Place returns the candidate's present position in the election, for a status page or a
// readiness check. It asks no server.
func (e *Election) Place() Place {
	k := e.candidate()
	if k == nil {
		return Place{}
	}
	t := k.bid()
	if t == nil {
		return Place{}
	}
	s, over := t.state(), t.over()
	leads := s.Phase == lines.Leading && !over
	now := Place{Stands: leads || s.Phase == lines.Standing, Leads: leads, Bid: s.Bid, Token: s.Token, Published: leads && s.Published}
	if now.Stands && !leads {
		now.Ahead = s.Ahead
	}
	if s.Phase == lines.Done {
		now.Bid, now.Token = "", 0
	}
	return now
}
