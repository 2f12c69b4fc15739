package check

import (
	"slices"
	"testing"

	"bellwether/internal/election"
	"bellwether/internal/ensemble"
	"bellwether/internal/peerwire"
	"bellwether/internal/replica"
	"bellwether/wire"
)

func electionsOf(*History) Checker {
	p := three()
	p.recipe.TickMS = 1000
	return newElections(p)
}

// ticks returns what a server is at the end of batches that begin every 250 ms, until a time.
func ticks(s Standing, until int64) (all []any) {
	for ; s.Mono <= until; s.Mono += 250 {
		all = append(all, s)
	}
	return all
}

// votes returns the notification of a server that looks for a leader.
func votes(v election.Vote, round wire.Epoch) peerwire.Notification {
	return peerwire.Notification{State: peerwire.Looking, Leader: v.Leader, Zxid: v.Zxid, PeerEpoch: v.PeerEpoch, ElectionEpoch: round}
}

// hears says that server a hears a notification in a batch.
func hears(from ensemble.ServerID, first bool, n peerwire.Notification, batch int64) VoteHeard {
	return VoteHeard{Server: a, From: from, First: first, Notification: &n, Batch: batch}
}

// electing is what server a reports in a batch, in which it sends its vote to the others.
func electing(mono int64, n *peerwire.Notification, reports ...replica.Observation) Electing {
	e := Electing{Server: a, Reports: reports, Batch: mono, Mono: mono, Log: z(1, 5)}
	if n != nil {
		e.Votes = []election.Message{{To: b, Notification: *n}, {To: 3, Notification: *n}}
	}
	return e
}

// best and own are votes for b and for a. b has more history.
var (
	best = election.Vote{Leader: b, Zxid: z(1, 9), PeerEpoch: 1}
	own  = election.Vote{Leader: a, Zxid: z(1, 5), PeerEpoch: 1}
)

func began(round wire.Epoch) election.Began { return election.Began{Round: round, Vote: own} }

func decided(v election.Vote, round wire.Epoch, how election.Ending) election.Decided {
	d := election.Decision{State: peerwire.Following, Vote: v, Round: round, Ending: how}
	if v.Leader == a {
		d.State = peerwire.Leading
	}
	return election.Decided{Decision: d}
}

// looks is the beginning of an election of server a in round 1, in which it votes for v afterwards, which its
// candidate has sent before.
func looks(v election.Vote, more ...any) []any {
	first, then := votes(own, 1), votes(v, 1)
	return append([]any{electing(0, &first, began(1)), hears(v.Leader, true, votes(v, 0), 1), electing(1, &then)}, more...)
}

// nobodyHasHistory is an election that server a begins without history and decides for itself.
func nobodyHasHistory(reports ...replica.Observation) []any {
	none, empty := election.Vote{Leader: a, Zxid: election.NoHistory}, election.Vote{Leader: a}
	first, then := votes(none, 1), votes(empty, 1)
	return []any{
		electing(0, &first, election.Began{Round: 1, Vote: none}), electing(1, &then, reports...), hears(b, false, then, 2),
		electing(20, nil, decided(empty, 1, election.Agreed)),
	}
}

// TestFoundedElection checks that a server without history may lead when all voters are empty.
func TestFoundedElection(t *testing.T) {
	c := electionsOf(nil)
	for _, what := range nobodyHasHistory(election.Founded{}) {
		if wrong := c.See(what); wrong != "" {
			t.Error(wrong)
		}
	}
}

// TestVoteForNobodyKeepsTheVoteOfTheRound checks that a server may count the vote of a voter that has sent a vote for
// nobody since, and no longer its role.
func TestVoteForNobodyKeepsTheVoteOfTheRound(t *testing.T) {
	leads, follows := votes(best, 1), votes(best, 1)
	leads.State, follows.State = peerwire.Leading, peerwire.Following
	nobody := votes(election.Vote{Leader: peerwire.NoServer}, 2)
	for _, test := range []struct {
		before  peerwire.Notification
		allowed bool
	}{{votes(best, 1), true}, {follows, false}} {
		c, wrong := electionsOf(nil), ""
		for _, what := range looks(own, hears(3, false, test.before, 2), hears(3, false, nobody, 3), hears(b, false, leads, 4),
			electing(5, nil, decided(best, 1, election.Follows))) {
			if wrong = c.See(what); wrong != "" {
				break
			}
		}
		if (wrong == "") != test.allowed {
			t.Errorf("after %+v: %q", test.before, wrong)
		}
	}
}

