package sim

import (
	"fmt"
	"testing"

	"bellwether/internal/election"
)

// snapJoins are the ways in which a server comes to join a leader by a snapshot
// although the others have no transaction that it lacked before.
var snapJoins = map[string]func(s *scene, v *server){
	"nothing written, restarted": func(s *scene, v *server) { s.rejoin(v, false) },
	"nothing written, wiped":     func(s *scene, v *server) { s.rejoin(v, true) },
	"history, wiped": func(s *scene, v *server) {
		s.write(s.leader(), 3)
		s.moveLead(v)
		s.rejoin(v, true)
	},
}

// rejoin restarts a follower, with an empty disk if it is wiped, and waits until
// it serves.
func (s *scene) rejoin(v *server, wiped bool) {
	s.t.Helper()
	s.Do(Act{Kind: Kill, A: int(v.id)})
	if wiped {
		s.Do(Act{Kind: Wipe, A: int(v.id)})
	}
	s.Do(Act{Kind: Start, A: int(v.id)})
	s.until("all serve", 10*second, func() bool { return s.allServe() == "" })
}

// moveLead begins a new epoch, in which a server other than v leads.
func (s *scene) moveLead(v *server) {
	s.t.Helper()
	for again := true; again; again = s.leader() == v {
		old := s.leader()
		s.Do(Act{Kind: Kill, A: int(old.id)})
		s.until("another server leads", 10*second, func() bool { return s.leader() != nil })
		s.Do(Act{Kind: Start, A: int(old.id)})
		s.until("all serve", 10*second, func() bool { return s.allServe() == "" })
	}
}

// sameVotes fails unless the next votes of all servers claim the same history.
func (s *scene) sameVotes() {
	s.t.Helper()
	for _, v := range s.servers {
		if a, b := v.log.Last(), s.servers[0].log.Last(); a != b {
			s.t.Errorf("the log of server %d ends at %v, that of server 1 at %v, and nothing was written since they were synchronised", v.id, a, b)
		}
	}
}

// electedWithout filters the quorum port of the server that would win each election
// by its id, and restarts the leader: another one leads in time.
func (s *scene) electedWithout(best *server) {
	s.t.Helper()
	s.Do(Act{Kind: Filter, A: int(best.id), Value: filterIn | filterOut})
	old, gone := s.leader(), s.now
	s.Do(Act{Kind: Kill, A: int(old.id)})
	s.after(200*millisecond, old.start)
	s.t.Logf("seed %d: %d ms", s.opt.Seed, s.led(gone, s.without(best)))
	s.whole()
}

// A server that was synchronised by a snapshot casts the same vote as servers
// that have the same history: it does not count as the only one that has it.
// Otherwise the others would elect it again and again while it cannot be joined.
func TestSnapshotGivesNoMoreHistory(t *testing.T) {
	for name, join := range snapJoins {
		for _, voters := range []int{3, 5} {
			t.Run(fmt.Sprintf("%s, %d voters", name, voters), func(t *testing.T) {
				for seed := uint64(1); seed <= 3; seed++ {
					s := halfDead(t, seed, voters)
					best := s.servers[voters-1]
					s.moveLead(best)
					join(s, best)
					s.sameVotes()
					s.electedWithout(best)
				}
			})
		}
	}
}

// ZooKeeper's leaders send snapshots with the zero of their epoch. Our servers
// that have followed such a leader vote alike, whether it sent them a snapshot or
// the transactions that they lacked.
func TestSnapshotOfZooKeeperGivesNoMoreHistory(t *testing.T) {
	for seed := uint64(1); seed <= 5; seed++ {
		o := halfDeadOptions(seed, 5)
		o.Compatible = 3
		s := beginHalfDead(t, o)
		ours, best := s.servers[3], s.servers[4]
		for _, v := range []*server{ours, best} {
			s.Do(Act{Kind: Kill, A: int(v.id)})
		}
		s.until("ZooKeeper leads", 10*second, func() bool { return s.leader() != nil && s.leader().compatible })
		s.write(s.leader(), 3) // so that the others are no candidates
		s.clients[0].silent = true
		s.RunFor(30 * second) // its session has expired
		for _, v := range s.servers {
			s.Do(Act{Kind: Kill, A: int(v.id)})
			s.Do(Act{Kind: Start, A: int(v.id)})
		}
		s.until("all serve", 10*second, func() bool { return s.allServe() == "" })
		s.rejoin(best, true)
		old := s.leader()
		if !old.compatible || best.log.Last() == old.log.Last() {
			t.Fatalf("seed %d: server %d leads; the logs end at %v and %v", seed, old.id, old.log.Last(), best.log.Last())
		}
		s.electedWithout(best)
	}
}

