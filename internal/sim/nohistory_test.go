package sim

import (
	"testing"

	"bellwether/internal/sim/machine"
)

// TestWipedServerIsNotInTheQuorumOfATerm loses a transaction on two of three disks: the leader
// loses power before its own disk has it, and the disk of one follower is replaced. The
// other follower has it, but still says that it follows the old leader. With that vote the old
// leader is elected again. The server without history must not make the quorum of this term
// complete, because then the transaction would be lost.
func TestWipedServerIsNotInTheQuorumOfATerm(t *testing.T) {
	for seed := uint64(1); seed <= 60; seed++ {
		s := halfDead(t, seed, 3)
		s.write(s.leader(), 3)
		old := s.leader()
		s.Do(Act{Kind: Kill, A: int(old.id)})
		s.Do(Act{Kind: Start, A: int(old.id)})
		s.until("a new term serves", 10*machine.Second, func() bool { return s.allServe() == "" })
		leader := s.leader()
		others := s.without(leader)
		kept, replaced := others[0], others[1]
		s.Do(Act{Kind: HangDisk, A: int(leader.id)})
		s.write(kept, 3) // the disks of the followers are a quorum
		s.Do(Act{Kind: PowerOff, A: int(leader.id)})
		s.Do(Act{Kind: Kill, A: int(replaced.id)})
		s.Do(Act{Kind: Wipe, A: int(replaced.id)})
		if !replaced.unknown {
			t.Fatal("the disk was not replaced")
		}
		s.whole()
	}
}
