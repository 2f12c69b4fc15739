package election

import (
	"strings"
	"testing"

	"bellwether/internal/ensemble"
	"bellwether/internal/peerwire"
	"bellwether/wire"
	"pgregory.net/rapid"
)

// fresh is a vote for a server with the history that all servers have.
func fresh(id ensemble.ServerID) Vote { return Vote{id, 0x100000001, 1} }

// abstains is the vote of a server whose disk does not answer.
func abstains(id ensemble.ServerID) Vote { return Vote{id, NoHistory, 1} }

// lookWith makes one of n servers, which begins an election with l.
func lookWith(n int, id ensemble.ServerID, l Look) *Election {
	e := New(Options{ID: id, Committed: plain(0, n), Reconfig: true})
	l.Why = "started"
	e.Step(0, l)
	return e
}

// TestAbstainingServerIsNoCandidate: a server whose disk does not answer votes with
// NoHistory, does not decide by votes, and joins a leader that a quorum follows.
func TestAbstainingServerIsNoCandidate(t *testing.T) {
	e := lookWith(3, 3, Look{Zxid: 0x2d, Abstains: true})
	for _, m := range e.Ready().Send {
		if v := voteOf(&m.Notification); v != (Vote{3, NoHistory, 1}) {
			t.Fatalf("says %v", v)
		}
	}
	hear(e, 1, peerwire.Looking, fresh(2), 1)
	hear(e, 2, peerwire.Looking, fresh(2), 1)
	e.Step(5000, Tick{})
	if r := e.Ready(); r.Decision != nil {
		t.Fatalf("decides %+v", r.Decision)
	}
	hear(e, 1, peerwire.Following, fresh(2), 1)
	hear(e, 2, peerwire.Leading, fresh(2), 1)
	if r := e.Ready(); r.Decision == nil || r.Decision.State != peerwire.Following || r.Decision.Vote.Leader != 2 {
		t.Errorf("%+v, want to follow 2", r.Decision)
	}
}

// TestAbstainingServerDoesNotSayThatItIsEmpty: an empty server may begin a history with
// other empty servers. It does not count servers that abstain among them.
func TestAbstainingServerDoesNotSayThatItIsEmpty(t *testing.T) {
	e := lookWith(3, 1, Look{})
	hear(e, 2, peerwire.Looking, abstains(2), 1)
	hear(e, 3, peerwire.Looking, abstains(3), 1)
	hear(e, 2, peerwire.Looking, abstains(2), 2)
	if st := e.State(); !st.Barred {
		t.Errorf("%+v: it stands for election", st)
	}
}

// TestWithdrawnCandidateIsDropped: a server does not vote for a candidate that has
// withdrawn, even if others still do, until that candidate votes for itself again.
func TestWithdrawnCandidateIsDropped(t *testing.T) {
	e := alone(5, 4)
	hear(e, 5, peerwire.Looking, fresh(5), 1)
	hear(e, 1, peerwire.Looking, fresh(5), 1)
	hear(e, 5, peerwire.Looking, abstains(5), 2)
	if st := e.State(); st.Vote.Leader != 4 || st.Round != 2 {
		t.Fatalf("%+v, want a vote for itself in round 2", st)
	}
	hear(e, 1, peerwire.Looking, fresh(5), 2)
	if st := e.State(); st.Vote.Leader != 4 {
		t.Fatalf("%+v: it votes for a server that is no candidate", st)
	}
	hear(e, 5, peerwire.Looking, fresh(5), 3)
	if st := e.State(); st.Vote.Leader != 5 {
		t.Errorf("%+v: the candidate is back", st)
	}
}

// TestVoteOfARestartedServerDoesNotCount: what a voter sent before its restart does not
// count any more, neither as a vote nor as the support of a follower, because the voter
// may have lost its disk. The first message of a connection may be from before the
// restart.
func TestVoteOfARestartedServerDoesNotCount(t *testing.T) {
	for _, again := range []Vote{abstains(2), {2, NoHistory, 0}, fresh(2)} {
		e := alone(5, 1)
		e.Step(0, Look{Zxid: 0x100000001, Epoch: 1, Why: "again"}) // round 2
		hear(e, 5, peerwire.Looking, fresh(5), 2)
		hear(e, 2, peerwire.Looking, fresh(5), 2)
		if !e.State().Settling {
			t.Fatal("three votes of five are no quorum")
		}
		e.Step(0, Heard{From: 2, First: true, Notification: says(e, peerwire.Looking, again, 1)})
		if !e.State().Settling {
			t.Errorf("%v: what may be an old message takes a vote back", again)
		}
		hear(e, 2, peerwire.Looking, again, 1)
		if e.State().Settling {
			t.Errorf("%v: the vote from before the restart counts", again)
		}
	}
	e := alone(5, 1)
	hear(e, 2, peerwire.Following, fresh(5), 9)
	hear(e, 2, peerwire.Looking, Vote{2, NoHistory, 0}, 1)
	hear(e, 3, peerwire.Following, fresh(5), 9)
	hear(e, 5, peerwire.Leading, fresh(5), 9)
	if r := e.Ready(); r.Decision != nil {
		t.Errorf("%+v by the word of a server that has lost its role", r.Decision)
	}
}

