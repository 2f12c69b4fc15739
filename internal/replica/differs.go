package replica

import (
	"cmp"
	"fmt"

	"bellwether/internal/ensemble"
	"bellwether/internal/peerwire"
	"bellwether/internal/record"
	"bellwether/internal/zab"
	"bellwether/wire"
)

// Each transaction carries the digest that the leader's tree has after it. If the digest of a
// learner's tree differs, one of the two trees is wrong, and stays so. The learner cannot know which
// one. It names the transaction, raises an alarm, and tells its leader, which compares the trees of
// all servers (zab/trees.go). If a quorum has another tree than this server, the leader closes
// the link and sends a snapshot when this server comes back. If this server's tree is found wrong once more in
// the same term, although a quorum had confirmed the snapshot, its memory or its disk is at fault, and it stops: the
// others are a quorum. If the leader's tree is the wrong one, the leader ends its term.
//
// A server whose tree a quorum has found wrong keeps the verdict until a snapshot replaces the tree or a quorum confirms it. The
// other voters do not know the verdict. If they elect this server, it compares the trees from the first tick, and transfers
// leadership to a server that can lead.
//
// An observer master compares nothing. If an observer behind one has had the alarm for syncLimit, it tells its master. The master
// closes the link if the leader compares trees and its own tree is the leader's, and the observer connects to the leader,
// which treats it like its other learners (askLeader). The observer stays with the leader until that link ends. If the leader's
// tree is the wrong one, the observers keep their masters, so that not all of them connect to the leader at once.
//
// A ZooKeeper leader and an older native one compare nothing. Under them, and behind a ZooKeeper master, a
// server raises the alarm and goes on.

// differs is what a server knows about a difference between its tree and that of others. It is kept
// across terms.
type differs struct {
	why     string    // what differs in this term; empty: nothing
	since   wire.Zxid // the first transaction after which it did
	known   int64     // mismatches of the tree when the term began to serve
	noticed int64     // Mono time at which the term began to serve, a difference was noticed, or askLeader has acted

	copied   bool    // the tree comes from a snapshot of another server, and was not confirmed since
	verdict  verdict // a quorum has found the tree wrong
	replaced int64   // Mono time at which a snapshot had replaced a tree that was found wrong; 0: never
	before   string  // what was wrong before that

	asked  bool // the leader wants to know the digest after the transaction at
	at     wire.Zxid
	digest uint64 // the last answer

	asks int // how often askLeader has acted in this epoch since the tree was last replaced or confirmed
}

// verdict says that a quorum had another tree than this server, as a learner or as the leader. The zero value says that none had.
type verdict struct {
	why  string
	zxid wire.Zxid // the transaction after which that was so
}

// again reports whether a snapshot has replaced the tree, because it was wrong, within avoidMS.
func (d *differs) again(now int64) bool { return d.replaced != 0 && now-d.replaced < avoidMS }

// doubted reports whether the tree may be wrong, so that no other server should learn from it.
func (d *differs) doubted() bool { return d.why != "" || d.verdict.why != "" }

// alarm says what an operator should know; empty if there is nothing.
func (d *differs) alarm(now int64) string {
	why := cmp.Or(d.verdict.why, d.why)
	switch again := d.again(now); {
	case why != "" && d.copied:
		return why + "; it comes from a snapshot that no quorum has confirmed, so the server that sent that snapshot may be the faulty one"
	case why != "" && again:
		return why + ", again after a snapshot of its leader has replaced it"
	case why == "" && again:
		return d.before + "; a snapshot of its leader has replaced it"
	}
	return why
}

// startComparing begins a term. A difference from the last leader counts no more: the tree is a new one, or
// the leader is another one, and if this tree is wrong, the next transaction shows it. A verdict stays with the tree.
func (r *Replica) startComparing(e *zab.Established) {
	d := &r.differs
	if e.Installed {
		d.copied, d.asks = true, 0
		if d.verdict.why != "" {
			d.replaced, d.before, d.verdict = max(r.now.Mono, 1), d.verdict.why, verdict{}
			r.observe(TreeReplaced{Leader: r.member.decision.Vote.Leader, Zxid: r.tree.LastZxid()})
		}
	}
	d.why, d.since, d.noticed = "", 0, r.now.Mono
	d.known, _ = r.tree.DigestMismatches()
}

