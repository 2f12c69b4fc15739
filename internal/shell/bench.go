package shell

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"bellwether/internal/bench"
)

func newBench(base maker) *cobra.Command {
	return Group(&cobra.Command{
		Use:   "bench",
		Short: "measure a server: reads, writes, elections",
		Long: "Measure any ZooKeeper server. A run creates its own znodes below /bellwether-bench-… and deletes them,\n" +
			"also if Ctrl-C or SIGTERM ends it; a second one ends it at once.\n" +
			"A latency is the duration of a whole call as the client sees it.",
	}, newBenchLoad(base, bench.Read), newBenchLoad(base, bench.Write), newBenchElection(base))
}

// benchCommand adds the flags of a measurement. run gets a path that no other run uses.
func benchCommand(base maker, c *cobra.Command, run func(ctx context.Context, a *app, root string) (bench.Report, error)) *cobra.Command {
	a := base()
	c.Args = argCount(0, 0)
	c.RunE = func(cmd *cobra.Command, _ []string) error {
		ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
		defer stop()
		context.AfterFunc(ctx, stop) // a second signal ends the process at once
		r, err := run(ctx, a, benchRoot())
		switch {
		case ctx.Err() != nil && err == nil:
			return &StatusError{exitInterrupted, errors.New("interrupted; the znodes of the run were deleted")}
		case ctx.Err() != nil:
			return &StatusError{exitInterrupted, fmt.Errorf("interrupted: %w", err)}
		case err != nil:
			return err
		}
		return a.printReport(r)
	}
	a.serverFlags(c)
	a.sessionFlags(c)
	a.outputFlag(c)
	addExitStatuses(c)
	return c
}

func newBenchLoad(base maker, kind bench.Kind) *cobra.Command {
	var l bench.Load
	c := &cobra.Command{
		Use:   string(kind),
		Short: map[bench.Kind]string{bench.Read: "getData over a number of znodes", bench.Write: "setData over a number of znodes"}[kind],
		Long: "Each worker sends its next request when the last one is answered, so the latency limits the\n" +
			"throughput.",
		Example: fmt.Sprintf("  bellwether bench %s --connections 64 --duration 30s", kind),
	}
	f := c.Flags()
	f.IntVar(&l.Connections, "connections", 1, "sessions, each with its own connection")
	f.IntVar(&l.Outstanding, "outstanding", 1, "requests in flight per connection")
	f.IntVar(&l.Keys, "keys", 1000, "number of znodes")
	f.IntVar(&l.Size, "size", 100, "bytes of data per znode")
	f.DurationVar(&l.Warmup, "warmup", 2*time.Second, "time before the measurement starts")
	f.DurationVar(&l.Duration, "duration", 10*time.Second, "duration of the measurement")
	return benchCommand(base, c, func(ctx context.Context, a *app, root string) (bench.Report, error) {
		l.Kind, l.Connect, l.Root = kind, a.connect, root
		if err := l.Check(); err != nil {
			return bench.Report{}, usagef("%w", err)
		}
		return l.Run(ctx)
	})
}

func newBenchElection(base maker) *cobra.Command {
	var e bench.Elections
	c := &cobra.Command{
		Use:   "election",
		Short: "measure how fast leadership passes between candidates",
		Long: "Every candidate has its own session, resigns as soon as it leads, and campaigns again. The report counts\n" +
			"handovers. A handover begins when a leader resigns and ends when the next one leads.",
		Example: "  bellwether bench election --candidates 50 --duration 30s",
	}
	f := c.Flags()
	f.IntVar(&e.Candidates, "candidates", 3, "number of candidates, 2 or more")
	f.DurationVar(&e.Warmup, "warmup", time.Second, "time before the measurement starts")
	f.DurationVar(&e.Duration, "duration", 10*time.Second, "duration of the measurement")
	return benchCommand(base, c, func(ctx context.Context, a *app, root string) (bench.Report, error) {
		e.Connect, e.Root = a.connect, root
		if err := e.Check(); err != nil {
			return bench.Report{}, usagef("%w", err)
		}
		return e.Run(ctx)
	})
}

// benchRoot returns a path that no other run uses.
func benchRoot() string { return fmt.Sprintf("/bellwether-bench-%x", time.Now().UnixNano()) }

// reportJSON is a report in a form for programs; latencies are in microseconds.
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
	return a.print(reportJSON{
		r.Kind, r.PerSecond(), r.Operations, r.Elapsed.Milliseconds(),
		r.Min.Microseconds(), r.P50.Microseconds(), r.P99.Microseconds(), r.P999.Microseconds(), r.Max.Microseconds(),
	}, fmt.Sprint(r))
}
