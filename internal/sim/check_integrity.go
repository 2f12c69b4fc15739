package sim

import (
	"fmt"
	"hash/crc32"

	"bellwether/wire"
)

// integrity: what a server delivers, the established leader of its epoch has
// broadcast, with that very content.
type integrity struct {
	leaders   map[wire.Epoch]wire.ServerID
	broadcast map[wire.Zxid]uint32
	buf       []byte
}

func newIntegrity() *integrity {
	return &integrity{leaders: map[wire.Epoch]wire.ServerID{}, broadcast: map[wire.Zxid]uint32{}}
}

func (*integrity) name() string { return "Integrity" }

func (c *integrity) see(o any) string {
	switch e := o.(type) {
	case established:
		if e.role == wire.Leading {
			c.leaders[e.epoch] = e.v.id
		}
	case ordered:
		for _, t := range e.duty.Append {
			if wrong := c.appended(e.v, t); wrong != "" {
				return wrong
			}
		}
	case delivered:
		sum, ok := c.broadcast[e.txn.Zxid]
		if !ok || sum != e.sum {
			return fmt.Sprintf("server %d delivers %v, which no leader has broadcast like that", e.v.id, e.txn.Zxid)
		}
	}
	return ""
}

// appended: the first to log a transaction is who broadcasts it.
func (c *integrity) appended(v *server, t *wire.Txn) string {
	c.buf = t.Append(c.buf[:0])
	sum := crc32.ChecksumIEEE(c.buf)
	before, known := c.broadcast[t.Zxid]
	switch {
	case !known && c.leaders[t.Zxid.Epoch()] != v.id:
		return fmt.Sprintf("server %d logs %v first, and does not lead epoch %d", v.id, t.Zxid, t.Zxid.Epoch())
	case known && before != sum:
		return fmt.Sprintf("server %d logs another %v than was broadcast", v.id, t.Zxid)
	}
	c.broadcast[t.Zxid] = sum
	return ""
}
