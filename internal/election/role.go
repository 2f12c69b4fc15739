package election

import (
	"fmt"
	"slices"

	"bellwether/internal/ensemble"
	"bellwether/internal/peerwire"
	"bellwether/wire"
)

// takeRole enters the role of a decision.
func (e *Election) takeRole(d Decision) {
	e.state = d.State
	e.current = ballot{Vote: d.Vote, round: d.Round, state: d.State}
	e.resendAt, e.settleAt, e.settleBy, e.againAt, e.splitAt = Never, Never, Never, Never, Never
	e.agreed, e.established, e.gaveUp, e.byTransfer, e.forward = false, false, false, false, false
	e.supporters = nil
	clear(e.left)
	e.dialBy = Never
	if d.State == peerwire.Leading {
		e.supporters = map[ensemble.ServerID]bool{e.id: true}
		for _, id := range d.Supporters {
			e.supporters[id] = true
		}
	} else {
		e.dialBy = e.now + e.dialTime(d.Vote.Leader)
	}
	e.ready.Decision, e.ready.GiveUp = &d, ""
	e.running.decide(e.now, d)
	e.tellAsking()
}

// appointed takes a role without an election. Its notifications have no round and no
// epoch until the leader is established.
func (e *Election) appointed(ev Appointed) {
	e.closeRecord("a leader was named")
	e.began, e.asked = true, Look{Zxid: ev.Zxid}
	e.openRecord("a leader was named")
	d := Decision{State: peerwire.Following, Vote: Vote{ev.Leader, ev.Zxid, -1}, Round: -1, Ending: Named}
	switch {
	case ev.Leader == e.id:
		d.State = peerwire.Leading
	case e.observes():
		d.State = peerwire.Observing
	}
	if d.State == peerwire.Leading {
		d.Supporters = slices.Clone(e.voters)
	}
	e.takeRole(d)
	e.report(Decided{Decision: d})
}

// handedOver takes the role that the former leader has given. The round is that in which
// the former leader was elected: votes of earlier and later rounds keep their meaning,
// and servers that join because of this server's notifications continue from the same
// number.
func (e *Election) handedOver(ev Transferred) {
	why := fmt.Sprintf("server %d transfers leadership to server %d", ev.From, ev.Leader)
	e.closeRecord(why)
	e.began, e.barred, e.asked = true, false, Look{Zxid: ev.Zxid, Epoch: ev.Epoch}
	e.initial = e.ownVote()
	e.openRecord(why)
	e.running.held(ev.HeldMS)
	d := Decision{State: peerwire.Following, Vote: Vote{ev.Leader, ev.Zxid, ev.Epoch}, Round: e.round, Ending: LeadershipTransferred}
	switch {
	case ev.Leader == e.id:
		d.State = peerwire.Leading
		d.Supporters = slices.Clone(e.voters)
	case e.observes():
		d.State = peerwire.Observing
	}
	e.takeRole(d)
	e.byTransfer, e.dialBy = true, e.now+transferMax
	e.report(Decided{Decision: d})
}

// heardInRole answers a voter that looks. Until the role has succeeded, it also watches
// for signs that it will fail.
func (e *Election) heardInRole(h Heard) {
	n := &h.Notification
	waits := e.state != peerwire.Leading && !e.established && h.From == e.current.Leader
	switch {
	case waits:
		e.heardCandidate(h)
	case e.state == peerwire.Leading && !e.established:
		e.heardSupporter(h)
	case e.isLeft(h):
		e.giveUp("voters that followed it look again, and without them it has no quorum")
		return // otherwise they would join it again because of this server's message
	}
	if n.State != peerwire.Looking || waits && voteOf(n) == e.current.Vote && n.ElectionEpoch == e.current.round {
		// A candidate that waits for a better vote would begin its wait anew after each
		// message. It has this server's vote.
		return
	}
	e.send(h.From, e.roleMessage(e.current.round))
}

