package bench

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"bellwether/zk"
)

// TestReportMergesLatencies shows that the quantiles are those of all workers together.
func TestReportMergesLatencies(t *testing.T) {
	fast, slow := newBook(0), newBook(0)
	for range 990 {
		fast.whole.record(100 * time.Microsecond)
	}
	for range 9 {
		slow.whole.record(10 * time.Millisecond)
	}
	slow.whole.record(59 * time.Minute)
	slow.whole.record(0)
	r := reportOf("read", 2*time.Second, mergeBooks([]*book{fast, slow}).whole)
	near := func(got, want time.Duration) bool { return got >= want*998/1000 && got <= want*1002/1000 }
	if r.Operations != 1001 || r.PerSecond() != 500.5 {
		t.Errorf("%d operations, %v a second", r.Operations, r.PerSecond())
	}
	if r.Min != time.Microsecond || !near(r.P50, 100*time.Microsecond) || !near(r.P999, 10*time.Millisecond) || !near(r.Max, 59*time.Minute) {
		t.Errorf("%+v", r)
	}
	if want := "read: 500/s, 1001 in 2s; latency min 1µs, p50 100µs, p99 100µs, p99.9 10"; !strings.HasPrefix(r.String(), want) {
		t.Errorf("%q", r)
	}
}

// TestLatencyOutOfBounds shows that a latency outside the bounds counts as the nearer bound, and that a
// histogram with these bounds takes no more memory than booksMax is chosen for.
func TestLatencyOutOfBounds(t *testing.T) {
	l := newLatencies()
	l.record(0)
	l.record(2 * latencyMax)
	r := reportOf("read", time.Second, l)
	if r.Operations != 2 || r.Min != latencyMin || r.Max < latencyMax || r.Max > latencyMax*1001/1000 {
		t.Errorf("%d latencies from %v to %v", r.Operations, r.Min, r.Max)
	}
	if bytes := l.h.ByteSize(); bytes > 300_000 {
		t.Errorf("a histogram takes %d bytes", bytes)
	}
}

// TestRunWithoutServer shows that a run without a connection fails and changes nothing.
func TestRunWithoutServer(t *testing.T) {
	refused := errors.New("refused")
	var calls atomic.Int32
	connect := func(context.Context) (*zk.Client, error) {
		calls.Add(1)
		return nil, refused
	}
	setting := Setting{Connect: connect, Duration: time.Second, Root: "/x"}
	load := Load{Setting: setting, Kind: Read, Connections: 4, Outstanding: 1, Keys: 1}
	if _, err := load.Run(t.Context()); !errors.Is(err, refused) {
		t.Error(err)
	}
	elections := Elections{Setting: setting, Candidates: 4}
	if _, err := elections.Run(t.Context()); !errors.Is(err, refused) {
		t.Error(err)
	}
	if n := calls.Load(); n < 2 || n > 8 {
		t.Errorf("%d connections were tried", n)
	}
}

// TestInFlight shows that inFlight calls f once for each index and stops at an error.
func TestInFlight(t *testing.T) {
	var sum atomic.Int64
	if err := inFlight(1000, 7, func(i int) error { sum.Add(int64(i)); return nil }); err != nil || sum.Load() != 499_500 {
		t.Errorf("sum %d, %v", sum.Load(), err)
	}
	broken := errors.New("broken")
	var after atomic.Int64
	err := inFlight(1_000_000, 1, func(i int) error {
		after.Add(1)
		if i == 10 {
			return broken
		}
		return nil
	})
	if !errors.Is(err, broken) || after.Load() != 11 {
		t.Errorf("%d calls, %v", after.Load(), err)
	}
}
