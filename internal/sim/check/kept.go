package check

import (
	"fmt"

	"bellwether/internal/ensemble"
	"bellwether/internal/peerwire"
	"bellwether/wire"
)

// keptConnections checks that a server which keeps a client's connection over a change of leaders has
// missed no term in which another leader has served. In such a term a request of the connection may have
// been carried out, and the server would send it again. For the same reason both leaders are Bellwether's: the
// epochs of one of ZooKeeper's do not show whether the server has missed a term.
type keptConnections struct {
	premise
	present Present
	served  []wire.Epoch                     // epochs of leaders that have served, in order of their beginning
	leaders map[wire.Epoch]ensemble.ServerID // by epoch
}

func newKeptConnections(p Present) *keptConnections {
	return &keptConnections{present: p, leaders: map[wire.Epoch]ensemble.ServerID{}}
}

func (*keptConnections) Name() string { return "KeptConnections" }

func (c *keptConnections) See(o any) string {
	switch e := o.(type) {
	case Established:
		if e.Role == peerwire.Leading {
			c.served = append(c.served, e.Epoch)
			c.leaders[e.Epoch] = e.Server
		}
	case Kept:
		c.count()
		for _, epoch := range []wire.Epoch{e.From, e.To} {
			leader, known := c.leaders[epoch]
			if v := find(c.present.Servers(), leader); known && v != nil && v.Compatible {
				return fmt.Sprintf("server %d keeps a connection from epoch %d to epoch %d, but server %d, which led epoch %d, is one of ZooKeeper's", e.Server, e.From, e.To, leader, epoch)
			}
		}
		for _, epoch := range c.served {
			if e.From < epoch && epoch < e.To {
				return fmt.Sprintf("server %d keeps a connection from epoch %d to epoch %d, but has missed the leader of epoch %d", e.Server, e.From, e.To, epoch)
			}
		}
	}
	return ""
}
