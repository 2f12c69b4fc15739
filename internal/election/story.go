package election

import (
	"fmt"
	"strconv"
	"strings"

	"bellwether/internal/ensemble"
	"bellwether/internal/peerwire"
)

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
	var waits []string
	for _, w := range r.Waits {
		waits = append(waits, strconv.FormatInt(w.MaxMS, 10))
	}
	if len(waits) > 0 {
		fmt.Fprintf(&b, "It waited for better votes: %s ms at most.\n", strings.Join(waits, " "))
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

// Reason says why this candidate was elected and not the next best one; empty if nothing
// was decided by votes.
func (r *Record) Reason() string {
	switch r.Decision.Ending {
	case Unanimous, Agreed, Follows:
		return r.reason()
	}
	return ""
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
	best, ok := noVote, false
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
