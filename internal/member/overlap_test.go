package member

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"bellwether/internal/ensemble"
)

// parse reads a membership from its lines.
func parse(t interface{ Fatal(...any) }, text string) *ensemble.Membership {
	m, err := ensemble.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// line returns the line of a server, whose role is p or o.
func line(id int, role rune) string {
	name := map[rune]string{'p': "participant", 'o': "observer"}[role]
	return fmt.Sprintf("server.%d=h%d:1:2:%s;3", id, id, name)
}

// roles makes a membership from a text with a letter for each server: p, o, or - for one that is
// no member.
func roles(t interface{ Fatal(...any) }, text string) *ensemble.Membership {
	var lines []string
	for i, r := range text {
		if r != '-' {
			lines = append(lines, line(i+1, r))
		}
	}
	return parse(t, strings.Join(lines, "\n"))
}

// disjoint looks for two quorums without a common server by trying all pairs of sets: the
// definition of what OverlapOf proves.
func disjoint(a, b *ensemble.Membership, n int) bool {
	set := func(mask int) func(ensemble.ServerID) bool {
		return func(id ensemble.ServerID) bool { return mask>>(id-1)&1 == 1 }
	}
	for x := range 1 << n {
		if !a.HasQuorum(set(x)) {
			continue
		}
		for y := range 1 << n {
			if x&y == 0 && b.HasQuorum(set(y)) {
				return true
			}
		}
	}
	return false
}

// changes returns how many ids are in only one of the lists.
func changes(a, b []ensemble.ServerID) int { return 2*len(union(a, b)) - len(a) - len(b) }

// TestOverlapOfMajorities compares the proof by numbers with all pairs of quorums, for all pairs of
// lists of up to five voters.
func TestOverlapOfMajorities(t *testing.T) {
	const n = 5
	lists := make([]*ensemble.Membership, 1<<n)
	for mask := range lists {
		text := []rune(strings.Repeat("-", n))
		for i := range n {
			if mask>>i&1 == 1 {
				text[i] = 'p'
			}
		}
		lists[mask] = roles(t, string(text))
	}
	for _, a := range lists[1:] {
		for _, b := range lists[1:] {
			if o := OverlapOf(a, b); o.Holds == disjoint(a, b, n) {
				t.Errorf("%v and %v: %+v", a.Voters(), b.Voters(), o)
			}
			if changes(a.Voters(), b.Voters()) <= 1 && disjoint(a, b, n) {
				t.Errorf("%v and %v differ by one voter and do not overlap", a.Voters(), b.Voters())
			}
		}
	}
	if o := OverlapOf(lists[1], lists[0]); o.Holds {
		t.Error("a list without voters overlaps")
	}
}

// TestOverlapText shows the proof and the reason why there is none.
func TestOverlapText(t *testing.T) {
	for _, c := range []struct{ old, next, want string }{
		{"ppp", "pppp", "every quorum of 1 2 3 has 2, every quorum of 1 2 3 4 has 3, and 2+3 > 4 voters in both lists"},
		{"ppp", "ppppp", "but 2+3 is not more than 5 voters in both lists"},
		{"ppp", "pppo", "the voters stay 1 2 3"},
	} {
		if o := OverlapOf(roles(t, c.old), roles(t, c.next)); !strings.Contains(o.Text, c.want) {
			t.Errorf("%s to %s: %s", c.old, c.next, o.Text)
		}
	}
	groups := parse(t, strings.Join([]string{line(1, 'p'), line(2, 'p'), line(3, 'p'), "group.1=1:2:3", "weight.1=5"}, "\n"))
	for old, want := range map[string]string{
		"ppp": "2 3 can be a quorum of the old list, and 1 one of the new list: they share no server",
		"p--": "all 8 sets of the voters 1 2 3 were tried",
	} {
		if o := OverlapOf(roles(t, old), groups); !strings.Contains(o.Text, want) {
			t.Errorf("%s: %s", old, o.Text)
		}
	}
}

// drawMembership draws a list of up to most servers, half of them with groups and weights.
func drawMembership(t *rapid.T, label string, most int) *ensemble.Membership {
	text := make([]rune, most)
	for i := range text {
		text[i] = rapid.SampledFrom([]rune("ppo-")).Draw(t, label)
	}
	text[rapid.IntRange(0, most-1).Draw(t, label+" voter")] = 'p'
	plain := roles(t, string(text))
	if rapid.Bool().Draw(t, label+" majority") {
		return plain
	}
	d := plain.Definition()
	d.Groups, d.Weights = map[ensemble.GroupID][]ensemble.ServerID{}, map[ensemble.ServerID]int64{}
	for i, id := range plain.Voters() {
		g := ensemble.GroupID(rapid.IntRange(1, 3).Draw(t, label+" group"))
		d.Groups[g] = append(d.Groups[g], id)
		d.Weights[id] = rapid.Int64Range(0, 3).Draw(t, label+" weight")
		if i == 0 {
			d.Weights[id]++
		}
	}
	m, err := ensemble.New(d)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// TestOverlapOfGroups compares the check of all sets with all pairs of quorums, for random groups
// and weights.
func TestOverlapOfGroups(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := drawMembership(t, "a", 6), drawMembership(t, "b", 6)
		if o := OverlapOf(a, b); o.Holds == disjoint(a, b, 6) {
			t.Fatalf("%+v\n%s\n\n%s", o, a, b)
		}
	})
}

// TestTolerates compares Tolerates with the definition: any so many servers may fail, and some set of
// one more may not.
func TestTolerates(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := drawMembership(t, "m", 6)
		alive := rapid.IntRange(0, 63).Draw(t, "alive")
		up := func(mask int) func(ensemble.ServerID) bool {
			return func(id ensemble.ServerID) bool { return mask>>(id-1)&1 == 1 }
		}
		least := 100 // the size of the smallest set of failures that leaves no quorum
		for fails := range 64 {
			if n := strings.Count(fmt.Sprintf("%b", fails&alive), "1"); fails&^alive == 0 && n < least && !m.HasQuorum(up(alive&^fails)) {
				least = n
			}
		}
		if got := Tolerates(m, up(alive)); got != least-1 {
			t.Fatalf("Tolerates %d, want %d, of %b\n%s", got, least-1, alive, m)
		}
	})
}
