package theatre

import (
	"cmp"
	"math"
	"slices"

	"bellwether/internal/admin/elog"
	"bellwether/internal/ensemble"
	"bellwether/internal/peerwire"
)

// Limits of a drawing.
const (
	linesMax   = 16  // lifelines
	arrowsMax  = 400 // arrows
	changesMax = 64  // changes of a vote; a server records no more
)

// States of servers in votes.
var (
	looking   = peerwire.Looking.String()
	following = peerwire.Following.String()
	leading   = peerwire.Leading.String()
)

// message holds what one server said to another.
type message struct {
	from, to ensemble.ServerID
	state    string
	round    wireEpoch
	vote     elog.Vote
}

// delivery is a message and when it was sent and heard, as far as that is recorded.
type delivery struct {
	message
	sentAt, heardAt     int64 // ms since the election began
	sent, heard         bool  // recorded by the sender, by the receiver
	sentRank, heardRank int
	verdict             string
	count               int // number of equal messages that this one represents, including itself
}

// scene is an election as it is drawn: lifelines, points on them, and arrows between the
// points.
type scene struct {
	lines  []lifeline
	points []point
	arrows []arrow
	// leftOut counts the recorded votes that are not drawn, because there are too many votes or
	// servers. unrecorded counts the votes that the servers did not record.
	leftOut, unrecorded int
}

// lifeline is the line of one server in the drawing. rec is its record; nil: it is not known.
type lifeline struct {
	id    ensemble.ServerID
	rec   *elog.Election
	began int64 // ms since the election began
}

type kind uint8

// The kinds of points.
const (
	begins kind = iota
	changes
	departs
	arrives
	decides
	discovered
	synchronised
)

// point is something that happened at one server.
type point struct {
	line  int
	kind  kind
	at    int64 // ms since the election began
	rank  int   // orders the points of a line at the same time
	chip  string
	vote  elog.Vote // of the server from here on, if chip is set
	phase string    // text about the phase that ends here
	cause int       // the point of the departure, for an arrival; -1: none
	x     float64
}

// arrow is a vote on its way from one point to another. stop is -1 if the arrival is not
// recorded.
type arrow struct {
	*delivery
	start, stop int
}

// line returns the lifeline of a server; -1: it has none.
func (s *scene) line(id ensemble.ServerID) int {
	return slices.IndexFunc(s.lines, func(l lifeline) bool { return l.id == id })
}

// scene builds the scene of an election.
func (e *Election) scene() *scene {
	s := &scene{}
	start := e.Began()
	for i := range e.records {
		r := &e.records[i]
		s.lines = append(s.lines, lifeline{r.Server, r, e.began(i).Sub(start).Milliseconds()})
		s.unrecorded += r.Dropped + r.SentDropped
	}
	all := e.deliveries(start)
	s.addOthers(all)
	for i := range s.lines {
		if s.lines[i].rec != nil {
			s.addRecord(i)
		}
	}
	for i := range all {
		s.addArrow(&all[i])
	}
	s.labelOthers()
	return s
}

// addOthers adds lifelines for the servers whose records are not here.
func (s *scene) addOthers(all []delivery) {
	s.lines = s.lines[:min(len(s.lines), linesMax)]
	var others []ensemble.ServerID
	for i := range all {
		others = append(others, all[i].from, all[i].to)
	}
	for _, l := range s.lines {
		if l.rec.Leader != nil && *l.rec.Leader != peerwire.NoServer {
			others = append(others, *l.rec.Leader)
		}
	}
	slices.Sort(others)
	for _, id := range slices.Compact(others) {
		if len(s.lines) < linesMax && s.line(id) < 0 {
			s.lines = append(s.lines, lifeline{id: id})
		}
	}
	slices.SortFunc(s.lines, func(a, b lifeline) int { return cmp.Compare(a.id, b.id) })
}

// The rank of a point follows from the number of votes that the server had heard before.
func heardRank(n int) int  { return 4*n + 1 }
func changeRank(n int) int { return 4*n - 2 }
func sentRank(n int) int   { return 4*n - 1 }

// addRecord adds the points of a server's own record, except for messages.
func (s *scene) addRecord(i int) {
	l := &s.lines[i]
	r := l.rec
	add := func(k kind, at int64, rank int) *point {
		s.points = append(s.points, point{line: i, kind: k, at: l.began + at, rank: rank, cause: -1})
		return &s.points[len(s.points)-1]
	}
	add(begins, 0, math.MinInt)
	for n, c := range changesOf(r) {
		rank := changeRank(c.Heard)
		if n > 0 && caused(r, c) {
			rank = heardRank(c.Heard) + 1
		}
		p := add(changes, c.AtMS, rank)
		p.chip, p.vote = chipOf(looking, c.Vote, c.Round), c.Vote
	}
	if r.Phase == "look" {
		return
	}
	p := add(decides, r.LookMS, math.MaxInt-3)
	p.chip = "no decision"
	if r.Leader != nil && (r.Epoch > 0 || r.State != "") && decided(r) {
		p.chip, p.vote = roleOf(r.State, *r.Leader), elog.Vote{Leader: *r.Leader}
	}
	at := r.LookMS
	for _, phase := range []struct {
		kind
		name string
		ms   int64
	}{{discovered, "discovery", r.DiscoverMS}, {synchronised, "synchronisation", r.SynchroniseMS}} {
		at += phase.ms
		if decided(r) && phase.ms > 0 {
			add(phase.kind, at, math.MaxInt-3+int(phase.kind-decides)).phase = phase.name + " " + duration(phase.ms)
		}
	}
}

