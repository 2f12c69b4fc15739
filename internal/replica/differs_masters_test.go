package replica

import (
	"testing"

	"bellwether/internal/ensemble"
)

// This file tests observers that learn from observer masters and whose trees differ.

// behindMasters starts three voters with a znode /x and two observers, whose masters are followers. The last voter leads.
func behindMasters(t *testing.T, set func(*cluster)) (h *cluster, four, five *server) {
	h = observed(t, 5, set)
	_, c := h.connect(h.leader(), 0)
	h.create(h.leader(), c, 1, "/x")
	h.run(3000)
	h.offsets(40)
	return h, h.server(4), h.server(5)
}

// asked counts how often an observer has asked its master to let it connect to the leader.
func (s *server) asked() int {
	return s.count(func(o Observation) bool { _, ok := o.(AsksLeader); return ok })
}

// TestWrongMaster: the tree of an observer master is wrong, and an observer has got it by a snapshot. Both get a snapshot of the leader, and
// the observer that has the right tree keeps it.
func TestWrongMaster(t *testing.T) {
	h, four, five := behindMasters(t, nil)
	l, master := h.leader(), h.masterOf(four)
	master.spoil("/x")
	h.lose(four)
	for h.run(1500); h.masterOf(four) != master; h.run(1500) { // with the other master it would get the right tree
		h.lose(four)
	}
	if !four.wrong("/x") {
		t.Fatal("the observer has the right tree")
	}
	h.busy(30_000, func() {
		if five.wrong("/x") || l.wrong("/x") {
			t.Fatal("a right tree is replaced")
		}
	})
	for _, s := range []*server{master, four} {
		if s.wrong("/x") || s.replaced() != 1 || s.stopped != "" {
			t.Errorf("server %d: wrong %v, %d snapshots, stopped by %q", s.id, s.wrong("/x"), s.replaced(), s.stopped)
		}
	}
	if five.asked() > 0 || h.leader() != l {
		t.Errorf("observer 5 has left its master %d times, server %d leads", five.asked(), h.leader().id)
	}
}

// TestFaultyMemoryOfAMaster: the snapshots of an observer master are wrong, but not its tree. An observer that gets one, more than once in a
// term, gets each time a snapshot of the leader. It is not stopped.
func TestFaultyMemoryOfAMaster(t *testing.T) {
	h, o, _ := behindMasters(t, nil)
	l, master := h.leader(), h.masterOf(o)
	h.spoils = master
	for range 3 {
		h.lose(o)
		for h.run(1500); h.masterOf(o) != master; h.run(1500) {
			h.lose(o)
		}
		if !o.wrong("/x") {
			t.Fatal("the observer has the right tree")
		}
		before := o.replaced()
		h.busy(30_000, func() {})
		if o.stopped != "" || o.wrong("/x") || o.replaced() != before+1 || h.leader() != l {
			t.Fatalf("wrong: %v, %d snapshots, stopped by %q, server %d leads", o.wrong("/x"), o.replaced()-before, o.stopped, h.leader().id)
		}
	}
}

// TestWrongLeaderOfObservers: observers behind followers notice that the leader's tree is wrong. They stay with their masters, because the
// voters find out which tree is wrong, and keep their trees.
func TestWrongLeaderOfObservers(t *testing.T) {
	h, four, five := behindMasters(t, nil)
	l := h.leader()
	l.spoil("/x")
	h.busy(30_000, func() {
		if four.wrong("/x") || five.wrong("/x") {
			t.Fatal("an observer has taken over the wrong tree")
		}
	})
	if l.wrong("/x") || four.named() == 0 || four.asked()+five.asked() > 0 || four.doubts() || five.doubts() {
		t.Errorf("wrong leader: %v, %d alarms, asked %d and %d times, in doubt: %v, %v", l.wrong("/x"), four.named(), four.asked(), five.asked(), four.doubts(), five.doubts())
	}
}

