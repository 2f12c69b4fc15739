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

// position is how far a server has come.
type position struct {
	zxid  wire.Zxid // applied, -1: not looked at since the tree is new
	shown wire.Zxid // what clients may have seen
}

// observe looks at how a server stands, and at what it has applied since.
func (v *server) observe() {
	st := v.replica.Standing()
	began := st.Serving && (!v.standing.Serving || st.Epoch != v.standing.Epoch)
	v.standing = *st
	z := v.replica.Applied()
	if !st.Serving && (v.seen.zxid < 0 || z == v.seen.zxid) {
		return // nothing, or nothing committed: what is committed is applied though the term is over
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

// deliver compares what a server applied with the history, or adds to it.
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

// shed is a truncation, or a snapshot in the place of the history.
type shed struct {
	knew []*record.Txn // what the server knew before
	to   wire.Zxid
}

// endsAt takes down that the history of a server ends here. What its disk has
// refused, or lost with its power, is undone; one that lost its power may have
// had the first of it done.
func (v *server) endsAt(z wire.Zxid) {
	if len(v.sheds) > 0 && v.sheds[0].to == z {
		v.hasShed()
	}
	if len(v.sheds) > 0 {
		v.knows, v.sheds = v.sheds[0].knew, nil
	}
	v.knows = upTo(v.knows, z)
}

// hasShed: the disk has carried out the first of them.
func (v *server) hasShed() { v.sheds = v.sheds[1:] }

// learn takes down what a duty does to the history of a server.
func (v *server) learn(d *replica.Duty) {
	if v.writer.journal.Void() { // in memory alone; a quorum may commit it nevertheless
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

// recall takes down what the disk has at a start, although it was to be cut off
// when the process before ended.
func (v *server) recall(txns []*record.Txn) {
	if n := len(v.knows); n > 0 {
		txns = txns[len(upTo(txns, v.knows[n-1].Zxid)):]
	}
	v.knows = append(v.knows, txns...)
}

// upTo is the part of sorted transactions that is not above z.
func upTo(txns []*record.Txn, z wire.Zxid) []*record.Txn {
	i := sort.Search(len(txns), func(i int) bool { return txns[i].Zxid > z })
	return txns[:i:i]
}
