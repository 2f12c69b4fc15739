package sim

import (
	"slices"

	"bellwether/internal/peerwire"
	"bellwether/internal/replica"
	"bellwether/internal/sim/machine"
	"bellwether/internal/zab"
	"bellwether/wire"
)

// This file makes some batches long. A real batch is long if it ends a session with very
// many ephemerals or carries out a very large multi. Time passes in the middle of the batch,
// between two events or two effects. Meanwhile the rest of the simulation goes on: others
// send, the disk answers, the power fails. Results of earlier events are not handed out
// yet, and later events get the time at which the batch began. The server does what
// internal/server does when the tree yields (heartbeat).

// busyIn is the number of batches of which one takes long, on average.
const busyIn = 160

// drawBusy draws Options.Busy from the seed, unless it is set. It uses a random source of
// its own, so that other draws do not change.
func (o *Options) drawBusy() {
	if yes := machine.NewRandom(o.Seed ^ 0xb0551).Chance(60); o.Busy == 0 {
		o.Busy = -1
		if yes {
			o.Busy = 1
		}
	}
}

// longRequest is an operation that a scenario makes slow: the batch that contains it takes
// long µs more.
type longRequest struct {
	op   wire.OpCode
	long int64
}

// drawBusyAfter draws after how many events or effects a batch takes long; 0: it does not.
func (v *server) drawBusyAfter(events []replica.Event) int {
	if v.longRequest.long > 0 && slices.ContainsFunc(events, v.longRequest.is) {
		return len(events) + 1
	}
	if v.standsStill > 0 && !v.sim.calm {
		v.longRequest.long, v.standsStill = v.standsStill, 0
		return len(events) + 1
	}
	if v.sim.opt.Busy < 0 || v.sim.calm || v.sim.random.Below(busyIn) != 0 {
		return 0
	}
	return int(v.sim.random.Between(1, 4))
}

// getsBusy reports whether the batch takes long at this point. If so, it calls rest when
// that time is over.
func (v *server) getsBusy(rest func()) bool {
	if v.busyAfter == 0 {
		return false
	}
	if v.busyAfter--; v.busyAfter > 0 {
		return false
	}
	d := v.sim.random
	long := d.Between(machine.Millisecond, 100*machine.Millisecond)
	switch n := d.Below(10); {
	case v.longRequest.long > 0:
		long, v.longRequest = v.longRequest.long, longRequest{}
	case n < 3:
		long = d.Between(100*machine.Millisecond, machine.Second)
	case n == 3:
		long = d.Between(machine.Second, 4*machine.Second)
	}
	v.stayBusy(long, rest)
	return true
}

func (c longRequest) is(e replica.Event) bool {
	q, ok := e.(*replica.Request)
	return ok && q.Op == c.op
}

// stayBusy makes a batch take a further time, long (in µs), and then calls rest. During this
// time the batch sends heartbeats now and then. It ends early once the faults have ended.
func (v *server) stayBusy(long int64, rest func()) {
	slice := min(long, v.sim.random.Between(machine.Millisecond, 120*machine.Millisecond))
	v.later(slice, func() {
		v.heartbeat()
		if long > slice && !v.sim.calm {
			v.stayBusy(long-slice, rest)
		} else {
			rest()
		}
	})
}

// heartbeat sends the heartbeats that are due in the middle of a batch, or answers those that
// have arrived.
func (v *server) heartbeat() {
	now := v.Clock.Time(v.sim.now)
	arrived := v.pingsArrived()
	if now.Mono < v.nextHeartbeat && arrived.Pings == 0 {
		return
	}
	send, _, next := v.replica.Heartbeat(now, arrived)
	v.nextHeartbeat = next
	v.send(send)
	switch {
	case !slices.ContainsFunc(send, isPing):
		return
	case !v.leads():
		v.sim.reach(situationHeartbeatAnswered)
		return
	case !isPing(send[0]):
		v.sim.reach(situationHeartbeatBehind)
	}
	v.sim.reach(situationHeartbeat)
	if now.Mono-v.at.Mono >= 1000 {
		v.sim.reach(situationHeartbeatLong)
	}
}

// pingsArrived counts the leader's pings that wait for the next batch.
func (v *server) pingsArrived() (a zab.Arrived) {
	for _, e := range v.inbox {
		z, _ := e.(replica.Zab)
		if p, ok := z.Event.(zab.Received); ok && p.Link == v.linked && p.Packet.Type == peerwire.PacketPing {
			a.Pings++
		}
	}
	a.Link = v.linked
	return a
}

func isPing(m zab.Message) bool { return m.Packet.Type == peerwire.PacketPing }
