package election

import (
	"strings"
	"testing"

	"bellwether/internal/ensemble"
	"bellwether/internal/peerwire"
	"bellwether/wire"
)

// The tests in this file show that an Election does not have known bugs of other implementations
// of the protocol. Their names give the numbers of the bug reports.

// worldOf makes a network of servers 1 to n with equal histories.
func worldOf(n int) *world {
	w := newWorld()
	w.trips = true
	m := plain(0, n)
	for i := range n {
		s := w.add(ensemble.ServerID(i+1), m)
		s.look.Zxid, s.look.Epoch = 0x100000001, 1
	}
	return w
}

// plain returns a membership of voters 1 to n.
func plain(version int64, n int) *ensemble.Membership {
	var ids []ensemble.ServerID
	for i := range n {
		ids = append(ids, ensemble.ServerID(i+1))
	}
	return membership(version, ids, nil, nil, nil)
}

// alone makes a server that looks, in an ensemble of n. The test plays the other servers.
func alone(n int, id ensemble.ServerID) *Election {
	e := New(Options{ID: id, Committed: plain(0, n), Reconfig: true})
	e.Step(0, Look{Zxid: 0x100000001, Epoch: 1, Why: "started"})
	e.Ready()
	return e
}

// says makes the notification of a server of the present version.
func says(e *Election, state peerwire.ServerState, v Vote, round wire.Epoch) peerwire.Notification {
	return e.message(state, v, round)
}

func (w *world) startAll() {
	for _, id := range w.ids() {
		w.start(id)
	}
}

func (w *world) mustConverge(t *testing.T, ms int64) {
	t.Helper()
	if !w.converge(ms) || len(w.wrong) > 0 {
		t.Fatalf("%s\n%s\n%s", strings.Join(w.wrong, "\n"), strings.Join(w.output, "\n"), w.states())
	}
}

// TestZK1514FollowersOfAnEarlierRound: a server that looks in a later round
// does not become leader because others still follow it from an earlier one.
func TestZK1514FollowersOfAnEarlierRound(t *testing.T) {
	e := alone(3, 3)
	e.Step(1, Look{Zxid: 0x100000001, Epoch: 1, Why: "again"}) // round 2
	for _, from := range []ensemble.ServerID{1, 2} {
		e.Step(2, Heard{From: from, Notification: says(e, peerwire.Following, Vote{3, 0x100000001, 1}, 1)})
	}
	if st := e.State(); st.Role != peerwire.Looking || st.Round != 2 {
		t.Errorf("%+v, want LOOKING in round 2", st)
	}
	for _, from := range []ensemble.ServerID{1, 2} { // those of its own round count
		e.Step(3, Heard{From: from, Notification: says(e, peerwire.Following, Vote{3, 0x100000001, 1}, 2)})
	}
	if st := e.State(); st.Role != peerwire.Leading {
		t.Errorf("%+v, want LEADING", st)
	}
}

// TestZK1817JoinerAmongUnequalVotes (also 1818, 1805): a server joins the leader that a quorum follows, even if
// the followers report different zxids and rounds, because they joined at different times.
func TestZK1817JoinerAmongUnequalVotes(t *testing.T) {
	e := alone(5, 5)
	e.Step(1, Heard{From: 1, Notification: says(e, peerwire.Following, Vote{2, 0x100000001, 3}, 7)})
	e.Step(1, Heard{From: 3, Notification: says(e, peerwire.Following, Vote{2, 0x200000005, 3}, 4)})
	if st := e.State(); st.Role != peerwire.Looking {
		t.Fatalf("%+v joined before the leader's own word", st)
	}
	e.Step(2, Heard{From: 2, Notification: says(e, peerwire.Leading, Vote{2, 0x200000005, 3}, 9)})
	if st := e.State(); st.Role != peerwire.Following || st.Vote.Leader != 2 || st.Round != 9 {
		t.Errorf("%+v, want FOLLOWING 2 in round 9", st)
	}
}

