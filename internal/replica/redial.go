package replica

import "bellwether/internal/zab"

// A connection to a leader can be accepted by something that then finds no leader: a
// relay, or the operating system on behalf of a server that is about to listen. If such a
// connection ends before the leader has said anything, this server keeps its role and
// dials again, as after a refused dial. It gives up soon, because the leader may have
// died. A learner that the leader can synchronise only by a snapshot also dials again.
const (
	redialMS    = 10
	redialMaxMS = 300 // from the decision
)

// redial holds the times for dialling again a leader that could not be joined.
type redial struct {
	at int64 // Mono; 0: the first link still counts
	by int64 // Mono time at which this server gives up
}

// endedAtOnce reports whether a link ended before the leader said anything. If so, the server
// goes back to dialling.
func (r *Replica) endedAtOnce(e zab.Closed) bool {
	m := r.member
	by := max(m.decided+redialMaxMS, m.redial.by)
	if m.learner == nil || m.learner.Answered() || e.Link != m.link || r.now.Mono >= by && !m.usesMaster() {
		return false
	}
	r.collect(m.machineReady())
	r.dialAgain(redialMS, by)
	return true
}

// joinAgain dials again after the learner has found that it needs a snapshot. The leader still accepts learners. In an election this
// server might not find it, because the leader may not serve before this server follows it.
func (r *Replica) joinAgain() {
	m := r.member
	r.dialAgain(0, r.now.Mono+m.candidateTimeout(m.decision.Vote.Leader, r.now.Mono))
}

// dialAgain drops the learner of this term, and dials its leader after some ms, or another observer master.
func (r *Replica) dialAgain(after, by int64) {
	m := r.member
	m.learner, m.wakeZab = nil, Never
	if m.usesMaster() {
		r.nextMaster()
		return
	}
	m.redial = redial{at: r.now.Mono + after, by: by}
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
