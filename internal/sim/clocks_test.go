package sim

import (
	"testing"

	"bellwether/internal/sim/machine"
	"bellwether/wire"
)

// hours are jumps of wall clocks, in µs.
var hours = []int64{-6 * 3600 * machine.Second, -3600 * machine.Second, 3600 * machine.Second, 6 * 3600 * machine.Second}

// TestWallClocksJumpByHours checks that no session ends and no connection breaks if the wall
// clock of any server jumps by hours in either direction.
func TestWallClocksJumpByHours(t *testing.T) {
	for i, by := range hours {
		s := newScene(t, Options{Seed: uint64(i + 1), Voters: 3})
		l := s.leader()
		c, d := s.client(l), s.client(s.other())
		s.carried(c.Ask(c.Creation("/a")))
		for _, v := range s.servers {
			s.Do(Act{Kind: SetClock, A: int(v.id), Value: by})
			s.RunFor(2 * machine.Second)
		}
		sessions := []wire.SessionID{c.Session, d.Session}
		s.RunFor(10 * machine.Second)
		if s.leader() != l || !c.Attached || !d.Attached || c.Session != sessions[0] || d.Session != sessions[1] {
			t.Errorf("by %d s: the leader is %d, clients attached: %v, %v", by/machine.Second, idOf(s.leader()), c.Attached, d.Attached)
		}
		s.carried(c.Ask(c.Write("/a")))
	}
}

// TestMonotonicClockOfAFollowerJumps checks that a follower whose monotonic clock jumps
// serves again soon, and that its client keeps its session. The clock of a leader does not
// jump, because nothing is promised then.
func TestMonotonicClockOfAFollowerJumps(t *testing.T) {
	for seed := uint64(1); seed <= 10; seed++ {
		s := newScene(t, Options{Seed: seed, Voters: 3, KeepClients: 1})
		l, f := s.leader(), s.other()
		c := s.client(f)
		id := c.Session
		for _, by := range []int64{machine.Second, 20 * machine.Second, 1800 * machine.Second} {
			s.Do(Act{Kind: Jump, A: int(f.id), Value: by})
			s.until("all serve", 10*machine.Second, func() bool { return s.allServe() == "" && s.allEqual() == "" })
		}
		if c.Session != id || s.leader() != l {
			t.Errorf("seed %d: session %v was %v, leader %d was %d", seed, c.Session, id, idOf(s.leader()), l.id)
		}
		before := l.mono()
		s.Do(Act{Kind: Jump, A: int(l.id), Value: 20 * machine.Second})
		if after := l.mono(); after != before {
			t.Errorf("seed %d: the clock of the leader jumped by %d ms", seed, after-before)
		}
	}
}
