package sim

import (
	"fmt"
	"strings"
	"testing"
)

// entriesMin is how many entries into the barrier each run of the test must reach.
const entriesMin = 10_000

// gateOptions returns options for many rounds of a double barrier. Members are killed,
// stopped and cut off, and sometimes a server is.
func gateOptions(r Recipe, seed uint64) Options {
	return Options{
		Seed: seed, Events: 60_000, Recipe: r, TermMS: 10,
		Voters: 3, Observers: -1, Clients: -1, Candidates: 4, TickMS: 200,
	}
}

// TestDoubleBarriers lets members enter a double barrier, leave it and crash, many times.
// It checks that no member is let in before enough are there, that none is let out before
// the round is over, and that in the end nothing stays.
func TestDoubleBarriers(t *testing.T) { throughTheGate(t, DoubleBarrier, entriesMin) }

// TestDoubleBarriersOfKazoo checks the same for kazoo's variant, in which the first member
// to leave removes the ready znode, and a round begins only when the last one is over.
func TestDoubleBarriersOfKazoo(t *testing.T) { throughTheGate(t, KazooBarrier, entriesMin/10) }

func throughTheGate(t *testing.T, r Recipe, least int) {
	n, sizes := 0, map[int]int{}
	for seed := uint64(0); n < least; seed++ {
		o := gateOptions(r, seed+1)
		o.Leases = 1 + int(seed%3)
		s := New(o)
		s.finish()
		if s.failed != nil {
			t.Fatalf("%v\n%s", s.failed, strings.Join(s.failed.Trace, "\n"))
		}
		n += s.entered
		sizes[s.gateSize()] += s.entered
	}
	t.Logf("%d entries, by size: %v", n, sizes)
	for size := 2; size <= 4; size++ {
		if sizes[size] == 0 {
			t.Errorf("no barrier for %d", size)
		}
	}
}

// atTheGate returns the members of a barrier of size two.
func (s *scene) atTheGate(n int) (all []*barrierMember) {
	s.opt.Recipe, s.opt.Leases = DoubleBarrier, 1
	for i := range n {
		c := s.scripted(nil)
		s.cast(c, i)
		all = append(all, c.player.(*barrierMember))
	}
	return all
}

// TestDoubleBarrierCrashAtEveryStep crashes a member at every step of its way in and out.
// It checks that the others still enter and leave, and so does the member that comes back.
func TestDoubleBarrierCrashAtEveryStep(t *testing.T) {
	const most = 40
	for members := 2; members <= 3; members++ {
		for at := 1; at <= most; at++ {
			s := newScene(t, Options{Seed: uint64(at)})
			all := s.atTheGate(members)
			all[0].crashAt = at
			s.until(fmt.Sprintf("step %d", at), 60*second, func() bool { return all[0].points > at })
			s.calm = true
			s.endRounds(recipeBound)
			if err := s.Failed(); err != nil {
				t.Fatalf("%d members, a crash at step %d: %v\n%s", members, at, err, strings.Join(s.trace.lines(), "\n"))
			}
		}
	}
}

// TestDoubleBarrierRemnant checks that what a dead group of members left behind lets nobody
// in.
func TestDoubleBarrierRemnant(t *testing.T) {
	s := newScene(t, Options{Seed: 1})
	all := s.atTheGate(2)
	s.until("both are in", 60*second, func() bool { return all[0].inside && all[1].inside })
	for _, g := range all {
		g.c.only = s.servers[0]
		g.c.crash()
	}
	all[1].c.silent = true
	s.until("their sessions have ended, and the first comes back", 20*second, func() bool {
		return all[0].m != nil && len(s.atGate()) == 1 && s.atGate()[0] == all[0].name
	})
	s.RunFor(5 * second)
	if all[0].inside {
		t.Error("the first is let in alone")
	}
	all[1].c.silent = false
	all[1].c.connect()
	s.until("both are in again", 20*second, func() bool { return all[0].inside && all[1].inside })
}

// TestDoubleBarrierOverRollOvers kills a member while the traffic of others uses up one
// epoch after the other, each in less than the timeout of the member's session. It checks
// that the member's znode still goes once the others send no requests, and that a new round
// begins and ends.
func TestDoubleBarrierOverRollOvers(t *testing.T) {
	s := New(Options{Seed: 1, Recipe: DoubleBarrier, Voters: 3, Observers: -1, Compatible: -1, KeepClients: 1, Moves: -1,
		Clients: 6, Candidates: 3, Leases: 3, TickMS: 1000, ThinkMS: 20, CounterMax: 55})
	g := s.barrierMembers()[0]
	for !g.inside && s.step() {
	}
	g.c.crash()
	s.recover()
	if s.failed != nil {
		t.Fatalf("%v\n%s", s.failed, strings.Join(s.failed.Trace, "\n"))
	}
	if s.reached[situationRollOver] == 0 {
		t.Error("no epoch was used up")
	}
}
