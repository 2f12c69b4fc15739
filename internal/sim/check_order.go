package sim

import (
	"fmt"

	"bellwether/internal/ensemble"
	"bellwether/internal/peerwire"
	"bellwether/wire"
)

// totalOrder: two servers deliver in the same order: that of the zxids.
type totalOrder struct {
	last map[ensemble.ServerID]wire.Zxid
}

func newTotalOrder() *totalOrder { return &totalOrder{map[ensemble.ServerID]wire.Zxid{}} }

func (*totalOrder) name() string { return "TotalOrder" }

func (c *totalOrder) see(o any) string {
	switch e := o.(type) {
	case restarted:
		delete(c.last, e.v.id)
	case rebuilt:
		delete(c.last, e.v.id)
	case handed:
		if last, ok := c.last[e.v.id]; ok && e.txn.Zxid <= last {
			return fmt.Sprintf("server %d delivers %v behind %v", e.v.id, e.txn.Zxid, last)
		}
		c.last[e.v.id] = e.txn.Zxid
	}
	return ""
}

// localPrimaryOrder: what one leader broadcasts is delivered in the order in
// which it did that, with nothing left out.
type localPrimaryOrder struct {
	last map[ensemble.ServerID]wire.Zxid
}

func newLocalPrimaryOrder() *localPrimaryOrder {
	return &localPrimaryOrder{map[ensemble.ServerID]wire.Zxid{}}
}

func (*localPrimaryOrder) name() string { return "LocalPrimaryOrder" }

func (c *localPrimaryOrder) see(o any) string {
	switch e := o.(type) {
	case restarted:
		delete(c.last, e.v.id)
	case rebuilt:
		delete(c.last, e.v.id)
	case stands:
		c.last[e.v.id] = max(c.last[e.v.id], e.zxid)
	case handed:
		last, ok := c.last[e.v.id]
		if z := e.txn.Zxid; ok && last.Epoch() == z.Epoch() && z != last+1 || ok && last.Epoch() != z.Epoch() && z.Counter() != 1 {
			return fmt.Sprintf("server %d delivers %v behind %v", e.v.id, z, last)
		}
		c.last[e.v.id] = e.txn.Zxid
	}
	return ""
}

// globalPrimaryOrder: what a leader of an earlier epoch has broadcast comes
// before what a later one has.
type globalPrimaryOrder struct {
	epoch map[ensemble.ServerID]wire.Epoch
}

func newGlobalPrimaryOrder() *globalPrimaryOrder {
	return &globalPrimaryOrder{map[ensemble.ServerID]wire.Epoch{}}
}

func (*globalPrimaryOrder) name() string { return "GlobalPrimaryOrder" }

func (c *globalPrimaryOrder) see(o any) string {
	switch e := o.(type) {
	case restarted:
		delete(c.epoch, e.v.id)
	case rebuilt:
		delete(c.epoch, e.v.id)
	case handed:
		if now := e.txn.Zxid.Epoch(); now < c.epoch[e.v.id] {
			return fmt.Sprintf("server %d delivers %v after transactions of epoch %d", e.v.id, e.txn.Zxid, c.epoch[e.v.id])
		}
		c.epoch[e.v.id] = e.txn.Zxid.Epoch()
	}
	return ""
}

// primaryIntegrity: before a leader broadcasts, it has delivered everything of
// earlier epochs that anybody ever delivers.
type primaryIntegrity struct {
	delivered map[ensemble.ServerID]wire.Zxid
	began     map[wire.Epoch]wire.Zxid // what its leader had delivered when it first broadcast
	latest    wire.Epoch
}

func newPrimaryIntegrity() *primaryIntegrity {
	return &primaryIntegrity{delivered: map[ensemble.ServerID]wire.Zxid{}, began: map[wire.Epoch]wire.Zxid{}}
}

func (*primaryIntegrity) name() string { return "PrimaryIntegrity" }

func (c *primaryIntegrity) see(o any) string {
	switch e := o.(type) {
	case stands:
		c.delivered[e.v.id] = e.zxid
	case promised: // in the middle of a batch a leader proposes before it logs
		if !e.byLearner && e.packet.Type == peerwire.PacketProposal {
			c.broadcast(e.v, e.packet.Zxid.Epoch())
		}
	case ordered:
		for _, t := range e.duty.Append {
			c.broadcast(e.v, t.Zxid.Epoch())
		}
	case committed:
		if z := e.txn.Zxid; z.Epoch() < c.latest && z > c.began[c.latest] {
			return fmt.Sprintf("%v is delivered, but the leader of epoch %d began to broadcast at %v", z, c.latest, c.began[c.latest])
		}
	}
	return ""
}

// broadcast: a server has logged or proposed something of an epoch.
func (c *primaryIntegrity) broadcast(v *server, epoch wire.Epoch) {
	if epoch > c.latest {
		c.latest = epoch
		c.began[epoch] = c.delivered[v.id]
	}
}
