package check

import (
	"fmt"

	"bellwether/internal/peerwire"
	"bellwether/wire"
)

// keptConnections checks that a server which keeps a client's connection over a change of leaders has
// missed no term in which another leader has served. In such a term a request of the connection may have
// been carried out, and the server would send it again.
type keptConnections struct {
	premise
	served []wire.Epoch // epochs of leaders that have served, in order of their beginning
}

func (*keptConnections) Name() string { return "KeptConnections" }

func (c *keptConnections) See(o any) string {
	switch e := o.(type) {
	case Established:
		if e.Role == peerwire.Leading {
			c.served = append(c.served, e.Epoch)
		}
	case Kept:
		c.count()
		for _, epoch := range c.served {
			if e.From < epoch && epoch < e.To {
				return fmt.Sprintf("server %d keeps a connection from epoch %d to epoch %d, but has missed the leader of epoch %d", e.Server, e.From, e.To, epoch)
			}
		}
	}
	return ""
}
