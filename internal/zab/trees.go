package zab

import (
	"fmt"
	"maps"
	"slices"

	"bellwether/internal/ensemble"
	"bellwether/internal/peerwire"
	"bellwether/internal/record"
	"bellwether/wire"
)

// Each transaction carries the digest that the leader's tree has after it, so a learner notices
// when its tree differs from the leader's. It cannot know which of the two is wrong. Therefore the
// leader compares the trees of all voters, and a quorum of equal trees is right.
//
// A comparison begins when somebody doubts a tree, and is repeated at each tick while somebody does. The leader
// asks all learners for the digests of their trees after the last proposal. Links keep their order, so
// no learner has applied anything later when it is asked, and all digests are those after the same transaction.
//
//	equal trees have                          the leader
//	a quorum of voters and this leader        closes the link of a learner with another tree, and
//	                                          sends it a snapshot when it comes back (replaceTree)
//	a quorum of voters, but not this leader   transfers leadership to one of them, or ends its term (outvoted)
//	no quorum                                 does nothing
//
// The first two exclude each other, because two quorums have a server in common. Only answers of
// the present links count, and only digests after the same transaction, so nothing is gained by waiting
// for more answers than those of a quorum. A server that is a quorum by itself proves nothing: two servers
// must have the same tree.
//
// A tree that was copied from another server by a snapshot proves nothing about that other tree. It does not
// count until a comparison has confirmed it: a quorum without it has the same tree, or all voters
// have. Otherwise a wrong leader could find its quorum among servers that have its tree, and a
// snapshot would replace the last right one. And if such a copy differs, its tree may be wrong because the leader's snapshot is:
// memory that changes behind the back of the program is in the snapshot, but not in the leader's digest. So this
// leader does not replace a copy of its own tree.

// TreeReport says what this server knows about its tree. On a learner it goes to the leader, if the
// leader compares trees; on a leader it is the leader's own part.
type TreeReport struct {
	Zxid wire.Zxid // that of the digest, if it is known
	peerwire.TreeReport
}

// TreeOrder is what the comparison asks of this server or says to it. A TreeReportDue is answered with a
// TreeReport for exactly its zxid, without a digest if the tree is already beyond it.
type TreeOrder struct {
	Zxid wire.Zxid
	peerwire.TreeOrder
}

// TreeOutvoted says that this server, the leader, has another tree than a quorum of its followers, whose
// digest is given. It is never sent.
const TreeOutvoted peerwire.TreeTask = -1

func (TreeReport) event() {}

// treeState is what a leader knows about the tree of one server.
type treeState struct {
	report   peerwire.TreeReport
	asked    bool // it has to answer the present question
	answered bool // it has answered it with a digest, report.Digest
	told     bool // it was told the result for the present question
	blamed   bool // a difference that stays was reported
	outvotes bool // it has the tree of a quorum, and this leader has not
	replaced bool // it is sent a snapshot because its tree is wrong
}

// trees is what a leader knows about the trees of its learners.
type trees struct {
	own     treeState
	polling bool // a question was asked in this term
	zxid    wire.Zxid
	until   int64 // when the next question comes, although not all have answered this one
	// copied holds the members that this leader has sent a snapshot, and that no comparison has
	// confirmed since. A server that restarts may not know that itself. An observer can get a vote.
	copied map[ensemble.ServerID]bool
	// owed holds the learners that get a snapshot if they connect again before a time, because their trees are wrong. Later
	// another comparison is necessary.
	owed map[ensemble.ServerID]int64
	// forced holds the learners that have got such a snapshot in this term.
	forced map[ensemble.ServerID]bool
	pause  int64 // until then no server is told that its tree is wrong, because one has just stopped
}

func newTrees() trees {
	return trees{copied: map[ensemble.ServerID]bool{}, owed: map[ensemble.ServerID]int64{}, forced: map[ensemble.ServerID]bool{}}
}

