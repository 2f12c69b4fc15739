package sim

import (
	"fmt"
	"hash/crc32"

	"bellwether/internal/ensemble"
	"bellwether/internal/peerwire"
	"bellwether/wire"
)

// integrity: what a server delivers, the established leader of its epoch has
// broadcast, with that very content.
type integrity struct {
	leaders   map[wire.Epoch]ensemble.ServerID
	broadcast map[wire.Zxid]uint32
	buf       []byte
}

func newIntegrity() *integrity {
	return &integrity{leaders: map[wire.Epoch]ensemble.ServerID{}, broadcast: map[wire.Zxid]uint32{}}
}

func (*integrity) name() string { return "Integrity" }

func (c *integrity) see(o any) string {
	switch e := o.(type) {
	case established:
		if e.role == peerwire.Leading {
			c.leaders[e.epoch] = e.server
		}
	case promised:
		if !e.byLearner && e.packet.Type == peerwire.PacketProposal {
			return c.appears(e.server, e.packet.Zxid, e.packet.Data)
		}
	case ordered:
		for _, t := range e.duty.Append {
			c.buf = t.Append(c.buf[:0])
			if wrong := c.appears(e.server, t.Zxid, c.buf); wrong != "" {
				return wrong
			}
		}
	case delivered:
		sum, ok := c.broadcast[e.txn.Zxid]
		if !ok || sum != e.sum {
			return fmt.Sprintf("server %d delivers %v, which no leader has broadcast like that", e.server, e.txn.Zxid)
		}
	}
	return ""
}

// appears: the first to log or to propose a transaction is who broadcasts it. A
// leader in the middle of a batch may propose what it logs at the end of it.
func (c *integrity) appears(server ensemble.ServerID, z wire.Zxid, content []byte) string {
	sum := crc32.ChecksumIEEE(content)
	before, known := c.broadcast[z]
	switch {
	case !known && c.leaders[z.Epoch()] != server:
		return fmt.Sprintf("server %d logs or proposes %v first, and does not lead epoch %d", server, z, z.Epoch())
	case known && before != sum:
		return fmt.Sprintf("server %d logs or proposes another %v than was broadcast", server, z)
	}
	c.broadcast[z] = sum
	return ""
}
