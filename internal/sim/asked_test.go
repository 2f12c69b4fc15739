package sim

import (
	"flag"
	"slices"
	"testing"

	"bellwether/internal/sim/machine"
)

// This file tests the faults that are drawn only if an option asks for them.

var askedFor = flag.Duration("asked", 0, "how long TestAskedFaults plays fresh seeds; 0: it plays a few that are always the same")

// TestAskedFaults checks that seeds break no rule with each of these faults.
func TestAskedFaults(t *testing.T) {
	over, reached := 0, map[string]int{}
	first, seeds := fresh(t, *askedFor, 30, func(seed uint64) {
		o := Options{Seed: seed, PartLies: int(seed % 3 & 1), EpochRot: int(seed % 3 >> 1)}
		if o.PartLies+o.EpochRot == 0 {
			o.LeaderJumps = 1
		}
		r := play(t, o)
		if r.Over {
			over++
		}
		for name, n := range r.Reached {
			reached[name] += n
		}
	})
	t.Logf("%d seeds from %d on, %d of them ended early", seeds, first, over)
	for _, x := range []situation{situationLied, situationLossRefused, situationEpochDecayed, situationEpochTooLarge, situationLeaderJumped} {
		t.Logf("%6d %s", reached[situationNames[x]], situationNames[x])
	}
}

// partOfALog lets the disk of a follower lie about its logs, so that a power failure keeps some
// sectors of its log and loses others. The other servers have everything.
func partOfALog(t *testing.T, seed uint64) *scene {
	s := newScene(t, Options{Seed: seed, Voters: 3})
	v := s.other()
	s.write(s.leader(), 5)
	s.Do(Act{Kind: Lie, A: int(v.id), Value: lieLogs})
	s.write(s.leader(), 60)
	last := s.history.Last().Zxid
	s.until("all have made the writes durable", 5*machine.Second, func() bool {
		return !slices.ContainsFunc(s.servers, func(v *server) bool { return v.durable() < last })
	})
	s.Do(Act{Kind: PowerOff, A: int(v.id)})
	s.whole()
	return s
}

// TestPartOfALogIsLost checks that a server that finds a part of its log missing falls back to what
// is before that part, or refuses to start, and serves the same history as the others in the end.
func TestPartOfALogIsLost(t *testing.T) {
	fallbacks, refusals := 0, 0
	for seed := uint64(1); seed <= 20; seed++ {
		s := partOfALog(t, seed)
		if s.reached[situationSuspended] > 0 {
			t.Errorf("seed %d: the others have everything: %q", seed, s.notes)
		}
		fallbacks += s.reached[situationLied]
		refusals += s.reached[situationLossRefused]
	}
	if fallbacks == 0 || refusals == 0 {
		t.Errorf("%d fallbacks, %d refusals", fallbacks, refusals)
	}
}

// decayedEpoch lets an epoch file of a follower decay and restarts the follower.
func decayedEpoch(t *testing.T, seed uint64, how int64) (*scene, *server) {
	s := newScene(t, Options{Seed: seed, Voters: 3})
	s.write(s.leader(), 5)
	s.until("all have the writes", 5*machine.Second, func() bool { return s.allEqual() == "" })
	v := s.other()
	s.Do(Act{Kind: RotEpoch, A: int(v.id), Value: how})
	if !v.epochRotten {
		t.Fatalf("seed %d: nothing decays", seed)
	}
	s.Do(Act{Kind: PowerOff, A: int(v.id)})
	return s, v
}

func emptyEpoch(t *testing.T, seed uint64) *scene {
	s, _ := decayedEpoch(t, seed, int64(seed%2))
	s.whole()
	return s
}

// TestDecayedEpochFile lets both epoch files decay: emptied, and with each bit of the number
// flipped. The server refuses to start and gets another disk, or has forgotten a promise. In both
// cases it serves the same history as the others in the end, unless its currentEpoch is too
// large, which nothing can detect.
func TestDecayedEpochFile(t *testing.T) {
	refused := map[int64]bool{}
	for how := range int64(2*8 + 2) {
		s, _ := decayedEpoch(t, 1, how)
		s.whole()
		if s.ended() {
			t.Errorf("amount %d: %q", how, s.notes)
		}
		refused[how] = s.reached[situationRotRefused] > 0
		s.write(s.leader(), 3)
	}
	const (
		empty      = 0           // currentEpoch; acceptedEpoch is the next amount
		three      = 2 * (1 + 1) // bit 1 makes 3 of 1
		noDigit    = 2 * (6 + 1) // bit 6 makes q of 1
		inAccepted = 1
	)
	for how, want := range map[int64]bool{empty: true, empty + inAccepted: true, noDigit: true, noDigit + inAccepted: true, three: true, three + inAccepted: false} {
		if refused[how] != want {
			t.Errorf("amount %d: refused: %v", how, refused[how])
		}
	}
}

// tooLargeEpoch makes the currentEpoch of a server too large, but not larger than the
// acceptedEpoch that the server has promised meanwhile.
func tooLargeEpoch(t *testing.T, seed uint64) *scene {
	s := newScene(t, Options{Seed: seed, Voters: 3})
	v := s.other()
	if err := v.store.SetAcceptedEpoch(3); err != nil {
		t.Fatal(err)
	}
	v.accepts(3)
	s.Do(Act{Kind: RotEpoch, A: int(v.id), Value: 2 * (1 + 1)})
	s.Do(Act{Kind: Kill, A: int(v.id)})
	s.Do(Act{Kind: Start, A: int(v.id)})
	return s
}

// jumpedLeader lets the monotonic clock of a leader jump by more than all its timeouts.
func jumpedLeader(t *testing.T, seed uint64) *scene {
	s := newScene(t, Options{Seed: seed, Voters: 3, KeepClients: 1})
	s.write(s.leader(), 3)
	s.Do(Act{Kind: JumpAny, A: int(s.leader().id), Value: 20 * machine.Second})
	s.RunUntil(s.ended, 10*machine.Second)
	if !s.ended() {
		s.whole()
	}
	return s
}

// TestClockOfALeaderJumps checks that a jump of the leader's clock costs sessions and terms at
// most: no acknowledged write is lost, and the ensemble serves again.
func TestClockOfALeaderJumps(t *testing.T) {
	served := 0
	for seed := uint64(1); seed <= 20; seed++ {
		s := jumpedLeader(t, seed)
		if s.failed != nil {
			t.Errorf("seed %d: %v", seed, s.failed)
		}
		if !s.over {
			served++
		}
	}
	if t.Logf("%d of 20 runs have served again", served); served == 0 {
		t.Error("no run has served again")
	}
}
