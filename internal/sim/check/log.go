package check

import (
	"fmt"

	"bellwether/internal/ensemble"
	"bellwether/internal/peerwire"
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

// durability checks that what a learner acknowledges or promises is on its disk.
type durability struct{}

func (durability) Name() string { return "Durability" }

func (durability) See(o any) string {
	e, ok := o.(Promised)
	if !ok {
		return ""
	}
	z, disk := e.Packet.Zxid, e.Disk
	switch {
	case !e.ByLearner && e.Packet.Type == peerwire.PacketLeaderInfo && disk.Accepted < z.Epoch():
		return fmt.Sprintf("leader %d announces epoch %d, but its disk has epoch %d", e.Server, z.Epoch(), disk.Accepted)
	case !e.ByLearner:
	case e.Packet.Type == peerwire.PacketAck && z.Counter() == 0 && disk.Current < z.Epoch():
		return fmt.Sprintf("server %d acknowledges epoch %d, but its disk has epoch %d", e.Server, z.Epoch(), disk.Current)
	case e.Packet.Type == peerwire.PacketAck && z.Counter() != 0 && disk.Zxid < z:
		return fmt.Sprintf("server %d acknowledges %v, but only transactions up to %v are durable", e.Server, z, disk.Zxid)
	}
	return ""
}
