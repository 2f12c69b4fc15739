package interop

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"bellwether/interop/target"
	"bellwether/zk"
)

// BenchmarkObservers measures what observers cost: the CPU time of the leader and of all voters for a write, and the writes per second,
// with observers that learn from the leader and with observers that learn from followers. All servers share one machine, so the rate also falls with
// the work of the observers themselves.
func BenchmarkObservers(b *testing.B) {
	for _, masters := range []bool{false, true} {
		for _, n := range []int{0, 5, 10, 20} {
			b.Run(fmt.Sprintf("masters=%v/observers=%d", masters, n), func(b *testing.B) { benchObservers(b, n, masters) })
		}
	}
}

// observersAtOnce is how many writes the benchmark has in flight.
const observersAtOnce = 64

func benchObservers(b *testing.B, n int, masters bool) {
	o := target.EnsembleOptions{Observers: n, Extra: map[string]string{"initLimit": "50", "syncLimit": "20"}}
	if masters {
		o.Extra["observerMasterPort"] = "2889"
	}
	for i := range 3 + n {
		o.Kinds = append(o.Kinds, target.Bellwether)
		o.Places = append(o.Places, target.Place{Host: fmt.Sprintf("127.9.0.%d", i+1)})
	}
	e := target.EnsembleFor(b, o)
	leader, err := e.AwaitWhole(time.Minute)
	if err != nil {
		b.Fatal(err)
	}
	c, err := zk.Connect(b.Context(), e.Servers[leader].Addr, nil)
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close(b.Context())
	if _, _, err := c.Create(b.Context(), "/bench", nil); err != nil {
		b.Fatal(err)
	}
	var before [3]time.Duration
	for i := range before {
		before[i] = cpuOf(b, e.Servers[i])
	}
	b.ResetTimer()
	writeAtOnce(b, c)
	b.StopTimer()
	var voters time.Duration
	for i := range before {
		used := cpuOf(b, e.Servers[i]) - before[i]
		if voters += used; i == leader {
			b.ReportMetric(float64(used.Nanoseconds())/float64(b.N)/1000, "leader-cpu-µs/op")
		}
	}
	b.ReportMetric(float64(voters.Nanoseconds())/float64(b.N)/1000, "voters-cpu-µs/op")
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "writes/s")
}

// writeAtOnce carries out b.N writes.
func writeAtOnce(b *testing.B, c *zk.Client) {
	data := make([]byte, 100)
	var done sync.WaitGroup
	for w := range observersAtOnce {
		done.Go(func() {
			for i := w; i < b.N; i += observersAtOnce {
				if _, err := c.Set(context.Background(), "/bench", data, -1); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	done.Wait()
}

// clockTick is the unit of times in /proc/PID/stat.
const clockTick = 10 * time.Millisecond

// cpuOf returns the CPU time that a server has used.
func cpuOf(b *testing.B, s *target.Server) time.Duration {
	b.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", s.PID()))
	if err != nil {
		b.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), ") ")
	f := strings.Fields(rest)
	total := time.Duration(0)
	for _, field := range f[11:13] { // utime and stime
		n, err := strconv.Atoi(field)
		if err != nil {
			b.Fatal(err)
		}
		total += time.Duration(n) * clockTick
	}
	return total
}