// TestFailedCandidateRanksBehindOthers: a candidate whose term failed ranks behind every
// candidate that has the history of this server, even if the failed one has more, and only
// for a while.
func TestFailedCandidateRanksBehindOthers(t *testing.T) {
	failed := []Failed{{Candidate: 5, Times: 2, Until: 1000}, {Candidate: 4, Times: 1, Until: 1000}}
	e := lookWith(5, 3, Look{Zxid: 0x100000001, Epoch: 1, Failed: failed})
	hear(e, 5, peerwire.Looking, fresh(5), 1)
	hear(e, 4, peerwire.Looking, fresh(4), 1)
	if v := e.State().Vote; v.Leader != 3 {
		t.Errorf("votes for %v", v)
	}
	hear(e, 5, peerwire.Looking, Vote{5, 0x100000002, 1}, 1)
	if v := e.State().Vote; v.Leader != 3 {
		t.Errorf("votes for %v, which has more history but failed", v)
	}
	hear(e, 1, peerwire.Looking, Vote{1, 0x100000002, 1}, 1)
	if v := e.State().Vote; v.Leader != 1 {
		t.Errorf("votes for %v, 1 has more history and did not fail", v)
	}
	e = lookWith(5, 3, Look{Zxid: 0x100000001, Epoch: 1, Failed: failed})
	e.Step(1001, Tick{})
	hear(e, 5, peerwire.Looking, fresh(5), 1)
	if v := e.State().Vote; v.Leader != 5 {
		t.Errorf("votes for %v when the pause is over", v)
	}
	e = lookWith(5, 5, Look{Zxid: 0x100000001, Epoch: 1, Failed: failed}) // itself
	hear(e, 2, peerwire.Looking, fresh(2), 1)
	if v := e.State().Vote; v.Leader != 2 {
		t.Errorf("votes for %v", v)
	}
	hear(e, 1, peerwire.Looking, Vote{1, 0x100000000, 1}, 1)
	if v := e.State().Vote; v.Leader != 2 {
		t.Errorf("votes for %v, which lacks history of this server", v)
	}
	e = lookWith(5, 5, Look{Zxid: 0x100000001, Epoch: 1, Failed: failed})
	hear(e, 1, peerwire.Looking, Vote{1, 0x100000000, 1}, 1)
	if v := e.State().Vote; v.Leader != 5 {
		t.Errorf("votes for %v, which could not lead this server", v)
	}
}

// TestOnlyCandidateIsElectedAfterAPause: if a candidate has failed before and no quorum
// agrees on another one, it is elected after a pause, and the reason is reported. A
// candidate that says that it leads is followed at once.
func TestOnlyCandidateIsElectedAfterAPause(t *testing.T) {
	failed := []Failed{{Candidate: 3, Times: 5, Until: 16_000, Again: 800, Why: "nobody could join it"}}
	for _, forward := range []bool{false, true} {
		e := lookWith(3, 1, Look{Zxid: 0x100000001, Epoch: 1, Failed: failed})
		hear(e, 3, peerwire.Looking, Vote{3, 0x100000002, 1}, 1)
		hear(e, 2, peerwire.Looking, Vote{3, 0x100000002, 1}, 1)
		e.Step(splitMS, Tick{})
		r := e.Ready()
		if r.Decision != nil || r.Wake > 800 {
			t.Fatalf("decides %+v, wakes at %d", r.Decision, r.Wake)
		}
		told := false
		for _, h := range r.Observations {
			told = told || strings.Contains(h.String(), "again in 400 ms") && strings.Contains(h.String(), "nobody could join it")
		}
		if !told {
			t.Errorf("told %v", r.Observations)
		}
		if forward {
			hear(e, 3, peerwire.Leading, Vote{3, 0x100000002, 1}, 1)
			if r := e.Ready(); r.Decision == nil {
				t.Error("a candidate that leads is kept waiting")
			}
			continue
		}
		e.Step(799, Tick{})
		if r := e.Ready(); r.Decision != nil {
			t.Error("the pause is too short")
		}
		e.Step(800, Tick{})
		if r := e.Ready(); r.Decision == nil || r.Decision.Vote.Leader != 3 {
			t.Errorf("%+v, want 3", r.Decision)
		}
	}
}

