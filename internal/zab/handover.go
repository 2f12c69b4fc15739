package zab

import (
	"errors"
	"fmt"

	"bellwether/internal/ensemble"
	"bellwether/internal/peerwire"
	"bellwether/wire"
)

// A leadership transfer ends a term on purpose. The leader proposes nothing more and
// waits until everything is committed and on the disk of a native follower. It names
// that follower as the next leader to all learners that know leadership transfers,
// and ends its term. This saves only the election: the named server goes through
// discovery like any other, where a follower that is ahead of it still stops it.

// handOverMax is how long a leader waits for outstanding transactions, in ms. Then its
// term ends without naming the next leader.
const handOverMax = 250

// HandOver (leader) asks for a leadership transfer to To. If Successor refuses To,
// nothing is done. Leaving: this server is about to stop. Stalled: its disk does not
// answer, so that it cannot promise the next epoch.
type HandOver struct {
	To               ensemble.ServerID
	Leaving, Stalled bool
}

func (HandOver) event() {}

// Successor is the next leader, as the leader From has named it at the end of its term.
type Successor struct {
	From, Leader ensemble.ServerID
	Zxid         wire.Zxid  // the end of the history, all of it committed
	Epoch        wire.Epoch // of From
	HeldMS       int64      // how long nothing was proposed before that; 0: not known
	Leaving      bool       // this server is From, and about to stop
}

// handing is a leadership transfer under way.
type handing struct {
	HandOver
	to    ensemble.ServerID // To, or another server if To cannot lead any more
	began int64
}

// apart reports whether the next leader needs a quorum without this server.
func (e *HandOver) apart() bool { return e.Leaving || e.Stalled }

// HandingOver reports whether a leadership transfer is under way, so that nothing is
// proposed.
func (l *Leader) HandingOver() bool { return l.handing != nil }

// Successor returns who would lead after this leader: to, or, if to is NoServer, the
// native voter that has most on its disk. It returns an error if there is none. The
// servers that can be told must be a quorum, so that they find the next leader. This
// server does not count if it is apart: about to stop, or unable to promise an epoch.
func (l *Leader) Successor(to ensemble.ServerID, apart bool) (ensemble.ServerID, error) {
	if l.phase != serving {
		return peerwire.NoServer, errors.New("this server does not lead")
	}
	if to == peerwire.NoServer {
		to = l.fittest()
	}
	if to == peerwire.NoServer {
		return to, errors.New("no other server can take over")
	}
	if why := l.unfit(to); why != "" {
		return to, fmt.Errorf("server %d cannot take over: %s", to, why)
	}
	told := func(id ensemble.ServerID) bool {
		k := l.linkOf(id)
		return id == l.opt.ID && !apart || k != nil && k.hands && k.state == linkServing && !k.observer
	}
	if !l.quorum(told) {
		return to, errors.New("the servers that support leadership transfer are no quorum")
	}
	return to, nil
}

// fittest returns the server with most on its disk of those that can lead next, the
// larger id if two have the same; NoServer if there is none.
func (l *Leader) fittest() ensemble.ServerID {
	var best *link
	for _, k := range l.order {
		if k.state != linkServing || l.unfit(k.server) != "" {
			continue
		}
		if best == nil || k.durable > best.durable || k.durable == best.durable && k.server > best.server {
			best = k
		}
	}
	if best == nil {
		return peerwire.NoServer
	}
	return best.server
}

// unfit says why a server cannot lead next; empty if it can.
func (l *Leader) unfit(id ensemble.ServerID) string {
	k := l.linkOf(id)
	switch {
	case id == l.opt.ID:
		return "it leads"
	case !l.electable(id):
		return "it has no vote"
	case k == nil || k.state != linkServing:
		return "it does not follow"
	case !k.hands:
		return "it does not support leadership transfer"
	case l.now-k.heard > l.opt.LeaseMS:
		return fmt.Sprintf("it has been silent for %d ms", l.now-k.heard)
	case l.late(k):
		return fmt.Sprintf("it has not acknowledged %v for %d ms", k.watched, l.now-k.watchedAt)
	}
	return ""
}

