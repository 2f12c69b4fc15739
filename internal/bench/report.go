package bench

import (
	"fmt"
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// latencyMax is the longest latency that is told from longer ones.
const latencyMax = time.Minute

// histogramsMax bounds the memory of a run: a histogram takes a quarter of a
// megabyte, and beyond this number workers share them.
const histogramsMax = 64

// latencies is a histogram with three significant digits, from 1 µs; for any
// goroutine.
type latencies struct {
	mu sync.Mutex
	h  *hdrhistogram.Histogram
}

func newLatencies() *latencies {
	return &latencies{h: hdrhistogram.New(1, latencyMax.Microseconds(), 3)}
}

func (l *latencies) record(d time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.h.RecordValue(min(max(d, time.Microsecond), latencyMax).Microseconds())
}

// Report is what a run measured. Latencies are whole calls, seen by the client.
type Report struct {
	Kind       string
	Operations int64
	Elapsed    time.Duration
	Min, P50, P99, P999, Max,
	Mean time.Duration
}

// PerSecond is the throughput.
func (r Report) PerSecond() float64 { return float64(r.Operations) / r.Elapsed.Seconds() }

// String is the report as one line for people.
func (r Report) String() string {
	us := func(d time.Duration) string { return d.Round(time.Microsecond).String() }
	return fmt.Sprintf("%s: %.0f/s, %d in %v; latency min %s, p50 %s, p99 %s, p99.9 %s, max %s",
		r.Kind, r.PerSecond(), r.Operations, r.Elapsed.Round(time.Millisecond),
		us(r.Min), us(r.P50), us(r.P99), us(r.P999), us(r.Max))
}

func reportOf(kind string, elapsed time.Duration, l *latencies) Report {
	at := func(q float64) time.Duration { return time.Duration(l.h.ValueAtQuantile(q)) * time.Microsecond }
	return Report{
		Kind: kind, Operations: l.h.TotalCount(), Elapsed: elapsed,
		Min: time.Duration(l.h.Min()) * time.Microsecond, Max: time.Duration(l.h.Max()) * time.Microsecond,
		P50: at(50), P99: at(99), P999: at(99.9),
		Mean: time.Duration(l.h.Mean() * float64(time.Microsecond)),
	}
}

// merge adds several up.
func merge(all []*latencies) *latencies {
	sum := newLatencies()
	for _, l := range all {
		sum.h.Merge(l.h)
	}
	return sum
}