// owes reports whether a learner gets a snapshot because its tree is wrong.
func (t *trees) owes(id ensemble.ServerID, now int64) bool {
	until, ok := t.owed[id]
	return ok && now < until
}

// ComparesTrees reports whether the leader compares trees. An observer master does not.
func (r *Learner) ComparesTrees() bool {
	return r.extension >= peerwire.ExtensionDigest && r.opt.Master == r.opt.Leader
}

// LeaveMaster (learner) says that the tree of this observer has differed for a while, and that its master should end
// the link, so that the observer can connect to the leader. The master does so only if the leader compares trees, and if its own
// tree is that of the leader. If it is not, the leader's tree is probably the wrong one, and not all observers should connect to the leader.
type LeaveMaster struct{}

func (LeaveMaster) event() {}

// CanLeaveMaster reports whether this learner has a master that knows LeaveMaster.
func (r *Learner) CanLeaveMaster() bool {
	return r.step == following && r.extension >= peerwire.ExtensionDigest && r.opt.Master != r.opt.Leader
}

func (r *Learner) leaveMaster() {
	if r.CanLeaveMaster() {
		r.send(&peerwire.QuorumPacket{Type: peerwire.PacketDigest, Data: wire.Append(nil, &peerwire.TreeReport{Wrong: true})})
	}
}

// treeWrong handles the report of an observer whose tree differs.
func (m *observerMaster) treeWrong(k *observer, p *peerwire.QuorumPacket) string {
	var t peerwire.TreeReport
	if err := wire.Decode(p.Data, &t); err != nil {
		return "sent a digest that cannot be read: " + err.Error()
	}
	if t.Wrong && m.r.ComparesTrees() && !m.r.doubted {
		m.drop(k, "its tree differs, and only the leader compares trees")
	}
	return ""
}

// reportTree sends a report to the leader.
func (r *Learner) reportTree(e TreeReport) {
	r.doubted = e.Differs != 0 || e.Wrong
	if r.step != following || !r.ComparesTrees() {
		return
	}
	r.send(&peerwire.QuorumPacket{Type: peerwire.PacketDigest, Zxid: e.Zxid, Data: wire.Append(nil, &e.TreeReport)})
}

// treeOrdered passes on what the leader asks or says about this server's tree.
func (r *Learner) treeOrdered(p *peerwire.QuorumPacket) {
	o := TreeOrder{Zxid: p.Zxid}
	switch err := wire.Decode(p.Data, &o.TreeOrder); {
	case !r.ComparesTrees():
		r.report(Unexpected{fmt.Sprintf("leader %d", r.opt.Leader), p.Type})
	case err != nil:
		r.giveUp("the leader's DIGEST packet cannot be read: " + err.Error())
	default:
		r.ready.TreeOrders = append(r.ready.TreeOrders, o)
	}
}

// learnerTree handles a report of a learner.
func (l *Leader) learnerTree(k *link, p *peerwire.QuorumPacket) string {
	e := TreeReport{Zxid: p.Zxid}
	if err := wire.Decode(p.Data, &e.TreeReport); err != nil {
		return "sent a digest that cannot be read: " + err.Error()
	}
	before := l.whyUnfit(k)
	l.noteTree(&k.tree, e)
	if why := l.whyUnfit(k); why != before {
		l.report(LearnerFitness{k.name(), why})
	}
	l.judgeTrees()
	return ""
}

// ownTree handles a report of this server.
func (l *Leader) ownTree(e TreeReport) {
	l.noteTree(&l.trees.own, e)
	l.judgeTrees()
}

// noteTree records a report. An answer to an earlier question tells nothing, and neither does a digest of another version.
func (l *Leader) noteTree(t *treeState, e TreeReport) {
	digest := t.report.Digest
	t.report = e.TreeReport
	answer := l.trees.polling && e.Zxid == l.trees.zxid
	if answer {
		t.asked = false
	}
	if answer && e.Known && e.Version == record.DigestVersion {
		t.answered = true
	} else {
		t.report.Digest = digest
	}
}

