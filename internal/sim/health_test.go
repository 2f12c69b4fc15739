package sim

import (
	"testing"

	"bellwether/internal/ensemble"
	"bellwether/internal/replica"
	"bellwether/internal/sim/machine"
)

// pauseBriefly stops a process for less than every timeout, and lets it run for a moment.
func (s *Sim) pauseBriefly(v *server) {
	s.Do(Act{Kind: Pause, A: int(v.id)})
	s.RunFor(s.random.Between(850, 950) * machine.Millisecond)
	s.Do(Act{Kind: Resume, A: int(v.id)})
	s.RunFor(s.random.Between(500, 2000) * machine.Millisecond)
}

// leaders returns how many leaders are established while do happens again and again for some time.
func (s *Sim) leaders(t *testing.T, time int64, do func()) int {
	t.Helper()
	before := s.reached[situationLeader]
	for end := s.now + time; s.now < end && s.failed == nil; {
		do()
	}
	if s.failed != nil {
		t.Fatal(s.failed.Report(100))
	}
	return s.reached[situationLeader] - before
}

// TestStumblingLeaderGivesWay stops the process of the first leader again and again, for less than
// every timeout, for an hour. That server must give way soon, and only once. If all servers are
// stopped in this way, in turn, leadership may pass on as often as there are servers.
func TestStumblingLeaderGivesWay(t *testing.T) {
	for _, all := range []bool{false, true} {
		s := preferringSim(t, Options{Seed: 3, Voters: 3, Compatible: -1, TickMS: 2000}, 10_000, nil)
		first := s.leader()
		if !all {
			for range 20 {
				s.pauseBriefly(first)
			}
			if l := s.leader(); l == nil || l == first {
				t.Errorf("server %d still leads", first.id)
			}
		}
		n := s.leaders(t, 3500*machine.Second, func() {
			for _, v := range s.servers {
				if all || v == first {
					s.pauseBriefly(v)
				}
			}
		})
		switch {
		case !all && n > 0:
			t.Errorf("%d more changes of leaders", n)
		case n > len(s.servers):
			t.Errorf("%d changes of leaders while all servers stumbled", n)
		}
	}
}

// TestLeaderWithoutRoomGivesWay lets the first leader, and then every server, have no room left for
// another log, at first while nobody writes. The first leader gives way once, although its priority is
// higher. A server without room leads if there is no other.
func TestLeaderWithoutRoomGivesWay(t *testing.T) {
	s := preferringSim(t, Options{Seed: 6, Voters: 3, Compatible: -1, TickMS: 2000}, 10_000, map[ensemble.ServerID]int{3: 1})
	s.quiet = true
	first := s.leader()
	if first.id != 3 {
		t.Fatalf("server %d leads", first.id)
	}
	first.push(replica.NoRoom{})
	if !s.RunUntil(func() bool { l := s.leader(); return l != nil && l != first && s.allServe() == "" }, 5*machine.Second) {
		t.Fatalf("server %d still leads (%v)", first.id, s.Failed())
	}
	s.quiet = false
	if n := s.leaders(t, 3500*machine.Second, func() { s.RunFor(machine.Second) }); n > 0 {
		t.Errorf("%d more changes of leaders", n)
	}
	for _, v := range s.servers {
		v.push(replica.NoRoom{})
	}
	n := s.leaders(t, 600*machine.Second, func() { s.RunFor(machine.Second) })
	if n > len(s.servers) || s.allServe() != "" {
		t.Errorf("%d changes of leaders although no server has room (%s)", n, s.allServe())
	}
}
