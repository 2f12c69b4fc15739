package shell

import (
	"context"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"bellwether/internal/bench"
)

const benchLong = `Measure any server that speaks ZooKeeper's protocol, or what this machine allows without one.

A run works below one znode of its own, /bellwether-bench-…, and deletes it at the end, also after an
error, SIGINT, SIGTERM or SIGHUP. If it cannot, it says what it has left. A second signal leaves the
znodes. It refuses servers that have other clients, because it would slow them down, unless --yes is
given. restart, failover and memory start their own servers, because they kill them or read their memory.

A latency is the duration of a whole call as the client sees it. With --results, a run also writes its
settings and figures as JSON, all latencies as HdrHistogram's log, and a chart as SVG. If the servers run
on this machine, on Linux, at a loopback address, their processor time is shown beside that of the client.`

func newBench(base maker) *cobra.Command {
	return Group(&cobra.Command{
		Use:   "bench",
		Short: "measure servers: requests, watches, sessions, elections, failures",
		Long:  benchLong,
	},
		newBenchLoad(base, bench.Read, "getData over a number of znodes"),
		newBenchLoad(base, bench.Write, "setData over a number of znodes"),
		newBenchLoad(base, bench.Create, "create of persistent znodes, which are kept until the end"),
		newBenchLoad(base, bench.Mixed, "getData and setData over a number of znodes"),
		newBenchLoad(base, bench.Ephemerals, "create and delete of sequential ephemeral znodes, as in elections"),
		newBenchLatency(base), newBenchFanout(base), newBenchWatches(base), newBenchSessions(base), newBenchElection(base),
		newBenchRestart(base), newBenchFailover(base), newBenchMemory(base), newBenchCeiling(base), newBenchEcho(),
	)
}

// measurement is what package bench measures.
type measurement interface {
	Check() error
	Run(ctx context.Context) ([]*bench.Report, error)
}

// spanFlags adds the flags for the time of a measurement.
func spanFlags(f *pflag.FlagSet, s *bench.Setting) {
	f.DurationVar(&s.Warmup, "warmup", 2*time.Second, "time before the measurement starts")
	f.DurationVar(&s.Duration, "duration", 10*time.Second, "duration of the measurement")
}

func newBenchLoad(base maker, kind bench.Kind, short string) *cobra.Command {
	l := bench.Load{Kind: kind}
	c := &cobra.Command{
		Use:   string(kind),
		Short: short,
		Long: "Measure " + short + `.

Without --rate each worker sends its next request when the last one is answered, so the latency limits the
throughput. With --rate, operations are due at fixed times over all connections. A latency then counts from
the time at which an operation was due, so it includes the time for which it waited because earlier ones
were slow.`,
		Example: fmt.Sprintf("  bellwether bench %s --connections 64 --duration 30s\n  bellwether bench %s --connections 16 --rate 5000 --results results", kind, kind),
	}
	f := c.Flags()
	f.IntVar(&l.Connections, "connections", 1, "sessions, each with its own connection")
	f.IntVar(&l.Outstanding, "outstanding", 1, "requests in flight per connection")
	f.IntVar(&l.Size, "size", 100, "bytes of data per znode")
	f.IntVar(&l.Rate, "rate", 0, "operations that are due each second; 0: as fast as answers arrive")
	f.IntVar(&l.Operations, "operations", 0, "end after this number of operations instead of --duration; 0: no limit")
	l.Keys = 1
	if kind != bench.Create && kind != bench.Ephemerals {
		f.IntVar(&l.Keys, "keys", 1000, "number of znodes")
	}
	if kind == bench.Mixed {
		f.IntVar(&l.Reads, "reads", 90, "how many of 100 operations are reads")
	}
	library := false
	f.BoolVar(&library, "library", false, "send the requests with the client library, which costs more processor time; logins by SASL need it")
	spanFlags(f, &l.Setting)
	return benchServers(base, c, &l.Setting, func(*app) measurement {
		if library {
			l.Raw = nil
		}
		return l
	})
}

// raw returns how to connect without the client library; nil: that is not possible with this login.
func (a *app) raw() (*bench.Raw, error) {
	if a.access.LogsIn() {
		return nil, nil
	}
	o, err := a.options()
	if err != nil {
		return nil, err
	}
	hosts, chroot, _ := strings.Cut(a.servers, "/")
	r := &bench.Raw{Timeout: a.session, Auth: o.Auth, Dial: func(ctx context.Context, server string) (net.Conn, error) {
		ctx, cancel := context.WithTimeout(ctx, a.timeout)
		defer cancel()
		return a.access.Dial(ctx, server)
	}}
	if chroot = strings.TrimSuffix(chroot, "/"); chroot != "" {
		r.Chroot = "/" + chroot
	}
	for host := range strings.SplitSeq(hosts, ",") {
		r.Servers = append(r.Servers, withPort(strings.TrimSpace(host)))
	}
	return r, nil
}

