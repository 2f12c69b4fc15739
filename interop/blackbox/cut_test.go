package blackbox

import (
	"testing"
	"time"

	"bellwether/interop/target"
)

// TestPartitionLeaderInMinority separates the leader and one follower of five from the others,
// which must elect another leader. The replies on both sides must form one history.
func TestPartitionLeaderInMinority(t *testing.T) {
	s := begin(t, setting{kinds: ours(5)})
	old := s.awaitWhole()
	minority := []int{old, s.others(old)[0]}
	majority := s.others(minority...)
	s.Part(minority, majority)
	s.awaitLeader(minority...)
	s.load.awaitWrites(10, s.workers(majority...)...)
	s.finish()
}

// TestPartitionLeaderInMajority separates two followers of five from the others, which must
// continue with the same leader.
func TestPartitionLeaderInMajority(t *testing.T) {
	s := begin(t, setting{kinds: ours(5)})
	leader := s.awaitWhole()
	minority := s.others(leader)[:2]
	majority := s.others(minority...)
	s.Part(minority, majority)
	s.load.awaitWrites(20, s.workers(majority...)...)
	s.awaitIdle(minority...)
	if now := s.awaitLeader(minority...); now != leader {
		t.Errorf("server %d leads after %d, which always had its quorum", now+1, leader+1)
	}
	s.finish()
}

// TestUnpluggedLeader takes the leader's link down and up again.
func TestUnpluggedLeader(t *testing.T) {
	s := begin(t, setting{})
	for range 2 {
		old := s.awaitWhole()
		s.Unplug(old)
		s.awaitLeader(old)
		s.load.awaitWrites(10, s.workers(s.others(old)...)...)
		s.Heal()
		s.load.awaitWrites(5)
	}
	s.finish()
}

// TestLeaderCannotSend drops everything that the leader sends to the other servers, but not what
// they send. The leader or the others must give up, and another server must lead.
func TestLeaderCannotSend(t *testing.T) {
	s := begin(t, setting{})
	old := s.awaitWhole()
	for _, i := range s.others(old) {
		s.Cut(old, i)
	}
	s.awaitLeader(old)
	s.load.awaitWrites(10, s.workers(s.others(old)...)...)
	s.finish()
}

// TestLeaderCannotReceive drops everything that the other servers send to the leader.
func TestLeaderCannotReceive(t *testing.T) {
	s := begin(t, setting{})
	old := s.awaitWhole()
	for _, i := range s.others(old) {
		s.Cut(i, old)
	}
	s.awaitLeader(old)
	s.load.awaitWrites(10, s.workers(s.others(old)...)...)
	s.finish()
}

// TestLinkBetweenFollowersIsCut cuts the link between the two followers, which changes
// nothing while the leader runs. When the leader is killed, neither follower can lead;
// when it is back, it and one follower form a quorum.
func TestLinkBetweenFollowersIsCut(t *testing.T) {
	s := begin(t, setting{})
	leader := s.awaitWhole()
	followers := s.others(leader)
	s.Part(followers[:1], followers[1:])
	s.load.awaitWrites(20)
	s.e.Servers[leader].Kill()
	s.awaitIdle(followers...)
	s.restart(leader)
	s.load.awaitWrites(10, s.workers(leader)...)
	s.finish()
}

// TestSlowLeader limits the leader's sending rate to about what its heartbeats and a few writes
// need, and then kills it.
func TestSlowLeader(t *testing.T) {
	s := begin(t, setting{})
	old := s.awaitWhole()
	s.Slow(old, "400kbit")
	s.load.awaitWrites(10, s.any)
	s.e.Servers[old].Kill()
	s.awaitLeader(old)
	s.load.awaitWrites(10, s.workers(s.others(old)...)...)
	s.finish()
}

// TestDelayedServers connects the servers only through a relay that delays everything by 20 ms
// in each direction, and kills the leader.
func TestDelayedServers(t *testing.T) {
	s := begin(t, setting{delay: 20 * time.Millisecond, before: func(w *network, places []target.Place) {
		for i := range places {
			for j := range i {
				w.Part([]int{i}, []int{j})
			}
		}
	}})
	old := s.awaitWhole()
	s.load.awaitWrites(10)
	s.e.Servers[old].Kill()
	s.awaitLeader(old)
	s.load.awaitWrites(10, s.workers(s.others(old)...)...)
	s.finish()
}
