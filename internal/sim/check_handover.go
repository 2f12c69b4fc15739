package sim

import (
	"fmt"

	"bellwether/internal/peerwire"
	"bellwether/wire"
)

// handOvers: who is named by a leader has everything that was proposed, on its
// disk, and the leader neither proposes nor pings in its epoch any more.
type handOvers struct{ ended map[wire.Epoch]wire.Zxid }

func newHandOvers() *handOvers { return &handOvers{map[wire.Epoch]wire.Zxid{}} }

func (*handOvers) name() string { return "HandOver" }

func (c *handOvers) see(o any) string {
	switch e := o.(type) {
	case promised:
		return c.sent(e)
	case ordered:
		for _, t := range e.duty.Append {
			if end, over := c.ended[t.Zxid.Epoch()]; over && t.Zxid > end {
				return fmt.Sprintf("server %d logs %v, the epoch was handed over at %v", e.server, t.Zxid, end)
			}
		}
	}
	return ""
}

// sent looks at what a leader sends.
func (c *handOvers) sent(e promised) string {
	z := e.packet.Zxid
	switch {
	case e.byLearner:
		return ""
	case e.packet.Type == peerwire.PacketPing:
		if end, over := c.ended[z.Epoch()]; over {
			return fmt.Sprintf("leader %d pings in epoch %d, which was handed over at %v", e.server, z.Epoch(), end)
		}
		return ""
	case e.packet.Type != peerwire.PacketHandOver:
		return ""
	}
	var h peerwire.HandOver
	if err := wire.Decode(e.packet.Data, &h); err != nil {
		return err.Error()
	}
	epoch := e.epoch
	c.ended[epoch] = z
	if last := e.log; last > z {
		return fmt.Sprintf("leader %d hands epoch %d over at %v, its log ends at %v", e.server, epoch, z, last)
	}
	// A successor can have been wiped while the leader was suspended.
	if have := max(e.to.zxid, 0); e.to.server == h.Leader && have < z && !e.to.wiped {
		return fmt.Sprintf("leader %d hands over to server %d at %v, which has %v on its disk", e.server, h.Leader, z, have)
	}
	return ""
}
