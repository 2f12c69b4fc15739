package election

import (
	"slices"
	"strings"
	"testing"

	"bellwether/internal/ensemble"
	"bellwether/internal/peerwire"
	"bellwether/wire"
)

// hear steps a notification from a server of the present version.
func hear(e *Election, from ensemble.ServerID, state peerwire.ServerState, v Vote, round wire.Epoch) {
	e.Step(e.now, Heard{From: from, Notification: says(e, state, v, round)})
}

// TestLaterRoundForgetsTheEarlier: neither the proposal nor the votes of an earlier round
// count in the next round.
func TestLaterRoundForgetsTheEarlier(t *testing.T) {
	e := alone(3, 1)
	hear(e, 3, peerwire.Looking, Vote{3, 0x100000005, 1}, 1)
	hear(e, 2, peerwire.Looking, Vote{2, 0x100000003, 1}, 2)
	if st := e.State(); st.Round != 2 || st.Vote.Leader != 2 {
		t.Errorf("%+v, want a vote for 2 in round 2", st)
	}
	// A follower of round 1 does not help a leader of round 3.
	e = alone(3, 1)
	hear(e, 3, peerwire.Following, Vote{2, 0x100000001, 1}, 1)
	e.Step(1, Look{Zxid: 0x100000001, Epoch: 1, Why: "again"})
	hear(e, 2, peerwire.Leading, Vote{2, 0x100000001, 1}, 2)
	if st := e.State(); st.Role != peerwire.Looking {
		t.Errorf("%+v on the word of one", st)
	}
}

// TestRepeatedMessageTakesNothingBack: a vote that was heard on an existing connection
// still counts as new after it is resent on another connection.
func TestRepeatedMessageTakesNothingBack(t *testing.T) {
	e := alone(3, 1)
	v := Vote{2, 0x100000005, 1}
	hear(e, 2, peerwire.Looking, v, 1)
	e.Step(1, Heard{From: 2, First: true, Notification: says(e, peerwire.Looking, v, 1)})
	e.Step(2, Down{3})
	if r := e.Ready(); r.Decision == nil || r.Decision.Ending != Unanimous {
		t.Errorf("%+v, want a decision", r)
	}
}

// TestDownCandidateIsWaitedFor: other voters may be down, but the server waits for the
// candidate until it has heard from it.
func TestDownCandidateIsWaitedFor(t *testing.T) {
	e := alone(5, 1)
	v := Vote{5, 0x100000005, 1}
	e.Step(1, Down{4})
	e.Step(1, Down{5})
	hear(e, 2, peerwire.Looking, v, 1)
	hear(e, 3, peerwire.Looking, v, 1)
	if st := e.State(); !st.Settling {
		t.Fatalf("%+v, want to settle", st)
	}
	// A message from the candidate shows that it is not down.
	hear(e, 5, peerwire.Looking, v, 1)
	if st := e.State(); st.Role != peerwire.Following {
		t.Errorf("%+v, want FOLLOWING", st)
	}
}

// TestSingleVoterWithoutDatabaseDoesNotLead: a single voter whose database is missing
// does not start with an empty one.
func TestSingleVoterWithoutDatabaseDoesNotLead(t *testing.T) {
	e := New(Options{ID: 1, Committed: plain(0, 1)})
	e.Step(0, Look{Zxid: NoHistory, Why: "started"})
	e.Step(10_000, Tick{})
	if st := e.State(); st.Role != peerwire.Looking {
		t.Errorf("%+v, want LOOKING", st)
	}
	e.Step(10_001, Look{Zxid: 0, Why: "made one"})
	if st := e.State(); st.Role != peerwire.Looking || !st.Barred {
		t.Errorf("%+v: an empty log is no proof that nothing was lost", st)
	}
	e.Step(10_002, Look{Zxid: 0, Initialized: true, Why: "the operator says so"})
	if st := e.State(); st.Role != peerwire.Leading {
		t.Errorf("%+v, want LEADING", st)
	}
}

// TestSingleVoter: an ensemble of one decides at once.
func TestSingleVoter(t *testing.T) {
	e := New(Options{ID: 7, Committed: membership(0, []ensemble.ServerID{7}, nil, nil, nil)})
	e.Step(0, Look{Why: "started"})
	r := e.Ready()
	if r.Decision == nil || r.Decision.State != peerwire.Leading || len(r.Send) != 0 || r.Wake != Never {
		t.Errorf("%+v", r)
	}
}

