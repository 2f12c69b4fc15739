package fifo

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestQueueIsASlice compares a queue with a slice after each of many random
// pushes, pops and removals, and checks the invariants of Queue.
func TestQueueIsASlice(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var q Queue[int]
		var want []int
		next := 0
		for range rapid.IntRange(1, 30).Draw(t, "rounds") {
			for range rapid.IntRange(0, 300).Draw(t, "pushes") {
				next++
				q.Push(next)
				want = append(want, next)
			}
			for range min(rapid.IntRange(0, 300).Draw(t, "pops"), len(want)) {
				if got := q.Pop(); got != want[0] {
					t.Fatalf("popped %d, want %d", got, want[0])
				}
				want = want[1:]
				check(t, &q, want)
			}
			if len(want) > 0 {
				gone := rapid.SampledFrom(want).Draw(t, "removed")
				if !q.RemoveFunc(func(v int) bool { return v == gone }) || q.RemoveFunc(func(v int) bool { return v == gone }) {
					t.Fatalf("%d was not removed once", gone)
				}
				want = slices.DeleteFunc(slices.Clone(want), func(v int) bool { return v == gone })
			}
			check(t, &q, want)
		}
	})
}

func check(t *rapid.T, q *Queue[int], want []int) {
	var got []int
	for i := range q.Len() {
		got = append(got, *q.At(i))
	}
	if !slices.Equal(got, want) {
		t.Fatalf("holds %v, want %v", got, want)
	}
	if n := len(want); n == 0 && (q.First() != nil || q.Last() != nil) || n > 0 && (*q.First() != want[0] || *q.Last() != want[n-1]) {
		t.Fatalf("first or last of %v is wrong", want)
	}
	if q.head < 0 || q.head > len(q.items) || len(want) == 0 && q.head != 0 {
		t.Fatalf("head %d of %d", q.head, len(q.items))
	}
	if slices.ContainsFunc(q.items[:q.head], func(v int) bool { return v != 0 }) {
		t.Fatal("keeps what was popped")
	}
}

// TestEmptyQueueGivesMemoryBack shows that a queue gives the memory of a burst back when it is empty again.
func TestEmptyQueueGivesMemoryBack(t *testing.T) {
	var q Queue[int]
	for i := range 10 * keepMax {
		q.Push(i)
	}
	for q.Len() > 0 {
		q.Pop()
	}
	if cap(q.items) > keepMax {
		t.Errorf("keeps the memory of %d items", cap(q.items))
	}
}
