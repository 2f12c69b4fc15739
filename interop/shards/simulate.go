package main

import (
	"container/heap"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"
)

// latencies are those of one kind of operation.
type latencies []time.Duration

// String returns the median and the 99th percentile; a dash if there are none.
func (l latencies) String() string {
	if len(l) == 0 {
		return "–"
	}
	return fmt.Sprintf("%s, %s ms", milli(l.at(0.5)), milli(l.at(0.99)))
}

func milli(d time.Duration) string { return fmt.Sprintf("%.1f", float64(d)/float64(time.Millisecond)) }

// at returns a percentile, with 1 for the longest.
func (l latencies) at(q float64) time.Duration {
	sorted := slices.Sorted(slices.Values(l))
	return sorted[min(len(sorted)-1, int(q*float64(len(sorted))))]
}

// outcome holds the latencies of a simulation.
type outcome struct{ reads, writes, across latencies }

// world is a simulation: a clock, and what is to happen.
type world struct {
	c      constants
	l      layout
	now    time.Duration
	events events
	random *rand.Rand
	groups []*group
	out    outcome
}

// group is one ensemble. The first server leads.
type group struct{ servers []*machine }

// machine is one server: cores that serve one operation after the other, and a disk.
type machine struct {
	cores []time.Duration // until when each one is busy; the first one carries out the writes
	disk  disk
}

// disk makes all transactions durable together that wait while it is busy.
type disk struct {
	busy    bool
	waiting []func()
}

// simulate runs n operations that arrive at random times at a rate, and returns how long they took.
func simulate(c constants, l layout, writes, perSecond float64, n int, seed uint64) outcome {
	return newWorld(c, l, seed).run(writes, perSecond, n)
}

// newWorld returns a simulation in which nothing has happened.
func newWorld(c constants, l layout, seed uint64) *world {
	w := &world{c: c, l: l, random: rand.New(rand.NewPCG(seed, 0))}
	for range l.ensembles {
		g := &group{}
		for range l.voters + l.observers {
			g.servers = append(g.servers, &machine{cores: make([]time.Duration, c.cores)})
		}
		w.groups = append(w.groups, g)
	}
	return w
}

// run lets n operations arrive, and everything happen that follows.
func (w *world) run(writes, perSecond float64, n int) outcome {
	at := time.Duration(0)
	for range n {
		at += time.Duration(w.random.ExpFloat64() / perSecond * float64(time.Second))
		w.at(at, w.operation(writes))
	}
	for w.events.Len() > 0 {
		e := heap.Pop(&w.events).(event)
		w.now = e.at
		e.f()
	}
	return w.out
}

// operation returns a random operation, which begins when it is called. It begins at the client.
func (w *world) operation(writes float64) func() {
	isWrite, isAcross := w.random.Float64() < writes, w.random.Float64() < w.l.across
	g, at := w.random.IntN(len(w.groups)), w.random.IntN(w.l.voters+w.l.observers)
	other := w.groups[(g+1)%len(w.groups)]
	return func() {
		began := w.now
		switch {
		case isWrite && isAcross:
			both := []*group{w.groups[g], other}
			w.together(both, at, func() { w.together(both, at, func() { w.out.across = append(w.out.across, w.now-began) }) })
		case isWrite:
			w.write(w.groups[g], at, func() { w.out.writes = append(w.out.writes, w.now-began) })
		default:
			w.read(w.groups[g].idlest(), func() { w.out.reads = append(w.out.reads, w.now-began) })
		}
	}
}

// together carries out one phase of a write over several ensembles.
func (w *world) together(all []*group, at int, then func()) {
	left := len(all)
	for _, g := range all {
		w.write(g, at, func() {
			if left--; left == 0 {
				then()
			}
		})
	}
}

// idlest returns the server with a core that is free first: clients go where the servers are not busy.
func (g *group) idlest() *machine {
	return slices.MinFunc(g.servers, func(a, b *machine) int { return int(slices.Min(a.cores) - slices.Min(b.cores)) })
}

// read asks one server.
func (w *world) read(m *machine, then func()) {
	w.after(w.c.network, func() {
		core := 0
		for i, until := range m.cores {
			if until < m.cores[core] {
				core = i
			}
		}
		w.at(w.use(&m.cores[core], w.c.read), func() { w.after(w.c.network, then) })
	})
}

// use occupies a core for a time as soon as it is free, and returns until when.
func (w *world) use(core *time.Duration, d time.Duration) time.Duration {
	*core = max(*core, w.now) + d
	return *core
}

// write sends a write to the server of a client, which passes it on to the leader if it does not lead. It is answered
// when a majority of the voters has it on disk.
func (w *world) write(g *group, at int, then func()) {
	way := w.c.network
	if at != 0 {
		way *= 2
	}
	leader := g.servers[0]
	w.after(way, func() {
		w.at(w.use(&leader.cores[0], w.c.leaderCost(w.l)), func() {
			acks := 0
			ack := func() {
				if acks++; acks == w.l.voters/2+1 {
					w.after(way, then)
				}
			}
			w.store(&leader.disk, ack)
			for i, m := range g.servers[1:] {
				w.after(w.c.network, func() { w.learn(m, i+1 < w.l.voters, ack) })
			}
		})
	})
}

// learn carries out a write on a learner.
func (w *world) learn(m *machine, votes bool, ack func()) {
	if !votes {
		w.use(&m.cores[0], w.c.observer)
		return
	}
	w.at(w.use(&m.cores[0], w.c.followerCost(w.l)), func() {
		w.store(&m.disk, func() { w.after(w.c.network, ack) })
	})
}

// store calls then when a transaction is durable.
func (w *world) store(d *disk, then func()) {
	if d.waiting = append(d.waiting, then); !d.busy {
		w.fsync(d)
	}
}

// fsync makes durable what waits.
func (w *world) fsync(d *disk) {
	batch := d.waiting
	d.waiting, d.busy = nil, true
	w.after(w.c.fsync+time.Duration(len(batch))*w.c.fsyncEach, func() {
		d.busy = false
		if len(d.waiting) > 0 {
			w.fsync(d)
		}
		for _, then := range batch {
			then()
		}
	})
}

// event is something that happens at a time.
type event struct {
	at    time.Duration
	order int // of two events at the same time the first one scheduled is first
	f     func()
}

func (w *world) after(d time.Duration, f func()) { w.at(w.now+d, f) }

func (w *world) at(t time.Duration, f func()) {
	w.events.order++
	heap.Push(&w.events, event{t, w.events.order, f})
}

// events is a heap, earliest first.
type events struct {
	all   []event
	order int
}

func (e *events) Len() int { return len(e.all) }
func (e *events) Less(i, j int) bool {
	a, b := e.all[i], e.all[j]
	return a.at < b.at || a.at == b.at && a.order < b.order
}
func (e *events) Swap(i, j int) { e.all[i], e.all[j] = e.all[j], e.all[i] }
func (e *events) Push(x any)    { e.all = append(e.all, x.(event)) }
func (e *events) Pop() any {
	last := e.all[len(e.all)-1]
	e.all = e.all[:len(e.all)-1]
	return last
}
