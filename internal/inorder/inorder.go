// Package inorder runs functions of a caller, such as calls of its Logger, in order and on
// a goroutine of their own. A function that blocks delays only the functions
// behind it.
package inorder

import "sync"

// Max is the largest number of waiting functions; Add drops further ones.
const Max = 1024

// Queue runs functions one after the other, in the order in which they were added.
// It has a goroutine only while there are functions to run. The zero value is ready for
// use and safe for concurrent use.
type Queue struct {
	// Missed is called between two functions with the number of functions dropped since its
	// last call. nil: dropped functions are not reported.
	Missed func(n int)

	mu      sync.Mutex
	waiting []func()
	idle    chan struct{} // closed when the goroutine ends; nil while there is none
	missed  int
}

// Add makes f run after all functions that were added before. It drops f if Max
// functions wait. Add does not block.
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

// run runs the waiting functions and returns when there are none.
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

// take removes and returns all waiting functions. If there are none, the goroutine counts
// as ended.
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

// Waiting returns the number of waiting functions, without those that run has already taken.
func (q *Queue) Waiting() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.waiting)
}

// Busy returns a channel that is closed when no function waits or runs; nil if none does
// now.
func (q *Queue) Busy() <-chan struct{} {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.idle
}
