package scrape

import (
	"cmp"
	"math"
	"runtime/metrics"

	"github.com/prometheus/client_golang/prometheus"
)

// jvm stands in for those metrics of the Java virtual machine that dashboards and alert
// rules for ZooKeeper use, with the closest figures of Go's runtime. Metrics without a
// meaning in Go, such as classes and memory pools, are not there.
type jvm struct {
	memory                      int64
	used, committed, max        *prometheus.Desc
	threads, deadlocked, cycles *prometheus.Desc
}

func newJVM(memory int64) *jvm {
	desc := func(name string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc(name, name, labels, nil)
	}
	return &jvm{
		memory: memory,
		used:   desc("jvm_memory_bytes_used", "area"), committed: desc("jvm_memory_bytes_committed", "area"), max: desc("jvm_memory_bytes_max", "area"),
		threads: desc("jvm_threads_current"), deadlocked: desc("jvm_threads_deadlocked"), cycles: desc("jvm_gc_collection_seconds", "gc"),
	}
}

// Describe implements prometheus.Collector.
func (j *jvm) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{j.used, j.committed, j.max, j.threads, j.deadlocked, j.cycles} {
		ch <- d
	}
}

// The samples of Go's runtime that jvm reads.
const (
	heapUsed = iota
	heapFree
	heapIdle
	total
	returned
	threads
	collections
	collecting
)

// Collect implements prometheus.Collector.
func (j *jvm) Collect(ch chan<- prometheus.Metric) {
	s := []metrics.Sample{
		heapUsed: {Name: "/memory/classes/heap/objects:bytes"}, heapFree: {Name: "/memory/classes/heap/unused:bytes"},
		heapIdle: {Name: "/memory/classes/heap/free:bytes"},
		total:    {Name: "/memory/classes/total:bytes"}, returned: {Name: "/memory/classes/heap/released:bytes"},
		threads: {Name: "/sched/threads/total:threads"}, collections: {Name: "/gc/cycles/total:gc-cycles"},
		collecting: {Name: "/cpu/classes/gc/pause:cpu-seconds"},
	}
	metrics.Read(s)
	n := func(i int) float64 {
		switch s[i].Value.Kind() {
		case metrics.KindUint64:
			return float64(s[i].Value.Uint64())
		case metrics.KindFloat64:
			return s[i].Value.Float64()
		}
		return math.NaN()
	}
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	committed := n(heapUsed) + n(heapFree) + n(heapIdle)
	gauge(j.used, n(heapUsed), "heap")
	gauge(j.committed, committed, "heap")
	gauge(j.max, cmp.Or(float64(j.memory), -1), "heap")
	rest := n(total) - n(returned) - committed
	gauge(j.used, rest, "nonheap")
	gauge(j.committed, rest, "nonheap")
	gauge(j.max, -1, "nonheap") // Java's value for: there is no limit
	gauge(j.threads, n(threads))
	gauge(j.deadlocked, 0)
	ch <- prometheus.MustNewConstSummary(j.cycles, uint64(n(collections)), n(collecting), nil, "go")
}
