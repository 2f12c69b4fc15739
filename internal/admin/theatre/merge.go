package theatre

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"bellwether/internal/admin/elog"
	"bellwether/internal/election"
	"bellwether/internal/ensemble"
)

// Limits on what is compared and drawn.
const (
	recordsMax  = 65 // newest records of one server
	serversMax  = 32 // servers whose records are compared
	comparedMax = 64 // votes and changes of a record that are compared with those of another
	offsetsMax  = 16 // elections from which the offset of two clocks is computed
	slackMS     = 1000
)

// Election is one election, as one or several servers recorded it.
type Election struct {
	records []elog.Election // one of each server, in the order of their ids
	clocks  clocks
}

// Elections finds out which of the records describe the same election, and returns the
// elections, oldest first. It uses the newest records of each server, and one record of
// each server and time.
func Elections(records []elog.Election) []Election {
	records = newest(records)
	all := compare(records)
	groups := newGroups(len(records))
	for i := range records {
		for j := i + 1; j < len(records); j++ {
			if groups.mayJoin(records, i, j) && all.same(i, j) {
				groups.join(i, j)
			}
		}
	}
	var out []Election
	for _, members := range groups.list() {
		e := Election{}
		for _, i := range members {
			e.records = append(e.records, records[i])
		}
		slices.SortFunc(e.records, func(a, b elog.Election) int { return cmp.Compare(a.Server, b.Server) })
		e.clocks = align(e.records, all.offsets)
		out = append(out, e)
	}
	slices.SortStableFunc(out, func(a, b Election) int { return a.Began().Compare(b.Began()) })
	return out
}

// newest returns the newest records of each server. It groups them by server, and orders the
// records of a server by time.
func newest(records []elog.Election) []elog.Election {
	out := slices.Clone(records)
	slices.SortStableFunc(out, func(a, b elog.Election) int {
		return cmp.Or(cmp.Compare(a.Server, b.Server), a.Began.Compare(b.Began))
	})
	out = slices.CompactFunc(out, func(a, b elog.Election) bool { return a.Server == b.Server && a.Began.Equal(b.Began) })
	var kept []elog.Election
	for servers := 0; len(out) > 0 && servers < serversMax; servers++ {
		n := slices.IndexFunc(out, func(e elog.Election) bool { return e.Server != out[0].Server })
		if n < 0 {
			n = len(out)
		}
		kept = append(kept, out[max(0, n-recordsMax):n]...)
		out = out[n:]
	}
	return kept
}

// comparison decides which records are of the same election.
type comparison struct {
	records []elog.Election
	offsets map[pair]int64 // of clocks, from elections that are certainly the same
}

func compare(records []elog.Election) *comparison {
	c := &comparison{records: records, offsets: map[pair]int64{}}
	found, tried := map[pair][]int64{}, map[pair]int{}
	for i := range records {
		for j := i + 1; j < len(records); j++ {
			a, b := &records[i], &records[j]
			p := pair{a.Server, b.Server}
			if !sameEpoch(a, b) || tried[p] == offsetsMax {
				continue
			}
			tried[p]++
			if o, ok := offset(a, b); ok {
				found[p] = append(found[p], o)
			}
		}
	}
	for p, all := range found {
		slices.Sort(all)
		c.offsets[p] = all[len(all)/2]
	}
	return c
}

// sameEpoch reports whether two servers took part in the election that led to the same
// epoch: an epoch has one leader, and both were in the election before it led.
func sameEpoch(a, b *elog.Election) bool {
	return a.Server != b.Server && a.Epoch > 0 && a.Epoch == b.Epoch && !follows(a) && !follows(b) &&
		a.Leader != nil && b.Leader != nil && *a.Leader == *b.Leader
}

func follows(e *elog.Election) bool { return e.Ending == election.Follows.String() }

func transferred(e *elog.Election) bool { return e.Ending == election.LeadershipTransferred.String() }

// same reports whether two records are of the same election: it led to the same epoch, or
// they overlap in time and a vote of one of them arrived at the other.
func (c *comparison) same(i, j int) bool {
	a, b := &c.records[i], &c.records[j]
	switch {
	case a.Server == b.Server:
		return false
	case sameEpoch(a, b):
		return true
	case a.Epoch > 0 && b.Epoch > 0 && a.Epoch != b.Epoch, !c.overlap(a, b):
		return false
	}
	return transferred(a) && transferred(b) && a.Why == b.Why || heardVotes(a, b) || heardVotes(b, a)
}

