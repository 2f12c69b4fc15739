package sim

import (
	"fmt"
	"slices"
	"testing"

	"bellwether/internal/sim/client"
	"bellwether/internal/sim/machine"
)

// gapMax is how long the ensemble may have no leader and complete no write because one server is
// half dead: its process runs, but its disk hangs or its port for learners is filtered.
const gapMax = 3 * machine.Second

// halfDead returns an ensemble with the timeouts of the zoo.cfg that ships. A scenario
// controls all its clients.
func halfDead(t *testing.T, seed uint64, voters int) *scene {
	t.Helper()
	return beginHalfDead(t, halfDeadOptions(seed, voters))
}

func halfDeadOptions(seed uint64, voters int) Options {
	return Options{Seed: seed, Voters: voters, Observers: -1, Compatible: -1, Groups: -1, Busy: -1, Clients: -1, Candidates: -1,
		LocalSessions: -1, KeepClients: 1, TickMS: 2000, CounterMax: 1 << 30}
}

func beginHalfDead(t *testing.T, o Options) *scene {
	t.Helper()
	s := &scene{New(o), t}
	s.until("all serve", 10*machine.Second, func() bool { return s.allServe() == "" })
	return s
}

// without returns the servers except some.
func (s *scene) without(some ...*server) (rest []*server) {
	for _, v := range s.servers {
		if !slices.Contains(some, v) {
			rest = append(rest, v)
		}
	}
	return rest
}

// led waits until one of the given servers leads and serves a write. The test fails if that is
// later than gapMax after since. led returns the time from since until then, in ms.
func (s *scene) led(since int64, by []*server) int64 {
	s.t.Helper()
	leads := func() bool { l := s.leader(); return l != nil && slices.Contains(by, l) && !l.writer.watch.stalled }
	s.until("a healthy server leads", gapMax-(s.now-since), leads)
	c := s.client(s.leader())
	s.carried(c.Ask(c.Creation(fmt.Sprintf("/led-%d", s.now))))
	if took := s.now - since; took > gapMax {
		s.t.Fatalf("a write was done only after %d ms", took/machine.Millisecond)
	}
	return (s.now - since) / machine.Millisecond
}

// write writes through a healthy server, so that the logs are not empty.
func (s *scene) write(v *server, n int) {
	s.t.Helper()
	c := s.client(v)
	s.carried(c.Ask(c.Creation(fmt.Sprintf("/of-%d", c.ID))))
	for range n {
		s.carried(c.Ask(c.Write(fmt.Sprintf("/of-%d", c.ID))))
	}
}

// whole heals all faults and checks that all servers serve the same history again.
func (s *scene) whole() {
	s.t.Helper()
	for _, v := range s.servers {
		s.Do(Act{Kind: FreeDisk, A: int(v.id)})
		s.Do(Act{Kind: Start, A: int(v.id)})
	}
	s.Do(Act{Kind: Heal, A: 1})
	s.until("all serve again, with the same history", 60*machine.Second, func() bool { return s.allServe() == "" && s.allEqual() == "" })
}

// TestHungDiskOfTheLargestIDStopsNoElection hangs the disk of the follower with the largest id
// and restarts the leader. The others must elect one of themselves. The hung server would
// win each election by its id, and could never save the epoch.
func TestHungDiskOfTheLargestIDStopsNoElection(t *testing.T) {
	for _, known := range []bool{true, false} {
		for seed := uint64(1); seed <= 5; seed++ {
			s := halfDead(t, seed, 5)
			hung := s.servers[4]
			if s.leader() == hung {
				led := func() bool { return s.leader() == s.servers[3] && s.allServe() == "" }
				for range 10 { // the end of a connection may overtake the message that names the next leader
					s.Do(Act{Kind: TransferLeadership, A: 5, B: 4})
					if s.RunUntil(led, 2*machine.Second) {
						break
					}
				}
				s.until("server 4 leads", machine.Second, led)
			}
			old := s.leader()
			s.write(old, 3)
			s.Do(Act{Kind: HangDisk, A: int(hung.id)})
			if known { // the stall is detected before the leader is restarted; otherwise after
				c := s.client(old)
				s.carried(c.Ask(c.Creation("/x")))
				s.until("the stall is known", 10*machine.Second, func() bool { return hung.standing.Abstains != "" })
			}
			gone := s.now
			s.Do(Act{Kind: Kill, A: int(old.id)})
			s.after(200*machine.Millisecond, old.start)
			t.Logf("known %v, seed %d: %d ms", known, seed, s.led(gone, s.without(hung)))
			s.RunFor(20 * machine.Second)
			if l := s.leader(); l == nil || l == hung {
				t.Fatalf("seed %d: the leader has not stayed", seed)
			}
			s.whole()
		}
	}
}

