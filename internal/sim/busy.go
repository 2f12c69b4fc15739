package sim

import (
	"slices"

	"bellwether/internal/peerwire"
	"bellwether/internal/replica"
	"bellwether/internal/zab"
	"bellwether/wire"
)

// A batch can take long: it holds the end of a session with very many ephemerals,
// or a multi of very many operations. Time passes in the middle of it, between two
// events or two effects, while the rest of the simulation goes on: others send,
// the disk answers, the power fails. What has come of the events before is not
// handed out yet, the time of the events behind stays that of the batch, and the
// server does what internal/server does when the tree yields (beat).

// busyIn is how many batches there are for one that takes long.
const busyIn = 160

// drawBusy lets the seed decide, beside the random source of everything else.
func (o *Options) drawBusy() {
	if yes := (&random{o.Seed ^ 0xb0551}).chance(60); o.Busy == 0 {
		o.Busy = -1
		if yes {
			o.Busy = 1
		}
	}
}

// longRequest is a request that takes long, for scenarios: behind it its batch takes so
// many µs.
type longRequest struct {
	op   wire.OpCode
	long int64
}

// drawBusyAfter decides whether a batch takes long, and where.
func (v *server) drawBusyAfter(events []replica.Event) int {
	if v.longRequest.long > 0 && slices.ContainsFunc(events, v.longRequest.is) {
		return len(events) + 1
	}
	if v.sim.opt.Busy < 0 || v.sim.calm || v.sim.random.below(busyIn) != 0 {
		return 0
	}
	return int(v.sim.random.between(1, 4))
}

// getsBusy reports whether the batch takes long just now, and does what is left when
// that is over.
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

// stayBusy lets a batch take so much longer, but not once all is to be well. The work
// yields every now and then.
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

// pingsArrived counts the pings of a leader that wait for the next batch.
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
