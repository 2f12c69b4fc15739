package check

import (
	"fmt"

	"bellwether/internal/ensemble"
	"bellwether/internal/zab"
	"bellwether/wire"
)

// Counts says that a server now counts with these memberships. Proposed is nil if it has no
// newer one in its log.
type Counts struct {
	Server              ensemble.ServerID
	Committed, Proposed *ensemble.Membership
}

// memberships checks that a membership which a server takes for committed is one that the
// history contains, and that no process goes back to an older one. With that and the rule
// Leadership, two servers cannot lead under different memberships at the same time and both
// commit.
//
// A leader proposes a membership only when the one before is committed, so a server that logs two of them takes the
// first one for committed.
//
// A server can know that a membership is committed before any server has applied its
// transaction. So the history is asked once it goes on behind that place.
type memberships struct {
	history *History
	now     map[ensemble.ServerID]int64    // the version of the present process
	open    map[wire.Zxid]Counts           // not found in the history yet
	first   map[int64]string               // the texts of versions that are not transactions
	logged  map[ensemble.ServerID][2]int64 // the last two memberships that a process has logged; 0: none
	last    map[ensemble.ServerID]Counts
	met     [2]int // how often a membership is committed, and how often a proposed one follows another one
}

func newMemberships(h *History) *memberships {
	return &memberships{history: h, now: map[ensemble.ServerID]int64{}, open: map[wire.Zxid]Counts{}, first: map[int64]string{},
		logged: map[ensemble.ServerID][2]int64{}, last: map[ensemble.ServerID]Counts{}}
}

func (*memberships) Name() string { return "Memberships" }

// Met returns the counts of the rules.
func (c *memberships) Met() []Count {
	return []Count{{"a membership of the history", c.met[0]}, {"a proposed one behind another one", c.met[1]}}
}

func (c *memberships) See(o any) string {
	switch e := o.(type) {
	case Restarted:
		delete(c.now, e.Server)
		delete(c.last, e.Server)
		delete(c.logged, e.Server)
	case Undone:
		delete(c.logged, e.Server)
	case Ordered:
		return c.logs(&e)
	case Counts:
		return c.counts(&e)
	case Committed:
		for z, open := range c.open {
			if z <= e.Txn.Zxid {
				delete(c.open, z)
				if wrong := c.contains(&open); wrong != "" {
					return wrong
				}
			}
		}
	}
	return ""
}

func (c *memberships) counts(e *Counts) string {
	version := e.Committed.Version()
	if wire.Zxid(version).Counter() > 0 {
		c.met[0]++
	}
	if before, known := c.now[e.Server]; known && version < before {
		return fmt.Sprintf("server %d goes back from membership version %x to %x", e.Server, before, version)
	}
	c.now[e.Server] = version
	c.last[e.Server] = *e
	if wrong := c.follows(e.Server); wrong != "" {
		return wrong
	}
	switch z := wire.Zxid(version); {
	case z.Counter() == 0:
		text := e.Committed.String()
		if before, known := c.first[version]; known && before != text && version > 0 {
			return fmt.Sprintf("server %d has another membership of version %x than others", e.Server, version)
		}
		c.first[version] = text
	case z > c.history.Last().Zxid:
		c.open[z] = *e
	default:
		return c.contains(e)
	}
	return ""
}

// logs takes the memberships that a server logs.
func (c *memberships) logs(e *Ordered) string {
	if e.Duty.Truncate != nil || e.Duty.Install != nil || e.Void {
		delete(c.logged, e.Server)
	}
	if e.Void {
		return ""
	}
	for _, t := range e.Duty.Append {
		if zab.MembershipOf(t) != nil {
			c.logged[e.Server] = [2]int64{c.logged[e.Server][1], int64(t.Zxid)}
		}
	}
	return c.follows(e.Server)
}

// follows checks that a server takes the first of two memberships in its log for committed.
func (c *memberships) follows(id ensemble.ServerID) string {
	logged, e := c.logged[id], c.last[id]
	if logged[0] == 0 || e.Proposed == nil || e.Proposed.Version() != logged[1] {
		return ""
	}
	if c.met[1]++; e.Committed.Version() >= logged[0] {
		return ""
	}
	return fmt.Sprintf("server %d has logged the memberships of versions %x and %x, but takes version %x for committed", id, logged[0], logged[1], e.Committed.Version())
}

// contains checks that the history contains a committed membership.
func (c *memberships) contains(e *Counts) string {
	z := wire.Zxid(e.Committed.Version())
	i, known := c.history.Index[z]
	if !known {
		return fmt.Sprintf("server %d takes membership %v for committed, which the history lacks", e.Server, z)
	}
	if m := zab.MembershipOf(c.history.Entries[i].Txn); m == nil || m.String() != e.Committed.String() {
		return fmt.Sprintf("server %d has another membership %v than the history", e.Server, z)
	}
	return ""
}
