package sim

import (
	"bellwether/internal/ensemble"
	"bellwether/internal/store"
)

// expendable reports whether the others can do without the disk of a server: an election
// needs a quorum of servers that know their history.
func (v *server) expendable() bool {
	s := v.sim
	return s.consolidated() && s.roster.newest.HasQuorum(func(id ensemble.ServerID) bool {
		o := s.server(id)
		return o != v && o.has && !o.rotten && o.members == s.roster.newest
	})
}

// wipe replaces the disk if the others can do without it.
func (v *server) wipe() {
	if !v.up && v.expendable() {
		v.fs = store.NewMem(v.sim.random.Next())
		v.restore()
		v.unknown = true
		v.newDisk()
		v.sim.reach(situationWiped)
	}
}

// newDisk records that the disk is a new one.
func (v *server) newDisk() {
	v.blank, v.rotten, v.lied, v.has, v.installed, v.everFuzzy, v.undelivered, v.removals = true, false, false, false, false, false, nil, nil
	v.sim.weigh()
}
