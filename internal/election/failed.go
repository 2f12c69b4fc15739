package election

import (
	"fmt"

	"bellwether/internal/ensemble"
	"bellwether/internal/peerwire"
	"bellwether/wire"
)

// dialMS is how long a server dials the elected candidate before it gives it up, in ms,
// unless Failed says otherwise.
const dialMS = 1000

// splitMS is how long the votes of a quorum may differ before this server orders them as
// if no term had failed.
const splitMS = 400

// Failed holds what a server remembers of a candidate whose last terms ended before they
// served. The zero value is that of any other candidate.
type Failed struct {
	Candidate ensemble.ServerID
	// Times is how many terms in a row failed.
	Times int
	// Until is the time before which another candidate that has the history of this server is
	// preferred.
	Until int64
	// Again is the time before which a quorum of votes for the candidate does not end the
	// election. Before that time this server does not join the candidate as leader of
	// Round and Epoch or of earlier ones either. At that time this server resends its vote
	// to all voters.
	Again        int64
	Round, Epoch wire.Epoch
	// PatienceMS is how long this server dials the candidate, in ms; 0: 1000.
	PatienceMS int64
	// Why says for operators why the last term ended.
	Why string
}

// remember takes the failed terms into an election.
func (e *Election) remember(failed []Failed) {
	e.failed = nil
	for _, f := range failed {
		if e.failed == nil {
			e.failed = map[ensemble.ServerID]Failed{}
		}
		e.failed[f.Candidate] = f
	}
	e.relaxed, e.splitAt = false, Never
	e.againAt = e.nextAgain()
}

// nextAgain returns the next time at which a leader may be joined again.
func (e *Election) nextAgain() int64 {
	next := int64(Never)
	for _, f := range e.failed {
		if f.Again > e.now {
			next = min(next, f.Again)
		}
	}
	return next
}

// penalty returns by how many failed terms a candidate ranks behind others.
func (e *Election) penalty(id ensemble.ServerID) int {
	if f := e.failed[id]; !e.relaxed && f.Until > e.now {
		return f.Times
	}
	return 0
}

// dialTime returns how long a candidate is dialled.
func (e *Election) dialTime(id ensemble.ServerID) int64 {
	if ms := e.failed[id].PatienceMS; ms > 0 {
		return ms
	}
	return dialMS
}

// justFailed reports whether this server has just failed to join the leader that b names.
func (e *Election) justFailed(b ballot) bool {
	f := e.failed[b.Leader]
	return f.Again > e.now && b.round <= f.Round && b.PeerEpoch <= f.Epoch
}

// again returns when a quorum of votes for the proposal may end the election. A candidate
// that says that it leads needs this server's support at once.
func (e *Election) again() int64 {
	id := e.proposal.Leader
	if b, ok := e.votes[id]; ok && b.state == peerwire.Leading && b.agrees(e.standing()) {
		return e.now
	}
	return e.failed[id].Again
}

// watchSplit detects voters that prefer different candidates because they remember
// different failed terms: a quorum has voted, but no candidate has the votes of a quorum.
func (e *Election) watchSplit() {
	voted := func(id ensemble.ServerID) bool {
		b, ok := e.votes[id]
		return id == e.id || ok && b.state == peerwire.Looking
	}
	switch {
	case e.relaxed || !e.prefers() || !e.quorum(voted):
		e.splitAt = Never
	case e.splitAt == Never:
		e.splitAt = e.now + splitMS
	}
}

// prefers reports whether this server ranks a candidate behind others because of its
// failed terms.
func (e *Election) prefers() bool {
	for id := range e.failed {
		if e.penalty(id) > 0 {
			return true
		}
	}
	return false
}

// relax makes this server ignore failed terms for the rest of the election. Servers that
// remember no failed terms order votes in that way too, so that all voters come to prefer
// the same candidate.
func (e *Election) relax() {
	e.relaxed, e.splitAt = true, Never
	best := e.proposal
	for _, id := range e.voters {
		if b, ok := e.votes[id]; ok && b.state == peerwire.Looking && e.beats(b.Vote, best) {
			best = b.Vote
		}
	}
	e.report(Relaxed{Round: e.round, Vote: best})
	if best != e.proposal {
		e.improve(best)
	}
	e.count()
}

// Relaxed reports that the votes of a quorum do not agree, so this server ignores failed
// terms in this election.
type Relaxed struct {
	Round wire.Epoch
	Vote  Vote
}

// ElectsAgain reports that a quorum votes for a candidate whose last terms failed, and
// this server waits before it lets the candidate lead again.
type ElectsAgain struct {
	Candidate ensemble.ServerID
	Times     int
	Why       string
	WaitMS    int64
}

func (h Relaxed) String() string {
	return fmt.Sprintf("voters in round %d do not agree because they remember different failed terms: votes for %s by history and id alone", h.Round, h.Vote)
}

func (h ElectsAgain) String() string {
	return fmt.Sprintf("elects server %d again in %d ms, because no quorum agrees on another candidate; its last %d terms ended before they served: %s",
		h.Candidate, h.WaitMS, h.Times, h.Why)
}
