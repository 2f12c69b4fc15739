package sim

import (
	"slices"

	"bellwether/internal/ensemble"
	"bellwether/internal/sim/check"
	"bellwether/internal/store"
)

// expendable reports whether the others can do without the disk of a server: an election
// needs a quorum of servers that know their history. A server whose disk has decayed does not
// count, because it may refuse to start. It counts once the faults have ended, while it is up.
func (v *server) expendable() bool {
	s := v.sim
	return s.consolidated() && s.roster.newest.HasQuorum(func(id ensemble.ServerID) bool {
		o := s.server(id)
		return o != v && o.has && (!o.rotten || s.calm && o.up) && o.members == s.roster.newest
	})
}

// wipe replaces the disk if the others can do without it.
func (v *server) wipe() {
	if !v.up && v.expendable() {
		v.fs = store.NewMem(v.sim.random.Next())
		v.restore()
		v.unknown = true
		v.sim.see(check.Forgot{Server: v.id})
		v.newDisk()
		v.sim.reach(situationWiped)
	}
}

// loseDisk replaces the disk in any case. The server starts as if for the first time, with
// no marker that confirms it.
func (v *server) loseDisk() {
	if v.up || v.absent {
		return
	}
	if !v.expendable() {
		v.sim.reach(situationDiskLost)
	}
	v.claims = promise{v.durable(), max(v.claims.accepted, v.saved.Accepted), v.saved.Current}
	v.fs = store.NewMem(v.sim.random.Next())
	v.restore()
	v.unknown = false
	v.newDisk()
	if v.claims != (promise{}) {
		v.forgot(0)
	}
}

// tooFewKnow reports whether some voter has a history, and those that have one are no
// quorum. Voters without history elect no leader then, so that the ensemble waits, also if the voter that has one has no
// weight, or refuses to start after the others have heard of it. It also waits if no voter has one, and those that may
// start without one are no quorum. A membership in doubt needs a quorum too, and so does the one before it while a server
// does not know that the later one is committed.
func (s *Sim) tooFewKnow() bool {
	before := func(v *server) bool { return v.proposed != nil && s.tooFewOf(v.members) }
	return s.tooFewOf(s.roster.newest) || slices.ContainsFunc(s.doubted(), s.tooFewOf) || slices.ContainsFunc(s.servers, before)
}

func (s *Sim) tooFewOf(all *ensemble.Membership) bool {
	knows := func(id ensemble.ServerID) bool {
		v := s.server(id)
		if all != s.roster.newest && !s.roster.newest.IsVoter(id) && (s.opt.Compatible > 0 || !s.supports(v)) {
			return false // it joins as an observer, whose acknowledgements count only between native servers
		}
		return v.knows() && (v.up || !v.rotten) // a server whose disk has decayed may refuse to start
	}
	has := func(id ensemble.ServerID) bool { return s.server(id).knows() } // also if it refuses to start
	fresh := func(id ensemble.ServerID) bool { return !has(id) && !s.server(id).unknown }
	return !all.HasQuorum(knows) && (slices.ContainsFunc(all.Voters(), has) || !all.HasQuorum(fresh))
}

// supports reports whether a server that is no candidate yet can vote for one: it does not if it has more history than all
// of them.
func (s *Sim) supports(joiner *server) bool {
	return slices.ContainsFunc(s.servers, func(v *server) bool {
		return s.roster.newest.IsVoter(v.id) && v.knows() && joiner.outvotedBy(v)
	})
}

// waitsForHistory lets an ensemble in which too few voters have a history wait. It reports
// whether the run is over, because the ensemble has waited as it must.
func (s *Sim) waitsForHistory() bool {
	decayed := func(v *server) bool { return v.rotten && !v.up } // it may refuse to start
	for until := s.now + recoverBound + s.recoverWithin(); (len(s.losses) > 0 || s.inDoubt() || slices.ContainsFunc(s.servers, decayed)) && s.tooFewKnow(); {
		if s.now > until {
			s.reach(situationWaits)
			s.endEarly("the voters that have a history are no quorum, so that the ensemble waits for others that have one")
		}
		if !s.step() {
			break
		}
	}
	return s.ended()
}

// newDisk records that the disk is a new one.
func (v *server) newDisk() {
	v.blank, v.rotten, v.epochRotten, v.lied, v.liesPartly, v.has, v.installed, v.everFuzzy, v.undelivered, v.removals = true, false, false, false, false, false, false, false, nil, nil
	v.hole, v.unbroken = "", 0
	if v.proposed = nil; v.sim.opt.Reconfig > 0 {
		v.members = v.sim.roster.newest
	}
	v.sim.weigh()
}