// comparesTrees reports whether a learner can be asked.
func (k *link) comparesTrees() bool { return k.digests && k.state == linkServing }

// doubted reports whether there is a reason to compare the trees. Without another voter nothing can be found.
func (l *Leader) doubted() bool {
	if !slices.ContainsFunc(l.order, func(k *link) bool { return k.comparesTrees() && !k.observer }) {
		return false
	}
	if own := &l.trees.own.report; own.Differs != 0 || own.Copied {
		return true
	}
	return slices.ContainsFunc(l.order, func(k *link) bool {
		return k.comparesTrees() && (k.tree.report.Differs != 0 || l.isCopied(k))
	})
}

// awaitsTrees reports whether a server still has to answer the present question.
func (l *Leader) awaitsTrees() bool {
	return l.trees.own.asked || slices.ContainsFunc(l.order, func(k *link) bool { return k.tree.asked })
}

// isCopied reports whether the tree of a learner is a copy that was not confirmed.
func (l *Leader) isCopied(k *link) bool { return k.tree.report.Copied || l.trees.copied[k.server] }

// compareTrees begins a comparison if there is a reason. It is called once in a tick. A server that applies transactions late
// has until syncLimit to answer.
func (l *Leader) compareTrees() {
	t := &l.trees
	if l.phase != serving || l.transfer != nil || !l.doubted() || l.now < t.until && l.awaitsTrees() {
		return
	}
	t.polling, t.zxid, t.until = true, l.log.last, l.now+l.opt.SyncLimit*l.opt.TickMS
	t.own.asked, t.own.answered, t.own.told = true, false, false
	for _, k := range l.order {
		k.tree.asked, k.tree.answered, k.tree.told = k.comparesTrees(), false, false
		if k.tree.asked {
			l.orderTree(k, peerwire.TreeReportDue, 0)
		}
	}
	l.ready.TreeOrders = append(l.ready.TreeOrders, TreeOrder{Zxid: t.zxid, TreeOrder: peerwire.TreeOrder{Task: peerwire.TreeReportDue}})
}

func (l *Leader) orderTree(k *link, task peerwire.TreeTask, digest uint64) {
	l.send(k, &peerwire.QuorumPacket{Type: peerwire.PacketDigest, Zxid: l.trees.zxid, Data: wire.Append(nil, &peerwire.TreeOrder{Task: task, Digest: digest})})
}

// hasTree reports whether a server takes part in this term as a voter, and has answered that its tree has
// this digest. If original is set, a copy that was not confirmed does not count.
func (l *Leader) hasTree(id ensemble.ServerID, digest uint64, original bool) bool {
	if id == l.self {
		t := &l.trees.own
		return t.answered && t.report.Digest == digest && !(original && t.report.Copied)
	}
	k := l.linkOf(id)
	return k != nil && !k.observer && k.comparesTrees() && k.tree.answered && k.tree.report.Digest == digest && !(original && l.isCopied(k))
}

// treeOfQuorum reports whether the tree with a digest is right.
func (l *Leader) treeOfQuorum(digest uint64) bool {
	return l.treeOfSeveral(digest, true) && l.quorum(func(id ensemble.ServerID) bool { return l.hasTree(id, digest, true) })
}

// treeOfSeveral reports whether at least two voters have the tree with a digest. A server that agrees only with itself
// proves nothing, whatever its weight is.
func (l *Leader) treeOfSeveral(digest uint64, original bool) bool {
	n := 0
	for _, v := range l.committed.Voters() {
		if l.hasTree(v, digest, original) {
			n++
		}
	}
	return n >= 2
}

