package blackbox

import "testing"

// TestKilledLeader kills the leader several times. Each time another server must lead, and the
// clients of all running servers must continue.
func TestKilledLeader(t *testing.T) {
	s := begin(t, setting{})
	for range 3 {
		old := s.awaitWhole()
		s.e.Servers[old].Kill()
		if leader := s.awaitLeader(old); leader == old {
			t.Fatalf("server %d leads and was killed", old+1)
		}
		s.load.awaitWrites(10, s.workers(s.others(old)...)...)
		s.load.awaitWrites(10, s.any)
		s.restart(old)
		s.load.awaitWrites(5)
	}
	s.finish()
}

// TestKilledFollower kills a follower, after which the others must continue without a pause, and
// then both followers, after which nothing may be acknowledged.
func TestKilledFollower(t *testing.T) {
	s := begin(t, setting{})
	leader := s.awaitWhole()
	followers := s.others(leader)
	s.e.Servers[followers[0]].Kill()
	s.load.awaitWrites(20, s.workers(leader, followers[1])...)
	s.e.Servers[followers[1]].Kill()
	s.awaitNoLeader()
	s.restart(followers[0])
	s.load.awaitWrites(10, s.workers(leader, followers[0])...)
	s.finish()
}

// TestKilledAll kills all servers at once, like a power failure.
func TestKilledAll(t *testing.T) {
	s := begin(t, setting{})
	for range 3 {
		for _, server := range s.e.Servers {
			s.must(server.Signal(9))
		}
		s.e.Kill()
		s.must(s.e.Begin())
		s.load.awaitWrites(10)
	}
	s.finish()
}
