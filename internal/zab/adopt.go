package zab

import (
	"fmt"
	"slices"

	"bellwether/internal/ensemble"
	"bellwether/internal/peerwire"
	"bellwether/internal/record"
	"bellwether/wire"
)

// opening handles the first packet of the history, which says how this server gets the
// history.
func (r *Learner) opening(p *peerwire.QuorumPacket) {
	how := map[peerwire.PacketType]SyncMode{peerwire.PacketDiff: Diff, peerwire.PacketTrunc: Trunc, peerwire.PacketSnap: Snap}[p.Type]
	if how == 0 || p.Zxid < 0 || p.Zxid.Epoch() > r.epoch {
		r.giveUp(fmt.Sprintf("the leader began the synchronisation with %v(%v) instead of DIFF, TRUNC or SNAP of its epoch", p.Type, p.Zxid))
		return
	}
	if r.claimed != r.log.last && how != Snap {
		r.giveUp(fmt.Sprintf("the leader sent %v, although this server has claimed an empty log", p.Type))
		return
	}
	r.step, r.how, r.adoptedAt = adopting, how, r.now
	r.report(Synchronising{r.opt.Leader, r.epoch, how, r.log.last, p.Zxid})
	switch how {
	case Diff:
		r.opened = r.log.last
	case Trunc:
		r.truncate(p.Zxid)
	case Snap:
		r.opened = p.Zxid
	}
	r.tail, r.decided = r.opened, r.opened
}

// truncate cuts the log to z. z must be in the log, since otherwise it is not known
// whether the log below z is the leader's. And the leader's own history must not reach beyond z.
func (r *Learner) truncate(z wire.Zxid) {
	to, ok := r.log.reach(z)
	switch {
	case !ok:
		r.wantSnapshot(fmt.Sprintf("the leader asks for a truncation to %v, which is not in the log", z))
		return
	case z < r.opt.Elected:
		r.wantSnapshot(fmt.Sprintf("the leader asks for a truncation to %v, but its own history reached %v when it was elected", z, r.opt.Elected))
		return
	}
	r.ready.Truncate = &Truncate{Zxid: to, Rebuild: r.log.applied > to}
	r.generation++
	r.log.cut(to, r.generation)
	r.opened = to
}

// lacks reports whether the committed history that the leader has sent lacks the transaction with which it was elected. A
// ZooKeeper leader can send such a history: its list of committed transactions can end before its tree, or have a gap
// (ZOOKEEPER-4712, 4925). Its snapshot has them all. A vote whose zxid has counter 0 names an epoch and no transaction, so nothing
// can be checked.
func (r *Learner) lacks() bool {
	e := r.opt.Elected
	return e.Counter() != 0 && e > r.opened && !slices.ContainsFunc(r.pending[:r.firstUncommitted()], func(t *record.Txn) bool { return t.Zxid == e })
}

// wantSnapshot ends this attempt to get the history. This server connects again, and the next promise claims an empty log, so
// that a snapshot comes. If this one was a snapshot, the term ends.
func (r *Learner) wantSnapshot(why string) {
	if r.how == Snap {
		r.giveUp(why)
		return
	}
	r.log.wantsSnapshot = true
	r.ready.Again = true
	r.giveUp(why + "; this server connects again for a snapshot")
}

// history handles the packets from the first one of the history up to UPTODATE. Nothing
// is applied before UPTODATE, and nothing uncommitted is logged. Pings and unexpected
// packets are ignored.
func (r *Learner) history(p *peerwire.QuorumPacket) {
	switch p.Type {
	case peerwire.PacketProposal:
		r.queue(p.Zxid, p.Data)
	case peerwire.PacketCommit:
		r.decide(p.Zxid)
	case peerwire.PacketCommitActivate:
		r.decideActivation(p)
	case peerwire.PacketInform:
		if r.queue(p.Zxid, p.Data) {
			r.decide(p.Zxid)
		}
	case peerwire.PacketInformActivate:
		if data, ok := r.informed(p); ok && r.queue(p.Zxid, data) {
			r.decideActivation(p)
		}
	case peerwire.PacketNewLeader:
		r.newLeader(p)
	case peerwire.PacketUpToDate:
		r.upToDate()
	}
}

// informed returns the transaction of an INFORMANDACTIVATE.
func (r *Learner) informed(p *peerwire.QuorumPacket) ([]byte, bool) {
	a, ok := r.activation(p)
	return a.Txn, ok
}

