package bench

import (
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Latencies outside these bounds count as the nearer bound.
const (
	latencyMin = time.Microsecond
	latencyMax = time.Hour
)

// latencies is a histogram of nanoseconds with three significant digits. It is safe for
// concurrent use.
type latencies struct {
	mu sync.Mutex
	h  *hdrhistogram.Histogram
}

func newLatencies() *latencies {
	return &latencies{h: hdrhistogram.New(1, latencyMax.Nanoseconds(), 3)}
}

func (l *latencies) record(d time.Duration) { l.recordEach(d, 1) }

// recordEach records the latency of n operations.
func (l *latencies) recordEach(d time.Duration, n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	_ = l.h.RecordValues(min(max(d, latencyMin), latencyMax).Nanoseconds(), int64(n)) // never out of range
}

// at returns a percentile.
func (l *latencies) at(percent float64) time.Duration {
	return time.Duration(l.h.ValueAtQuantile(percent))
}

// booksMax bounds the number of books, and so the memory of a run: a histogram takes a
// quarter of a megabyte. More workers share them.
const booksMax = 32

// book records the latencies of operations and, where an operation has several requests,
// those of its parts.
type book struct {
	whole *latencies
	parts []*latencies
}

func newBook(parts int) *book {
	b := &book{whole: newLatencies()}
	for range parts {
		b.parts = append(b.parts, newLatencies())
	}
	return b
}

// mergeBooks returns the sum of books with the same parts.
func mergeBooks(all []*book) *book {
	sum := newBook(len(all[0].parts))
	for _, b := range all {
		sum.whole.h.Merge(b.whole.h)
		for i, p := range b.parts {
			sum.parts[i].h.Merge(p.h)
		}
	}
	return sum
}

// Figure is a result that is not a latency.
type Figure struct {
	Name  string  `json:"name"` // with the unit, as in "bytes per znode"
	Value float64 `json:"value"`
}

// Report is the result of a measurement. A latency is the duration of a whole call as the
// client sees it, if Run does not say something else.
type Report struct {
	Kind       string
	Operations int64
	Elapsed    time.Duration
	Warmup     time.Duration // time that was not measured before; 0: none
	Min, P50, P99, P999, Max,
	Mean time.Duration
	// Rate is the number of operations that were due each second; 0: a closed loop. Unsent is
	// how many operations were due and not sent, because the servers or the client were too
	// slow. TimerLate is the 99th percentile of how late the system woke workers.
	Rate      int
	Unsent    int64
	TimerLate time.Duration
	// ClientCPU is the processor time, user and system, of this process during the measurement.
	// ServerCPU is that of the servers on this machine, if they are known.
	ClientCPU, ServerCPU time.Duration
	ServerKnown          bool
	// EachCPU is the processor time of each server, in the order of the setting, if they are known. ServerMemory is the
	// resident memory of all of them at the end, in bytes; 0: not known.
	EachCPU      []time.Duration
	ServerMemory int64
	Figures      []Figure

	took *latencies
}

// lasted says for how long operations were due. With a rate, the last one may have ended before. That does not make
// the throughput higher.
func (r *Report) lasted(d time.Duration) {
	if r.Rate > 0 {
		r.Elapsed = max(r.Elapsed, d)
	}
}

// PerSecond returns the throughput.
func (r *Report) PerSecond() float64 {
	if r.Elapsed <= 0 {
		return 0
	}
	return float64(r.Operations) / r.Elapsed.Seconds()
}

// PerOperation returns a share of d for one operation.
func (r *Report) PerOperation(d time.Duration) time.Duration {
	return d / time.Duration(max(r.Operations, 1))
}

// String returns the report in one line.
func (r *Report) String() string {
	var all []string
	if r.took != nil {
		all = append(all, r.throughput(), r.latency())
	}
	for _, f := range r.Figures {
		all = append(all, strconv.FormatFloat(f.Value, 'f', -1, 64)+" "+f.Name)
	}
	return r.Kind + ": " + strings.Join(append(all, r.circumstances()...), "; ")
}

// throughput says how many operations were measured in what time.
func (r *Report) throughput() string {
	if r.Elapsed == 0 {
		return fmt.Sprintf("rounds: %d", r.Operations)
	}
	return fmt.Sprintf("%.0f/s, %d in %v", r.PerSecond(), r.Operations, r.Elapsed.Round(time.Millisecond))
}

// latency says how the latencies are distributed.
func (r *Report) latency() string {
	if r.took.h.TotalCount() == 0 {
		return "no latency, because nothing was measured"
	}
	us := func(d time.Duration) string { return d.Round(time.Microsecond).String() }
	return fmt.Sprintf("latency min %s, p50 %s, p99 %s, p99.9 %s, max %s", us(r.Min), us(r.P50), us(r.P99), us(r.P999), us(r.Max))
}

// circumstances says in words how the report came about.
func (r *Report) circumstances() (all []string) {
	short := func(d time.Duration) string { return d.Round(100 * time.Nanosecond).String() }
	if r.Warmup > 0 {
		all = append(all, fmt.Sprintf("after %v of warm-up", r.Warmup))
	}
	if r.Rate > 0 {
		all = append(all, fmt.Sprintf("%d/s were due, timers late by p99 %s", r.Rate, short(r.TimerLate)))
	}
	if r.Unsent > 0 {
		all = append(all, fmt.Sprintf("%d were due and not sent in time: the latencies are too small", r.Unsent))
	}
	if r.ClientCPU > 0 {
		cpu := "processor time per operation: client " + short(r.PerOperation(r.ClientCPU))
		if r.ServerKnown {
			cpu += ", servers " + short(r.PerOperation(r.ServerCPU))
		}
		all = append(all, cpu)
	}
	return all
}

func reportOf(kind string, elapsed time.Duration, l *latencies) *Report {
	return &Report{
		Kind: kind, Operations: l.h.TotalCount(), Elapsed: elapsed,
		Min: time.Duration(l.h.Min()), Max: time.Duration(l.h.Max()),
		P50: l.at(50), P99: l.at(99), P999: l.at(99.9),
		Mean: time.Duration(l.h.Mean()),
		took: l,
	}
}
