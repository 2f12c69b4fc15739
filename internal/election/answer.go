package election

import (
	"maps"
	"slices"

	"bellwether/internal/ensemble"
	"bellwether/internal/peerwire"
	"bellwether/wire"
)

// message returns a notification with the committed membership. A notification whose vote
// names nobody is not sent, because a ZooKeeper server may stop listening after one.
func (e *Election) message(state peerwire.ServerState, v Vote, round wire.Epoch) peerwire.Notification {
	n := peerwire.Notification{
		State: state, Leader: v.Leader, Zxid: v.Zxid, PeerEpoch: v.PeerEpoch, ElectionEpoch: round,
		Version: peerwire.NotificationPlain,
	}
	if len(e.committed.Voters()) > 0 {
		n.Version, n.Config = peerwire.NotificationConfig, e.text
	}
	return n
}

// lookingMessage returns the notification of the proposal.
func (e *Election) lookingMessage() peerwire.Notification {
	return e.message(peerwire.Looking, e.proposal, e.round)
}

// roleMessage returns the notification of the role and its decision.
func (e *Election) roleMessage(round wire.Epoch) peerwire.Notification {
	return e.message(e.state, e.current.Vote, round)
}

// send queues a message. It replaces an earlier one to the same server.
func (e *Election) send(to ensemble.ServerID, n peerwire.Notification) {
	e.running.sent()
	for i := range e.ready.Send {
		if e.ready.Send[i].To == to {
			e.ready.Send[i].Notification = n
			return
		}
	}
	e.ready.Send = append(e.ready.Send, Message{To: to, Notification: n})
}

// broadcast sends the proposal to all other voters, and sets the time at which it is
// resent.
func (e *Election) broadcast() {
	n := e.lookingMessage()
	for _, id := range e.voters {
		if id != e.id {
			e.send(id, n)
		}
	}
	e.resendAt = e.now + e.interval
}

// answer holds what was last sent to a server without a vote, and when.
type answer struct {
	vote  Vote
	state peerwire.ServerState
	round wire.Epoch
	at    int64
}

// answerStranger answers a server that has no vote here: an observer, one that is to
// become a member, or one that does not know that it was removed. While this server is
// looking it answers with its proposal, and later sends the decision unasked. (A
// ZooKeeper server would send the vote of the election before, and so send observers to a
// leader that has ended.)
//
// A ZooKeeper server answers every notification. This one answers those that look, and
// does not answer an equal question again at once. Otherwise two servers that each think
// the other has no vote would never stop.
func (e *Election) answerStranger(id ensemble.ServerID, n *peerwire.Notification) {
	if !e.isMember(id) {
		e.refuse(id, "it is not a member: its vote is answered but not counted")
	}
	if n.State != peerwire.Looking {
		return
	}
	m := e.roleMessage(e.round)
	if e.state == peerwire.Looking {
		m = e.lookingMessage()
		if len(e.asking) < strangersMax {
			e.asking[id] = true
		}
	}
	a := answer{vote: voteOf(&m), state: m.State, round: m.ElectionEpoch, at: e.now}
	old, known := e.told[id]
	if !known && len(e.told) >= strangersMax {
		clear(e.told)
	}
	if known && e.now-old.at < answerPause && old == (answer{a.vote, a.state, a.round, old.at}) {
		return
	}
	e.told[id] = a
	e.send(id, m)
}

// tellAsking sends the decision to the servers without a vote that asked before it.
func (e *Election) tellAsking() {
	n := e.roleMessage(e.round)
	for _, id := range slices.Sorted(maps.Keys(e.asking)) {
		e.send(id, n)
	}
	clear(e.asking)
}

// refusal is why a message of a server was not counted.
type refusal struct {
	from ensemble.ServerID
	why  string
}

// refuse reports, once in an election, why messages of a server are not counted.
func (e *Election) refuse(from ensemble.ServerID, why string) {
	r := refusal{from, why}
	if e.refused[r] || len(e.refused) >= strangersMax {
		return
	}
	e.refused[r] = true
	e.report(Refused{From: from, Why: why})
}
