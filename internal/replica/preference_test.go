package replica

import (
	"testing"

	"bellwether/internal/ensemble"
	"bellwether/internal/peerwire"
	"bellwether/internal/tree"
	"bellwether/wire"
)

// preferring starts three servers, of which server 3 is elected, and then restarts them one by
// one with priorities, so that the same server still leads.
func preferring(t *testing.T, priorities map[ensemble.ServerID]int) *cluster {
	h := newCluster(t, 3, true)
	h.run(500)
	_, c := h.connect(h.leader(), 0)
	h.create(h.leader(), c, 1, "/x")
	h.run(500)
	h.priorities = priorities
	h.restart()
	if l := h.leader(); l.id != 3 {
		t.Fatalf("server %d is elected: priorities have changed the order of votes", l.id)
	}
	return h
}

// work lets time pass, with a write in each second.
func (h *cluster) work(ms int64) {
	for end := h.now.Mono + ms; h.now.Mono < end; {
		h.connect(h.leader(), 0)
		h.run(700)
	}
}

// preferences counts the transfers because of priorities that all servers have reported.
func (h *cluster) preferences() (n int) {
	for _, s := range h.servers {
		for _, o := range s.seen {
			if _, prefers := o.(Prefers); prefers {
				n++
			}
		}
	}
	return n
}

// TestPreferredServerTakesOver: votes do not depend on priorities. The server with the highest
// priority leads once it has been fit for preferMS, and not before, by a transfer and without
// an election.
func TestPreferredServerTakesOver(t *testing.T) {
	h := preferring(t, map[ensemble.ServerID]int{1: 7, 2: 5})
	if st := h.servers[2].r.Status(); st.Prefers != 1 || st.PrefersMS != preferMS {
		t.Errorf("the leader prefers server %d after %d ms", st.Prefers, st.PrefersMS)
	}
	h.work(preferMS - 2000)
	if l := h.leader(); l.id != 3 {
		t.Fatalf("server %d leads too early", l.id)
	}
	h.work(4000)
	st := h.leader().r.Status()
	if st.Leader != 1 || !st.Appointed || st.Prefers != peerwire.NoServer || h.preferences() != 1 {
		t.Errorf("%+v after %d transfers", st, h.preferences())
	}
	h.work(60_000)
	if h.leader().id != 1 || h.preferences() != 1 {
		t.Errorf("server %d leads after %d transfers", h.leader().id, h.preferences())
	}
}

// TestPreferredServerNeedsAWrite: without a write, nobody knows whether the disk of the preferred server
// works, so it does not become the leader.
func TestPreferredServerNeedsAWrite(t *testing.T) {
	h := preferring(t, map[ensemble.ServerID]int{1: 1})
	h.run(10 * preferMS)
	if l := h.leader(); l.id != 3 {
		t.Fatalf("server %d leads", l.id)
	}
	h.work(2000)
	if l := h.leader(); l.id != 1 {
		t.Errorf("server %d leads after a write", l.id)
	}
}

// TestPreferredServerMustStayFit: a late ACK makes the time begin anew in which a preferred
// server must be fit.
func TestPreferredServerMustStayFit(t *testing.T) {
	h := preferring(t, map[ensemble.ServerID]int{1: 1})
	h.work(preferMS - 4000)
	_, c := h.connect(h.servers[1], 0)
	h.run(100)
	h.silent = map[*server]bool{h.servers[0]: true}
	h.create(h.servers[1], c, 1, "/late")
	h.run(1000)
	h.answer(h.servers[0])
	h.work(preferMS - 2000)
	if l := h.leader(); l.id != 3 {
		t.Fatalf("server %d leads although its ACK was late", l.id)
	}
	h.work(5000)
	if l := h.leader(); l.id != 1 {
		t.Errorf("server %d leads", l.id)
	}
}

// TestPreferredServerThatStallsIsAvoided: a preferred server whose disk stalls gives up
// leadership and does not get it back for an hour, although it looks fit between the stalls.
func TestPreferredServerThatStallsIsAvoided(t *testing.T) {
	h := preferring(t, map[ensemble.ServerID]int{1: 1})
	h.work(preferMS + 3000)
	if l := h.leader(); l.id != 1 {
		t.Fatalf("server %d leads", l.id)
	}
	changes, leads := 0, h.leader()
	for range 120 { // one hour
		h.hang(h.servers[0])
		h.run(3000)
		h.answer(h.servers[0])
		h.work(27_000)
		if l := h.leader(); l != leads {
			changes, leads = changes+1, l
		}
	}
	if changes != 1 {
		t.Errorf("%d changes of leaders in an hour in which one server was slow", changes)
	}
	h.work(preferMS * avoidFactor)
	if l := h.leader(); l.id != 1 {
		t.Errorf("server %d leads after an hour without a stall", l.id)
	}
}

