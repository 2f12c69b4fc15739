package zab

import (
	"fmt"
	"slices"
	"sort"

	"bellwether/internal/record"
	"bellwether/wire"
)

// KeepMin is how many applied transactions a Log keeps at least, as Apache ZooKeeper
// does (zookeeper.commitLogCount).
const KeepMin = 500

// Log is the end of a server's transaction log in memory, without a gap. applied is the
// last entry that was handed out for applying. Entries above applied are logged, or on
// their way to the disk, and not known to be committed. A Log exists as long as the
// process; each role uses it in turn.
//
// Invariants: each entry follows the previous one, the first entry follows the field
// before, and last is the zxid of the last entry. applied <= last.
type Log struct {
	keep    int
	entries []*record.Txn
	before  wire.Zxid // the zxid that the first entry follows
	last    wire.Zxid
	applied wire.Zxid
	floor   wire.Zxid // the log on disk cannot be cut below it; -1: not known
	// fresh says that a snapshot was installed that clients do not see yet.
	fresh bool
	// wantsSnapshot says that the last leader could synchronise this server only by a snapshot; see
	// Learner.wantSnapshot.
	wantsSnapshot bool
	// undo is the log as it was before a truncation or an installation that the disk
	// has not answered yet. madeBy is the generation that asked for this truncation or
	// installation. undo can have an undo itself.
	undo   *Log
	madeBy uint64
	memberships
}

// NewLog returns an empty log that ends at zxid, which is that of a snapshot. It keeps
// at least keep applied transactions, or KeepMin if that is more.
func NewLog(zxid wire.Zxid, keep int) *Log {
	return &Log{keep: max(keep, KeepMin), before: zxid, last: zxid, applied: zxid, floor: -1}
}

// Last returns the zxid of the last transaction logged, or of the snapshot.
func (g *Log) Last() wire.Zxid { return g.last }

// Fresh reports whether a leader's snapshot was installed that clients do not see yet,
// because it is not known to be committed.
func (g *Log) Fresh() bool { return g.fresh }

// Append adds a transaction at the end. If it does not follow the last one, Append
// returns an error and changes nothing.
func (g *Log) Append(t *record.Txn) error {
	if !follows(g.last, t.Zxid) {
		return fmt.Errorf("transaction %v does not follow %v", t.Zxid, g.last)
	}
	g.entries = append(g.entries, t)
	g.last = t.Zxid
	if m := MembershipOf(t); m != nil {
		g.Propose(m)
	}
	return nil
}

// follows reports whether next can come directly after z in a history that Zab made.
// No proposal has counter 0, which stands for the epoch itself.
func follows(z, next wire.Zxid) bool { return next.Counter() != 0 && record.Follows(z, next) }

// MarkApplied notes that everything up to z is in the tree, as after loading.
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

// index returns the index of the first entry above z.
func (g *Log) index(z wire.Zxid) int {
	return sort.Search(len(g.entries), func(i int) bool { return g.entries[i].Zxid > z })
}

// between returns the entries in (after, through], shared with the log.
func (g *Log) between(after, through wire.Zxid) []*record.Txn {
	i, j := g.index(after), g.index(through)
	return g.entries[i:max(i, j)]
}

// reach returns where the log ends after a truncation to z: at z, or, if z has counter
// 0, at the last transaction of an earlier epoch. It returns false if there is no such
// place in the log, as far as is known.
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

// truncate removes everything above z.
func (g *Log) truncate(z wire.Zxid) {
	g.forgetAbove(int64(z))
	if z < g.before {
		g.entries, g.before = nil, z
		g.last, g.applied = z, min(g.applied, z)
		return
	}
	g.entries = slices.Delete(g.entries, g.index(z), len(g.entries))
	g.last, g.applied = z, min(g.applied, z)
}

// install replaces the whole log by a snapshot that contains everything up to z, followed
// by txns. The log keeps txns, so that they can be passed on (ZOOKEEPER-4925); on disk
// they are only in the snapshot.
func (g *Log) install(z wire.Zxid, txns []*record.Txn, generation uint64) {
	before := g.copy()
	*g = *NewLog(z, g.keep)
	g.undo, g.madeBy, g.committed = before, generation, before.committed
	for _, t := range txns {
		if err := g.Append(t); err != nil {
			panic("zab: " + err.Error())
		}
	}
	g.floor, g.fresh = g.last, true
	g.MarkApplied(g.last)
}

// cut truncates the log to z. The truncation can be undone until the disk has done it.
func (g *Log) cut(z wire.Zxid, generation uint64) {
	g.undo, g.madeBy = g.copy(), generation
	g.truncate(z)
}

// copy returns the log as it is now.
func (g *Log) copy() *Log {
	c := *g
	c.entries = slices.Clone(g.entries)
	return &c
}

// confirm notes that the disk has done all duties up to a generation.
func (g *Log) confirm(generation uint64) {
	if generation >= g.madeBy {
		g.undo = nil
	}
}

// Refuse makes the log equal to the log on disk after a refused duty. Leader and Learner
// call Refuse; if a Refused comes between two roles, the driver calls it. Refuse reports
// whether the tree must be loaded from the disk again, because the tree has applied
// transactions that the disk lacks.
func (g *Log) Refuse(e Refused) (rebuild bool) {
	var before *Log // the log before the oldest duty that was not done
	madeBy := g.madeBy
	for u := g.undo; u != nil; u, madeBy = u.undo, u.madeBy {
		if e.Generation < madeBy || e.Generation == madeBy && e.Zxid == u.last {
			before = u
		}
	}
	if before != nil {
		committed := g.committed
		*g = *before
		g.wantsSnapshot = e.Zxid == before.last
		if committed != nil {
			g.Configure(committed)
		}
	}
	if g.undo = nil; e.Zxid < g.last {
		rebuild = e.Zxid < g.applied
		g.truncate(e.Zxid)
	}
	return rebuild
}
