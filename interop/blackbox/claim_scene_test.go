package blackbox

import (
	"syscall"
	"testing"

	"bellwether/zk"
)

// TestFollowerCutFromLeader shows that a candidate's claim ends when its follower is cut off
// from the ensemble's leader, although its connection stays, and that only then another
// candidate gets a claim.
func TestFollowerCutFromLeader(t *testing.T) {
	s := begin(t, setting{})
	leader := s.awaitWhole()
	follower := s.others(leader)[0]
	clients := s.candidates()
	cut := nameAt(follower)
	c := s.stand(map[string]*zk.Client{cut: clients[cut]})
	first := c.holder()
	for who, client := range clients {
		if who != cut {
			c.join(who, client)
		}
	}
	s.Part([]int{follower}, []int{leader})
	next := c.holder(cut)
	s.load.awaitWrites(10, s.workers(s.others(follower)...)...)
	s.Heal()
	c.end()
	if next.token <= first.token {
		t.Errorf("the token of %v is not larger than that of %v", next, first)
	}
	t.Logf("the next claim after %v began %v later", first, next.begin-first.end)
	s.finish()
}

// TestStoppedLeader stops the process of a leader to which the leading candidate is connected,
// until another server and another candidate lead, and continues it. The old leader must not
// answer as if it still led.
func TestStoppedLeader(t *testing.T) {
	s := begin(t, setting{})
	leader := s.awaitWhole()
	clients := s.candidates()
	stopped := nameAt(leader)
	c := s.stand(map[string]*zk.Client{stopped: clients[stopped]})
	c.holder()
	for who, client := range clients {
		if who != stopped {
			c.join(who, client)
		}
	}
	s.signal(leader, syscall.SIGSTOP)
	s.awaitLeader(leader)
	s.load.awaitWrites(10, s.workers(s.others(leader)...)...)
	c.holder(stopped)
	s.signal(leader, syscall.SIGCONT)
	s.load.awaitWrites(10)
	c.end()
	s.finish()
}

// TestStoppedFollower stops the process of a follower for longer than the time after
// which the other servers give it up.
func TestStoppedFollower(t *testing.T) {
	s := begin(t, setting{})
	leader := s.awaitWhole()
	follower := s.others(leader)[0]
	s.signal(follower, syscall.SIGSTOP)
	s.load.awaitWrites(60, s.workers(s.others(follower)...)...)
	s.signal(follower, syscall.SIGCONT)
	s.load.awaitWrites(10)
	s.finish()
}

// TestClaimsUnderRepeatedFaults has candidates at every server, while leaders are killed and servers are
// cut off in turn.
func TestClaimsUnderRepeatedFaults(t *testing.T) {
	s := begin(t, setting{})
	c := s.stand(s.candidates())
	for i := range 3 {
		c.holder()
		leader := s.awaitWhole()
		if i%2 == 0 {
			s.e.Servers[leader].Kill()
		} else {
			s.Unplug(leader)
		}
		s.awaitLeader(leader)
		s.load.awaitWrites(5, s.workers(s.others(leader)...)...)
		s.Heal()
		s.must(s.e.Begin())
	}
	s.awaitWhole()
	c.holder()
	c.end()
	s.finish()
}
