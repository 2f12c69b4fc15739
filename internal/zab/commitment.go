package zab

import (
	"fmt"
	"slices"

	"bellwether/internal/ensemble"
	"bellwether/internal/record"
	"bellwether/wire"
)

// commitment knows who has acknowledged what, and decides from that when an
// entry is committed. All rules about it are in this file. A quorum must have
// acknowledged, in this term:
//
//	phase          what a server acknowledges                     in which memberships
//	discovering    which epoch it has accepted (FOLLOWERINFO)     committed and proposed
//	promising      that it follows no earlier leader (ACKEPOCH)   committed and proposed
//	synchronising  that it has the leader's history on its disk   committed and proposed
//	serving        that it has the log up to a zxid on its disk   committed and proposed
//	serving        a round of pings                               committed and proposed
//
// The leader's whole log is committed when the term begins to serve: everything
// in front of NEWLEADER is committed by a quorum's ACK of NEWLEADER. From then on
// an entry is committed when a quorum has it on its disks. An ACK stands for all
// entries before it, because links and logs keep their order.
//
// ZooKeeper asks only the committed membership for promises. If the proposed one was
// committed in an earlier term, writes after it may be known to its servers alone, and one
// of them has to stop a leader that lacks these writes.
//
// A reconfiguration is committed by a quorum of the committed membership and one
// of the proposed membership. Entries behind it are decided by the new membership
// alone, so commitment never moves past an open reconfiguration.
//
// The leader counts like any other server: only what is on its own disk counts. A
// quorum of other disks is enough. In a standalone server the leader's own disk is
// the quorum. Observers never count. Learners decide nothing: a transaction is
// committed when the leader says so (Learner.decide before UPTODATE,
// Learner.committed after it).
type commitment struct {
	self      ensemble.ServerID
	committed *ensemble.Membership
	lastSeen  *ensemble.Membership // proposed, newer than committed; nil: none
	reconfig  wire.Zxid            // zxid of the transaction that proposed lastSeen in this term; 0: none
	own       acks                 // what this server has acknowledged
	servers   map[ensemble.ServerID]*link
}

// acks holds what one server has acknowledged in this term. The acks of a learner belong
// to its link: what the learner acknowledged on an earlier link does not count, since
// the learner may have lost its disk meanwhile.
//
// Invariants: durable and answered.n never decrease. durable is not above the last
// proposal. On a link, promised implies that the state is linkPromised or later,
// and adopted means that it is linkSynced or later; durable is 0 before that.
type acks struct {
	promised bool      // the epoch is durable as the server's acceptedEpoch, and was accepted on this link
	adopted  bool      // the history and currentEpoch are durable on the server's disk
	durable  wire.Zxid // the server's log is durable up to here
	answered pingRound // the latest round of pings that the server has answered
}

// mayVote reports whether the acknowledgements of a link can count. Those of an observer
// count if the proposed membership gives it a vote: it cannot know that membership yet, so
// it joins as an observer. What a native observer acknowledges up to NEWLEADER is as durable
// as on a follower. It acknowledges no proposals.
func (c *commitment) mayVote(k *link) bool {
	return !k.observer || k.native && c.lastSeen != nil && c.lastSeen.IsVoter(k.server)
}

// has reports whether a server has the log up to z on its disk.
func (a *acks) has(z wire.Zxid) bool { return a.adopted && a.durable >= z }

// joined returns true: a server that has introduced itself has joined.
func (a *acks) joined() bool { return true }

// acksOf returns what a server has acknowledged. It returns nil for a server that is
// not connected or takes part as an observer without a vote.
func (c *commitment) acksOf(id ensemble.ServerID) *acks {
	if id == c.self {
		return &c.own
	}
	if k := c.servers[id]; k != nil && c.mayVote(k) {
		return &k.acks
	}
	return nil
}

// has reports whether a server has the log up to z on its disk.
func (c *commitment) has(id ensemble.ServerID, z wire.Zxid) bool {
	a := c.acksOf(id)
	return a != nil && a.has(z)
}

// quorum reports whether the servers for which has(id) is true are a quorum of the
// committed membership and, during a reconfiguration, of the proposed one.
func (c *commitment) quorum(has func(ensemble.ServerID) bool) bool {
	return c.committed.HasQuorum(has) && (c.lastSeen == nil || c.lastSeen.HasQuorum(has))
}

// acknowledged reports whether has returns true for the acks of a quorum.
func (c *commitment) acknowledged(has func(*acks) bool) bool {
	return c.quorum(func(id ensemble.ServerID) bool {
		a := c.acksOf(id)
		return a != nil && has(a)
	})
}

// alone reports whether this server is a quorum by itself.
func (c *commitment) alone() bool {
	return c.quorum(func(id ensemble.ServerID) bool { return id == c.self })
}

// isVoter reports whether a server has a vote in a membership that counts.
func (c *commitment) isVoter(id ensemble.ServerID) bool {
	return c.committed.IsVoter(id) || c.lastSeen != nil && c.lastSeen.IsVoter(id)
}

