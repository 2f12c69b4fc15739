package replica

import "bellwether/internal/zab"

// A connection to a leader can be accepted by something that then finds no leader: a
// relay, or the operating system on behalf of a server that is about to listen. If such a
// connection ends before the leader has said anything, this server keeps its role and
// dials again, as after a refused dial. It gives up soon, because the leader may have
// died.
const (
	redialMS    = 10
	redialMaxMS = 300 // from the decision
)

// redial holds the times for dialling again a leader that could not be joined.
type redial struct {
	at int64 // Mono; 0: no link has ended early
	by int64 // Mono time at which this server gives up
}

// endedAtOnce reports whether a link ended before the leader said anything. If so, the server
// goes back to dialling.
func (r *Replica) endedAtOnce(e zab.Closed) bool {
	m := r.member
	if m.learner == nil || m.learner.Answered() || e.Link != m.link || r.now.Mono >= m.decided+redialMaxMS && !m.usesMaster() {
		return false
	}
	r.collect(m.machineReady())
	m.learner, m.wakeZab = nil, Never
	if m.usesMaster() {
		r.nextMaster()
		return true
	}
	m.redial = redial{at: r.now.Mono + redialMS, by: m.decided + redialMaxMS}
	return true
}

// joinAgain dials the leader again, which accepts its learners still. In an election this server might not find it: the leader may
// not serve before this server follows it.
func (r *Replica) joinAgain() {
	m := r.member
	m.learner, m.wakeZab = nil, Never
	if m.usesMaster() {
		r.nextMaster()
		return
	}
	m.redial = redial{at: r.now.Mono, by: r.now.Mono + redialMaxMS}
}

// redialWake returns the Mono time at which the server has to dial again or to give up;
// Never if it is not redialling.
func (m *member) redialWake(now int64) int64 {
	if m.learner != nil || m.redial.at == 0 {
		return Never
	}
	if now < m.redial.at {
		return m.redial.at
	}
	return m.redial.by
}

// redialEnds gives up a leader that could not be joined in time.
func (r *Replica) redialEnds() {
	if m := r.member; m.learner == nil && m.redial.at != 0 && r.now.Mono >= m.redial.by {
		r.leave("connections to the leader end before it sends anything")
	}
}
