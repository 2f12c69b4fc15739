package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strconv"
	"time"

	"bellwether/internal/bench"
	"bellwether/zk"
)

// row is one work that is measured. Every system that measures it returns the same figures.
type row struct {
	name  string // for ROWS
	title string
	note  string // what etcd does instead; empty: etcd has nothing that corresponds
	zk    func(ctx context.Context, r *run, system string) ([]figure, error)
	etcd  func(ctx context.Context, r *run) ([]figure, error)
	curve string // the curve of which this is a point; empty: of none
	alone bool   // only Bellwether is measured, so that there is no ratio: in the first pair only
}

// The size of the loads.
const (
	connections = 32
	outstanding = 16
	keys        = 1000
	size        = 100 // bytes of data per znode
	growth      = 400_000
	watchers    = 500
	watches     = 10_000
	million     = 1_000_000
	candidates  = 1000
	sessions    = 2000
	sessionsFor = 6 * time.Second // session timeout of the sessions that expire together
)

// rows are the rows of the table.
var rows = []row{
	loadRow("read", "getData, 100 bytes, 32 connections × 16, standalone", "serializable gets, which one server answers by itself", 1, load(bench.Read, connections, outstanding)),
	loadRow("read32", "getData, 100 bytes, 32 connections × 1, standalone", "serializable gets", 1, load(bench.Read, connections, 1)),
	loadRow("write", "setData, 100 bytes, 32 connections × 16, standalone", "puts", 1, load(bench.Write, connections, outstanding)),
	loadRow("create", "create, the tree grows by 400,000 znodes, 32 × 16, standalone", "puts of new keys", 1, growing()),
	loadRow("write3", "setData, 100 bytes, 32 × 16, three servers", "puts", 3, load(bench.Write, connections, outstanding)),
	loadRow("bids", "create and delete of an election's bid, 32 × 16, three servers", "put under a lease, and delete", 3, load(bench.Ephemerals, connections, outstanding)),
	loadRow("read1", "getData, one request at a time, standalone", "serializable gets", 1, load(bench.Read, 1, 1)),
	loadRow("write1", "setData, one request at a time, standalone", "puts", 1, load(bench.Write, 1, 1)),
	loadRow("read1x3", "getData, one request at a time, three servers", "serializable gets", 3, load(bench.Read, 1, 1)),
	loadRow("write1x3", "setData, one request at a time, three servers", "puts", 3, load(bench.Write, 1, 1)),
	{"fanout", "500 watchers of one znode", "500 watchers of one key, each with its own connection", fanout, etcdFanout, "", false},
	{"ping", "ping of a client at a follower, three idle servers", "", pings, nil, "", false},
	{"watches", "10,000 watches on 10,000 znodes", "", manyWatches, nil, "", false},
	{"million", "1,000,000 znodes of 100 bytes, standalone", "", aMillion, nil, "", false},
	{"failover", "the leader of three fails: longest time without a write for a client of another server", "puts of a client of another server; timeouts of 1 s for an election", failover, etcdFailover, "", false},
	{"cold", "cold start of three servers", "the same, to the first put", coldStart, etcdColdStart, "", false},
	{"election", "1,000 candidates, the leader leaves, three servers", "", departures, nil, "", false},
	{"sessions", "2,000 sessions", "", manySessions, nil, "", false},
}

// load returns a load of one kind.
func load(kind bench.Kind, connections, outstanding int) bench.Load {
	return bench.Load{Kind: kind, Connections: connections, Outstanding: outstanding, Keys: keys, Size: size}
}

func growing() bench.Load {
	l := load(bench.Create, connections, outstanding)
	l.Operations = growth
	return l
}

// loadRow is the row of a load on n servers.
func loadRow(name, title, note string, n int, l bench.Load) row {
	return row{name, title, note,
		func(ctx context.Context, r *run, system string) (all []figure, err error) {
			err = r.withServers(ctx, system, n, func(c *cluster) error {
				if err := c.settled(ctx); err != nil {
					return err
				}
				l := l
				l.Setting = r.setting(c.Clients(), c.pids())
				reports, err := results(l.Run(ctx))
				if err == nil {
					all = figuresOf(reports[0])
				}
				return err
			})
			return all, err
		},
		func(ctx context.Context, r *run) ([]figure, error) { return etcdLoad(ctx, r, n, l) },
		"", false,
	}
}