func newBenchLatency(base maker) *cobra.Command {
	var l bench.Latency
	c := &cobra.Command{
		Use:     "latency",
		Short:   "getData, then setData, one request at a time",
		Long:    "Measure getData and then setData with one session that sends one request at a time, each for --duration.",
		Example: "  bellwether bench latency",
	}
	f := c.Flags()
	f.IntVar(&l.Keys, "keys", 1000, "number of znodes")
	f.IntVar(&l.Size, "size", 100, "bytes of data per znode")
	spanFlags(f, &l.Setting)
	return benchServers(base, c, &l.Setting, func(*app) measurement { return l })
}

func newBenchFanout(base maker) *cobra.Command {
	var w bench.Fanout
	c := &cobra.Command{
		Use:   "fanout",
		Short: "events of one znode for many watchers",
		Long: "Change one znode again and again, which every watcher watches with its own session. An operation is an event,\n" +
			"and its latency is the time from the start of the change until a watcher has the event.",
		Example: "  bellwether bench fanout --watchers 500",
	}
	c.Flags().IntVar(&w.Watchers, "watchers", 100, "watchers, each with its own session")
	c.Flags().IntVar(&w.Size, "size", 100, "bytes of data of the znode")
	c.Flags().IntVar(&w.Rate, "rate", 0, "changes that are due each second; 0: the next one when all events have arrived")
	spanFlags(c.Flags(), &w.Setting)
	return benchServers(base, c, &w.Setting, func(*app) measurement { return w })
}

func newBenchWatches(base maker) *cobra.Command {
	var w bench.Watches
	c := &cobra.Command{
		Use:   "watches",
		Short: "many watches, each on its own znode",
		Long: "Set many watches, each on its own znode, and then change each znode once. The first report counts watches that\n" +
			"were set, the second one events; the latency of an event is the time from the start of the change.",
		Example: "  bellwether bench watches --watches 10000 --connections 4",
	}
	c.Flags().IntVar(&w.Watches, "watches", 10_000, "number of watches and znodes")
	c.Flags().IntVar(&w.Connections, "connections", 1, "sessions that share the watches")
	c.Flags().IntVar(&w.Size, "size", 100, "bytes of data per znode")
	return benchServers(base, c, &w.Setting, func(*app) measurement { return w })
}

func newBenchSessions(base maker) *cobra.Command {
	var s bench.Sessions
	c := &cobra.Command{
		Use:   "sessions",
		Short: "many sessions: opened, idle, expired together",
		Long: "Open many sessions, keep them idle for --duration, and end their clients without closing the sessions. The last\n" +
			"report shows after how long the ephemeral znode of each session is gone; the servers wait for the\n" +
			"--session-timeout first.",
		Example: "  bellwether bench sessions --sessions 2000 --session-timeout 6s",
	}
	c.Flags().IntVar(&s.Sessions, "sessions", 100, "number of sessions")
	c.Flags().IntVar(&s.Rate, "rate", 0, "sessions whose opening is due each second; 0: as fast as they open")
	c.Flags().DurationVar(&s.Duration, "duration", 10*time.Second, "time for which the sessions are idle")
	return benchServers(base, c, &s.Setting, func(*app) measurement { return s })
}

func newBenchElection(base maker) *cobra.Command {
	var e bench.Elections
	c := &cobra.Command{
		Use:   "election",
		Short: "how fast leadership passes between candidates",
		Long: "Every candidate has its own session, resigns as soon as it leads, and campaigns again. The report counts\n" +
			"handovers. A handover begins when a leader resigns and ends when the next one leads.",
		Example: "  bellwether bench election --candidates 50 --duration 30s",
	}
	c.Flags().IntVar(&e.Candidates, "candidates", 3, "number of candidates, 2 or more")
	c.Flags().DurationVar(&e.Warmup, "warmup", time.Second, "time before the measurement starts")
	c.Flags().DurationVar(&e.Duration, "duration", 10*time.Second, "duration of the measurement")
	return benchServers(base, c, &e.Setting, func(*app) measurement { return e })
}
