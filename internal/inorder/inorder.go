// Package inorder runs functions of a caller, such as those of a Logger, beside
// the code that has something to tell. One that blocks delays nothing but the
// functions behind it.
package inorder

import "sync"

// Max is how many functions wait at most; further ones are left out.
const Max = 1024

// Queue runs functions one after the other, in the order in which they were added.
// It has a goroutine only while there are some. The zero value is ready for use, by
// any goroutine.
type Queue struct {
	// Missed is called, in its turn, with the number of functions that were left
	// out since it was called last. nil: nobody is told.
	Missed func(n int)

	mu      sync.Mutex
	waiting []func()
	idle    chan struct{} // closed when the goroutine ends; nil while there is none
	missed  int
}

// Add has f run behind all that were added before, unless Max of them wait. It
// does not block.
func (q *Queue) Add(f func()) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.waiting) >= Max {
		q.missed++
		return
	}
	q.waiting = append(q.waiting, f)
	if q.idle == nil {
		q.idle = make(chan struct{})
		go q.run()
	}
}

// run runs what waits, and ends when nothing does.
func (q *Queue) run() {
	for {
		batch, missed := q.take()
		if len(batch) == 0 {
			return
		}
		for _, f := range batch {
			f()
		}
		if missed > 0 && q.Missed != nil {
			q.Missed(missed)
		}
	}
}

// take takes all that waits. Where that is nothing the goroutine counts as ended.
func (q *Queue) take() (batch []func(), missed int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	batch, missed = q.waiting, q.missed
	q.waiting, q.missed = nil, 0
	if len(batch) == 0 {
		close(q.idle)
		q.idle = nil
	}
	return batch, missed
}

// Waiting is how many functions wait, that which runs and those taken with it left out.
func (q *Queue) Waiting() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.waiting)
}

// Busy is a channel that is closed when no function waits or runs any more; nil
// where none does.
func (q *Queue) Busy() <-chan struct{} {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.idle
}
