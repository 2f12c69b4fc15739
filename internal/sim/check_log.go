package sim

import (
	"fmt"

	"bellwether/internal/ensemble"
	"bellwether/internal/peerwire"
	"bellwether/wire"
)

// noHole: what a server logs follows what it logged before.
type noHole struct {
	last map[ensemble.ServerID]wire.Zxid
}

func newNoHole() *noHole { return &noHole{map[ensemble.ServerID]wire.Zxid{}} }

func (*noHole) name() string { return "NoHole" }

func (c *noHole) see(o any) string {
	switch e := o.(type) {
	case restarted:
		c.last[e.server] = e.log
	case undone:
		c.last[e.server] = e.zxid
	case ordered:
		if e.void {
			return "" // void
		}
		if t := e.duty.Truncate; t != nil {
			c.last[e.server] = t.Zxid
		}
		if in := e.duty.Install; in != nil {
			c.last[e.server] = in.Zxid
		}
		for _, t := range e.duty.Append {
			if last := c.last[e.server]; !follows(last, t.Zxid) {
				return fmt.Sprintf("server %d logs %v behind %v", e.server, t.Zxid, last)
			}
			c.last[e.server] = t.Zxid
		}
	}
	return ""
}

// follows reports whether next can stand directly behind z in a log.
func follows(z, next wire.Zxid) bool {
	return next == z+1 || next.Epoch() > z.Epoch() && next.Counter() == 1
}

// durability: what a learner acknowledges or promises is on its disk.
type durability struct{}

func (durability) name() string { return "Durability" }

func (durability) see(o any) string {
	e, ok := o.(promised)
	if !ok {
		return ""
	}
	z, disk := e.packet.Zxid, e.disk
	switch {
	case !e.byLearner && e.packet.Type == peerwire.PacketLeaderInfo && disk.accepted < z.Epoch():
		return fmt.Sprintf("leader %d tells epoch %d with %d on its disk", e.server, z.Epoch(), disk.accepted)
	case !e.byLearner:
	case e.packet.Type == peerwire.PacketAck && z.Counter() == 0 && disk.current < z.Epoch():
		return fmt.Sprintf("server %d acknowledges epoch %d with %d on its disk", e.server, z.Epoch(), disk.current)
	case e.packet.Type == peerwire.PacketAck && z.Counter() != 0 && disk.zxid < z:
		return fmt.Sprintf("server %d acknowledges %v, durable is %v", e.server, z, disk.zxid)
	}
	return ""
}
