package sim

import "bellwether/internal/sim/client"
import "bellwether/internal/sim/machine"
import "testing"

// busySeeds is how many seeds TestBusyBatches plays.
const busySeeds = 50

// TestBusyBatches checks that servers break no rule when a batch takes long and they send
// and answer heartbeats in the middle of it. It also checks that every situation of such a
// batch occurs.
func TestBusyBatches(t *testing.T) {
	reached := map[string]int{}
	for seed := uint64(1); seed <= busySeeds && !t.Failed(); seed++ {
		r := play(t, Options{Seed: seed, Voters: 3, Observers: -1, Clients: 4, ThinkMS: 20, Compatible: -1, Groups: -1, Moves: -1, Busy: 1})
		for name, n := range r.Reached {
			reached[name] += n
		}
	}
	for _, x := range []situation{situationHeartbeat, situationHeartbeatBehind, situationHeartbeatLong, situationHeartbeatAnswered} {
		t.Logf("%6d %s", reached[situationNames[x]], situationNames[x])
		if reached[situationNames[x]] < busySeeds/10 {
			t.Errorf("too seldom: %s", situationNames[x])
		}
	}
}

// busyWith makes a client send a write over which a server takes long.
func (s *scene) busyWith(v *server, k *client.Call, c *client.Client, long int64) *client.Call {
	s.t.Helper()
	v.longRequest = longRequest{k.Op, long}
	c.Ask(k)
	s.until("the server is busy", machine.Second, func() bool { return v.longRequest.long == 0 })
	return k
}

// TestLeaseOfABusyLeader cuts a leader off at the end of a long batch. It checks how long the
// leader then holds its lease: exactly as long as the answers to the pings of the middle of the
// batch allow.
func TestLeaseOfABusyLeader(t *testing.T) {
	s := newScene(t, Options{Voters: 3})
	l := s.leader()
	c := s.client(l)
	s.carried(c.Ask(c.Creation("/a")))
	k := s.busyWith(l, c.Write("/a"), c, 1200*machine.Millisecond)
	s.until("the batch is over", 2*machine.Second, func() bool { return !l.stepped })
	if k.Done != 0 || s.reached[situationHeartbeatLong] == 0 || !l.leads() {
		t.Fatalf("answered at %d, %d late pings, leads: %v", k.Done, s.reached[situationHeartbeatLong], l.leads())
	}
	s.cut(l)
	s.RunFor(20 * machine.Millisecond)
	at := l.mono()
	s.until("the lease ends", 600*machine.Millisecond, func() bool { return l.mono() > l.lease.Mono })
	if l.mono() < at+200 {
		t.Errorf("the lease ended %d ms behind the batch: the answers to its pings do not count", l.mono()-at)
	}
}

// TestLeaseOfALeaderCutOffWhileBusy checks that answers to the first pings of a long batch
// do not count as answers to the last ones.
func TestLeaseOfALeaderCutOffWhileBusy(t *testing.T) {
	s := newScene(t, Options{Voters: 3})
	l := s.leader()
	c := s.client(l)
	s.carried(c.Ask(c.Creation("/a")))
	s.busyWith(l, c.Write("/a"), c, 1200*machine.Millisecond)
	s.RunFor(300 * machine.Millisecond)
	s.cut(l)
	s.until("the batch is over", 2*machine.Second, func() bool { return !l.stepped })
	s.RunFor(20 * machine.Millisecond)
	if l.leads() && l.mono() <= l.lease.Mono {
		t.Errorf("it holds its lease for %d ms more, 900 ms behind the cut", l.lease.Mono-l.mono())
	}
}

// TestBusyLeaderHasNothingOnItsDisk checks that the proposals that a leader sends in the middle
// of a batch do not count as durable on the leader. In an ensemble of three, the acknowledgement
// of one follower does not commit them.
func TestBusyLeaderHasNothingOnItsDisk(t *testing.T) {
	s := newScene(t, Options{Voters: 3})
	l, f := s.leader(), s.other()
	c := s.client(l)
	s.carried(c.Ask(c.Creation("/a")))
	for _, v := range s.servers {
		if v != l && v != f {
			s.Do(Act{Kind: Kill, A: int(v.id)})
		}
	}
	s.Do(Act{Kind: SlowDisk, A: int(l.id), Value: 400 * machine.Millisecond})
	k := s.busyWith(l, c.Write("/a"), c, 500*machine.Millisecond)
	s.until("the follower has it", machine.Second, func() bool { return f.store.Synced() > l.store.Synced() })
	if !l.stepped {
		t.Fatal("it was proposed behind the batch")
	}
	s.until("the batch is over", machine.Second, func() bool { return !l.stepped })
	s.RunFor(100 * machine.Millisecond)
	if k.Done != 0 {
		t.Fatal("answered with a quorum that does not have it")
	}
	s.carried(k)
	if l.store.Synced() < f.store.Synced() {
		t.Errorf("answered, and %v is on the disk of its leader", l.store.Synced())
	}
}

// TestBusyObserverLagsBehind lets a server answer pings in the middle of a batch, so that
// it learns late that a session has ended. It checks that requests which it forwards for
// that session afterwards are not carried out, however long the batch took.
func TestBusyObserverLagsBehind(t *testing.T) {
	for _, long := range []int64{1500, 2500, 3500, 4500, 6000, 8000} {
		s := newScene(t, Options{Voters: 3, Observers: 1, LocalSessions: 1, KeepClients: 1})
		v := s.servers[3]
		c, other := s.client(v), s.client(v)
		s.carried(c.Ask(c.Creation("/a")))
		s.carried(c.Ask(c.EphemeralCreation("/e")))
		s.busyWith(v, other.Write("/a"), other, long*machine.Millisecond)
		c.Ask(c.Write("/a")) // waits in the inbox
		s.until("the batch is over", 10*machine.Second, func() bool { return !v.stepped })
		s.RunFor(2 * machine.Second)
		if s.failed != nil {
			t.Errorf("busy for %d ms: %v", long, s.failed)
		}
	}
}