// TestHungDiskOfTheLeaderPassesLeadershipOn checks that a leader whose disk hangs under
// load transfers leadership.
func TestHungDiskOfTheLeaderPassesLeadershipOn(t *testing.T) {
	for _, voters := range []int{3, 5} {
		for seed := uint64(1); seed <= 5; seed++ {
			s := halfDead(t, seed, voters)
			old := s.leader()
			clients := []*client.Client{s.client(old), s.client(s.other())}
			for i, c := range clients {
				s.carried(c.Ask(c.Creation(fmt.Sprint("/load-", i))))
			}
			load := func() {
				for i, c := range clients {
					if c.Attached && len(c.Calls) < 20 {
						c.Ask(c.Write(fmt.Sprint("/load-", i)))
					}
				}
			}
			var again func()
			again = func() { load(); s.after(5*machine.Millisecond, again) }
			again()
			s.RunFor(machine.Second)
			hung := s.now
			s.Do(Act{Kind: HangDisk, A: int(old.id)})
			t.Logf("%d voters, seed %d: %d ms", voters, seed, s.led(hung, s.without(old)))
			s.RunFor(10 * machine.Second)
			if l := s.leader(); l == nil || l == old {
				t.Fatalf("seed %d: no healthy leader", seed)
			}
			s.whole()
		}
	}
}

// TestHungDiskOfAFollowerCausesNoGap checks that the leader stays and writes go on while
// the disk of one follower hangs.
func TestHungDiskOfAFollowerCausesNoGap(t *testing.T) {
	s := halfDead(t, 1, 3)
	l, f := s.leader(), s.other()
	epoch := l.standing.Epoch
	c := s.client(l)
	s.carried(c.Ask(c.Creation("/a")))
	s.Do(Act{Kind: HangDisk, A: int(f.id)})
	for end := s.now + 30*machine.Second; s.now < end; {
		began := s.now
		s.carried(c.Ask(c.Write("/a")))
		if took := s.now - began; took > machine.Second {
			t.Fatalf("a write took %d ms", took/machine.Millisecond)
		}
		s.RunFor(100 * machine.Millisecond)
	}
	if s.leader() != l || l.standing.Epoch != epoch {
		t.Fatal("another leader")
	}
	s.whole()
}

// TestHungDisksOfAMajorityWait hangs the disks of a majority. It checks that no server without a
// quorum of working disks leads, that no write is lost, and that a server leads again once one of
// the disks answers again.
func TestHungDisksOfAMajorityWait(t *testing.T) {
	for _, voters := range []int{3, 5} {
		for seed := uint64(1); seed <= 5; seed++ {
			s := halfDead(t, seed, voters)
			s.write(s.leader(), 5)
			before := s.history.Last().Zxid
			n := voters/2 + 1
			for _, i := range s.random.Shuffled(voters)[:n] {
				s.Do(Act{Kind: HangDisk, A: i + 1})
			}
			s.Do(Act{Kind: Kill, A: int(s.leader().id)})
			for _, v := range s.servers {
				s.Do(Act{Kind: Start, A: int(v.id)})
			}
			s.RunFor(20 * machine.Second)
			freed := s.now
			for _, v := range s.servers {
				if v.hung {
					s.Do(Act{Kind: FreeDisk, A: int(v.id)})
				}
			}
			t.Logf("%d voters, seed %d: %d ms behind the last answer", voters, seed, s.led(freed, s.servers))
			if s.history.Last().Zxid < before {
				t.Errorf("seed %d: history ends at %v, was at %v", seed, s.history.Last().Zxid, before)
			}
			s.whole()
		}
	}
}