// compare notes when the tree differs from the leader's. The leader compares its tree with the digests that it has
// computed when it prepared the transactions.
func (r *Replica) compare() {
	m, d := r.member, &r.differs
	if !m.serving || d.why != "" {
		return
	}
	n, first := r.tree.DigestMismatches()
	if n == d.known {
		return
	}
	z := r.tree.LastZxid()
	if d.known < int64(len(first)) {
		z = first[d.known]
	}
	d.since, d.noticed = z, r.now.Mono
	d.why = fmt.Sprintf("its tree differs from that of server %d since %v", m.decision.Vote.Leader, z)
	if m.leader != nil {
		d.why = fmt.Sprintf("its tree differs from its own transactions since %v", z)
	}
	r.observe(TreeDiffers{Zxid: z, Again: d.again(r.now.Mono)})
}

// treeReport returns what the leader of this term should know about the tree, without a digest.
func (r *Replica) treeReport() peerwire.TreeReport {
	d := &r.differs
	return peerwire.TreeReport{Differs: cmp.Or(d.since, d.verdict.zxid), Copied: d.copied, Wrong: d.verdict.why != ""}
}

// tellTree tells the leader of this term, which can be this server, what is known about the tree, if that
// has changed.
func (r *Replica) tellTree() {
	m := r.member
	if m == nil || !m.serving {
		return
	}
	if t := r.treeReport(); t != m.toldTree {
		m.toldTree = t
		m.step(r.now.Mono, zab.TreeReport{TreeReport: t})
	}
}

// treeOrdered handles what the leader of this term, which can be this server, asks or says about the tree.
func (r *Replica) treeOrdered(o zab.TreeOrder) {
	d := &r.differs
	switch o.Task {
	case peerwire.TreeReportDue:
		d.asked, d.at = true, o.Zxid
		r.answerTree()
	case peerwire.TreeConfirmed:
		if r.compare(); max(d.since, d.verdict.zxid) > o.Zxid {
			return // it says nothing about the present tree; the next comparison does
		}
		d.why, d.since, d.verdict, d.copied, d.asks = "", 0, verdict{}, false, 0
		d.known, _ = r.tree.DigestMismatches()
		r.member.unsettled = true
		r.observe(TreeConfirmed{Zxid: o.Zxid})
		r.tellTree()
	case zab.TreeOutvoted, peerwire.TreeReplaced, peerwire.TreeWrongAgain:
		r.treeWrong(o)
	}
}

// answerTree tells the digest of the tree after the transaction that the leader has named, once the term serves. It says that it
// cannot tell if the tree is beyond it, or not exact.
func (r *Replica) answerTree() {
	m, d := r.member, &r.differs
	if !d.asked || !m.serving {
		return
	}
	z, digest, exact := r.tree.ExactDigest()
	if z < d.at {
		return
	}
	d.asked = false
	m.unsettled = true
	t := r.treeReport()
	m.toldTree = t
	if exact && z == d.at {
		d.digest = digest
		t.Known, t.Version, t.Digest = true, record.DigestVersion, digest
	}
	m.step(r.now.Mono, zab.TreeReport{Zxid: d.at, TreeReport: t})
}

// treeWrong handles the news that a quorum has another tree.
func (r *Replica) treeWrong(o zab.TreeOrder) {
	d, m := &r.differs, r.member
	d.verdict = verdict{zxid: max(o.Zxid, 1), why: fmt.Sprintf("its tree was wrong: its digest after %v was %d, that of a quorum under server %d %d",
		o.Zxid, d.digest, m.decision.Vote.Leader, o.Digest)}
	if o.Task == zab.TreeOutvoted {
		return // the leader itself reports that
	}
	m.masters.leader = true // it sends the snapshot
	r.observe(TreeWrong{Zxid: o.Zxid, Digest: d.digest, Right: o.Digest})
	if o.Task == peerwire.TreeWrongAgain {
		m.ready.Stop = fmt.Sprintf("the tree of this server is wrong again, after a snapshot of its leader has replaced it: its digest after %v is %d, "+
			"that of server %d and a quorum is %d; the others go on without this server: check its memory and its disk, "+
			"then start it with an empty data directory", o.Zxid, d.digest, m.decision.Vote.Leader, o.Digest)
	}
}

