package election

import (
	"slices"

	"bellwether/internal/ensemble"
	"bellwether/internal/peerwire"
	"bellwether/wire"
)

// look begins an election with a vote for this server.
func (e *Election) look(ev Look) {
	e.closeRecord(ev.Why)
	e.began, e.state, e.asked = true, peerwire.Looking, ev
	e.barred = ev.Zxid == NoHistory || e.barred && ev.empty()
	e.restated, e.established, e.byTransfer, e.supporters = false, false, false, nil
	e.dialBy = Never
	e.remember(ev.Failed)
	e.ready.Decision, e.ready.GiveUp = nil, "" // of the election before
	clear(e.outside)
	clear(e.empties)
	clear(e.withdrawn)
	clear(e.refused)
	clear(e.told)
	clear(e.asking)
	e.initial = e.ownVote()
	e.openRecord(ev.Why)
	e.beginRound(e.round+1, e.initial)
	e.report(Began{Round: e.round, Vote: e.initial, Why: ev.Why})
	e.count()
}

// empty reports whether the log may be empty because it was lost. A log that a leader has
// filled since, but whose epoch was not adopted, counts as empty: it may lack what this
// server acknowledged before.
func (l Look) empty() bool {
	return l.Epoch == 0 && (l.Zxid == 0 || l.Zxid.Epoch() > 0) && !l.Initialized
}

// ownVote returns the vote of this server before it has heard any other.
func (e *Election) ownVote() Vote {
	if e.observes() {
		return noVote
	}
	v := Vote{Leader: peerwire.NoServer, Zxid: e.asked.Zxid, PeerEpoch: e.asked.Epoch}
	if e.asked.Abstains && v.Zxid > 0 {
		v.PeerEpoch = max(v.PeerEpoch, 1) // so that nobody takes this server for empty
	}
	if e.mute() {
		v.Zxid = NoHistory
	}
	if e.committed.IsVoter(e.id) {
		v.Leader = e.id
	}
	return v
}

// mute reports whether this server is neither a candidate nor supports one: it only joins
// an existing leader.
func (e *Election) mute() bool { return e.barred || e.asked.Abstains }

// beginRound enters a round with a vote and sends it. Votes of other rounds are
// forgotten.
func (e *Election) beginRound(r wire.Epoch, v Vote) {
	r = min(r, roundMax)
	e.round, e.proposal = r, v
	clear(e.votes)
	clear(e.down)
	e.settleAt, e.settleBy, e.splitAt, e.floor = Never, Never, Never, Vote{}
	e.interval = e.intervalMin
	e.running.rounds(r)
	e.running.change(e.now, r, v)
	e.broadcast()
}

// heard takes a notification.
func (e *Election) heard(h Heard) {
	n := &h.Notification
	switch {
	case h.From == e.id:
		e.refuse(h.From, "it has this server's own id; give each server its own myid")
		return
	case e.adopt(n):
		return // the voters and their votes have changed
	case !e.isVoter(h.From):
		e.answerStranger(h.From, n)
		return
	}
	delete(e.down, h.From)
	if why := implausible(n); why != "" {
		e.refuse(h.From, why)
		return
	}
	switch {
	case e.state != peerwire.Looking:
		e.heardInRole(h)
	case n.State == peerwire.Observing:
	case n.State == peerwire.Looking:
		e.noteEmpty(h)
		e.learnHistory(h)
		e.heardLooking(h)
		e.found()
	default:
		e.learnHistory(h)
		e.heardSettled(h)
	}
}

// implausible says why a notification cannot be right; empty if it can.
func implausible(n *peerwire.Notification) string {
	switch {
	case n.State < peerwire.Looking || n.State > peerwire.Observing:
		return "unknown state"
	case n.State == peerwire.Looking && n.ElectionEpoch < 0, n.ElectionEpoch < -1, n.ElectionEpoch > roundMax:
		return "no election reaches this round"
	case n.Leader == peerwire.NoServer:
		return "" // the vote names nobody, so it is not counted
	case n.Zxid < NoHistory:
		return "the zxid is negative"
	case n.PeerEpoch < -1 || n.PeerEpoch > epochMax:
		return "no zxid has this epoch"
	}
	return ""
}