// TestCandidateThatCannotBeJoined checks that the others elect another server if learners
// cannot reach the one that would win. Its port for learners is filtered, in both
// directions or one, or answers late, while its election port is open.
func TestCandidateThatCannotBeJoined(t *testing.T) {
	for name, fault := range map[string]Act{
		"filtered": {Kind: Filter, Value: filterIn | filterOut}, "filtered in": {Kind: Filter, Value: filterIn},
		"filtered out": {Kind: Filter, Value: filterOut}, "late": {Kind: SlowPort, Value: 5 * machine.Second},
	} {
		for _, voters := range []int{3, 5} {
			t.Run(fmt.Sprintf("%s, %d voters", name, voters), func(t *testing.T) {
				for seed := uint64(1); seed <= 3; seed++ {
					s := halfDead(t, seed, voters)
					s.write(s.leader(), 3)
					best := s.servers[voters-1]
					for _, v := range s.servers {
						s.Do(Act{Kind: Kill, A: int(v.id)})
					}
					s.RunFor(machine.Second)
					a := fault
					a.A = int(best.id)
					s.Do(a)
					began := s.now
					for _, v := range s.servers {
						s.Do(Act{Kind: Start, A: int(v.id)})
					}
					t.Logf("seed %d: %d ms", seed, s.led(began, s.without(best)))
					s.whole()
				}
			})
		}
	}
}

// TestFilteredLeaderWithMoreHistory filters the port of a leader for learners while clients
// write, so that only the leader has the last transactions, and restarts it. It checks that
// the others elect one of themselves, which lacks these transactions.
func TestFilteredLeaderWithMoreHistory(t *testing.T) {
	for _, voters := range []int{3, 5} {
		for seed := uint64(1); seed <= 5; seed++ {
			s := halfDead(t, seed, voters)
			old := s.leader()
			s.write(old, 3)
			c := s.client(old)
			s.Do(Act{Kind: Filter, A: int(old.id), Value: filterIn | filterOut})
			for range 5 { // these writes reach the log of the leader only
				c.Ask(c.Creation(fmt.Sprintf("/tail-%d", c.Xid)))
			}
			s.until("only the leader has the newest transactions", machine.Second, func() bool {
				return !slices.ContainsFunc(s.without(old), func(v *server) bool { return v.ends() >= old.ends() })
			})
			s.RunFor(100 * machine.Millisecond) // they become durable
			gone := s.now
			s.Do(Act{Kind: Kill, A: int(old.id)})
			s.Do(Act{Kind: Start, A: int(old.id)})
			t.Logf("seed %d: %d ms", seed, s.led(gone, s.without(old)))
			s.RunFor(20 * machine.Second)
			if l := s.leader(); l == nil || l == old {
				t.Fatalf("seed %d: the leader has not stayed", seed)
			}
			s.whole()
		}
	}
}

// TestSilentLeaderIsNotElectedAgain filters the port of a leader for learners while clients write, so that only the leader has
// the last transactions, and its followers hear nothing more. It checks that these elect one of themselves at once.
func TestSilentLeaderIsNotElectedAgain(t *testing.T) {
	for seed := uint64(1); seed <= 40; seed++ {
		s := halfDead(t, seed, 3)
		old := s.leader()
		s.write(old, 3)
		c := s.client(old)
		s.Do(Act{Kind: Filter, A: int(old.id), Value: filterIn | filterOut})
		began := s.now
		c.Ask(c.Creation("/tail"))
		s.until("the others elect one of themselves", 1500*machine.Millisecond, func() bool {
			l := s.leader()
			return l != nil && l != old
		})
		t.Logf("seed %d: %d ms", seed, (s.now-began)/machine.Millisecond)
	}
}

