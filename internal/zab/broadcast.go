package zab

import (
	"fmt"

	"bellwether/internal/ensemble"
	"bellwether/internal/peerwire"
	"bellwether/internal/record"
	"bellwether/wire"
)

// NextZxid is the zxid that the next transaction must have; false while none
// can be proposed: before the leader serves, while it hands over, and at the end
// of the counter, where a further one would run into the epoch's bits
// (ZOOKEEPER-1277).
func (l *Leader) NextZxid() (wire.Zxid, bool) {
	if l.phase != serving || l.handing != nil || l.proposed.Counter() >= l.opt.CounterMax {
		return 0, false
	}
	return l.proposed + 1, true
}

// propose logs a transaction and sends it to all that take part.
func (l *Leader) propose(t *record.Txn) {
	if next, ok := l.NextZxid(); !ok || t.Zxid != next {
		panic(fmt.Sprintf("zab: proposed %v, next is %v (%v)", t.Zxid, next, ok))
	}
	l.follow(t)
	if err := l.log.Append(t); err != nil {
		panic("zab: " + err.Error())
	}
	l.proposed = t.Zxid
	l.ready.Append = append(l.ready.Append, t)
	p := &peerwire.QuorumPacket{Type: peerwire.PacketProposal, Zxid: t.Zxid, Data: t.Append(nil)}
	for _, k := range l.order {
		if k.state >= linkSyncing && !k.observer {
			l.propagate(k, p)
		}
	}
}

// follow takes note of a reconfiguration: from its proposal on both
// memberships have to agree.
func (l *Leader) follow(t *record.Txn) {
	if m := members(t); m != nil && m.Version() > l.committed.Version() {
		l.lastSeen, l.reconfig = m, t.Zxid
	}
}

// members is the configuration that a transaction proposes; nil for all others.
func members(t *record.Txn) *ensemble.Membership {
	body, ok := t.Body.(*record.SetDataTxn)
	if !ok || t.Type != wire.OpReconfig {
		return nil
	}
	m, err := ensemble.Parse(string(body.Data))
	if err != nil {
		return nil // the tree refused it, or should have
	}
	return m
}

// propagate sends a proposal and watches for its ACK.
func (l *Leader) propagate(k *link, p *peerwire.QuorumPacket) {
	l.send(k, p)
	if k.watched == 0 {
		k.watched, k.watchedAt = p.Zxid, l.now
	}
}

// has reports whether a server has the log up to z on its disk.
func (l *Leader) has(id ensemble.ServerID, z wire.Zxid) bool {
	if id == l.opt.ID {
		return l.ownAcked >= z
	}
	k := l.linkOf(id)
	return k != nil && k.state >= linkSynced && k.acked >= z
}

// commit commits, in order, what a quorum has on its disks. The ACK of a
// proposal stands for all before it: links and logs keep their order.
func (l *Leader) commit() {
	for l.phase == serving {
		z := l.decided()
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

// decided is how far a quorum has the log, but not beyond a reconfiguration:
// what follows that is decided by the new membership.
func (l *Leader) decided() wire.Zxid {
	z := l.log.applied
	for _, t := range l.log.between(z, l.log.last) {
		if !l.quorum(func(id ensemble.ServerID) bool { return l.has(id, t.Zxid) }) {
			break
		}
		if z = t.Zxid; z == l.reconfig {
			break
		}
	}
	return z
}

// announce tells everyone of a commit: those that have the transaction its
// zxid, observers the whole of it. With a designated leader the packets are
// those of a reconfiguration.
func (l *Leader) announce(t *record.Txn, designated *ensemble.ServerID) {
	commit := &peerwire.QuorumPacket{Type: peerwire.PacketCommit, Zxid: t.Zxid}
	if designated != nil {
		commit.Type = peerwire.PacketCommitActivate
		commit.Data = wire.Append(nil, &peerwire.Activation{Leader: *designated})
	}
	var inform *peerwire.QuorumPacket
	for _, k := range l.order {
		l.answerSyncs(k, t.Zxid)
		switch {
		case k.state < linkSyncing:
		case !k.observer:
			l.send(k, commit)
		default:
			if inform == nil {
				inform = informOf(t, designated)
			}
			l.send(k, inform)
		}
	}
}

func informOf(t *record.Txn, designated *ensemble.ServerID) *peerwire.QuorumPacket {
	if designated == nil {
		return &peerwire.QuorumPacket{Type: peerwire.PacketInform, Zxid: t.Zxid, Data: t.Append(nil)}
	}
	data := wire.Append(nil, &peerwire.Activation{Leader: *designated, Txn: t.Append(nil)})
	return &peerwire.QuorumPacket{Type: peerwire.PacketInformActivate, Zxid: t.Zxid, Data: data}
}

// activate commits a reconfiguration: its membership holds, and who leads under
// it is told. Another than this server takes over at once; this one is done.
func (l *Leader) activate(t *record.Txn) {
	leader := l.designate(t.Zxid)
	l.committed, l.lastSeen, l.reconfig = l.lastSeen, nil, 0
	l.announce(t, &leader)
	l.ready.Reconfigured = append(l.ready.Reconfigured, Reconfigured{t.Zxid, l.committed, leader})
	l.tell(Activated{t.Zxid, l.committed.Version(), leader})
	if leader != l.opt.ID {
		l.giveUp(fmt.Sprintf("server %d leads under the new configuration", leader))
	}
}

// designate names who leads under the proposed membership: this server if it
// votes there, else the new voter that has acknowledged most.
func (l *Leader) designate(z wire.Zxid) ensemble.ServerID {
	leader, acked := l.opt.ID, wire.Zxid(-1)
	if l.lastSeen.IsVoter(l.opt.ID) {
		return leader
	}
	for _, v := range l.lastSeen.Voters() {
		id := v
		if k := l.linkOf(id); k != nil && k.acked >= z && k.acked > acked {
			leader, acked = id, k.acked
		}
	}
	return leader
}
