package replica

import (
	"slices"
	"strings"
	"testing"

	"bellwether/internal/ensemble"
	"bellwether/internal/zab"
)

func (s *server) outvoted() int {
	return s.count(func(o Observation) bool { _, ok := o.(zab.Outvoted); return ok })
}

// TestOutvotedLeaderIsNotPreferred: if leadership was not transferred, an outvoted leader and the followers that differ from it prefer
// other candidates for a while. A follower whose own tree is wrong does not.
func TestOutvotedLeaderIsNotPreferred(t *testing.T) {
	for _, c := range []struct {
		name   string
		leader bool
		set    func(*differs)
		want   bool
	}{
		{"the leader", true, func(d *differs) { d.verdict.why = "it is wrong" }, true},
		{"a leader that was not outvoted", true, func(d *differs) { d.why = "it differs" }, false},
		{"a follower", false, func(d *differs) { d.why = "it differs" }, true},
		{"a follower that is wrong", false, func(d *differs) { d.why, d.verdict.why = "it differs", "it is wrong" }, false},
		{"a follower that is equal", false, func(*differs) {}, false},
	} {
		h, s := differing(t, 3)
		l := h.leader()
		if c.leader {
			s = l
		}
		c.set(&s.r.differs)
		s.r.ended("test", nil, nil)
		if _, noted := s.r.member.failed[l.id]; noted != c.want {
			t.Errorf("%s: %v", c.name, noted)
		}
	}
}

// lose lets a server start again with an empty disk.
func (h *cluster) lose(s *server) {
	if s.up {
		h.kill(s)
	}
	h.run(500)
	s.wipe()
	s.stopped = ""
	h.start(s)
}

// TestFaultyMemoryOfTheLeader: bytes in the memory of the leader have changed, which its digest does not show but its snapshots do. A
// server that gets one because it has lost its disk keeps the alarm. It gets no further snapshot and is not stopped, however often
// its process begins anew. A follower whose tree is wrong gets one such snapshot, and then no other one gets any.
func TestFaultyMemoryOfTheLeader(t *testing.T) {
	for _, voters := range []int{3, 5} {
		h, s := differing(t, voters)
		h.offsets(40)
		l := h.leader()
		h.spoils = l
		h.busy(5000, func() {})
		for n := 1; n <= 3; n++ {
			h.lose(s)
			h.busy(20_000, func() {})
			if h.snapshots != n || s.stopped != "" || h.leader() != l || l.stopped != "" {
				t.Fatalf("%d voters: %d snapshots for %d disks, stopped by %q, server %d leads", voters, h.snapshots, n, s.stopped, h.leader().id)
			}
			if st := s.r.Status(); !strings.Contains(st.Differs, "the server that sent that snapshot may be the faulty one") {
				t.Errorf("the alarm says %q", st.Differs)
			}
		}
		if n := l.count(func(o Observation) bool {
			w, ok := o.(zab.WrongTree)
			return ok && strings.Contains(w.Then, "whose memory may be the faulty one")
		}); n != 3 {
			t.Errorf("the leader reports its own snapshot %d times", n)
		}
	}
	h, s := differing(t, 5)
	h.offsets(40)
	l := h.leader()
	h.spoils = l
	s.spoil("/x")
	h.servers[1].spoilAs("/x", "also wrong")
	h.busy(40_000, func() {})
	if h.snapshots != 1 || s.stopped+h.servers[1].stopped != "" {
		t.Errorf("two wrong followers: %d snapshots, stopped by %q and %q", h.snapshots, s.stopped, h.servers[1].stopped)
	}
}

