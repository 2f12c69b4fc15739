package election

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"bellwether/internal/ensemble"
	"bellwether/internal/peerwire"
	"bellwether/wire"
)

// dialMS is how long a server dials the elected candidate before it gives it up, in ms,
// unless Failed says otherwise.
const dialMS = 1000

// splitMS is how long the votes of a quorum may differ before this server takes the first step
// toward votes that agree, and forgiveMS is how long they may differ after each step (see relax).
const (
	splitMS   = 400
	forgiveMS = 200
)

// forgiven holds, for each number of steps that a server has taken, how many failed terms of a
// candidate it ignores. The steps are few, because a server may remember any number of failed terms.
var forgiven = [...]int{0, 0, 2, 8, 32, 128, math.MaxInt}

// Failed holds what a server remembers of a candidate whose last terms failed: they ended before
// they served, or their leader became silent. The zero value is that of any other candidate.
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
	e.splits, e.splitAt = 0, Never
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
	if f := e.failed[id]; f.Times > forgiven[e.splits] && f.Until > e.now {
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
	case !e.prefers() || !e.quorum(voted):
		e.splitAt = Never
	case e.splitAt == Never && e.splits > 0:
		e.splitAt = e.now + forgiveMS
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

// relax takes the next step toward votes that agree, because those of a quorum have differed for
// a while.
//
// The first step changes only votes that cannot win, because too many voters vote for more history.
// A server that lacks history would otherwise vote for itself for as long as it remembers failed
// terms of all others.
//
// Each later step also forgives failed terms, for the rest of the election: candidates with at most
// 2 of them rank as if they had none, then those with at most 8, 32 and 128, then all. The last step
// is needed: servers that remember nothing order votes by history and id alone, so only that order
// makes all votes agree. It may elect a candidate that cannot lead. But then all voters remember one
// more failed term of it. So they soon agree on another candidate, of which they remember at most 128,
// before they forgive that one.
func (e *Election) relax() {
	before := e.proposal
	e.splits = min(e.splits+1, len(forgiven)-1)
	e.splitAt, e.floor = Never, e.leastToWin()
	e.accept(true)
	best, votes := e.proposal, e.lookingVotes()
	for _, id := range e.voters {
		if v, ok := votes[id]; ok && e.beats(v, best) {
			best = v
		}
	}
	if all := !e.prefers(); all || best != before {
		e.report(Relaxed{Round: e.round, Forgiven: forgiven[e.splits], All: all, Own: best.Leader == e.id, Vote: best})
	}
	if best != e.proposal {
		e.improve(best)
	}
	e.count()
}

// lookingVotes returns the votes of this round, also that of this server.
func (e *Election) lookingVotes() map[ensemble.ServerID]Vote {
	votes := map[ensemble.ServerID]Vote{}
	for id, b := range e.votes {
		if b.state == peerwire.Looking {
			votes[id] = b.Vote
		}
	}
	votes[e.id] = e.proposal
	return votes
}

// leastToWin returns, of the votes of this round, the one with the least history that can get a
// quorum: the voters that vote for no more history than that are a quorum. The others may have more
// history than its candidate, and then they do not vote for it.
func (e *Election) leastToWin() Vote {
	votes := e.lookingVotes()
	for _, least := range slices.SortedFunc(maps.Values(votes), Vote.Compare) {
		if e.quorum(func(id ensemble.ServerID) bool {
			v, ok := votes[id]
			return ok && v.history(least) <= 0
		}) {
			return least
		}
	}
	return e.floor
}

// accept makes this server ignore its own failed terms if a quorum of the others votes for it. They
// would elect it anyway, and then give it up again because it votes for another server. If it then
// ranks first by history and id, it votes for itself; otherwise it keeps its vote.
//
// If own is set, this server counts as one that votes for it. It is set in the steps only (see relax).
// Without it, two voters that each remember only their own failed terms, and are just a quorum, would
// vote for each other until they forgive these.
func (e *Election) accept(own bool) {
	f := e.failed[e.id]
	chosen := func(id ensemble.ServerID) bool {
		b, ok := e.votes[id]
		return own && id == e.id || ok && b.state == peerwire.Looking && b.Vote == e.initial
	}
	if e.penalty(e.id) == 0 || !e.quorum(chosen) {
		return
	}
	f.Until = e.now
	e.failed[e.id] = f
	if e.beats(e.initial, e.proposal) {
		e.improve(e.initial)
	}
}

// Relaxed reports that the votes of a quorum do not agree, so this server changes its vote, or orders
// votes by history and id alone (All). Forgiven is how many failed terms of a candidate it ignores.
// Own says that it votes for itself.
type Relaxed struct {
	Round    wire.Epoch
	Forgiven int
	All, Own bool
	Vote     Vote
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
	why := "because too few can vote for candidates with less history"
	switch {
	case h.All:
		why = "by history and id alone"
	case h.Forgiven > 0:
		why = fmt.Sprintf("as if candidates that failed up to %d times had not failed", h.Forgiven)
	case h.Own:
		why = "because with its own vote it has those of a quorum"
	}
	return fmt.Sprintf("voters in round %d do not agree because they remember different failed terms: votes for %s, %s", h.Round, h.Vote, why)
}

func (h ElectsAgain) String() string {
	return fmt.Sprintf("elects server %d again in %d ms, because no quorum agrees on another candidate; its last %d terms failed: %s",
		h.Candidate, h.WaitMS, h.Times, h.Why)
}