// treeOfAll reports whether all voters, and at least two, have the tree with a digest.
func (l *Leader) treeOfAll(digest uint64) bool {
	if !l.treeOfSeveral(digest, false) {
		return false
	}
	for _, m := range []*ensemble.Membership{l.committed, l.lastSeen} {
		if m != nil && slices.ContainsFunc(m.Voters(), func(id ensemble.ServerID) bool { return !l.hasTree(id, digest, false) }) {
			return false
		}
	}
	return true
}

// judgeTrees acts on the answers. It is called after each of them.
func (l *Leader) judgeTrees() {
	t := &l.trees
	if l.phase != serving || l.transfer != nil || !t.own.answered {
		return
	}
	digest := t.own.report.Digest
	if l.treeOfQuorum(digest) || l.treeOfAll(digest) {
		l.confirmTrees(digest)
		return
	}
	for _, k := range l.order {
		if other := k.tree.report.Digest; k.tree.answered && other != digest && l.treeOfQuorum(other) {
			l.outvoted(other)
			return
		}
	}
}

// confirmTrees tells the servers that have the right tree that they do, if they doubt it, and the learners that have
// another one that it is wrong.
func (l *Leader) confirmTrees(digest uint64) {
	t := &l.trees
	if !t.own.told && (t.own.report.Copied || t.own.report.Differs != 0) {
		l.ready.TreeOrders = append(l.ready.TreeOrders, TreeOrder{Zxid: t.zxid, TreeOrder: peerwire.TreeOrder{Task: peerwire.TreeConfirmed, Digest: digest}})
	}
	t.own.told, t.own.blamed = true, false
	for _, k := range slices.Clone(l.order) {
		switch {
		case !k.tree.answered || k.tree.told:
		case k.tree.report.Digest != digest:
			l.replaceTree(k, digest)
		default:
			k.tree.told = true
			if k.tree.report.Copied || k.tree.report.Differs != 0 {
				l.orderTree(k, peerwire.TreeConfirmed, digest)
			}
			delete(t.copied, k.server)
		}
	}
}

// replaceTree closes the link of a learner whose tree is wrong. When it comes back, it gets a snapshot,
// whatever its log says. One learner at a time gets one, and each at most once in a term. Only an observer
// gets another one, if an observer master has sent it a wrong one since.
//
//	the learner's tree                        what happens
//	a copy of this leader's                   the alarm stays: the snapshot may be the wrong one
//	another one, while a snapshot is owed     nothing yet
//	 or a forced one is not confirmed, or
//	 a server has just stopped
//	one whose copy was confirmed before       the learner stops; the others are a quorum, since they have outvoted it
//	another one                               the learner gets a snapshot
func (l *Leader) replaceTree(k *link, digest uint64) {
	t := &l.trees
	wrong := WrongTree{Learner: k.name(), Zxid: t.zxid, Digest: k.tree.report.Digest, Right: digest, Then: "that server gets a snapshot"}
	task := peerwire.TreeReplaced
	switch {
	case t.copied[k.server] && !k.tree.report.Wrong: // a learner that was found wrong and still says so has not got a snapshot
		wrong.Then, task = "it comes from a snapshot of this server, whose memory may be the faulty one", 0
	case l.replacing():
		return
	case t.forced[k.server] && !(k.observer && k.tree.report.Copied): // such an observer has got a later snapshot of an observer master
		wrong.Then, task = "a snapshot has replaced it before and was confirmed, so that server stops", peerwire.TreeWrongAgain
		t.pause = l.now + l.opt.InitLimit*l.opt.TickMS
	default:
		t.owed[k.server] = l.now + l.opt.InitLimit*l.opt.TickMS
	}
	if task != 0 || !k.tree.blamed {
		l.report(wrong)
	}
	k.tree.blamed = true
	if task != 0 {
		l.orderTree(k, task, digest)
		l.drop(k, "its tree is wrong")
	}
}

