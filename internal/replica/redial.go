package replica

import "bellwether/internal/zab"

// A connection to a leader may be accepted by somebody else who finds that
// there is none yet: a relay, or the system for a server that is about to
// listen. That is not the end of a role. As with a refused dial the leader is
// tried again, but not for long: it may have died.
const (
	redialMS    = 10
	redialMaxMS = 300 // since the decision
)

// redial is when a leader that could not be joined is tried again.
type redial struct {
	at int64 // Mono; 0: no link has ended so
	by int64 // Mono at which that ends
}

// early reports whether the end of a link came before the leader said anything,
// and goes back to dialling.
func (r *Replica) early(e zab.Closed) bool {
	m := r.member
	if m.learner == nil || m.learner.Answered() || e.Link != m.link || r.now.Mono >= m.decided+redialMaxMS {
		return false
	}
	r.collect(m.machineReady())
	m.learner, m.wakeZab = nil, Never
	m.redial = redial{at: r.now.Mono + redialMS, by: m.decided + redialMaxMS}
	return true
}

// redialWake is when there is something to be done about it.
func (m *member) redialWake(now int64) int64 {
	if m.learner != nil || m.redial.at == 0 {
		return Never
	}
	if now < m.redial.at {
		return m.redial.at
	}
	return m.redial.by
}

// redialEnds gives up a leader that cannot be joined.
func (r *Replica) redialEnds() {
	if m := r.member; m.learner == nil && m.redial.at != 0 && r.now.Mono >= m.redial.by {
		r.leave("its connections end before it says anything")
	}
}
