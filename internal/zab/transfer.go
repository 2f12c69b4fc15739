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
// and ends its term. A transfer saves only the election: the named server goes through
// discovery like any other leader, and a follower that has more history still stops it
// there.

// transferMax is how long a leader waits for outstanding transactions, in ms. Then its
// term ends without naming the next leader.
const transferMax = 250

// TransferLeadership (leader) asks for a leadership transfer to To. If Successor refuses
// To, nothing is done. Leaving says that this server is about to stop. Stalled says that
// the disk of this server does not answer, so that it cannot promise the next epoch.
// Planned says that nothing is wrong with this server: it may lead again at any time.
type TransferLeadership struct {
	To                        ensemble.ServerID
	Leaving, Stalled, Planned bool
}

func (TransferLeadership) event() {}

// Successor names the next leader. The leader From sends it at the end of its term.
type Successor struct {
	From, Leader ensemble.ServerID
	Zxid         wire.Zxid  // the end of the history, all of it committed
	Epoch        wire.Epoch // the epoch that From has led
	HeldMS       int64      // how long nothing was proposed before the end of the term; 0: not known
	Leaving      bool       // this server is From, and about to stop
	Avoid        bool       // From should not lead again for a while, even if it is preferred
}

// transfer is a leadership transfer under way.
type transfer struct {
	TransferLeadership
	to    ensemble.ServerID // To, or another server if To cannot lead any more
	began int64
}

// withoutSelf reports whether the next leader needs a quorum without this server.
func (e *TransferLeadership) withoutSelf() bool { return e.Leaving || e.Stalled }

// avoid reports whether this server should not lead again for a while. An operator's transfer
// is one reason, a disk that does not answer another one.
func (e *TransferLeadership) avoid() bool { return !e.Leaving && !e.Planned }

// Transferring reports whether a leadership transfer is under way, so that nothing is
// proposed.
func (l *Leader) Transferring() bool { return l.transfer != nil }

// Successor returns the server that would lead after this leader: to, or, if to is
// NoServer, the best native voter. It returns an error if there is none, or if to says that
// it should not lead. The servers that know leadership transfers must be a quorum, so that they find
// the next leader. apart means that this server does not count in that quorum, because it
// is about to stop or cannot promise an epoch.
func (l *Leader) Successor(to ensemble.ServerID, apart bool) (ensemble.ServerID, error) {
	if l.phase != serving {
		return peerwire.NoServer, errors.New("this server does not lead")
	}
	switch k := l.linkOf(to); {
	case to == peerwire.NoServer:
		to = l.bestSuccessor()
	case k != nil && l.whyUnfit(k) != "":
		return to, fmt.Errorf("server %d should not lead: %s", to, l.whyUnfit(k))
	}
	if to == peerwire.NoServer {
		return to, errors.New("no other server can take over")
	}
	if why := l.whyNotSuccessor(to); why != "" {
		return to, fmt.Errorf("server %d cannot take over: %s", to, why)
	}
	told := func(id ensemble.ServerID) bool {
		k := l.linkOf(id)
		return id == l.opt.ID && !apart || k != nil && k.canTransfer && k.state == linkServing && !k.observer
	}
	if !l.quorum(told) {
		return to, errors.New("the servers that support leadership transfer are no quorum")
	}
	return to, nil
}

// bestSuccessor returns the server that has most on its disk among those that can lead
// next, but one that says that it should not lead only if all say so, and one that did not lead after an
// earlier transfer only if all others were tried. If two have the same, it
// returns the larger id. It returns NoServer if no server can lead next.
func (l *Leader) bestSuccessor() ensemble.ServerID {
	var best *link
	for _, k := range l.order {
		if k.state != linkServing || l.whyNotSuccessor(k.server) != "" {
			continue
		}
		if best == nil || l.better(k, best) {
			best = k
		}
	}
	if best == nil {
		return peerwire.NoServer
	}
	return best.server
}

// better reports whether a learner should lead next rather than another one.
func (l *Leader) better(k, o *link) bool {
	if k.tree.outvotes != o.tree.outvotes {
		return k.tree.outvotes
	}
	if fit := l.whyUnfit(k) == ""; fit != (l.whyUnfit(o) == "") {
		return fit
	}
	if tried := l.opt.Tried[k.server]; tried != l.opt.Tried[o.server] {
		return !tried
	}
	return k.durable > o.durable || k.durable == o.durable && k.server > o.server
}

