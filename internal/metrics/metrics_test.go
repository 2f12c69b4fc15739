package metrics

import (
	"math"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"pgregory.net/rapid"
)

// TestBucketKeepsValuesApart shows that a value and the middle of its bucket differ by less
// than one part in subBuckets.
func TestBucketKeepsValuesApart(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := rapid.Int64Range(0, math.MaxInt64).Draw(t, "v")
		got := value(bucket(v))
		if off := math.Abs(float64(got) - float64(v)); off > float64(v)/subBuckets {
			t.Fatalf("the middle %d of a bucket is too far from %d", got, v)
		}
	})
	if last := bucket(math.MaxInt64); last >= buckets {
		t.Fatalf("the last bucket is %d of %d", last, buckets)
	}
}

// TestSummaryQuantilesForget shows that two rotations remove a value from the quantiles.
func TestSummaryQuantilesForget(t *testing.T) {
	s := NewSummary(true)
	for i := int64(1); i <= 1000; i++ {
		s.Observe(i*Unit, 1)
	}
	f := s.Figures()
	for _, q := range []struct{ got, want float64 }{{f.P50, 500}, {f.P90, 900}, {f.P99, 990}, {f.P999, 999}} {
		if math.Abs(q.got-q.want) > q.want/subBuckets {
			t.Errorf("quantile %v, want about %v", q.got, q.want)
		}
	}
	if f.Count != 1000 || f.Min != 1 || f.Max != 1000 || f.Average != 500.5 {
		t.Errorf("figures %+v", f)
	}
	s.rotate()
	if s.Figures().QuantilesEmpty {
		t.Error("one rotation removed all values")
	}
	s.rotate()
	if f := s.Figures(); !f.QuantilesEmpty || f.Count != 1000 {
		t.Errorf("after two rotations: %+v", f)
	}
}

// TestObserveIsConcurrent shows that concurrent observations are all counted.
func TestObserveIsConcurrent(t *testing.T) {
	s := NewSummary(true)
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for i := range int64(1000) {
				s.Observe(i+int64(g), 2)
			}
		})
	}
	wg.Wait()
	if f := s.Figures(); f.Count != 16000 || f.Min != 0 || f.Max != 1.006 {
		t.Errorf("figures %+v", f)
	}
}

// TestMetricNames shows that mntr and Prometheus get the same values, each under the names
// that it expects.
func TestMetricNames(t *testing.T) {
	r := New()
	r.Counter("snap_count").Add(3)
	r.Gauge("avg_latency", func() float64 { return 0.25 })
	r.Gauge("znode_count", func() float64 { return 5 })
	r.Gauge("leader_uptime", math.NaN) // not exported
	r.Basic("fsynctime").Observe(2*Unit, 1)
	r.Advanced("readlatency").Observe(7*Unit, 1)
	queues := r.BasicKeyed("learner_handler_qp_size", 2)
	for _, key := range []string{"3", "1", "3", "2"} { // the last key exceeds the bound
		queues.Of(key).Observe(Unit, 1)
	}
	var names []string
	for _, s := range r.Samples() {
		names = append(names, s.Name)
	}
	want := strings.Fields(`avg_latency znode_count snap_count avg_fsynctime min_fsynctime max_fsynctime cnt_fsynctime sum_fsynctime
		avg_readlatency min_readlatency max_readlatency cnt_readlatency sum_readlatency
		p50_readlatency p95_readlatency p99_readlatency p999_readlatency
		avg_1_learner_handler_qp_size min_1_learner_handler_qp_size max_1_learner_handler_qp_size cnt_1_learner_handler_qp_size
		sum_1_learner_handler_qp_size avg_3_learner_handler_qp_size min_3_learner_handler_qp_size max_3_learner_handler_qp_size
		cnt_3_learner_handler_qp_size sum_3_learner_handler_qp_size`)
	if !slices.Equal(names, want) {
		t.Errorf("mntr names %v\nwant %v", names, want)
	}
	p := prometheus.NewPedanticRegistry()
	p.MustRegister(r)
	families, err := p.Gather()
	if err != nil {
		t.Fatal(err)
	}
	names = nil
	for _, f := range families {
		names = append(names, f.GetName())
	}
	if want := strings.Fields("avg_latency fsynctime learner_handler_qp_size readlatency snap_count znode_count"); !slices.Equal(names, want) {
		t.Errorf("prometheus names %v, want %v", names, want)
	}
}

// TestPrometheusLines shows the lines of mntr with the provider for Prometheus.
func TestPrometheusLines(t *testing.T) {
	r := New()
	r.Gauge("znode_count", func() float64 { return 5 })
	r.Counter("commit_count").Add(12_345_678)
	r.Basic("fsynctime")
	r.AdvancedKeyed("ack_latency", 3).Of("2").Observe(1500, 2)
	r.KeyedGauge("learner_lag_txns", func() map[string]float64 { return map[string]float64{"3": 2, "1": 0} })
	lines, err := r.PrometheusLines()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, l := range lines {
		got = append(got, l.Name+" "+l.Value)
	}
	want := []string{
		`ack_latency{key="2",quantile="0.5"} 1.504`, `ack_latency{key="2",quantile="0.9"} 1.504`, `ack_latency{key="2",quantile="0.99"} 1.504`,
		`ack_latency_count{key="2"} 2.0`, `ack_latency_sum{key="2"} 3.0`, "commit_count 1.2345678E7",
		`fsynctime{quantile="0.5"} NaN`, "fsynctime_count 0.0", "fsynctime_sum 0.0",
		`learner_lag_txns{key="1"} 0.0`, `learner_lag_txns{key="3"} 2.0`, "znode_count 5.0",
	}
	if !slices.Equal(got, want) {
		t.Errorf("lines\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// TestJavaDouble compares with the output of Java's Double.toString.
func TestJavaDouble(t *testing.T) {
	for v, want := range map[float64]string{0: "0.0", 5: "5.0", 0.1538: "0.1538", 9999999: "9999999.0", 1e7: "1.0E7", 1.5e-4: "1.5E-4",
		-2: "-2.0", 1.7976931348623157e308: "1.7976931348623157E308", 0.001: "0.001", math.Inf(1): "Infinity", math.Inf(-1): "-Infinity"} {
		if got := JavaDouble(v); got != want {
			t.Errorf("%v: %s, want %s", v, got, want)
		}
	}
}
