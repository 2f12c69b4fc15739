package sim

import (
	"fmt"
	"strings"
	"testing"

	"bellwether/internal/ensemble"
	"bellwether/internal/replica"
	"bellwether/internal/sim/machine"
	"bellwether/internal/zab"
)

// preferringSim starts an ensemble with clients that write.
func preferringSim(t *testing.T, o Options, fitMS int64, priorities map[ensemble.ServerID]int) *Sim {
	t.Helper()
	o.Observers, o.Candidates, o.Clients, o.KeepClients, o.Busy, o.CounterMax = -1, -1, 3, 1, -1, counterAmple
	o.Groups, o.LocalSessions, o.ThinkMS = -1, -1, 1000
	s := New(o)
	s.preferences.priorities, s.preferences.fitMS = priorities, fitMS
	if !s.RunUntil(func() bool { return s.allServe() == "" }, 20*machine.Second) {
		t.Fatalf("no start: %v", s.Failed())
	}
	return s
}

// TestPreferredServerLeads checks that the server with the highest priority comes to lead, after a start
// and after each of its ends, also with ZooKeeper's servers in the ensemble, and that no other change
// follows.
func TestPreferredServerLeads(t *testing.T) {
	for seed := range uint64(12) {
		o := Options{Seed: seed + 1, Voters: 3 + int(seed%3), Compatible: -1, TickMS: 500}
		if seed%4 == 3 {
			o.Compatible = 1
		}
		s := preferringSim(t, o, 1000, nil)
		p := map[ensemble.ServerID]int{1: 1, 3: 2}
		if o.Compatible > 0 {
			p = map[ensemble.ServerID]int{s.native().id: 1}
		}
		s.preferences.priorities = p
		for range 3 {
			for _, v := range s.servers {
				v.kill()
			}
			s.RunFor(machine.Second)
			for _, v := range s.servers {
				v.start()
			}
			if o.Compatible > 0 && !s.transfers() {
				continue
			}
			if !s.RunUntil(func() bool { return s.allServe() == "" && s.preferredLeads() == "" }, 30*machine.Second) {
				t.Fatalf("seed %d: %s (%v)\n%s", o.Seed, s.preferredLeads(), s.Failed(), strings.Join(s.trace.lines(), "\n"))
			}
			before := s.reached[situationLeader]
			s.RunFor(20 * machine.Second)
			if n := s.reached[situationLeader] - before; n > 0 || s.failed != nil {
				t.Fatalf("seed %d: %d more changes of leaders, %v", o.Seed, n, s.Failed())
			}
		}
	}
}

// native returns a server that is not one of ZooKeeper's.
func (s *Sim) native() *server {
	for _, v := range s.servers {
		if !v.compatible {
			return v
		}
	}
	return nil
}

// transfers waits for a leader and reports whether it knows leadership transfers.
func (s *Sim) transfers() bool {
	s.RunUntil(func() bool { return s.allServe() == "" }, 20*machine.Second)
	l := s.leader()
	return l != nil && !l.compatible
}

// flaps are faults of one server that come again and again and last longer than the others tolerate.
var flaps = map[string]func(s *Sim, v *server){
	"hung disk": func(s *Sim, v *server) {
		v.hangDisk()
		s.RunFor(s.random.Between(1500, 4000) * machine.Millisecond)
		v.freeDisk()
	},
	"slow disk": func(s *Sim, v *server) {
		s.Do(Act{Kind: SlowDisk, A: int(v.id), Value: 900 * machine.Millisecond})
		s.RunFor(s.random.Between(1500, 4000) * machine.Millisecond)
		s.Do(Act{Kind: SlowDisk, A: int(v.id)})
	},
	"full disk": func(s *Sim, v *server) {
		v.space = 0
		v.restore()
		s.RunFor(s.random.Between(1500, 4000) * machine.Millisecond)
		v.space = -1
		v.restore()
	},
	"unreachable server": func(s *Sim, v *server) {
		s.Do(Act{Kind: Cut, A: int(v.id)})
		s.RunFor(s.random.Between(3000, 8000) * machine.Millisecond)
		s.Do(Act{Kind: Join, A: int(v.id)})
	},
	"server that hears nothing": func(s *Sim, v *server) { s.flapLinks(v, true) },
	"server that nobody hears":  func(s *Sim, v *server) { s.flapLinks(v, false) },
	"long stopped process": func(s *Sim, v *server) {
		s.Do(Act{Kind: Pause, A: int(v.id)})
		s.RunFor(s.random.Between(3000, 8000) * machine.Millisecond)
		s.Do(Act{Kind: Resume, A: int(v.id)})
	},
	"stopped process": func(s *Sim, v *server) {
		s.Do(Act{Kind: Pause, A: int(v.id)})
		s.RunFor(s.random.Between(1500, 4000) * machine.Millisecond)
		s.Do(Act{Kind: Resume, A: int(v.id)})
	},
}