// TestDifferentMemoriesAgree: two of four voters remember failed terms of the best
// candidate and two do not, so no vote gets a quorum. They agree long before the pause is
// over.
func TestDifferentMemoriesAgree(t *testing.T) {
	w := worldOf(4)
	for id := ensemble.ServerID(1); id <= 2; id++ {
		w.servers[id].look.Failed = []Failed{{Candidate: 4, Times: 5, Until: 30_000}}
	}
	w.startAll()
	w.mustConverge(t, splitMS+5*forgiveMS)
}

// TestServerBehindVotesForOneThatCanWin: server 2 has the newest history, but nobody can join it.
// Candidate 3 has once failed for another reason, and server 1 remembers that. Server 1 lacks history,
// so it votes only for itself. It votes for 3 before 3 votes for 2 again.
func TestServerBehindVotesForOneThatCanWin(t *testing.T) {
	w := worldOf(3)
	bad := Failed{Candidate: 2, Times: 2, Until: 2000}
	for id := ensemble.ServerID(1); id <= 3; id++ {
		w.servers[id].look.Failed = []Failed{bad}
	}
	w.servers[1].look.Failed = []Failed{bad, {Candidate: 3, Times: 1, Until: 1000}}
	w.servers[2].look.Zxid += 2
	w.servers[3].look.Zxid++
	w.servers[2].filtered = true
	w.startAll()
	w.mustConverge(t, 2*splitMS) // until server 2 joins too
}

// TestFewFailedTermsAreForgivenFirst: each of two voters remembers failed terms of the other, and both
// remember more of server 3, which nobody can join. They agree before they forgive server 3, which has
// been restarted and remembers nothing.
func TestFewFailedTermsAreForgivenFirst(t *testing.T) {
	w := worldOf(3)
	w.servers[3].filtered = true
	for id, other := range map[ensemble.ServerID]ensemble.ServerID{1: 2, 2: 1} {
		w.servers[id].look.Failed = []Failed{{Candidate: other, Times: 1, Until: 1000}, {Candidate: 3, Times: 3, Until: 4000}}
	}
	w.startAll()
	w.mustConverge(t, 1500) // until server 3 joins too; a term of it would last as long
}

// TestServerThatOthersElectAcceptsIt: each of two candidates remembers its own failed term, so each
// prefers the other. The candidate that a quorum of the others votes for votes for itself.
func TestServerThatOthersElectAcceptsIt(t *testing.T) {
	w := worldOf(3)
	w.servers[3].filtered = true
	for id := ensemble.ServerID(1); id <= 3; id++ {
		w.servers[id].look.Failed = []Failed{{Candidate: id, Times: 1, Until: 1000}, {Candidate: 3, Times: 5, Until: 16_000}}
	}
	w.startAll()
	w.mustConverge(t, settleMax)

	e := lookWith(5, 5, Look{Zxid: 0x100000001, Epoch: 1, Failed: []Failed{{Candidate: 5, Times: 2, Until: 1000}}})
	hear(e, 1, peerwire.Looking, fresh(5), 1)
	hear(e, 2, peerwire.Looking, fresh(5), 1)
	hear(e, 4, peerwire.Looking, fresh(4), 1)
	if v := e.State().Vote; v.Leader != 4 {
		t.Errorf("votes for %v, two of five vote for it", v)
	}
	hear(e, 3, peerwire.Looking, fresh(5), 1)
	if v := e.State().Vote; v.Leader != 5 {
		t.Errorf("votes for %v, a quorum of the others votes for it", v)
	}

	e = lookWith(5, 3, Look{Zxid: 0x100000001, Epoch: 1, Failed: []Failed{{Candidate: 3, Times: 2, Until: 1000}}})
	hear(e, 4, peerwire.Looking, fresh(4), 1)
	for _, id := range []ensemble.ServerID{1, 2, 5} {
		hear(e, id, peerwire.Looking, fresh(3), 1)
	}
	if v := e.State().Vote; v.Leader != 4 {
		t.Errorf("votes for %v, 4 ranks before it by its id", v)
	}
}

