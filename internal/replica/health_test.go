package replica

import (
	"slices"
	"strings"
	"testing"

	"bellwether/internal/ensemble"
	"bellwether/internal/zab"
)

// TestLateTicks: five late ticks within a minute mean that another server should lead, until a minute
// after the first of them.
func TestLateTicks(t *testing.T) {
	const tickMS, late = 2000, 2000/4 + lateMS + 1
	var h health
	now := int64(100_000)
	for i := range 2 * lateTicksMax {
		now += 1000
		h.ticked(now, late, tickMS)
		if reason := h.reason(now); (reason != "") != (i >= lateTicksMax-1) {
			t.Errorf("after %d late ticks: %q", i+1, reason)
		}
	}
	last := now - 1000*(lateTicksMax-1)
	if h.reason(last+lateWithinMS-1) == "" || h.reason(last+lateWithinMS) != "" {
		t.Error("the late ticks do not count for a minute")
	}
	h = health{}
	for range lateTicksMax {
		now += 1000
		h.ticked(now, late-1, tickMS)
	}
	if reason := h.reason(now); reason != "" {
		t.Errorf("ticks in time: %s", reason)
	}
}

// givesWay returns the transfers of a server because of its health.
func givesWay(s *server) (to []ensemble.ServerID) {
	for _, o := range s.seen {
		if g, ok := o.(GivesWay); ok {
			to = append(to, g.Server)
		}
	}
	return to
}

// TestLeaderWithoutRoomGivesWay: without any traffic, a leader whose disk has no room transfers
// leadership to the server with the highest priority that can lead. If the others are no quorum
// without it, it stays.
func TestLeaderWithoutRoomGivesWay(t *testing.T) {
	h := newCluster(t, 3, true)
	h.priorities = map[ensemble.ServerID]int{1: -2, 2: -5}
	h.kill(h.servers[1])
	h.run(500)
	old := h.leader()
	old.inbox = append(old.inbox, NoRoom{})
	h.run(5000)
	if h.leader() != old || old.r.Status().GivesWay == "" {
		t.Fatalf("server %d has given way although it is needed (%+v)", old.id, old.r.Status())
	}
	for _, s := range h.servers {
		h.kill(s)
	}
	for _, s := range h.servers {
		h.start(s)
	}
	h.run(2000)
	old = h.leader()
	old.inbox = append(old.inbox, NoRoom{})
	h.run(2000)
	if st := h.leader().r.Status(); st.Leader != 1 || !st.Appointed {
		t.Errorf("%+v, after a leader without room", st)
	}
	old.inbox = append(old.inbox, Room{})
	h.run(1000)
	if why := old.r.Status().GivesWay; why != "" {
		t.Errorf("with room again: %s", why)
	}
}

// TestNobodyGivesWayForEver: if no server has room, and the leader notices that before it hears it from the
// others, it gives way. The next leader knows that no other server is better, and goes on leading.
func TestNobodyGivesWayForEver(t *testing.T) {
	h := newCluster(t, 3, true)
	h.run(500)
	for _, s := range h.servers {
		s.inbox = append(s.inbox, NoRoom{})
	}
	h.run(10_000)
	n := 0
	for _, s := range h.servers {
		n += len(givesWay(s))
	}
	if l := h.leader(); n != 1 || !l.r.Status().Serving {
		t.Errorf("%d transfers, then %+v", n, l.r.Status())
	}
	epoch := h.leader().r.Status().Epoch
	h.run(avoidMS - 60_000)
	if now := h.leader().r.Status().Epoch; now != epoch {
		t.Errorf("epoch %d after %d", now, epoch)
	}
}

// TestFailedTransferIsNotRepeatedAtOnce: a leader that should not lead and whose transfer has failed, so
// that it is elected again, waits before the next one.
func TestFailedTransferIsNotRepeatedAtOnce(t *testing.T) {
	h := newCluster(t, 3, true)
	h.run(500)
	old := h.leader()
	_, id := h.connect(old, 0)
	h.delay = func(to *server, e Event) bool { return to == old && isAck(e) }
	h.create(old, id, 1, "/a")
	old.inbox = append(old.inbox, NoRoom{}, Tick{})
	h.run(500)
	h.delay, h.delayed = nil, nil
	h.run(retryMS / 2)
	if l := h.leader(); l != old || len(givesWay(old)) != 1 {
		t.Fatalf("server %d leads after %v", l.id, givesWay(old))
	}
	h.run(retryMS)
	if l := h.leader(); l == old || len(givesWay(old)) != 2 {
		t.Errorf("server %d leads after %v", l.id, givesWay(old))
	}
}