// isMember reports whether a membership that counts names a server.
func (c *commitment) isMember(id ensemble.ServerID) bool {
	_, member := c.committed.Server(id)
	if !member && c.lastSeen != nil {
		_, member = c.lastSeen.Server(id)
	}
	return member
}

// decided returns the zxid up to which the log is committed. It returns applied if no
// entry of following is committed, and never a zxid beyond an open reconfiguration.
func (c *commitment) decided(applied wire.Zxid, following []*record.Txn) wire.Zxid {
	for _, t := range following {
		if !c.acknowledged(func(a *acks) bool { return a.has(t.Zxid) }) {
			break
		}
		if applied = t.Zxid; applied == c.reconfig {
			break
		}
	}
	return applied
}

// follow records a proposed reconfiguration. From here on each commit needs a quorum
// of both memberships.
func (c *commitment) follow(t *record.Txn) {
	if m := MembershipOf(t); m != nil && m.Version() > c.committed.Version() {
		c.lastSeen, c.reconfig = m, t.Zxid
	}
}

// activateMembership makes the proposed membership the committed one.
func (c *commitment) activateMembership() {
	c.committed, c.lastSeen, c.reconfig = c.lastSeen, nil, 0
}

// commit commits, in order, what a quorum has on its disks, and tells the
// learners. It is called after each ACK while the term serves.
func (l *Leader) commit() {
	for l.phase == serving {
		z := l.decided(l.log.applied, l.log.between(l.log.applied, l.log.last))
		if z == l.log.applied {
			break
		}
		for _, t := range l.log.take(z) {
			l.ready.Commit = append(l.ready.Commit, t)
			if t.Zxid == l.reconfig {
				l.activate(t)
			} else {
				l.announce(t, nil)
			}
		}
		l.releaseAnswers()
	}
	if l.phase == serving && l.proposed.Counter() >= l.opt.CounterMax && l.log.applied >= l.proposed {
		l.giveUp(fmt.Sprintf("the counter of epoch %d is used up", l.epoch))
	}
}

// logSynced handles the leader's own ACK: the leader's log is durable up to e.Zxid.
func (l *Leader) logSynced(e Synced) {
	l.log.confirm(e.Generation)
	if e.Generation != l.generation {
		return
	}
	if !l.synced && e.Zxid >= l.log.last { // nothing was proposed yet
		l.synced = true
		l.saveCurrent()
	}
	if l.own.durable = max(l.own.durable, e.Zxid); l.phase == serving {
		l.commit()
	}
}

// acked handles a learner's ACK. An ACK with the zxid of the epoch itself acknowledges
// the history; any other ACK acknowledges a proposal. ACKs of proposals that come
// before the ACK of the history are ignored: a follower of an old version acknowledges
// the transactions of its synchronisation, maybe too early.
func (l *Leader) acked(k *link, z wire.Zxid) string {
	switch {
	case k.state < linkSyncing:
		return "acknowledged before anything was sent to it"
	case k.state == linkSyncing:
		if z == l.epochZero() {
			l.hasHistory(k)
		}
		return ""
	case z > l.proposed:
		return fmt.Sprintf("acknowledged %v, which was never proposed", z)
	case k.observer || z.Counter() == 0:
		return ""
	}
	k.durable, k.ackedAt = max(k.durable, z), l.now
	if k.watched != 0 && z >= k.watched {
		l.watch(k)
	}
	if l.phase == serving {
		l.commit()
	}
	return ""
}

// hasHistory handles a learner's ACK of NEWLEADER.
func (l *Leader) hasHistory(k *link) {
	k.state, k.adopted, k.durable = linkSynced, true, k.upTo
	l.treeArrived(k)
	l.watch(k)
	if l.phase == serving {
		l.serve(k)
		return
	}
	l.adopt()
}

// adopt establishes the leader once a quorum of servers has the leader's history on
// disk. This server must be one of them: its log and then its currentEpoch are durable.
func (l *Leader) adopt() {
	l.own.adopted = l.current && l.synced
	if l.phase == synchronising && l.own.adopted && l.acknowledged(func(a *acks) bool { return a.adopted }) {
		l.establish()
	}
}

// watch notes the oldest proposal that a learner has not acknowledged.
func (l *Leader) watch(k *link) {
	k.watched = 0
	if open := l.log.between(k.durable, l.log.last); len(open) > 0 && !k.observer {
		k.watched, k.watchedAt = open[0].Zxid, l.now
	}
}

// late reports whether the ACK of a proposal has been missing for so long that the
// follower cannot take over the leadership.
func (l *Leader) late(k *link) bool { return k.watched != 0 && l.now-k.watchedAt > transferMax }

// followers returns the voters that have adopted the history, in order.
func (l *Leader) followers() []ensemble.ServerID {
	var ids []ensemble.ServerID
	for id, k := range l.servers {
		if l.isVoter(id) && !k.observer && k.adopted {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}