// TestZK1732MixedVersions: a server joins the leader that a quorum follows, even if a member of a version
// before 3.4.6 reports another epoch.
func TestZK1732MixedVersions(t *testing.T) {
	e := alone(3, 3)
	old := says(e, peerwire.Following, Vote{2, 0x100000001, 1}, 1)
	old.Version, old.Config = peerwire.NotificationBare, ""
	e.Step(1, Heard{From: 1, Notification: old})
	e.Step(1, Heard{From: 2, Notification: says(e, peerwire.Leading, Vote{2, 0x100000001, 2}, 1)})
	if st := e.State(); st.Role != peerwire.Following || st.Vote.Leader != 2 {
		t.Errorf("%+v, want FOLLOWING 2", st)
	}
}

// TestZK975SmallerLeader: a server joins an ensemble whose leader has a smaller id and
// less history, and follows that leader.
func TestZK975SmallerLeader(t *testing.T) {
	w := worldOf(3)
	w.start(1)
	w.start(2)
	w.mustConverge(t, 1000)
	w.servers[3].look.Zxid = 0x1000000ff
	w.start(3)
	w.mustConverge(t, 5000)
	if d := w.servers[3].decision; d.State != peerwire.Following || d.Vote.Leader != 2 {
		t.Errorf("%+v, want FOLLOWING 2", d)
	}
}

// TestZK3109ChangedMind: the elected leader learns that its voter follows another server.
// It does not wait for that voter until initLimit.
func TestZK3109ChangedMind(t *testing.T) {
	e := alone(3, 3)
	mine := Vote{3, 0x100000001, 1}
	e.Step(1, Heard{From: 1, Notification: says(e, peerwire.Looking, mine, 1)})
	e.Step(250, Tick{})
	if r := e.Ready(); r.Decision == nil || r.Decision.State != peerwire.Leading {
		t.Fatalf("%+v, want LEADING", r)
	}
	e.Step(251, Heard{From: 1, Notification: says(e, peerwire.Looking, Vote{2, 0x100000002, 1}, 1)})
	if r := e.Ready(); r.GiveUp == "" {
		t.Errorf("%+v, want to give up", r)
	}
}

// TestZK3218BackOff: however long a server has looked without success, it resends its
// vote every two seconds, and at once when a server connects.
func TestZK3218BackOff(t *testing.T) {
	e := alone(3, 1)
	now := int64(0)
	for range 20 {
		wake := e.Ready().Wake
		if wake-now > 2000 {
			t.Fatalf("waits %d ms", wake-now)
		}
		now = wake
		e.Step(now, Tick{})
		if sent := e.Ready().Send; len(sent) != 2 {
			t.Fatalf("sent %v", sent)
		}
	}
	e.Step(now, Up{2})
	if wake := e.Ready().Wake; wake != now+200 {
		t.Errorf("waits %d ms after a connection, want 200", wake-now)
	}
}

// TestZK3479ElectionTime: the reported duration of an election is correct.
func TestZK3479ElectionTime(t *testing.T) {
	e := New(Options{ID: 3, Committed: plain(0, 3)})
	e.Step(1_000_000, Look{Zxid: 0x100000001, Epoch: 1, Why: "started"})
	e.Step(1_000_500, Heard{From: 1, Notification: says(e, peerwire.Looking, Vote{3, 0x100000001, 1}, 1)})
	e.Step(1_000_700, Tick{})
	e.Step(1_000_730, Joined{})
	e.Step(1_000_790, Established{2})
	e.Step(1_001_790, Look{Zxid: 0x200000001, Epoch: 2, Why: "no quorum"})
	r := e.Records()[0]
	if want := [Over]int64{700, 30, 60, 1000}; r.PhaseMS != want || r.Ended != "no quorum" {
		t.Errorf("phases %v, ended %q, want %v", r.PhaseMS, r.Ended, want)
	}
}

// TestZK3769HalfDeliveredVote: a message that is cut off anywhere is either refused by
// the decoder or counted for its content. In both cases the election continues.
func TestZK3769HalfDeliveredVote(t *testing.T) {
	e := alone(3, 1)
	whole := says(e, peerwire.Looking, Vote{3, 0x100000001, 1}, 1)
	b := wire.Append(nil, &whole)
	for n := range len(b) {
		var cut peerwire.Notification
		if wire.Decode(b[:n], &cut) == nil {
			e.Step(1, Heard{From: 2, First: true, Notification: cut})
		}
	}
	e.Step(2, Heard{From: 3, Notification: whole})
	e.Step(2, Heard{From: 2, Notification: whole})
	if st := e.State(); st.Role != peerwire.Following || st.Vote.Leader != 3 {
		t.Errorf("%+v, want FOLLOWING 3", st)
	}
}

