package zab

import (
	"fmt"
	"math"

	"bellwether/internal/record"
	"bellwether/wire"
)

// SyncMode is what a leader sends to a learner to give it the leader's history.
type SyncMode uint8

// The ways to synchronise a learner.
const (
	Diff  SyncMode = iota + 1 // the transactions that the learner lacks
	Trunc                     // the learner first cuts off what was never committed, then as Diff
	Snap                      // a snapshot
)

func (h SyncMode) String() string { return [...]string{"?", "DIFF", "TRUNC", "SNAP"}[h] }

// history describes the leader's history, as far as the choice for a learner
// depends on it.
type history struct {
	// committed are the newest committed transactions, without a gap.
	committed []*record.Txn
	// before is the zxid that the first of committed follows; 0: not known.
	before wire.Zxid
	// newest is the newest committed zxid: that of the last transaction in committed,
	// or that of the snapshot if committed is empty.
	newest wire.Zxid
	// last is newest or, if that is later and the leader serves, the zxid with counter 0
	// of its epoch.
	last wire.Zxid
	// tree is the zxid of a snapshot taken now.
	tree wire.Zxid
	// disk says that ReadLog may be used.
	disk bool
	// force says that every learner gets a snapshot.
	force bool
}

func (h *history) min() wire.Zxid {
	if len(h.committed) == 0 {
		return h.last
	}
	return h.committed[0].Zxid
}

func (h *history) max() wire.Zxid {
	if len(h.committed) == 0 {
		return h.last
	}
	return h.newest
}

// plan is how a learner is synchronised: the first packet (how, zxid), then txns, each
// with its COMMIT. ask says that the plan depends on the log on disk, which must be read first.
type plan struct {
	how  SyncMode
	zxid wire.Zxid
	txns []*record.Txn
	ask  bool
}

// choose decides how a learner whose log ends at peer is synchronised. It decides as
// Apache ZooKeeper's LearnerHandler does, with two exceptions. Instead of a truncation to a
// zxid that the learner may not have, it sends a snapshot. And it knows which zxid the oldest
// transaction in memory follows.
func choose(h *history, peer wire.Zxid) plan {
	switch {
	case h.force:
		return h.snap()
	case peer == h.last, len(h.committed) == 0 && peer == h.newest && peer != 0:
		return plan{how: Diff, zxid: peer}
	case peer > h.max() && peer.Counter() != 0:
		if to := h.max(); to.Counter() != 0 && to.Epoch() == peer.Epoch() {
			return plan{how: Trunc, zxid: to}
		}
		return h.snap()
	case h.min() <= peer && peer <= h.max():
		return h.walk(peer)
	case peer == h.before && peer != 0 && len(h.committed) > 0:
		return plan{how: Diff, zxid: h.max(), txns: h.committed}
	case 0 < peer && peer < h.min() && h.disk:
		return plan{ask: true}
	}
	return h.snap()
}

// chooseRead decides after the log on disk was read. read holds the transactions that
// follow peer. Only those older than the transactions in memory are used. If there is a
// gap between the two, the learner gets a snapshot (ZOOKEEPER-2418).
func chooseRead(h *history, peer wire.Zxid, read []*record.Txn, ok bool) plan {
	if !ok || len(h.committed) == 0 {
		return h.snap()
	}
	txns, at := []*record.Txn(nil), peer
	for _, t := range read {
		if t.Zxid >= h.min() {
			break
		}
		if !follows(at, t.Zxid) {
			return h.snap()
		}
		txns, at = append(txns, t), t.Zxid
	}
	rest := h.after(peer)
	if len(rest) > 0 && !follows(at, rest[0].Zxid) {
		return h.snap()
	}
	return plan{how: Diff, zxid: h.max(), txns: append(txns, rest...)}
}

// walk decides for a peer whose log ends within the committed transactions.
func (h *history) walk(peer wire.Zxid) plan {
	rest := h.after(peer)
	known := h.committed[:len(h.committed)-len(rest)]
	prev := wire.Zxid(math.MinInt64)
	if len(known) > 0 {
		prev = known[len(known)-1].Zxid
	}
	switch {
	case prev == peer, peer.Counter() == 0:
		return plan{how: Diff, zxid: h.max(), txns: rest}
	case len(rest) == 0 || rest[0].Zxid.Epoch() != peer.Epoch() || prev.Epoch() != peer.Epoch():
		return h.snap() // a truncation must not cross an epoch
	}
	return plan{how: Trunc, zxid: prev, txns: rest}
}

// after returns the committed transactions above z.
func (h *history) after(z wire.Zxid) []*record.Txn {
	i := len(h.committed)
	for i > 0 && h.committed[i-1].Zxid > z {
		i--
	}
	return h.committed[i:]
}

// snap returns the plan of a snapshot, followed by what is committed above it.
func (h *history) snap() plan {
	return plan{how: Snap, zxid: h.tree, txns: h.after(h.tree)}
}

func (p plan) String() string {
	if p.ask {
		return "ask the log on disk"
	}
	s := fmt.Sprintf("%v(%v)", p.how, p.zxid)
	for _, t := range p.txns {
		s += fmt.Sprintf(" %v", t.Zxid)
	}
	return s
}
