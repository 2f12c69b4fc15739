package replica

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"bellwether/internal/ensemble"
	"bellwether/internal/peerwire"
	"bellwether/internal/record"
	"bellwether/internal/zab"
	"bellwether/wire"
)

// spoil makes the tree of a server wrong: it changes the data of a znode without a transaction.
func (s *server) spoil(path string) { s.spoilAs(path, "wrong") }

// spoilAs is spoil with other data, so that two wrong trees differ from each other.
func (s *server) spoilAs(path, data string) {
	s.r.tree.Apply(&record.Txn{TxnHeader: record.TxnHeader{Type: wire.OpSetData, Zxid: 1},
		Body: &record.SetDataTxn{Path: path, Data: []byte(data), Version: 77}})
	s.r.tree.Discard()
}

// wrong reports whether a server has a tree that was made wrong, or a copy of such a tree.
func (s *server) wrong(path string) bool {
	var r wire.DataResponse
	s.r.tree.GetData(anonymousReader{}, path, false, &r)
	return r.Stat.Version == 77
}

// differing starts servers with a znode /x, of which the last one leads, and returns the first one.
func differing(t *testing.T, voters int) (*cluster, *server) {
	h := newCluster(t, voters, true)
	h.run(500)
	_, c := h.connect(h.leader(), 0)
	h.create(h.leader(), c, 1, "/x")
	h.run(3000)
	return h, h.servers[0]
}

// offsets makes the servers tick one after the other.
func (h *cluster) offsets(ms int64) {
	for i, s := range h.servers {
		s.tickAfter = int64(i) * ms
	}
}

// busy lets time pass, with a write in each second if there is a leader, and calls check after each.
func (h *cluster) busy(ms int64, check func()) {
	for end := h.now.Mono + ms; h.now.Mono < end; {
		for _, s := range h.servers {
			if s.up && s.r.decides() {
				h.connect(s, 0)
			}
		}
		h.run(700)
		check()
	}
}

// count counts the observations of a server for which is returns true.
func (s *server) count(is func(Observation) bool) (n int) {
	for _, o := range s.seen {
		if is(o) {
			n++
		}
	}
	return n
}

func (s *server) named() int {
	return s.count(func(o Observation) bool { _, ok := o.(TreeDiffers); return ok })
}

func (s *server) replaced() int {
	return s.count(func(o Observation) bool { _, ok := o.(TreeReplaced); return ok })
}

// TestWrongTreeIsReplacedOnce: a follower whose tree is wrong names the transaction once and gets a snapshot, in the same
// term. When its tree is wrong again in that term, however much later, it stops.
func TestWrongTreeIsReplacedOnce(t *testing.T) {
	for _, voters := range []int{3, 5} {
		for _, later := range []bool{false, true} {
			for _, offset := range []int64{0, 20, 150} {
				h, s := differing(t, voters)
				h.offsets(offset)
				l, epoch := h.leader(), h.leader().r.Status().Epoch
				right := l.r.tree.LastZxid()
				s.spoil("/x")
				h.work(5000)
				if !slices.Contains(s.seen, Observation(TreeDiffers{Zxid: right + 1})) || s.named() != 1 || s.replaced() != 1 || s.wrong("/x") {
					t.Errorf("the first transaction after %v is named %d times, %d snapshots, wrong: %v", right, s.named(), s.replaced(), s.wrong("/x"))
				}
				st := s.r.Status()
				if !st.Serving || st.Epoch != epoch || h.leader() != l || !strings.Contains(st.Differs, "its tree was wrong") || !strings.Contains(st.Differs, "has replaced it") {
					t.Errorf("%+v", st)
				}
				if st := l.r.Status(); st.Unfit != "" || st.Differs != "" {
					t.Errorf("the leader knows %q and says %q", st.Unfit, st.Differs)
				}
				if later {
					h.run(avoidMS)
					if st := s.r.Status(); st.Differs != "" {
						t.Errorf("after an hour: %+v", st)
					}
				}
				s.spoil("/x")
				h.work(5000)
				if !strings.Contains(s.stopped, "wrong again") || s.replaced() != 1 {
					t.Errorf("again, with %d voters: stopped by %q, %d snapshots", voters, s.stopped, s.replaced())
				}
				if h.leader() != l || l.r.Status().Epoch != epoch || l.stopped+h.servers[1].stopped != "" {
					t.Error("the others did not just go on")
				}
			}
		}
	}
}

