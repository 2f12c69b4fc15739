package election

import (
	"maps"
	"slices"

	"bellwether/internal/ensemble"
	"bellwether/internal/peerwire"
	"bellwether/wire"
)

// message is a notification with the committed membership. One without a voter
// is not sent: a ZooKeeper server may go deaf over it.
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

// lookingMessage tells the proposal.
func (e *Election) lookingMessage() peerwire.Notification {
	return e.message(peerwire.Looking, e.proposal, e.round)
}

// roleMessage tells the role and the decision behind it.
func (e *Election) roleMessage(round wire.Epoch) peerwire.Notification {
	return e.message(e.state, e.current.Vote, round)
}

// send queues a message, in place of an earlier one to the same server.
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

// broadcast tells the proposal to all other voters, and plans to do so again.
func (e *Election) broadcast() {
	n := e.lookingMessage()
	for _, id := range e.voters {
		if id != e.id {
			e.send(id, n)
		}
	}
	e.resendAt = e.now + e.interval
}

// answer is what was last told to a server without a vote, and when.
type answer struct {
	vote  Vote
	state peerwire.ServerState
	round wire.Epoch
	at    int64
}

// answerStranger answers a server that has no vote here: an observer, one that
// is to become a member, or one that does not know it was removed. While
// looking it hears the proposal (a ZooKeeper server would tell the vote of the
// election before, and so send observers to a leader that is dead), and hears
// of the decision unasked.
//
// A ZooKeeper server answers every notification. This one answers those that
// look, and an equal question not at once again: two servers that each think
// the other has no vote would otherwise never stop.
func (e *Election) answerStranger(id ensemble.ServerID, n *peerwire.Notification) {
	if !e.isMember(id) {
		e.refuse(id, "it is no member; it is answered, not counted")
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

// tellAsking tells the decision to those who take no part and asked before it.
func (e *Election) tellAsking() {
	n := e.roleMessage(e.round)
	for _, id := range slices.Sorted(maps.Keys(e.asking)) {
		e.send(id, n)
	}
	clear(e.asking)
}

// refusal is why something from a server was not counted.
type refusal struct {
	from ensemble.ServerID
	why  string
}

// refuse tells once in an election why messages of a server are not counted.
func (e *Election) refuse(from ensemble.ServerID, why string) {
	r := refusal{from, why}
	if e.refused[r] || len(e.refused) >= strangersMax {
		return
	}
	e.refused[r] = true
	e.tell(Refused{From: from, Why: why})
}
