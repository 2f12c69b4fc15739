package commit

import (
	"bellwether/internal/claim"
)

// Site is the part of one site in one transaction:
//
//	look ▸ create own znode ▸ prepare ▸ vote ▸ wait for the decision ▸ wait for Carried ▸ record it
//
// After a lost reply or an expired session the Site reads the state again. After a crash the application
// creates a new Site. It must set Doubt if its own records say that it had prepared. The Site acts only on
// the decision znode, and ignores what the votes suggest.
//
// In a plain transaction each site watches all votes, and the first site that knows them all writes the
// decision. Otherwise a site watches only the coordinator's znode, and takes over if that disappears
// without a decision.
type Site struct{ *commit }

// NewSite returns the state machine of a site. It does nothing until Attached is stepped.
func NewSite(cfg Config) *Site {
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
	case !s.cfg.Plain && own.owner != s.Current: // missing, or created in an earlier session
		s.planPresence(own)
	case own.vote == Undecided && s.vote == Undecided:
		s.phase = TxPrepare
	case own.vote == Undecided:
		s.report("site %s votes %v", s.cfg.Site, s.vote)
		s.write(claim.Op{Kind: claim.OpSet, Path: s.ballotPath(s.cfg.Site), Data: []byte(s.vote.String()), Version: own.version})
	case s.cfg.Plain, s.coordinates:
		s.planVotes()
	case !s.coordinated:
		s.planTakeOver()
	case s.timedOut(): // the coordinator is alive but has not decided in time
		s.planVotes()
	}
}

// planPresence creates the site's ephemeral znode. It replaces one that an earlier session of the site
// created.
func (s *Site) planPresence(own *ballot) {
	path := s.ballotPath(s.cfg.Site)
	create := claim.Op{Kind: claim.OpCreate, Path: path}
	s.mayBePresent = true
	if own.exists {
		s.write(claim.Multi(path, claim.Op{Kind: claim.OpDelete, Path: path, Version: own.version}, create))
		return
	}
	s.write(create)
}
