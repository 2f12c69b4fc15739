package check

import (
	"fmt"

	"bellwether/internal/ensemble"
)

// prefixConsistency checks that, of what two servers have delivered, one is a prefix of the
// other.
type prefixConsistency struct {
	history *History
	next    map[ensemble.ServerID]int // index in the history of the next delivery; 0: not known
}

func newPrefixConsistency(h *History) *prefixConsistency {
	return &prefixConsistency{h, map[ensemble.ServerID]int{}}
}

func (*prefixConsistency) Name() string { return "PrefixConsistency" }

func (c *prefixConsistency) See(o any) string {
	switch e := o.(type) {
	case Restarted, Rebuilt:
		c.next[startsAnew(e)] = 0
	case Stands:
		i, known := c.history.Place(e.Zxid)
		if !known {
			return fmt.Sprintf("server %d ends at %v, which no other has", e.Server, e.Zxid)
		}
		c.next[e.Server] = i + 1
	case Delivered:
		i := c.next[e.Server]
		if i == 0 {
			i = c.history.Index[e.Txn.Zxid]
		}
		if i >= len(c.history.Entries) {
			return fmt.Sprintf("server %d delivers %v behind the end of the history", e.Server, e.Txn.Zxid)
		}
		if x := &c.history.Entries[i]; x.Zxid != e.Txn.Zxid || x.sum != e.Sum {
			return fmt.Sprintf("server %d delivers %v (sum %x) as number %d, others delivered %v (sum %x)",
				e.Server, e.Txn.Zxid, e.Sum, i, x.Zxid, x.sum)
		}
		c.next[e.Server] = i + 1
	}
	return ""
}
