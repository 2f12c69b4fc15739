package replica

import (
	"fmt"

	"bellwether/wire"
)

// Each transaction carries the digest that the leader's tree has after it. If the digest of a
// learner's tree differs, one of the two trees is wrong, and stays so. The learner reports that,
// and tells its leader, which then transfers leadership to other servers. It does not replace its
// tree by the leader's: it cannot know which of the two is wrong, and if it is the leader's, each
// follower would replace a right tree by the wrong one.

// differs is what a server knows about a difference between its tree and the leader's.
type differs struct {
	why   string // what differs in this term; empty: nothing
	known int64  // mismatches of the tree when the term began to serve
}

// startComparing begins a term. What differed before counts no more: the tree is a new one, or
// the leader is another one, and if this tree is wrong, the next transaction shows it.
func (r *Replica) startComparing() {
	r.differs.why = ""
	r.differs.known, _ = r.tree.DigestMismatches()
}

// compare notes when the tree differs from the leader's.
func (r *Replica) compare() {
	m, d := r.member, &r.differs
	if m.learner == nil || !m.serving || d.why != "" {
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
	d.why = fmt.Sprintf("its tree differs from that of server %d since %v", m.decision.Vote.Leader, z)
	r.observe(TreeDiffers{Zxid: z})
}

// TreeDiffers says that the tree of this learner is known to differ from its leader's. Zxid is the
// first transaction after which its digest did.
type TreeDiffers struct{ Zxid wire.Zxid }

func (h TreeDiffers) String() string {
	return fmt.Sprintf("after %v this tree differs from the leader's: one of them is wrong, and stays so until its data are replaced", h.Zxid)
}
