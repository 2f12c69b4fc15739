package terminal

import (
	"testing"
	"time"
	"unicode/utf8"
)

// TestBarText shows a bar at terminals of several widths: it is never wider, and leaves out the least important
// parts first.
func TestBarText(t *testing.T) {
	for columns, want := range map[int]string{
		100: "deleteall 50%  500 of 1000  10s left  [####################....................]",
		40:  "deleteall 50%  500 of 1000  10s left",
		30:  "deleteall 50%  500 of 1000",
		20:  "deleteall 50%",
		8:   "50%",
	} {
		got := barText("deleteall", 500, 1000, 10*time.Second, columns)
		if got != want || utf8.RuneCountInString(got) >= columns {
			t.Errorf("%d columns: %q, want %q", columns, got, want)
		}
	}
	if got := barText("load", 7, 0, time.Second, 80); got != "load 7" {
		t.Errorf("without a total: %q", got)
	}
	if got := barText("load", 70, 7, time.Second, 20); got != "load 100%  70 of 7" {
		t.Errorf("more than all: %q", got)
	}
}
