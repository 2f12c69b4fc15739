package election

import (
	"time"

	"bellwether/internal/ensemble"
	"bellwether/internal/peerwire"
)

// standing returns the ballot of this server.
func (e *Election) standing() ballot {
	return ballot{Vote: e.proposal, round: e.round, state: peerwire.Looking, fresh: true}
}

// count checks whether a quorum holds the proposal. If so it either ends the election or
// begins to wait for a better vote. Only a better vote makes the wait longer, and all
// waits of a round together are limited, so that a server that keeps sending does not
// prevent a decision.
func (e *Election) count() {
	if e.state != peerwire.Looking || !e.elector() || !e.elects(e.proposal.Leader, e.holds) {
		e.settleAt = Never
		if e.state == peerwire.Looking && e.elector() {
			e.watchSplit()
		}
		return
	}
	e.splitAt = Never
	again := e.again()
	if again <= e.now && e.complete() {
		e.decide(e.standing(), Unanimous)
		return
	}
	wait := e.wait()
	if e.settleBy == Never {
		e.settleBy = e.now + settleBound
	}
	at := max(min(e.now+wait, e.settleBy), again)
	if e.settleAt <= at {
		return
	}
	first := e.settleAt == Never
	if e.settleAt = at; at <= e.now {
		e.decide(e.standing(), Agreed)
		return
	}
	if first {
		e.tellWait()
	}
}

// elector reports whether this server decides by votes. A server without a vote does not: while
// ZooKeeper's voters look for a leader, they answer it with the vote of the election before, in
// the new round. It waits until a quorum follows a leader that says that it leads.
func (e *Election) elector() bool { return !e.mute() && e.committed.IsVoter(e.id) }

// tellWait reports how long a quorum of votes waits for a better one.
func (e *Election) tellWait() {
	wait := e.settleAt - e.now
	e.running.wait(e.now, wait)
	if f := e.failed[e.proposal.Leader]; f.Again == e.settleAt {
		e.report(ElectsAgain{Candidate: f.Candidate, Times: f.Times, Why: f.Why, WaitMS: wait})
		return
	}
	e.report(Settling{Round: e.round, Vote: e.proposal, WaitMS: wait})
}

// holds reports whether a voter's ballot is the proposal.
func (e *Election) holds(id ensemble.ServerID) bool {
	if id == e.id {
		return true // counted if this server is a voter
	}
	b, ok := e.votes[id]
	return ok && b.agrees(e.standing())
}

// complete reports whether no better vote can come in this round: the candidate and every
// voter not known to be down have sent the proposal, in messages that cannot have been
// sent before this round.
func (e *Election) complete() bool {
	for _, id := range e.voters {
		if id == e.id || e.down[id] && id != e.proposal.Leader {
			continue
		}
		if b, ok := e.votes[id]; !ok || !b.fresh || !b.agrees(e.standing()) {
			return false
		}
	}
	return true
}

// wait returns how long to wait for a better vote, in ms: some round trips to the
// farthest voter that may have one, as far as round trips are known.
func (e *Election) wait() int64 {
	var longest time.Duration
	for id, took := range e.trips {
		if id != e.id && !e.down[id] {
			longest = max(longest, took)
		}
	}
	if longest <= 0 {
		return settleMax
	}
	trips := min(longest, settleMax*time.Millisecond) * settleTrips // this cannot overflow
	ms := (trips + time.Millisecond - 1).Milliseconds()
	return min(max(ms, settleMin), settleMax)
}

// decide ends the election with a ballot.
func (e *Election) decide(b ballot, how Ending) {
	d := Decision{State: peerwire.Following, Vote: b.Vote, Round: b.round, Ending: how}
	switch {
	case b.Leader == e.id:
		d.State = peerwire.Leading
	case e.observes():
		d.State = peerwire.Observing
	}
	d.Supporters, d.Spare, d.Barred = e.supportersOf(b, how), e.spare(b.Leader), e.barred
	e.takeRole(d)
	e.report(Decided{Decision: d, TookMS: e.now - e.running.Began})
}

// spare reports whether the voters that have taken part are a quorum without the leader.
func (e *Election) spare(leader ensemble.ServerID) bool {
	return e.quorum(func(id ensemble.ServerID) bool {
		_, looked := e.votes[id]
		_, settled := e.outside[id]
		return id != leader && (id == e.id || looked || settled)
	})
}

// supportersOf lists the voters whose ballots made the decision.
func (e *Election) supportersOf(b ballot, how Ending) []ensemble.ServerID {
	var ids []ensemble.ServerID
	for _, id := range e.voters {
		mine, ok := e.votes[id]
		theirs, settled := e.outside[id]
		switch {
		case how != Follows && e.holds(id),
			how == Follows && ok && mine.agrees(b),
			how == Follows && settled && theirs.agrees(b):
			ids = append(ids, id)
		}
	}
	return ids
}