// TestWrongLeaderSpoilsNobody: if the leader's tree is wrong, it transfers leadership, and gets a snapshot from the next
// leader. No follower takes over the wrong tree at any time, whenever each of them notices the difference.
func TestWrongLeaderSpoilsNobody(t *testing.T) {
	for _, voters := range []int{3, 5} {
		for _, offset := range []int64{0, 20, 150} {
			h, _ := differing(t, voters)
			h.offsets(offset)
			l := h.leader()
			l.spoil("/x")
			h.busy(20_000, func() {
				for _, s := range h.servers {
					if s != l && s.wrong("/x") {
						t.Fatalf("server %d has taken over the wrong tree", s.id)
					}
				}
			})
			if next := h.leader(); next == l || l.wrong("/x") || l.outvoted() != 1 || l.replaced() != 1 {
				t.Errorf("%d voters, offset %d ms: server %d leads, the former leader is wrong: %v, outvoted %d times, %d snapshots",
					voters, offset, next.id, l.wrong("/x"), l.outvoted(), l.replaced())
			}
			for _, s := range h.servers {
				if s.stopped != "" || s != l && s.replaced() > 0 {
					t.Errorf("server %d: stopped by %q, %d snapshots", s.id, s.stopped, s.replaced())
				}
			}
		}
	}
}

// TestWithoutQuorumNothingIsReplaced: if no quorum has the same tree, all trees stay as they are, there is no other leader,
// and servers only raise the alarm.
func TestWithoutQuorumNothingIsReplaced(t *testing.T) {
	for _, c := range []struct {
		name       string
		voters     int
		down       []int
		wrong      map[int]string // by server: its data
		compatible ensemble.ServerID
	}{
		{name: "two of three, in different ways", voters: 3, wrong: map[int]string{1: "a", 2: "b"}},
		{name: "a follower and the leader, in different ways", voters: 3, wrong: map[int]string{1: "a", 3: "b"}},
		{name: "one of the two that are left", voters: 3, down: []int{2}, wrong: map[int]string{1: "a"}},
		{name: "the leader, with one follower left", voters: 3, down: []int{2}, wrong: map[int]string{3: "a"}},
		{name: "three of five, in different ways", voters: 5, wrong: map[int]string{1: "a", 2: "b", 3: "c"}},
		{name: "three of five, two alike", voters: 5, wrong: map[int]string{1: "a", 2: "a", 3: "c"}},
		{name: "one, and another one is like a ZooKeeper server", voters: 3, wrong: map[int]string{1: "a"}, compatible: 2},
		{name: "the leader, and a follower is like a ZooKeeper server", voters: 3, wrong: map[int]string{3: "a"}, compatible: 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := emptyCluster(t, true, memberLines(c.voters))
			h.compatible = map[ensemble.ServerID]bool{c.compatible: true}
			for id := 1; id <= c.voters; id++ {
				h.start(h.add(ensemble.ServerID(id)))
			}
			h.run(500)
			_, conn := h.connect(h.leader(), 0)
			h.create(h.leader(), conn, 1, "/x")
			h.run(3000)
			l := h.leader()
			for _, id := range c.down {
				h.kill(h.servers[id-1])
			}
			for id, data := range c.wrong {
				h.servers[id-1].spoilAs("/x", data)
			}
			h.offsets(30)
			h.busy(20_000, func() {})
			alarms := 0
			for i, s := range h.servers {
				if s.stopped != "" || s.replaced() > 0 || s.outvoted() > 0 || s.wrong("/x") != (c.wrong[i+1] != "") {
					t.Errorf("server %d: stopped by %q, %d snapshots, wrong: %v", s.id, s.stopped, s.replaced(), s.wrong("/x"))
				}
				alarms += s.named()
			}
			if h.leader() != l || alarms == 0 {
				t.Errorf("server %d leads, %d alarms", h.leader().id, alarms)
			}
		})
	}
}

// memberLines returns the server lines of an ensemble of voters.
func memberLines(voters int) string {
	var b strings.Builder
	for id := 1; id <= voters; id++ {
		fmt.Fprintf(&b, "server.%d=127.0.0.1:%d:%d:participant\n", id, 1000+id, 2000+id)
	}
	return b.String()
}

// TestTwoWrongTreesOfFive: both are replaced, although each is wrong in its own way, and also if one of the two leads.
func TestTwoWrongTreesOfFive(t *testing.T) {
	for _, wrong := range [][2]int{{1, 2}, {1, 5}, {4, 5}} {
		h, _ := differing(t, 5)
		h.offsets(40)
		for _, id := range wrong {
			h.servers[id-1].spoilAs("/x", fmt.Sprint(id))
		}
		h.busy(20_000, func() {})
		for i, s := range h.servers {
			is := slices.Contains(wrong[:], i+1)
			if s.wrong("/x") || s.stopped != "" || (s.replaced() == 1) != is {
				t.Errorf("%v: server %d: wrong %v, %d snapshots, stopped by %q", wrong, s.id, s.wrong("/x"), s.replaced(), s.stopped)
			}
		}
	}
}

