package history

import (
	"bytes"
	"math"
	"os"
	"runtime/metrics"
	"strconv"
	"time"

	"bellwether/internal/server"
)

// figure is one of the figures whose last hour is kept.
type figure struct {
	name, title, unit, about string
	// value returns the figure of a reading; before is the reading before it.
	value func(now, before reading) float64
}

// figures are in the order in which the page shows them.
var figures = []figure{
	{"requests", "Requests", "per second", "requests of clients that this server received", rate("packets_received")},
	{"latency", "Latency", "ms", "mean time from the arrival of a request to its answer", mean("readlatency", "updatelatency")},
	{"outstanding", "Outstanding requests", "", "requests that wait for their answer", gauge("outstanding_requests")},
	{"fsync", "Time of an fsync", "ms", "mean time that the disk takes to make the log durable", mean("fsynctime")},
	{"connections", "Connections", "", "open connections of clients", gauge("num_alive_connections")},
	{"sessions", "Sessions", "", "sessions of the whole ensemble, and local ones of this server", sum(gauge("global_sessions"), gauge("local_sessions"))},
	{"znodes", "Znodes", "", "znodes in the tree", gauge("znode_count")},
	{"watches", "Watches", "", "watches that clients of this server have registered", gauge("watch_count")},
	{"lag", "Lag of the slowest learner", "transactions", "transactions that the learner farthest behind has not yet made durable; only the leader knows", func(now, _ reading) float64 { return now.lag }},
	{"elections", "Elections", "per minute", "how often this server looked for a leader", perMinute(rate("looking_count"))},
	{"heap", "Heap", "MiB", "memory that live objects and not yet collected ones occupy", func(now, _ reading) float64 { return now.heap / mebi }},
	{"resident", "Resident memory", "MiB", "memory of the machine that the process occupies", func(now, _ reading) float64 { return now.resident / mebi }},
}

const mebi = 1 << 20

// reading holds what was read at one time.
type reading struct {
	at                  time.Time
	metrics             map[string]float64
	lag, heap, resident float64
}

// read reads all values from which the figures are computed.
func read(s *server.Server) reading {
	r := reading{at: time.Now(), metrics: map[string]float64{}, lag: lag(s), heap: heap(), resident: resident()}
	for _, m := range s.Metrics().Samples() {
		r.metrics[m.Name] = m.Value
	}
	return r
}

// metric returns a metric; NaN if there is none.
func (r reading) metric(name string) float64 {
	if v, ok := r.metrics[name]; ok {
		return v
	}
	return math.NaN()
}

func gauge(name string) func(now, _ reading) float64 {
	return func(now, _ reading) float64 { return now.metric(name) }
}

// rate returns by how much a counter grows in a second; NaN if the counter was reset.
func rate(name string) func(now, before reading) float64 {
	return func(now, before reading) float64 {
		grown, took := now.metric(name)-before.metric(name), now.at.Sub(before.at).Seconds()
		if took <= 0 || grown < 0 {
			return math.NaN()
		}
		return grown / took
	}
}

func perMinute(f func(now, before reading) float64) func(now, before reading) float64 {
	return func(now, before reading) float64 { return 60 * f(now, before) }
}

// mean returns the mean of the values that summaries observed since the reading before.
func mean(names ...string) func(now, before reading) float64 {
	return func(now, before reading) float64 {
		var sum, count float64
		for _, name := range names {
			sum += now.metric("sum_"+name) - before.metric("sum_"+name)
			count += now.metric("cnt_"+name) - before.metric("cnt_"+name)
		}
		if !(count > 0) || sum < 0 {
			return math.NaN()
		}
		return sum / count
	}
}

func sum(a, b func(now, before reading) float64) func(now, before reading) float64 {
	return func(now, before reading) float64 { return a(now, before) + b(now, before) }
}

// lag returns how many transactions the slowest learner of a leader is behind; NaN if this
// server does not lead.
func lag(s *server.Server) float64 {
	st := s.ReplicaStatus()
	learners := s.Learners()
	if st == nil || !st.Serving || s.Status().Mode != "leader" || len(learners) == 0 {
		return math.NaN()
	}
	behind := 0.0
	last := s.Tree().LastZxid()
	for _, l := range learners {
		if l.Synced && l.Acked.Epoch() == last.Epoch() {
			behind = max(behind, float64(last-l.Acked))
		}
	}
	return behind
}

// heap returns the bytes of objects on the heap.
func heap() float64 {
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(sample)
	if sample[0].Value.Kind() != metrics.KindUint64 {
		return math.NaN()
	}
	return float64(sample[0].Value.Uint64())
}

// resident returns the bytes of the machine's memory that the process occupies; NaN where
// the system does not say.
func resident() float64 {
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return math.NaN() // not Linux
	}
	fields := bytes.Fields(text)
	if len(fields) < 2 {
		return math.NaN()
	}
	pages, err := strconv.ParseInt(string(fields[1]), 10, 64)
	if err != nil {
		return math.NaN()
	}
	return float64(pages) * float64(os.Getpagesize())
}
