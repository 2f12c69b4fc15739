package sim

import (
	"slices"

	"bellwether/internal/peerwire"
	"bellwether/internal/replica"
	"bellwether/internal/zab"
	"bellwether/wire"
)

// This file makes some batches long, as a batch is that ends a session with very many
// ephemerals or carries out a very large multi. Time passes in the middle of the batch,
// between two events or two effects. Meanwhile the rest of the simulation goes on: others
// send, the disk answers, the power fails. Results of earlier events are not handed out
// yet, and later events get the time at which the batch began. The server does what
// internal/server does when the tree yields (beat).

// busyIn is the number of batches of which one takes long, on average.
const busyIn = 160

// drawBusy draws Options.Busy from the seed, unless it is set. It uses a random source of
// its own, so that other draws do not change.
func (o *Options) drawBusy() {
	if yes := (&random{o.Seed ^ 0xb0551}).chance(60); o.Busy == 0 {
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
	if v.sim.opt.Busy < 0 || v.sim.calm || v.sim.random.below(busyIn) != 0 {
		return 0
	}
	return int(v.sim.random.between(1, 4))
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
	long := d.between(millisecond, 100*millisecond)
	switch n := d.below(10); {
	case v.longRequest.long > 0:
		long, v.longRequest = v.longRequest.long, longRequest{}
	case n < 3:
		long = d.between(100*millisecond, second)
	case n == 3:
		long = d.between(second, 4*second)
	}
	v.stayBusy(long, rest)
	return true
}

func (c longRequest) is(e replica.Event) bool {
	q, ok := e.(*replica.Request)
	return ok && q.Op == c.op
}

// stayBusy lets a batch take long µs more and then calls rest. The work yields every now
// and then, and ends early once the faults have ended.
func (v *server) stayBusy(long int64, rest func()) {
	slice := min(long, v.sim.random.between(millisecond, 120*millisecond))
	v.later(slice, func() {
		v.beat()
		if long > slice && !v.sim.calm {
			v.stayBusy(long-slice, rest)
		} else {
			rest()
		}
	})
}

// beat sends the heartbeats that are due in the middle of a batch, or answers those that
// have arrived.
func (v *server) beat() {
	now := v.clock.time(v.sim.now)
	arrived := v.pingsArrived()
	if now.Mono < v.nextBeat && arrived.Pings == 0 {
		return
	}
	send, _, next := v.replica.Beat(now, arrived)
	v.nextBeat = next
	if !slices.ContainsFunc(send, isPing) {
		return
	}
	if !v.leads() {
		v.sim.reach(situationBeatAnswered)
		v.send(send)
		return
	}
	v.sim.reach(situationBeat)
	if !isPing(send[0]) {
		v.sim.reach(situationBeatBehind)
	}
	if now.Mono-v.at.Mono >= 1000 {
		v.sim.reach(situationBeatLong)
	}
	v.send(send)
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
