package election

import (
	"slices"
	"strings"
	"testing"

	"bellwether/internal/ensemble"
	"bellwether/internal/peerwire"
)

// TestVoterOfTwoMembershipsIsOneVoter: while a reconfiguration is proposed, a voter of both memberships
// is one voter.
func TestVoterOfTwoMembershipsIsOneVoter(t *testing.T) {
	proposed := membership(7, []ensemble.ServerID{1, 2, 3, 4}, nil, nil, nil)
	e := New(Options{ID: 1, Committed: plain(0, 3), Proposed: proposed, Reconfig: true})
	if want := []ensemble.ServerID{1, 2, 3, 4}; !slices.Equal(e.voters, want) {
		t.Errorf("the voters are %v, want %v", e.voters, want)
	}
}

// TestWithdrawnProposalIsNotWaitedFor: votes that are a quorum of the committed membership, but none of the
// proposed one, end the election as soon as the proposal is withdrawn.
func TestWithdrawnProposalIsNotWaitedFor(t *testing.T) {
	proposed := membership(7, []ensemble.ServerID{3, 4, 5}, nil, nil, nil)
	e := New(Options{ID: 3, Committed: plain(0, 3), Proposed: proposed, Reconfig: true})
	e.Step(0, Look{Zxid: 0x100000001, Epoch: 1, Why: "started"})
	for id := ensemble.ServerID(1); id <= 2; id++ {
		hear(e, id, peerwire.Looking, fresh(3), 1)
	}
	if st := e.State(); st.Settling || e.Ready().Decision != nil {
		t.Fatalf("%+v: no voter of the proposal but this server has voted", st)
	}
	e.Step(0, Configured{Committed: plain(0, 3)})
	if r := e.Ready(); r.Decision == nil && !e.State().Settling {
		t.Errorf("all voters have voted: %+v", e.State())
	}
}

// TestVoterOfTheProposalOnlyIsInALaterRound: server 4 has a vote in the proposed membership only, and without its vote there is
// no quorum of that one, because server 3 has lost its disk. It looks in a later round than servers 1 and 2, which were
// restarted. They join its round, so that it votes for one of them.
func TestVoterOfTheProposalOnlyIsInALaterRound(t *testing.T) {
	proposed := membership(7, []ensemble.ServerID{1, 2, 3, 4}, nil, nil, nil)
	e := New(Options{ID: 2, Committed: plain(0, 3), Proposed: proposed, Reconfig: true})
	e.Step(0, Look{Zxid: 0x100000001, Epoch: 1, Why: "started"})
	hear(e, 1, peerwire.Looking, fresh(2), 1)
	hear(e, 4, peerwire.Looking, Vote{peerwire.NoServer, 0x100000001, 1}, 5)
	if st := e.State(); st.Round != 5 {
		t.Fatalf("%+v, want round 5", st)
	}
	hear(e, 1, peerwire.Looking, fresh(2), 5)
	if e.Step(settleMax, Tick{}); e.Ready().Decision != nil {
		t.Error("leads without a quorum of the proposed membership")
	}
	hear(e, 4, peerwire.Looking, fresh(2), 5)
	e.Step(2*settleMax, Tick{})
	if d := e.Ready().Decision; d == nil || d.State != peerwire.Leading {
		t.Errorf("%+v, want to lead", d)
	}
}

// TestVoterThatComesBackIsNotDown: a server that was down when it stopped being a voter counts as any other
// when it is a voter again.
func TestVoterThatComesBackIsNotDown(t *testing.T) {
	with := membership(7, []ensemble.ServerID{1, 2, 3, 4}, nil, nil, nil)
	e := New(Options{ID: 3, Committed: plain(0, 3), Proposed: with, Reconfig: true})
	e.Step(0, Look{Zxid: 0x100000001, Epoch: 1, Why: "started"})
	e.lost(4)
	e.Step(0, Configured{Committed: plain(0, 3)})
	e.Step(0, Configured{Committed: plain(0, 3), Proposed: with})
	if e.down[4] {
		t.Error("server 4 counts as down although nothing is known of it")
	}
}