// brokenElections are sequences of observations that break the rules of elections.
var brokenElections = []broken{
	{"an election of a server without room on its disk", electionsOf, func(*History) []any {
		adopts, looks := electing(0, nil, began(1)), electing(20, nil, began(2))
		adopts.Disabled, adopts.ShutOut, looks.Disabled, looks.ShutOut = true, true, true, true
		return []any{electing(0, nil, began(1)), adopts, looks}
	}},
	{"a decision without a quorum", electionsOf, func(*History) []any {
		return looks(best, hears(b, false, votes(best, 2), 2), electing(20, nil, decided(best, 1, election.Agreed)))
	}},
	{"a decision by votes from before the election", electionsOf, func(*History) []any {
		return slices.Concat([]any{hears(b, false, votes(best, 1), -1)}, looks(best, electing(20, nil, decided(best, 1, election.Agreed))))
	}},
	{"a decision without a wait", electionsOf, func(*History) []any {
		return looks(best, hears(b, false, votes(best, 1), 2), electing(3, nil, decided(best, 1, election.Agreed)))
	}},
	{"a wait that better votes prolong", electionsOf, func(*History) []any {
		waits := func(mono int64, round wire.Epoch, wait int64) Electing {
			return electing(mono, nil, election.Settling{Round: round, Vote: best, WaitMS: wait})
		}
		return looks(best, waits(100, 1, 200), waits(500, 1, 200), waits(600, 2, 200), waits(1100, 2, 100), electing(1200, nil, began(2)), waits(1300, 2, 200), waits(1701, 2, 200))
	}},
	{"a unanimous decision because of an old message", electionsOf, func(*History) []any {
		return looks(best, hears(b, false, votes(best, 1), 2), hears(3, true, votes(best, 1), 2), electing(3, nil, decided(best, 1, election.Unanimous)))
	}},
	{"a unanimous decision for a candidate that is down", electionsOf, func(*History) []any {
		return looks(best, hears(3, false, votes(best, 1), 2), VoterDown{a, b, 2}, electing(3, nil, decided(best, 1, election.Unanimous)))
	}},
	{"a decision that was not sent", electionsOf, func(*History) []any {
		return looks(own, hears(b, false, votes(best, 1), 2), electing(20, nil, decided(best, 1, election.Agreed)))
	}},
	{"a leader with more history than it has", electionsOf, func(*History) []any {
		more := election.Vote{Leader: a, Zxid: z(1, 9), PeerEpoch: 1}
		return looks(more, hears(b, false, votes(more, 1), 2), electing(20, nil, decided(more, 1, election.Agreed)))
	}},
	{"a leader without history", electionsOf, func(*History) []any { return nobodyHasHistory() }},
	{"a vote for less history", electionsOf, func(*History) []any {
		return looks(election.Vote{Leader: 3, Zxid: z(1, 4), PeerEpoch: 1})
	}},
	{"a vote that nobody but an observer has sent", electionsOf, func(*History) []any {
		first, then := votes(own, 1), votes(best, 1)
		return []any{electing(0, &first, began(1)), hears(4, false, then, 1), electing(1, &then)}
	}},
	{"a vote for a server without weight", func(*History) Checker {
		p := three()
		m, err := ensemble.Parse("server.1=h:1:2\nserver.2=h:3:4\nserver.3=h:5:6\ngroup.1=1:2:3\nweight.2=0")
		if err != nil {
			panic(err)
		}
		p.servers[0].Members = m
		return newElections(p)
	}, func(*History) []any { return looks(best) }},
	{"a vote without a history", electionsOf, func(*History) []any {
		n := votes(own, 1)
		e := electing(0, &n, began(1))
		e.Wiped = true
		return []any{e}
	}},
	{"a vote with a full disk", electionsOf, func(*History) []any {
		n := votes(own, 1)
		e := electing(0, &n, began(1))
		e.Full = true
		return []any{e}
	}},
	{"a round twice", electionsOf, func(*History) []any {
		n := votes(own, 2)
		return []any{electing(0, &n, began(2)), electing(5, &n, began(2))}
	}},
	{"a leader that does not lead", electionsOf, func(*History) []any {
		follows := votes(best, 1)
		follows.State = peerwire.Following
		return looks(own, hears(b, false, follows, 2), hears(3, false, follows, 2), electing(3, nil, decided(best, 1, election.Follows)))
	}},
	{"a leader without a quorum", electionsOf, func(*History) []any {
		leads := votes(best, 1)
		leads.State = peerwire.Leading
		return looks(own, hears(b, false, leads, 2), electing(3, nil, decided(best, 1, election.Follows)))
	}},
	{"a leader whose follower looks again", electionsOf, func(*History) []any {
		leads, follows := votes(best, 1), votes(best, 1)
		leads.State, follows.State = peerwire.Leading, peerwire.Following
		return looks(own, hears(b, false, leads, 2), hears(3, false, follows, 2), hears(3, false, votes(own, 2), 3), electing(4, nil, decided(best, 1, election.Follows)))
	}},
	{"a vote that is not sent again", electionsOf, func(*History) []any {
		return looks(own, ticks(Standing{Server: a, Mono: 200, Looks: true}, 2200)...)
	}},
	{"a vote that is sent again and again", electionsOf, func(*History) []any {
		n := votes(own, 1)
		return slices.Concat(looks(own), slices.Repeat([]any{electing(2, &n)}, stormMost-1))
	}},
	{"a candidate that is dialled for ever", electionsOf, func(*History) []any {
		return slices.Concat(looks(best, hears(b, false, votes(best, 1), 2), electing(20, nil, decided(best, 1, election.Agreed))),
			ticks(Standing{Server: a, Mono: 250, Dials: true}, 20750))
	}},
	{"a server that looks and is not answered", electionsOf, func(*History) []any {
		asks := hears(b, false, votes(best, 1), 2)
		asks.Serves = true
		stands := Standing{Server: a, Members: three().servers[0].Members, Serves: true}
		return []any{looks(own)[0], stands, asks, stands}
	}},
}

