package sim

import "bellwether/internal/sim/machine"
import "testing"

// stallLong is the length of a disk stall, and stallsFor the length of a run with stalls.
const (
	stallLong = 700 * machine.Millisecond
	stallsFor = 60 * 60 * machine.Second
)

// TestStallsCauseNoElection checks that the others keep a leader whose disk stalls, because its
// loop does not wait for the disk. In an hour of writes a disk stalls for 700 ms every few
// seconds, and the only election is the one at the start.
func TestStallsCauseNoElection(t *testing.T) {
	s := New(Options{Seed: 1, Voters: 3, Observers: -1, Compatible: -1, Clients: 4, Candidates: -1, TickMS: 2000, KeepClients: 1, Busy: -1, CounterMax: 1 << 30})
	if !s.RunUntil(func() bool { return s.allServe() == "" }, 10*machine.Second) {
		t.Fatalf("no start: %v", s.Failed())
	}
	leader, epoch := s.leader(), s.leader().standing.Epoch
	stalls := 0
	for end := s.now + stallsFor; s.now < end; stalls++ {
		id := int(s.random.Below(3)) + 1
		s.Do(Act{Kind: SlowDisk, A: id, Value: stallLong})
		s.RunFor(s.random.Between(stallLong, 2*machine.Second))
		s.Do(Act{Kind: SlowDisk, A: id})
		s.RunFor(s.random.Between(0, 3*machine.Second))
		if s.failed != nil {
			t.Fatal(s.Failed())
		}
	}
	if now := s.leader(); now != leader || now.standing.Epoch != epoch {
		t.Errorf("after %d stalls server %d leads epoch %d, at first server %d led epoch %d",
			stalls, now.id, now.standing.Epoch, leader.id, epoch)
	}
	t.Logf("%d stalls, %d transactions", stalls, len(s.history.Entries))
	if n := len(s.history.Entries); n < 1000 {
		t.Errorf("no load: %d transactions", n)
	}
}