// voteOf returns the vote in a notification.
func voteOf(n *peerwire.Notification) Vote {
	return Vote{Leader: n.Leader, Zxid: n.Zxid, PeerEpoch: n.PeerEpoch}
}

// learnHistory withdraws the candidacy of an empty server as soon as it hears that there
// is a history. It may have lost its own with its disk, and its vote could elect a server
// that lacks what it had acknowledged.
func (e *Election) learnHistory(h Heard) {
	n := &h.Notification
	if e.barred || !e.asked.empty() || e.initial.Leader != e.id || n.Zxid <= 0 && n.PeerEpoch <= 0 || e.allEmpty() {
		return
	}
	e.barred = true
	e.initial = e.ownVote()
	e.report(Barred{From: h.From, Vote: voteOf(n)})
	e.running.Barred = true
	e.beginRound(e.round, e.initial)
}

// noteEmpty records which voters have no transaction. A message that is resent may be
// older than the transactions that its server has by now. A message without history but
// with an epoch comes from a server whose disk does not answer.
func (e *Election) noteEmpty(h Heard) {
	switch n := &h.Notification; {
	case n.Zxid > 0, n.Zxid == NoHistory && n.PeerEpoch > 0:
		delete(e.empties, h.From)
	case !h.First:
		e.empties[h.From] = true
	}
}

// allEmpty reports whether every other voter has sent its vote, and none of them has a
// transaction.
func (e *Election) allEmpty() bool {
	for _, id := range e.voters {
		if id != e.id && !e.empties[id] {
			return false
		}
	}
	return true
}

// found lets a barred empty server vote once all other voters report that they are empty. An
// interrupted first start leaves a server with an epoch but no transaction, and its epoch
// bars the others (see learnHistory). Without this rule they would wait for ever.
func (e *Election) found() {
	if !e.barred || e.asked.Zxid == NoHistory || e.asked.Abstains || e.state != peerwire.Looking || !e.allEmpty() {
		return
	}
	e.barred = false
	e.initial = e.ownVote()
	e.report(Founded{})
	e.running.Barred = false
	e.beginRound(e.round+1, e.initial)
	e.count()
}

// heardLooking takes the vote of a voter that is also looking.
func (e *Election) heardLooking(h Heard) {
	n := &h.Notification
	v := voteOf(n)
	e.revoke(h)
	if n.Zxid == NoHistory {
		e.asking[h.From] = true // the sender is told the decision, so that it can join the leader
	}
	switch {
	case n.ElectionEpoch < e.round:
		e.running.vote(e.now, h, earlier)
		e.send(h.From, e.lookingMessage())
		return
	case n.Leader == peerwire.NoServer && n.ElectionEpoch > e.round && !e.mute():
		// The sender has a vote in the proposed membership only, so it is no candidate. It votes for one in its round.
		e.running.vote(e.now, h, e.joinRound(n.ElectionEpoch, e.initial))
		e.count()
		return
	case !e.isVoter(n.Leader):
		e.refuse(h.From, "it votes for a server that this server does not know as a voter")
		return
	case e.mute() || n.Zxid == NoHistory:
		e.running.vote(e.now, h, notCounted)
		return
	case e.invented(v):
		e.restate(h)
		return
	}
	verdict := worse
	switch {
	case n.ElectionEpoch > e.round:
		verdict = e.joinRound(n.ElectionEpoch, v)
	case e.beats(v, e.proposal):
		verdict = adopted
		e.improve(v)
	case v == e.proposal:
		verdict = same
	}
	e.running.vote(e.now, h, verdict)
	if _, known := e.votes[h.From]; verdict == worse && !known {
		// The sender may have had a role when this server's vote reached it. Then it has
		// answered with its role, and has not kept the vote.
		e.send(h.From, e.lookingMessage())
	}
	e.keep(h)
	e.accept(false)
	e.count()
}

