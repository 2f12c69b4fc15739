package commit

import (
	"bellwether/internal/claim"
)

// Site is one site's part in one transaction:
//
//	look ▸ be present ▸ prepare ▸ vote ▸ wait for the decision ▸ carry it out ▸ say so
//
// It survives lost replies and expired sessions by looking again; a site that
// starts anew after a crash makes a new Site, with Doubt set where its own
// records say that it had prepared. It acts on the decision's znode alone,
// whatever votes it knows of.
//
// Plain, each site watches all votes and whoever knows them writes the
// decision. Otherwise it watches one znode, the coordinator's, and takes its
// place when that goes without a decision.
type Site struct{ commit }

// NewSite makes a site's state machine. It waits for Attached.
func NewSite(cfg CommitConfig) *Site {
	s := &Site{newCommit(cfg)}
	s.plan = s.next
	return s
}

// next chooses the next request.
func (s *Site) next() {
	own := s.ballot(s.cfg.Site)
	switch {
	case s.phase == TxPrepare, s.phase == TxDecided && !s.carried:
	case s.phase == TxDecided:
		s.planDone()
	case !s.looked:
		s.planLook()
	case !s.cfg.Plain && own.owner != s.session: // not there, or of an earlier life
		s.planPresence(own)
	case own.vote == Undecided && s.vote == Undecided:
		s.phase = TxPrepare
	case own.vote == Undecided:
		s.tell("site %s votes %v", s.cfg.Site, s.vote)
		s.ask(txVote, claim.Op{Kind: claim.OpSet, Path: s.ballotPath(s.cfg.Site), Data: []byte(s.vote.String()), Version: own.version})
	case s.cfg.Plain, s.chair:
		s.planVotes()
	case !s.chaired:
		s.planChair()
	case s.impatient(): // the coordinator hangs
		s.planVotes()
	}
}

// planPresence puts up the site's ephemeral znode, in the place of one of an
// earlier session that has not ended yet.
func (s *Site) planPresence(own *ballot) {
	path := s.ballotPath(s.cfg.Site)
	create := claim.Op{Kind: claim.OpCreate, Path: path}
	s.present = true
	if own.there {
		s.ask(txPresent, claim.Op{Kind: claim.OpMulti, Path: path, Ops: []claim.Op{{Kind: claim.OpDelete, Path: path, Version: own.version}, create}})
		return
	}
	s.ask(txPresent, create)
}
