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
		delete(c.last, e.server)
	case rebuilt:
		delete(c.last, e.server)
	case handed:
		if last, ok := c.last[e.server]; ok && e.txn.Zxid <= last {
			return fmt.Sprintf("server %d delivers %v behind %v", e.server, e.txn.Zxid, last)
		}
		c.last[e.server] = e.txn.Zxid
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
		delete(c.last, e.server)
	case rebuilt:
		delete(c.last, e.server)
	case stands:
		c.last[e.server] = max(c.last[e.server], e.zxid)
	case handed:
		last, ok := c.last[e.server]
		if z := e.txn.Zxid; ok && last.Epoch() == z.Epoch() && z != last+1 || ok && last.Epoch() != z.Epoch() && z.Counter() != 1 {
			return fmt.Sprintf("server %d delivers %v behind %v", e.server, z, last)
		}
		c.last[e.server] = e.txn.Zxid
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
		delete(c.epoch, e.server)
	case rebuilt:
		delete(c.epoch, e.server)
	case handed:
		if now := e.txn.Zxid.Epoch(); now < c.epoch[e.server] {
			return fmt.Sprintf("server %d delivers %v after transactions of epoch %d", e.server, e.txn.Zxid, c.epoch[e.server])
		}
		c.epoch[e.server] = e.txn.Zxid.Epoch()
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
		c.delivered[e.server] = e.zxid
	case promised: // in the middle of a batch a leader proposes before it logs
		if !e.byLearner && e.packet.Type == peerwire.PacketProposal {
			c.broadcast(e.server, e.packet.Zxid.Epoch())
		}
	case ordered:
		for _, t := range e.duty.Append {
			c.broadcast(e.server, t.Zxid.Epoch())
		}
	case committed:
		if z := e.txn.Zxid; z.Epoch() < c.latest && z > c.began[c.latest] {
			return fmt.Sprintf("%v is delivered, but the leader of epoch %d began to broadcast at %v", z, c.latest, c.began[c.latest])
		}
	}
	return ""
}

// broadcast: a server has logged or proposed something of an epoch.
func (c *primaryIntegrity) broadcast(server ensemble.ServerID, epoch wire.Epoch) {
	if epoch > c.latest {
		c.latest = epoch
		c.began[epoch] = c.delivered[server]
	}
}
