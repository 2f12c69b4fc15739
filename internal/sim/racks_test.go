package sim

import (
	"fmt"
	"slices"
	"testing"

	"bellwether/internal/sim/machine"
)

// rackScene returns an ensemble of five, and the servers that stand in the first rack, 1
// and 4, and in the others. The leader is in the first rack if leads is true.
func rackScene(t *testing.T, seed uint64, leads bool) (s *scene, first, others []*server) {
	s = newScene(t, Options{Seed: seed, Voters: 5})
	first = s.inRack(1)
	others = s.without(first...)
	s.write(s.leader(), 3)
	to := s.servers[4]
	if leads {
		to = s.servers[3]
	}
	for s.leader() != to {
		s.Do(Act{Kind: TransferLeadership, A: int(s.leader().id), B: int(to.id)})
		s.RunFor(machine.Second)
		s.until("all serve", 20*machine.Second, func() bool { return s.allServe() == "" })
	}
	return s, first, others
}

// TestRackLosesPower checks that the servers of the other racks serve while a rack has no
// power, and that nothing is lost.
func TestRackLosesPower(t *testing.T) {
	for _, leads := range []bool{true, false} {
		for seed := uint64(1); seed <= 5; seed++ {
			s, first, others := rackScene(t, seed, leads)
			s.Do(Act{Kind: RackOff, A: 1})
			for _, v := range first {
				if v.up || v.On {
					t.Fatalf("server %d is on", v.id)
				}
			}
			s.until("another rack leads", 10*machine.Second, func() bool { return slices.Contains(others, s.leader()) })
			s.write(others[0], 3)
			if s.reached[situationRackOff] != 1 {
				t.Error("no rack has lost its power")
			}
			s.Do(Act{Kind: RackOn, A: 1})
			s.whole()
		}
	}
}

// TestSwitchFails checks that the servers of the other racks serve while the switch of a
// rack is out of order, and that no server behind it does.
func TestSwitchFails(t *testing.T) {
	for _, leads := range []bool{true, false} {
		for seed := uint64(1); seed <= 5; seed++ {
			s, first, others := rackScene(t, seed, leads)
			s.Do(Act{Kind: SwitchOff, A: 1})
			s.until("the others serve, and no server behind the switch does", 20*machine.Second, func() bool {
				n := 0
				for _, v := range others {
					if v.standing.Serving {
						n++
					}
				}
				return n == len(others) && !first[0].standing.Serving && !first[1].standing.Serving
			})
			s.Do(Act{Kind: SwitchOn, A: 1})
			s.write(others[0], 3)
			if s.reached[situationSwitchOff] != 1 {
				t.Error("no switch has failed")
			}
			s.whole()
		}
	}
}

// TestAllDisksAreFull checks that an ensemble whose disks are all full at once goes on as
// soon as they have room, without a restart, and has every acknowledged write.
func TestAllDisksAreFull(t *testing.T) {
	for seed := uint64(1); seed <= 5; seed++ {
		s, _, _ := rackScene(t, seed, true)
		c := s.client(nil)
		s.carried(c.Ask(c.Creation("/a")))
		lives := ""
		for _, v := range s.servers {
			lives += fmt.Sprint(v.life, " ")
		}
		for rack := 1; rack <= racks; rack++ {
			s.Do(Act{Kind: FullRack, A: rack, Value: 600})
		}
		s.until("several disks are full", 20*machine.Second, func() bool {
			if c.Attached && len(c.Calls) < 5 {
				c.Ask(c.Write("/a"))
			}
			return s.reached[situationFullTogether] > 0
		})
		s.RunFor(5 * machine.Second)
		for rack := 1; rack <= racks; rack++ {
			s.Do(Act{Kind: FullRack, A: rack, Value: -1})
		}
		s.until("all serve", 30*machine.Second, func() bool { return s.allServe() == "" })
		s.carried(c.Ask(c.Write("/a")))
		s.whole()
		again := ""
		for _, v := range s.servers {
			again += fmt.Sprint(v.life, " ")
		}
		if again != lives {
			t.Errorf("seed %d: lives were %s, are %s", seed, lives, again)
		}
	}
}
