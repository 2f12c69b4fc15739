package replica

import (
	"fmt"

	"bellwether/internal/election"
	"bellwether/internal/ensemble"
	"bellwether/internal/peerwire"
	"bellwether/wire"
)

// A term that ends before it serves says something about its candidate: its
// disk does not answer, its quorum port cannot be reached, it answers too late,
// or it leads in an epoch older than others have promised. To elect the same
// candidate again brings the same end. All servers that took part remember the
// failed term, the candidate too, and rank the candidate behind others with as
// much history until a term has served or a growing pause is over. Where only
// that candidate has the history they elect it again, and give it more time at
// each attempt. The same memory keeps a server from joining again and again a
// leader that does not take it in.
//
// docs/decisions/0017-failed-terms.md has the reasons, and why servers with
// different memories still come to a leader.
const (
	// pauseMinMS and pauseMaxMS bound the time for which others are preferred:
	// doubled with each failed term.
	pauseMinMS = 1000
	pauseMaxMS = 30_000
	// againMinMS and againMaxMS bound the pause in front of the third and each
	// later attempt with the same candidate, doubled too. The second one comes at
	// once, for the first may have met the leader at its beginning. The most is
	// below readOnlyGraceMin, so that this is no time without a leader.
	againMinMS = 10
	againMaxMS = 1000
	// patienceMS is for how long a candidate is dialled and asked for its epoch
	// the first time; doubled with each failed term, up to initLimit.
	patienceMS = 1000
	// failedForgetMS is how long after its last failed term a candidate is like
	// any other.
	failedForgetMS = 2 * pauseMaxMS
	// shiftMax keeps doubling from overflowing.
	shiftMax = 20
)

// failedTerm is what is remembered of one candidate.
type failedTerm struct {
	times        int // in a row
	at           int64
	ours         bool // this server's disk was the reason: nothing is held against the candidate
	round, epoch wire.Epoch
	why          string
}

// failedTerms are the terms that ended before they served, by candidate, since
// a term has served.
type failedTerms map[ensemble.ServerID]failedTerm

// doubled is base doubled so many times, at most limit.
func doubled(base int64, times int, limit int64) int64 {
	return min(base<<min(times, shiftMax), limit)
}

// noteFailed counts one more.
func (m *member) noteFailed(now int64, why string, ours bool) failedTerm {
	d := m.decision
	f := m.failed[d.Vote.Leader]
	if now-f.at > failedForgetMS {
		f.times = 0
	}
	f = failedTerm{times: f.times + 1, at: now, ours: ours, round: d.Round, epoch: d.Vote.PeerEpoch, why: why}
	if m.failed == nil {
		m.failed = failedTerms{}
	}
	m.failed[d.Vote.Leader] = f
	return f
}

// pauseMS is for how long others are preferred.
func (f *failedTerm) pauseMS() int64 {
	if f.ours {
		return 0
	}
	return doubled(pauseMinMS, f.times-1, pauseMaxMS)
}

// againMS is the pause in front of the next attempt.
func (f *failedTerm) againMS() int64 {
	if f.times < 2 {
		return 0
	}
	return doubled(againMinMS, f.times-2, againMaxMS)
}

// failedCandidates is what an election that begins now is to know.
func (m *member) failedCandidates(now int64) (all []election.Failed) {
	for id, f := range m.failed {
		if now-f.at > failedForgetMS {
			continue
		}
		all = append(all, election.Failed{
			Candidate: id, Times: f.times, Until: f.at + f.pauseMS(), Again: f.at + f.againMS(),
			Round: f.round, Epoch: f.epoch, PatienceMS: m.patience(id, now), Why: f.why,
		})
	}
	return all
}

// patience is how long a candidate may take to come forward.
func (m *member) patience(id ensemble.ServerID, now int64) int64 {
	times := 0
	if f, ok := m.failed[id]; ok && now-f.at <= failedForgetMS {
		times = f.times
	}
	return doubled(patienceMS, times, max(patienceMS, m.opt.InitLimit*m.tickMS))
}

// failedTerm takes note of a term that has ended before it served.
func (r *Replica) failedTerm(why string) {
	m := r.member
	if m.serving || m.role == peerwire.Looking {
		return
	}
	ours := m.role != peerwire.Leading && (m.resting != "" || r.stall.active())
	f := m.noteFailed(r.now.Mono, why, ours)
	if !ours && !r.Vain() { // a leader that takes others in has not failed
		r.happened(TermFailed{Candidate: m.decision.Vote.Leader, Times: f.times, Why: why, PauseMS: f.pauseMS()})
	}
}

// Vain reports whether this server has tried more than once to join the leader
// that there is, and was not taken in.
func (r *Replica) Vain() bool {
	m := r.member
	return m != nil && m.decision.Ending == election.Follows && m.failed[m.decision.Vote.Leader].times > 1
}

// TermFailed: a term has ended before it served.
type TermFailed struct {
	Candidate ensemble.ServerID
	Times     int
	Why       string
	PauseMS   int64
}

func (h TermFailed) String() string {
	times := ""
	if h.Times > 1 {
		times = fmt.Sprintf(", %d times in a row", h.Times)
	}
	return fmt.Sprintf("a term of server %d ended before it served%s: %s; for %d ms, or until a term serves, other servers with as much history are preferred",
		h.Candidate, times, h.Why, h.PauseMS)
}
