package sim

import (
	"flag"
	"slices"
	"testing"

	"bellwether/internal/peerwire"
	"bellwether/internal/sim/check"
	"bellwether/internal/sim/machine"
	"bellwether/wire"
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

// lostSnapshot lets a leader send a snapshot to a follower with an empty disk after the last transaction of its epoch.
// The disk lies about snapshots and may lose this one, so that the log of the next epoch continues the snapshot of the empty
// tree.
// In the end a client writes.
func lostSnapshot(t *testing.T, seed uint64) *scene {
	s := newScene(t, Options{Seed: seed, Voters: 3})
	first, v := s.leader(), s.other()
	s.write(first, 5)
	s.RunFor(3 * machine.Second) // the leader confirms the trees that it has sent
	s.Do(Act{Kind: Kill, A: int(v.id)})
	s.Do(Act{Kind: LoseDisk, A: int(v.id)})
	s.cut(v)
	s.Do(Act{Kind: Start, A: int(v.id)})
	s.Do(Act{Kind: Lie, A: int(v.id), Value: lieSnapshots})
	s.Do(Act{Kind: Heal, A: 1})
	serves := func() bool { return s.leader() != nil && v.standing.Serving }
	s.until("the follower serves", 20*machine.Second, serves)
	s.Do(Act{Kind: Kill, A: int(first.id)})
	s.Do(Act{Kind: Start, A: int(first.id)})
	s.until("all serve in another epoch", 20*machine.Second, func() bool { return s.allServe() == "" })
	s.write(s.leader(), 5)
	s.until("all have the writes", 5*machine.Second, func() bool { return s.allEqual() == "" })
	s.Do(Act{Kind: PowerOff, A: int(v.id)})
	s.Do(Act{Kind: EndLie, A: int(v.id)})
	s.Do(Act{Kind: Start, A: int(v.id)})
	s.until("the follower serves again", 60*machine.Second, serves)
	s.write(s.leader(), 5)
	s.until("no tree differs without an alarm", 5*machine.Second, func() bool { return s.holesNoticed() == "" })
	s.until("no history has a hole", 20*machine.Second, func() bool { return s.holed() == nil })
	s.whole()
	return s
}

// TestASnapshotIsLost checks that a server that has lost a snapshot without a trace serves the same history as the others
// after the next writes, because the leader compares the trees.
func TestASnapshotIsLost(t *testing.T) {
	holes := 0
	for seed := uint64(1); seed <= 20; seed++ {
		s := lostSnapshot(t, seed)
		if s.ended() || s.reached[situationHoleFilled] != s.reached[situationHole] {
			t.Errorf("seed %d: failed %v, %q", seed, s.failed, s.notes)
		}
		holes += s.reached[situationHole]
	}
	if holes == 0 {
		t.Error("no snapshot was lost")
	}
}

// TestAHoleEndsWhatIsPromised checks that each rule may be broken while a server has a hole in its history, that the run
// ends when such a server leads, and that a wrong tree without an alarm is found.
func TestAHoleEndsWhatIsPromised(t *testing.T) {
	s := newScene(t, Options{Voters: 3})
	v := s.other()
	v.hole = "a test says so"
	early := check.Promised{Server: 2, ByLearner: true, Packet: &peerwire.QuorumPacket{Type: peerwire.PacketAck, Zxid: wire.MakeZxid(99, 1)}}
	if s.see(check.Stands{Server: v.id, Zxid: s.history.Last().Zxid, Digest: 1}); s.ended() {
		t.Errorf("a tree that differs ends the run: %v, %q", s.failed, s.notes)
	}
	if missing := s.holesNoticed(); missing != "" {
		t.Errorf("the tree is right: %s", missing)
	}
	s.history.Last().Digest++
	if s.holesNoticed() == "" {
		t.Error("a tree that differs needs no alarm")
	}
	if s.see(early); s.failed != nil || !s.over {
		t.Errorf("failed %v, over %v", s.failed, s.over)
	}
	s = newScene(t, Options{Voters: 3})
	s.leader().hole = "a test says so"
	if s.leader().leadsWithHole(); !s.over {
		t.Error("a server with a hole leads")
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

// TestAServerThatIsNoMemberPromisesTooMuch checks that a server that is no member, and whose decayed acceptedEpoch is later
// than the epoch of the leader, gets another disk in the end, because no leader ends its term for it.
func TestAServerThatIsNoMemberPromisesTooMuch(t *testing.T) {
	s := newScene(t, Options{Voters: 3, Reconfig: 1, EpochRot: 1})
	s.Do(Act{Kind: Recruit, A: 4})
	s.until("all serve", 10*machine.Second, func() bool { return s.allServe() == "" })
	v := s.server(4)
	s.Do(Act{Kind: RotEpoch, A: 4, Value: 7}) // 1 becomes 5
	s.Do(Act{Kind: PowerOff, A: 4})
	s.Do(Act{Kind: Start, A: 4})
	if l := s.leader(); v.saved.Accepted <= l.standing.Epoch {
		t.Fatalf("it has promised epoch %d, the leader is that of epoch %d", v.saved.Accepted, l.standing.Epoch)
	}
	s.supervise()
	s.until("all serve again", 10*machine.Second, func() bool { return s.allServe() == "" })
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