// results returns the reports of a run that has left its znodes: the servers end, and their directories with
// them, so nothing is deleted before.
func results(reports []*bench.Report, err error) ([]*bench.Report, error) {
	var left *bench.LeftError
	if errors.As(err, &left) && len(reports) > 0 {
		return reports, nil
	}
	return reports, err
}

// figuresOf returns the figures of a load.
func figuresOf(r *bench.Report) []figure {
	all := []figure{
		{"throughput", "/s", r.PerSecond(), true},
		{"p50", "µs", micros(r.P50), false},
		{"p99", "µs", micros(r.P99), false},
		{"p99.9", "µs", micros(r.P999), false},
	}
	return append(all, costs(r)...)
}

// costs returns the processor times of one operation.
func costs(r *bench.Report) []figure {
	if !r.ServerKnown {
		return nil
	}
	return []figure{
		{"CPU of the servers, each operation", "µs", micros(r.ServerCPU) / float64(max(r.Operations, 1)), false},
		{clientCPU, "µs", micros(r.ClientCPU) / float64(max(r.Operations, 1)), false},
	}
}

// clientCPU is a figure that says how good the client is, and has no ratio.
const clientCPU = "CPU of the client, each operation"

func micros(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }
func millis(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// onServers runs a measurement of running servers.
func onServers(ctx context.Context, r *run, system string, n int, f func(c *cluster, s bench.Setting) error) error {
	return r.withServers(ctx, system, n, func(c *cluster) error {
		if err := c.settled(ctx); err != nil {
			return err
		}
		return f(c, r.setting(c.Clients(), c.pids()))
	})
}

func fanout(ctx context.Context, r *run, system string) (all []figure, err error) {
	err = onServers(ctx, r, system, 1, func(_ *cluster, s bench.Setting) error {
		reports, err := results(bench.Fanout{Setting: s, Watchers: watchers, Size: size}.Run(ctx))
		if err == nil {
			all = fanoutFigures(reports[0])
		}
		return err
	})
	return all, err
}

func fanoutFigures(r *bench.Report) []figure {
	return append([]figure{
		{"notifications", "/s", r.PerSecond(), true},
		{"delivery p50", "ms", millis(r.P50), false},
		{"delivery p99", "ms", millis(r.P99), false},
	}, costs(r)...)
}

func pings(ctx context.Context, r *run, system string) (all []figure, err error) {
	err = onServers(ctx, r, system, 3, func(c *cluster, s bench.Setting) error {
		id, err := c.follower(ctx)
		if err != nil {
			return err
		}
		s.Raw.Servers = []string{c.Client(id)}
		reports, err := results(bench.Pings{Setting: s}.Run(ctx))
		if err == nil {
			all = []figure{{"p50", "µs", micros(reports[0].P50), false}, {"maximum", "µs", micros(reports[0].Max), false}}
		}
		return err
	})
	return all, err
}

func manyWatches(ctx context.Context, r *run, system string) (all []figure, err error) {
	err = onServers(ctx, r, system, 1, func(_ *cluster, s bench.Setting) error {
		reports, err := results(bench.Watches{Setting: s, Watches: watches, Connections: 4, Size: size}.Run(ctx))
		if err == nil {
			all = []figure{
				{"registered", "/s", reports[0].PerSecond(), true},
				{"all changed and all events delivered", "ms", millis(reports[1].Elapsed), false},
				{"event p99", "ms", millis(reports[1].P99), false},
			}
		}
		return err
	})
	return all, err
}

func aMillion(ctx context.Context, r *run, system string) ([]figure, error) {
	reports, err := bench.Restart{Owned: r.owned(system), Znodes: million, Size: size, Rounds: 1}.Run(ctx)
	if err != nil {
		return nil, err
	}
	each, err := valueOf(reports[0], "bytes per znode")
	return []figure{
		{"resident memory, each znode", "bytes", each, false},
		{"restart after kill -9, to the first answer", "ms", millis(reports[0].P50), false},
	}, err
}

func valueOf(r *bench.Report, name string) (float64, error) {
	for _, f := range r.Figures {
		if f.Name == name {
			return f.Value, nil
		}
	}
	return 0, fmt.Errorf("%s: no figure %q", r.Kind, name)
}

// failureNames are the names of the failures in the table.
var failureNames = map[bench.Failure]string{bench.Kill: "kill -9", bench.Stop: "SIGTERM", bench.Pause: "SIGSTOP"}

// failover makes leaders fail once in each way.
func failover(ctx context.Context, r *run, system string) (all []figure, err error) {
	reports, err := bench.Failover{Owned: r.owned(system), Servers: 3, Znodes: 1, Rounds: 1, Failures: bench.Failures()}.Run(ctx)
	if err != nil {
		return nil, err
	}
	for i, failure := range bench.Failures() {
		all = append(all, figure{failureNames[failure], "ms", millis(reports[2*i+1].P50), false}) // behind that of the failed server's client
	}
	return all, nil
}

func coldStart(ctx context.Context, r *run, system string) (all []figure, err error) {
	err = r.withServers(ctx, system, 3, func(c *cluster) error {
		client, err := connect(ctx, c.Clients())
		if err != nil {
			return err
		}
		defer client.Detach()
		_, _, err = client.Create(ctx, "/first", nil)
		all = []figure{{"to the first write", "ms", millis(time.Since(c.began)), false}}
		return err
	})
	return all, err
}

func departures(ctx context.Context, r *run, system string) (all []figure, err error) {
	err = onServers(ctx, r, system, 3, func(_ *cluster, s bench.Setting) error {
		reports, err := results(bench.Elections{Setting: s, Candidates: candidates}.Run(ctx))
		if err == nil && reports[0].Operations == 0 {
			err = errors.New("leadership did not pass on: use a longer DURATION")
		}
		if err == nil {
			report := reports[0]
			all = append([]figure{{"p50", "ms", millis(report.P50), false}, {"p99", "ms", millis(report.P99), false}}, costs(report)...)
		}
		return err
	})
	return all, err
}

func manySessions(ctx context.Context, r *run, system string) (all []figure, err error) {
	memory, err := bench.Memory{Owned: r.owned(system), Znodes: 1, Sessions: sessions}.Run(ctx)
	if err != nil {
		return nil, err
	}
	each, err := valueOf(memory[0], "bytes per session")
	if err != nil {
		return nil, err
	}
	err = onServers(ctx, r, system, 1, func(c *cluster, s bench.Setting) error {
		s.Connect = func(ctx context.Context) (*zk.Client, error) {
			return zk.Connect(ctx, c.Clients(), &zk.Options{SessionTimeout: sessionsFor})
		}
		reports, err := results(bench.Sessions{Setting: s, Sessions: sessions}.Run(ctx))
		if err != nil {
			return err
		}
		idle, idleErr := valueOf(reports[1], "cores used by the servers")
		late, err := valueOf(reports[2], "ms from the end of the timeout to the last event")
		if idleErr != nil {
			return idleErr
		}
		all = []figure{
			{"opened", "/s", reports[0].PerSecond(), true},
			{"resident memory, each session", "bytes", each, false},
			{"CPU of the server while all are idle", "% of a core", idle * 100, false},
			{"all expire together: last event after the timeout", "ms", late, false},
		}
		return err
	})
	return all, err
}

// ceiling measures the machine.
func ceiling(ctx context.Context, r *run) ([]figure, error) {
	reports, err := bench.Ceiling{
		Echo: func(request, reply int) *exec.Cmd {
			return exec.Command(r.binary, "bench", "echo", strconv.Itoa(request), strconv.Itoa(reply))
		},
		Connections: connections, Outstanding: outstanding, Size: size, Batch: 256, Dir: r.dir, Warmup: r.warmup, Duration: r.duration,
	}.Run(ctx)
	if err != nil {
		return nil, err
	}
	paused, err := valueOf(reports[4], "% of the time")
	return []figure{
		{"a process that only echoes, frames of getData, 32 × 16", "/s", reports[0].PerSecond(), true},
		{"the same, CPU of the process, each request", "µs", micros(reports[0].ServerCPU) / float64(max(reports[0].Operations, 1)), false},
		{"a process that only echoes, frames of setData, 32 × 16", "/s", reports[1].PerSecond(), true},
		{"append and fsync of one transaction, p50", "µs", micros(reports[2].P50), false},
		{"append and fsync of 256 transactions, p50", "µs", micros(reports[3].P50), false},
		{"pauses of the machine while all cores and the disk are busy, longest", "ms", millis(reports[4].Max), false},
		{"the same, share of the time", "%", paused, false},
	}, err
}