// activation decodes what the commit of a reconfiguration carries.
func (r *Learner) activation(p *peerwire.QuorumPacket) (a peerwire.Activation, ok bool) {
	if err := wire.Decode(p.Data, &a); err != nil {
		r.giveUp(fmt.Sprintf("the leader's %v cannot be read: %v", p.Type, err))
		return a, false
	}
	return a, true
}

// decideActivation handles the commit of a reconfiguration, which holds from UPTODATE on.
func (r *Learner) decideActivation(p *peerwire.QuorumPacket) {
	a, ok := r.activation(p)
	if !ok || p.Zxid <= r.decided {
		return
	}
	i := r.firstUncommitted()
	if r.decide(p.Zxid); r.step == ended || !r.opt.Reconfig {
		return
	}
	if m := MembershipOf(r.pending[i]); m != nil {
		r.members, r.designated = m, a.Leader
	}
}

// decode decodes a proposal. If the proposal is not valid, decode ends the term and returns nil.
func (r *Learner) decode(z wire.Zxid, data []byte) *record.Txn {
	t, err := record.DecodeTxn(data)
	switch {
	case err != nil:
		r.giveUp(fmt.Sprintf("the leader's transaction %v cannot be read: %v", z, err))
		return nil
	case t.Zxid != z || z.Epoch() > r.epoch:
		r.giveUp(fmt.Sprintf("the leader of epoch %d sent transaction %v as %v", r.epoch, t.Zxid, z))
		return nil
	}
	return t
}

// queue adds a transaction to the pending ones. It ignores a transaction that is
// already known. It refuses a gap, which this server would pass on when it leads
// (ZOOKEEPER-4925). It returns false if the term has ended.
func (r *Learner) queue(z wire.Zxid, data []byte) bool {
	t := r.decode(z, data)
	switch {
	case t == nil:
		return false
	case z <= r.tail:
		return true
	case !follows(r.tail, z):
		r.wantSnapshot(fmt.Sprintf("the leader sent transaction %v after %v, which it does not follow", z, r.tail))
		return false
	}
	r.pending = append(r.pending, t)
	r.tail = z
	return true
}

// decide handles the commit of the next pending transaction.
func (r *Learner) decide(z wire.Zxid) {
	if z <= r.decided {
		return
	}
	if i := r.firstUncommitted(); i == len(r.pending) || r.pending[i].Zxid != z {
		r.giveUp(fmt.Sprintf("the leader committed %v, which does not follow %v", z, r.decided))
		return
	}
	r.decided = z
}

// firstUncommitted returns the index of the first pending transaction that is not committed.
func (r *Learner) firstUncommitted() int {
	i := 0
	for i < len(r.pending) && r.pending[i].Zxid <= r.decided {
		i++
	}
	return i
}

// newLeader handles NEWLEADER, the end of the committed history, and begins to make the
// history durable: the log or the snapshot first, then currentEpoch, then the ACK, each
// after the one before is durable (ZOOKEEPER-3911, 4643, 4646). Uncommitted transactions
// wait for UPTODATE.
func (r *Learner) newLeader(p *peerwire.QuorumPacket) {
	if r.step != adopting || p.Zxid != wire.MakeZxid(r.epoch, 0) {
		r.giveUp(fmt.Sprintf("the leader of epoch %d sent NEWLEADER %v", r.epoch, p.Zxid))
		return
	}
	if r.how != Snap && r.lacks() {
		r.wantSnapshot(fmt.Sprintf("the leader has sent the history from %v to %v without %v, with which it was elected", r.opened, r.decided, r.opt.Elected))
		return
	}
	if !r.configure(p.Data) {
		return
	}
	r.step = logging
	i := r.firstUncommitted()
	done := r.pending[:i:i]
	r.pending = r.pending[i:]
	if r.how == Snap {
		r.install(done)
	} else {
		r.append(done)
		r.ready.Sync = true
	}
	r.target = r.log.last
	if r.members != nil {
		r.log.Propose(r.members) // after the reconfigurations before it
	}
}

// configure decodes the leader's configuration. It returns false if the term has ended.
func (r *Learner) configure(text []byte) bool {
	if !r.opt.Reconfig || len(text) == 0 {
		return true
	}
	m, err := ensemble.Parse(string(text))
	if err != nil {
		r.giveUp("the leader's configuration cannot be read: " + err.Error())
		return false
	}
	if r.members = m; m.Version() > r.opt.Committed.Version() {
		r.ready.LastSeen = m
	}
	return true
}

// install replaces the whole history by the snapshot and the transactions behind it.
func (r *Learner) install(done []*record.Txn) {
	r.ready.Install = &Install{Link: r.opt.Link, Zxid: r.decided, Txns: done}
	r.generation++
	r.log.install(r.opened, done, r.generation)
}