// electable reports whether a server has a vote and weight in every membership that
// counts.
func (l *Leader) electable(id ensemble.ServerID) bool {
	for _, m := range []*ensemble.Membership{l.committed, l.lastSeen} {
		if m != nil && (!m.IsVoter(id) || m.Weight(id) == 0) {
			return false
		}
	}
	return true
}

// handOver begins a leadership transfer.
func (l *Leader) handOver(e HandOver) {
	to, err := l.Successor(e.To, e.apart())
	if err != nil || l.handing != nil {
		return
	}
	l.handing = &handing{HandOver: e, to: to, began: l.now}
	l.tell(HandsOver{to, l.epoch, len(l.log.between(l.log.applied, l.log.last))})
}

// handOn continues a leadership transfer after each step. The term ends in any case.
// Learners send requests of the time in between to the next leader.
func (l *Leader) handOn() {
	h := l.handing
	if h == nil || l.phase != serving {
		return
	}
	to, err := l.Successor(h.to, h.apart())
	if err != nil {
		to, err = l.Successor(peerwire.NoServer, h.apart())
	}
	switch {
	case err != nil:
		l.giveUp("the leadership transfer failed: " + err.Error())
	case l.log.applied == l.log.last && l.has(to, l.log.last):
		l.name(to, l.now-h.began)
	case l.now >= h.began+handOverMax:
		l.giveUp(fmt.Sprintf("the leadership transfer to server %d failed: it lacks transactions after %d ms", to, l.now-h.began))
	default:
		h.to = to
	}
}

// name ends the term. It tells the next leader, then all other learners that know
// leadership transfers, who leads next; after everything that was sent before.
func (l *Leader) name(to ensemble.ServerID, heldMS int64) {
	p := &peerwire.QuorumPacket{Type: peerwire.PacketHandOver, Zxid: l.log.last, Data: wire.Append(nil, &peerwire.HandOver{Leader: to})}
	l.send(l.linkOf(to), p)
	for _, k := range l.order {
		if k.hands && k.state == linkServing && k.server != to {
			l.send(k, p)
		}
	}
	l.ready.Successor = &Successor{l.opt.ID, to, l.log.last, l.epoch, heldMS, l.handing.Leaving}
	l.giveUp(fmt.Sprintf("it hands over to server %d", to))
}

// handedOver takes HANDOVER: the leader's term is over, and it names the next leader.
// The name is ignored if this server lacks a committed transaction.
func (r *Learner) handedOver(p *peerwire.QuorumPacket) {
	var h peerwire.HandOver
	err := wire.Decode(p.Data, &h)
	switch {
	case !r.hands:
		r.tell(Unexpected{fmt.Sprintf("leader %d", r.opt.Leader), p.Type})
		return
	case err != nil:
		r.giveUp("the leader's HandOver packet cannot be read: " + err.Error())
		return
	case p.Zxid > r.decided || !r.opt.Committed.IsVoter(h.Leader):
		r.giveUp(fmt.Sprintf("the leader hands over to server %d at %v, here %v is committed", h.Leader, p.Zxid, r.decided))
		return
	}
	r.ready.Successor = &Successor{From: r.opt.Leader, Leader: h.Leader, Zxid: p.Zxid, Epoch: r.epoch}
	r.giveUp(fmt.Sprintf("the leader hands over to server %d", h.Leader))
}

// HandsOver reports that a leader has begun a leadership transfer and waits for the
// outstanding transactions.
type HandsOver struct {
	To          ensemble.ServerID
	Epoch       wire.Epoch
	Outstanding int
}

func (h HandsOver) String() string {
	return fmt.Sprintf("hands over epoch %d to server %d, %d transactions are outstanding", h.Epoch, h.To, h.Outstanding)
}
