package sim

import (
	"fmt"
	"testing"

	"bellwether/internal/election"
	"bellwether/internal/sim/machine"
)

// snapJoins are ways in which a server joins a leader by a snapshot although it already has
// every transaction that the others have.
var snapJoins = map[string]func(s *scene, v *server){
	"nothing written, restarted": func(s *scene, v *server) { s.rejoin(v, false) },
	"nothing written, wiped":     func(s *scene, v *server) { s.rejoin(v, true) },
	"history, wiped": func(s *scene, v *server) {
		s.write(s.leader(), 3)
		s.moveLead(v)
		s.rejoin(v, true)
	},
}

// rejoin restarts a follower, with an empty disk if wiped is true, and waits until it
// serves.
func (s *scene) rejoin(v *server, wiped bool) {
	s.t.Helper()
	s.Do(Act{Kind: Kill, A: int(v.id)})
	if wiped {
		s.Do(Act{Kind: Wipe, A: int(v.id)})
	}
	s.Do(Act{Kind: Start, A: int(v.id)})
	s.until("all serve", 10*machine.Second, func() bool { return s.allServe() == "" })
}

// moveLead begins a new epoch, in which a server other than v leads.
func (s *scene) moveLead(v *server) {
	s.t.Helper()
	for again := true; again; again = s.leader() == v {
		old := s.leader()
		s.Do(Act{Kind: Kill, A: int(old.id)})
		s.until("another server leads", 10*machine.Second, func() bool { return s.leader() != nil })
		s.Do(Act{Kind: Start, A: int(old.id)})
		s.until("all serve", 10*machine.Second, func() bool { return s.allServe() == "" })
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

// electedWithout filters the quorum port of the server that would win each election by its
// id, and restarts the leader. It checks that another server leads in time.
func (s *scene) electedWithout(best *server) {
	s.t.Helper()
	s.Do(Act{Kind: Filter, A: int(best.id), Value: filterIn | filterOut})
	old, gone := s.leader(), s.now
	s.Do(Act{Kind: Kill, A: int(old.id)})
	s.after(200*machine.Millisecond, old.start)
	s.t.Logf("seed %d: %d ms", s.opt.Seed, s.led(gone, s.without(best)))
	s.whole()
}

// TestSnapshotGivesNoMoreHistory checks that a server that was synchronised by a snapshot
// casts the same vote as servers with the same history. Otherwise it would count as the
// only server with the newest history, and the others would elect it again and again while
// learners cannot reach it.
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

// TestSnapshotOfZooKeeperGivesNoMoreHistory checks native servers that have followed a
// leader of ZooKeeper, whose snapshots have the zxid of counter 0 of its epoch. They cast the same vote,
// whether they got a snapshot or the transactions that they lacked.
func TestSnapshotOfZooKeeperGivesNoMoreHistory(t *testing.T) {
	for seed := uint64(1); seed <= 5; seed++ {
		o := halfDeadOptions(seed, 5)
		o.Compatible = 3
		s := beginHalfDead(t, o)
		ours, best := s.servers[3], s.servers[4]
		for _, v := range []*server{ours, best} {
			s.Do(Act{Kind: Kill, A: int(v.id)})
		}
		s.until("ZooKeeper leads", 10*machine.Second, func() bool { return s.leader() != nil && s.leader().compatible })
		s.write(s.leader(), 3) // so that the others cannot be elected
		s.clients.All[0].Hung = true
		s.RunFor(30 * machine.Second) // until its session has expired
		for _, v := range s.servers {
			s.Do(Act{Kind: Kill, A: int(v.id)})
			s.Do(Act{Kind: Start, A: int(v.id)})
		}
		s.until("all serve", 10*machine.Second, func() bool { return s.allServe() == "" })
		s.rejoin(best, true)
		old := s.leader()
		if !old.compatible || best.log.Last() == old.log.Last() {
			t.Fatalf("seed %d: server %d leads; the logs end at %v and %v", seed, old.id, old.log.Last(), best.log.Last())
		}
		before := []int{len(ours.replica.Elections()), len(best.replica.Elections())}
		s.electedWithout(best)
		a, b := ours.replica.Elections()[before[0]].Own, best.replica.Elections()[before[1]].Own
		if a.Zxid != b.Zxid || a.PeerEpoch != b.PeerEpoch {
			t.Errorf("seed %d: the votes of native servers with the same history are %v and %v", seed, a, b)
		}
	}
}

// TestSnapshotOfNothingReplacesATail lets a deposed leader, whose log holds only a
// transaction that was never committed, join a leader with no transaction at all. The
// deposed leader gets an empty snapshot. From then on it has the same history as the other
// leader, also after a restart.
func TestSnapshotOfNothingReplacesATail(t *testing.T) {
	for seed := uint64(1); seed <= 5; seed++ {
		s := halfDead(t, seed, 3)
		old := s.leader()
		s.cut(old)
		c := s.scripted(old) // its session is proposed and never committed
		s.until("a transaction is in the log", 10*machine.Second, func() bool { return old.log.Last() > 0 })
		c.Hung = true
		s.until("another server leads", 20*machine.Second, func() bool { return s.leader() != old && s.leader() != nil })
		s.clients.All = nil
		for range 2 {
			s.Do(Act{Kind: Kill, A: int(old.id)}) // this also drops the requests of its clients
			s.Do(Act{Kind: Heal, A: 1})
			s.Do(Act{Kind: Start, A: int(old.id)})
			s.until("all serve", 30*machine.Second, func() bool { return s.allServe() == "" })
			s.sameVotes()
			if z := old.log.Last(); z != 0 {
				t.Errorf("seed %d: the log ends at %v", seed, z)
			}
		}
		s.write(s.leader(), 3)
		s.whole()
	}
}

// TestTransferAfterASnapshot checks that a leader which is about to stop transfers
// leadership without an election, also if a snapshot synchronised the third server. The
// next leader needs that server, which must not have more history than itself.
func TestTransferAfterASnapshot(t *testing.T) {
	for name, join := range snapJoins {
		t.Run(name, func(t *testing.T) {
			transferred := 0
			for seed := uint64(1); seed <= 10; seed++ {
				s := halfDead(t, seed, 3)
				joined := s.servers[2]
				s.moveLead(joined)
				join(s, joined)
				old := s.leader()
				next := s.without(joined, old)[0]
				s.handsOver(next, 1)
				s.until("there is a leader", 5*machine.Second, func() bool { return s.leader() != nil })
				if s.leader() == next && next.transferred().Decision.Ending == election.LeadershipTransferred {
					transferred++
				}
			}
			if transferred < 7 { // a connection that is reset loses the packet that names the successor
				t.Errorf("leadership was transferred in %d of 10 runs", transferred)
			}
		})
	}
}

// TestSynchronisedLogsEndAtTheSameZxid checks that the logs of voters and observers end at
// the same zxid after they were synchronised by DIFF, TRUNC or SNAP, as long as nothing is
// written afterwards.
func TestSynchronisedLogsEndAtTheSameZxid(t *testing.T) {
	for seed := uint64(1); seed <= 5; seed++ {
		s := newScene(t, Options{Seed: seed, Voters: 5, Observers: 2})
		s.write(s.leader(), 3)
		cut := s.leader() // it keeps a write that no other server has
		own := s.client(cut)
		s.cut(cut)
		own.Ask(own.Creation("/lost"))
		s.until("another server leads", 20*machine.Second, func() bool { return s.leader() != nil && s.leader() != cut })
		s.Do(Act{Kind: Heal, A: 1})
		for _, c := range s.clients.All { // they end, and their sessions expire
			c.Hung = true
		}
		s.RunFor(10 * machine.Second)
		s.until("all serve", 20*machine.Second, func() bool { return s.allServe() == "" })
		s.moveLead(cut) // so that the leader's epoch has no transaction
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
