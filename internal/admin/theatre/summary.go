package theatre

import (
	"fmt"
	"strings"

	"bellwether/internal/admin/elog"
	"bellwether/internal/peerwire"
)

// teller returns the record that says most about the outcome: the record of the server that
// leads, or else of a server that came to a decision.
func (e *Election) teller() *elog.Election {
	best := &e.records[0]
	for i := range e.records {
		r := &e.records[i]
		switch {
		case r.State == leading && decided(r):
			return r
		case decided(r) && !decided(best), r.Epoch > best.Epoch:
			best = r
		}
	}
	return best
}

// Line describes the election in one line.
func (e *Election) Line() string {
	r := e.teller()
	until, by := e.withoutLeader()
	switch {
	case !decided(r) && r.Phase == "look":
		return fmt.Sprintf("%s: looking for a leader since %s", e.who(), duration(until))
	case !decided(r):
		return fmt.Sprintf("%s: no decision, %s", e.who(), r.Ending)
	case *r.Leader == peerwire.NoServer:
		return fmt.Sprintf("%s: no leader, %s", e.who(), r.Ending)
	case transferred(r):
		return fmt.Sprintf("Leadership transferred to server %d in epoch %d: writes held for %s", *r.Leader, r.Epoch, duration(until))
	case by == nil && r.Ended == "":
		return fmt.Sprintf("%s: server %d is elected, and does not serve yet", e.who(), *r.Leader)
	case by == nil:
		return fmt.Sprintf("%s: server %d was elected but did not serve: %s", e.who(), *r.Leader, r.Ended)
	case follows(r) && len(e.records) == 1:
		return fmt.Sprintf("Server %d joined server %d in epoch %d after %s", r.Server, *r.Leader, r.Epoch, duration(until))
	}
	return fmt.Sprintf("Server %d leads epoch %d after %s", *r.Leader, r.Epoch, duration(until))
}

// who names the servers that recorded the election.
func (e *Election) who() string {
	if list := e.Servers(); len(list) > 1 {
		return "Servers " + ids(list)
	}
	return fmt.Sprintf("Server %d", e.records[0].Server)
}

// Outcome says why the election began, why it ended, and why its winner won.
func (e *Election) Outcome() []string {
	r := e.teller()
	var out []string
	seen := map[string]bool{}
	for i := range e.records {
		o := &e.records[i]
		if line := fmt.Sprintf("Server %d looked for a leader: %s.", o.Server, orElse(o.Why, "no reason was recorded")); !seen[o.Why] && len(seen) < linesMax {
			seen[o.Why] = true
			out = append(out, line)
		}
	}
	if !decided(r) {
		return append(out, fmt.Sprintf("It came to no decision: %s.", r.Ending))
	}
	why := fmt.Sprintf("It ended because %s", r.Ending)
	if transferred(r) {
		why = "There was no vote: " + r.Ending
	}
	if len(r.Supporters) > 0 {
		why += fmt.Sprintf(" (servers %s)", ids(r.Supporters))
	}
	out = append(out, why+".")
	if r.Reason != "" {
		out = append(out, "Server "+r.Reason+".")
	}
	if r.Ended != "" {
		out = append(out, fmt.Sprintf("The role of server %d ended: %s.", r.Server, r.Ended))
	}
	return out
}

// description is the drawing in words, for those who do not see it.
func (e *Election) description() string {
	return strings.Join(e.Outcome(), " ") + " " + e.Clocks() + " The table below the drawing lists all votes."
}

func orElse(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}
