package shell

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"bellwether/internal/bench"
)

func newBench(a *app) *cobra.Command {
	return Group(&cobra.Command{
		Use:   "bench",
		Short: "measure a server: reads, writes",
		Long: "Measure any ZooKeeper server. A run makes its own znodes below /bellwether-bench-… and removes them.\n" +
			"Each request in flight waits for its answer before the next is sent; latencies are whole calls as the\n" +
			"client sees them.",
	}, newBenchLoad(a, bench.Read), newBenchLoad(a, bench.Write))
}

func newBenchLoad(a *app, kind bench.Kind) *cobra.Command {
	l := bench.Load{Kind: kind}
	c := &cobra.Command{
		Use:     string(kind),
		Short:   map[bench.Kind]string{bench.Read: "getData over a number of znodes", bench.Write: "setData over a number of znodes"}[kind],
		Example: fmt.Sprintf("  bellwether bench %s --connections 64 --duration 30s", kind),
		Args:    argCount(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			l.Connect, l.Root = a.connect, benchRoot()
			if err := l.Check(); err != nil {
				return usagef("%w", err)
			}
			r, err := l.Run(cmd.Context())
			if err != nil {
				return err
			}
			return a.printReport(r)
		},
	}
	f := c.Flags()
	f.IntVar(&l.Connections, "connections", 1, "sessions, each with a connection of its own")
	f.IntVar(&l.Outstanding, "outstanding", 1, "requests in flight on each connection")
	f.IntVar(&l.Keys, "keys", 1000, "znodes that take part")
	f.IntVar(&l.Size, "size", 100, "bytes of data in each")
	f.DurationVar(&l.Warmup, "warmup", 2*time.Second, "time that is not counted, first")
	f.DurationVar(&l.Duration, "duration", 10*time.Second, "time that is counted")
	return c
}

// benchRoot is a path that no other run uses.
func benchRoot() string { return fmt.Sprintf("/bellwether-bench-%x", time.Now().UnixNano()) }

// reportJSON is a report for programs; latencies are in microseconds.
type reportJSON struct {
	Kind       string  `json:"kind"`
	PerSecond  float64 `json:"per_second"`
	Operations int64   `json:"operations"`
	ElapsedMS  int64   `json:"elapsed_ms"`
	MinUS      int64   `json:"min_us"`
	P50US      int64   `json:"p50_us"`
	P99US      int64   `json:"p99_us"`
	P999US     int64   `json:"p999_us"`
	MaxUS      int64   `json:"max_us"`
}

func (a *app) printReport(r bench.Report) error {
	if !a.json() {
		_, err := fmt.Fprintln(a.out, r)
		return err
	}
	return printJSON(a.out, reportJSON{
		r.Kind, r.PerSecond(), r.Operations, r.Elapsed.Milliseconds(),
		r.Min.Microseconds(), r.P50.Microseconds(), r.P99.Microseconds(), r.P999.Microseconds(), r.Max.Microseconds(),
	})
}
