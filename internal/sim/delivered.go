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

// position says how far a server has come.
type position struct {
	zxid  wire.Zxid // the applied zxid; -1: not observed since the tree was replaced
	shown wire.Zxid // the largest zxid whose state clients may have seen
}

// observe examines the state of a server and what it has applied since the last call.
func (v *server) observe() {
	st := v.replica.Standing()
	began := st.Serving && (!v.standing.Serving || st.Epoch != v.standing.Epoch)
	v.standing = *st
	z := v.replica.Applied()
	if !st.Serving && (v.seen.zxid < 0 || z == v.seen.zxid) {
		return // nothing was applied, or nothing that is committed is known; committed transactions are applied even if the term has ended
	}
	if began {
		v.tree.Settled()
		if st.Epoch == v.rejoined {
			v.sim.reach(situationRejoin)
		}
		if st.Role == peerwire.Leading && z > v.sim.history.Last().Zxid {
			v.sim.reach(situationTailKept)
		}
		v.has, v.rejoined, v.served = true, st.Epoch, v.sim.steps
		v.sim.arrived(v)
		v.sim.see(check.Established{Server: v.id, Role: st.Role, Epoch: st.Epoch, Zxid: z})
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
	for _, txn := range upTo(v.knows, z) {
		if txn.Zxid <= from {
			continue
		}
		if _, known := h.Index[txn.Zxid]; !known && txn.Zxid > h.Last().Zxid {
			h.Add(txn)
			v.sim.see(check.Committed{Server: v.id, Index: len(h.Entries) - 1, Txn: txn})
		}
		v.sim.see(check.Delivered{Server: v.id, Txn: txn, Sum: h.Sum(txn)})
	}
	v.knows = slices.Clone(v.knows[len(upTo(v.knows, z)):])
	v.seen.zxid = z
	_, digest := v.tree.Digest()
	v.sim.see(check.Stands{Server: v.id, Zxid: z, Digest: digest, Shown: v.seen.shown})
	v.seen.shown = max(v.seen.shown, z)
}

// shed is a truncation of a server's history, or its replacement by a snapshot.
type shed struct {
	knew []*record.Txn // the server's history before
	to   wire.Zxid
}

// endsAt records that the history of a server now ends at z. Truncations and installations
// that the disk has refused, or that a power failure prevented, are undone. The first of
// them may have been carried out before the power failed.
func (v *server) endsAt(z wire.Zxid) {
	if len(v.sheds) > 0 && v.sheds[0].to == z {
		v.hasShed()
	}
	if len(v.sheds) > 0 {
		v.knows, v.sheds = v.sheds[0].knew, nil
	}
	v.knows = upTo(v.knows, z)
}

// hasShed records that the disk has carried out the first truncation or installation.
func (v *server) hasShed() { v.sheds = v.sheds[1:] }

// learn records what a duty does to the history of a server.
func (v *server) learn(d *replica.Duty) {
	if v.writer.journal.Void() { // the transactions are only in memory; a quorum may commit them nevertheless
		v.knows = append(v.knows, d.Append...)
		return
	}
	if d.Truncate != nil {
		v.sheds = append(v.sheds, shed{v.knows, d.Truncate.Zxid})
		v.knows = upTo(v.knows, d.Truncate.Zxid)
	}
	if d.Install != nil {
		v.sheds = append(v.sheds, shed{v.knows, d.Install.Zxid})
		v.knows = slices.Concat(v.spools[d.Install.Link].knows, d.Install.Txns)
	}
	v.knows = append(v.knows, d.Append...)
}

// recall records transactions that the disk still has at a start, because the last process
// ended before it could truncate them.
func (v *server) recall(txns []*record.Txn) {
	if n := len(v.knows); n > 0 {
		txns = txns[len(upTo(txns, v.knows[n-1].Zxid)):]
	}
	v.knows = append(v.knows, txns...)
}

// upTo returns those of the sorted transactions that are not above z.
func upTo(txns []*record.Txn, z wire.Zxid) []*record.Txn {
	i := sort.Search(len(txns), func(i int) bool { return txns[i].Zxid > z })
	return txns[:i:i]
}
