package sim

import "testing"

// busySeeds is how many seeds TestBusyBatches plays.
const busySeeds = 50

// TestBusyBatches: servers that take long over a batch, and send and answer
// heartbeats in the middle of it, break no rule, and all that can happen to them in
// there does.
func TestBusyBatches(t *testing.T) {
	reached := map[string]int{}
	for seed := uint64(1); seed <= busySeeds && !t.Failed(); seed++ {
		r := play(t, Options{Seed: seed, Voters: 3, Observers: -1, Clients: 4, ThinkMS: 20, Compatible: -1, Groups: -1, Moves: -1, Busy: 1})
		for name, n := range r.Reached {
			reached[name] += n
		}
	}
	for _, x := range []situation{situationBeat, situationBeatBehind, situationBeatLong, situationBeatAnswered} {
		t.Logf("%6d %s", reached[situationNames[x]], situationNames[x])
		if reached[situationNames[x]] < busySeeds/10 {
			t.Errorf("too seldom: %s", situationNames[x])
		}
	}
}

// busyWith has a server take long over a client's write.
func (s *scene) busyWith(v *server, k *call, c *client, long int64) *call {
	s.t.Helper()
	v.longRequest = longRequest{k.op, long}
	c.ask(k)
	s.until("the server is busy", second, func() bool { return v.longRequest.long == 0 })
	return k
}

// TestLeaseOfABusyLeader: a leader that is cut off at the end of a long batch holds
// its lease for as long as the answers to the pings allow that it sent in the
// middle of it, and no longer.
func TestLeaseOfABusyLeader(t *testing.T) {
	s := newScene(t, Options{Voters: 3})
	l := s.leader()
	c := s.client(l)
	s.carried(c.ask(c.making("/a")))
	k := s.busyWith(l, c.setting("/a"), c, 1200*millisecond)
	s.until("the batch is over", 2*second, func() bool { return !l.stepped })
	if k.done != 0 || s.reached[situationBeatLong] == 0 || !l.leads() {
		t.Fatalf("answered at %d, %d late pings, leads: %v", k.done, s.reached[situationBeatLong], l.leads())
	}
	s.cut(l)
	s.RunFor(20 * millisecond)
	at := l.mono()
	s.until("the lease ends", 600*millisecond, func() bool { return l.mono() > l.lease.Mono })
	if l.mono() < at+200 {
		t.Errorf("the lease ended %d ms behind the batch: the answers to its pings do not count", l.mono()-at)
	}
}

// TestLeaseOfALeaderCutOffWhileBusy: the answers to the first pings of a long batch
// do not prove the last.
func TestLeaseOfALeaderCutOffWhileBusy(t *testing.T) {
	s := newScene(t, Options{Voters: 3})
	l := s.leader()
	c := s.client(l)
	s.carried(c.ask(c.making("/a")))
	s.busyWith(l, c.setting("/a"), c, 1200*millisecond)
	s.RunFor(300 * millisecond)
	s.cut(l)
	s.until("the batch is over", 2*second, func() bool { return !l.stepped })
	s.RunFor(20 * millisecond)
	if l.leads() && l.mono() <= l.lease.Mono {
		t.Errorf("it holds its lease for %d ms more, 900 ms behind the cut", l.lease.Mono-l.mono())
	}
}

// TestBusyLeaderHasNothingOnItsDisk: what a leader proposes in the middle of a batch
// is not on its own disk, and is not committed by one follower of two.
func TestBusyLeaderHasNothingOnItsDisk(t *testing.T) {
	s := newScene(t, Options{Voters: 3})
	l, f := s.leader(), s.other()
	c := s.client(l)
	s.carried(c.ask(c.making("/a")))
	for _, v := range s.servers {
		if v != l && v != f {
			s.Do(Act{Kind: Kill, A: int(v.id)})
		}
	}
	s.Do(Act{Kind: SlowDisk, A: int(l.id), Value: 400 * millisecond})
	k := s.busyWith(l, c.setting("/a"), c, 500*millisecond)
	s.until("the follower has it", second, func() bool { return f.store.Synced() > l.store.Synced() })
	if !l.stepped {
		t.Fatal("it was proposed behind the batch")
	}
	s.until("the batch is over", second, func() bool { return !l.stepped })
	s.RunFor(100 * millisecond)
	if k.done != 0 {
		t.Fatal("answered with a quorum that does not have it")
	}
	s.carried(k)
	if l.store.Synced() < f.store.Synced() {
		t.Errorf("answered, and %v is on the disk of its leader", l.store.Synced())
	}
}

// TestBusyObserverLagsBehind: a server that answers pings in the middle of a batch
// does not hear meanwhile of the end of a session. What it forwards for that
// session afterwards is not carried out, however long the batch took.
func TestBusyObserverLagsBehind(t *testing.T) {
	for _, long := range []int64{1500, 2500, 3500, 4500, 6000, 8000} {
		s := newScene(t, Options{Voters: 3, Observers: 1, LocalSessions: 1, KeepClients: 1})
		v := s.servers[3]
		c, other := s.client(v), s.client(v)
		s.carried(c.ask(c.making("/a")))
		s.carried(c.ask(c.ephemeral("/e")))
		s.busyWith(v, other.setting("/a"), other, long*millisecond)
		c.ask(c.setting("/a")) // waits in the inbox
		s.until("the batch is over", 10*second, func() bool { return !v.stepped })
		s.RunFor(2 * second)
		if s.failed != nil {
			t.Errorf("busy for %d ms: %v", long, s.failed)
		}
	}
}
