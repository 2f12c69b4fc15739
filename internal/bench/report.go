package bench

import (
	"fmt"
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// latencyMax is the longest latency that is recorded exactly; longer ones count as this.
const latencyMax = time.Minute

// histogramsMax bounds the number of histograms, and so the memory of a run: one takes a
// quarter of a megabyte. More workers share them.
const histogramsMax = 64

// latencies is a histogram with three significant digits, from 1 µs. It is safe for
// concurrent use.
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

// Report is the result of a run. A latency is the duration of a whole call as the client
// sees it.
type Report struct {
	Kind       string
	Operations int64
	Elapsed    time.Duration
	Min, P50, P99, P999, Max,
	Mean time.Duration
}

// PerSecond returns the throughput.
func (r Report) PerSecond() float64 { return float64(r.Operations) / r.Elapsed.Seconds() }

// String returns the report in one line.
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

// merge returns the sum of several histograms.
func merge(all []*latencies) *latencies {
	sum := newLatencies()
	for _, l := range all {
		sum.h.Merge(l.h)
	}
	return sum
}
