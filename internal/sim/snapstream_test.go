package sim

import (
	"testing"

	"bellwether/internal/sim/machine"
)

// needsSnapshot returns an ensemble of three in which a follower is down that needs a
// snapshot, and a client that writes all the time.
func needsSnapshot(t *testing.T, seed uint64) (*scene, *server) {
	s := newScene(t, Options{Seed: seed, Voters: 3, KeepClients: 1})
	v := s.other()
	s.write(s.leader(), 40)
	s.Do(Act{Kind: Kill, A: int(v.id)})
	s.Do(Act{Kind: Wipe, A: int(v.id)})
	c := s.client(s.leader())
	s.carried(c.Ask(c.Creation("/load")))
	var load func()
	load = func() {
		if c.Attached && len(c.Calls) < 10 {
			c.Ask(c.Write("/load"))
		}
		if s.now < 60*machine.Second {
			s.after(2*machine.Millisecond, load)
		}
	}
	load()
	return s, v
}

// streaming waits until some pieces of a snapshot have arrived at a server.
func (s *scene) streaming(v *server) {
	s.t.Helper()
	s.until("a part of a snapshot arrives", 10*machine.Second, func() bool {
		for _, l := range v.links {
			if l.ends[0] == v && l.pieces >= 2 {
				return true
			}
		}
		return false
	})
}

// TestSnapshotOfAChangingTree checks that a learner has the same tree as the others after a
// snapshot that was sent while transactions were applied, and again after a restart.
func TestSnapshotOfAChangingTree(t *testing.T) {
	changed := 0
	for seed := uint64(1); seed <= 15; seed++ {
		s, v := needsSnapshot(t, seed)
		s.Do(Act{Kind: SlowSnapshot, A: int(s.leader().id), Value: 20 * machine.Millisecond})
		s.Do(Act{Kind: Start, A: int(v.id)})
		s.until("the server serves", 20*machine.Second, func() bool { return v.standing.Serving })
		s.Do(Act{Kind: PowerOff, A: int(v.id)})
		s.whole()
		changed += s.reached[situationSnapOfChanges]
	}
	if changed < 5 {
		t.Errorf("%d snapshots were read while the tree changed", changed)
	}
}

// TestSnapshotCutInTheMiddle checks that a learner installs nothing of a snapshot whose link
// ends in the middle, for any reason.
func TestSnapshotCutInTheMiddle(t *testing.T) {
	for name, cut := range map[string]func(s *scene, v *server){
		"link":    func(s *scene, v *server) { s.Do(Act{Kind: Reset, A: int(s.leader().id), B: int(v.id)}) },
		"leader":  func(s *scene, v *server) { s.Do(Act{Kind: Kill, A: int(s.leader().id)}) },
		"learner": func(s *scene, v *server) { s.Do(Act{Kind: PowerOff, A: int(v.id)}) },
	} {
		t.Run(name, func(t *testing.T) {
			for seed := uint64(1); seed <= 5; seed++ {
				s, v := needsSnapshot(t, seed)
				s.Do(Act{Kind: SlowSnapshot, A: int(s.leader().id), Value: 50 * machine.Millisecond})
				s.Do(Act{Kind: Start, A: int(v.id)})
				s.streaming(v)
				if z := v.durable(); z > 0 {
					t.Errorf("seed %d: %v is on the disk before the snapshot has arrived", seed, z)
				}
				cut(s, v)
				s.RunFor(3 * machine.Second)
				if name != "learner" && s.reached[situationSnapCut] == 0 {
					t.Errorf("seed %d: no snapshot was cut in the middle", seed)
				}
				s.whole()
			}
		})
	}
}

// TestSlowSnapshotIsFinished checks that a learner waits for a snapshot that takes longer
// than syncLimit, as long as pieces of it arrive.
func TestSlowSnapshotIsFinished(t *testing.T) {
	for seed := uint64(1); seed <= 5; seed++ {
		s, v := needsSnapshot(t, seed)
		s.Do(Act{Kind: SlowSnapshot, A: int(s.leader().id), Value: 1200 * machine.Millisecond})
		s.Do(Act{Kind: Start, A: int(v.id)})
		s.until("the server serves", 30*machine.Second, func() bool { return v.standing.Serving })
		if n := s.reached[situationSnapSlow]; n != 1 {
			t.Errorf("seed %d: %d slow snapshots, want one", seed, n)
		}
		s.whole()
	}
}