// heardCandidate takes a message of the elected server about its own role.
func (e *Election) heardCandidate(h Heard) {
	n := &h.Notification
	round, itself := e.current.round, n.Leader == e.current.Leader
	b, heard := e.votes[h.From] // heard: the sender has sent a vote of this round
	ran := heard && b.state == peerwire.Looking && b.agrees(e.current)
	switch {
	case n.State == peerwire.Leading && itself && e.dialBy != Never && !e.byTransfer && !e.forward:
		e.forward = true
		e.dialBy = e.now + e.dialTime(h.From) // the sender may have stopped leading before this server dials it, and it does not tell observers
	case n.State == peerwire.Leading && itself:
	case n.State == peerwire.Looking && n.ElectionEpoch > round && !e.named():
		e.giveUp("it looks for a leader in a later round")
	case h.First && !ran, e.precedesTransfer(n): // may be older than its candidacy
	case !itself && (n.ElectionEpoch == round || n.State != peerwire.Looking && n.ElectionEpoch > round):
		e.giveUp("it votes for another server now")
	case n.State != peerwire.Looking || e.named() || !heard:
	case n.ElectionEpoch < round:
		e.giveUp("it has begun a new election")
	case itself && voteOf(n) != e.current.Vote:
		e.giveUp("it lacks the history for which it was elected")
	}
}

// precedesTransfer reports whether a message may be from before the leadership transfer that gave
// this role. The transfer is of the same round, so such a message has no later epoch.
func (e *Election) precedesTransfer(n *peerwire.Notification) bool {
	return e.byTransfer && n.State != peerwire.Looking && n.ElectionEpoch == e.current.round && n.PeerEpoch <= e.current.PeerEpoch
}

// named reports whether the role came from Appointed, so without a round.
func (e *Election) named() bool { return e.current.round < 0 }

// heardSupporter handles a supporter of this leader that has changed its vote
// (ZOOKEEPER-3109), or has begun a new election before it could join. If the other
// supporters are not a quorum, the role will fail, and is given up.
func (e *Election) heardSupporter(h Heard) {
	n := &h.Notification
	if h.First || !e.supporters[h.From] || e.named() || e.precedesTransfer(n) {
		return
	}
	later, earlier := n.ElectionEpoch > e.current.round, n.ElectionEpoch < e.current.round
	left := n.State == peerwire.Looking && (later || earlier && !e.agreed) || !earlier && n.Leader != e.id
	if !left {
		return
	}
	delete(e.supporters, h.From)
	if !e.quorum(func(id ensemble.ServerID) bool { return e.supporters[id] }) {
		e.giveUp("voters that supported it look again")
	}
}

// isLeft reports whether a leader that this server dials, not for the first time, cannot
// have a quorum: this server does not reach it, and so many others look in a later round
// that they are a quorum together with this one. Without this rule such servers would
// never agree, because each one that looks hears that the others follow that leader. A
// leader of ZooKeeper says for initLimit that it leads.
func (e *Election) isLeft(h Heard) bool {
	n := &h.Notification
	switch {
	case n.State != peerwire.Looking:
		delete(e.left, h.From)
		return false
	case e.dialBy == Never, e.byTransfer, e.failed[e.current.Leader].Times == 0, h.First, n.ElectionEpoch <= e.current.round:
		return false
	}
	e.left[h.From] = true
	return e.quorum(func(id ensemble.ServerID) bool { return id == e.id || e.left[id] })
}

// giveUp advises the server to leave the role, once.
func (e *Election) giveUp(why string) {
	e.dialBy = Never
	if e.gaveUp {
		return
	}
	e.gaveUp = true
	e.ready.GiveUp = why
	e.report(Abandoned{Leader: e.current.Leader, Why: why})
}

// linked notes that the candidate leads, so that dialling is over.
func (e *Election) linked() {
	if !e.byTransfer {
		e.dialBy = Never
	}
}

// joined notes that discovery is over. From here on the links between leader and learners
// show whether the role succeeds.
func (e *Election) joined() {
	if e.state == peerwire.Looking {
		return
	}
	e.agreed = true
	if !e.byTransfer || e.state != peerwire.Leading {
		e.dialBy = Never
	}
	e.running.reach(Synchronise, e.now)
}

// establish notes that the role has succeeded. From now on notifications carry the epoch
// in which this server serves (ZOOKEEPER-1732).
func (e *Election) establish(epoch wire.Epoch) {
	if e.state == peerwire.Looking {
		return
	}
	e.established = true
	e.dialBy = Never
	e.current.PeerEpoch = epoch
	e.running.establish(e.now, epoch)
	if e.byTransfer {
		e.announce()
	}
}

// announce sends the role that came without a vote to all voters: those that do not know
// leadership transfers look for a leader, and may have asked too early to learn of this
// one.
func (e *Election) announce() {
	n := e.roleMessage(e.current.round)
	for _, id := range e.voters {
		if id != e.id {
			e.send(id, n)
		}
	}
}