// revoke takes back what a voter that looks has said before: that it had a role; its vote
// of this round, if it now looks in an earlier round; and both its vote and its
// candidacy, if it says NoHistory. A server that was restarted with an empty disk does
// not keep its earlier promises. The first message of a connection may be an old one, so
// it takes nothing back. Even such a message makes a withdrawn server a candidate again,
// because it cannot be older than the message with which the server withdrew.
func (e *Election) revoke(h Heard) {
	n := &h.Notification
	if n.Zxid != NoHistory {
		delete(e.withdrawn, h.From)
	}
	if h.First {
		return
	}
	delete(e.outside, h.From)
	if n.Zxid == NoHistory || n.ElectionEpoch < e.round {
		delete(e.votes, h.From)
	}
	switch {
	case n.Zxid != NoHistory:
	case e.proposal.Leader == h.From && h.From != e.id && !e.mute():
		e.withdrawn[h.From] = true
		e.report(Withdrawn{h.From})
		e.beginRound(e.round+1, e.initial)
	default:
		e.withdrawn[h.From] = true
	}
	if !e.elects(e.proposal.Leader, e.holds) {
		e.settleAt = Never
	}
}

// joinRound moves to a later round with the better of its vote and this server's own.
func (e *Election) joinRound(r wire.Epoch, v Vote) Verdict {
	best, verdict := e.initial, joinedRound
	if e.beats(v, e.initial) {
		best, verdict = v, joinedAdopted
	}
	e.report(LaterRound{From: e.round, To: r})
	e.beginRound(r, best)
	return verdict
}

// improve adopts a better vote of the round and sends it.
func (e *Election) improve(v Vote) {
	e.proposal = v
	e.running.change(e.now, e.round, v)
	e.settleAt = Never
	e.broadcast()
}

// beats reports whether vote a is to be adopted instead of b. Among candidates that have at
// least the history of this server, the number of failed terms decides first. Then the
// history decides, and then the id.
func (e *Election) beats(a, b Vote) bool {
	if e.withdrawn[a.Leader] {
		return false
	}
	if pa, pb := e.penalty(a.Leader), e.penalty(b.Leader); pa != pb && e.weight(a.Leader) > 0 && e.weight(b.Leader) > 0 && e.enough(a) && e.enough(b) {
		return pa < pb
	}
	return beats(a, b, e.weight)
}

// enough reports whether a candidate has all the history of this server, and as much as it takes
// to win (see relax). A leader that lacks history of this server could not lead it.
func (e *Election) enough(v Vote) bool { return v.history(e.initial) >= 0 && v.history(e.floor) >= 0 }

// keep records a ballot of the round. If the same ballot came before in a message that
// was not resent, it still counts as fresh.
func (e *Election) keep(h Heard) {
	n := &h.Notification
	b := ballot{Vote: voteOf(n), round: n.ElectionEpoch, state: n.State, fresh: !h.First}
	if old, ok := e.votes[h.From]; ok && old.fresh && old.agrees(b) {
		b.fresh = true
	}
	e.votes[h.From] = b
}

// invented reports whether a vote gives this server more history than it has. Such a vote
// comes from before a crash that lost some history, or from a server with the same id. If
// this server adopted it, it would lead without the history for which others elected it.
func (e *Election) invented(v Vote) bool {
	return v.Leader == e.id && v.history(e.initial) > 0
}

// restate answers an invented vote with a new round, once in an election, because in the
// old round its holders would keep it.
func (e *Election) restate(h Heard) {
	n := &h.Notification
	e.running.vote(e.now, h, madeUp)
	later := n.ElectionEpoch > e.round
	if h.First || e.restated {
		if later {
			e.joinRound(n.ElectionEpoch, e.initial)
			e.count()
		}
		return
	}
	e.restated = true
	e.report(Restated{From: h.From, Vote: voteOf(n), Own: e.initial})
	e.beginRound(n.ElectionEpoch+1, e.initial)
	e.count()
}

// heardSettled takes the message of a voter that follows or leads. An election ends when
// a quorum follows the same leader, which says that it leads.
func (e *Election) heardSettled(h Heard) {
	n := &h.Notification
	if !e.isVoter(n.Leader) {
		e.refuse(h.From, "it follows a server that this server does not know as a voter")
		return
	}
	e.running.vote(e.now, h, hasRole)
	b := ballot{Vote: voteOf(n), round: n.ElectionEpoch, state: n.State, version: n.Version, fresh: true}
	if b.version < peerwire.NotificationConfig {
		b.version = 0
	}
	if n.ElectionEpoch == e.round && !e.mute() {
		e.keep(h)
		if e.followed(e.votes, b) && !e.justFailed(b) {
			e.decide(b, Follows)
			return
		}
	}
	e.outside[h.From] = b
	if e.followed(e.outside, b) && !e.justFailed(b) {
		e.round = b.round
		e.decide(b, Follows)
		return
	}
	e.count()
}