// TestServerWithoutVoteWaitsForALeader: a server without a vote decides, also without data, when a quorum follows a leader
// that says that it leads. It does not decide when the voters agree: ZooKeeper's voters that look for a leader answer it
// with their vote of the election before, in the new round.
func TestServerWithoutVoteWaitsForALeader(t *testing.T) {
	m := membership(0, []ensemble.ServerID{1, 2, 3}, []ensemble.ServerID{4}, nil, nil)
	for _, id := range []ensemble.ServerID{4, 5} { // 5 is to become a member
		e := New(Options{ID: id, Committed: m})
		e.Step(0, Look{Why: "started"})
		for _, from := range []ensemble.ServerID{1, 2} {
			hear(e, from, peerwire.Looking, Vote{3, 0x100000009, 1}, 2) // 3 has led, and is dead
		}
		e.Step(60_000, Tick{})
		if st := e.State(); st.Role != peerwire.Looking {
			t.Errorf("%d decides by votes: %+v", id, st)
		}
		hear(e, 1, peerwire.Following, Vote{2, 0x100000009, 1}, 2)
		hear(e, 2, peerwire.Leading, Vote{2, 0x100000009, 1}, 2)
		want := peerwire.Observing
		if id == 5 {
			want = peerwire.Following
		}
		if st := e.State(); st.Role != want || st.Vote.Leader != 2 || st.Barred {
			t.Errorf("%d: %+v, want %s 2", id, st, want)
		}
	}
}

// TestNothingIsSentWithoutAVoter: a ZooKeeper server may stop answering after it hears of
// a membership without voters, so such a membership is not sent.
func TestNothingIsSentWithoutAVoter(t *testing.T) {
	e := New(Options{ID: 5, Committed: membership(0, nil, []ensemble.ServerID{4}, nil, nil)})
	e.Step(0, Look{Why: "started"})
	e.Step(1, Heard{From: 4, Notification: peerwire.Notification{State: peerwire.Looking, Version: peerwire.NotificationPlain}})
	r := e.Ready()
	if len(r.Send) != 1 || r.Send[0].Notification.Version != peerwire.NotificationPlain || r.Send[0].Notification.Config != "" {
		t.Errorf("%+v", r.Send)
	}
}

// TestMembershipIsOnlyAdoptedWhereAllowed: a membership is not adopted if reconfiguration
// is disabled, if the server has a role, or if it is older.
func TestMembershipIsOnlyAdoptedWhereAllowed(t *testing.T) {
	newer := plain(9, 5)
	for _, c := range []struct {
		name  string
		allow bool
		own   *ensemble.Membership
		role  bool
		want  bool
	}{
		{"newer", true, plain(3, 3), false, true},
		{"not allowed", false, plain(3, 3), false, false},
		{"older", true, plain(10, 3), false, false},
		{"in a role", true, plain(3, 3), true, false},
	} {
		e := New(Options{ID: 1, Committed: c.own, Reconfig: c.allow})
		e.Step(0, Look{Zxid: 1, Epoch: 1, Why: "started"})
		if c.role {
			e.Step(0, Appointed{Leader: 2})
		}
		e.Ready()
		n := says(e, peerwire.Looking, Vote{2, 5, 1}, 1)
		n.Config = newer.String()
		e.Step(1, Heard{From: 2, Notification: n})
		if got := e.Ready().Adopt != nil; got != c.want {
			t.Errorf("%s: adopted %v", c.name, got)
		}
	}
}

// TestSameMembersAtANewerVersion: with a newer version of the same members, the election
// continues, and the vote that brought the version counts.
func TestSameMembersAtANewerVersion(t *testing.T) {
	e := alone(3, 1)
	n := says(e, peerwire.Looking, Vote{2, 0x100000005, 1}, 1)
	n.Config = plain(9, 3).String()
	e.Step(1, Heard{From: 2, Notification: n})
	r := e.Ready()
	if st := e.State(); r.Adopt == nil || st.Round != 1 || st.Vote.Leader != 2 || len(e.Records()) != 1 {
		t.Errorf("%+v %+v", r, st)
	}
}

