package share

import (
	"fmt"
	"maps"
	"slices"
	"testing"
)

func names(prefix string, n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = fmt.Sprint(prefix, i)
	}
	return out
}

// TestShareIsEvenAndTheSameForAll checks that no member gets more than its even share, rounded up, and that all
// clients compute the same assignment: the order of names and duplicates do not matter.
func TestShareIsEvenAndTheSameForAll(t *testing.T) {
	for _, m := range []int{1, 2, 3, 7, 20} {
		for _, p := range []int{0, 1, 6, 100} {
			members, parts := names("m", m), names("p", p)
			got := Share(members, parts)
			load := map[string]int{}
			for _, part := range parts {
				if !slices.Contains(members, got[part]) {
					t.Fatalf("%s belongs to %q", part, got[part])
				}
				load[got[part]]++
			}
			for member, n := range load {
				if most := (p + m - 1) / m; n > most {
					t.Errorf("%s has %d of %d parts among %d", member, n, p, m)
				}
			}
			slices.Reverse(members)
			slices.Reverse(parts)
			if again := Share(append(members, "m0", ""), append(parts, parts...)); !maps.Equal(got, again) {
				t.Errorf("%d members, %d parts: the order matters", m, p)
			}
		}
	}
	if got := Share(nil, names("p", 3)); len(got) != 0 {
		t.Errorf("nobody has %v", got)
	}
}

// TestShareMovesLittle checks that when a member leaves, only its own parts and few others move.
func TestShareMovesLittle(t *testing.T) {
	members, parts := names("m", 10), names("p", 1000)
	before := Share(members, parts)
	after := Share(members[:9], parts)
	moved := 0
	for _, p := range parts {
		if before[p] != after[p] {
			moved++
		}
	}
	if moved > 400 {
		t.Errorf("%d of 1,000 parts moved when one of ten left", moved)
	}
}

// TestShareStaysTheSame pins the assignment, because members of different versions share the same parts.
func TestShareStaysTheSame(t *testing.T) {
	got := Share([]string{"host-a", "host-b", "host-c"}, []string{"p0", "p1", "p2", "p3", "p4", "p5", "p6"})
	want := map[string]string{"p0": "host-b", "p1": "host-c", "p2": "host-a", "p3": "host-b", "p4": "host-b", "p5": "host-a", "p6": "host-c"}
	if !maps.Equal(got, want) {
		t.Errorf("%v", got)
	}
}
