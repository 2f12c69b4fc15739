package election

import (
	"fmt"
	"slices"
	"strings"

	"bellwether/internal/ensemble"
	"bellwether/internal/peerwire"
	"bellwether/wire"
)

// Limits of what is recorded.
const (
	recordsMax = 64  // elections of one server
	heardMax   = 256 // votes of one election
	roundsMax  = 32
)

// Verdict says how a vote that was heard was treated.
type Verdict uint8

const (
	adopted       Verdict = iota // better than this server's proposal
	same                         // the vote equals this server's proposal
	worse                        // counted, not adopted
	joinedRound                  // the vote is of a later round, and worse than this server's vote
	joinedAdopted                // the vote is of a later round, and better
	earlier                      // the vote is of an earlier round, and was answered
	hasRole                      // by a server that has a role
	notCounted                   // without history, or heard by a server without history
	madeUp                       // gives this server a history it does not have
)

var verdicts = [...]string{
	"better, adopted", "the same", "worse", "a later round, joined with its own vote",
	"a later round, joined and adopted", "an earlier round, answered", "has a role", "not counted",
	"more than this server has, refused",
}

func (v Verdict) String() string {
	if int(v) < len(verdicts) {
		return verdicts[v]
	}
	return "?"
}

// HeardVote is a vote as it arrived.
type HeardVote struct {
	AtMS    int64 // ms since the election began
	From    ensemble.ServerID
	State   peerwire.ServerState
	Vote    Vote
	Round   wire.Epoch
	Verdict Verdict
}

// Phase is a part of the time from the loss of a leader to service.
type Phase uint8

// The phases, in order.
const (
	Search      Phase = iota // look: until the decision
	Discover                 // until the epoch is agreed on
	Synchronise              // until the histories are equal
	Serve                    // until the role ends
	Over
)

var phases = [...]string{"look", "discover", "synchronise", "serve", "over"}

func (p Phase) String() string {
	if int(p) < len(phases) {
		return phases[p]
	}
	return "?"
}

// Record is one election as one server saw it, and how it ended.
type Record struct {
	Server   ensemble.ServerID
	Began    int64 // the clock's ms
	Why      string
	Own      Vote
	Barred   bool
	Abstains bool         // this server's disk did not answer
	Rounds   []wire.Epoch // the rounds of the election, in order
	Votes    []HeardVote
	Dropped  int     // votes beyond the limit, which are not kept
	Waits    []int64 // time spent waiting for better votes, in ms
	Sent     int     // number of notifications sent
	Decision Decision
	Epoch    wire.Epoch // the epoch in which the server served; 0 if it did not serve
	// Phase is the current phase; PhaseMS is how long each finished phase took.
	Phase   Phase
	PhaseMS [Over]int64
	// Ended is why the role ended; empty while it lasts.
	Ended string

	phaseBegan int64
}

// Records returns copies of the last elections of this server, oldest first, the running
// one last.
func (e *Election) Records() []Record {
	out := make([]Record, 0, len(e.past)+1)
	for _, r := range e.past {
		out = append(out, r.copy())
	}
	if e.running != nil {
		out = append(out, e.running.copy())
	}
	return out
}

func (r *Record) copy() Record {
	c := *r
	c.Rounds, c.Votes, c.Waits = slices.Clone(r.Rounds), slices.Clone(r.Votes), slices.Clone(r.Waits)
	c.Decision.Supporters = slices.Clone(r.Decision.Supporters)
	return c
}

// openRecord begins the record of an election.
func (e *Election) openRecord(why string) {
	e.running = &Record{Server: e.id, Began: e.now, Why: why, Own: e.initial, Barred: e.barred, Abstains: e.asked.Abstains, phaseBegan: e.now}
}

// closeRecord moves the running record to the past ones; why is what comes next.
func (e *Election) closeRecord(why string) {
	r := e.running
	if r == nil {
		return
	}
	if r.Decision.Ending == Unfinished {
		r.Decision.Ending = Superseded
	}
	r.reach(Over, e.now)
	r.Ended = why
	e.running = nil
	if len(e.past) == recordsMax {
		e.past = slices.Delete(e.past, 0, 1)
	}
	e.past = append(e.past, r)
}

// endRecord records how the running election ends without a decision.
func (e *Election) endRecord(how Ending) { e.running.Decision.Ending = how }

// reach enters a phase. Phases that it skips took no time.
func (r *Record) reach(p Phase, now int64) {
	if r == nil || p <= r.Phase {
		return
	}
	r.PhaseMS[r.Phase] = now - r.phaseBegan
	r.Phase, r.phaseBegan = p, now
}

// held records that writes were held before the record was opened.
func (r *Record) held(ms int64) {
	r.Began -= ms
	r.phaseBegan -= ms
}

func (r *Record) decide(now int64, d Decision) {
	r.Decision = d
	r.reach(Discover, now)
}

func (r *Record) establish(now int64, epoch wire.Epoch) {
	if r != nil {
		r.Epoch = epoch
	}
	r.reach(Serve, now)
}

func (r *Record) rounds(n wire.Epoch) {
	if len(r.Rounds) < roundsMax {
		r.Rounds = append(r.Rounds, n)
	} else {
		r.Rounds[roundsMax-1] = n
	}
}

func (r *Record) wait(ms int64) {
	if len(r.Waits) < roundsMax {
		r.Waits = append(r.Waits, ms)
	}
}

func (r *Record) sent() {
	if r != nil {
		r.Sent++
	}
}

