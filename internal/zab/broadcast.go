package zab

import (
	"fmt"
	"slices"

	"bellwether/internal/ensemble"
	"bellwether/internal/peerwire"
	"bellwether/internal/record"
	"bellwether/wire"
)

// NextZxid returns the zxid that the next transaction must have. It returns false
// while nothing can be proposed: before the leader serves, during a leadership
// transfer, and at the end of the counter, where the next zxid would overflow into
// the epoch (ZOOKEEPER-1277).
func (l *Leader) NextZxid() (wire.Zxid, bool) {
	if l.phase != serving || l.transfer != nil || l.proposed.Counter() >= l.opt.CounterMax {
		return 0, false
	}
	return l.proposed + 1, true
}

// propose logs a transaction and sends it to all followers.
func (l *Leader) propose(t *record.Txn) {
	if next, ok := l.NextZxid(); !ok || t.Zxid != next {
		panic(fmt.Sprintf("zab: proposed %v, next is %v (%v)", t.Zxid, next, ok))
	}
	l.follow(t)
	if t.Zxid == l.reconfig {
		l.ready.LastSeen = l.lastSeen
	}
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

// MembershipOf returns the membership that a transaction proposes; nil if the transaction
// is no reconfiguration.
func MembershipOf(t *record.Txn) *ensemble.Membership {
	body, ok := t.Body.(*record.SetDataTxn)
	if !ok || t.Type != wire.OpReconfig {
		return nil
	}
	m, err := ensemble.Parse(string(body.Data))
	if err != nil {
		return nil // the tree refused the reconfiguration, or should have refused it
	}
	return m
}

// propagate sends a proposal to a follower. If no earlier proposal waits for the follower's
// ACK, propagate records this one and the time.
func (l *Leader) propagate(k *link, p *peerwire.QuorumPacket) {
	l.send(k, p)
	if k.watched == 0 {
		k.watched, k.watchedAt = p.Zxid, l.now
	}
}

// announce tells all learners of a commit. Followers have the transaction, so they get
// only its zxid; observers get the whole transaction. If there is a designated leader,
// the packets are those of a reconfiguration.
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

// activate commits a reconfiguration. Its membership holds from here on, and all
// learners are told which server leads under it. If another server leads, this term ends.
func (l *Leader) activate(t *record.Txn) {
	leader := l.designate(t.Zxid)
	l.activateMembership()
	l.configured(l.committed)
	l.announce(t, &leader)
	l.ready.Reconfigured = append(l.ready.Reconfigured, Reconfigured{t.Zxid, l.committed, leader})
	l.report(Activated{t.Zxid, l.committed.Version(), leader})
	if leader != l.opt.ID {
		l.giveUp(fmt.Sprintf("server %d leads under the new configuration", leader))
	}
}

// configured records in the log that a membership is committed, if memberships are tracked.
func (l *Leader) configured(m *ensemble.Membership) {
	if committed, _ := l.log.Memberships(); committed != nil {
		l.log.Configure(m)
	}
}

// Leads reports whether this leader can go on under another membership: it has a vote
// there and the same quorum addresses.
func (l *Leader) Leads(m *ensemble.Membership) bool {
	if !m.IsVoter(l.opt.ID) {
		return false
	}
	before, known := l.committed.Server(l.opt.ID)
	after, _ := m.Server(l.opt.ID)
	return !known || slices.EqualFunc(before.Addresses, after.Addresses, func(a, b ensemble.Address) bool { return a.Quorum() == b.Quorum() })
}

// QuorumOf reports whether this server and the followers that have the history are a
// quorum of a membership.
func (l *Leader) QuorumOf(m *ensemble.Membership) bool {
	return l.phase == serving && m.HasQuorum(func(id ensemble.ServerID) bool {
		k := l.linkOf(id)
		return id == l.opt.ID || k != nil && k.state == linkServing && !k.observer
	})
}

// designate returns the server that leads under the proposed membership: this server if
// it can, otherwise the new voter that has acknowledged most.
func (l *Leader) designate(z wire.Zxid) ensemble.ServerID {
	leader, acked := l.opt.ID, wire.Zxid(-1)
	if l.Leads(l.lastSeen) {
		return leader
	}
	for _, id := range l.lastSeen.Voters() {
		if k := l.linkOf(id); k != nil && !k.observer && k.durable >= z && k.durable > acked {
			leader, acked = id, k.durable
		}
	}
	return leader
}
