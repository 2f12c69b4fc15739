package replica

// queue is a first-in-first-out list that reuses its memory. The zero value
// is empty.
type queue[T any] struct {
	items []T
	head  int
}

func (q *queue[T]) len() int { return len(q.items) - q.head }

func (q *queue[T]) push(v T) { q.items = append(q.items, v) }

// first is the oldest item, nil if there is none; valid until the next push.
func (q *queue[T]) first() *T {
	if q.head == len(q.items) {
		return nil
	}
	return &q.items[q.head]
}

// pop removes the oldest item, which must exist.
func (q *queue[T]) pop() T {
	var zero T
	v := q.items[q.head]
	q.items[q.head] = zero
	q.head++
	q.shrink()
	return v
}

// keepMax is how many items' memory an empty queue keeps.
const keepMax = 1024

// shrink moves the rest to the front once most of the slice lies behind.
func (q *queue[T]) shrink() {
	switch {
	case q.head == len(q.items) && cap(q.items) > keepMax:
		q.items, q.head = nil, 0
	case q.head == len(q.items):
		q.items, q.head = q.items[:0], 0
	case q.head >= 32 && q.head > len(q.items)/2:
		n := copy(q.items, q.items[q.head:])
		clear(q.items[n:])
		q.items, q.head = q.items[:n], 0
	}
}

// at is the item at place i from the oldest; valid until the next push.
func (q *queue[T]) at(i int) *T { return &q.items[q.head+i] }
