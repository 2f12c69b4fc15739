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
//	discovering    which epoch it has accepted (FOLLOWERINFO)     committed
//	promising      that it follows no earlier leader (ACKEPOCH)   committed
//	synchronising  that it has the leader's history on its disk   committed and proposed
//	serving        that it has the log up to a zxid on its disk   committed and proposed
//	serving        a round of pings                               committed and proposed
//
// The leader's whole log is committed when the term begins to serve: everything
// in front of NEWLEADER is committed by a quorum's ACK of NEWLEADER. From then on
// an entry is committed when a quorum has it on its disks. An ACK stands for all
// entries before it, because links and logs keep their order.
//
// A reconfiguration is committed by a quorum of the committed membership and one
// of the proposed membership. Entries behind it are decided by the new membership
// alone, so commitment never moves past an open reconfiguration.
//
// The leader counts like any other server, by what is on its own disk, and not
// before that: a quorum of other disks is enough. In a standalone server the
// leader's own disk is the quorum. Observers never count. Learners decide
// nothing: they take the leader's word (Learner.decide before UPTODATE, Learner.committed
// after it).
type commitment struct {
	self      ensemble.ServerID
	committed *ensemble.Membership
	lastSeen  *ensemble.Membership // proposed, newer than committed; nil: none
	reconfig  wire.Zxid            // of the transaction that proposed lastSeen in this term; 0: none
	own       acks                 // of this server
	servers   map[ensemble.ServerID]*link
}

// acks is what one server has acknowledged in this term. For a learner it is part
// of its link: what it acknowledged on an earlier link does not count, since it
// may have lost its disk meanwhile.
//
// Invariants: durable and answered.n never decrease. durable is not above the last
// proposal. On a link, promised implies that the state is linkPromised or later,
// and adopted means that it is linkSynced or later; durable is 0 before that.
type acks struct {
	promised bool      // the epoch is durable as its acceptedEpoch, and it accepted it on this link
	adopted  bool      // the history and currentEpoch are durable on its disk
	durable  wire.Zxid // its log is durable up to here
	answered beat      // the latest round of pings that it has answered
}

// has reports whether a server has the log up to z on its disk.
func (a *acks) has(z wire.Zxid) bool { return a.adopted && a.durable >= z }

// joined is what a server has acknowledged by saying who it is.
func (a *acks) joined() bool { return true }

// acksOf returns what a server has acknowledged: nil for one that is not
// connected, or takes part as an observer.
func (c *commitment) acksOf(id ensemble.ServerID) *acks {
	if id == c.self {
		return &c.own
	}
	if k := c.servers[id]; k != nil && !k.observer {
		return &k.acks
	}
	return nil
}

// has reports whether a server has the log up to z on its disk.
func (c *commitment) has(id ensemble.ServerID, z wire.Zxid) bool {
	a := c.acksOf(id)
	return a != nil && a.has(z)
}

// quorum reports whether the servers for which has is true are a quorum of the
// committed membership and, during a reconfiguration, of the proposed one.
func (c *commitment) quorum(has func(ensemble.ServerID) bool) bool {
	return c.committed.HasQuorum(has) && (c.lastSeen == nil || c.lastSeen.HasQuorum(has))
}

// acknowledged reports whether a quorum has acknowledged what has asks for.
func (c *commitment) acknowledged(has func(*acks) bool) bool {
	return c.quorum(func(id ensemble.ServerID) bool {
		a := c.acksOf(id)
		return a != nil && has(a)
	})
}

// committedAcknowledged is acknowledged for the committed membership alone, which
// decides discovery.
func (c *commitment) committedAcknowledged(has func(*acks) bool) bool {
	return c.committed.HasQuorum(func(id ensemble.ServerID) bool {
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

// decided returns how far the log is committed: applied if none of the entries
// that follow it is, and never beyond an open reconfiguration.
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

// follow takes note of a proposed reconfiguration: from here on both memberships
// have to agree.
func (c *commitment) follow(t *record.Txn) {
	if m := members(t); m != nil && m.Version() > c.committed.Version() {
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
		l.release()
	}
	if l.phase == serving && l.proposed.Counter() >= l.opt.CounterMax && l.log.applied >= l.proposed {
		l.giveUp(fmt.Sprintf("the counter of epoch %d is used up", l.epoch))
	}
}

// logSynced takes the leader's own ACK: its log is durable up to here.
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

// acked takes a learner's ACK: of the history if it names the epoch itself, else
// of a proposal. All others that come before the one of the history are ignored:
// an old follower acknowledges what it was synchronised with, maybe too early.
func (l *Leader) acked(k *link, z wire.Zxid) string {
	switch {
	case k.state < linkSyncing:
		return "acknowledged before it was sent anything"
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
	k.durable = max(k.durable, z)
	if k.watched != 0 && z >= k.watched {
		l.watch(k)
	}
	if l.phase == serving {
		l.commit()
	}
	return ""
}

// hasHistory takes a learner's ACK of NEWLEADER.
func (l *Leader) hasHistory(k *link) {
	k.state, k.adopted, k.durable = linkSynced, true, k.upTo
	l.watch(k)
	if l.phase == serving {
		l.serve(k)
		return
	}
	l.adopt()
}

// adopt establishes the leader once a quorum has its history on its disks. This
// server must be one of them: its own currentEpoch is durable behind its log.
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

// late reports whether a follower owes the ACK of a proposal for so long that it
// cannot take over.
func (l *Leader) late(k *link) bool { return k.watched != 0 && l.now-k.watchedAt > handOverMax }

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
