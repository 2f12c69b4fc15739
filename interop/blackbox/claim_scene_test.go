package blackbox

import (
	"syscall"
	"testing"

	"bellwether/zk"
)

// TestFollowerCutFromLeader: the candidate that leads is connected to a
// follower that is cut from the ensemble's leader. Its connection stays, its
// claim ends, and only then does another candidate get one.
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
		t.Errorf("%v follows %v", next, first)
	}
	t.Logf("the claim %v was followed %v later", first, next.begin-first.end)
	s.finish()
}

// TestStoppedLeader stops the leader's process, with a candidate that leads
// connected to it, until another server and another candidate lead, and
// continues it: it must not answer as if nothing had been.
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

// TestStoppedFollower stops a follower for longer than the others wait for it.
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

// TestClaimsInAStorm: candidates at every server while leaders are killed and
// servers cut off in turn.
func TestClaimsInAStorm(t *testing.T) {
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
