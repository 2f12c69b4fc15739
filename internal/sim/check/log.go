package check

import (
	"fmt"

	"bellwether/internal/ensemble"
	"bellwether/wire"
)

// noHole checks that what a server logs directly follows what it logged before.
type noHole struct {
	last map[ensemble.ServerID]wire.Zxid
}

func newNoHole() *noHole { return &noHole{map[ensemble.ServerID]wire.Zxid{}} }

func (*noHole) Name() string { return "NoHole" }

func (c *noHole) See(o any) string {
	switch e := o.(type) {
	case Restarted:
		c.last[e.Server] = e.Log
	case Undone:
		c.last[e.Server] = e.Zxid
	case Ordered:
		if e.Void {
			return "" // the duty is void
		}
		if t := e.Duty.Truncate; t != nil {
			c.last[e.Server] = t.Zxid
		}
		if in := e.Duty.Install; in != nil {
			c.last[e.Server] = in.Zxid
		}
		for _, t := range e.Duty.Append {
			if last := c.last[e.Server]; !follows(last, t.Zxid) {
				return fmt.Sprintf("server %d logs %v directly after %v", e.Server, t.Zxid, last)
			}
			c.last[e.Server] = t.Zxid
		}
	}
	return ""
}

// follows reports whether next can come directly after z in a log.
func follows(z, next wire.Zxid) bool {
	return next == z+1 || next.Epoch() > z.Epoch() && next.Counter() == 1
}
