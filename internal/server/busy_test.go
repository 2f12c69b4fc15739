package server

import (
	"log/slog"
	"strings"
	"testing"
)

// TestBusyLoopIsReportedMeanwhile: a batch of the loop that takes long is reported while it runs: once in the log, and in
// the status. When it has ended, the status has nothing of it.
func TestBusyLoopIsReportedMeanwhile(t *testing.T) {
	book := new(logBook)
	r := start(t, Options{Log: slog.New(slog.NewTextHandler(book, nil))})
	const line = "busy with one batch"
	for n := 1; n <= 2; n++ {
		if busy := r.Status().Busy; busy > 0 {
			t.Errorf("busy for %v before the batch", busy)
		}
		thaw := r.Freeze()
		eventually(t, "the long batch is reported", func() bool { return strings.Count(book.String(), line) == n })
		first := r.Status().Busy
		eventually(t, "the status says that it runs on", func() bool { return first > busyMax && r.Status().Busy > first })
		r.busy.check()
		thaw()
		eventually(t, "the batch has ended", func() bool { return r.Status().Busy == 0 })
		if got := strings.Count(book.String(), line); got != n {
			t.Errorf("%d lines for %d batches", got, n)
		}
	}
	if n := r.busy.count.Value(); n != 2 {
		t.Errorf("%d long batches are counted", n)
	}
}