// TestExpiredFailureCausesNoSplit: a candidate whose pause is over is as good as any other. Votes that do not
// agree are not explained by it.
func TestExpiredFailureCausesNoSplit(t *testing.T) {
	e := lookWith(5, 1, Look{Zxid: 0x100000001, Epoch: 1, Failed: []Failed{{Candidate: 5, Times: 1, Until: 0}}})
	hear(e, 2, peerwire.Looking, fresh(4), 1)
	hear(e, 3, peerwire.Looking, fresh(3), 1)
	e.Ready()
	e.Step(splitMS, Tick{})
	for _, h := range e.Ready().Observations {
		if _, ok := h.(Relaxed); ok {
			t.Errorf("%v, and no failed term counts", h)
		}
	}
}

// TestWeightlessCandidateDoesNotReplaceAFailedOne: a server without weight in its group must not be elected.
// It is not preferred to a candidate whose term has failed either.
func TestWeightlessCandidateDoesNotReplaceAFailedOne(t *testing.T) {
	ids := []ensemble.ServerID{1, 2, 3, 4, 5}
	groups := map[ensemble.GroupID][]ensemble.ServerID{1: ids}
	m := membership(0, ids, nil, groups, map[ensemble.ServerID]int64{1: 1, 2: 1, 3: 1, 4: 0, 5: 1})
	e := New(Options{ID: 4, Committed: m, Reconfig: true})
	e.Step(0, Look{Zxid: 0x100000001, Epoch: 1, Failed: []Failed{{Candidate: 5, Times: 1, Until: 1000}}, Why: "started"})
	hear(e, 5, peerwire.Looking, fresh(5), 1)
	if v := e.State().Vote; v.Leader != 5 {
		t.Errorf("server 4 has no weight and votes for %v", v)
	}
}

// TestRecordSaysThatAServerIsBarred: the record of an election says that a server without history stopped being a
// candidate because another server has history.
func TestRecordSaysThatAServerIsBarred(t *testing.T) {
	e := lookWith(3, 3, Look{Zxid: 0, Epoch: 0})
	hear(e, 1, peerwire.Looking, fresh(1), 1)
	if !e.State().Barred || !e.running.Barred {
		t.Errorf("barred: %v, by the record: %v", e.State().Barred, e.running.Barred)
	}
}

// TestStrangersAreForgotten: of servers that are not members, only a limited number is remembered.
func TestStrangersAreForgotten(t *testing.T) {
	e := alone(3, 1)
	for i := range strangersMax + 10 {
		hear(e, ensemble.ServerID(100+i), peerwire.Looking, fresh(ensemble.ServerID(100+i)), 1)
		if len(e.told) > strangersMax {
			t.Fatalf("%d are remembered", len(e.told))
		}
	}
}

// TestOldAndNewMembersOfARunningEnsemble: a follower from before 3.4.6 may report another epoch than the leader
// that it follows. Together they are a quorum that follows this leader, whichever version number the old
// follower's messages carry.
func TestOldAndNewMembersOfARunningEnsemble(t *testing.T) {
	for version := range peerwire.NotificationConfig {
		e := alone(3, 1)
		hear(e, 3, peerwire.Leading, Vote{3, 0x500000000, 5}, 9)
		old := says(e, peerwire.Following, Vote{3, 0x400000000, 4}, 8)
		old.Version, old.Config = version, ""
		e.Step(e.now, Heard{From: 2, Notification: old})
		if r := e.Ready(); r.Decision == nil || r.Decision.Vote.Leader != 3 {
			t.Errorf("version %d: %+v, want to follow 3", version, r.Decision)
		}
	}
}

// TestRecordOfARole: the record of a role has the epoch in which the server served, and says how many votes it leaves out.
func TestRecordOfARole(t *testing.T) {
	e := alone(3, 3)
	for range heardMax + 1 {
		hear(e, 1, peerwire.Looking, Vote{1, 0x100000001, 1}, 0)
	}
	e.running.Votes = e.running.Votes[:0] // room for the vote that decides
	dropped := e.running.Dropped
	hear(e, 1, peerwire.Looking, fresh(3), 1)
	e.Step(10_000, Tick{})
	e.Step(10_001, Established{7})
	records := e.Records()
	r := records[len(records)-1]
	if dropped != 1 || r.Epoch != 7 || r.Phase != Serve || !strings.Contains(r.Explain(), "\n  and 1 more\n") {
		t.Errorf("%d votes dropped, epoch %d, phase %v:\n%s", dropped, r.Epoch, r.Phase, r.Explain())
	}
}

