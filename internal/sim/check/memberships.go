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
// A server can know that a membership is committed before any server has applied its
// transaction. So the history is asked once it goes on behind that place.
type memberships struct {
	history *History
	now     map[ensemble.ServerID]int64 // the version of the present process
	open    map[wire.Zxid]Counts        // not found in the history yet
	first   map[int64]string            // the texts of versions that are not transactions
}

func newMemberships(h *History) *memberships {
	return &memberships{history: h, now: map[ensemble.ServerID]int64{}, open: map[wire.Zxid]Counts{}, first: map[int64]string{}}
}

func (*memberships) Name() string { return "Memberships" }

func (c *memberships) See(o any) string {
	switch e := o.(type) {
	case Restarted:
		delete(c.now, e.Server)
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
	if before, known := c.now[e.Server]; known && version < before {
		return fmt.Sprintf("server %d goes back from membership version %x to %x", e.Server, before, version)
	}
	c.now[e.Server] = version
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
