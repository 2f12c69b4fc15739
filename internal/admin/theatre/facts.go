package theatre

import (
	"cmp"
	"fmt"
	"slices"

	"bellwether/internal/ensemble"
	"bellwether/internal/peerwire"
)

// factsMax limits the rows of the table.
const factsMax = 1000

// Fact is a row of the table: something that happened during the election. If Vote is set, the
// row is about a vote, and Candidate, Zxid, Epoch and Round are those of the vote.
type Fact struct {
	AtMS      int64
	Server    ensemble.ServerID
	What      string
	Vote      bool
	Candidate string
	Zxid      string
	Epoch     int64
	Round     int64
	order     int
}

// facts returns the rows, in the order of time.
func (s *scene) facts() []Fact {
	var all []Fact
	for i := range s.lines {
		if s.lines[i].rec != nil {
			all = append(all, s.lines[i].facts()...)
		}
	}
	for i := range s.arrows {
		all = append(all, s.arrows[i].fact())
	}
	slices.SortStableFunc(all, func(a, b Fact) int {
		return cmp.Or(cmp.Compare(a.AtMS, b.AtMS), cmp.Compare(a.order, b.order), cmp.Compare(a.Server, b.Server))
	})
	return all[:min(len(all), factsMax)]
}

// facts returns the rows from a server's own record, without the messages.
func (l *lifeline) facts() []Fact {
	r := l.rec
	all := []Fact{{AtMS: l.began, Server: l.id, What: "looks for a leader: " + r.Why, order: -1}}
	if transferred(r) {
		all[0].What = "does not vote: " + r.Why
	}
	say := func(at int64, order int, format string, args ...any) {
		all = append(all, Fact{AtMS: l.began + at, Server: l.id, What: fmt.Sprintf(format, args...), order: order})
	}
	for _, c := range changesOf(r) {
		f := Fact{AtMS: l.began + c.AtMS, Server: l.id, What: "votes", Vote: true, Zxid: zxid(c.Vote), Epoch: int64(c.Vote.Epoch), Round: int64(c.Round), order: 0}
		f.Candidate = candidate(c.Vote.Leader)
		all = append(all, f)
	}
	for _, t := range waits(r) {
		say(t.from, 2, "a quorum agrees; waits %s of at most %s for a better vote", duration(t.to-t.from), duration(t.max))
	}
	if r.Phase == "look" {
		return all
	}
	if !decided(r) {
		say(r.LookMS, 3, "no decision: %s", r.Ending)
		return all
	}
	say(r.LookMS, 3, "%s: %s", roleOf(r.State, *r.Leader), r.Ending)
	if r.DiscoverMS > 0 {
		say(r.LookMS+r.DiscoverMS, 4, "discovery is over after %s", duration(r.DiscoverMS))
	}
	if r.SynchroniseMS > 0 {
		say(lasted(r), 5, "synchronisation is over after %s", duration(r.SynchroniseMS))
	}
	switch {
	case r.Epoch > 0:
		say(lasted(r), 6, "serves epoch %d", r.Epoch)
	case r.Ended != "":
		say(lasted(r), 6, "gave up: %s", r.Ended)
	}
	return all
}

// fact is the row of a message.
func (a *arrow) fact() Fact {
	what := a.outline()
	return Fact{AtMS: a.at(), Server: a.delivery.from, What: what, Vote: true, Candidate: candidate(a.vote.Leader),
		Zxid: zxid(a.vote), Epoch: int64(a.vote.Epoch), Round: int64(a.round), order: 1}
}

// candidate names the candidate of a vote.
func candidate(id ensemble.ServerID) string {
	if id == peerwire.NoServer {
		return "nobody"
	}
	return fmt.Sprint(id)
}