// TestCopyOfAWrongTreeProvesNothing: a wrong leader gives its tree to a server that has lost its disk. The two are a
// quorum, but the copy does not count, so the right tree of the third server stays: in this term, after the copy
// has restarted, and when the copy leads.
func TestCopyOfAWrongTreeProvesNothing(t *testing.T) {
	for _, then := range []string{"", "restart", "leads"} {
		h, right := differing(t, 3)
		h.offsets(40)
		l, copied := h.leader(), h.servers[1]
		h.kill(copied)
		h.run(500)
		l.spoil("/x")
		h.busy(3000, func() {})
		copied.wipe()
		h.start(copied)
		h.busy(5000, func() {})
		if !copied.wrong("/x") {
			t.Fatal("the server without a history has not got the wrong tree")
		}
		switch then {
		case "restart": // it forgets that its tree is a copy, and connects again
			for id, k := range h.links {
				if k.from == copied {
					h.breakLink(id)
				}
			}
			copied.r.differs.copied = false
		case "leads":
			l.inbox = append(l.inbox, TransferLeadership{To: copied.id})
		}
		h.busy(20_000, func() {
			if right.wrong("/x") {
				t.Fatalf("%q: the last right tree is replaced", then)
			}
		})
		if l.replaced()+copied.replaced()+right.replaced() > 0 || right.stopped+copied.stopped+l.stopped != "" {
			t.Errorf("%q: %d, %d and %d snapshots", then, l.replaced(), copied.replaced(), right.replaced())
		}
	}
}

// TestRightCopyIsConfirmed: a server that has got its tree by a snapshot counts as soon as a quorum has the same tree.
func TestRightCopyIsConfirmed(t *testing.T) {
	h, s := differing(t, 3)
	copied := h.servers[1]
	h.kill(copied)
	h.run(500)
	copied.wipe()
	h.start(copied)
	h.run(5000)
	if copied.r.differs.copied {
		t.Error("the copy is not confirmed")
	}
	s.spoil("/x")
	h.work(5000)
	if s.wrong("/x") || s.replaced() != 1 {
		t.Error("the leader and the former copy are no quorum")
	}
}

// foundWrong makes the tree of a server wrong and lets time pass until its leader has closed its link. The server cannot
// connect again as long as it is cluster.away.
func (h *cluster) foundWrong(s *server) {
	s.spoil("/x")
	h.away = s
	h.work(5000)
	if got := h.leader().r.member.leader.Wrong(); !slices.Equal(got, []ensemble.ServerID{s.id}) || s.replaced() > 0 {
		h.t.Fatalf("the leader has found wrong: %v; %d snapshots", got, s.replaced())
	}
}

// TestSnapshotIsNotOwedForLong: a server with a wrong tree that comes back only after initLimit is compared anew.
func TestSnapshotIsNotOwedForLong(t *testing.T) {
	h, s := differing(t, 3)
	h.foundWrong(s)
	h.kill(s)
	h.away = nil
	h.run(21_000)
	if got := h.leader().r.member.leader.Wrong(); len(got) > 0 {
		t.Errorf("after initLimit a snapshot is still owed to %v", got)
	}
	h.start(s)
	h.run(1000)
	if st := s.r.Status(); !st.Serving || s.count(func(o Observation) bool { y, ok := o.(zab.Synchronising); return ok && y.How == zab.Snap }) > 0 {
		t.Errorf("%+v", st)
	}
}

// TestLeaderChangesBeforeTheSnapshot: if the leader dies after it has found a wrong tree, the next leader finds it anew.
// The server does not count that as wrong again.
func TestLeaderChangesBeforeTheSnapshot(t *testing.T) {
	h, s := differing(t, 5)
	h.foundWrong(s)
	h.kill(h.leader())
	h.away = nil
	h.run(2000)
	if s.replaced() > 0 || !s.wrong("/x") {
		t.Error("the next leader has replaced the tree before it was compared")
	}
	h.work(5000)
	if s.stopped != "" || s.replaced() != 1 || s.wrong("/x") {
		t.Errorf("stopped by %q, %d snapshots", s.stopped, s.replaced())
	}
}

