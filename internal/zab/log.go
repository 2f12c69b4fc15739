package zab

import (
	"fmt"
	"slices"
	"sort"

	"bellwether/internal/record"
	"bellwether/wire"
)

// KeepMin is how many applied transactions a Log remembers at least, as
// upstream (zookeeper.commitLogCount).
const KeepMin = 500

// Log is a server's memory of its transaction log: the end of it without a
// gap, and how far it has been handed out for applying. The entries behind
// that are logged, or on their way there, and not known to be committed. A Log
// lasts as long as the process; the roles take turns on it.
//
// Invariants: each entry follows the one before it, the first follows before, and
// last is the zxid of the last one. applied <= last.
type Log struct {
	keep    int
	entries []*record.Txn
	before  wire.Zxid // what the first entry follows
	last    wire.Zxid
	applied wire.Zxid
	floor   wire.Zxid // below it the log on disk cannot be cut; -1: not known
	// fresh: a snapshot was installed that clients do not see yet.
	fresh bool
	// stuck: a truncation that a leader asked for is not possible.
	stuck bool
	// undo is the log before a truncation or an installation of which the disk
	// has said nothing yet, and madeBy the generation that asked for it. They
	// can follow each other.
	undo   *Log
	madeBy uint64
}

// NewLog returns a log that ends at zxid, of which nothing else is known: that
// of a snapshot. It remembers at least keep applied transactions, KeepMin if
// that is more.
func NewLog(zxid wire.Zxid, keep int) *Log {
	return &Log{keep: max(keep, KeepMin), before: zxid, last: zxid, applied: zxid, floor: -1}
}

// Last is the zxid of the last transaction logged, or of the snapshot.
func (g *Log) Last() wire.Zxid { return g.last }

// Fresh reports whether a leader's snapshot was installed of which it is not
// known yet whether it is committed.
func (g *Log) Fresh() bool { return g.fresh }

// Append puts a transaction behind the log; an error, and no change, if it
// does not follow the last one.
func (g *Log) Append(t *record.Txn) error {
	if !follows(g.last, t.Zxid) {
		return fmt.Errorf("transaction %v does not follow %v", t.Zxid, g.last)
	}
	g.entries = append(g.entries, t)
	g.last = t.Zxid
	return nil
}

// follows reports whether next can come directly after z in a history that Zab made.
// No proposal has counter 0, which stands for the epoch itself.
func follows(z, next wire.Zxid) bool { return next.Counter() != 0 && record.Follows(z, next) }

// MarkApplied says that everything up to z is in the tree, as after loading.
func (g *Log) MarkApplied(z wire.Zxid) {
	g.applied = max(g.applied, min(z, g.last))
	g.trim()
}

// take returns the transactions in (applied, z] and counts them as applied.
func (g *Log) take(z wire.Zxid) []*record.Txn {
	out := slices.Clone(g.between(g.applied, z))
	g.MarkApplied(z)
	return out
}

// trim drops the oldest applied entries, many at a time.
func (g *Log) trim() {
	spare := g.index(g.applied) - g.keep
	if spare < g.keep {
		return
	}
	g.before = g.entries[spare-1].Zxid
	g.entries = slices.Delete(g.entries, 0, spare)
}

// index is the place of the first entry above z.
func (g *Log) index(z wire.Zxid) int {
	return sort.Search(len(g.entries), func(i int) bool { return g.entries[i].Zxid > z })
}

// between returns the entries in (after, through], shared with the log.
func (g *Log) between(after, through wire.Zxid) []*record.Txn {
	i, j := g.index(after), g.index(through)
	return g.entries[i:max(i, j)]
}

// reach returns the end of the log that a truncation to z leaves: z itself, or
// the last transaction before the epoch that z is the beginning of. False if
// z is neither, as far as the log remembers.
func (g *Log) reach(z wire.Zxid) (wire.Zxid, bool) {
	if z <= g.before || z > g.last {
		return z, z >= g.floor && z <= g.last
	}
	found := g.before
	if i := g.index(z); i > 0 {
		found = g.entries[i-1].Zxid
	}
	return found, found >= g.floor && (found == z || z.Counter() == 0)
}

// truncate forgets everything above z.
func (g *Log) truncate(z wire.Zxid) {
	if z < g.before {
		g.entries, g.before = nil, z
		g.last, g.applied = z, min(g.applied, z)
		return
	}
	g.entries = slices.Delete(g.entries, g.index(z), len(g.entries))
	g.last, g.applied = z, min(g.applied, z)
}

// install replaces the whole log by a snapshot that holds everything up to z
// and txns behind it. These are remembered, so that they can be passed on
// (ZOOKEEPER-4925), but the disk has them in the snapshot only.
func (g *Log) install(z wire.Zxid, txns []*record.Txn, generation uint64) {
	before := g.copy()
	*g = *NewLog(z, g.keep)
	g.undo, g.madeBy = before, generation
	for _, t := range txns {
		if err := g.Append(t); err != nil {
			panic("zab: " + err.Error())
		}
	}
	g.floor, g.fresh = g.last, true
	g.MarkApplied(g.last)
}

// cut truncates to z.
func (g *Log) cut(z wire.Zxid, generation uint64) {
	g.undo, g.madeBy = g.copy(), generation
	g.truncate(z)
}

// copy is the log as it is now, to go back to.
func (g *Log) copy() *Log {
	c := *g
	c.entries = slices.Clone(g.entries)
	return &c
}

// confirm: the disk has done everything that was asked for up to a generation.
func (g *Log) confirm(generation uint64) {
	if generation >= g.madeBy {
		g.undo = nil
	}
}

// Refuse makes the memory what the disk is after a refused duty. The machines
// call it; where a Refused comes and there is none its receiver does. It
// reports whether the tree has to be made anew from the disk, because it holds
// what the disk has not.
func (g *Log) Refuse(e Refused) (rebuild bool) {
	var before *Log // what the oldest duty that was not done found
	madeBy := g.madeBy
	for u := g.undo; u != nil; u, madeBy = u.undo, u.madeBy {
		if e.Generation < madeBy || e.Generation == madeBy && e.Zxid == u.last {
			before = u
		}
	}
	if before != nil {
		*g = *before
		g.stuck = e.Zxid == before.last
	}
	if g.undo = nil; e.Zxid < g.last {
		rebuild = e.Zxid < g.applied
		g.truncate(e.Zxid)
	}
	return rebuild
}