// TestSurvivorsThatRememberTheirOwnFailedTerms: two of three voters are up, and each remembers only its own
// failed terms, so each votes for the other. They agree in the first step, however many terms have failed.
func TestSurvivorsThatRememberTheirOwnFailedTerms(t *testing.T) {
	for _, times := range []int{1, 3, 6, 1000} {
		w := worldOf(3)
		for id := ensemble.ServerID(1); id <= 2; id++ {
			w.servers[id].look.Failed = []Failed{{Candidate: id, Times: times, Until: 30_000}}
			w.start(id)
		}
		w.mustConverge(t, splitMS+10)
	}
}

// TestStepsTowardAgreementAreBounded: two of three voters are up, and one of them remembers failed terms of the
// other. The time until they agree is bounded, however many terms have failed.
func TestStepsTowardAgreementAreBounded(t *testing.T) {
	for times, steps := range map[int]int64{1: 1, 2: 1, 3: 2, 40: 4, 128: 4, 129: 5, 1_000_000: 5} {
		w := worldOf(3)
		w.servers[1].look.Failed = []Failed{{Candidate: 2, Times: times, Until: 30_000}}
		w.start(1)
		w.start(2)
		w.mustConverge(t, splitMS+steps*forgiveMS+10)
	}
}

// TestStepsAreReportedIfTheyChangeSomething: a server reports a step in which its vote changes, with the reason,
// and the one in which it forgives all failed terms.
func TestStepsAreReportedIfTheyChangeSomething(t *testing.T) {
	remembers := func(times int, id ensemble.ServerID) Failed {
		return Failed{Candidate: id, Times: times, Until: 30_000}
	}
	type vote struct {
		from ensemble.ServerID
		Vote
	}
	for _, c := range []struct {
		what   string
		id     ensemble.ServerID
		failed []Failed
		votes  []vote
		want   []string // in each step
	}{
		{"its vote stays", 3, []Failed{remembers(20, 1)}, []vote{{1, fresh(1)}, {2, fresh(2)}},
			[]string{"", "", "", "votes for 3 |by history and id alone"}},
		{"its vote changes", 1, []Failed{remembers(5, 2), remembers(20, 3)}, []vote{{2, fresh(2)}, {3, fresh(3)}},
			[]string{"", "", "votes for 2 |up to 8 times"}},
		{"it lacks history", 1, []Failed{remembers(20, 2), remembers(5, 3)}, []vote{{2, Vote{2, 0x100000003, 1}}, {3, Vote{3, 0x100000002, 1}}},
			[]string{"votes for 3 |too few can vote for candidates with less history"}},
		{"its own vote is enough", 2, []Failed{remembers(5, 2), remembers(20, 3)}, []vote{{1, fresh(1)}, {1, fresh(2)}},
			[]string{"votes for 2 |with its own vote"}},
	} {
		e := lookWith(3, c.id, Look{Zxid: 0x100000001, Epoch: 1, Failed: c.failed})
		for _, v := range c.votes {
			hear(e, v.from, peerwire.Looking, v.Vote, 1)
		}
		e.Ready()
		for i, want := range c.want {
			e.Step(splitMS+int64(i)*forgiveMS, Tick{})
			got := ""
			for _, h := range e.Ready().Observations {
				if h, ok := h.(Relaxed); ok {
					got += h.String()
				}
			}
			for _, part := range strings.Split(want, "|") {
				if !strings.Contains(got, part) || want == "" && got != "" {
					t.Errorf("%s, step %d: reports %q, want %q", c.what, i, got, want)
				}
			}
		}
	}
}

// TestFilteredMinorityOfARandomNetwork: learners cannot reach some servers, which are a minority. The
// servers have different histories and remember different failed terms. Within two minutes they all follow a
// server that can be reached.
func TestFilteredMinorityOfARandomNetwork(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.SampledFrom([]int{3, 5}).Draw(t, "voters")
		w := worldOf(n)
		for range rapid.IntRange(1, n/2).Draw(t, "filtered") {
			w.servers[rapid.SampledFrom(w.ids()).Draw(t, "filter")].filtered = true
		}
		for _, id := range w.ids() {
			s := w.servers[id]
			s.look.Epoch = wire.Epoch(rapid.IntRange(1, 2).Draw(t, "epoch"))
			s.look.Zxid = wire.MakeZxid(s.look.Epoch, uint32(rapid.IntRange(0, 2).Draw(t, "counter")))
			s.look.Failed = drawFailed(t, w.ids())
		}
		w.startAll()
		if !w.converge(120_000) || len(w.wrong) > 0 {
			t.Fatalf("%s\n%s\n%s", strings.Join(w.wrong, "\n"), strings.Join(w.output, "\n"), w.states())
		}
	})
}