// decided reports whether a server came to a decision.
func decided(r *elog.Election) bool {
	return r.Leader != nil && r.State != "" && r.State != looking && !inconclusive[r.Ending]
}

// caused reports whether a change of the vote was caused by the next vote that was heard.
func caused(r *elog.Election, c elog.Change) bool {
	return c.Heard >= 0 && c.Heard < len(r.Votes) && r.Votes[c.Heard].AtMS == c.AtMS && changesMind[r.Votes[c.Heard].Verdict]
}

// changesOf returns the changes of a server's vote. The record of an older version has no
// changes; they follow from the votes that the server heard.
func changesOf(r *elog.Election) []elog.Change {
	if len(r.Changes) > 0 || len(r.Rounds) == 0 {
		return r.Changes[:min(len(r.Changes), changesMax)]
	}
	all := []elog.Change{{Round: r.Rounds[0], Vote: r.Own}}
	for i, v := range r.Votes {
		if v.State == looking && changesMind[v.Verdict] {
			all = append(all, elog.Change{AtMS: v.AtMS, Round: v.Round, Vote: v.Vote, Heard: i})
		}
	}
	return all
}

// addArrow adds a message, unless there are too many or an end has no lifeline.
func (s *scene) addArrow(d *delivery) {
	from, to := s.line(d.from), s.line(d.to)
	if from < 0 || to < 0 || from == to || len(s.arrows) >= arrowsMax {
		s.leftOut += d.count
		return
	}
	a := arrow{d, -1, -1}
	a.start = s.departure(from, d)
	if d.heard {
		s.points = append(s.points, point{line: to, kind: arrives, at: d.heardAt, rank: d.heardRank, cause: a.start})
		a.stop = len(s.points) - 1
	}
	s.arrows = append(s.arrows, a)
}

// fanMS is for messages of which only the arrival is recorded: equal messages of one server that
// arrive within this time at others are drawn as sent at once.
const fanMS = 5

// departure returns the point at which a message leaves. It is the point of the change of the
// vote or, for the same message to another receiver, its point; otherwise a new point.
func (s *scene) departure(line int, d *delivery) int {
	at, rank, near := d.sentAt, d.sentRank, int64(0)
	if !d.sent {
		at, rank, near = d.heardAt, math.MinInt+1, fanMS
	}
	chip := chipOf(d.state, d.vote, d.round)
	for i := range s.points {
		p := &s.points[i]
		switch {
		case p.line != line || p.at > at || p.at < at-near:
		case p.kind == changes && p.chip == chip, p.kind == departs && p.vote == d.vote && s.sends(i, d):
			return i
		}
	}
	s.points = append(s.points, point{line: line, kind: departs, at: at, rank: rank, cause: -1, vote: d.vote})
	return len(s.points) - 1
}

// sends reports whether a message that equals d leaves from a point.
func (s *scene) sends(p int, d *delivery) bool {
	return slices.ContainsFunc(s.arrows, func(a arrow) bool {
		return a.start == p && a.state == d.state && a.round == d.round && a.sent == d.sent
	})
}

// labelOthers writes on the lifelines of servers without a record which vote they sent.
func (s *scene) labelOthers() {
	said := map[int]message{}
	order := s.order()
	for _, i := range order {
		p := &s.points[i]
		if p.kind != departs || s.lines[p.line].rec != nil {
			continue
		}
		n := slices.IndexFunc(s.arrows, func(a arrow) bool { return a.start == i })
		if n < 0 {
			continue
		}
		m := s.arrows[n].message
		m.to = 0
		if last, ok := said[p.line]; !ok || last != m {
			p.chip, p.vote = chipOf(m.state, m.vote, m.round), m.vote
			said[p.line] = m
		}
	}
}

// order returns the points in the order in which they are drawn from left to right: by
// time, and causes before their effects.
func (s *scene) order() []int {
	order := make([]int, len(s.points))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, j int) int {
		p, q := &s.points[i], &s.points[j]
		return cmp.Or(cmp.Compare(p.line, q.line), cmp.Compare(p.at, q.at), cmp.Compare(p.rank, q.rank))
	})
	lines := make([][]int, len(s.lines))
	for _, i := range order {
		lines[s.points[i].line] = append(lines[s.points[i].line], i)
	}
	return s.merge(lines)
}

// merge merges the points of the lines by time. A point waits for its cause; if all wait
// for each other, as only a wrong record can make them, the earliest goes first.
func (s *scene) merge(lines [][]int) []int {
	out := make([]int, 0, len(s.points))
	done := make([]bool, len(s.points))
	for len(out) < len(s.points) {
		best, waits := -1, false
		for l := range lines {
			if len(lines[l]) == 0 {
				continue
			}
			p := &s.points[lines[l][0]]
			blocked := p.cause >= 0 && !done[p.cause]
			if best < 0 || waits && !blocked || waits == blocked && p.at < s.points[lines[best][0]].at {
				best, waits = l, blocked
			}
		}
		next := lines[best][0]
		lines[best] = lines[best][1:]
		done[next] = true
		out = append(out, next)
	}
	return out
}
