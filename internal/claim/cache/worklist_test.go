package cache

import (
	"fmt"
	"strconv"
	"testing"
)

// TestWorklistStaysBounded checks that a path that is added and dropped repeatedly does not make the order
// grow, and that the other reads stay in order.
func TestWorklistStaysBounded(t *testing.T) {
	var w worklist
	for i := range 100 {
		w.add(strconv.Itoa(i), readData)
	}
	for range 100 * orderSlack {
		w.add("again", readData)
		w.drop("again")
	}
	if len(w.order) > 2*len(w.flags)+orderSlack+1 {
		t.Errorf("%d paths for %d reads", len(w.order), len(w.flags))
	}
	for i, d := range w.take(1000) {
		if d.path != strconv.Itoa(i) {
			t.Fatalf("read %d is %s", i, d.path)
		}
	}
}

// TestWorklistCountsWhatIsRequired checks that dropping a read changes the number of required ones only if it is required, and that sorting leaves
// each path once, parents first.
func TestWorklistCountsWhatIsRequired(t *testing.T) {
	var w worklist
	w.add("/b", readData)
	w.add("/a/x", readData|required)
	w.add("/a", readData)
	w.add("/a", required)
	if w.required != 2 {
		t.Fatalf("%d are required", w.required)
	}
	if w.drop("/b"); w.required != 2 {
		t.Errorf("%d are required after another one was dropped", w.required)
	}
	if w.drop("/missing"); w.required != 2 {
		t.Errorf("%d are required after none was dropped", w.required)
	}
	if w.drop("/a/x"); w.required != 1 {
		t.Errorf("%d are required after one of two was dropped", w.required)
	}
	w.add("/a/x", readData)
	w.sort()
	if got := fmt.Sprint(w.order); got != "[/a /a/x /b]" {
		t.Errorf("in order %s", got)
	}
}
