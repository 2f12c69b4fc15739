package metrics

import (
	"math"
	"math/bits"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
)

// Summary holds count, sum, minimum, maximum and optionally quantiles of observed values.
// Values are observed in thousandths of the summary's unit (ms, transactions), so that
// times below a millisecond do not all become zero.
type Summary struct {
	count atomic.Int64
	sum   atomic.Int64 // in thousandths
	least atomic.Int64 // in thousandths; MaxInt64: no value yet
	most  atomic.Int64 // in thousandths

	// windows are two histograms; new values go to windows[active]. nil in a summary
	// without quantiles.
	windows *[2]histogram
	active  atomic.Int32
}

// Unit is the number that stands for one unit in Observe.
const Unit = 1000

// NewSummary returns a summary that is not in a registry.
func NewSummary(quantiles bool) *Summary {
	s := new(Summary)
	if quantiles {
		s.windows = new([2]histogram)
	}
	s.Reset()
	return s
}

// Observe adds n equal values of v thousandths of the unit. A negative v counts as 0.
func (s *Summary) Observe(v, n int64) {
	if n <= 0 || !recording {
		return
	}
	v = max(v, 0)
	s.count.Add(n)
	s.sum.Add(v * n)
	for old := s.least.Load(); v < old && !s.least.CompareAndSwap(old, v); {
		old = s.least.Load()
	}
	for old := s.most.Load(); v > old && !s.most.CompareAndSwap(old, v); {
		old = s.most.Load()
	}
	if s.windows != nil {
		s.windows[s.active.Load()].add(v, n)
	}
}

// Reset removes all values.
func (s *Summary) Reset() {
	s.count.Store(0)
	s.sum.Store(0)
	s.least.Store(math.MaxInt64)
	s.most.Store(0)
	if s.windows != nil {
		s.windows[0].clear()
		s.windows[1].clear()
	}
}

// Figures are the values of a summary, in its unit.
type Figures struct {
	Count          int64
	Sum, Min, Max  float64
	Average        float64
	P50, P90, P95  float64
	P99, P999      float64
	WithQuantiles  bool
	QuantilesEmpty bool // no value was observed in the last minutes
}

// Figures returns the current values.
func (s *Summary) Figures() Figures {
	f := Together(s)
	if f.WithQuantiles = s.windows != nil; f.WithQuantiles {
		h := merge(&s.windows[0], &s.windows[1])
		f.QuantilesEmpty = h.total == 0
		f.P50, f.P90, f.P95 = h.quantile(0.5), h.quantile(0.9), h.quantile(0.95)
		f.P99, f.P999 = h.quantile(0.99), h.quantile(0.999)
	}
	return f
}

// Together returns the figures of all values that the summaries have observed, without quantiles.
func Together(all ...*Summary) Figures {
	var f Figures
	least, most, sum := int64(math.MaxInt64), int64(0), int64(0)
	for _, s := range all {
		f.Count += s.count.Load()
		sum += s.sum.Load()
		least, most = min(least, s.least.Load()), max(most, s.most.Load())
	}
	if f.Sum = float64(sum) / Unit; f.Count > 0 {
		f.Min, f.Max = float64(least)/Unit, float64(most)/Unit
		f.Average = f.Sum / float64(f.Count)
	}
	return f
}

// rotate clears the older window and makes it the active one.
func (s *Summary) rotate() {
	if s.windows != nil {
		older := 1 - s.active.Load()
		s.windows[older].clear()
		s.active.Store(older)
	}
}

func (s *Summary) samples(name string) []Sample {
	f := s.Figures()
	out := []Sample{
		{"avg_" + name, f.Average, false},
		{"min_" + name, math.Round(f.Min), true},
		{"max_" + name, math.Round(f.Max), true},
		{"cnt_" + name, float64(f.Count), true},
		{"sum_" + name, math.Round(f.Sum), true},
	}
	if f.WithQuantiles {
		out = append(out,
			Sample{"p50_" + name, math.Round(f.P50), true},
			Sample{"p95_" + name, math.Round(f.P95), true},
			Sample{"p99_" + name, math.Round(f.P99), true},
			Sample{"p999_" + name, math.Round(f.P999), true})
	}
	return out
}

func (s *Summary) metric(d *prometheus.Desc, labels ...string) prometheus.Metric {
	f := s.Figures()
	q := map[float64]float64{0.5: f.P50}
	if f.WithQuantiles {
		q[0.9], q[0.99] = f.P90, f.P99
	} else {
		// Without quantiles, the average stands for the median, which alert rules use.
		q[0.5] = f.Average
	}
	if f.Count == 0 || f.WithQuantiles && f.QuantilesEmpty {
		for k := range q {
			q[k] = math.NaN()
		}
	}
	return prometheus.MustNewConstSummary(d, uint64(f.Count), f.Sum, q, labels...)
}

// Each power of two has subBuckets buckets of equal width, so the relative error of a
// quantile is less than 1/subBuckets.
const (
	subBits    = 4
	subBuckets = 1 << subBits
	buckets    = (64 - subBits) * subBuckets
)

type histogram struct{ cells [buckets]atomic.Int64 }

// bucket returns the index of the bucket of a value >= 0.
func bucket(v int64) int {
	if v < subBuckets {
		return int(v)
	}
	shift := bits.Len64(uint64(v)) - subBits - 1
	return shift*subBuckets + int(v>>shift)
}

// value returns the middle of a bucket.
func value(cell int) int64 {
	if cell < 2*subBuckets {
		return int64(cell)
	}
	shift := cell/subBuckets - 1
	low := int64(cell-shift*subBuckets) << shift
	return low + 1<<shift/2
}

func (h *histogram) add(v, n int64) { h.cells[bucket(v)].Add(n) }

func (h *histogram) clear() {
	for i := range h.cells {
		h.cells[i].Store(0)
	}
}

// counts is the sum of several histograms.
type counts struct {
	cells [buckets]int64
	total int64
}

func merge(hs ...*histogram) *counts {
	c := new(counts)
	for _, h := range hs {
		for i := range h.cells {
			n := h.cells[i].Load()
			c.cells[i] += n
			c.total += n
		}
	}
	return c
}

// quantile returns the value, in units, that the fraction q of all values does not exceed.
func (c *counts) quantile(q float64) float64 {
	if c.total == 0 {
		return 0
	}
	want := int64(math.Ceil(q * float64(c.total)))
	for i, n := range c.cells {
		if want -= n; want <= 0 {
			return float64(value(i)) / Unit
		}
	}
	return 0
}
