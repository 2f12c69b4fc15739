package check

import (
	"fmt"

	"bellwether/internal/ensemble"
	"bellwether/internal/peerwire"
	"bellwether/wire"
)

// leadership checks that an epoch has at most one established leader, and that this leader
// has everything that was committed before (Leadership1 and LeaderCompleteness).
type leadership struct {
	history *History
	leaders map[wire.Epoch]ensemble.ServerID
	latest  wire.Epoch
}

func newLeadership(h *History) *leadership {
	return &leadership{history: h, leaders: map[wire.Epoch]ensemble.ServerID{}}
}

func (*leadership) Name() string { return "Leadership" }

func (c *leadership) See(o any) string {
	e, ok := o.(Established)
	if !ok || e.Role != peerwire.Leading {
		return ""
	}
	if before, ok := c.leaders[e.Epoch]; ok {
		return fmt.Sprintf("servers %d and %d are both established as leader of epoch %d", before, e.Server, e.Epoch)
	}
	c.leaders[e.Epoch] = e.Server
	if e.Epoch < c.latest {
		return "" // its process was paused while a later leader was established, and it does not know that yet
	}
	c.latest = e.Epoch
	if last := c.history.Last().Zxid; e.Zxid < last {
		return fmt.Sprintf("the history of leader %d of epoch %d ends at %v, but transactions up to %v are committed", e.Server, e.Epoch, e.Zxid, last)
	}
	return ""
}