// TestWrongTreeOfAnObserver: an observer gets a snapshot of the leader and later stops, as a follower does. If its master is a follower, it connects
// to the leader after a while. A follower whose tree is in doubt serves no observers.
func TestWrongTreeOfAnObserver(t *testing.T) {
	for _, masters := range []bool{false, true} {
		h := observed(t, 4, func(h *cluster) { h.masters = masters })
		_, c := h.connect(h.leader(), 0)
		h.create(h.leader(), c, 1, "/x")
		h.run(3000)
		o := h.servers[3]
		h.lose(o) // it begins with a snapshot
		h.run(5000)
		if m := h.masterOf(o); (m == h.leader()) == masters {
			t.Fatalf("the observer learns from server %d", m.id)
		}
		o.spoil("/x")
		h.work(5000)
		if (o.replaced() == 1) == masters || o.named() != 1 {
			t.Errorf("masters %v: after 5 s %d snapshots, %d alarms", masters, o.replaced(), o.named())
		}
		h.work(15_000)
		if o.replaced() != 1 || o.wrong("/x") || h.masterOf(o) != h.leader() {
			t.Errorf("masters %v: %d snapshots, wrong: %v, %d alarms", masters, o.replaced(), o.wrong("/x"), o.named())
		}
		o.spoil("/x")
		h.work(5000)
		if !strings.Contains(o.stopped, "wrong again") || o.replaced() != 1 {
			t.Errorf("masters %v: stopped by %q, %d snapshots", masters, o.stopped, o.replaced())
		}
	}
	h := observed(t, 3, nil)
	s := h.servers[0]
	if !s.observes {
		t.Fatal("the follower serves no observers")
	}
	s.r.differs.why = "its tree differs"
	if h.run(600); s.observes {
		t.Error("a follower whose tree is in doubt serves observers")
	}
}

// TestWrongTreeUnderAnOldLeader: an older leader does not compare trees. It is told only why the server should not lead.
func TestWrongTreeUnderAnOldLeader(t *testing.T) {
	h := newCluster(t, 3, true)
	h.compatible = map[ensemble.ServerID]bool{3: true}
	h.restart()
	l, s := h.leader(), h.servers[0]
	_, c := h.connect(l, 0)
	h.create(l, c, 1, "/x")
	h.run(3000)
	s.spoil("/x")
	h.work(5000)
	if l.id != 3 || !s.wrong("/x") || s.named() != 1 || !strings.Contains(s.r.whyUnfit(), "its tree differs") {
		t.Errorf("leader %d, %d alarms, unfit: %q", l.id, s.named(), s.r.whyUnfit())
	}
}

// TestOnlyTheExactTreeIsReported: a server answers the leader's question with the digest after exactly the named transaction, and only
// if its tree is known to be what the transactions up to there have made of it. Otherwise it says that it cannot tell.
func TestOnlyTheExactTreeIsReported(t *testing.T) {
	h, s := differing(t, 3)
	last, digest := s.r.tree.Digest()
	ask := func(z wire.Zxid) *peerwire.TreeReport {
		s.r.differs.asked = false
		s.r.treeOrdered(zab.TreeOrder{Zxid: z, TreeOrder: peerwire.TreeOrder{Task: peerwire.TreeReportDue}})
		for _, m := range s.r.member.learner.Ready().Send {
			var report peerwire.TreeReport
			if m.Packet.Type == peerwire.PacketDigest && m.Packet.Zxid == z && wire.Decode(m.Packet.Data, &report) == nil {
				return &report
			}
		}
		return nil
	}
	if got := ask(last); got == nil || !got.Known || got.Digest != digest || got.Version != record.DigestVersion {
		t.Errorf("%+v, want %d", got, digest)
	}
	if got := ask(last - 1); got == nil || got.Known || s.r.differs.asked {
		t.Errorf("after a later transaction: %+v", got)
	}
	if got := ask(last + 1); got != nil || !s.r.differs.asked {
		t.Errorf("before the transaction: %+v", got)
	}
	fuzzy := h.copy(s.r.tree)
	loader := fuzzy.Loader()
	loader.CloseFuzzy()
	s.r.tree = fuzzy
	if got := ask(last); got == nil || got.Known {
		t.Errorf("with a tree that may contain effects of later transactions: %+v", got)
	}
}

// TestSnapshotsAreCountedWithoutTheOrder: the leader counts the snapshots that it forces itself, also if the learner never reads
// why its link ends.
func TestSnapshotsAreCountedWithoutTheOrder(t *testing.T) {
	h, s := differing(t, 3)
	h.offsets(40)
	l := h.leader()
	h.delay = func(to *server, e Event) bool {
		z, ok := e.(Zab)
		if !ok || to != s {
			return false
		}
		r, ok := z.Event.(zab.Received)
		if !ok || r.Packet.Type != peerwire.PacketDigest {
			return false
		}
		var o peerwire.TreeOrder
		return wire.Decode(r.Packet.Data, &o) == nil && o.Task >= peerwire.TreeReplaced
	}
	for range 5 {
		s.spoil("/x")
		h.busy(5000, func() {})
	}
	if h.snapshots != 1 || h.leader() != l {
		t.Errorf("%d snapshots, server %d leads", h.snapshots, h.leader().id)
	}
}