// TestMembershipChangesWhileLooking: when the membership changes, the votes of former
// voters are dropped, and a new election begins.
func TestMembershipChangesWhileLooking(t *testing.T) {
	e := alone(3, 1)
	e.Step(1, Look{Zxid: 0x100000001, Epoch: 1, Why: "again"})
	hear(e, 3, peerwire.Looking, Vote{3, 0x100000005, 1}, 2)
	e.Step(2, RoundTrip{3, 5e6})
	e.Step(3, Configured{Committed: membership(4, []ensemble.ServerID{1, 2}, nil, nil, nil)})
	if st := e.State(); st.Round != 1 || st.Vote.Leader != 1 || len(e.trips) != 0 {
		t.Errorf("%+v %v", st, e.trips)
	}
	if r := e.Records(); len(r) != 3 || r[1].Decision.Ending != Reconfigured {
		t.Errorf("%+v", r)
	}
}

// TestRecordsAreBounded: the numbers of elections and of votes that are recorded are
// limited.
func TestRecordsAreBounded(t *testing.T) {
	e := alone(3, 1)
	for i := range 256 + 10 {
		hear(e, 2, peerwire.Looking, Vote{1, 0, 0}, wire.Epoch(i))
	}
	if r := e.Records()[0]; len(r.Votes) != 256 || r.Dropped != 10 || len(r.Rounds) != roundsMax {
		t.Errorf("%d votes, %d dropped, %d rounds", len(r.Votes), r.Dropped, len(r.Rounds))
	}
	if r := e.Records()[0]; len(r.Changes) != changesMax {
		t.Errorf("%d changes of the vote", len(r.Changes))
	}
	for range recordsMax + 10 {
		e.Step(1, Look{Zxid: 1, Epoch: 1, Why: "again"})
	}
	if n := len(e.Records()); n != recordsMax+1 {
		t.Errorf("%d records", n)
	}
}

// TestRecordKeepsWhatWasSent: the record tells when this server changed its vote, after
// which votes of others, when it sent which vote to whom, and when it waited. What is sent
// while it serves is not recorded, and the number of sent votes is limited.
func TestRecordKeepsWhatWasSent(t *testing.T) {
	e := alone(3, 1)
	e.Ready()
	e.Step(4, RoundTrip{3, 5e6})
	e.Step(5, Tick{})
	hear(e, 3, peerwire.Looking, Vote{3, 0x100000005, 1}, 1)
	e.Ready()
	for i := range int64(sentMax) {
		e.now = 5 + i
		hear(e, 2, peerwire.Looking, Vote{2, 0, 0}, 0) // an earlier round is answered
		e.Ready()
	}
	e.Step(300, Tick{})
	e.Step(301, Established{1})
	hear(e, 2, peerwire.Looking, Vote{2, 0, 0}, 1)
	e.Ready()
	r := e.Records()[0]
	others := []ensemble.ServerID{2, 3}
	better := Vote{3, 0x100000005, 1}
	if want := []OwnVote{{0, 1, r.Own, 0}, {5, 1, better, 0}}; !slices.Equal(r.Changes, want) {
		t.Errorf("changes %+v, want %+v", r.Changes, want)
	}
	if s := r.SentVotes; len(s) < 2 || !slices.Equal(s[0].To, others) || s[0].Vote != r.Own || s[0].AtMS != 0 ||
		!slices.Equal(s[1].To, others) || s[1].Vote != better || s[1].AtMS != 5 || s[1].Heard != 1 || s[1].Round != 1 || s[1].State != peerwire.Looking {
		t.Errorf("sent %+v", s)
	}
	kept := 0
	for _, s := range r.SentVotes {
		kept += len(s.To)
	}
	if kept != sentMax || r.SentDropped != 4 {
		t.Errorf("%d sent votes kept, %d dropped", kept, r.SentDropped)
	}
	if len(r.Waits) != 1 || r.Waits[0] != (Wait{5, 20}) {
		t.Errorf("waits %+v", r.Waits)
	}
}

// TestAnswersToStrangersInARole: a server that has a role answers a looking server that is
// no voter with its role and its round, as ZooKeeper does. It answers each looking
// notification once, and no notification of another state.
func TestAnswersToStrangersInARole(t *testing.T) {
	e := alone(3, 1) // round 1
	e.Step(1, Appointed{Leader: 2, Zxid: 0x100000009})
	e.Ready()
	hear(e, 9, peerwire.Looking, noVote, 1)
	r := e.Ready()
	if len(r.Send) != 1 || r.Send[0].Notification.State != peerwire.Following || r.Send[0].Notification.ElectionEpoch != 1 {
		t.Errorf("%+v", r.Send)
	}
	e.Step(1000, Tick{})
	for _, state := range []peerwire.ServerState{peerwire.Following, peerwire.Leading, peerwire.Observing} {
		hear(e, 9, state, Vote{2, 0, 1}, 1)
	}
	if r := e.Ready(); len(r.Send) != 0 {
		t.Errorf("answered %+v", r.Send)
	}
}

