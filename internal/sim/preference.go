package sim

import (
	"fmt"

	"bellwether/internal/ensemble"
	"bellwether/internal/replica"
	"bellwether/internal/sim/machine"
	"bellwether/internal/zab"
)

// preferences are the priorities of the servers as leaders, and what their transfers have led to.
type preferences struct {
	priorities map[ensemble.ServerID]int // nil: no server is preferred
	fitMS      int64                     // Member.PreferMS
	pending    bool                      // a preferred server was named, and no leader was established since
	// failed counts, for each process and each preferred server, the transfers since that process last
	// served under that server.
	failed map[attempt]int
}

// attempt is a process that makes a server the leader.
type attempt struct {
	from ensemble.ServerID
	life int
	to   ensemble.ServerID
}

// drawPreferences draws the priorities, from a random source of their own.
func (s *Sim) drawPreferences() {
	p := &s.preferences
	p.failed = map[attempt]int{}
	if s.opt.Priorities <= 0 {
		return
	}
	d := machine.NewRandom(s.opt.Seed ^ 0x9e1f)
	p.priorities, p.fitMS = map[ensemble.ServerID]int{}, d.Between(300, 3000)
	for id := range machinesMax {
		p.priorities[ensemble.ServerID(id+1)] = int(d.Between(-1, 2))
	}
}

// prefers checks a transfer to a preferred server: the priority of the leader grows, and the server
// was fit for long enough. That time doubles with each transfer that did not make it the leader.
// So there are few transfers for each fault.
func (v *server) prefers(h replica.Prefers) {
	p := &v.sim.preferences
	a := attempt{v.id, v.life, h.Server}
	wait := p.fitMS << min(p.failed[a], 8)
	switch own, priority := p.priorities[v.id], p.priorities[h.Server]; {
	case priority <= own || priority != h.Priority || own != h.Own:
		v.sim.fail("Preference", "server %d with priority %d names server %d with priority %d", v.id, own, h.Server, priority)
	case h.FitMS < wait:
		v.sim.fail("Preference", "server %d names server %d after %d ms, %d transfers to it have failed, which makes the time %d ms", v.id, h.Server, h.FitMS, p.failed[a], wait)
	}
	p.failed[a]++
	p.pending = true
}

// recordPreference follows what became of a transfer to a preferred server.
func (v *server) recordPreference(h replica.Observation) {
	p := &v.sim.preferences
	switch h := h.(type) {
	case replica.Prefers:
		v.prefers(h)
	case zab.LeaderServes:
		if p.pending {
			v.sim.reach(situationPreferred)
		}
		p.pending = false
	case zab.ServesUnder:
		delete(p.failed, attempt{v.id, v.life, h.Leader})
	}
}

// unpreferred counts the leaders that were established, except those that another leader preferred.
func (s *Sim) unpreferred() int { return s.reached[situationLeader] - s.reached[situationPreferred] }

// preferredLeads says what is missing until no server has a higher priority than the leader.
func (s *Sim) preferredLeads() string {
	l := s.leader()
	if l == nil {
		return "no server leads"
	}
	for _, v := range s.servers {
		if p := &s.preferences; p.priorities[v.id] > p.priorities[l.id] && s.roster.newest.IsVoter(v.id) && !v.compatible {
			return fmt.Sprintf("server %d leads with priority %d, and server %d has priority %d", l.id, p.priorities[l.id], v.id, p.priorities[v.id])
		}
	}
	return ""
}
