package theatre

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"bellwether/internal/admin/elog"
	"bellwether/internal/ensemble"
	"bellwether/wire"
)

type wireEpoch = wire.Epoch

// exactMS is how exact the records are: clocks that differ by no more than this agree.
const exactMS = 2

// pair is two servers; the first has the lower id.
type pair struct{ a, b ensemble.ServerID }

// clocks say by how much the clock of each server is ahead of the first server's clock.
type clocks struct {
	shift   []int64             // ms, for each record of an election
	votes   int                 // votes that both ends recorded
	unknown []ensemble.ServerID // servers without a vote in common with the others
}

// delays are the shortest times that votes took between two servers. They are computed as if
// both clocks showed the same time, so they can be negative.
type delays struct {
	there, back       int64
	hasThere, hasBack bool
	votes             int
}

// offset returns by how many ms the clock of b is ahead of the clock of a. It is 0 if this lets
// no vote arrive before it was sent. Otherwise it is the middle of the offsets that the votes
// allow or, if votes went in one direction only, the offset nearest to 0. ok is false if no
// vote between a and b was recorded at both ends.
func offset(a, b *elog.Election) (ms int64, ok bool) {
	d := measure(a, b)
	switch {
	case d.votes == 0:
		return 0, false
	case d.hasThere && d.hasBack && (d.there < 0 || d.back < 0):
		return (d.there - d.back) / 2, true
	case d.hasThere && d.there < 0:
		return d.there, true
	case d.hasBack && d.back < 0:
		return -d.back, true
	}
	return 0, true
}

func measure(a, b *elog.Election) (d delays) {
	take := func(from, to *elog.Election, least *int64, has *bool) {
		for _, took := range journeys(from, to) {
			if !*has || took < *least {
				*least, *has = took, true
			}
			d.votes++
		}
	}
	take(a, b, &d.there, &d.hasThere)
	take(b, a, &d.back, &d.hasBack)
	return d
}

// journeys returns how long each vote took that both ends recorded: its arrival by the clock of
// the receiver minus its sending by the clock of the sender.
func journeys(from, to *elog.Election) (took []int64) {
	sent := map[message][]int64{}
	for i := range from.SentVotes {
		s := &from.SentVotes[i]
		if slices.Contains(s.To, to.Server) {
			m := message{from.Server, to.Server, s.State, s.Round, s.Vote}
			sent[m] = append(sent[m], from.Began.Add(time.Duration(s.AtMS)*time.Millisecond).UnixMilli())
		}
	}
	for i := range to.Votes {
		v := &to.Votes[i]
		m := message{v.From, to.Server, v.State, v.Round, v.Vote}
		if at := sent[m]; v.From == from.Server && len(at) > 0 {
			took = append(took, to.Began.Add(time.Duration(v.AtMS)*time.Millisecond).UnixMilli()-at[0])
			sent[m] = at[1:]
		}
	}
	return took
}

// align chooses the clock of the first record and finds how far the other clocks are ahead of
// it. known holds the offsets that other elections showed.
func align(records []elog.Election, known map[pair]int64) clocks {
	c := clocks{shift: make([]int64, len(records))}
	settled := make([]bool, len(records))
	settled[0] = true
	for next := []int{0}; len(next) > 0; next = next[1:] {
		i := next[0]
		for j := range records {
			if settled[j] {
				continue
			}
			if o, ok := offset(&records[i], &records[j]); ok {
				c.shift[j], settled[j] = c.shift[i]+o, true
				next = append(next, j)
			}
		}
	}
	for j := range records {
		if !settled[j] {
			c.shift[j] = known[pair{records[0].Server, records[j].Server}]
			c.unknown = append(c.unknown, records[j].Server)
		}
		for i := range j {
			c.votes += measure(&records[i], &records[j]).votes
		}
	}
	return c
}

// Clocks says how the times of several servers were converted to one clock.
func (e *Election) Clocks() string {
	if len(e.records) == 1 {
		return fmt.Sprintf("All times are by the clock of server %d, the only one whose record is here.", e.records[0].Server)
	}
	var moved []string
	most := int64(0)
	for i, ms := range e.clocks.shift {
		if most = max(most, ms, -ms); ms != 0 {
			moved = append(moved, fmt.Sprintf("server %d by %+d ms", e.records[i].Server, -ms))
		}
	}
	var b strings.Builder
	switch {
	case e.clocks.votes == 0:
		b.WriteString("No vote in this election was recorded at both ends, so the clocks of the servers could not be compared.")
	case len(moved) == 0:
		fmt.Fprintf(&b, "The clocks of the servers agree with the %s that both ends recorded.", number(e.clocks.votes, "vote"))
	case most <= exactMS:
		fmt.Fprintf(&b, "The clocks of the servers agree with the %s that both ends recorded, within %d ms.", number(e.clocks.votes, "vote"), most)
	default:
		fmt.Fprintf(&b, "The clocks of the servers differ. They were aligned by the %s that both ends recorded: %s.",
			number(e.clocks.votes, "vote"), strings.Join(moved, ", "))
	}
	if e.clocks.votes > 0 && len(e.clocks.unknown) > 0 {
		fmt.Fprintf(&b, " There is no such vote for server %s.", ids(e.clocks.unknown))
	}
	return b.String()
}

// ids returns server ids, separated by commas.
func ids(list []ensemble.ServerID) string {
	var out []string
	for _, id := range list {
		out = append(out, fmt.Sprint(id))
	}
	return strings.Join(out, ", ")
}

// number returns a count with its noun.
func number(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
