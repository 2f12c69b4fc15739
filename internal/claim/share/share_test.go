package share

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"bellwether/internal/claim"
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

// TestSubmission checks that a task is a persistent znode below the tasks, whose parents are created first.
func TestSubmission(t *testing.T) {
	c := SharingConfig{Parent: "/s", Tasks: true}
	ops := c.Submission("t1", []byte("work"))
	if len(ops) != 2 || ops[0].Kind != claim.OpParents || ops[0].Path != "/s/tasks" || ops[1].Kind != claim.OpCreate || ops[1].Path != "/s/tasks/t1" ||
		string(ops[1].Data) != "work" || !ops[1].Persistent || ops[1].Sequential {
		t.Errorf("%+v", ops)
	}
}

// TestOtherRecipes checks which children of a parent belong to another recipe.
func TestOtherRecipes(t *testing.T) {
	for _, c := range []struct {
		tasks bool
		names string
		other bool
	}{
		{true, "", false}, {true, "tasks members", false}, {true, "parts", true}, {true, "parts tasks", false},
		{false, "", false}, {false, "parts members", false},
	} {
		if err := (SharingConfig{Parent: "/s", Tasks: c.tasks}).OtherRecipe(strings.Fields(c.names)); (err != nil) != c.other {
			t.Errorf("tasks %v, children %q: %v", c.tasks, c.names, err)
		}
	}
}