// TestServerThatWasFoundWrongGivesWay: the leader dies after it has found a wrong tree, before the snapshot. If the server with that tree
// is elected, it gives way at once to a server that can lead. It keeps the alarm until a snapshot replaces its tree.
func TestServerThatWasFoundWrongGivesWay(t *testing.T) {
	for _, voters := range []int{3, 5} {
		h, _ := differing(t, voters)
		h.offsets(40)
		l, s := h.leader(), h.servers[voters-2] // of those that remain, it has the largest id, and as much history as the others
		s.spoil("/x")
		h.away = s
		_, c := h.connect(l, 0)
		h.create(l, c, 1, "/y")
		for end := h.now.Mono + 10_000; len(l.r.member.leader.Wrong()) == 0 && h.now.Mono < end; {
			h.run(100)
		}
		h.kill(l)
		h.away = nil
		for range 40 {
			h.run(100)
			if st := s.r.Status(); !strings.Contains(st.Differs, "its tree was wrong") {
				t.Fatalf("%d voters: the alarm says %q", voters, st.Differs)
			}
		}
		if n := h.leader(); n == nil || n == s || voters == 3 && n.r.member.leader.FitMS(s.id) > 0 {
			t.Errorf("%d voters: no leader, or the wrong one, that may lead", voters)
		}
		h.start(l)
		h.busy(10_000, func() {})
		if s.wrong("/x") || s.replaced() != 1 || s.doubts() {
			t.Errorf("%d voters: wrong %v, %d snapshots", voters, s.wrong("/x"), s.replaced())
		}
		for _, o := range h.servers {
			if o != s && (o.wrong("/x") || o.replaced() > 0 || o.stopped != "") {
				t.Errorf("server %d: wrong %v, %d snapshots", o.id, o.wrong("/x"), o.replaced())
			}
		}
	}
}

// TestOutvotedLeaderTriesEachServer: the server to which an outvoted leader transfers leadership cannot be reached by the others, so the
// former leader is elected again. Then it chooses another one. If none can lead, it stays, with the alarm, and tries again at growing
// intervals.
func TestOutvotedLeaderTriesEachServer(t *testing.T) {
	transfers := func(s *server) (to []ensemble.ServerID) {
		for _, o := range s.seen {
			if x, ok := o.(zab.TransferBegan); ok {
				to = append(to, x.To)
			}
		}
		return to
	}
	for _, offset := range []int64{0, 20, 150} {
		h, s := differing(t, 3)
		h.offsets(offset)
		l := h.leader()
		h.remote = h.servers[1:2]
		l.spoil("/x")
		h.busy(20_000, func() {})
		if h.leader() != s || !slices.Equal(transfers(l), []ensemble.ServerID{2, 1}) || l.wrong("/x") {
			t.Errorf("offset %d: server %d leads after transfers to %v; wrong: %v", offset, h.leader().id, transfers(l), l.wrong("/x"))
		}

		h, _ = differing(t, 3)
		h.offsets(offset)
		l = h.leader()
		h.remote = h.servers[:2]
		l.spoil("/x")
		h.busy(600_000, func() {})
		if n := len(transfers(l)); h.leader() != l || n < 6 || n > 14 || !strings.Contains(l.r.Status().Differs, "its tree was wrong") {
			t.Errorf("offset %d: server %d leads after transfers to %v; the alarm says %q", offset, h.leader().id, transfers(l), l.r.Status().Differs)
		}
		h.remote = nil
		h.busy(1_200_000, func() {})
		if h.leader() == l || l.wrong("/x") || l.replaced() != 1 {
			t.Errorf("offset %d: server %d leads, wrong: %v, %d snapshots", offset, h.leader().id, l.wrong("/x"), l.replaced())
		}
	}
}

// TestOutvotedLeaderGivesWayToAnAvoidedServer: the last terms of both followers have ended badly, and at first the others cannot reach them. An
// outvoted leader gives way to one of them nevertheless as soon as that one can lead, but rather to one whose last term has not ended badly.
func TestOutvotedLeaderGivesWayToAnAvoidedServer(t *testing.T) {
	for _, avoided := range [][]ensemble.ServerID{{1, 2}, {2}, {1}} {
		h, _ := differing(t, 3)
		h.offsets(20)
		l := h.leader()
		for _, id := range avoided {
			l.r.member.preference.avoid[id] = badEnd{at: h.now.Mono}
		}
		h.remote = h.servers[:2]
		l.spoil("/x")
		h.busy(15_000, func() {})
		if h.leader() != l {
			t.Fatalf("server %d leads", h.leader().id)
		}
		h.remote = nil
		h.busy(40_000, func() {})
		if next := h.leader(); next == l || l.wrong("/x") || len(avoided) == 1 && next.id == avoided[0] {
			t.Errorf("servers %v are avoided: server %d leads, wrong: %v", avoided, next.id, l.wrong("/x"))
		}
	}
}
