package zab

import (
	"fmt"

	"bellwether/internal/peerwire"
	"bellwether/wire"
)

// named handles a learner's first packet, which says who the learner is and which epoch
// it has accepted. The new epoch is later than any epoch that a member has accepted;
// servers that are not members do not raise it. A member can raise it by epochAhead at
// most, so that nobody can use up the epochs. A member that is farther ahead joins in a
// later term, because each term raises the epoch further.
func (l *Leader) named(k *link, p *peerwire.QuorumPacket) string {
	var info peerwire.LearnerInfo
	accepted, most := p.Zxid.Epoch(), max(l.opt.Accepted, l.opt.Above)+epochAhead
	err := wire.Decode(p.Data, &info)
	member := l.isMember(info.Server)
	ext, offered := peerwire.FindExtension(p.Data, peerwire.LearnerInfoLen)
	switch {
	case k.state != linkNew:
		return fmt.Sprintf("sent %v twice", p.Type)
	case err != nil:
		return "its first packet cannot be read: " + err.Error()
	case info.Version < peerwire.QuorumVersion:
		return fmt.Sprintf("speaks version %#x of the protocol, %#x is needed", info.Version, peerwire.QuorumVersion)
	case info.Server == l.opt.ID:
		return fmt.Sprintf("claims this server's id %d", info.Server)
	case l.opt.NativeOnly && !offered:
		return fmt.Sprintf("is server %d, a ZooKeeper server: %s", info.Server, nativeOnlyRemedy)
	case accepted > EpochMax || p.Zxid < 0:
		return fmt.Sprintf("claims to have accepted epoch %d, which no server can have", accepted)
	case accepted > most:
		if member && l.phase == discovering {
			l.ready.Above = most
		}
		return fmt.Sprintf("has accepted epoch %d, too far ahead of epoch %d of this server", accepted, l.opt.Accepted)
	case info.ConfigVersion > l.committed.Version():
		return fmt.Sprintf("has configuration version %x, newer than %x of this server", info.ConfigVersion, l.committed.Version())
	}
	switch old := l.linkOf(info.Server); {
	case old == nil:
	case l.answers(old):
		return l.claimed(k, old)
	default:
		l.drop(old, "the same server has connected again")
	}
	k.state, k.server, k.observer = linkNamed, info.Server, p.Type == peerwire.PacketObserverInfo
	l.servers[k.server] = k
	delete(l.routes, k.server)
	k.native = offered && !l.opt.CompatibleOnly
	k.canTransfer = k.native && ext.Version >= peerwire.ExtensionHandOver
	k.digests = k.native && ext.Version >= peerwire.ExtensionDigest
	l.hasNamed(k, member, accepted)
	return ""
}

// hasNamed continues with a learner that has named itself and the epoch that it has accepted.
func (l *Leader) hasNamed(k *link, member bool, accepted wire.Epoch) {
	switch {
	case member && accepted > l.epoch && l.phase == serving:
		l.endForLaterEpoch(k, accepted)
	case l.phase == discovering:
		if member {
			l.epoch = max(l.epoch, accepted+1)
		}
		l.discover()
	case l.own.promised:
		l.invite(k)
	}
}

// nativeOnlyRemedy says why a ZooKeeper server is refused, and what to do.
const nativeOnlyRemedy = "it could not check the passwords that sessionSecretFile makes; put the line zookeeper first in that file while such a server is a member"

// answers reports whether a native peer was heard from on this link just now. If a server
// has lost its connection and connects again, its old link is silent. If the old link is
// not silent, a second server uses the same id, and must not replace the first.
func (l *Leader) answers(k *link) bool {
	return k.native && k.state == linkServing && l.now-k.heard < 2*l.opt.HeartbeatMS
}

// claimed says why the link k, which claims the id of the answering link old, is refused. A
// server that connects again says nothing more on its old link, which is closed soon. If the
// old link is still heard from two heartbeats after such a claim, there are two servers.
func (l *Leader) claimed(k, old *link) string {
	old.claimedAt = min(old.claimedAt, l.now)
	if old.heard-old.claimedAt >= 2*l.opt.HeartbeatMS {
		return fmt.Sprintf("uses the id of server %d, which is connected already: two servers have this myid; correct one of them", old.server)
	}
	k.returns = true
	return fmt.Sprintf("is server %d, whose former connection is not closed yet: it connects again", old.server)
}