// TestZK4787ForeignCharset: the vote of a server counts even if its configuration text
// cannot be read.
func TestZK4787ForeignCharset(t *testing.T) {
	for _, text := range []string{"server.1=m\xfcnchen:1:2:participant\nversion=0", "\x00\xff\xfe", "server.x=", "version=zz", "group.1=1:x", ""} {
		e := alone(3, 1)
		n := says(e, peerwire.Looking, Vote{3, 0x100000001, 1}, 1)
		n.Config = text
		e.Step(1, Heard{From: 3, Notification: n})
		e.Step(1, Heard{From: 2, Notification: n})
		if st := e.State(); st.Role != peerwire.Following || st.Vote.Leader != 3 {
			t.Errorf("with %q: %+v, want FOLLOWING 3", text, st)
		}
	}
}

// TestZK3829RollingToFourMembers (also 3814, 3830, 3842): three servers are restarted one
// by one with a fourth in their files. There is one leader after each step, and nothing
// is sent to servers that are no longer members.
func TestZK3829RollingToFourMembers(t *testing.T) {
	w := worldOf(3)
	w.startAll()
	w.mustConverge(t, 5000)
	four := plain(0, 4)
	w.add(4, four)
	w.start(4)
	w.mustConverge(t, 5000)
	for _, id := range []ensemble.ServerID{1, 2, 3} {
		w.crash(id)
		w.servers[id].members = four
		w.start(id)
		w.mustConverge(t, 20_000)
	}
	w.crash(4)
	s := w.servers[1]
	s.members = plain(0, 3)
	w.step(s, Configured{Committed: s.members})
	w.output = nil
	w.lookAgain(s, "tested")
	if all := strings.Join(w.output, "\n"); strings.Contains(all, " 4 ") || !strings.Contains(all, "1 → 2 3 ") {
		t.Errorf("told\n%s", all)
	}
}

// TestLostMessage: a server sends LOOKING once, in round 0, and then that it follows this
// server, in round 0. The election completes.
func TestLostMessage(t *testing.T) {
	e := alone(3, 3)
	v := Vote{3, 0x100000001, 1}
	e.Step(1, Heard{From: 1, Notification: says(e, peerwire.Looking, Vote{1, 0x100000001, 1}, 0)})
	if sent := e.Ready().Send; len(sent) != 1 || sent[0].To != 1 || sent[0].Notification.ElectionEpoch != 1 {
		t.Fatalf("answered %+v", sent)
	}
	e.Step(2, Heard{From: 1, Notification: says(e, peerwire.Following, v, 0)})
	e.Step(3, Heard{From: 1, Notification: says(e, peerwire.Looking, v, 1)})
	e.Step(300, Tick{})
	if st := e.State(); st.Role != peerwire.Leading {
		t.Errorf("%+v, want LEADING", st)
	}
}

// TestRestartedWinner: each winner is shut down right after its election. The others
// elect the next one until no quorum is left, and again when the stopped servers are
// back.
func TestRestartedWinner(t *testing.T) {
	w := worldOf(5)
	w.startAll()
	for range 2 {
		w.mustConverge(t, 10_000)
		w.crash(w.leader())
	}
	w.mustConverge(t, 10_000)
	w.crash(w.leader())
	if w.converge(5000) {
		t.Fatalf("two of five agree:\n%s", w.states())
	}
	for _, id := range w.ids() {
		if !w.servers[id].alive {
			w.start(id)
		}
	}
	w.mustConverge(t, 20_000)
}

// leader returns the serving leader, 0 if there is none.
func (w *world) leader() ensemble.ServerID {
	for _, id := range w.ids() {
		if s := w.servers[id]; s.alive && s.serving && s.decision.State == peerwire.Leading {
			return id
		}
	}
	return 0
}

