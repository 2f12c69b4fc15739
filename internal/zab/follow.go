package zab

import (
	"fmt"
	"slices"

	"bellwether/internal/ensemble"
	"bellwether/internal/peerwire"
	"bellwether/wire"
)

// afterUpToDate handles the packets that the leader sends after UPTODATE.
func (r *Learner) afterUpToDate(p *peerwire.QuorumPacket) {
	switch p.Type {
	case peerwire.PacketProposal:
		r.proposed(p.Zxid, p.Data)
	case peerwire.PacketCommit:
		r.committed(p.Zxid)
	case peerwire.PacketInform:
		if r.proposed(p.Zxid, p.Data) {
			r.committed(p.Zxid)
		}
	case peerwire.PacketCommitActivate:
		r.activated(p)
	case peerwire.PacketInformActivate:
		if data, ok := r.informed(p); ok && r.proposed(p.Zxid, data) {
			r.activated(p)
		}
	case peerwire.PacketPing:
		r.pinged(p)
	case peerwire.PacketSync:
		r.synced()
	case peerwire.PacketRevalidate:
		r.revalidated(p)
	case peerwire.PacketHandOver:
		r.successorNamed(p)
	case peerwire.PacketTouch:
		r.touchesConfirmed(p)
	case peerwire.PacketRelay:
		if r.master != nil {
			r.master.relayed(p)
		}
	case peerwire.PacketDigest:
		r.treeOrdered(p)
	default:
		r.report(Unexpected{fmt.Sprintf("leader %d", r.opt.Leader), p.Type})
	}
}

// proposed logs a transaction. It tolerates one that is known already. It returns false
// if the term has ended.
func (r *Learner) proposed(z wire.Zxid, data []byte) bool {
	t := r.decode(z, data)
	switch {
	case t == nil:
		return false
	case z <= r.tail:
		return true
	case !follows(r.tail, z):
		r.giveUp(fmt.Sprintf("the leader proposed %v after %v, which it does not follow", z, r.tail))
		return false
	}
	r.tail = z
	r.remember(t)
	r.ready.Append = append(r.ready.Append, t)
	r.unacked.Push(z)
	return true
}

// committed handles the commit of the next transaction and hands the transaction out
// for applying. It need not be on this server's disk, because a quorum has it.
func (r *Learner) committed(z wire.Zxid) { r.commit(z, nil) }

// commit is committed. If there is a designated leader, the transaction is a reconfiguration.
func (r *Learner) commit(z wire.Zxid, designated *ensemble.ServerID) {
	if z <= r.decided {
		return
	}
	next := r.log.between(r.log.applied, z)
	if len(next) != 1 || next[0].Zxid != z {
		r.giveUp(fmt.Sprintf("the leader committed %v, which does not follow %v", z, r.decided))
		return
	}
	t := next[0] // MarkApplied may move the entries of the log
	r.decided = z
	r.ready.Commit = append(r.ready.Commit, t)
	r.log.MarkApplied(z)
	if r.master != nil {
		r.master.committed(t, designated)
	}
}

// activated handles the commit of a reconfiguration. The term ends if the new
// configuration gives this server another role or the ensemble another leader.
func (r *Learner) activated(p *peerwire.QuorumPacket) {
	a, ok := r.activation(p)
	if !ok {
		return
	}
	txns := slices.Clone(r.log.between(r.decided, p.Zxid))
	if r.commit(p.Zxid, &a.Leader); r.step == ended || len(txns) == 0 || !r.opt.Reconfig {
		return
	}
	m := MembershipOf(txns[0])
	if m == nil {
		return
	}
	r.configured(m)
	r.ready.Reconfigured = append(r.ready.Reconfigured, Reconfigured{p.Zxid, m, a.Leader})
	r.report(Activated{p.Zxid, m.Version(), a.Leader})
	if why := r.whyTermEnds(m, a.Leader); why != "" {
		r.giveUp(why)
	}
}

// acknowledgeTo acknowledges all proposals up to z, which are durable. For a native
// leader the last ACK stands for all of them; a compatible leader needs one for each.
func (r *Learner) acknowledgeTo(z wire.Zxid) {
	for f := r.unacked.First(); f != nil && *f <= z; f = r.unacked.First() {
		acked := r.unacked.Pop()
		more := r.unacked.Len() > 0 && *r.unacked.First() <= z
		if !r.opt.Observer && (!r.native || !more) {
			r.send(&peerwire.QuorumPacket{Type: peerwire.PacketAck, Zxid: acked})
		}
	}
}