// whyNotSuccessor says why a server cannot lead next; empty if it can.
func (l *Leader) whyNotSuccessor(id ensemble.ServerID) string {
	k := l.linkOf(id)
	switch {
	case id == l.opt.ID:
		return "it leads"
	case !l.electable(id):
		return "it has no vote"
	case k == nil || k.state != linkServing:
		return "it does not follow"
	case !k.canTransfer:
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

// beginTransfer begins a leadership transfer.
func (l *Leader) beginTransfer(e TransferLeadership) {
	to, err := l.Successor(e.To, e.withoutSelf())
	if err != nil || l.transfer != nil {
		return
	}
	l.transfer = &transfer{TransferLeadership: e, to: to, began: l.now}
	l.report(TransferBegan{to, l.epoch, len(l.log.between(l.log.applied, l.log.last))})
}

// continueTransfer continues a leadership transfer after each step. The term ends in any
// case. Learners resend to the next leader the requests that they have forwarded since the
// transfer began.
func (l *Leader) continueTransfer() {
	h := l.transfer
	if h == nil || l.phase != serving {
		return
	}
	to, err := l.Successor(h.to, h.withoutSelf())
	if err != nil {
		to, err = l.Successor(peerwire.NoServer, h.withoutSelf())
	}
	switch {
	case err != nil:
		l.giveUp("the leadership transfer failed: " + err.Error())
	case l.log.applied == l.log.last && l.has(to, l.log.last):
		l.nameSuccessor(to, l.now-h.began)
	case l.now >= h.began+transferMax:
		l.giveUp(fmt.Sprintf("the leadership transfer to server %d failed: it still lacks transactions after %d ms", to, l.now-h.began))
	default:
		h.to = to
	}
}

// nameSuccessor ends the term. After everything that was sent before, it sends the name of
// the next leader: first to that server, then to all other learners that know leadership
// transfers.
func (l *Leader) nameSuccessor(to ensemble.ServerID, heldMS int64) {
	p := &peerwire.QuorumPacket{Type: peerwire.PacketHandOver, Zxid: l.log.last, Data: wire.Append(nil, &peerwire.Handover{Leader: to, Avoid: l.transfer.avoid()})}
	l.send(l.linkOf(to), p)
	for _, k := range l.order {
		if k.canTransfer && k.state == linkServing && k.server != to {
			l.send(k, p)
		}
	}
	l.ready.Successor = &Successor{l.opt.ID, to, l.log.last, l.epoch, heldMS, l.transfer.Leaving, l.transfer.avoid()}
	l.giveUp(fmt.Sprintf("it transfers leadership to server %d", to))
}

// successorNamed handles HANDOVER: the leader's term is over, and the leader names the
// next one. This server ignores the name if it lacks a committed transaction.
func (r *Learner) successorNamed(p *peerwire.QuorumPacket) {
	var h peerwire.Handover
	err := wire.Decode(p.Data, &h)
	switch {
	case r.extension < peerwire.ExtensionHandOver:
		r.report(Unexpected{fmt.Sprintf("leader %d", r.opt.Leader), p.Type})
		return
	case err != nil:
		r.giveUp("the leader's HANDOVER packet cannot be read: " + err.Error())
		return
	case p.Zxid > r.decided || !r.voters().IsVoter(h.Leader):
		r.giveUp(fmt.Sprintf("the leader transfers leadership to server %d at %v, here %v is committed", h.Leader, p.Zxid, r.decided))
		return
	}
	r.ready.Successor = &Successor{From: r.opt.Leader, Leader: h.Leader, Zxid: p.Zxid, Epoch: r.epoch, Avoid: h.Avoid}
	r.giveUp(fmt.Sprintf("the leader transfers leadership to server %d", h.Leader))
}

// TransferBegan reports that a leader has begun a leadership transfer and waits for the
// outstanding transactions.
type TransferBegan struct {
	To          ensemble.ServerID
	Epoch       wire.Epoch
	Outstanding int
}

func (h TransferBegan) String() string {
	return fmt.Sprintf("transfers leadership of epoch %d to server %d: %d transactions are outstanding", h.Epoch, h.To, h.Outstanding)
}
