package sim

import (
	"fmt"

	"bellwether/internal/ensemble"
	"bellwether/internal/peerwire"
	"bellwether/wire"
)

// leadership: an epoch has at most one established leader, and that one has
// everything that was committed before (Leadership1 and LeaderCompleteness).
type leadership struct {
	history *history
	leaders map[wire.Epoch]ensemble.ServerID
	latest  wire.Epoch
}

func newLeadership(h *history) *leadership {
	return &leadership{history: h, leaders: map[wire.Epoch]ensemble.ServerID{}}
}

func (*leadership) name() string { return "Leadership" }

func (c *leadership) see(o any) string {
	e, ok := o.(established)
	if !ok || e.role != peerwire.Leading {
		return ""
	}
	if before, ok := c.leaders[e.epoch]; ok {
		return fmt.Sprintf("servers %d and %d are both established as leader of epoch %d", before, e.server, e.epoch)
	}
	c.leaders[e.epoch] = e.server
	if e.epoch < c.latest {
		return "" // it was stopped, and does not know yet that it leads nobody any more
	}
	c.latest = e.epoch
	if last := c.history.last().zxid; e.zxid < last {
		return fmt.Sprintf("leader %d of epoch %d ends at %v, committed is %v", e.server, e.epoch, e.zxid, last)
	}
	return ""
}