// vote records a vote that was received.
func (r *Record) vote(now int64, h Heard, v Verdict) {
	if len(r.Votes) >= heardMax {
		r.Dropped++
		return
	}
	n := &h.Notification
	r.Votes = append(r.Votes, HeardVote{now - r.Began, h.From, n.State, voteOf(n), n.ElectionEpoch, v})
}

// String describes the election in one line.
func (r *Record) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "server %d", r.Server)
	if n := len(r.Rounds); n > 0 {
		fmt.Fprintf(&b, " round %d", r.Rounds[n-1])
	}
	fmt.Fprintf(&b, ": %s; ", r.Why)
	if r.Phase == Search || r.Decision.Ending == Superseded || r.Decision.Ending == Reconfigured {
		b.WriteString(r.Decision.Ending.String())
	} else {
		fmt.Fprintf(&b, "%s %d, %s", r.Decision.State, r.Decision.Vote.Leader, r.Decision.Ending)
	}
	r.times(&b)
	if r.Ended != "" {
		fmt.Fprintf(&b, "; ended: %s", r.Ended)
	}
	return b.String()
}

// times appends what each phase took.
func (r *Record) times(b *strings.Builder) {
	sep, names := "; ", phases
	if r.Decision.Ending == LeadershipTransferred {
		names[Search] = "hold writes"
	}
	for p := Search; p < Over && p <= r.Phase; p++ {
		switch {
		case p < r.Phase && (p == Search || r.PhaseMS[p] > 0):
			fmt.Fprintf(b, "%s%s %d ms", sep, names[p], r.PhaseMS[p])
		case p == r.Phase:
			fmt.Fprintf(b, "%s%s, lasting", sep, p)
		default:
			continue
		}
		sep = ", "
	}
}

// Explain describes the election step by step, and why the winner won.
func (r *Record) Explain() string {
	var b strings.Builder
	if r.Decision.Ending == LeadershipTransferred {
		fmt.Fprintf(&b, "Server %d did not vote: %s.\n", r.Server, r.Why)
	} else {
		fmt.Fprintf(&b, "Server %d looked for a leader: %s.\n", r.Server, r.Why)
	}
	if len(r.Rounds) > 0 {
		fmt.Fprintf(&b, "  +0 ms  votes for %s in round %d\n", r.Own, r.Rounds[0])
	}
	for _, v := range r.Votes {
		fmt.Fprintf(&b, "  +%d ms  %d, %s in round %d, for %s: %s\n", v.AtMS, v.From, v.State, v.Round, v.Vote, v.Verdict)
	}
	if r.Dropped > 0 {
		fmt.Fprintf(&b, "  and %d more\n", r.Dropped)
	}
	if r.Barred {
		b.WriteString("It had no history, so it could only join a leader.\n")
	}
	if r.Abstains {
		b.WriteString("Its disk did not answer, so it could only join a leader.\n")
	}
	if len(r.Waits) > 0 {
		fmt.Fprintf(&b, "It waited for better votes: %s ms at most.\n", strings.Trim(fmt.Sprint(r.Waits), "[]"))
	}
	r.explainEnd(&b)
	return b.String()
}

func (r *Record) explainEnd(b *strings.Builder) {
	d := &r.Decision
	switch d.Ending {
	case Unfinished, Superseded, Reconfigured:
		fmt.Fprintf(b, "It came to no decision: %s", d.Ending)
	case Named, LeadershipTransferred:
		fmt.Fprintf(b, "%s %d: %s", d.State, d.Vote.Leader, d.Ending)
	default:
		fmt.Fprintf(b, "%s %d in round %d: %s (%s).\n", d.State, d.Vote.Leader, d.Round, d.Ending, list(d.Supporters))
		b.WriteString(r.reason())
	}
	r.times(b)
	b.WriteString(".\n")
	if r.Ended != "" {
		fmt.Fprintf(b, "It ended: %s.\n", r.Ended)
	}
}

// reason says what the winner had that the next best candidate lacked.
func (r *Record) reason() string {
	d := &r.Decision
	if d.Ending == Follows {
		return fmt.Sprintf("%d led already", d.Vote.Leader)
	}
	second, ok := r.runnerUp()
	switch {
	case !ok:
		return fmt.Sprintf("%d was the only candidate", d.Vote.Leader)
	case d.Vote.PeerEpoch != second.PeerEpoch:
		return fmt.Sprintf("%d won over %d by its epoch, %d against %d", d.Vote.Leader, second.Leader, d.Vote.PeerEpoch, second.PeerEpoch)
	case d.Vote.Zxid != second.Zxid:
		return fmt.Sprintf("%d won over %d by its history, %s against %s", d.Vote.Leader, second.Leader, d.Vote.Zxid, second.Zxid)
	}
	return fmt.Sprintf("%d won over %d by its id, their histories being equal", d.Vote.Leader, second.Leader)
}

// runnerUp returns the best vote of the round for another candidate.
func (r *Record) runnerUp() (Vote, bool) {
	best, ok := nobody, false
	consider := func(v Vote) {
		if v.Leader != r.Decision.Vote.Leader && v.Leader != peerwire.NoServer && v.Zxid != NoHistory && (!ok || v.Compare(best) > 0) {
			best, ok = v, true
		}
	}
	consider(r.Own)
	for _, v := range r.Votes {
		if v.State == peerwire.Looking && v.Round == r.Decision.Round {
			consider(v.Vote)
		}
	}
	return best, ok
}

// list returns server ids, separated by blanks.
func list(ids []ensemble.ServerID) string { return strings.Trim(fmt.Sprint(ids), "[]") }
