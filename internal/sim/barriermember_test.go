package sim

import (
	"fmt"
	"strings"
	"testing"

	"bellwether/internal/sim/client"
	"bellwether/internal/sim/machine"
)

// entriesMin is how many entries into the barrier each run of the test must reach.
const entriesMin = 10_000

// gateOptions returns options for many rounds of a double barrier. Members are killed,
// stopped and cut off, and sometimes a server is.
func gateOptions(r client.Recipe, seed uint64) Options {
	return Options{
		Seed: seed, Events: 60_000, Recipe: r, TermMS: 10,
		Voters: 3, Observers: -1, Clients: -1, Candidates: 4, TickMS: 200,
	}
}

// TestDoubleBarriers lets members enter a double barrier, leave it and crash, many times.
// It checks that no member is let in before enough members are there, that none is let out
// before the round is over, and that in the end no znode is left.
func TestDoubleBarriers(t *testing.T) { throughTheGate(t, client.DoubleBarrier, entriesMin) }

// TestDoubleBarriersOfKazoo checks what TestDoubleBarriers does for kazoo's variant, in which the
// first member to leave removes the ready znode, and a round begins only when the last one is
// over.
func TestDoubleBarriersOfKazoo(t *testing.T) { throughTheGate(t, client.KazooBarrier, entriesMin/10) }

func throughTheGate(t *testing.T, r client.Recipe, least int) {
	n, sizes := 0, map[int]int{}
	for seed := uint64(0); n < least || len(sizes) < 3; seed++ {
		o := gateOptions(r, seed+1)
		o.Leases = 1 + int(seed%3)
		s := New(o)
		s.finish()
		if s.failed != nil {
			t.Fatalf("%v\n%s", s.failed, strings.Join(s.failed.Trace, "\n"))
		}
		n += s.clients.Entered
		sizes[s.clients.GateSize()] += s.clients.Entered
	}
	t.Logf("%d entries, by size: %v", n, sizes)
	for size := 2; size <= 4; size++ {
		if sizes[size] == 0 {
			t.Errorf("no barrier for %d", size)
		}
	}
}

// atTheGate returns the members of a barrier of size two.
func (s *scene) atTheGate(n int) (all []*client.BarrierMember) {
	s.opt.Recipe, s.opt.Leases = client.DoubleBarrier, 1
	for i := range n {
		c := s.scripted(nil)
		s.clients.Cast(c, i)
		all = append(all, c.Player.(*client.BarrierMember))
	}
	return all
}

// TestDoubleBarrierCrashAtEveryStep crashes a member at every step of its way in and out.
// It checks that the others still enter and leave, and that the crashed member does so too
// when it comes back.
func TestDoubleBarrierCrashAtEveryStep(t *testing.T) {
	const most = 40
	for members := 2; members <= 3; members++ {
		for at := 1; at <= most; at++ {
			s := newScene(t, Options{Seed: uint64(at)})
			all := s.atTheGate(members)
			all[0].Client().CrashAt = at
			s.until(fmt.Sprintf("step %d", at), 60*machine.Second, func() bool { return all[0].Client().Steps > at })
			s.calm = true
			s.finishDoubleBarriers(recipeBound)
			if err := s.Failed(); err != nil {
				t.Fatalf("%d members, a crash at step %d: %v\n%s", members, at, err, strings.Join(s.trace.lines(), "\n"))
			}
		}
	}
}

// TestDoubleBarrierRemnant checks that the znodes which a dead group of members has left behind
// let no other member in.
func TestDoubleBarrierRemnant(t *testing.T) {
	s := newScene(t, Options{Seed: 1})
	all := s.atTheGate(2)
	s.until("both are in", 60*machine.Second, func() bool { return all[0].Inside && all[1].Inside })
	for _, g := range all {
		g.Client().Only = s.servers[0].id
		g.Client().Crash()
	}
	all[1].Client().Hung = true
	s.until("their sessions have ended, and the first comes back", 20*machine.Second, func() bool {
		return all[0].Entering() && len(s.clients.AtGate()) == 1 && s.clients.AtGate()[0] == all[0].Name
	})
	s.RunFor(5 * machine.Second)
	if all[0].Inside {
		t.Error("the first is let in alone")
	}
	all[1].Client().Hung = false
	all[1].Client().Connect()
	s.until("both are in again", 20*machine.Second, func() bool { return all[0].Inside && all[1].Inside })
}

// TestDoubleBarrierOverRollOvers kills a member while the traffic of others uses up one
// epoch after the other, each in less than the timeout of the member's session. It checks
// that the member's znode is still removed once the others send no requests, and that a new
// round begins and ends.
func TestDoubleBarrierOverRollOvers(t *testing.T) {
	s := New(Options{Seed: 1, Recipe: client.DoubleBarrier, Voters: 3, Observers: -1, Compatible: -1, KeepClients: 1, Moves: -1,
		Clients: 6, Candidates: 3, Leases: 3, TickMS: 1000, ThinkMS: 20, CounterMax: 55})
	g := s.clients.BarrierMembers()[0]
	for !g.Inside && s.step() {
	}
	g.Client().Crash()
	s.recover()
	if s.failed != nil {
		t.Fatalf("%v\n%s", s.failed, strings.Join(s.failed.Trace, "\n"))
	}
	if s.reached[situationRollOver] == 0 {
		t.Error("no epoch was used up")
	}
}
