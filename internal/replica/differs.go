package replica

import (
	"fmt"

	"bellwether/internal/election"
	"bellwether/internal/zab"
	"bellwether/wire"
)

// Each transaction carries the digest that the leader's tree has after it. If the digest of a
// learner's tree differs, that tree is wrong, and stays so. The learner then leaves its leader,
// joins it again, and asks for a snapshot, which replaces the tree. It can do so only if the
// others are a quorum without it, so that the leader goes on leading. Otherwise a new epoch
// begins, in which it goes on with its tree and tries again after a pause, longer each time.
//
// If it is the leader's tree that is wrong, a quorum of followers leaves it at the same time, and
// they prefer another leader, as after a failed term. The trees that follow the old leader's are
// replaced.
//
// If the tree differs again after such a snapshot, its digests cannot be trusted: the memory or
// the program is at fault. The server leaves its leader once more. If the others go on without
// it, it stops. If they need it, it goes on.

// differs is what a server knows about a difference between its tree and the leader's. It is kept
// across terms.
type differs struct {
	why    string // what differs in this term; empty: nothing
	known  int64  // mismatches of the tree when the term began to serve
	tried  int    // how often this server has left a leader because of a difference
	retry  int64  // Mono time before which it does not do so again
	synced bool   // a snapshot has replaced the tree since then
	again  bool   // it has differed again since then
}

// startComparing begins a term. What differed before counts no more: the tree is a new one, or
// the leader is another one, and if this tree is wrong, the next transaction shows it.
func (r *Replica) startComparing(e *zab.Established) {
	d := &r.differs
	d.synced = d.synced || d.tried > 0 && e.Installed
	d.why, d.again = "", false
	d.known, _ = r.tree.DigestMismatches()
	r.member.log.WantSnapshot(false)
}

// compare leaves the leader if the tree differs from the leader's.
func (r *Replica) compare() {
	m, d := r.member, &r.differs
	if m.learner == nil || !m.serving {
		return
	}
	n, first := r.tree.DigestMismatches()
	if n == d.known {
		return
	}
	if d.why == "" {
		z := r.tree.LastZxid()
		if d.known < int64(len(first)) {
			z = first[d.known]
		}
		d.why = fmt.Sprintf("its tree differs from that of server %d since %v", m.decision.Vote.Leader, z)
		r.observe(TreeDiffers{Zxid: z, Again: d.synced})
	}
	if r.now.Mono < d.retry {
		return
	}
	d.retry = r.now.Mono + doubled(retryMS, d.tried, avoidMS)
	d.tried++
	d.again = d.synced
	m.log.WantSnapshot(true)
	m.noteFailed(r.now.Mono, d.why, false)
	r.leave(d.why)
}

// condemn stops a server whose tree has differed again, if the others have a leader without it.
func (r *Replica) condemn(d election.Decision) {
	if r.differs.again && d.Ending == election.Follows {
		r.member.ready.Stop = r.differs.why + ", again after a snapshot has replaced the tree, and the others go on without this server"
	}
}

// TreeDiffers says that the tree of this learner is known to differ from its leader's. Zxid is the
// first transaction after which its digest did.
type TreeDiffers struct {
	Zxid  wire.Zxid
	Again bool // a snapshot had replaced the tree because of an earlier difference
}

func (h TreeDiffers) String() string {
	if h.Again {
		return fmt.Sprintf("after %v this tree differs from the leader's again, although a snapshot has replaced it: this server stops if the others are a quorum without it", h.Zxid)
	}
	return fmt.Sprintf("after %v this tree differs from the leader's: this server leaves its leader and asks for a snapshot", h.Zxid)
}
