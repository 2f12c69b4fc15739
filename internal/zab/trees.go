package zab

import (
	"fmt"
	"maps"
	"slices"

	"bellwether/internal/ensemble"
	"bellwether/internal/peerwire"
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
//	who has the same digest                   what the leader does
//	a quorum of voters with this server       closes the link of each learner that has another one, and
//	                                          sends it a snapshot when it comes back
//	a quorum of voters without this server    transfers leadership to one of them, or ends its term
//	no quorum                                 nothing
//
// The first two exclude each other, because two quorums have a server in common. Only answers of
// the present links count, and only digests after the same transaction, so nothing is gained by waiting
// for more answers than those of a quorum.
//
// A tree that was copied from another server by a snapshot proves nothing about that other tree. It does not
// count until a comparison has confirmed it: a quorum without it has the same tree, or all voters
// have. Otherwise a wrong leader could find its quorum among servers that have its tree, and a
// snapshot would replace the last right one.

// TreeReport says what this server knows about its tree. On a learner it goes to the leader, if the
// leader compares trees; on a leader it is the leader's own part.
type TreeReport struct {
	Zxid wire.Zxid // that of the digest, if it is known
	peerwire.TreeReport
}

// TreeOrder is what the comparison asks of this server or says to it. A TreeReportDue is answered with a
// TreeReport for exactly its zxid, unless the tree is already beyond it. Outvoted says that this
// server, the leader, has another tree than a quorum of its followers, whose Digest is given.
type TreeOrder struct {
	Zxid wire.Zxid
	peerwire.TreeOrder
	Outvoted bool
}

func (TreeReport) event() {}

// treeState is what a leader knows about the tree of one server.
type treeState struct {
	report   peerwire.TreeReport
	answered bool // it has answered the present question; report.Digest is its answer
	told     bool // it was told the result for the present question
	outvotes bool // it has the tree of a quorum, and this leader has not
}

// trees is what a leader knows about the trees of its learners.
type trees struct {
	own     treeState
	polling bool // a question was asked in this term
	zxid    wire.Zxid
	// copied holds the voters that this leader has sent a snapshot, and that no comparison has
	// confirmed since. A voter that restarts may not know that itself.
	copied map[ensemble.ServerID]bool
	// owed holds the learners that get a snapshot if they connect again before a time. Later
	// another comparison is necessary.
	owed map[ensemble.ServerID]int64
}

func newTrees() trees {
	return trees{copied: map[ensemble.ServerID]bool{}, owed: map[ensemble.ServerID]int64{}}
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

// reportTree sends a report to the leader.
func (r *Learner) reportTree(e TreeReport) {
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
	before := k.whyUnfit()
	l.noteTree(&k.tree, e)
	if why := k.whyUnfit(); why != before {
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

// noteTree records a report. An answer to an earlier question tells nothing.
func (l *Leader) noteTree(t *treeState, e TreeReport) {
	digest := t.report.Digest
	t.report = e.TreeReport
	if e.Known && l.trees.polling && e.Zxid == l.trees.zxid {
		t.answered = true
	} else {
		t.report.Digest = digest
	}
}

// comparesTrees reports whether a learner can be asked.
func (k *link) comparesTrees() bool { return k.digests && k.state == linkServing }

// doubted reports whether there is a reason to compare the trees.
func (l *Leader) doubted() bool {
	if own := &l.trees.own.report; own.Differs != 0 || own.Copied {
		return true
	}
	return slices.ContainsFunc(l.order, func(k *link) bool {
		return k.comparesTrees() && (k.tree.report.Differs != 0 || !k.observer && l.isCopied(k))
	})
}

// isCopied reports whether the tree of a learner is a copy that was not confirmed.
func (l *Leader) isCopied(k *link) bool { return k.tree.report.Copied || l.trees.copied[k.server] }

// compareTrees begins a comparison if there is a reason. It is called once in a tick.
func (l *Leader) compareTrees() {
	if l.phase != serving || l.transfer != nil || !l.doubted() {
		return
	}
	t := &l.trees
	t.polling, t.zxid = true, l.log.last
	t.own.answered, t.own.told = false, false
	for _, k := range l.order {
		k.tree.answered, k.tree.told = false, false
		if k.comparesTrees() {
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
	return l.quorum(func(id ensemble.ServerID) bool { return l.hasTree(id, digest, true) })
}

// treeOfAll reports whether all voters have the tree with a digest.
func (l *Leader) treeOfAll(digest uint64) bool {
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
	t.own.told = true
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
// whatever its log says.
func (l *Leader) replaceTree(k *link, digest uint64) {
	task := peerwire.TreeReplaced
	if k.tree.report.Again {
		task = peerwire.TreeWrongAgain
	}
	l.orderTree(k, task, digest)
	l.trees.owed[k.server] = l.now + l.opt.InitLimit*l.opt.TickMS
	l.report(WrongTree{Learner: k.name(), Zxid: l.trees.zxid, Digest: k.tree.report.Digest, Right: digest, Again: k.tree.report.Again})
	l.drop(k, "its tree is wrong")
}

// outvoted ends the term, because this server's tree is wrong. The next leader should be one of
// the servers that have the right one.
func (l *Leader) outvoted(digest uint64) {
	t := &l.trees
	for _, k := range l.order {
		k.tree.outvotes = k.tree.answered && k.tree.report.Digest == digest
	}
	l.ready.TreeOrders = append(l.ready.TreeOrders, TreeOrder{Zxid: t.zxid, TreeOrder: peerwire.TreeOrder{Digest: digest}, Outvoted: true})
	l.report(Outvoted{Zxid: t.zxid, Digest: t.own.report.Digest, Right: digest})
	to := l.bestSuccessor()
	if k := l.linkOf(to); k == nil || !k.tree.outvotes {
		l.giveUp("its tree is wrong")
		return
	}
	l.beginTransfer(TransferLeadership{To: to})
	if l.transfer == nil {
		l.giveUp("its tree is wrong")
	}
}

// treeSent notes that a learner gets a snapshot.
func (l *Leader) treeSent(k *link) {
	if !k.observer {
		l.trees.copied[k.server] = true
	}
}

// treeArrived notes that a learner has the history. A learner that was owed a snapshot has got it.
func (l *Leader) treeArrived(k *link) { delete(l.trees.owed, k.server) }

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
	Again         bool // a snapshot has replaced the tree before
}

func (h WrongTree) String() string {
	s := fmt.Sprintf("the tree of %s is wrong: its digest after %v is %d, that of this server and a quorum is %d", h.Learner, h.Zxid, h.Digest, h.Right)
	if h.Again {
		return s + "; a snapshot has replaced it before, so that server stops"
	}
	return s + "; that server gets a snapshot"
}

// Outvoted reports that a quorum of followers has the same tree after Zxid, and this leader has another one.
type Outvoted struct {
	Zxid          wire.Zxid
	Digest, Right uint64
}

func (h Outvoted) String() string {
	return fmt.Sprintf("the tree of this server is wrong: its digest after %v is %d, that of a quorum of its followers is %d; one of them is to lead", h.Zxid, h.Digest, h.Right)
}
