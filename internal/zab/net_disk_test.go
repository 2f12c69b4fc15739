package zab

import (
	"slices"

	"bellwether/internal/record"
)

// write queues the disk's duties of a Ready.
func (w *world) write(n *node, r *Ready) {
	d, gen := &n.disk, r.Generation
	put := func(what string, do func() Event) { n.writer = append(n.writer, duty{what, gen, do}) }
	if e := r.SaveAccepted; e != 0 {
		n.acc = e
		put("acceptedEpoch", func() Event {
			if !w.faults.acceptedLost {
				d.accepted = e
			}
			return Saved{Accepted: e, Generation: gen}
		})
	}
	if t := r.Truncate; t != nil {
		put("truncate", func() Event { return w.truncate(n, t, gen) })
	}
	if in := r.Install; in != nil {
		n.old, n.fresh = n.fresh, slices.Concat(n.spool, in.Txns)
		tree := n.fresh
		put("install", func() Event {
			*d = disk{snapshot: tree, base: in.Zxid, accepted: d.accepted, current: d.current}
			return Installed{in.Zxid, gen}
		})
	}
	if w.faults.epochEarly && n.learner != nil && n.learner.step == logging {
		d.current = n.learner.epoch
	}
	if txns := r.Append; len(txns) > 0 {
		put("append", func() Event { w.append(n, txns); return nil })
	}
	if w.faults.syncedEarly && (r.Sync || len(r.Append) > 0) {
		put("lie", func() Event { return Synced{d.last(), gen} })
	}
	if r.Sync || len(r.Append) > 0 {
		put("sync", func() Event { d.synced = len(d.log); return Synced{d.last(), gen} })
	}
	if e := r.SaveCurrent; e != 0 {
		n.cur = e
		put("currentEpoch", func() Event { d.current = e; return Saved{Current: e, Generation: gen} })
	}
}

func (w *world) append(n *node, txns []*record.Txn) {
	for _, t := range txns {
		if !follows(n.disk.last(), t.Zxid) {
			w.fail("server %d writes %v after %v", n.id, t.Zxid, n.disk.last())
		}
		n.disk.log = append(n.disk.log, t)
	}
}

// truncate truncates the log on disk.
func (w *world) truncate(n *node, t *Truncate, gen uint64) Event {
	d, z := &n.disk, t.Zxid
	switch {
	case w.faults.noTruncate:
		return nil
	case z < d.base:
		return w.refuse(n, gen, "not in the log")
	}
	w.cutTree(n, t)
	for len(d.log) > 0 && d.last() > z {
		d.log = d.log[:len(d.log)-1]
	}
	if d.last() != z {
		w.fail("server %d truncates to %v, its log then ends at %v", n.id, z, d.last())
	}
	d.synced = min(d.synced, len(d.log))
	return nil
}

// refuse drops all duties, so that what they were to change stays as it was.
func (w *world) refuse(n *node, gen uint64, why string) Event {
	if slices.ContainsFunc(n.writer, func(d duty) bool { return d.what == "install" }) {
		n.fresh = n.old
	}
	n.writer = nil
	n.acc, n.cur = n.disk.accepted, n.disk.current
	return Refused{n.disk.last(), gen, why}
}

// rebuild makes the tree again from the disk, and disconnects all clients.
func (w *world) rebuild(n *node) {
	n.tree, n.fresh, n.shown = slices.Concat(n.disk.snapshot, n.disk.log), nil, 0
	n.log.fresh = false
	n.log.MarkApplied(n.log.Last())
}

// cutTree rebuilds the tree if it contains transactions that are truncated.
func (w *world) cutTree(n *node, t *Truncate) {
	tree := &n.tree
	if n.fresh != nil {
		tree = &n.fresh
	}
	for k := len(*tree); k > 0 && (*tree)[k-1].Zxid > t.Zxid; k-- {
		if *tree = (*tree)[:k-1]; !t.Rebuild {
			w.fail("server %d truncates to %v below the end of its tree, and Rebuild is not set", n.id, t.Zxid)
		}
	}
	if len(*tree) < n.shown {
		w.fail("server %d truncates transactions that clients have seen", n.id)
	}
}

// diskStep lets the log writer carry out its next duty.
func (w *world) diskStep(n *node) {
	if len(n.writer) == 0 {
		return
	}
	d := n.writer[0]
	n.writer = n.writer[1:]
	e := d.do()
	switch r, refused := e.(Refused); {
	case e == nil:
	case refused && n.leader == nil && n.learner == nil:
		if n.log.Refuse(r) {
			w.rebuild(n)
		}
	default:
		w.step(n, e)
	}
}
