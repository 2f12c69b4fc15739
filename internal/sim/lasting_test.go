package sim

import (
	"testing"

	"bellwether/internal/sim/machine"
)

// TestLastingFaultsForAnHour checks that an ensemble serves, and keeps its leader, while a
// minority has a fault for an hour.
func TestLastingFaultsForAnHour(t *testing.T) {
	for _, kind := range lastings {
		t.Run(string(kind), func(t *testing.T) {
			s := New(Options{Seed: 1, Lasting: kind, Compatible: -1, Clients: 2, Candidates: -1, CounterMax: counterAmple, ThinkMS: 1000, LocalSessions: -1, Busy: -1})
			s.await("all serve", recoverBound+recoverTicks*s.opt.TickMS*machine.Millisecond, s.allServe)
			s.endure(3600 * machine.Second)
			if s.failed != nil {
				t.Error(s.failed.Report(100))
			}
		})
	}
}

// TestChurnIsNoticed checks that a change of leaders during a lasting fault fails a run.
func TestChurnIsNoticed(t *testing.T) {
	s := New(Options{Seed: 1, Lasting: Dead, Compatible: -1, CounterMax: counterAmple, Busy: -1})
	s.await("all serve", recoverBound+recoverTicks*s.opt.TickMS*machine.Millisecond, s.allServe)
	l := s.leader()
	s.after(machine.Second, l.kill)
	s.steady(20*machine.Second, "although nothing is wrong")
	if s.failed == nil || s.failed.Rule != "Steadiness" {
		t.Errorf("%v, want a failure of Steadiness", s.failed)
	}
}

// TestALaterPromiseMayEndTerms checks that a run accepts changes of leaders, but no further one, for a server that had promised
// a later epoch than that of the leader before the lasting fault was checked. Found by seed 1795977756162621765.
func TestALaterPromiseMayEndTerms(t *testing.T) {
	for _, churn := range []bool{false, true} {
		s := newScene(t, Options{Voters: 3, EpochRot: 1})
		first, v := s.leader(), s.other()
		s.Do(Act{Kind: RotEpoch, A: int(v.id), Value: 5}) // its acceptedEpoch, 1, becomes 3
		s.Do(Act{Kind: PowerOff, A: int(v.id)})
		s.Do(Act{Kind: Start, A: int(v.id)})
		if got := v.saved.Accepted - first.standing.Epoch; got != 2 {
			t.Fatalf("it has promised %d epochs more than that of the leader", got)
		}
		if churn {
			for i := range int64(3) { // two terms may end for the promise
				s.after((10+5*i)*machine.Second, func() {
					l := s.leader()
					l.kill()
					s.after(machine.Second, l.start)
				})
			}
		}
		s.steady(30*machine.Second, "although a server has promised a later epoch")
		if !churn && s.allServe() != "" {
			t.Error(s.allServe())
		}
		if (s.failed != nil) != churn {
			t.Errorf("churn %v: %v", churn, s.failed)
		}
	}
}

// TestUserTimeoutEndsCutConnections checks that an end with unacknowledged data learns that its
// connection is over once the machines have been cut off from each other for the user timeout,
// and not before.
func TestUserTimeoutEndsCutConnections(t *testing.T) {
	s := New(Options{Seed: 1, Clients: -1, Candidates: -1})
	a, b := &s.servers[0].Host, &s.servers[1].Host
	c := s.net.newConn(a, b)
	var told []string
	for i := range c.ends {
		c.ends[i].userTimeout = 5 * machine.Second
		c.ends[i].take = func(any) {}
		c.ends[i].gone = func(why string) { told = append(told, why) }
	}
	s.net.block(a, b)
	c.send(0, "lost")
	s.RunFor(4 * machine.Second)
	if len(told) > 0 {
		t.Fatalf("told %q before the timeout", told)
	}
	s.net.unblock(a, b)
	s.RunFor(10 * machine.Second)
	if len(told) > 0 {
		t.Fatalf("told %q although all packets pass", told)
	}
	s.net.block(b, a) // the acknowledgement is lost
	c.send(0, "not acknowledged")
	s.RunFor(6 * machine.Second)
	if len(told) != 1 || told[0] != "connection timed out" {
		t.Fatalf("told %q, want one timeout", told)
	}
}