// TestSplitVoteAtATimeOfResending: a server begins to ignore failed terms, and keeps its vote. It also resends
// the vote if a resend is due at the same time.
func TestSplitVoteAtATimeOfResending(t *testing.T) {
	e := lookWith(3, 3, Look{Zxid: 0x100000001, Epoch: 1, Failed: []Failed{{Candidate: 1, Times: 2, Until: 30_000}}})
	e.Step(200, Tick{})
	for id := ensemble.ServerID(1); id <= 2; id++ {
		e.Step(200, Heard{From: id, Notification: says(e, peerwire.Looking, fresh(2), 1)})
	}
	if r := e.Ready(); r.Wake != 200+splitMS {
		t.Fatalf("wakes at %d, want %d, when the vote is resent too", r.Wake, 200+splitMS)
	}
	e.Step(200+splitMS, Tick{})
	if r := e.Ready(); r.Wake <= 200+splitMS || len(r.Send) != 2 {
		t.Errorf("wakes at %d, sends %v", r.Wake, r.Send)
	}
}

// TestLeaderThatOthersHaveLeftIsGivenUp: a server dials a leader that it could not join
// before. It gives that leader up when so many others look in a later round that the
// leader has no quorum. It does not tell them that it follows, because they would then
// join that leader again.
func TestLeaderThatOthersHaveLeftIsGivenUp(t *testing.T) {
	dials := func(n int, failed ...Failed) *Election {
		e := lookWith(n, 1, Look{Zxid: 0x100000001, Epoch: 1, Failed: failed})
		best := ensemble.ServerID(n)
		for id := ensemble.ServerID(2); id < best; id++ {
			hear(e, id, peerwire.Following, fresh(best), 9)
		}
		hear(e, best, peerwire.Leading, fresh(best), 9)
		if r := e.Ready(); r.Decision == nil || r.Decision.Vote.Leader != best {
			t.Fatalf("%+v, want to follow %d", r.Decision, best)
		}
		return e
	}
	given := func(e *Election, what string, want bool) {
		t.Helper()
		if r := e.Ready(); (r.GiveUp != "") != want || want && len(r.Send) > 0 {
			t.Errorf("%s: gives up %q and sends %v", what, r.GiveUp, r.Send)
		}
	}
	again := func(id ensemble.ServerID) Failed { return Failed{Candidate: id, Times: 1, Until: 1000} }

	e := dials(3, again(3))
	hear(e, 2, peerwire.Looking, fresh(2), 9)
	given(e, "a voter looks in the same round", false)
	e.Step(0, Heard{From: 2, First: true, Notification: says(e, peerwire.Looking, fresh(2), 10)})
	given(e, "the first message of a connection", false)
	hear(e, 2, peerwire.Looking, fresh(2), 10)
	given(e, "the other voter looks in a later round", true)

	e = dials(3)
	hear(e, 2, peerwire.Looking, fresh(2), 10)
	given(e, "the first time that the leader is dialled", false)

	e = dials(3, again(3))
	e.Step(0, Linked{})
	hear(e, 2, peerwire.Looking, fresh(2), 10)
	given(e, "the leader is reached", false)

	e = dials(5, again(5))
	hear(e, 2, peerwire.Looking, fresh(2), 10)
	given(e, "one of four looks", false)
	hear(e, 2, peerwire.Following, fresh(5), 10)
	hear(e, 3, peerwire.Looking, fresh(2), 10)
	given(e, "that one follows again, and another looks", false)
	hear(e, 4, peerwire.Looking, fresh(2), 10)
	given(e, "two look", true)
}

// TestForgivenTerms checks how many failed terms of a candidate count as none after each step that a server has taken
// because votes stayed split.
func TestForgivenTerms(t *testing.T) {
	e := lookWith(3, 3, Look{Zxid: 0x2d, Epoch: 1})
	penalty := func(splits, times int) int {
		e.splits, e.failed = splits, map[ensemble.ServerID]Failed{2: {Candidate: 2, Times: times, Until: 1000}}
		return e.penalty(2)
	}
	for splits, times := range []int{0, 0, 2, 8, 32, 128} {
		if p := penalty(splits, times); p != 0 {
			t.Errorf("after %d steps, %d failed terms count as %d", splits, times, p)
		}
		if p := penalty(splits, times+1); p != times+1 {
			t.Errorf("after %d steps, %d failed terms count as %d", splits, times+1, p)
		}
	}
	if p := penalty(6, 1<<40); p != 0 {
		t.Errorf("after the last step, failed terms count as %d", p)
	}
}