// replacing reports whether a learner is owed a snapshot, or has got one that is not confirmed, or one has just stopped.
func (l *Leader) replacing() bool {
	return l.now < l.trees.pause || len(l.Wrong()) > 0 || slices.ContainsFunc(l.order, func(k *link) bool { return l.trees.forced[k.server] && l.trees.copied[k.server] })
}

// outvoted ends the term, because this server's tree is wrong. The next leader should be one of
// the servers that have the right one. If none of them has led after an earlier transfer, the term goes on, because
// another attempt would only leave another gap. The caller may transfer leadership later.
func (l *Leader) outvoted(digest uint64) {
	t := &l.trees
	for _, k := range l.order {
		k.tree.outvotes = k.tree.answered && k.tree.report.Digest == digest
	}
	t.own.report.Wrong = true
	if !t.own.blamed {
		t.own.blamed = true
		l.ready.TreeOrders = append(l.ready.TreeOrders, TreeOrder{Zxid: t.zxid, TreeOrder: peerwire.TreeOrder{Task: TreeOutvoted, Digest: digest}})
		l.report(Outvoted{Zxid: t.zxid, Digest: t.own.report.Digest, Right: digest})
	}
	if l.triedOutvoters() {
		return // also if they are late at the moment, so that none of them could lead
	}
	to := l.bestSuccessor()
	switch k := l.linkOf(to); {
	case k == nil || !k.tree.outvotes:
		l.giveUp("its tree is wrong")
		return
	case l.opt.Tried[to]:
		return
	}
	l.beginTransfer(TransferLeadership{To: to})
	if l.transfer == nil {
		l.giveUp("its tree is wrong")
	}
}

// triedOutvoters reports whether this server has transferred leadership to all servers that outvote it, since it last
// followed a leader.
func (l *Leader) triedOutvoters() bool {
	return len(l.opt.Tried) > 0 && !slices.ContainsFunc(l.order, func(k *link) bool {
		return k.tree.outvotes && l.electable(k.server) && !l.opt.Tried[k.server]
	})
}

// treeSent notes that a learner gets a snapshot.
func (l *Leader) treeSent(k *link) {
	t := &l.trees
	owed := t.owes(k.server, l.now)
	if owed { // also if this snapshot does not arrive, and the learner must come back once more
		t.owed[k.server] = l.now + 2*l.opt.InitLimit*l.opt.TickMS
		k.tree.replaced = true
	}
	if owed || l.isMember(k.server) {
		t.copied[k.server] = true
	}
}

// treeArrived notes that a learner has the history. A learner that was owed a snapshot has got it.
func (l *Leader) treeArrived(k *link) {
	delete(l.trees.owed, k.server)
	if k.tree.replaced {
		l.trees.forced[k.server] = true
	}
}

// Wrong names the learners whose trees were found wrong and that have not come back yet; empty
// if there are none.
func (l *Leader) Wrong() (ids []ensemble.ServerID) {
	for _, id := range slices.Sorted(maps.Keys(l.trees.owed)) {
		if l.trees.owes(id, l.now) {
			ids = append(ids, id)
		}
	}
	return ids
}

// WrongTree reports that a quorum of voters has the same tree after Zxid, and a learner has another one.
type WrongTree struct {
	Learner       string
	Zxid          wire.Zxid
	Digest, Right uint64
	Then          string // what follows
}

func (h WrongTree) String() string {
	return fmt.Sprintf("the tree of %s is wrong: its digest after %v is %d, that of this server and a quorum is %d; %s", h.Learner, h.Zxid, h.Digest, h.Right, h.Then)
}

// Outvoted reports that a quorum of followers has the same tree after Zxid, and this leader has another one.
type Outvoted struct {
	Zxid          wire.Zxid
	Digest, Right uint64
}

func (h Outvoted) String() string {
	return fmt.Sprintf("the tree of this server is wrong: its digest after %v is %d, that of a quorum of its followers is %d; one of them is to lead", h.Zxid, h.Digest, h.Right)
}
