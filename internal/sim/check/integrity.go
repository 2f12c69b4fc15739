package check

import (
	"fmt"
	"hash/crc32"

	"bellwether/internal/ensemble"
	"bellwether/internal/peerwire"
	"bellwether/wire"
)

// integrity checks that every transaction which a server delivers was broadcast by the
// established leader of its epoch, with the same content.
type integrity struct {
	leaders   map[wire.Epoch]ensemble.ServerID
	broadcast map[wire.Zxid]uint32
	buf       []byte
}

func newIntegrity() *integrity {
	return &integrity{leaders: map[wire.Epoch]ensemble.ServerID{}, broadcast: map[wire.Zxid]uint32{}}
}

func (*integrity) Name() string { return "Integrity" }

func (c *integrity) See(o any) string {
	switch e := o.(type) {
	case Established:
		if e.Role == peerwire.Leading {
			c.leaders[e.Epoch] = e.Server
		}
	case Promised:
		if !e.ByLearner && e.Packet.Type == peerwire.PacketProposal {
			return c.appears(e.Server, e.Packet.Zxid, e.Packet.Data)
		}
	case Ordered:
		for _, t := range e.Duty.Append {
			c.buf = t.Append(c.buf[:0])
			if wrong := c.appears(e.Server, t.Zxid, c.buf); wrong != "" {
				return wrong
			}
		}
	case Delivered:
		sum, ok := c.broadcast[e.Txn.Zxid]
		if !ok || sum != e.Sum {
			return fmt.Sprintf("server %d delivers %v, which no leader has broadcast like that", e.Server, e.Txn.Zxid)
		}
	}
	return ""
}

// appears checks a transaction that a server logs or proposes. The first server to do so is
// the one that broadcasts it. In the middle of a batch, a leader may propose a transaction
// that it logs only at the end of the batch.
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