// A deposed leader whose log holds nothing but a transaction that was never
// committed joins one that has no transaction at all, by a snapshot of nothing. It
// has the same history from then on, also when it is started again.
func TestSnapshotOfNothingReplacesATail(t *testing.T) {
	for seed := uint64(1); seed <= 5; seed++ {
		s := halfDead(t, seed, 3)
		old := s.leader()
		s.cut(old)
		c := s.scripted(old) // its session is proposed and never committed
		s.until("a transaction is in the log", 10*second, func() bool { return old.log.Last() > 0 })
		c.silent = true
		s.until("another server leads", 20*second, func() bool { return s.leader() != old && s.leader() != nil })
		s.clients = nil
		for range 2 {
			s.Do(Act{Kind: Kill, A: int(old.id)}) // and with it what its clients have asked for
			s.Do(Act{Kind: Heal, A: 1})
			s.Do(Act{Kind: Start, A: int(old.id)})
			s.until("all serve", 30*second, func() bool { return s.allServe() == "" })
			s.sameVotes()
			if z := old.log.Last(); z != 0 {
				t.Errorf("seed %d: the log ends at %v", seed, z)
			}
		}
		s.write(s.leader(), 3)
		s.whole()
	}
}

// A leader that is about to stop transfers leadership without an election, also
// where the third server was synchronised by a snapshot: the next leader needs
// that one, which is not ahead of it.
func TestHandOverBesideASnapshot(t *testing.T) {
	for name, join := range snapJoins {
		t.Run(name, func(t *testing.T) {
			handed := 0
			for seed := uint64(1); seed <= 10; seed++ {
				s := halfDead(t, seed, 3)
				joined := s.servers[2]
				s.moveLead(joined)
				join(s, joined)
				old := s.leader()
				next := s.without(joined, old)[0]
				s.handsOver(next, 1)
				s.until("there is a leader", 5*second, func() bool { return s.leader() != nil })
				if s.leader() == next && next.handed().Decision.Ending == election.Handed {
					handed++
				}
			}
			if handed < 7 { // a connection that is reset takes the name with it
				t.Errorf("%d of 10 were handed over", handed)
			}
		})
	}
}

// Logs of voters and observers end at the same zxid, whether they were
// synchronised by DIFF, TRUNC or SNAP, as long as nothing is written after.
func TestSynchronisedLogsEndAtTheSameZxid(t *testing.T) {
	for seed := uint64(1); seed <= 5; seed++ {
		s := newScene(t, Options{Seed: seed, Voters: 5, Observers: 2})
		s.write(s.leader(), 3)
		cut := s.leader() // keeps a write that nobody else has
		own := s.client(cut)
		s.cut(cut)
		own.ask(own.making("/lost"))
		s.until("another server leads", 20*second, func() bool { return s.leader() != nil && s.leader() != cut })
		s.Do(Act{Kind: Heal, A: 1})
		for _, c := range s.clients { // they end, and their sessions expire
			c.silent = true
		}
		s.RunFor(10 * second)
		s.until("all serve", 20*second, func() bool { return s.allServe() == "" })
		s.moveLead(cut) // to an epoch without a transaction
		for _, v := range []*server{s.servers[5], s.without(s.leader(), cut)[0]} {
			s.rejoin(v, true)
		}
		s.sameVotes()
		for what, reached := range map[string]situation{"TRUNC": situationTrunc, "SNAP": situationSnap} {
			if s.reached[reached] == 0 {
				t.Errorf("seed %d: nobody was synchronised by %s", seed, what)
			}
		}
	}
}