// TestObserversOfAWrongLeaderStay: the leader's tree is wrong, and no quorum finds that. The observers stay with their master, whose tree
// differs from the leader's too. They raise the alarm and keep their trees.
func TestObserversOfAWrongLeaderStay(t *testing.T) {
	h, four, five := behindMasters(t, nil)
	h.kill(h.servers[1])
	h.run(3000)
	l, master := h.leader(), h.servers[0]
	l.spoil("/x")
	h.busy(120_000, func() {})
	for _, o := range []*server{four, five} {
		if o.wrong("/x") || h.masterOf(o) != master || o.named() != 1 || o.asked() < 2 {
			t.Errorf("observer %d: wrong %v, %d alarms, asked %d times, %+v", o.id, o.wrong("/x"), o.named(), o.asked(), o.r.Status())
		}
	}
	if h.leader() != l || !l.wrong("/x") || !master.doubts() {
		t.Error("another server leads, or nothing is in doubt")
	}
	h.kill(master)
	h.run(500)
	h.start(master)
	h.run(3000)
	for _, o := range []*server{four, five} {
		if m := h.masterOf(o); h.leader() != l || m != master {
			t.Errorf("after the leader was elected again: %+v", o.r.Status())
		}
	}
	h.start(h.servers[1])
	h.busy(20_000, func() {})
	for _, o := range []*server{four, five} {
		if m := h.masterOf(o); h.leader() == l || m == h.leader() || o.doubts() || o.wrong("/x") {
			t.Errorf("with a quorum: observer %d: in doubt %v, wrong %v, %+v", o.id, o.doubts(), o.wrong("/x"), o.r.Status())
		}
	}
}

// TestObserverCannotReachTheLeader: an observer whose tree differs and that cannot connect to the leader goes on with its masters, with the
// alarm, and tries at growing intervals. It does not ask if the leader or its master is a ZooKeeper server.
func TestObserverCannotReachTheLeader(t *testing.T) {
	h, o, _ := behindMasters(t, nil)
	h.remote = []*server{h.leader()}
	o.spoil("/x")
	var asked []int64
	h.busy(300_000, func() {
		if o.asked() > len(asked) {
			asked = append(asked, h.now.Mono)
		}
	})
	if m := h.masterOf(o); m == nil || m == h.leader() || !o.wrong("/x") || !o.doubts() || len(asked) < 3 || len(asked) > 5 {
		t.Errorf("%+v, wrong: %v, asked at %d", o.r.Status(), o.wrong("/x"), asked)
	}
	for i := range len(asked) - 2 {
		if before, pause := asked[i+1]-asked[i], asked[i+2]-asked[i+1]; pause*10 < before*19 || pause*10 > before*21 {
			t.Errorf("asked at %d: a pause of %d ms follows one of %d ms", asked, pause, before)
		}
	}
	h.remote = nil
	h.busy(400_000, func() {})
	if o.wrong("/x") || o.replaced() != 1 {
		t.Errorf("wrong: %v, %d snapshots", o.wrong("/x"), o.replaced())
	}
	for _, compatible := range [][]ensemble.ServerID{{3}, {1, 2}, {4}} {
		h, o, _ := behindMasters(t, func(h *cluster) {
			h.compatible = map[ensemble.ServerID]bool{}
			for _, id := range compatible {
				h.compatible[id] = true
			}
		})
		o.spoil("/x")
		h.busy(60_000, func() {})
		if h.leader().id != 3 || o.named() != 1 || o.asked() > 0 || !o.wrong("/x") {
			t.Errorf("compatible servers %v: %d alarms, asked %d times, wrong: %v", compatible, o.named(), o.asked(), o.wrong("/x"))
		}
	}
}

// TestAttemptsToReachTheLeaderBeginAnew: an observer that could not connect to the former leader for long does not wait longer with the next one.
func TestAttemptsToReachTheLeaderBeginAnew(t *testing.T) {
	h, o, _ := behindMasters(t, nil)
	l := h.leader()
	h.remote = []*server{l}
	o.spoil("/x")
	h.busy(300_000, func() {})
	if h.kill(l); o.asked() < 3 {
		t.Fatalf("asked %d times", o.asked())
	}
	h.busy(30_000, func() {})
	if o.wrong("/x") || o.replaced() != 1 {
		t.Errorf("wrong: %v, %d snapshots, asked %d times", o.wrong("/x"), o.replaced(), o.asked())
	}
}
