package check

import (
	"fmt"

	"bellwether/internal/ensemble"
	"bellwether/internal/peerwire"
	"bellwether/wire"
)

// startsAnew returns the server of a Restarted or Rebuilt observation. After it, the server delivers from
// another place in the history than before.
func startsAnew(o any) ensemble.ServerID {
	if e, ok := o.(Rebuilt); ok {
		return e.Server
	}
	return o.(Restarted).Server
}

// totalOrder checks that servers deliver in the same order, which is that of the zxids.
type totalOrder struct {
	last map[ensemble.ServerID]wire.Zxid
}

func newTotalOrder() *totalOrder { return &totalOrder{map[ensemble.ServerID]wire.Zxid{}} }

func (*totalOrder) Name() string { return "TotalOrder" }

func (c *totalOrder) See(o any) string {
	switch e := o.(type) {
	case Restarted, Rebuilt:
		delete(c.last, startsAnew(e))
	case Applies:
		if last, ok := c.last[e.Server]; ok && e.Txn.Zxid <= last {
			return fmt.Sprintf("server %d delivers %v behind %v", e.Server, e.Txn.Zxid, last)
		}
		c.last[e.Server] = e.Txn.Zxid
	}
	return ""
}

// localPrimaryOrder checks that what one leader broadcasts is delivered in the order of its
// broadcasts, without omissions.
type localPrimaryOrder struct {
	last map[ensemble.ServerID]wire.Zxid
}

func newLocalPrimaryOrder() *localPrimaryOrder {
	return &localPrimaryOrder{map[ensemble.ServerID]wire.Zxid{}}
}

func (*localPrimaryOrder) Name() string { return "LocalPrimaryOrder" }

func (c *localPrimaryOrder) See(o any) string {
	switch e := o.(type) {
	case Restarted, Rebuilt:
		delete(c.last, startsAnew(e))
	case Stands:
		c.last[e.Server] = max(c.last[e.Server], e.Zxid)
	case Applies:
		last, ok := c.last[e.Server]
		if z := e.Txn.Zxid; ok && last.Epoch() == z.Epoch() && z != last+1 || ok && last.Epoch() != z.Epoch() && z.Counter() != 1 {
			return fmt.Sprintf("server %d delivers %v behind %v", e.Server, z, last)
		}
		c.last[e.Server] = e.Txn.Zxid
	}
	return ""
}

// globalPrimaryOrder checks that broadcasts of a leader of an earlier epoch are delivered
// before those of a leader of a later one.
type globalPrimaryOrder struct {
	epoch map[ensemble.ServerID]wire.Epoch
}

func newGlobalPrimaryOrder() *globalPrimaryOrder {
	return &globalPrimaryOrder{map[ensemble.ServerID]wire.Epoch{}}
}

func (*globalPrimaryOrder) Name() string { return "GlobalPrimaryOrder" }

func (c *globalPrimaryOrder) See(o any) string {
	switch e := o.(type) {
	case Restarted, Rebuilt:
		delete(c.epoch, startsAnew(e))
	case Applies:
		if now := e.Txn.Zxid.Epoch(); now < c.epoch[e.Server] {
			return fmt.Sprintf("server %d delivers %v after transactions of epoch %d", e.Server, e.Txn.Zxid, c.epoch[e.Server])
		}
		c.epoch[e.Server] = e.Txn.Zxid.Epoch()
	}
	return ""
}

// primaryIntegrity checks that, before a leader broadcasts, it has delivered everything of
// earlier epochs that any server ever delivers.
type primaryIntegrity struct {
	delivered map[ensemble.ServerID]wire.Zxid
	began     map[wire.Epoch]wire.Zxid // what the leader of an epoch had delivered when it first broadcast
	latest    wire.Epoch
}

func newPrimaryIntegrity() *primaryIntegrity {
	return &primaryIntegrity{delivered: map[ensemble.ServerID]wire.Zxid{}, began: map[wire.Epoch]wire.Zxid{}}
}

func (*primaryIntegrity) Name() string { return "PrimaryIntegrity" }

func (c *primaryIntegrity) See(o any) string {
	switch e := o.(type) {
	case Stands:
		c.delivered[e.Server] = e.Zxid
	case Promised: // in the middle of a batch a leader proposes before it logs
		if !e.ByLearner && e.Packet.Type == peerwire.PacketProposal {
			c.broadcast(e.Server, e.Packet.Zxid.Epoch())
		}
	case Ordered:
		for _, t := range e.Duty.Append {
			c.broadcast(e.Server, t.Zxid.Epoch())
		}
	case Committed:
		if z := e.Txn.Zxid; z.Epoch() < c.latest && z > c.began[c.latest] {
			return fmt.Sprintf("%v is delivered, but the leader of epoch %d began to broadcast at %v", z, c.latest, c.began[c.latest])
		}
	}
	return ""
}

// broadcast records that a server has logged or proposed something of an epoch.
func (c *primaryIntegrity) broadcast(server ensemble.ServerID, epoch wire.Epoch) {
	if epoch > c.latest {
		c.latest = epoch
		c.began[epoch] = c.delivered[server]
	}
}