// TestObservingVoterIsNotCounted: the vote of a server that says that it observes does
// not count, even if it is a voter in the membership.
func TestObservingVoterIsNotCounted(t *testing.T) {
	e := alone(3, 1)
	v := Vote{2, 0x100000005, 1}
	hear(e, 3, peerwire.Observing, v, 1)
	hear(e, 2, peerwire.Leading, v, 1)
	e.Step(1000, Tick{})
	if st := e.State(); st.Role != peerwire.Looking {
		t.Errorf("%+v", st)
	}
}

// TestGivesUpOnce: a server gives up its leader at most once for each decision.
func TestGivesUpOnce(t *testing.T) {
	e := alone(3, 1)
	v := Vote{2, 0x100000005, 1}
	hear(e, 2, peerwire.Looking, v, 1)
	e.Step(300, Tick{})
	for i := range 2 {
		hear(e, 2, peerwire.Looking, v, 2)
		if r := e.Ready(); (r.GiveUp != "") != (i == 0) {
			t.Errorf("time %d: %q", i, r.GiveUp)
		}
	}
}

// TestLeaderMustSayThatItLeads: a leader that a quorum follows is not followed while it
// still looks itself.
func TestLeaderMustSayThatItLeads(t *testing.T) {
	e := alone(5, 1)
	v := Vote{2, 0x100000005, 1}
	for from, state := range map[ensemble.ServerID]peerwire.ServerState{2: peerwire.Looking, 3: peerwire.Following, 4: peerwire.Following} {
		hear(e, from, state, v, 1)
	}
	if st := e.State(); st.Role != peerwire.Looking {
		t.Errorf("%+v", st)
	}
}

// TestLateMessageOfTheCandidate: a message that the candidate sent in an earlier round
// may arrive late. It shows that the candidate has begun a new election only if the
// candidate was heard in the round in which it was elected.
func TestLateMessageOfTheCandidate(t *testing.T) {
	for _, heard := range []bool{false, true} {
		e := alone(5, 1)
		v := Vote{2, 0x100000005, 1}
		from := []ensemble.ServerID{3, 4}
		if heard {
			from = []ensemble.ServerID{3, 2}
		}
		for _, id := range from {
			hear(e, id, peerwire.Looking, v, 2)
		}
		e.Step(300, Tick{})
		hear(e, 2, peerwire.Looking, v, 1)
		if r := e.Ready(); r.Decision == nil || (r.GiveUp != "") != heard {
			t.Errorf("heard before %v: %+v", heard, r)
		}
	}
}

// TestServerThatIsHeardIsNotDown: a server whose connection was refused is waited for
// again after it sends something.
func TestServerThatIsHeardIsNotDown(t *testing.T) {
	e := alone(3, 1)
	e.Step(1, Down{3})
	hear(e, 3, peerwire.Looking, Vote{3, 0x100000001, 1}, 1)
	hear(e, 2, peerwire.Looking, Vote{2, 0x100000005, 1}, 1)
	if st := e.State(); !st.Settling {
		t.Errorf("%+v, want to settle", st)
	}
}

// TestLateNewsOfARole: a report about a role that has ended does not affect the present
// election.
func TestLateNewsOfARole(t *testing.T) {
	e := alone(3, 1)
	e.Step(1, Joined{})
	e.Step(1, Established{7})
	if r := e.Records()[0]; r.Phase != Search || r.Epoch != 0 || e.State().Role != peerwire.Looking {
		t.Errorf("%+v", r)
	}
}

// TestLookTakesBackTheDecision: a decision that was not taken before the next election
// begins is dropped.
func TestLookTakesBackTheDecision(t *testing.T) {
	e := alone(3, 1)
	v := Vote{2, 0x100000005, 1}
	hear(e, 2, peerwire.Looking, v, 1)
	hear(e, 3, peerwire.Looking, v, 1)
	hear(e, 2, peerwire.Looking, v, 2)
	e.Step(1, Look{Zxid: 0x100000001, Epoch: 1, Why: "again"})
	if r := e.Ready(); r.Decision != nil || r.GiveUp != "" {
		t.Errorf("%+v", r)
	}
}

