package inorder

import (
	"slices"
	"testing"
)

// TestQueueKeepsTheOrder: functions run one after the other; the queue has no
// goroutine when none waits, and has one again for the next.
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
			t.Fatal("it is busy with nothing")
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("the order is %v", got)
	}
}

// TestQueueIsBounded: behind a function that blocks Max others wait, Add does not
// block, and the number of those that were left out is told once.
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
		t.Errorf("%d ran, missed are %v", ran, missed)
	}
}
