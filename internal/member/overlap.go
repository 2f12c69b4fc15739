package member

import (
	"fmt"
	"math/bits"
	"slices"
	"strings"

	"bellwether/internal/ensemble"
)

// votersMax is how many voters with a weight two lists may have together if one of them has
// groups. All sets of these voters are tried.
const votersMax = 20

// Overlap says whether every quorum of one membership shares a server with every quorum of
// another one. If this holds, what is committed under the first one is known to a server of each
// quorum of the second one, and the two can never elect two leaders.
type Overlap struct {
	Holds bool   `json:"holds"`
	Text  string `json:"text"` // the proof, or why there is none
}

// OverlapOf compares two memberships.
func OverlapOf(old, next *ensemble.Membership) Overlap {
	switch {
	case len(old.Voters()) == 0 || len(next.Voters()) == 0:
		return Overlap{Text: "a list without voters has no quorum"}
	case sameQuorums(old, next):
		return Overlap{true, "the voters stay " + idText(old.Voters()) + ", and any two quorums of the same voters share a server"}
	case !old.Hierarchical() && !next.Hierarchical():
		return majorities(old.Voters(), next.Voters())
	}
	return bySets(old, next)
}

// sameQuorums reports whether both memberships have the same quorums because they have the same
// voters, groups and weights.
func sameQuorums(old, next *ensemble.Membership) bool {
	if !slices.Equal(old.Voters(), next.Voters()) || old.Hierarchical() != next.Hierarchical() {
		return false
	}
	a, b := old.Definition(), next.Definition()
	for _, id := range old.Voters() {
		if groupOf(a, id) != groupOf(b, id) || a.Weights[id] != b.Weights[id] {
			return false
		}
	}
	return true
}

// majorities proves the overlap by numbers. The sum of the sizes of two quorums decides: if it is
// not larger than the number of all voters, there is room for two quorums that share none.
func majorities(old, next []ensemble.ServerID) Overlap {
	all := union(old, next)
	a, b := len(old)/2+1, len(next)/2+1
	text := fmt.Sprintf("every quorum of %s has %d, every quorum of %s has %d, ", idText(old), a, idText(next), b)
	if a+b > len(all) {
		return Overlap{true, text + fmt.Sprintf("and %d+%d > %d voters in both lists", a, b, len(all))}
	}
	return Overlap{false, text + fmt.Sprintf("but %d+%d is not more than %d voters in both lists: two quorums need not share a server", a, b, len(all))}
}

// bySets tries all sets of the voters.
func bySets(old, next *ensemble.Membership) Overlap {
	all := slices.DeleteFunc(union(old.Voters(), next.Voters()), func(id ensemble.ServerID) bool { return old.Weight(id) == 0 && next.Weight(id) == 0 })
	if len(all) > votersMax {
		return Overlap{Text: fmt.Sprintf("both lists have %d voters together; with groups at most %d are checked", len(all), votersMax)}
	}
	for mask := range uint32(1) << len(all) {
		if old.HasQuorum(within(all, mask)) && next.HasQuorum(within(all, ^mask)) {
			return Overlap{Text: fmt.Sprintf("%s can be a quorum of the old list, and %s one of the new list: they share no server", idText(chosen(all, mask)), idText(chosen(all, ^mask)))}
		}
	}
	return Overlap{true, fmt.Sprintf("all %d sets of the voters %s were tried: if a set is a quorum of the old list (at least %d servers), the others are no quorum of the new list (at least %d)",
		1<<len(all), idText(all), smallest(old, all), smallest(next, all))}
}

// smallest returns the size of the smallest quorum.
func smallest(m *ensemble.Membership, all []ensemble.ServerID) int {
	least := len(all)
	for mask := range uint32(1) << len(all) {
		if n := bits.OnesCount32(mask); n < least && m.HasQuorum(within(all, mask)) {
			least = n
		}
	}
	return least
}

// within returns a function that reports whether a server is in the part of all that mask chooses.
func within(all []ensemble.ServerID, mask uint32) func(ensemble.ServerID) bool {
	return func(id ensemble.ServerID) bool {
		i, found := slices.BinarySearch(all, id)
		return found && mask>>i&1 == 1
	}
}

// chosen returns the servers that mask chooses.
func chosen(all []ensemble.ServerID, mask uint32) (out []ensemble.ServerID) {
	for i, id := range all {
		if mask>>i&1 == 1 {
			out = append(out, id)
		}
	}
	return out
}

// union returns the ids of both lists in order.
func union(a, b []ensemble.ServerID) []ensemble.ServerID {
	all := slices.Concat(a, b)
	slices.Sort(all)
	return slices.Compact(all)
}

// idText prints ids as 1 2 3.
func idText(ids []ensemble.ServerID) string {
	if len(ids) == 0 {
		return "none"
	}
	return strings.Trim(fmt.Sprint(ids), "[]")
}

// Tolerates returns how many of the servers that are up may fail, whichever they are, while the
// others are a quorum of m. It is -1 if there is no quorum now.
func Tolerates(m *ensemble.Membership, up func(ensemble.ServerID) bool) int {
	alive := slices.DeleteFunc(slices.Clone(m.Voters()), func(id ensemble.ServerID) bool { return !up(id) || m.Weight(id) == 0 })
	if !m.Hierarchical() {
		return max(len(alive)-(len(m.Voters())/2+1), -1)
	}
	if len(alive) > votersMax {
		return -1
	}
	least := len(alive) + 1
	for mask := range uint32(1) << len(alive) { // the servers that fail
		if n := bits.OnesCount32(mask); n < least && !m.HasQuorum(within(alive, ^mask)) {
			least = n
		}
	}
	return least - 1
}