// append logs transactions.
func (r *Learner) append(txns []*record.Txn) {
	for _, t := range txns {
		r.remember(t)
		r.ready.Append = append(r.ready.Append, t)
	}
}

// remember adds a transaction, which must follow the last one, to the log in memory.
func (r *Learner) remember(t *record.Txn) {
	if err := r.log.Append(t); err != nil {
		panic("zab: " + err.Error())
	}
	if m := MembershipOf(t); r.opt.Reconfig && m != nil {
		r.ready.LastSeen = m
	}
}

func (r *Learner) installed(e Installed) {
	r.log.confirm(e.Generation)
	if e.Generation == r.generation && r.step == logging && r.how == Snap && e.Zxid >= r.target {
		r.saveCurrent()
	}
}

// logSynced handles the event that the log is durable up to e.Zxid.
func (r *Learner) logSynced(e Synced) {
	r.log.confirm(e.Generation)
	switch {
	case e.Generation != r.generation:
	case r.step == logging && r.how != Snap && e.Zxid >= r.target:
		r.saveCurrent()
	case r.step == following:
		r.acknowledgeTo(e.Zxid)
	}
}

func (r *Learner) saveCurrent() {
	if r.opt.Current == r.epoch {
		r.acknowledge()
		return
	}
	r.step = saving
	r.ready.SaveCurrent = r.epoch
}

// acknowledge sends the ACK of NEWLEADER: the leader's history is on the disk.
func (r *Learner) acknowledge() {
	r.step = adopted
	r.heardNow()
	r.send(&peerwire.QuorumPacket{Type: peerwire.PacketAck, Zxid: wire.MakeZxid(r.epoch, 0)})
}

// upToDate handles UPTODATE. From now on clients may see the history. Transactions that
// are not committed yet are logged and acknowledged like any proposal.
func (r *Learner) upToDate() {
	if r.step != adopted {
		r.giveUp("the leader sent UPTODATE before the history was acknowledged")
		return
	}
	est := &Established{Epoch: r.epoch, Installed: r.log.fresh}
	if r.members != nil && r.members.Version() > r.opt.Committed.Version() {
		est.Members = r.members
	}
	if est.Members != nil {
		if why := r.whyTermEnds(est.Members, r.designated); why != "" {
			r.configured(est.Members)
			r.ready.Reconfigured = append(r.ready.Reconfigured, Reconfigured{wire.Zxid(est.Members.Version()), est.Members, r.designated})
			r.giveUp(why)
			return
		}
	}
	r.step = following
	r.send(&peerwire.QuorumPacket{Type: peerwire.PacketAck, Zxid: wire.MakeZxid(r.epoch, 0)})
	pending := r.pending
	r.pending, r.log.fresh = nil, false
	r.append(pending)
	for _, t := range pending {
		r.unacked.Push(t.Zxid)
	}
	if est.Members != nil {
		r.configured(est.Members)
	}
	r.ready.Commit = append(r.ready.Commit, r.log.take(r.decided)...)
	r.ready.Established = est
	if r.opt.ServeObservers && !r.opt.Observer && r.relays() == r.native {
		r.master = newObserverMaster(r)
	}
	r.report(ServesUnder{r.opt.Leader, r.epoch, r.how, r.adoptedAt - r.began, r.now - r.adoptedAt, r.now - r.began, r.opt.Observer, r.opt.Master})
}

// configured records in the log that a membership is committed.
func (r *Learner) configured(m *ensemble.Membership) {
	if r.opt.Reconfig {
		r.log.Configure(m)
	}
}

// voters returns the membership that is committed now.
func (r *Learner) voters() *ensemble.Membership {
	if committed, _ := r.log.Memberships(); committed != nil {
		return committed
	}
	return r.opt.Committed
}

// whyTermEnds says why the term ends under a configuration with this leader. It returns
// an empty text if the term goes on.
func (r *Learner) whyTermEnds(m *ensemble.Membership, leader ensemble.ServerID) string {
	switch {
	case leader != r.opt.Leader:
		return fmt.Sprintf("server %d leads under the new configuration", leader)
	case r.opt.Committed.IsVoter(leader) && !m.IsVoter(leader):
		return "its leader has no vote in the new configuration"
	case r.observes(m) != r.opt.Observer:
		return "its role is another one in the new configuration"
	}
	return ""
}

// observes reports whether a configuration makes this server an observer. A server
// that the configuration does not name takes part like a follower, without a vote.
func (r *Learner) observes(m *ensemble.Membership) bool {
	s, ok := m.Server(r.opt.ID)
	return ok && s.Role == ensemble.Observer
}
