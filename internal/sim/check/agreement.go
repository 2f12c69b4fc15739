package check

import (
	"fmt"
	"sort"

	"bellwether/internal/ensemble"
	"bellwether/wire"
)

// agreement checks any two servers and any transaction that each of them has delivered: one of
// the two servers has delivered both transactions. So no server skips a transaction that another
// has delivered.
type agreement struct {
	all  []wire.Zxid // zxids delivered by any server, sorted
	last map[ensemble.ServerID]wire.Zxid
}

func newAgreement() *agreement { return &agreement{last: map[ensemble.ServerID]wire.Zxid{}} }

func (*agreement) Name() string { return "Agreement" }

func (c *agreement) See(o any) string {
	switch e := o.(type) {
	case Restarted, Rebuilt:
		delete(c.last, startsAnew(e))
	case Stands:
		c.last[e.Server] = e.Zxid
	case Delivered:
		z := e.Txn.Zxid
		i := sort.Search(len(c.all), func(i int) bool { return c.all[i] >= z })
		if last, ok := c.last[e.Server]; ok && i > 0 && c.all[i-1] > last {
			return fmt.Sprintf("server %d delivers %v after %v, but has never delivered %v", e.Server, z, last, c.all[i-1])
		}
		if i == len(c.all) {
			c.all = append(c.all, z)
		} else if c.all[i] != z {
			return fmt.Sprintf("server %d delivers %v, which those that delivered %v never did", e.Server, z, c.all[i])
		}
		c.last[e.Server] = z
	}
	return ""
}
