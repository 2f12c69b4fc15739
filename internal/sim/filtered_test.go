package sim

import (
	"fmt"
	"slices"
	"testing"

	"bellwether/internal/peerwire"
	"bellwether/internal/sim/machine"
)

// filter keeps learners from some servers: no packet passes to or from their quorum ports.
func (s *scene) filter(some ...*server) {
	for _, v := range some {
		s.Do(Act{Kind: Filter, A: int(v.id), Value: filterIn | filterOut})
	}
}

// restart ends all servers and starts some of them. It returns the time of the start.
func (s *scene) restart(some ...*server) int64 {
	for _, v := range s.servers {
		s.Do(Act{Kind: Kill, A: int(v.id)})
	}
	s.RunFor(machine.Second)
	for _, v := range some {
		s.Do(Act{Kind: Start, A: int(v.id)})
	}
	return s.now
}

// leads returns a condition: one of some servers leads.
func (s *scene) leads(some ...*server) func() bool {
	return func() bool { return s.leader() != nil && slices.Contains(some, s.leader()) }
}

// TestFilteredMinorityStopsNoElection filters the quorum ports of a minority, the servers that win
// each election by their ids. Each of them costs one failed term, of one second. None is elected a
// second time while another one is tried, although its own pause of one second is over by then.
func TestFilteredMinorityStopsNoElection(t *testing.T) {
	for voters, filtered := range map[int]int{3: 1, 5: 2, 7: 3} {
		t.Run(fmt.Sprintf("%d of %d", filtered, voters), func(t *testing.T) {
			for seed := uint64(1); seed <= 5; seed++ {
				s := halfDead(t, seed, voters)
				s.write(s.leader(), 3)
				healthy, sick := s.servers[:voters-filtered], s.servers[voters-filtered:]
				s.filter(sick...)
				began := s.restart(s.servers...)
				s.until("a healthy server leads", int64(filtered)*machine.Second+500*machine.Millisecond, s.leads(healthy...))
				t.Logf("seed %d: %d ms", seed, (s.now-began)/machine.Millisecond)
				s.RunFor(20 * machine.Second)
				if !s.leads(healthy...)() {
					t.Fatalf("seed %d: the leader has not stayed", seed)
				}
				s.whole()
			}
		})
	}
}

// laterEpoch begins an epoch that only the last two of five servers and the first one know, and in
// which nothing is written, so that all logs end at the same zxid. Then it filters the quorum
// ports of these two servers.
func laterEpoch(t *testing.T, seed uint64) (s *scene, first *server, others, filtered []*server) {
	s = halfDead(t, seed, 5)
	s.write(s.leader(), 3)
	s.until("all have the writes", 5*machine.Second, func() bool { return s.allEqual() == "" })
	for _, c := range s.clients.All {
		c.Hung = true
	}
	s.RunFor(60 * machine.Second) // until their sessions have expired, which is the last transaction
	first, others, filtered = s.servers[0], s.servers[1:3], s.servers[3:]
	s.restart(append([]*server{first}, filtered...)...)
	s.until("three servers serve", 10*machine.Second, func() bool {
		return !slices.ContainsFunc(s.without(others...), func(v *server) bool { return !v.standing.Serving })
	})
	s.sameVotes()
	s.filter(filtered...)
	return s, first, others, filtered
}

// TestFilteredServersOfALaterEpoch checks that filtered servers of a later epoch stop no election if a
// quorum without them contains a server that knows the epoch. Only that server can lead.
func TestFilteredServersOfALaterEpoch(t *testing.T) {
	for seed := uint64(1); seed <= 5; seed++ {
		s, first, _, _ := laterEpoch(t, seed)
		s.restart(s.servers...)
		s.until("the server that knows the epoch leads", 2*machine.Second+500*machine.Millisecond, s.leads(first))
		s.whole()
	}
}

// TestOnlyFilteredServersKnowTheEpoch shows a limit. If every quorum needs a filtered server, and only
// filtered servers know the last epoch, nobody can lead: history is compared by epoch before zxid, as in ZooKeeper, so the
// filtered servers follow nobody who lacks the epoch, even if the logs are equal. The ensemble serves as soon as a server that
// knows the epoch can be reached.
func TestOnlyFilteredServersKnowTheEpoch(t *testing.T) {
	for seed := uint64(1); seed <= 5; seed++ {
		s, first, others, filtered := laterEpoch(t, seed)
		s.restart(append(others, filtered...)...)
		s.RunFor(60 * machine.Second)
		if l := s.leader(); l != nil {
			t.Fatalf("seed %d: server %d leads, which servers %d and %d can follow only if they forget an epoch", seed, l.id, filtered[0].id, filtered[1].id)
		}
		if seed%2 == 0 {
			s.Do(Act{Kind: Start, A: int(first.id)})
			s.until("the server that knows the epoch leads", 40*machine.Second, s.leads(first))
		} else {
			s.Do(Act{Kind: Unfilter, A: int(filtered[0].id)})
			s.until("the server that can be reached leads", 40*machine.Second, s.leads(filtered[0]))
		}
		s.whole()
	}
}

// TestServerBehindRemembersOneMoreFailedTerm filters the leader of three servers, which has transactions that
// nobody else has. One of the others can lead, but the third remembers a failed term of that server too, from
// before. The third lacks history, and yet prefers itself to both. It checks that it votes for the server that
// can lead before both vote for the filtered server again.
func TestServerBehindRemembersOneMoreFailedTerm(t *testing.T) {
	for seed := uint64(1); seed <= 20; seed++ {
		s := halfDead(t, seed, 3)
		good, behind := s.leader(), s.other()
		bad := s.without(good, behind)[0]
		s.Do(Act{Kind: Kill, A: int(behind.id)})
		s.write(good, 3)
		s.Do(Act{Kind: SlowDisk, A: int(behind.id), Value: 900 * machine.Millisecond})
		s.Do(Act{Kind: Start, A: int(behind.id)})
		follows := func(l *server) func() bool {
			return func() bool {
				return l.standing.Role == peerwire.Leading && behind.standing.Role == peerwire.Following && behind.standing.Leader == l.id
			}
		}
		s.until("the server that is behind follows", 10*machine.Second, follows(good))
		s.Do(Act{Kind: Kill, A: int(good.id)})
		s.until("it follows the next leader", 10*machine.Second, follows(bad))
		s.Do(Act{Kind: Start, A: int(good.id)})
		s.until("the other server serves again", 10*machine.Second, func() bool { return good.standing.Serving && good.standing.Leader == bad.id })
		if behind.standing.Serving {
			t.Fatalf("seed %d: it has caught up", seed)
		}
		c := s.client(bad)
		s.filter(bad)
		c.Ask(c.Creation("/tail")) // it reaches the log of the leader only
		s.until("only the leader has the newest transaction", machine.Second, func() bool { return bad.ends() > good.ends() })
		s.Do(Act{Kind: SlowDisk, A: int(behind.id)})
		s.until("the other server has lost the leader", 2*machine.Second, func() bool { return !good.standing.Serving })
		began := s.now
		s.Do(Act{Kind: Kill, A: int(bad.id)})
		s.Do(Act{Kind: Start, A: int(bad.id)})
		t.Logf("seed %d: %d ms", seed, s.led(began, s.without(bad)))
		s.RunFor(20 * machine.Second)
		if !s.leads(good, behind)() {
			t.Fatalf("seed %d: the leader has not stayed", seed)
		}
		s.whole()
	}
}
