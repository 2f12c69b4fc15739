package sim

import "bellwether/internal/sim/machine"
import "testing"

// byScenario are the situations that random faults bring about too seldom. A scenario is
// played again and again until the situation occurs.
var byScenario = map[situation]func(t *testing.T, seed uint64) *scene{
	situationOldLink:     relinked,
	situationMovedHeld:   movedHeld,
	situationAckedLost:   lostByALiar,
	situationDiskLost:    lostDisks,
	situationWaits:       lostDisks,
	situationRotFallback: rottenSnapshot,
	situationRotRefused:  rottenLog,
	situationUnreadable:  spoiltFile,
	situationRotNotSent:  rottenLogOfALeader,

	situationLossRefused:   partOfALog,
	situationHole:          lostSnapshot,
	situationHoleFilled:    lostSnapshot,
	situationEpochDecayed:  emptyEpoch,
	situationEpochTooLarge: tooLargeEpoch,
	situationLeaderJumped:  jumpedLeader,
}

// scenariosMax is how often a scenario is played at most.
const scenariosMax = 300

func TestSituationsOfScenarios(t *testing.T) {
	for x, play := range byScenario {
		t.Run(situationNames[x], func(t *testing.T) {
			for seed := uint64(1); ; seed++ {
				s := play(t, seed)
				if s.failed != nil {
					t.Fatal(s.failed)
				}
				if s.reached[x] > 0 {
					t.Logf("at seed %d", seed)
					return
				}
				if seed == scenariosMax {
					t.Fatalf("%d seeds have not reached it", seed)
				}
			}
		})
	}
}

// relinked cuts a follower with writes under way off for almost as long as its timeout, and
// stops its leader for a moment. TCP resumes after the follower has given up and has linked
// again. The leader then reads the rest of the old link.
func relinked(t *testing.T, seed uint64) *scene {
	s := newScene(t, Options{Seed: seed, Voters: 3, KeepClients: 1})
	f, l := s.other(), s.leader()
	c := s.client(f)
	s.carried(c.Ask(c.Creation("/a")))
	s.Do(Act{Kind: Cut, A: int(f.id), B: int(l.id)})
	for range 3 {
		c.Ask(c.Write("/a"))
	}
	s.RunFor(s.random.Between(700*machine.Millisecond, 1000*machine.Millisecond))
	s.Do(Act{Kind: Join, A: int(f.id), B: int(l.id)})
	if last := s.lastLink; s.RunUntil(func() bool { return s.lastLink > last }, 2*machine.Second) {
		s.Do(Act{Kind: Pause, A: int(l.id)}) // both links wait for the leader to go on
		s.RunFor(s.random.Below(machine.Second))
		s.Do(Act{Kind: Resume, A: int(l.id)})
	}
	s.RunFor(3 * machine.Second)
	s.until("all serve again", 20*machine.Second, func() bool { return s.allServe() == "" })
	return s
}

// movedHeld cuts off a follower that holds a write of a client. The client's connection
// ends, and the client goes to another server, which the follower does not learn. When the
// follower is back, it holds a write of a session that is no longer its own.
func movedHeld(t *testing.T, seed uint64) *scene {
	s := newScene(t, Options{Seed: seed, Voters: 3, KeepClients: 1})
	f := s.other()
	c := s.client(f)
	s.carried(c.Ask(c.Creation("/a")))
	s.cut(f)
	s.until("the follower has no leader", 5*machine.Second, func() bool { return !f.standing.Serving })
	if c.Attached {
		c.Ask(c.Write("/a"))
	}
	s.RunFor(20 * machine.Millisecond)
	c.Only = s.leader().id
	s.Do(Act{Kind: Reset, A: int(f.id), B: -c.ID, Value: 3 * machine.Second})
	s.RunFor(s.random.Between(100*machine.Millisecond, 400*machine.Millisecond))
	s.Do(Act{Kind: Heal, A: 1})
	s.until("all serve again", 20*machine.Second, func() bool { return s.allServe() == "" })
	s.carried(c.Ask(c.Write("/a")))
	return s
}