// TestOnlyVoterReplacesNobody: a voter that agrees only with itself proves nothing.
func TestOnlyVoterReplacesNobody(t *testing.T) {
	h := emptyCluster(t, true, "server.1=127.0.0.1:1001:2001:participant\nserver.2=127.0.0.1:1002:2002:observer\nserver.3=127.0.0.1:1003:2003:observer\n")
	for id := ensemble.ServerID(1); id <= 3; id++ {
		h.start(h.add(id))
	}
	h.run(1000)
	l := h.leader()
	_, c := h.connect(l, 0)
	h.create(l, c, 1, "/x")
	h.run(3000)
	l.spoil("/x")
	h.busy(20_000, func() {})
	for _, s := range h.servers[1:] {
		if s.wrong("/x") || s.stopped != "" || !strings.Contains(s.r.Status().Differs, "its tree differs") {
			t.Errorf("server %d: wrong %v, stopped by %q, says %q", s.id, s.wrong("/x"), s.stopped, s.r.Status().Differs)
		}
	}
}

func (s *server) doubts() bool { return s.r.differs.doubted() }

// TestConfirmationOfAnEarlierTree: a quorum that had the same tree before the difference began does not end the alarm.
func TestConfirmationOfAnEarlierTree(t *testing.T) {
	h, s := differing(t, 3)
	d, last := &s.r.differs, s.r.tree.LastZxid()
	for since, want := range map[wire.Zxid]bool{last: false, last + 1: true} {
		for name, set := range map[string]func(){
			"a difference": func() { d.why, d.since = "it differs", since },
			"a verdict":    func() { d.verdict = verdict{"it is wrong", since} },
		} {
			*d = differs{known: d.known}
			set()
			s.r.treeOrdered(zab.TreeOrder{Zxid: last, TreeOrder: peerwire.TreeOrder{Task: peerwire.TreeConfirmed}})
			if d.doubted() != want {
				t.Errorf("%s since %v, confirmed at %v: %v", name, since, last, d.doubted())
			}
		}
	}
	_ = h
}

// TestQuestionWithUpToDate: a follower that gets UPTODATE and the leader's question in one batch answers as soon as it serves, not only the
// next question, which comes after syncLimit.
func TestQuestionWithUpToDate(t *testing.T) {
	h, late := differing(t, 3)
	wrong, l := h.servers[1], h.leader()
	h.kill(late)
	held := false
	h.delay = func(to *server, e Event) bool {
		if z, ok := e.(Zab); ok && to == late {
			r, received := z.Event.(zab.Received)
			held = held || received && r.Packet.Type == peerwire.PacketUpToDate
			return held && received
		}
		return false
	}
	h.start(late)
	h.run(100)
	wrong.spoil("/x")
	h.connect(l, 0)
	h.run(2500) // longer than a tick
	if !held || wrong.named() != 1 || wrong.replaced() > 0 {
		t.Fatalf("held: %v, %d alarms, %d snapshots", held, wrong.named(), wrong.replaced())
	}
	h.release()
	h.run(50)
	if wrong.replaced() != 1 {
		t.Error("the question that came with UPTODATE is not answered")
	}
}

// TestQuestionEndsWithItsTerm: a follower gets the leader's question before the transaction that it is about, and the leader dies. The
// follower does not answer that question in the next term.
func TestQuestionEndsWithItsTerm(t *testing.T) {
	h, s := differing(t, 3)
	at := s.r.tree.LastZxid() + 1
	s.r.treeOrdered(zab.TreeOrder{Zxid: at, TreeOrder: peerwire.TreeOrder{Task: peerwire.TreeReportDue}})
	h.delay = func(_ *server, e Event) bool {
		if _, p := received(e); p != nil && p.Type == peerwire.PacketDigest && p.Zxid == at {
			t.Error("the question is answered in the next term")
		}
		return false
	}
	h.kill(h.leader())
	h.run(2000)
	if h.busy(1000, func() {}); s.r.tree.LastZxid() <= at || h.leader() == s {
		t.Errorf("server %d leads, the tree is at %v", h.leader().id, s.r.tree.LastZxid())
	}
}
