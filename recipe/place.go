package recipe

import (
	"bellwether/internal/claim/lines"
	"bellwether/zk"
)

// Place is a candidate's position in an election, as far as the candidate knows it without asking a
// server.
type Place struct {
	Stands bool // the candidate's bid exists, and leads as soon as no bid is before it
	Leads  bool // the candidate leads, and its handle has not ended
	// Ahead is how many bids were before it when it last listed the bids. It lists them again only when
	// the bid right before its own goes, so there may be fewer now. Election.Candidates asks a server.
	Ahead int
	Bid   string  // name below the parent; empty while it is not known
	Token zk.Zxid // the token of its handle if it leads; 0 while it is not known
	// Published reports whether it leads and LEADER says so.
	Published bool
}

// Place returns the candidate's current position in the election, for a status page or a
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