// flapLinks blocks for some seconds all links to a server, or all links from it.
func (s *Sim) flapLinks(v *server, to bool) {
	for _, o := range s.servers {
		switch {
		case o == v:
		case to:
			s.Do(Act{Kind: Block, A: int(o.id), B: int(v.id)})
		default:
			s.Do(Act{Kind: Block, A: int(v.id), B: int(o.id)})
		}
	}
	s.RunFor(s.random.Between(3000, 8000) * machine.Millisecond)
	s.Do(Act{Kind: Heal})
}

// TestSlowServerCausesOneChange checks that a server that is slow for an hour, with pauses in which it
// looks healthy, causes at most one change of leaders, whether it is preferred or not. It leads at first.
func TestSlowServerCausesOneChange(t *testing.T) {
	for name, flap := range flaps {
		for _, preferred := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, preferred %v", name, preferred), func(t *testing.T) {
				s := preferringSim(t, Options{Seed: 3, Voters: 3, Compatible: -1, TickMS: 2000}, 10_000, nil)
				slow := s.leader()
				if preferred {
					s.preferences.priorities = map[ensemble.ServerID]int{slow.id: 1}
					for _, v := range s.servers { // so that they know the priorities
						v.kill()
						v.start()
						s.RunUntil(func() bool { return s.allServe() == "" }, 20*machine.Second)
					}
					if !s.RunUntil(func() bool { return s.leader() == slow }, 30*machine.Second) {
						t.Fatalf("the preferred server does not lead (%v)", s.Failed())
					}
				}
				before, flapped := s.reached[situationLeader], 0
				for end := s.now + 3600*machine.Second; s.now < end && s.failed == nil; flapped++ {
					flap(s, slow)
					s.RunFor(s.random.Between(10, 60) * machine.Second)
				}
				if s.failed != nil {
					t.Fatal(s.failed.Report(100))
				}
				n := s.reached[situationLeader] - before
				if t.Logf("%d faults, %d changes", flapped, n); n > 1 {
					t.Errorf("%d changes of leaders", n)
				}
			})
		}
	}
}

// TestPreferenceRule makes the rule about preferred servers fail.
func TestPreferenceRule(t *testing.T) {
	for what, c := range map[string]struct {
		h     replica.Prefers
		wrong bool
	}{
		"a transfer":           {replica.Prefers{Server: 2, Priority: 1, FitMS: 2000}, false},
		"no higher priority":   {replica.Prefers{Server: 3, FitMS: 2000}, true},
		"another priority":     {replica.Prefers{Server: 2, Priority: 5, FitMS: 2000}, true},
		"too early":            {replica.Prefers{Server: 2, Priority: 1, FitMS: 999}, true},
		"too early afterwards": {replica.Prefers{Server: 2, Priority: 1, FitMS: 1999}, false},
	} {
		s := New(Options{Seed: 1, Voters: 3})
		s.preferences.priorities, s.preferences.fitMS = map[ensemble.ServerID]int{2: 1}, 1000
		v := s.server(1)
		v.recordPreference(c.h)
		if failed := s.failed != nil; failed != c.wrong {
			t.Errorf("%s: %v", what, s.Failed())
		}
		if c.wrong {
			continue
		}
		v.recordPreference(replica.Prefers{Server: 2, Priority: 1, FitMS: 1999})
		if s.failed == nil {
			t.Errorf("%s: a second one does not take twice as long", what)
		}
	}
	s := New(Options{Seed: 1, Voters: 3})
	s.preferences.priorities = map[ensemble.ServerID]int{2: 1}
	v := s.server(1)
	v.recordPreference(replica.Prefers{Server: 2, Priority: 1})
	v.recordPreference(zab.LeaderServes{})
	v.recordPreference(zab.ServesUnder{Leader: 2})
	if s.preferences.failed[attempt{1, v.life, 2}] != 0 || s.reached[situationPreferred] != 1 {
		t.Error("a transfer that succeeded counts as failed")
	}
}
