package zab

import (
	"fmt"

	"bellwether/internal/ensemble"
	"bellwether/internal/peerwire"
)

// history returns the history that learners get: before the leader serves, its whole
// log; later, what is committed. A snapshot is sent with the zxid of the last committed
// transaction. ZooKeeper sends the zxid with counter 0 of the epoch if that is later. The
// votes of such a learner would claim more history than the votes of servers that have
// the same transactions.
func (l *Leader) history() history {
	h := history{before: l.log.before, newest: l.log.last, last: l.log.last, tree: l.log.applied, disk: l.opt.DiskLog, force: l.opt.ForceSnap}
	if l.phase == serving {
		h.newest = l.log.applied
		h.last = max(l.log.applied, l.epochZero())
		h.tree = h.newest
		if l.opt.CompatibleOnly {
			h.tree = h.last
		}
	}
	h.committed = l.log.entries[:l.log.index(h.newest)]
	return h
}

// synchronise decides how a learner gets the history, and begins.
func (l *Leader) synchronise(k *link) {
	h := l.history()
	h.force = h.force || l.trees.owes(k.server, l.now)
	p := choose(&h, k.peer)
	if p.ask {
		k.state, k.heard = linkReading, l.now
		l.ready.ReadLog = append(l.ready.ReadLog, ReadLog{Link: k.id, After: k.peer, Through: h.min()})
		return
	}
	l.deliver(k, &h, p)
}

func (l *Leader) logRead(e LogRead) {
	k := l.links[e.Link]
	if k == nil || k.state != linkReading {
		return
	}
	h := l.history()
	k.heard = l.now
	l.deliver(k, &h, chooseRead(&h, k.peer, e.Txns, e.OK))
}

// deliver sends the history. From the same step on the learner gets all proposals, so
// that it misses none. Before NEWLEADER only committed transactions are sent; outstanding
// transactions follow after NEWLEADER. (ZooKeeper sends the outstanding ones first, which
// its own followers of version 3.8 do not tolerate: ZOOKEEPER-4394.)
func (l *Leader) deliver(k *link, h *history, p plan) {
	if !l.admit(k, p.how) {
		l.drop(k, fmt.Sprintf("too many learners are being synchronised by %v", p.how))
		return
	}
	k.how, k.state, k.heard = p.how, linkSyncing, l.now
	k.upTo = h.newest
	if p.how == Snap {
		l.treeSent(k)
	}
	opening := map[SyncMode]peerwire.PacketType{Diff: peerwire.PacketDiff, Trunc: peerwire.PacketTrunc, Snap: peerwire.PacketSnap}[p.how]
	l.ready.Send = append(l.ready.Send, Message{
		Link: k.id, Packet: &peerwire.QuorumPacket{Type: opening, Zxid: p.zxid}, Snapshot: p.how == Snap,
	})
	for _, t := range p.txns {
		l.send(k, &peerwire.QuorumPacket{Type: peerwire.PacketProposal, Zxid: t.Zxid, Data: t.Append(nil)})
		l.send(k, &peerwire.QuorumPacket{Type: peerwire.PacketCommit, Zxid: t.Zxid})
	}
	l.send(k, &peerwire.QuorumPacket{Type: peerwire.PacketNewLeader, Zxid: l.epochZero(), Data: []byte(l.newMembers().String())})
	l.report(SyncBegan{k.name(), p.how, k.peer, p.zxid, len(p.txns)})
	if l.phase != serving || k.observer {
		return
	}
	for _, t := range l.log.between(l.log.applied, l.log.last) {
		l.propagate(k, &peerwire.QuorumPacket{Type: peerwire.PacketProposal, Zxid: t.Zxid, Data: t.Append(nil)})
	}
}

// admit reports whether one more learner may be synchronised in this way. A voter
// always may.
func (l *Leader) admit(k *link, how SyncMode) bool {
	n, limit := 0, l.opt.DiffMax
	if how == Snap {
		limit = l.opt.SnapMax
	}
	for _, o := range l.order {
		if o.state == linkSyncing && (o.how == Snap) == (how == Snap) {
			n++
		}
	}
	return !k.observer || n < limit
}

// newMembers returns the configuration that NEWLEADER carries. Before the leader serves,
// that is the proposed one, which is committed when the leader serves; later it is the
// committed one. A configuration without a version gets the zxid of the epoch as its
// version, so that it outranks all other configurations without one (ZOOKEEPER-1783).
func (l *Leader) newMembers() *ensemble.Membership {
	m := l.committed
	if l.lastSeen != nil && l.phase != serving {
		m = l.lastSeen
	}
	if m.Version() == 0 {
		m = m.WithVersion(int64(l.epochZero()))
	}
	return m
}

// establish begins to serve. From here on the whole log is committed.
func (l *Leader) establish() {
	discover, took, m := l.phaseBegan-l.began, l.now-l.phaseBegan, l.newMembers()
	l.enter(serving)
	l.pings.confirmed.at = l.now
	l.ready.Commit = append(l.ready.Commit, l.log.take(l.log.last)...)
	est := &Established{Epoch: l.epoch, Installed: l.log.fresh}
	l.log.fresh = false
	goesOn := l.Leads(m)
	if m.Version() != l.committed.Version() {
		est.Members, l.committed, l.lastSeen = m, m, nil
		l.configured(m)
	}
	l.ready.Established = est
	l.nextLinkCheck, l.pings.due, l.nextQuorumCheck = l.now, l.now, l.now+l.opt.TickMS
	l.report(LeaderServes{l.epoch, discover, took, l.now - l.began, l.followers()})
	for _, k := range l.order {
		if k.state == linkSynced {
			l.serve(k)
		}
	}
	if !goesOn {
		l.giveUp("it has no vote under the new configuration, or another address")
	}
}

// serve sends UPTODATE to a learner that has the history.
func (l *Leader) serve(k *link) {
	k.state, k.heard = linkServing, l.now
	l.send(k, &peerwire.QuorumPacket{Type: peerwire.PacketUpToDate, Zxid: -1})
	l.report(LearnerServes{k.name(), k.how, l.now - k.began})
}
