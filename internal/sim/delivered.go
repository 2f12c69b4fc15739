package sim

import (
	"slices"
	"sort"

	"bellwether/internal/peerwire"
	"bellwether/internal/record"
	"bellwether/internal/replica"
	"bellwether/internal/sim/check"
	"bellwether/wire"
)

// position says how much of the history a server has applied and shown.
type position struct {
	zxid  wire.Zxid // the applied zxid; -1: not observed since the tree was replaced
	shown wire.Zxid // the largest zxid whose state clients may have seen
}

// observe examines the state of a server and what it has applied since the last call.
func (v *server) observe() {
	st := v.replica.Status()
	began := st.Serving && (!v.standing.Serving || st.Epoch != v.standing.Epoch)
	v.standing = *st
	z := v.replica.Applied()
	if !st.Serving && (v.seen.zxid < 0 || z == v.seen.zxid) {
		return // nothing was applied, or it is not known yet what of the tree is committed; a server applies committed transactions even after its term has ended
	}
	if began {
		v.tree.Settled()
		if st.Epoch == v.rejoined {
			v.sim.reach(situationRejoin)
		}
		if st.Role == peerwire.Leading && z > v.sim.history.Last().Zxid {
			v.sim.reach(situationTailKept)
		}
		v.leadsWithHole()
		v.has, v.rejoined, v.served = true, st.Epoch, v.sim.steps
		v.sim.arrived(v)
		if st.Role == peerwire.Leading {
			v.sim.ledEpoch = max(v.sim.ledEpoch, st.Epoch)
		}
		v.sim.see(check.Established{Server: v.id, Role: st.Role, Epoch: st.Epoch, Zxid: z})
		v.remembers()
	}
	if z != v.seen.zxid {
		v.deliver(z)
	}
}

// deliver compares the transactions that a server has applied with the history, or extends
// the history by them.
func (v *server) deliver(z wire.Zxid) {
	h := &v.sim.history
	from := v.seen.zxid
	if from < 0 {
		from = min(z, h.Last().Zxid)
	}
	for _, txn := range upTo(v.undelivered, z) {
		if txn.Zxid <= from {
			continue
		}
		if _, known := h.Index[txn.Zxid]; !known && txn.Zxid < h.Last().Zxid {
			v.sim.noteFork(txn.Zxid)
		} else if !known {
			h.Add(txn)
			v.sim.weigh()
			v.sim.see(check.Committed{Server: v.id, Index: len(h.Entries) - 1, Txn: txn})
		}
		v.sim.see(check.Delivered{Server: v.id, Txn: txn, Sum: h.Sum(txn)})
	}
	v.undelivered = slices.Clone(v.undelivered[len(upTo(v.undelivered, z)):])
	v.seen.zxid = z
	_, digest := v.tree.Digest()
	v.sim.see(check.Stands{Server: v.id, Zxid: z, Digest: digest, Shown: v.seen.shown})
	v.seen.shown = max(v.seen.shown, z)
}

// removal is a truncation of a server's history, or its replacement by a snapshot.
type removal struct {
	before []*record.Txn // the server's history before
	to     wire.Zxid
}

// endsAt records that the history of a server now ends at z. It undoes the truncations and
// installations that the disk has refused, or that a power failure prevented. If the history ends
// where the first of them should end, that one was carried out before the power failed, and
// stays.
func (v *server) endsAt(z wire.Zxid) {
	if len(v.removals) > 0 && v.removals[0].to == z {
		v.removalDone()
	}
	if len(v.removals) > 0 {
		v.undelivered, v.removals = v.removals[0].before, nil
	}
	v.undelivered = upTo(v.undelivered, z)
}

// removalDone records that the disk has carried out the first truncation or installation.
func (v *server) removalDone() { v.removals = v.removals[1:] }

// recordDuty records what a duty does to the history of a server.
func (v *server) recordDuty(d *replica.Duty) {
	if v.writer.journal.Void() { // the transactions stay only in memory; a quorum may still commit them
		v.undelivered = append(v.undelivered, d.Append...)
		return
	}
	if d.Truncate != nil {
		v.removals = append(v.removals, removal{v.undelivered, d.Truncate.Zxid})
		v.undelivered = upTo(v.undelivered, d.Truncate.Zxid)
	}
	if d.Install != nil {
		v.removals = append(v.removals, removal{v.undelivered, d.Install.Zxid})
		v.fuzzyTo = v.receivedSnapshots[d.Install.Link].reaches
		v.undelivered = slices.Concat(v.receivedSnapshots[d.Install.Link].undelivered, d.Install.Txns)
	}
	v.undelivered = append(v.undelivered, d.Append...)
}

// recordLoaded records transactions that the disk still has at a start, because the last process
// ended before it could truncate them.
func (v *server) recordLoaded(txns []*record.Txn) {
	if n := len(v.undelivered); n > 0 {
		txns = txns[len(upTo(txns, v.undelivered[n-1].Zxid)):]
	}
	v.undelivered = append(v.undelivered, txns...)
}

// upTo returns the transactions of a sorted list whose zxids are at most z.
func upTo(txns []*record.Txn, z wire.Zxid) []*record.Txn {
	i := sort.Search(len(txns), func(i int) bool { return txns[i].Zxid > z })
	return txns[:i:i]
}
