package inorder

import (
	"slices"
	"testing"
)

// TestQueueKeepsTheOrder shows that functions run one after the other, that the queue has
// no goroutine when none waits, and that it starts one for the next function.
func TestQueueKeepsTheOrder(t *testing.T) {
	var q Queue
	var got, want []int
	for range 3 {
		for range 100 {
			n := len(want)
			want = append(want, n)
			q.Add(func() { got = append(got, n) })
		}
		if busy := q.Busy(); busy != nil {
			<-busy
		}
		if q.Busy() != nil {
			t.Fatal("the queue is busy without a function")
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("order %v", got)
	}
}

// TestQueueIsBounded shows that Max functions wait behind one that blocks, that Add does
// not block, and that the number of dropped functions is reported once.
func TestQueueIsBounded(t *testing.T) {
	var missed []int
	q := Queue{Missed: func(n int) { missed = append(missed, n) }}
	begun, block, ran := make(chan bool), make(chan bool), 0
	q.Add(func() { begun <- true; <-block })
	<-begun
	for range Max + 7 {
		q.Add(func() { ran++ })
	}
	busy := q.Busy()
	close(block)
	<-busy
	if ran != Max || !slices.Equal(missed, []int{7}) {
		t.Errorf("%d functions ran, Missed got %v", ran, missed)
	}
}