// followed reports whether the servers that sent the same as b are a quorum, and the
// leader they name leads.
func (e *Election) followed(votes map[ensemble.ServerID]ballot, b ballot) bool {
	has := func(id ensemble.ServerID) bool {
		o, ok := votes[id]
		return ok && o.agrees(b)
	}
	return e.leads(votes, b) && e.elects(b.Leader, has)
}

// leads reports whether the leader of b says that it leads. This server can become leader
// that way only by followers of this round, not by those that still follow it from an
// earlier one (ZOOKEEPER-1514), and only if it has the history of their vote.
func (e *Election) leads(votes map[ensemble.ServerID]ballot, b ballot) bool {
	if b.Leader == e.id {
		return !e.mute() && b.round == e.round && b.Zxid == e.initial.Zxid
	}
	o, ok := votes[b.Leader]
	return ok && o.state == peerwire.Leading
}

// adopt adopts a newer membership from a notification, if there is one. It reports
// whether the members changed, so that a new election has begun.
func (e *Election) adopt(n *peerwire.Notification) bool {
	if !e.reconfig || e.state != peerwire.Looking || n.Version < peerwire.NotificationConfig || n.Config == e.text {
		return false
	}
	if n.Config != e.parsed.text || e.parsed.m == nil {
		e.parsed.text = n.Config
		e.parsed.m, _ = ensemble.Parse(n.Config) // the vote still counts if its configuration cannot be parsed
	}
	m := e.parsed.m
	if m == nil || m.Version() <= e.committed.Version() || len(m.Voters()) == 0 {
		return false
	}
	e.ready.Adopt = m
	e.report(AdoptedMembers{Version: m.Version(), Was: e.committed.Version()})
	return e.change(m, e.next)
}

func (e *Election) configured(ev Configured) { e.change(ev.Committed, ev.Proposed) }

// change sets the memberships. If the committed members change while this server looks,
// it begins a new election in round 1. It reports whether that happened.
func (e *Election) change(committed, proposed *ensemble.Membership) bool {
	same := committed.SameMembers(e.committed)
	e.members(committed, proposed)
	e.prune()
	if !e.began || e.state != peerwire.Looking {
		return false
	}
	if same {
		e.count()
		return false
	}
	e.endRecord(Reconfigured)
	e.round = 0
	again := e.asked
	again.Why = "the membership changed"
	e.look(again)
	return true
}

// prune removes what is known of servers that are no longer voters.
func (e *Election) prune() {
	gone := func(id ensemble.ServerID) bool { return !e.isVoter(id) }
	forget(e.votes, gone)
	forget(e.outside, gone)
	forget(e.down, gone)
	forget(e.empties, gone)
	forget(e.trips, gone)
}

func forget[V any](m map[ensemble.ServerID]V, gone func(ensemble.ServerID) bool) {
	for id := range m {
		if gone(id) {
			delete(m, id)
		}
	}
}

// up makes this server resend its vote soon, because there is a new connection to a
// voter.
func (e *Election) up(id ensemble.ServerID) {
	if e.state != peerwire.Looking || !e.began || !e.isVoter(id) {
		return
	}
	delete(e.down, id)
	e.interval = e.intervalMin
	e.resendAt = min(e.resendAt, e.now+e.interval)
}

// lost notes that a server is down: the election waits neither for its vote nor, after a
// leadership transfer, for it to lead.
func (e *Election) lost(id ensemble.ServerID) {
	if e.byTransfer && !e.established && id == e.current.Leader {
		e.giveUp("it is down")
	}
	if e.state != peerwire.Looking || !e.began || !slices.Contains(e.voters, id) || id == e.id {
		return
	}
	e.down[id] = true
	e.count()
}