// TestFailedPreferenceDoesNotDelayGivingWay: the preferred server cannot be reached by the others, so a leader has transferred leadership to it
// again and again in vain. When its disk has no room, it gives way to another server at once.
func TestFailedPreferenceDoesNotDelayGivingWay(t *testing.T) {
	h := preferring(t, map[ensemble.ServerID]int{1: 1})
	l := h.leader()
	h.remote = h.servers[:1]
	for h.preferences() < 9 {
		h.busy(2*preferMS, func() {})
	}
	h.busy(5000, func() {})
	if h.leader() != l {
		t.Fatalf("server %d leads", h.leader().id)
	}
	l.inbox = append(l.inbox, NoRoom{})
	h.busy(5000, func() {})
	if h.leader().id != 2 {
		t.Errorf("server %d leads after transfers to %v", h.leader().id, givesWay(l))
	}
}

// TestLeaderGivesWayToAHealthyServer: a leader whose disk has no room does not give way to a follower that
// says the same, although its priority is higher, and says which follower that is. When that follower has
// room again, it can lead. A follower tells each new leader.
func TestLeaderGivesWayToAHealthyServer(t *testing.T) {
	h := preferring(t, map[ensemble.ServerID]int{1: 5, 3: 9})
	bad := h.servers[0]
	bad.inbox = append(bad.inbox, NoRoom{})
	h.run(1000)
	const why = "server 1: its disk has no room for another log"
	if st := h.leader().r.Status(); st.Unfit != why {
		t.Fatalf("the leader knows as unfit: %q", st.Unfit)
	}
	if _, err := h.leader().r.Successor(1, false); err == nil {
		t.Error("an operator can make server 1 the leader")
	}
	old := h.leader()
	old.inbox = append(old.inbox, NoRoom{})
	h.run(2000)
	l := h.leader()
	if l.id != 2 || len(givesWay(old)) != 1 {
		t.Fatalf("server %d leads after %v", l.id, givesWay(old))
	}
	if st := l.r.Status(); !strings.Contains(st.Unfit, why) || !strings.Contains(st.Unfit, "server 3: ") {
		t.Errorf("the next leader knows as unfit: %q", st.Unfit)
	}
	h.work(2 * preferMS)
	if now := h.leader(); now != l {
		t.Errorf("server %d leads", now.id)
	}
	bad.inbox = append(bad.inbox, Room{})
	h.work(preferMS + 4000)
	if now := h.leader(); now != bad {
		t.Errorf("server %d leads although server 1 has room and priority", now.id)
	}
}

// TestReadySaysWhenPingsWereDue: a leader says when its pings were due, and a follower sends none.
func TestReadySaysWhenPingsWereDue(t *testing.T) {
	h := newCluster(t, 3, true)
	h.run(1000)
	before := h.now.Mono
	h.run(1000)
	if l := h.leader(); l.heartbeat <= before || l.heartbeat > h.now.Mono {
		t.Errorf("pings of the last second were due at %d, which is not between %d and %d", l.heartbeat, before, h.now.Mono)
	}
	if f := h.follower(); f.heartbeat != 0 {
		t.Errorf("a follower's pings were due at %d", f.heartbeat)
	}
}

// TestFollowerTellsThatItsDiskStalls: the leader hears that at once.
func TestFollowerTellsThatItsDiskStalls(t *testing.T) {
	h := newCluster(t, 3, true)
	h.run(500)
	bad := h.servers[0]
	bad.inbox = append(bad.inbox, DiskStalled{Since: h.now.Mono, Duty: "fsync of x"})
	h.run(2)
	if st := h.leader().r.Status(); st.Unfit != "server 1: the disk does not answer: fsync of x" {
		t.Errorf("%q", st.Unfit)
	}
	bad.inbox = append(bad.inbox, DiskAnswered{})
	h.run(600)
	if st := h.leader().r.Status(); st.Unfit != "" {
		t.Errorf("%q", st.Unfit)
	}
}

// TestFirstReasonIsReported: a follower finds at one tick that its disk has no room and that its tree differs. Its leader reports what the
// follower says of itself, and not both.
func TestFirstReasonIsReported(t *testing.T) {
	h, s := differing(t, 3)
	s.spoil("/x")
	s.inbox = append(s.inbox, NoRoom{})
	h.connect(h.leader(), 0)
	h.run(1000)
	var why []string
	for _, o := range h.leader().seen {
		if f, ok := o.(zab.LearnerFitness); ok {
			why = append(why, f.Why)
		}
	}
	if len(why) == 0 || s.named() != 1 || slices.ContainsFunc(why, func(y string) bool { return strings.Contains(y, "tree differs") }) {
		t.Errorf("%d alarms, reported: %q", s.named(), why)
	}
}
