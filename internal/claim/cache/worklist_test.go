package cache

import (
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