// TestFoundingVoterWithAllWeightDecides: an empty server that was barred stops being so once all others are empty, too. If its
// own vote is a quorum then, it waits from that moment on for better votes, and leads when none has come.
func TestFoundingVoterWithAllWeightDecides(t *testing.T) {
	ids := []ensemble.ServerID{1, 2, 3}
	m := membership(0, ids, nil, map[ensemble.GroupID][]ensemble.ServerID{1: ids}, map[ensemble.ServerID]int64{1: 0, 2: 0, 3: 1})
	e := New(Options{ID: 3, Committed: m, Reconfig: true})
	e.Step(0, Look{Why: "started"})
	hear(e, 1, peerwire.Looking, Vote{1, 0, 1}, 1) // it has an epoch, so there may be history
	if !e.State().Barred || !tells[Barred](e) {
		t.Fatalf("%+v", e.State())
	}
	hear(e, 2, peerwire.Looking, Vote{2, 0, 0}, 1)
	if !tells[Founded](e) {
		t.Error("nobody is told")
	}
	if st := e.State(); st.Barred || !st.Settling {
		t.Errorf("%+v", st)
	}
	e.Step(1000, Tick{})
	if st := e.State(); st.Role != peerwire.Leading {
		t.Errorf("after a second: %+v", st)
	}
}

// TestLastEmptyVoterDoesNotBar: a voter with an epoch and no transaction may have lost history, and bars an empty server. But if it is the
// last of the others, and all of them are empty, there is no history, and the server votes on in its round.
func TestLastEmptyVoterDoesNotBar(t *testing.T) {
	e := lookWith(3, 3, Look{})
	e.Ready()
	hear(e, 1, peerwire.Looking, Vote{1, 0, 0}, 1)
	hear(e, 2, peerwire.Looking, Vote{2, 0, 1}, 1)
	for _, o := range e.Ready().Observations {
		switch o.(type) {
		case Barred, Founded:
			t.Errorf("%v", o)
		}
	}
	if st := e.State(); st.Barred || st.Round != 1 {
		t.Errorf("%+v", st)
	}
}

// TestFirstTransactionIsHistory: a server whose only transaction is the very first one, as a standalone server has it, is not empty.
func TestFirstTransactionIsHistory(t *testing.T) {
	e := lookWith(3, 3, Look{})
	hear(e, 1, peerwire.Looking, Vote{1, 1, 0}, 1)
	hear(e, 2, peerwire.Looking, Vote{2, 0, 0}, 1)
	if e.empties[1] || !e.empties[2] || e.allEmpty() {
		t.Errorf("empty: %v", e.empties)
	}
}

// TestVoterOfALaterRoundWithoutACandidate: a server that has a vote only in the proposed membership brings its round, and no vote.
func TestVoterOfALaterRoundWithoutACandidate(t *testing.T) {
	e := alone(3, 3)
	hear(e, 1, peerwire.Looking, Vote{peerwire.NoServer, 0x100000001, 1}, 5)
	if _, kept := e.votes[1]; kept || e.State().Round != 5 || len(e.running.Votes) != 1 {
		t.Errorf("kept %v, %+v, votes of the record: %+v", kept, e.State(), e.running.Votes)
	}
}

// tells reports whether an observation of a type has been made since the last call.
func tells[T Observation](e *Election) bool {
	return slices.ContainsFunc(e.Ready().Observations, func(o Observation) bool { _, ok := o.(T); return ok })
}

// TestCandidateWithdraws: when the candidate of a server's vote says that it has no history any more, the server says so, and votes for
// another one in the next round.
func TestCandidateWithdraws(t *testing.T) {
	e := alone(3, 1)
	hear(e, 2, peerwire.Looking, fresh(2), 1)
	if v := e.State().Vote; v.Leader != 2 || tells[Withdrawn](e) {
		t.Fatalf("votes for %v", v)
	}
	hear(e, 2, peerwire.Looking, abstains(2), 1)
	if st := e.State(); st.Vote.Leader != 1 || st.Round != 2 || !tells[Withdrawn](e) {
		t.Errorf("%+v", st)
	}
}
