package check

import (
	"fmt"

	"bellwether/internal/peerwire"
	"bellwether/internal/zab"
	"bellwether/wire"
)

// leadershipTransfers checks leadership transfers. A leader that has begun one proposes nothing more. The successor
// that it names has on its disk everything that the leader proposed, and was heard from within LeaseMS. After that, the old
// leader neither proposes nor pings in its epoch, except that pings of before may wait behind a snapshot.
type leadershipTransfers struct {
	began, ended map[wire.Epoch]wire.Zxid
	snapshots    map[zab.LinkID]bool // links on which a snapshot was sent
}

func newLeadershipTransfers() *leadershipTransfers {
	return &leadershipTransfers{map[wire.Epoch]wire.Zxid{}, map[wire.Epoch]wire.Zxid{}, map[zab.LinkID]bool{}}
}

func (*leadershipTransfers) Name() string { return "LeadershipTransfers" }

func (c *leadershipTransfers) See(o any) string {
	switch e := o.(type) {
	case Promised:
		return c.sent(e)
	case TransferBegan:
		c.began[e.Epoch] = e.Log
	case Ordered:
		for _, t := range e.Duty.Append {
			if end, over := c.ended[t.Zxid.Epoch()]; over && t.Zxid > end {
				return fmt.Sprintf("server %d logs %v, but the leadership of its epoch was transferred at %v", e.Server, t.Zxid, end)
			}
			if end, began := c.began[t.Zxid.Epoch()]; began && t.Zxid > end {
				return fmt.Sprintf("server %d logs %v, but the leader of its epoch has begun to transfer leadership at %v", e.Server, t.Zxid, end)
			}
		}
	}
	return ""
}

// sent checks what a leader sends.
func (c *leadershipTransfers) sent(e Promised) string {
	z := e.Packet.Zxid
	switch {
	case e.ByLearner:
		return ""
	case e.Packet.Type == peerwire.PacketSnap:
		c.snapshots[e.Link] = true
		return ""
	case e.Packet.Type == peerwire.PacketPing:
		if end, over := c.ended[z.Epoch()]; over && !c.snapshots[e.Link] {
			return fmt.Sprintf("leader %d pings in epoch %d, whose leadership was transferred at %v", e.Server, z.Epoch(), end)
		}
		return ""
	case e.Packet.Type != peerwire.PacketHandOver:
		return ""
	}
	var h peerwire.Handover
	if err := wire.Decode(e.Packet.Data, &h); err != nil {
		return err.Error()
	}
	epoch := e.Epoch
	c.ended[epoch] = z
	if last := e.Log; last > z {
		return fmt.Sprintf("leader %d transfers the leadership of epoch %d at %v, but its log ends at %v", e.Server, epoch, z, last)
	}
	if e.To.Server == h.Leader && e.SilentMS > LeaseMS {
		return fmt.Sprintf("leader %d transfers leadership to server %d, of which it has taken no packet for %d ms", e.Server, h.Leader, e.SilentMS)
	}
	// A successor may have been wiped while the leader was suspended.
	if have := max(e.To.Zxid, 0); e.To.Server == h.Leader && have < z && !e.To.Wiped {
		return fmt.Sprintf("leader %d transfers leadership to server %d at %v, which has %v on its disk", e.Server, h.Leader, z, have)
	}
	return ""
}
