package sim

import (
	"fmt"

	"bellwether/internal/ensemble"
)

// prefixConsistency: of what two servers have delivered one is a beginning of
// the other.
type prefixConsistency struct {
	history *history
	next    map[ensemble.ServerID]int // the place in the history of what is delivered next, 0: not known
}

func newPrefixConsistency(h *history) *prefixConsistency {
	return &prefixConsistency{h, map[ensemble.ServerID]int{}}
}

func (*prefixConsistency) name() string { return "PrefixConsistency" }

func (c *prefixConsistency) see(o any) string {
	switch e := o.(type) {
	case restarted:
		c.next[e.server] = 0
	case rebuilt:
		c.next[e.server] = 0
	case stands:
		i, known := c.history.place(e.zxid)
		if !known {
			return fmt.Sprintf("server %d ends at %v, which no other has", e.server, e.zxid)
		}
		c.next[e.server] = i + 1
	case delivered:
		i := c.next[e.server]
		if i == 0 {
			i = c.history.index[e.txn.Zxid]
		}
		if i >= len(c.history.entries) {
			return fmt.Sprintf("server %d delivers %v behind the end of the history", e.server, e.txn.Zxid)
		}
		if x := &c.history.entries[i]; x.zxid != e.txn.Zxid || x.sum != e.sum {
			return fmt.Sprintf("server %d delivers %v (sum %x) as number %d, others delivered %v (sum %x)",
				e.server, e.txn.Zxid, e.sum, i, x.zxid, x.sum)
		}
		c.next[e.server] = i + 1
	}
	return ""
}