// TestCandidateDiesWhileItIsWaitedFor: the best candidate ends after a quorum has voted
// for it. The others stop electing it.
func TestCandidateDiesWhileItIsWaitedFor(t *testing.T) {
	w := worldOf(3)
	w.servers[3].look.Zxid = 0x100000009
	w.startAll()
	w.deliver(3, 1)
	w.deliver(3, 2)
	w.crash(3)
	w.mustConverge(t, 20_000)
	if id := w.leader(); id != 2 {
		t.Errorf("%d leads, want 2", id)
	}
}

// TestHighestRound: a server that sends the highest possible round does not keep the
// others from later elections.
func TestHighestRound(t *testing.T) {
	w := worldOf(3)
	w.startAll()
	e := w.servers[1].e.(*Election)
	e.Step(0, Heard{From: 2, Notification: says(e, peerwire.Looking, Vote{2, 0x100000001, 1}, roundMax)})
	for range 3 {
		w.mustConverge(t, 10_000)
		id := w.leader()
		if r := w.servers[id].e.State().Round; r != roundMax {
			t.Fatalf("round %d, want %d", r, roundMax)
		}
		w.crash(id)
		w.mustConverge(t, 10_000)
		w.start(id)
	}
}

// TestRepeatedWorseVoteDelaysNothing: a server that repeats a worse vote again and again
// delays nothing.
func TestRepeatedWorseVoteDelaysNothing(t *testing.T) {
	e := alone(3, 3)
	e.Step(1, Heard{From: 1, Notification: says(e, peerwire.Looking, Vote{3, 0x100000001, 1}, 1)})
	for now := int64(2); e.State().Role == peerwire.Looking; now++ {
		if now > 210 {
			t.Fatalf("still waits: %+v", e.State())
		}
		e.Step(now, Heard{From: 2, Notification: says(e, peerwire.Looking, Vote{2, 0x100000000, 1}, 1)})
		e.Step(now, Tick{})
	}
}

// TestQuorumInBothMemberships: while another membership is proposed, a quorum
// of each is needed.
func TestQuorumInBothMemberships(t *testing.T) {
	proposed := membership(9, []ensemble.ServerID{3, 4, 5}, nil, nil, nil)
	e := New(Options{ID: 3, Committed: plain(1, 3), Proposed: proposed})
	e.Step(0, Look{Zxid: 0x100000001, Epoch: 1, Why: "started"})
	v := Vote{3, 0x100000001, 1}
	if sent := e.Ready().Send; len(sent) != 4 {
		t.Fatalf("told %v, want 1, 2, 4 and 5", sent)
	}
	for _, from := range []ensemble.ServerID{1, 2} {
		e.Step(1, Heard{From: from, Notification: says(e, peerwire.Looking, v, 1)})
	}
	e.Step(1000, Tick{})
	if st := e.State(); st.Settling || st.Role != peerwire.Looking {
		t.Fatalf("%+v with a quorum of the old alone", st)
	}
	e.Step(1001, Heard{From: 4, Notification: says(e, peerwire.Looking, v, 1)})
	e.Step(2000, Tick{})
	if st := e.State(); st.Role != peerwire.Leading {
		t.Errorf("%+v, want LEADING", st)
	}
}

// TestJoinsALeaderOfTheCommittedMembership: a server with a proposed membership follows a leader
// that a quorum of the committed one follows. The proposal may never be committed, and then
// only that leader can take it back.
func TestJoinsALeaderOfTheCommittedMembership(t *testing.T) {
	e := New(Options{ID: 1, Committed: plain(1, 3), Proposed: membership(9, []ensemble.ServerID{1, 4, 5}, nil, nil, nil)})
	e.Step(0, Look{Zxid: 0x100000009, Epoch: 1, Why: "started"})
	v := Vote{2, 0x100000008, 2}
	e.Step(1, Heard{From: 2, Notification: says(e, peerwire.Leading, v, 1)})
	if st := e.State(); st.Role != peerwire.Looking {
		t.Fatalf("%+v with the word of one server", st)
	}
	e.Step(2, Heard{From: 3, Notification: says(e, peerwire.Following, v, 1)})
	if st := e.State(); st.Role != peerwire.Following {
		t.Errorf("%+v, want FOLLOWING", st)
	}
}