// TestNewVoterNeedsNoAnswer checks that a server that gets its vote only behind its question needs no further answer: a
// server without a vote is not answered again at once.
func TestNewVoterNeedsNoAnswer(t *testing.T) {
	p := three()
	before, err := ensemble.Parse("server.1=h:1:2\nserver.2=h:3:4:observer\nserver.3=h:5:6\n")
	if err != nil {
		t.Fatal(err)
	}
	c := newElections(p)
	asks := hears(b, false, votes(best, 1), 2)
	asks.Serves = true
	for _, what := range []any{looks(own)[0], Standing{Server: a, Members: before, Serves: true}, asks, Standing{Server: a, Members: p.servers[0].Members, Serves: true}} {
		if wrong := c.See(what); wrong != "" {
			t.Error(wrong)
		}
	}
}

// TestWaitBeginsWithVotesToVoters checks that the wait for better votes counts from when a vote was first sent to the
// voters: a server that has no vote may be answered with an older vote in the same batch, but no voter may.
func TestWaitBeginsWithVotesToVoters(t *testing.T) {
	for _, test := range []struct {
		asks ensemble.ServerID
		fine bool
	}{{4, true}, {3, false}} {
		first, then := votes(own, 1), votes(best, 1)
		changes, answers := electing(1, &then), electing(3, nil)
		changes.Votes = slices.DeleteFunc(changes.Votes, func(m election.Message) bool { return m.To == test.asks })
		changes.Votes = append(changes.Votes, election.Message{To: test.asks, Notification: first})
		answers.Votes = []election.Message{{To: test.asks, Notification: then}}
		c := newElections(three())
		for _, what := range []any{electing(0, &first, began(1)), hears(b, true, votes(best, 0), 1), changes, answers, hears(b, false, then, 4)} {
			if wrong := c.See(what); wrong != "" {
				t.Error(test.asks, wrong)
			}
		}
		if wrong := c.See(electing(6, nil, decided(best, 1, election.Agreed))); (wrong == "") != test.fine {
			t.Errorf("server %d is answered with the older vote: %q", test.asks, wrong)
		}
	}
}

// TestTimeOfStoppedServersDoesNotCount checks that a server that did not run for a minute may dial a candidate and look
// without a resend for as much longer, but not beyond that.
func TestTimeOfStoppedServersDoesNotCount(t *testing.T) {
	dials := looks(best, hears(b, false, votes(best, 1), 2), electing(20, nil, decided(best, 1, election.Agreed)))
	for _, test := range []struct {
		name  string
		first []any
		does  Standing
		most  int64 // how long it may do that
	}{
		{"dials", dials, Standing{Server: a, Dials: true}, 20_500},
		{"looks", looks(own), Standing{Server: a, Looks: true}, 2_000},
	} {
		const minute = 60_000
		stops, resumes := test.does, test.does
		stops.Mono, resumes.Mono = 250, 1_250+minute
		c := electionsOf(nil)
		for _, what := range slices.Concat(test.first, ticks(stops, 1_000), ticks(resumes, test.most+minute)) {
			if wrong := c.See(what); wrong != "" {
				t.Error(test.name, wrong)
			}
		}
		late := test.does
		late.Mono = test.most + minute + 500
		if c.See(late) == "" {
			t.Errorf("%s: nothing is said about a server that has run for too long", test.name)
		}
	}
}

// TestVoteFromBeforeAChangedMembership: a server takes over a vote for server 4, and learns in the same batch that servers 4
// and 5 have no vote any more. What it sends to them is still that vote. The voters must get another one, and in a later batch
// the others too.
func TestVoteFromBeforeAChangedMembership(t *testing.T) {
	gone := election.Vote{Leader: 4, Zxid: z(1, 9), PeerEpoch: 1}
	for _, test := range []struct {
		name string
		to   ensemble.ServerID
		mono int64
		fine bool
	}{{"a server that was a voter", 5, 1, true}, {"a voter", 3, 1, false}, {"a server that was a voter, later", 5, 2, false}} {
		first, old := votes(own, 1), votes(gone, 2)
		changes, sends := electing(1, &first, began(1)), electing(test.mono, nil)
		if test.mono == 1 {
			sends = changes
		}
		sends.Votes = append(slices.Clone(sends.Votes), election.Message{To: test.to, Notification: old})
		c := electionsOf(nil)
		for _, what := range []any{electing(0, &first, began(1)), hears(5, false, old, 1)} {
			if wrong := c.See(what); wrong != "" {
				t.Error(test.name, wrong)
			}
		}
		if test.mono > 1 {
			c.See(changes)
		}
		if wrong := c.See(sends); (wrong == "") != test.fine {
			t.Errorf("%s: %q", test.name, wrong)
		}
	}
}
