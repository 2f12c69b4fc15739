package ensemble

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestQuorums shows the quorum test as pictures: a letter for each voter, upper
// case where it is in the set.
func TestQuorums(t *testing.T) {
	trio := "server.1=a:1:2\nserver.2=b:1:2\nserver.3=c:1:2\n"
	nine := trio
	for i := 4; i <= 9; i++ {
		nine += fmt.Sprintf("server.%d=s%d:1:2\n", i, i)
	}
	cases := []struct{ name, text, in, out string }{
		{"one", "server.1=a:1:2", "1", "-"},
		{"two need both", "server.1=a:1:2\nserver.2=b:1:2", "12", "1 2 -"},
		{"three need two", trio, "12 13 23 123", "1 2 3 -"},
		{"four need three", trio + "server.4=d:1:2", "123 134", "12 34"},
		{"observers and strangers do not count", trio + "server.4=d:1:2:observer", "124", "14 19 489"},
		{"no voter, no quorum", "server.4=d:1:2:observer", "", "4 -"},
		{"one group is a majority of all", trio + "group.1=1:2:3", "12 13 23 123", "1 2 3 -"},
		{"two of three groups", nine + "group.1=1:2:3\ngroup.2=4:5:6\ngroup.3=7:8:9", "1245 4589 123456", "123 1234 147 14"},
		{"weights", trio + "group.1=1:2:3\nweight.1=3", "1 12", "23 2 -"},
		{"weight zero", trio + "group.1=1:2:3\nweight.3=0", "12 123", "13 23 1 3"},
		{"a group without weight is left out", trio + "group.1=1:2\ngroup.2=3\nweight.3=0", "12", "13 3"},
	}
	for _, c := range cases {
		m := parse(t, c.text)
		for _, set := range strings.Fields(c.in) {
			if !m.HasQuorum(digits(set).Has) {
				t.Errorf("%s: %s is no quorum", c.name, set)
			}
		}
		for _, set := range strings.Fields(c.out) {
			if m.HasQuorum(digits(set).Has) {
				t.Errorf("%s: %s is a quorum", c.name, set)
			}
		}
	}
}

// Set is a set of servers.
type Set map[ServerID]struct{}

// Has reports whether id is in the set.
func (s Set) Has(id ServerID) bool {
	_, ok := s[id]
	return ok
}

// digits reads a set such as 125; a dash is the empty set.
func digits(s string) Set {
	set := Set{}
	for _, d := range strings.Trim(s, "-") {
		set[ServerID(d-'0')] = struct{}{}
	}
	return set
}

// TestWeight shows the weight of each server's vote, with and without groups.
func TestWeight(t *testing.T) {
	m := parse(t, "server.1=a:1:2\nserver.2=b:1:2\ngroup.1=1:2\nweight.2=5")
	if m.Weight(1) != 1 || m.Weight(2) != 5 || m.Weight(9) != 0 || !m.Hierarchical() {
		t.Errorf("weights %d %d %d", m.Weight(1), m.Weight(2), m.Weight(9))
	}
	if m := parse(t, "server.1=a:1:2"); m.Weight(1) != 1 || m.Weight(9) != 1 || m.Hierarchical() {
		t.Error("majority weights are not 1")
	}
}

// drawMembership draws an ensemble of up to eight servers over the ids 1 to 10,
// majority or hierarchical.
func drawMembership(t *rapid.T, label string) *Membership {
	ids := rapid.SliceOfNDistinct(rapid.Int64Range(1, 10), 1, 8, rapid.ID).Draw(t, label+" ids")
	d := Definition{Groups: map[GroupID][]ServerID{}, Weights: map[ServerID]int64{}}
	hierarchical := rapid.Bool().Draw(t, label+" hierarchical")
	for i, n := range ids {
		s := Server{ID: ServerID(n), Addresses: []Address{{"h", 1, 2}}}
		if i > 0 && rapid.IntRange(0, 3).Draw(t, label+" role") == 0 {
			s.Role = Observer
		}
		d.Servers = append(d.Servers, s)
		if hierarchical && s.Role == Participant {
			g := GroupID(rapid.IntRange(1, 4).Draw(t, label+" group"))
			d.Groups[g] = append(d.Groups[g], s.ID)
			w := rapid.Int64Range(0, 4).Draw(t, label+" weight")
			if i == 0 {
				w++
			}
			d.Weights[s.ID] = w
		}
	}
	m, err := New(d)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func drawSet(t *rapid.T, label string) Set {
	set := Set{}
	for _, n := range rapid.SliceOfDistinct(rapid.Int64Range(1, 10), rapid.ID).Draw(t, label) {
		set[ServerID(n)] = struct{}{}
	}
	return set
}

// TestAnyTwoQuorumsIntersect is the property that all safety rests on: a set
// and the rest of the voters are never both quorums.
func TestAnyTwoQuorumsIntersect(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m, set := drawMembership(t, "m"), drawSet(t, "set")
		rest := func(id ServerID) bool { return !set.Has(id) }
		if m.HasQuorum(set.Has) && m.HasQuorum(rest) {
			t.Fatalf("disjoint quorums of\n%s", m)
		}
	})
}

// TestQuorumsGrow shows that a quorum to which servers are added is still a quorum,
// that all voters together are a quorum, and that an empty set is not a quorum.
func TestQuorumsGrow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m, small, more := drawMembership(t, "m"), drawSet(t, "small"), drawSet(t, "more")
		both := func(id ServerID) bool { return small.Has(id) || more.Has(id) }
		if m.HasQuorum(small.Has) && !m.HasQuorum(both) {
			t.Fatalf("a larger set is no quorum of\n%s", m)
		}
		if !m.HasQuorum(m.IsVoter) || m.HasQuorum(Set{}.Has) {
			t.Fatalf("all or none of\n%s", m)
		}
	})
}

// TestOneGroupIsAMajority shows that a membership with a single group, whose servers all
// have the same weight, has the same quorums as one without groups.
func TestOneGroupIsAMajority(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.Int64Range(1, 9).Draw(t, "servers")
		weight := rapid.Int64Range(1, 5).Draw(t, "weight")
		plain := Definition{}
		group := Definition{Groups: map[GroupID][]ServerID{}, Weights: map[ServerID]int64{}}
		for i := range n {
			s := Server{ID: ServerID(i), Addresses: []Address{{"h", 1, 2}}}
			plain.Servers = append(plain.Servers, s)
			group.Servers = append(group.Servers, s)
			group.Groups[1] = append(group.Groups[1], s.ID)
			group.Weights[s.ID] = weight
		}
		a, err := New(plain)
		if err != nil {
			t.Fatal(err)
		}
		b, err := New(group)
		if err != nil {
			t.Fatal(err)
		}
		set := drawSet(t, "set")
		if a.HasQuorum(set.Has) != b.HasQuorum(set.Has) {
			t.Fatalf("set %v of %d", set, n)
		}
	})
}

// TestHasQuorumAllocatesNothing shows that HasQuorum, which runs for every commit,
// allocates no memory.
func TestHasQuorumAllocatesNothing(t *testing.T) {
	for _, text := range []string{"server.1=a:1:2\nserver.2=b:1:2\nserver.3=c:1:2", "server.1=a:1:2\nserver.2=b:1:2\ngroup.1=1:2"} {
		m := parse(t, text)
		set := digits("12")
		has := set.Has
		if n := testing.AllocsPerRun(100, func() { m.HasQuorum(has) }); n != 0 {
			t.Errorf("%v allocations", n)
		}
	}
}
