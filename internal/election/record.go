package election

import (
	"slices"

	"bellwether/internal/ensemble"
	"bellwether/internal/peerwire"
	"bellwether/wire"
)

// Limits of what is recorded.
const (
	recordsMax = 64  // elections of one server
	heardMax   = 256 // votes of one election that were heard
	sentMax    = 256 // votes of one election that were sent, one for each receiver
	changesMax = 64  // changes of a server's own vote in one election
	roundsMax  = 32  // rounds of one election, and waits of one election
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
	hasRole                      // the sender has a role
	notCounted                   // the vote says NoHistory, or this server must not vote (see mute)
	madeUp                       // the vote gives this server a history it does not have
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

// Adopting returns the verdicts about votes after which a server votes anew.
func Adopting() []Verdict { return []Verdict{adopted, joinedRound, joinedAdopted} }

// HeardVote is a vote as it arrived.
type HeardVote struct {
	AtMS    int64 // ms since the election began
	From    ensemble.ServerID
	State   peerwire.ServerState
	Vote    Vote
	Round   wire.Epoch
	Verdict Verdict
}

// OwnVote is a vote of this server, from the time at which it took it.
type OwnVote struct {
	AtMS  int64
	Round wire.Epoch
	Vote  Vote
	Heard int // the number of votes that had been heard before
}

// SentVote is a vote as it was sent, to one server or several at once.
type SentVote struct {
	AtMS  int64
	To    []ensemble.ServerID
	State peerwire.ServerState
	Vote  Vote
	Round wire.Epoch
	Heard int // the number of votes that had been heard before
}

// Wait is a period in which a quorum agreed and the server waited for a better vote.
type Wait struct {
	AtMS  int64
	MaxMS int64 // the wait ended earlier if a better vote came, or if no better one could come
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
	Own      Vote // this server's vote before it heard any other
	Barred   bool
	Abstains bool         // this server's disk did not answer
	Rounds   []wire.Epoch // the rounds of the election, in order
	Votes    []HeardVote
	Dropped  int       // votes beyond the limit, which are not kept
	Changes  []OwnVote // this server's vote and its changes, in order
	Waits    []Wait    // for better votes
	Sent     int       // number of notifications sent
	// SentVotes are the notifications that were sent before this server served. A
	// notification that a later one replaced before it was sent is not among them.
	SentVotes   []SentVote
	SentDropped int // sent notifications beyond the limit, which are not kept
	Decision    Decision
	Epoch       wire.Epoch // the epoch in which the server served; 0 if it did not serve
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
	c.Changes, c.SentVotes = slices.Clone(r.Changes), slices.Clone(r.SentVotes)
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

// held moves the beginning of the record back by the time for which writes were held
// before the record was opened.
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

func (r *Record) wait(now, ms int64) {
	if len(r.Waits) < roundsMax {
		r.Waits = append(r.Waits, Wait{now - r.Began, ms})
	}
}

// heard returns the number of votes that have been heard so far.
func (r *Record) heard() int { return len(r.Votes) + r.Dropped }

// change records that this server votes for v from now on.
func (r *Record) change(now int64, round wire.Epoch, v Vote) {
	if len(r.Changes) < changesMax {
		r.Changes = append(r.Changes, OwnVote{now - r.Began, round, v, r.heard()})
	}
}

// depart records messages that are sent now, until this server serves. Equal ones that
// follow each other become one vote with several receivers.
func (r *Record) depart(now int64, all []Message) {
	if r == nil || r.Phase >= Serve || len(all) == 0 {
		return
	}
	kept := 0
	for _, s := range r.SentVotes {
		kept += len(s.To)
	}
	first := len(r.SentVotes)
	for _, m := range all {
		if kept++; kept > sentMax {
			r.SentDropped++
			continue
		}
		n := &m.Notification
		s := SentVote{now - r.Began, []ensemble.ServerID{m.To}, n.State, voteOf(n), n.ElectionEpoch, r.heard()}
		if last := len(r.SentVotes) - 1; last >= first && r.SentVotes[last].same(s) {
			r.SentVotes[last].To = append(r.SentVotes[last].To, m.To)
			continue
		}
		r.SentVotes = append(r.SentVotes, s)
	}
}

// same reports whether two messages say the same.
func (s SentVote) same(o SentVote) bool {
	return s.State == o.State && s.Vote == o.Vote && s.Round == o.Round
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
