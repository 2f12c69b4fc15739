package realpeers

import (
	"fmt"
	"slices"

	"bellwether/internal/ensemble"
	"bellwether/internal/peerwire"
	"bellwether/internal/sim"
)

// voteBook says which notifications ZooKeeper must send and which it may send. Chance
// decides some: a server repeats its notification after a while and on each new connection,
// and answers those of other servers with its present vote.
//
// So each notification counts once in the life of a process. A vote that is replaced in the
// same step must be sent to any server, the last one to each server that is connected. An
// answer must be sent if the server has kept its leader during the step.
type voteBook struct {
	rec      *sim.Recording
	required map[int]*vote   // those that must be sent, by index of the exchange
	looking  map[string]int  // the votes of a server that looks for a leader, and the steps in which they were first sent
	answers  map[string]bool // all other notifications
	others   map[string]bool // what the other servers have voted for so far
}

// vote is a notification that must be sent.
type vote struct {
	peer     ensemble.ServerID
	text     string
	replaced bool // in the same step, by another vote
}

func newVoteBook(rec *sim.Recording) *voteBook {
	b := &voteBook{rec: rec, required: map[int]*vote{}, looking: map[string]int{}, answers: map[string]bool{}, others: map[string]bool{}}
	away := map[ensemble.ServerID]bool{} // servers without a process
	for i := range sim.RecordedServers {
		away[ensemble.ServerID(i+1)] = true
	}
	known := map[vote]bool{}
	rest := rec.Exchanges
	for i, s := range rec.Steps {
		switch s.Kind {
		case sim.StepStart:
			delete(away, s.Server)
			if s.Server == rec.Compatible {
				known = map[vote]bool{}
			}
		case sim.StepKill:
			away[s.Server] = true
		}
		n := slices.IndexFunc(rest, func(e sim.Exchange) bool { return e.Step > i })
		if n < 0 {
			n = len(rest)
		}
		b.addStep(i, len(rec.Exchanges)-len(rest), rest[:n], away, known)
		rest = rest[n:]
	}
	return b
}

// addStep adds the notifications of a step, of which the first exchange has the given index.
func (b *voteBook) addStep(step, first int, exchanges []sim.Exchange, away map[ensemble.ServerID]bool, known map[vote]bool) {
	last := map[ensemble.ServerID]*vote{}
	for i, e := range exchanges {
		if e.Notification == nil || !e.Sent {
			continue
		}
		looking := e.Notification.State == peerwire.Looking
		v := vote{peer: e.Peer, text: voteText(e.Notification)}
		if _, ok := b.looking[v.text]; looking && !ok {
			b.looking[v.text] = step
		}
		if !looking {
			b.answers[v.text] = true
		}
		if known[v] || away[e.Peer] || !looking && !b.keepsLeader(step) {
			continue
		}
		known[v] = true
		b.required[first+i] = &v
		if looking {
			if o := last[e.Peer]; o != nil {
				o.replaced = true
			}
			last[e.Peer] = &v
		}
	}
}

// keepsLeader reports whether the compatible server has the same leader before and after a step.
func (b *voteBook) keepsLeader(step int) bool {
	if step == 0 {
		return false
	}
	s, before := b.rec.Steps[step], b.rec.Steps[step-1]
	return s.Leader == before.Leader && s.Epoch == before.Epoch && (s.Server != b.rec.Compatible || s.Kind == sim.StepWrite)
}

// sentInstead says that ZooKeeper sends another text for a vote, which is a known difference.
func (b *voteBook) sentInstead(simulated, actual string) { b.looking[actual] = b.looking[simulated] }

// heard says that ZooKeeper hears a notification. It may adopt the vote for a while.
func (b *voteBook) heard(n *peerwire.Notification) { b.others[choice(n)] = true }

// choice is what a notification votes for.
func choice(n *peerwire.Notification) string {
	return fmt.Sprintf("server %d with %v of epoch %d in round %d", n.Leader, n.Zxid, n.PeerEpoch, n.ElectionEpoch)
}

// explains reports whether ZooKeeper may have sent a notification until the end of a step. It
// may answer with its vote, or with what became of it, at a time when nobody asks the
// simulated server.
func (b *voteBook) explains(step int, n *peerwire.Notification) bool {
	text := voteText(n)
	if n.State == peerwire.Looking {
		first, ok := b.looking[text]
		return ok && first <= step || b.others[choice(n)]
	}
	if b.answers[text] {
		return true
	}
	asVote := *n
	asVote.State = peerwire.Looking
	if _, ok := b.looking[voteText(&asVote)]; ok {
		return true
	}
	return slices.ContainsFunc(b.rec.Steps[:step+1], func(s sim.RecordedStep) bool { return s.Leader == n.Leader && s.Epoch == n.PeerEpoch })
}
