package zab

import (
	"fmt"

	"bellwether/internal/ensemble"
	"bellwether/internal/fifo"
	"bellwether/internal/peerwire"
	"bellwether/wire"
)

// linkState is how far a learner has come on its connection.
type linkState uint8

const (
	linkNew      linkState = iota // the learner has sent nothing
	linkNamed                     // FOLLOWERINFO or OBSERVERINFO came
	linkInvited                   // LEADERINFO was sent
	linkPromised                  // ACKEPOCH came
	linkReading                   // ReadLog was requested for the learner
	linkSyncing                   // the history up to NEWLEADER was sent
	linkSynced                    // the learner has acknowledged NEWLEADER
	linkServing                   // UPTODATE was sent
)

// link holds what the leader knows of one connection of a learner.
//
// Invariants, in addition to those of acks:
//   - The link is in Leader.links under its id, in Leader.order, and from linkNamed on in
//     commitment.servers under its server. A server has one link.
//   - The state never goes back. A learner is told to serve (linkServing) only by a
//     leader that serves.
//   - upTo <= durable, once the history is adopted.
//   - watched is 0, or durable < watched <= the last proposal, and never set for an
//     observer.
//   - answered.n < unanswered[0].n, and the rounds in unanswered ascend. At most
//     unansweredMax pings are unanswered.
//   - told <= confirmed <= reports, asked <= reports, and unconfirmed ascends by number and by zxid.
//   - syncs is empty for a native peer that serves no observers, and before the learner
//     serves.
type link struct {
	id            LinkID
	state         linkState
	server        ensemble.ServerID
	observer      bool
	native        bool   // the learner is a native peer: extensions are agreed on
	canTransfer   bool   // leadership transfer is one of these extensions
	digests       bool   // comparing trees is another one
	unfit         string // why the learner should not lead, as it says itself; empty if it may
	tree          treeState
	acceptedLater bool  // the learner has accepted a later epoch, so it cannot join
	began         int64 // when the connection came
	heard         int64 // when the last packet came
	fitSince      int64 // since when it could lead next without interruption; Never: it cannot
	ackedAt       int64 // when it last acknowledged a proposal; Never: it has not
	claimedAt     int64 // when another connection first claimed the same id; Never: none has
	returns       bool  // it is refused because the server's former link is not closed yet

	peer wire.Zxid // the end of the learner's log when it connected
	how  SyncMode  // valid while the learner is being synchronised
	upTo wire.Zxid // the last committed transaction of its synchronisation
	acks

	// syncs holds the syncs for which a compatible peer, or a follower that serves observers,
	// waits, oldest first.
	syncs  fifo.Queue[waiting]
	relays bool // a native follower serves observers

	// watched is the oldest proposal whose ACK is missing, and watchedAt is the time since
	// which it is missing.
	watched   wire.Zxid
	watchedAt int64

	unanswered fifo.Queue[pingRound] // pings sent, oldest first
	pingedAt   int64
	reports    int64 // number of answers to pings and of TOUCHes
	confirmed  int64 // number of these reports whose sessions were confirmed
	asked      int64 // number of the last TOUCH; 0: there was none
	told       int64 // the number of confirmed reports that the learner was told last

	unconfirmed        fifo.Queue[reports] // reports whose sessions are not confirmed yet, oldest first
	unexpectedReported bool                // an unexpected packet was reported
}

func (k *link) name() string {
	switch {
	case k.state == linkNew:
		return fmt.Sprintf("connection %d", k.id)
	case k.observer:
		return fmt.Sprintf("observer %d", k.server)
	}
	return fmt.Sprintf("follower %d", k.server)
}

// readLogMax is how long reading the log on disk for a learner may take, in ms, if that is not more than half of initLimit, for which
// the learner waits. After that the learner gets a snapshot, which is made of the tree in memory. Otherwise a leader whose disk hangs
// could not get a quorum that does without it.
const readLogMax = 2000

func readLogLimit(initLimit, tickMS int64) int64 { return min(readLogMax, initLimit*tickMS/2) }