// TestLookingServerIsSentABetterVote: a server receives a vote while it has a role. When
// it then looks with a worse vote, it is sent that vote again at once, and does not have
// to wait for the next repetition.
func TestLookingServerIsSentABetterVote(t *testing.T) {
	e := alone(3, 3)
	worse := Vote{2, 0, 0}
	hear(e, 2, peerwire.Following, Vote{1, 0, 0}, 0)
	for i, want := range []int{1, 0} {
		e.Ready()
		hear(e, 2, peerwire.Looking, worse, 1)
		sent := e.Ready().Send
		if len(sent) != want || want > 0 && (sent[0].To != 2 || sent[0].Notification.Leader != 3) {
			t.Errorf("at message %d it said %+v", i+1, sent)
		}
	}
}

// TestHalfSynchronisedIsEmpty: a server lost its disk and got a leader's snapshot, but
// had not adopted its epoch when that leader died. It is not a candidate, and does not vote
// for others, because their history may lack what it had acknowledged before it lost its
// disk.
func TestHalfSynchronisedIsEmpty(t *testing.T) {
	for _, began := range []wire.Zxid{0, 0x600000035} { // before the snapshot came, or after a restart
		e := New(Options{ID: 3, Committed: plain(0, 3)})
		e.Step(0, Look{Zxid: began, Why: "started"})
		hear(e, 1, peerwire.Looking, Vote{1, 0x400000041, 4}, 1)
		e.Step(1, Look{Zxid: 0x600000035, Why: "the leader died"})
		hear(e, 1, peerwire.Looking, Vote{1, 0x400000041, 4}, 2)
		e.Step(10_000, Tick{})
		if st := e.State(); !st.Barred || st.Role != peerwire.Looking {
			t.Errorf("begun at %v: %+v", began, st)
		}
		e.Step(10_001, Look{Zxid: 0x600000035, Epoch: 7, Why: "synchronised"})
		if st := e.State(); st.Barred {
			t.Errorf("begun at %v, synchronised: %+v", began, st)
		}
	}
}

// TestImplausibleNotifications shows the first values on both sides of each limit.
func TestImplausibleNotifications(t *testing.T) {
	for _, c := range []struct {
		name string
		n    peerwire.Notification
		fine bool
	}{
		{"the first state", peerwire.Notification{State: peerwire.Looking}, true},
		{"below the first state", peerwire.Notification{State: peerwire.Looking - 1}, false},
		{"the last state", peerwire.Notification{State: peerwire.Observing}, true},
		{"above the last state", peerwire.Notification{State: peerwire.Observing + 1}, false},
		{"looking before the first round", peerwire.Notification{State: peerwire.Looking, ElectionEpoch: -1}, false},
		{"following, of no round", peerwire.Notification{State: peerwire.Following, ElectionEpoch: -1}, true},
		{"following, below that", peerwire.Notification{State: peerwire.Following, ElectionEpoch: -2}, false},
		{"the last round", peerwire.Notification{ElectionEpoch: 1 << 48}, true},
		{"behind the last round", peerwire.Notification{ElectionEpoch: 1<<48 + 1}, false},
		{"no history", peerwire.Notification{Zxid: NoHistory}, true},
		{"less than no history", peerwire.Notification{Zxid: NoHistory - 1}, false},
		{"less than no history, for nobody", peerwire.Notification{Leader: peerwire.NoServer, Zxid: NoHistory - 1}, true},
		{"no epoch", peerwire.Notification{PeerEpoch: -1}, true},
		{"less than no epoch", peerwire.Notification{PeerEpoch: -2}, false},
		{"the last epoch", peerwire.Notification{PeerEpoch: epochMax}, true},
		{"behind the last epoch", peerwire.Notification{PeerEpoch: epochMax + 1}, false},
	} {
		if why := implausible(&c.n); (why == "") != c.fine {
			t.Errorf("%s: %q", c.name, why)
		}
	}
}

// TestRecordKeepsTheLastRound: a record that is full replaces its last round by the next one.
func TestRecordKeepsTheLastRound(t *testing.T) {
	r := &Record{}
	for n := range wire.Epoch(roundsMax + 2) {
		r.rounds(n + 1)
	}
	if n := len(r.Rounds); n != roundsMax || r.Rounds[0] != 1 || r.Rounds[n-2] != roundsMax-1 || r.Rounds[n-1] != roundsMax+2 {
		t.Errorf("%d rounds, %v", n, r.Rounds)
	}
}