// TestPreferredServerStopsAsPlanned: a preferred server that stops, and so transfers leadership
// itself, leads again soon after its next start. If it was killed, that takes longer.
func TestPreferredServerStopsAsPlanned(t *testing.T) {
	for _, planned := range []bool{true, false} {
		h := preferring(t, map[ensemble.ServerID]int{1: 1})
		h.work(preferMS + 3000)
		s := h.servers[0]
		if h.leader() != s {
			t.Fatalf("server %d leads", h.leader().id)
		}
		if planned {
			to, err := s.r.Successor(peerwire.NoServer, true)
			if err != nil {
				t.Fatal(err)
			}
			s.inbox = append(s.inbox, TransferLeadership{To: to, Leaving: true})
			h.run(100)
		}
		h.kill(s)
		h.run(3000)
		h.start(s)
		h.work(preferMS + 3000)
		if leads := h.leader() == s; leads != planned {
			t.Errorf("planned %v: leads again %v", planned, leads)
		}
	}
}

// TestFailedPreference: a transfer that does not make the preferred server the leader doubles
// the time for which that server must be fit.
func TestFailedPreference(t *testing.T) {
	m := &member{opt: Member{PreferMS: preferMS}, preference: preference{failed: map[ensemble.ServerID]int{}}}
	var got []int64
	for _, n := range []int{0, 1, 2, 8, 9, 1000} {
		m.preference.failed[1] = n
		got = append(got, m.fitMS(1)/1000)
	}
	want := []int64{10, 20, 40, 2560, 3600, 3600}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("%d s, want %d s", got, want)
			break
		}
	}
}

// TestNamedServerTakesOver: the server that the znode names leads once it has been fit, also against
// a priority of another server, by a transfer. It stays the leader, also after all servers have
// restarted. When the znode is deleted, the priority counts again.
func TestNamedServerTakesOver(t *testing.T) {
	h := preferring(t, map[ensemble.ServerID]int{3: 7})
	h.name(t, wire.OpCreate, "x")
	h.work(2 * preferMS)
	if l := h.leader(); l.id != 3 {
		t.Fatalf("server %d leads, and the znode names none", l.id)
	}
	h.name(t, wire.OpSetData, "1\n") // as scripts write it
	if st := h.leader().r.Status(); st.Prefers != 1 {
		t.Errorf("the leader prefers server %d", st.Prefers)
	}
	h.work(preferMS + 4000)
	if st := h.leader().r.Status(); st.Leader != 1 || !st.Appointed || st.Prefers != peerwire.NoServer {
		t.Fatalf("%+v", st)
	}
	h.restart()
	if l := h.leader(); l.id != 3 {
		t.Fatalf("server %d is elected: the znode has changed the order of votes", l.id)
	}
	h.work(preferMS + 4000)
	if l := h.leader(); l.id != 1 {
		t.Fatalf("server %d leads", l.id)
	}
	h.name(t, wire.OpDelete, "")
	h.work(preferMS + 4000)
	if l := h.leader(); l.id != 3 {
		t.Errorf("server %d leads although server 3 has the highest priority", l.id)
	}
}

// name creates, changes or deletes the znode that names the preferred leader, as the super user does.
func (h *cluster) name(t *testing.T, op wire.OpCode, id string) {
	t.Helper()
	var body wire.Record = &wire.CreateRequest{Path: tree.PreferredLeaderPath, Data: []byte(id), ACL: wire.OpenACL()}
	switch op {
	case wire.OpSetData:
		body = &wire.SetDataRequest{Path: tree.PreferredLeaderPath, Data: []byte(id), Version: -1}
	case wire.OpDelete:
		body = &wire.PathVersionRequest{Path: tree.PreferredLeaderPath, Version: -1}
	}
	c, conn := h.connect(h.leader(), 0)
	h.leader().inbox = append(h.leader().inbox, &Request{Conn: conn, Xid: 1, Op: op, Body: wire.Append(nil, body), Identities: []wire.ID{{Scheme: "super"}}})
	h.run(100)
	if n := len(c.replies); n != 1 || c.replies[0].Header.Err != wire.OK {
		t.Fatalf("%d replies: %+v", n, c.replies)
	}
}

// TestBadTermIsForgottenInTime: a server whose term has ended badly is avoided for avoidMS, and not a ms longer.
func TestBadTermIsForgottenInTime(t *testing.T) {
	p := newPreference()
	p.avoid[2] = badEnd{epoch: 1, at: 1000}
	for at, want := range map[int64]bool{1000: true, 1000 + avoidMS - 1: true, 1000 + avoidMS: false} {
		if p.avoids(2, at) != want || p.avoids(1, at) {
			t.Errorf("at %d: %v, another server: %v", at, p.avoids(2, at), p.avoids(1, at))
		}
	}
}

// TestTermThatGoesOnHasNotEndedBadly: a server that has left a leader and finds it leading the same epoch does not hold that against it.
func TestTermThatGoesOnHasNotEndedBadly(t *testing.T) {
	for epoch, avoids := range map[wire.Epoch]bool{5: false, 6: true} {
		m := &member{preference: newPreference()}
		m.decision.Vote.Leader = 3
		m.preference.avoid[3], m.preference.failed[3] = badEnd{epoch: 5, at: 100}, 2
		m.noteServes(epoch)
		if got := m.preference.avoids(3, 200); got != avoids || m.preference.failed[3] != 0 {
			t.Errorf("leads epoch %d after a bad end of epoch 5: avoided %v, %d failed transfers", epoch, got, m.preference.failed[3])
		}
	}
}