// checkLinks closes the links of learners that are silent or do not acknowledge
// proposals. The time limit is initLimit for a learner that has not acknowledged the
// history, and syncLimit for any other learner.
func (l *Leader) checkLinks() {
	for i := 0; i < len(l.order); i++ {
		k := l.order[i]
		limit := l.opt.InitLimit * l.opt.TickMS
		if k.adopted {
			limit = l.opt.SyncLimit * l.opt.TickMS
		}
		switch {
		case k.state == linkReading:
			if l.now-k.heard > readLogLimit(l.opt.InitLimit, l.opt.TickMS) {
				h := l.history()
				if l.deliver(k, &h, h.snap()); l.links[k.id] == nil {
					i--
				}
			}
		case k.state == linkPromised && l.phase < synchronising, k.state == linkNamed, k.state == linkSynced && l.phase < serving:
			continue // the learner waits for this server
		case l.now-k.heard > limit:
			l.drop(k, fmt.Sprintf("silent for %d ms", l.now-k.heard))
			i--
		case k.adopted && k.watched != 0 && l.now-k.watchedAt > l.opt.SyncLimit*l.opt.TickMS:
			l.drop(k, fmt.Sprintf("has not acknowledged %v for %d ms", k.watched, l.now-k.watchedAt))
			i--
		}
	}
}

// received handles a packet of a learner. A packet that breaks the protocol closes the
// learner's link, and has no other effect.
func (l *Leader) received(e Received) {
	k := l.links[e.Link]
	if k == nil {
		return
	}
	k.heard = l.now
	if why := l.packet(k, e.Packet); why != "" && l.links[e.Link] != nil {
		l.refuse(k, why)
	}
}

// packet handles a packet. It returns the reason why the link must be closed, or an
// empty text if the link stays open.
func (l *Leader) packet(k *link, p *peerwire.QuorumPacket) string {
	switch p.Type {
	case peerwire.PacketFollowerInfo, peerwire.PacketObserverInfo:
		return l.named(k, p)
	case peerwire.PacketAckEpoch:
		return l.promised(k, p)
	case peerwire.PacketAck:
		return l.acked(k, p.Zxid)
	}
	if !k.adopted {
		return fmt.Sprintf("sent %v before it was synchronised", p.Type)
	}
	switch p.Type {
	case peerwire.PacketPing:
		return l.pinged(k, p)
	case peerwire.PacketRequest:
		return l.request(k, p)
	case peerwire.PacketRevalidate:
		return l.revalidate(k, p)
	case peerwire.PacketFitness:
		return l.fitness(k, p)
	case peerwire.PacketRelay:
		return l.registerObserver(k, p)
	case peerwire.PacketDigest:
		return l.learnerTree(k, p)
	case peerwire.PacketTouch:
		return l.asked(k, p)
	}
	if !k.unexpectedReported {
		k.unexpectedReported = true
		l.report(Unexpected{k.name(), p.Type})
	}
	return ""
}

// request passes on a client's request that a learner has forwarded.
func (l *Leader) request(k *link, p *peerwire.QuorumPacket) string {
	r := new(peerwire.ForwardedRequest)
	if err := wire.Decode(p.Data, r); err != nil {
		return "sent a request that cannot be read: " + err.Error()
	}
	if k.state != linkServing {
		return "sent a request before it was told to serve"
	}
	// A sync has no effect, and its answer goes to the link. So it is answered even if its observer has connected to
	// another server since: the follower takes the answers to its syncs for those of the oldest ones.
	if in, ok := l.inputOf(k, p); ok || r.Op == wire.OpSync {
		in.Request, in.Identities = r, p.Auth
		l.ready.Inputs = append(l.ready.Inputs, in)
	}
	return ""
}

func (l *Leader) revalidate(k *link, p *peerwire.QuorumPacket) string {
	r := new(peerwire.Revalidation)
	if err := wire.Decode(p.Data, r); err != nil {
		return "sent a revalidation that cannot be read: " + err.Error()
	}
	if in, ok := l.inputOf(k, p); ok {
		in.Revalidation, in.Question = r, p.Zxid
		l.ready.Inputs = append(l.ready.Inputs, in)
	}
	return ""
}