// TestNothingRemainsOfAFormerVoter: a server that is no voter any more is forgotten in every respect.
func TestNothingRemainsOfAFormerVoter(t *testing.T) {
	e := alone(3, 1)
	hear(e, 2, peerwire.Following, Vote{3, 0, 0}, 1)
	for _, id := range []ensemble.ServerID{2, 9} {
		e.votes[id], e.outside[id] = e.votes[2], e.outside[2]
		e.down[id], e.empties[id], e.trips[id] = e.down[2], e.empties[2], e.trips[2]
	}
	e.prune()
	for what, kept := range map[string][2]bool{
		"votes": {has(e.votes, 2), has(e.votes, 9)}, "outside": {has(e.outside, 2), has(e.outside, 9)}, "down": {has(e.down, 2), has(e.down, 9)},
		"empties": {has(e.empties, 2), has(e.empties, 9)}, "trips": {has(e.trips, 2), has(e.trips, 9)},
	} {
		if kept != [2]bool{true, false} {
			t.Errorf("%s: a voter and a server that is none remain: %v", what, kept)
		}
	}
}

func has[V any](m map[ensemble.ServerID]V, id ensemble.ServerID) bool {
	_, yes := m[id]
	return yes
}

// TestRecordThatWasTakenStays: the record of a running election does not change any more once somebody has it, however many
// rounds follow.
func TestRecordThatWasTakenStays(t *testing.T) {
	r := &Record{}
	for n := range wire.Epoch(roundsMax) {
		r.rounds(n + 1)
	}
	taken := r.copy()
	r.rounds(roundsMax + 1)
	if last := taken.Rounds[roundsMax-1]; last != roundsMax || r.Rounds[roundsMax-1] != roundsMax+1 {
		t.Errorf("the last round became %d in the record that was taken, and %d in the running one", last, r.Rounds[roundsMax-1])
	}
}

// TestReason: the record says what the winner had that the next best candidate lacked, and nothing where nobody has voted.
func TestReason(t *testing.T) {
	vote := func(leader ensemble.ServerID, zxid wire.Zxid, epoch wire.Epoch) Vote {
		return Vote{Leader: leader, Zxid: zxid, PeerEpoch: epoch}
	}
	heard := func(v Vote, state peerwire.ServerState, round wire.Epoch) HeardVote {
		return HeardVote{From: v.Leader, State: state, Vote: v, Round: round}
	}
	won := vote(3, 0x200000005, 2)
	for _, c := range []struct {
		ending Ending
		own    Vote
		heard  []HeardVote
		want   string
	}{
		{Agreed, won, nil, "3 was the only candidate"},
		{Unanimous, vote(1, 0x100000009, 1), nil, "3 won over 1 by its epoch, 2 against 1"},
		{Agreed, vote(1, 0x200000004, 2), nil, "3 won over 1 by its history, 0x200000005 against 0x200000004"},
		{Agreed, vote(1, 0x200000005, 2), nil, "3 won over 1 by its id, their histories being equal"},
		{Agreed, vote(1, 0x200000004, 2), []HeardVote{heard(vote(2, 0x200000005, 2), peerwire.Looking, 7)}, "3 won over 2 by its id, their histories being equal"},
		{Agreed, vote(2, 0x200000005, 2), []HeardVote{heard(vote(1, 0x200000004, 2), peerwire.Looking, 7)}, "3 won over 2 by its id, their histories being equal"},
		{Agreed, vote(1, 0x200000004, 2), []HeardVote{heard(vote(2, 0x200000005, 2), peerwire.Looking, 6)}, "3 won over 1 by its history, 0x200000005 against 0x200000004"},
		{Agreed, vote(1, 0x200000004, 2), []HeardVote{heard(vote(2, 0x200000005, 2), peerwire.Following, 7)}, "3 won over 1 by its history, 0x200000005 against 0x200000004"},
		{Agreed, won, []HeardVote{heard(vote(2, NoHistory, 0), peerwire.Looking, 7), heard(noVote, peerwire.Looking, 7)}, "3 was the only candidate"},
		{Follows, vote(1, 0x200000005, 2), nil, "3 led already"},
		{Named, vote(1, 0x200000005, 2), nil, ""},
		{LeadershipTransferred, vote(1, 0x200000005, 2), nil, ""},
		{Unfinished, vote(1, 0x200000005, 2), nil, ""},
	} {
		r := &Record{Own: c.own, Votes: c.heard, Decision: Decision{Vote: won, Round: 7, Ending: c.ending}}
		if got := r.Reason(); got != c.want {
			t.Errorf("%v, own vote %v, heard %v: %q, want %q", c.ending, c.own, c.heard, got, c.want)
		}
	}
}

