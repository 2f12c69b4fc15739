// Package fifo is a first-in-first-out queue for the packages of the server. It has one
// type, [Queue], and no goroutine or lock: the owner of a Queue guards it.
package fifo

import "slices"

// Queue is a first-in-first-out list that reuses its memory. The zero value is
// empty.
//
// Invariants: 0 <= head <= len(items); the places of items before head hold zero
// values, so that the queue keeps nothing alive that was taken out; head is 0
// when the queue is empty.
type Queue[T any] struct {
	items []T
	head  int
}

// Len returns the number of items.
func (q *Queue[T]) Len() int { return len(q.items) - q.head }

// Push adds an item at the end.
func (q *Queue[T]) Push(v T) { q.items = append(q.items, v) }

// First returns the oldest item, nil if there is none. It is valid until the next
// Push or Pop.
func (q *Queue[T]) First() *T {
	if q.head == len(q.items) {
		return nil
	}
	return &q.items[q.head]
}

// Last returns the newest item, nil if there is none. It is valid until the next
// Push or Pop.
func (q *Queue[T]) Last() *T {
	if q.head == len(q.items) {
		return nil
	}
	return &q.items[len(q.items)-1]
}

// At returns the item at place i from the oldest, 0 <= i < Len. It is valid until
// the next Push or Pop.
func (q *Queue[T]) At(i int) *T { return &q.items[q.head+i] }

// Pop removes the oldest item, which must exist, and returns it.
func (q *Queue[T]) Pop() T {
	var zero T
	v := q.items[q.head]
	q.items[q.head] = zero
	q.head++
	q.shrink()
	return v
}

// RemoveFunc removes the oldest item for which match returns true. It reports whether
// there was one.
func (q *Queue[T]) RemoveFunc(match func(T) bool) bool {
	i := slices.IndexFunc(q.items[q.head:], match)
	if i < 0 {
		return false
	}
	copy(q.items[q.head+i:], q.items[q.head+i+1:])
	q.Truncate(q.Len() - 1)
	return true
}

// Truncate removes the newest items until n are left, 0 <= n <= Len.
func (q *Queue[T]) Truncate(n int) {
	clear(q.items[q.head+n:])
	q.items = q.items[:q.head+n]
	if n == 0 {
		q.items, q.head = q.items[:0], 0
	}
}

const (
	// keepMax is the capacity above which an empty queue gives its memory back.
	keepMax = 1024
	// moveMin is how many items must have been taken out before the remaining ones are
	// moved to the front.
	moveMin = 32
)

// shrink moves the items to the front of the slice once more than half of the slice lies
// unused before them, so that Pop takes constant time on average. It gives the memory of
// a large empty queue back.
func (q *Queue[T]) shrink() {
	switch {
	case q.head == len(q.items) && cap(q.items) > keepMax:
		q.items, q.head = nil, 0
	case q.head == len(q.items):
		q.items, q.head = q.items[:0], 0
	case q.head >= moveMin && q.head > len(q.items)/2:
		n := copy(q.items, q.items[q.head:])
		clear(q.items[n:])
		q.items, q.head = q.items[:n], 0
	}
}