// overlap reports whether the elections overlap in time, as far as the clocks are known.
func (c *comparison) overlap(a, b *elog.Election) bool {
	shift := c.offsets[pair{a.Server, b.Server}]
	began, other := a.Began.UnixMilli(), b.Began.UnixMilli()-shift
	return began <= other+lasted(b)+slackMS && other <= began+lasted(a)+slackMS
}

// lasted is the time until the server served or gave up.
func lasted(e *elog.Election) int64 { return e.LookMS + e.DiscoverMS + e.SynchroniseMS }

// heardVotes reports whether a vote that one server cast in this election arrived at the
// other while both were looking.
func heardVotes(from, at *elog.Election) bool {
	for _, v := range at.Votes[:min(len(at.Votes), comparedMax)] {
		if v.From == from.Server && v.State == looking && cast(from, v.Round, v.Vote) {
			return true
		}
	}
	return false
}

// cast reports whether a server cast a vote in a round. A record without the changes of the
// vote still has the first vote.
func cast(e *elog.Election, round wireEpoch, v elog.Vote) bool {
	if len(e.Changes) == 0 {
		return v == e.Own && slices.Contains(e.Rounds, round)
	}
	return slices.ContainsFunc(e.Changes[:min(len(e.Changes), comparedMax)], func(c elog.Change) bool { return c.Round == round && c.Vote == v })
}

// groups are sets of records, joined step by step.
type groups struct {
	of      []int   // group of each record
	members [][]int // the members of each group; nil: the group is part of another group
}

func newGroups(n int) *groups {
	g := &groups{of: make([]int, n), members: make([][]int, n)}
	for i := range n {
		g.of[i], g.members[i] = i, []int{i}
	}
	return g
}

// mayJoin reports whether two records are in different groups without a server in common.
func (g *groups) mayJoin(records []elog.Election, i, j int) bool {
	a, b := g.of[i], g.of[j]
	if a == b {
		return false
	}
	for _, x := range g.members[a] {
		for _, y := range g.members[b] {
			if records[x].Server == records[y].Server {
				return false
			}
		}
	}
	return true
}

func (g *groups) join(i, j int) {
	a, b := g.of[i], g.of[j]
	for _, m := range g.members[b] {
		g.of[m] = a
	}
	g.members[a], g.members[b] = append(g.members[a], g.members[b]...), nil
}

func (g *groups) list() (out [][]int) {
	for _, m := range g.members {
		if m != nil {
			out = append(out, m)
		}
	}
	return out
}

// Began returns when the first server began to look, by the clock of the server with the
// lowest id.
func (e *Election) Began() time.Time {
	first := e.records[0].Began
	for i := range e.records {
		if at := e.began(i); at.Before(first) {
			first = at
		}
	}
	return first
}

// began returns when the server of record i began to look, by the clock of the first record.
func (e *Election) began(i int) time.Time {
	return e.records[i].Began.Add(-time.Duration(e.clocks.shift[i]) * time.Millisecond)
}

// ID names the election: the id of a server, and when this server began to look by its own
// clock. Each server that took part gives the election such an id, and Find accepts all of
// them, so a link stays valid when one of the servers no longer answers.
func (e *Election) ID() string { return idOf(&e.records[0]) }

// IDFrom returns the id that a server gives to the election if it has a record of it, and ID otherwise. Pages of that
// server can find the election by it as long as the server runs.
func (e *Election) IDFrom(server ensemble.ServerID) string {
	for i := range e.records {
		if e.records[i].Server == server {
			return idOf(&e.records[i])
		}
	}
	return e.ID()
}

func idOf(r *elog.Election) string {
	return fmt.Sprintf("%d.%d", r.Server, r.Began.UnixMilli())
}

// Find returns the election with an id; nil if there is none.
func Find(all []Election, id string) *Election {
	server, _, _ := strings.Cut(id, ".")
	if _, err := strconv.ParseInt(server, 10, 64); err != nil {
		return nil
	}
	for i := range all {
		for j := range all[i].records {
			if idOf(&all[i].records[j]) == id {
				return &all[i]
			}
		}
	}
	return nil
}

// Joined reports whether the election has only the record of one server, which joined a leader.
func (e *Election) Joined() bool { return len(e.records) == 1 && follows(&e.records[0]) }

// Servers returns the ids of the servers that recorded the election.
func (e *Election) Servers() (ids []ensemble.ServerID) {
	for i := range e.records {
		ids = append(ids, e.records[i].Server)
	}
	return ids
}