// TestRecordExplainsWhyItCouldOnlyJoin: a server that may not be a candidate says so when it explains its election.
func TestRecordExplainsWhyItCouldOnlyJoin(t *testing.T) {
	for want, r := range map[string]*Record{
		"no history":               {Barred: true},
		"did not answer":           {Abstains: true},
		"and 3 more":               {Dropped: 3},
		"It came to no decision: ": {},
		"It ended: why.":           {Ended: "why"},
	} {
		if got := r.Explain(); !strings.Contains(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
	}
	if got := (&Record{}).Explain(); strings.Contains(got, "only join") || strings.Contains(got, "more") || strings.Contains(got, "It ended") {
		t.Error(got)
	}
}

// TestRoundZeroIsARound: a leader that was elected in round 0 can look for a leader again, in a later round. Only a leader that was named has no round.
func TestRoundZeroIsARound(t *testing.T) {
	e := alone(3, 1)
	led := Vote{3, 0x100000001, 1}
	hear(e, 3, peerwire.Leading, led, 0)
	hear(e, 2, peerwire.Following, led, 0)
	if d := e.Ready().Decision; d == nil || d.Ending != Follows || d.Round != 0 {
		t.Fatalf("decision %+v", d)
	}
	hear(e, 3, peerwire.Looking, Vote{3, 0x100000001, 1}, 1)
	if why := e.Ready().GiveUp; why != "it looks for a leader in a later round" {
		t.Errorf("gives up: %q", why)
	}
}

// TestSupersededElection: the record of an election that another one replaced before it came to a decision says so, and that of one with a
// decision keeps it.
func TestSupersededElection(t *testing.T) {
	e := alone(3, 1)
	e.Step(5, Look{Zxid: 0x100000001, Epoch: 1, Why: "again"})
	led := Vote{3, 0x100000001, 1}
	hear(e, 3, peerwire.Leading, led, 7)
	hear(e, 2, peerwire.Following, led, 7)
	e.Step(9, Look{Zxid: 0x100000001, Epoch: 1, Why: "once more"})
	var got []Ending
	for _, r := range e.Records() {
		got = append(got, r.Decision.Ending)
	}
	if want := []Ending{Superseded, Follows, Unfinished}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if r := e.Records()[0]; r.Ended != "again" || r.Phase != Over {
		t.Errorf("%+v", r)
	}
}

// TestWaitBeforeTheNextAttempt: while the only candidate is one whose terms have failed, a server says when it elects that one again, and nothing
// about a better vote.
func TestWaitBeforeTheNextAttempt(t *testing.T) {
	e := New(Options{ID: 1, Committed: plain(0, 2)})
	e.Step(0, Look{Zxid: 0x100000001, Epoch: 1, Why: "again", Failed: []Failed{{Candidate: 2, Times: 3, Until: 100, Again: 700, Round: 0, Epoch: 1, Why: "it did not lead"}}})
	e.Ready()
	e.Step(150, Tick{})
	hear(e, 2, peerwire.Looking, Vote{2, 0x100000002, 1}, 1)
	var waits, settles int
	for _, h := range e.Ready().Observations {
		switch h.(type) {
		case ElectsAgain:
			waits++
		case Settling:
			settles++
		}
	}
	if waits != 1 || settles != 0 {
		t.Errorf("told %d times when it elects again, and %d times that it waits for a better vote", waits, settles)
	}
}

// TestWaitsAreBounded: the record keeps the first waits of an election.
func TestWaitsAreBounded(t *testing.T) {
	r := &Record{Began: 5}
	for i := range int64(50) {
		r.wait(10+i, 200)
	}
	if len(r.Waits) != 32 || r.Waits[0] != (Wait{5, 200}) || r.Waits[31].AtMS != 36 {
		t.Errorf("%d waits, %+v", len(r.Waits), r.Waits)
	}
}