// discover fixes the epoch once a quorum has said which epochs it has accepted.
func (l *Leader) discover() {
	if l.phase != discovering || !l.acknowledged((*acks).joined) {
		return
	}
	l.ready.SaveAccepted = l.epoch
	l.enter(promising)
}

// saved handles the event that an epoch is durable.
func (l *Leader) saved(e Saved) {
	if e.Generation != l.generation {
		return
	}
	if e.Accepted == l.epoch && l.phase == promising && !l.own.promised {
		l.own.promised = true
		for _, k := range l.order {
			if k.state == linkNamed {
				l.invite(k)
			}
		}
		l.promise()
	}
	if e.Current == l.epoch && !l.current {
		l.current = true
		l.adopt()
	}
}

// invite sends a learner the new epoch (LEADERINFO).
func (l *Leader) invite(k *link) {
	data := wire.Append(nil, &peerwire.LeaderInfo{Version: peerwire.QuorumVersion})
	if k.native {
		data = wire.Append(data, &peerwire.Extension{Version: peerwire.ExtensionVersion, LeaseMS: int32(l.opt.LeaseMS)})
	}
	k.state, k.heard = linkInvited, l.now
	l.send(k, &peerwire.QuorumPacket{Type: peerwire.PacketLeaderInfo, Zxid: l.epochZero(), Data: data})
}

// promised handles a learner's promise of the epoch. The packet also says where the
// learner's log ends. A voter whose history is ahead of the leader's is disconnected,
// because it must not lose that history. NoEpoch means that the voter had accepted the
// epoch before, so this packet is not a promise.
func (l *Leader) promised(k *link, p *peerwire.QuorumPacket) string {
	var ack peerwire.EpochAck
	err := wire.Decode(p.Data, &ack)
	theirs := summary{wire.Epoch(ack.CurrentEpoch), p.Zxid}
	switch {
	case k.state != linkInvited:
		return "promised an epoch before one was sent"
	case err != nil:
		return "sent a promise that cannot be read: " + err.Error()
	case ack.CurrentEpoch < peerwire.NoEpoch || theirs.current > l.epoch || p.Zxid.Epoch() > l.epoch || p.Zxid < 0:
		return fmt.Sprintf("has history %v of epoch %d, which epoch %d cannot follow", p.Zxid, ack.CurrentEpoch, l.epoch)
	}
	k.peer, k.state = p.Zxid, linkPromised
	if ack.CurrentEpoch != peerwire.NoEpoch && l.phase == promising {
		if l.summary.less(theirs) {
			return fmt.Sprintf("is ahead: history %v of epoch %d, here %v of %d", theirs.last, theirs.current, l.summary.last, l.summary.current)
		}
		k.promised = true
	}
	if l.phase == promising {
		l.promise()
	} else {
		l.synchronise(k)
	}
	return ""
}

// promise ends discovery once a quorum has promised the epoch: from then on no earlier
// leader can commit anything.
func (l *Leader) promise() {
	if l.phase != promising || !l.own.promised || !l.acknowledged(func(a *acks) bool { return a.promised }) {
		return
	}
	l.ready.Joined = true
	l.report(EpochAgreed{l.epoch, l.now - l.began})
	l.enter(synchronising)
	l.proposed = l.epochZero()
	l.saveCurrent()
	for _, k := range append([]*link(nil), l.order...) {
		if k.state == linkPromised {
			l.synchronise(k)
		}
	}
}

// saveCurrent saves currentEpoch once the epoch is agreed on and the log is durable.
// The log comes first, so that no crash leaves the epoch without its history.
func (l *Leader) saveCurrent() {
	if l.phase == synchronising && l.synced && !l.current {
		l.ready.SaveCurrent = l.epoch
	}
}
