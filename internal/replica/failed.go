package replica

import (
	"fmt"

	"bellwether/internal/election"
	"bellwether/internal/ensemble"
	"bellwether/internal/peerwire"
	"bellwether/wire"
)

// If a term ends before it serves, its candidate probably has a problem: the candidate's
// disk does not answer, its quorum port cannot be reached, it answers too late, or it leads
// in an epoch older than others have promised. The next term of the same candidate would
// probably fail in the same way. So all servers that took part remember the failed term,
// including the candidate. Followers remember a leader that becomes silent in the same way.
// Each ranks the candidate behind others that have at least the server's own history, until a term has served or a pause is over. The pause grows with
// each failed term, and the pauses of all remembered candidates begin again with each
// failed term, so that a bad candidate does not come back while the next one is tried. If
// no quorum agrees on another candidate, they elect the same one again and give it more time
// at each attempt. A server that a leader does not accept tries to join that leader at growing
// intervals.
//
// docs/decisions/0017-failed-terms.md has the reasons, and explains why servers with
// different memories still agree on a leader.
const (
	// pauseMinMS and pauseMaxMS bound the time for which other candidates are preferred.
	// It doubles with each failed term.
	pauseMinMS = 1000
	pauseMaxMS = 30_000
	// againMinMS and againMaxMS bound the pause before the third and each later attempt
	// with the same candidate; it doubles too. The second attempt follows at once,
	// because the first may have reached the leader while it was starting. The upper
	// bound is below readOnlyGraceMin, so that a pause alone never starts read-only
	// service.
	againMinMS = 10
	againMaxMS = 1000
	// dialTimeoutMS is how long a server dials a candidate and waits for its epoch at the
	// first attempt. It doubles with each term that ended before it served, up to initLimit.
	dialTimeoutMS = 1000
	// failedForgetMS is how long after its last failed term a candidate is forgotten.
	failedForgetMS = 2 * pauseMaxMS
	// shiftMax keeps the doubling from overflowing.
	shiftMax = 20
)

// failedTerm holds what a server remembers about one candidate. Invariant: times >= 1.
type failedTerm struct {
	times        int // failed terms in a row
	attempts     int // those of them that ended before they served
	at           int64
	ours         bool // this server's own disk was the reason: the candidate is not ranked lower
	round, epoch wire.Epoch
	why          string
}

// failedTerms holds, by candidate, the terms that failed. It is cleared when a term serves.
type failedTerms map[ensemble.ServerID]failedTerm

// doubled returns base * 2^times, but at most limit.
func doubled(base int64, times int, limit int64) int64 {
	return min(base<<min(times, shiftMax), limit)
}

// noteFailed counts one more failed term of the candidate of the current decision. served says that the term had served.
func (m *member) noteFailed(now int64, why string, ours, served bool) failedTerm {
	d := m.decision
	f := m.failed[d.Vote.Leader]
	if now-f.at > failedForgetMS {
		f.times, f.attempts = 0, 0
	}
	if !served {
		f.attempts++
	}
	f = failedTerm{times: f.times + 1, attempts: f.attempts, at: now, ours: ours, round: d.Round, epoch: d.Vote.PeerEpoch, why: why}
	if m.failed == nil {
		m.failed = failedTerms{}
	}
	m.failed[d.Vote.Leader] = f
	return f
}

// pauseMS returns for how long other candidates are preferred.
func (f *failedTerm) pauseMS() int64 {
	if f.ours {
		return 0
	}
	return doubled(pauseMinMS, f.times-1, pauseMaxMS)
}

// againMS returns the pause before the next attempt.
func (f *failedTerm) againMS() int64 {
	if f.attempts < 2 {
		return 0
	}
	return doubled(againMinMS, f.attempts-2, againMaxMS)
}

// failedCandidates returns the failed terms that an election starting now has to take
// into account.
func (m *member) failedCandidates(now int64) (all []election.Failed) {
	last := int64(0) // when the last term failed, which begins all pauses
	for _, f := range m.failed {
		last = max(last, f.at)
	}
	for id, f := range m.failed {
		if now-f.at > failedForgetMS {
			continue
		}
		all = append(all, election.Failed{
			Candidate: id, Times: f.times, Until: last + f.pauseMS(), Again: f.at + f.againMS(),
			Round: f.round, Epoch: f.epoch, PatienceMS: m.candidateTimeout(id, now), Why: f.why,
		})
	}
	return all
}

// candidateTimeout returns how long a candidate may take before its followers give up, in ms.
func (m *member) candidateTimeout(id ensemble.ServerID, now int64) int64 {
	attempts := 0
	if f, ok := m.failed[id]; ok && now-f.at <= failedForgetMS {
		attempts = f.attempts
	}
	return doubled(dialTimeoutMS, attempts, max(dialTimeoutMS, m.opt.InitLimit*m.tickMS))
}

// failedTerm records the current term as failed if it ends before it has served.
func (r *Replica) failedTerm(why string) {
	m := r.member
	if m.serving || m.role == peerwire.Looking || m.usesMaster() { // the leader is not to blame for an observer master
		return
	}
	ours := m.role != peerwire.Leading && (m.disabled != "" || r.stall.active())
	f := m.noteFailed(r.now.Mono, why, ours, false)
	if !ours && !r.JoinFails() { // a leader that accepts other learners has not failed
		r.observe(TermFailed{Candidate: m.decision.Vote.Leader, Times: f.times, Why: why, PauseMS: f.pauseMS()})
	}
}

// silentLeader records the current term as failed if it has served and its leader is silent now. That leader may still take part
// in the election, and have transactions that only it has, although what it sends to followers does not arrive.
func (r *Replica) silentLeader(why string) {
	m := r.member
	if !m.serving || m.usesMaster() {
		return
	}
	f := m.noteFailed(r.now.Mono, why, false, true)
	r.observe(TermFailed{Candidate: m.decision.Vote.Leader, Served: true, Times: f.times, Why: why, PauseMS: f.pauseMS()})
}

// JoinFails reports whether this server has tried more than once to join the current leader,
// without success.
func (r *Replica) JoinFails() bool {
	m := r.member
	return m != nil && m.decision.Ending == election.Follows && m.failed[m.decision.Vote.Leader].attempts > 1
}

// TermFailed says that a term has ended before it served or, if Served is set, that its leader became silent.
type TermFailed struct {
	Candidate ensemble.ServerID
	Served    bool
	Times     int
	Why       string
	PauseMS   int64
}

func (h TermFailed) String() string {
	times := ""
	if h.Times > 1 {
		times = fmt.Sprintf(", %d times in a row", h.Times)
	}
	ended := " ended before it served"
	if h.Served {
		ended = " ended"
	}
	return fmt.Sprintf("a term of server %d%s%s: %s; for %d ms, or until a term serves, other servers are preferred",
		h.Candidate, ended, times, h.Why, h.PauseMS)
}
