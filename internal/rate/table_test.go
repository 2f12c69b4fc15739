package rate

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestTableDropsTheKeyUsedLongestAgo compares a table with a list of its keys in order of
// their use.
func TestTableDropsTheKeyUsedLongestAgo(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		most := rapid.IntRange(1, 5).Draw(t, "most")
		table := NewTable[int, int](most)
		var used []int // oldest use first
		values := map[int]int{}
		for range rapid.IntRange(0, 60).Draw(t, "steps") {
			k := rapid.IntRange(0, 9).Draw(t, "key")
			if rapid.Bool().Draw(t, "find") {
				if v := table.Find(k); (v != nil) != slices.Contains(used, k) || v != nil && *v != values[k] {
					t.Fatalf("Find(%d) of %v: %v", k, used, v)
				}
				continue
			}
			if !slices.Contains(used, k) {
				values[k] = 0
			}
			v := table.Use(k)
			if *v != values[k] {
				t.Fatalf("Use(%d): %d, want %d", k, *v, values[k])
			}
			*v++
			values[k]++
			used = append(slices.DeleteFunc(used, func(u int) bool { return u == k }), k)
			used = used[max(0, len(used)-most):]
			if table.Len() != len(used) {
				t.Fatalf("%d keys, want %v", table.Len(), used)
			}
		}
	})
}
