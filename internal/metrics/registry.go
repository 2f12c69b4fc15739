package metrics

import (
	"iter"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
)

// Counter is a number that only grows, except for Reset. It fills a cache line, so that goroutines on
// two processors do not slow each other down by adding to different counters.
type Counter struct {
	v atomic.Int64
	_ [56]byte
}

// Add adds n, which must not be negative.
func (c *Counter) Add(n int64) {
	if recording {
		c.v.Add(n)
	}
}

// Value returns the current sum.
func (c *Counter) Value() int64 { return c.v.Load() }

// Reset sets the counter to 0, when an operator asks for that.
func (c *Counter) Reset() { c.v.Store(0) }

// Registry is a set of named metrics. All names must be registered before the first
// Samples; after that, all methods are safe for concurrent use.
type Registry struct {
	mu      sync.Mutex
	entries []entry
}

// entry is one metric; exactly one of the last five fields is set.
type entry struct {
	name    string
	desc    *prometheus.Desc
	counter *Counter
	gauge   func() float64
	gauges  func() map[string]float64
	summary *Summary
	keyed   *Keyed
}

// hasKey reports whether a metric has a value for each of several keys.
func (e *entry) hasKey() bool { return e.keyed != nil || e.gauges != nil }

// New returns an empty registry.
func New() *Registry { return &Registry{} }

// keyLabel is the label with the key, as in ZooKeeper.
const keyLabel = "key"

func (r *Registry) add(e entry) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if slices.ContainsFunc(r.entries, func(o entry) bool { return o.name == e.name }) {
		panic("metrics: " + e.name + " is registered twice")
	}
	var labels []string
	if e.hasKey() {
		labels = []string{keyLabel}
	}
	e.desc = prometheus.NewDesc(e.name, e.name, labels, nil)
	r.entries = append(r.entries, e)
}

// Counter registers a counter.
func (r *Registry) Counter(name string) *Counter {
	c := new(Counter)
	r.add(entry{name: name, counter: c})
	return c
}

// Gauge registers a gauge. value returns the current value; it must be safe for concurrent
// use and must not take long. A gauge whose value is NaN is not exported.
func (r *Registry) Gauge(name string, value func() float64) {
	r.add(entry{name: name, gauge: value})
}

// KeyedGauge registers gauges of one name, one for each key. values must be safe for
// concurrent use, must not take long, and must not return more keys than an operator expects.
func (r *Registry) KeyedGauge(name string, values func() map[string]float64) {
	r.add(entry{name: name, gauges: values})
}

// Basic registers a summary without quantiles.
func (r *Registry) Basic(name string) *Summary { return r.summary(name, false) }

// Advanced registers a summary with quantiles.
func (r *Registry) Advanced(name string) *Summary { return r.summary(name, true) }

func (r *Registry) summary(name string, quantiles bool) *Summary {
	s := NewSummary(quantiles)
	r.add(entry{name: name, summary: s})
	return s
}

// Rotate makes the quantiles forget the values that were recorded before the previous Rotate.
func (r *Registry) Rotate() {
	for _, e := range r.list() {
		switch {
		case e.summary != nil:
			e.summary.rotate()
		case e.keyed != nil:
			e.keyed.rotate()
		}
	}
}

// Reset clears all counters and summaries.
func (r *Registry) Reset() {
	for _, e := range r.list() {
		switch {
		case e.counter != nil:
			e.counter.Reset()
		case e.summary != nil:
			e.summary.Reset()
		case e.keyed != nil:
			e.keyed.reset()
		}
	}
}

// list returns a copy of the entries, in order of registration.
func (r *Registry) list() []entry {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.entries)
}

// Sample is one line of mntr. Integer means that the value is printed without a fraction.
type Sample struct {
	Name    string // without the prefix zk_
	Value   float64
	Integer bool
}

// Samples returns all metrics: gauges, counters, summaries, and keyed summaries, each
// in order of registration.
func (r *Registry) Samples() []Sample {
	var gauges, counters, summaries, keyed []Sample
	for _, e := range r.list() {
		switch {
		case e.gauge != nil:
			if v := e.gauge(); !math.IsNaN(v) {
				gauges = append(gauges, Sample{e.name, v, !fractional(e.name)})
			}
		case e.gauges != nil:
			for key, v := range sorted(e.gauges()) {
				keyed = append(keyed, Sample{key + "_" + e.name, v, true})
			}
		case e.counter != nil:
			counters = append(counters, Sample{e.name, float64(e.counter.Value()), true})
		case e.keyed != nil:
			keyed = append(keyed, e.keyed.samples(e.name)...)
		default:
			summaries = append(summaries, e.summary.samples(e.name)...)
		}
	}
	return slices.Concat(gauges, counters, summaries, keyed)
}

// sorted iterates over gauges in order of their keys.
func sorted(gauges map[string]float64) iter.Seq2[string, float64] {
	return func(yield func(string, float64) bool) {
		for _, key := range slices.Sorted(maps.Keys(gauges)) {
			if !yield(key, gauges[key]) {
				return
			}
		}
	}
}

// fractional reports whether a gauge is printed with a fraction.
func fractional(name string) bool {
	return strings.HasPrefix(name, "avg_") || strings.HasSuffix(name, "_probability")
}

// Describe implements prometheus.Collector.
func (r *Registry) Describe(ch chan<- *prometheus.Desc) {
	for _, e := range r.list() {
		ch <- e.desc
	}
}

// Collect implements prometheus.Collector.
func (r *Registry) Collect(ch chan<- prometheus.Metric) {
	for _, e := range r.list() {
		switch {
		case e.gauge != nil:
			if v := e.gauge(); !math.IsNaN(v) {
				ch <- prometheus.MustNewConstMetric(e.desc, prometheus.GaugeValue, v)
			}
		case e.gauges != nil:
			for key, v := range e.gauges() {
				ch <- prometheus.MustNewConstMetric(e.desc, prometheus.GaugeValue, v, key)
			}
		case e.counter != nil:
			ch <- prometheus.MustNewConstMetric(e.desc, prometheus.CounterValue, float64(e.counter.Value()))
		case e.keyed != nil:
			e.keyed.collect(e.desc, ch)
		default:
			ch <- e.summary.metric(e.desc)
		}
	}
}
