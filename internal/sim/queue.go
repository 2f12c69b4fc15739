package sim

// queue holds future events, ordered by time. Events of the same time happen in the order
// in which they were pushed.
type queue struct {
	items []item
	count uint64
}

type item struct {
	at  int64 // µs
	seq uint64
	do  func()
}

func (i *item) before(o *item) bool { return i.at < o.at || i.at == o.at && i.seq < o.seq }

func (q *queue) push(at int64, do func()) {
	q.count++
	q.items = append(q.items, item{at, q.count, do})
	h := q.items
	for i := len(h) - 1; i > 0; {
		up := (i - 1) / 2
		if !h[i].before(&h[up]) {
			return
		}
		h[i], h[up] = h[up], h[i]
		i = up
	}
}

// pop removes and returns the next item. The queue must not be empty.
func (q *queue) pop() item {
	h := q.items
	top, end := h[0], len(h)-1
	h[0], h[end] = h[end], item{}
	q.items = h[:end]
	h = q.items
	for i := 0; ; {
		least := i
		for _, kid := range [2]int{2*i + 1, 2*i + 2} {
			if kid < len(h) && h[kid].before(&h[least]) {
				least = kid
			}
		}
		if least == i {
			return top
		}
		h[i], h[least] = h[least], h[i]
		i = least
	}
}