// askLeader lets an observer whose tree differs leave its master and connect to the leader. It waits longer before each further
// attempt, because the leader may not be reachable, or not know which tree is wrong.
func (r *Replica) askLeader() {
	m, d := r.member, &r.differs
	if m.serving && m.usesMaster() {
		m.masters.leader = false // a tick after the last attempt the master has kept this observer
	}
	if !m.serving || !d.doubted() || m.learner == nil || !m.learner.CanLeaveMaster() || r.now.Mono-d.noticed < doubled(m.opt.SyncLimit*m.tickMS, d.asks, avoidMS) {
		return
	}
	d.noticed = r.now.Mono
	d.asks++
	m.masters.leader = true
	r.observe(AsksLeader{Master: m.master(), Leader: m.decision.Vote.Leader})
	m.learner.Step(r.now.Mono, zab.LeaveMaster{})
}

// wrongTreeEnds ranks the leader of a term that ends now behind others for a while if its tree is
// probably the wrong one.
func (r *Replica) wrongTreeEnds(next *zab.Successor) {
	m, d := r.member, &r.differs
	if !m.serving || next != nil {
		return
	}
	if m.leader != nil && d.verdict.why != "" || m.learner != nil && d.why != "" && d.verdict.why == "" && m.learner.ComparesTrees() {
		m.noteFailed(r.now.Mono, "its tree differs from that of other servers", false, true)
	}
}

// TreeDiffers says that the tree of this server is known to differ from its leader's, or, on the
// leader, from the digests of its own transactions. Zxid is the first transaction after which its digest did.
type TreeDiffers struct {
	Zxid  wire.Zxid
	Again bool // a snapshot had replaced the tree because of an earlier difference
}

func (h TreeDiffers) String() string {
	again := ""
	if h.Again {
		again = " again, although a snapshot has replaced it"
	}
	return fmt.Sprintf("after %v this tree differs from the leader's%s: one of them is wrong; a Bellwether leader compares the trees of all servers", h.Zxid, again)
}

// AsksLeader says that this observer wants to leave its observer master for the leader, because its tree differs.
type AsksLeader struct{ Master, Leader ensemble.ServerID }

func (h AsksLeader) String() string {
	return fmt.Sprintf("the tree of this observer differs, and only the leader, server %d, compares trees: unless the tree of its master, server %d, differs too, it connects to the leader", h.Leader, h.Master)
}

// TreeWrong says that this learner has another tree than its leader and a quorum.
type TreeWrong struct {
	Zxid          wire.Zxid
	Digest, Right uint64
}

func (h TreeWrong) String() string {
	return fmt.Sprintf("the tree of this server is wrong: its digest after %v is %d, that of a quorum is %d; the leader sends a snapshot", h.Zxid, h.Digest, h.Right)
}

// TreeConfirmed says that a quorum has the same tree as this server, which was in doubt, or a copy.
type TreeConfirmed struct{ Zxid wire.Zxid }

func (h TreeConfirmed) String() string {
	return fmt.Sprintf("the tree of this server is right: a quorum has the same digest after %v", h.Zxid)
}

// TreeReplaced says that a snapshot of the leader has replaced the tree of this server, which was wrong.
type TreeReplaced struct {
	Leader ensemble.ServerID
	Zxid   wire.Zxid
}

func (h TreeReplaced) String() string {
	return fmt.Sprintf("a snapshot of server %d has replaced the wrong tree of this server, now at %v", h.Leader, h.Zxid)
}