// TestOnlyCandidateIsElectedAgain makes the only remaining server with the last committed
// transaction unreachable for learners. It checks that this server is elected again and
// again, and leads as soon as learners can reach it.
func TestOnlyCandidateIsElectedAgain(t *testing.T) {
	s := halfDead(t, 1, 3)
	l := s.leader()
	first, last := s.without(l)[0], s.without(l)[1]
	s.Do(Act{Kind: Kill, A: int(first.id)})
	s.RunFor(machine.Second)
	s.write(l, 3) // the first server lacks these writes
	want := s.history.Last().Zxid
	for _, v := range []*server{l, last} {
		s.Do(Act{Kind: Kill, A: int(v.id)})
	}
	s.Do(Act{Kind: Filter, A: int(last.id), Value: filterIn | filterOut})
	s.Do(Act{Kind: Start, A: int(first.id)})
	s.Do(Act{Kind: Start, A: int(last.id)})
	s.RunFor(60 * machine.Second)
	if s.leader() != nil {
		t.Fatal("a leader that nobody can join")
	}
	s.Do(Act{Kind: Unfilter, A: int(last.id)})
	s.until("the only candidate leads", 40*machine.Second, func() bool { return s.leader() == last })
	if now := s.history.Last().Zxid; now < want {
		t.Errorf("the history ends at %v, was at %v", now, want)
	}
	s.whole()
}

// TestPromiseIsLostWithTheDisk lets a voter promise an epoch, lose its disk and come back
// while the leader still collects promises. It checks that the earlier promise does not
// count.
func TestPromiseIsLostWithTheDisk(t *testing.T) {
	for seed := uint64(1); seed <= 20; seed++ {
		s := halfDead(t, seed, 5)
		old := s.leader()
		s.write(old, 3)
		for _, v := range s.servers {
			s.Do(Act{Kind: Kill, A: int(v.id)})
		}
		for _, v := range s.servers[:3] {
			s.Do(Act{Kind: SlowDisk, A: int(v.id), Value: 200 * machine.Millisecond})
		}
		for _, v := range s.servers {
			s.Do(Act{Kind: Start, A: int(v.id)})
		}
		s.RunFor(s.random.Between(10*machine.Millisecond, 800*machine.Millisecond))
		s.Do(Act{Kind: Kill, A: 1})
		s.Do(Act{Kind: Wipe, A: 1})
		s.Do(Act{Kind: Start, A: 1})
		for _, v := range s.servers {
			s.Do(Act{Kind: SlowDisk, A: int(v.id)})
		}
		s.whole()
	}
}

// TestServersRememberDifferentFailedTerms keeps learners from the best candidate, and restarts the others
// one after the other, so that each remembers different failed terms. It checks that they
// elect one of themselves once the restarts end.
func TestServersRememberDifferentFailedTerms(t *testing.T) {
	for seed := uint64(11); seed <= 30; seed++ {
		s := halfDead(t, seed, 5)
		best := s.servers[4]
		s.write(s.leader(), 3)
		s.Do(Act{Kind: Filter, A: 5, Value: filterIn | filterOut})
		for _, v := range s.servers {
			s.Do(Act{Kind: Kill, A: int(v.id)})
		}
		for _, v := range s.servers {
			s.Do(Act{Kind: Start, A: int(v.id)})
		}
		for range 15 {
			v := s.servers[s.random.Below(5)]
			s.Do(Act{Kind: Kill, A: int(v.id)})
			s.Do(Act{Kind: Start, A: int(v.id)})
			s.RunFor(s.random.Between(50*machine.Millisecond, 1500*machine.Millisecond))
		}
		t.Logf("seed %d: %d ms", seed, s.led(s.now, s.without(best)))
		s.whole()
	}
}
