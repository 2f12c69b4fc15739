package main

import (
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"bellwether/internal/bench"
	"bellwether/zk"
)

// curve shows how costs grow with a number. Each of its points is a row of its own, which ROWS can select and which an
// interrupted run does not repeat.
type curve struct {
	name   string // for ROWS: all points
	title  string
	item   string // what is counted
	points []int
	most   map[string]int // the largest point that is measured of a system; no entry: all
	fixed  bool           // the points are not divided when the rows are tried out
	drawn  []string       // the figures of which charts are drawn
	bytes  int            // memory that one item needs, of the server and the client together, generously
	run    func(ctx context.Context, r *run, system string, n int) ([]figure, error)
}

// The figures of curves that charts show.
const (
	memoryAll    = "resident memory"
	restartTime  = "restart after kill -9, to the first answer"
	eventTime    = "change and event p99"
	leaderCPU    = "CPU of the leader, each write"
	handoverTime = "handover p50"
	listTime     = "listing p50"
)

// The sizes of curves.
const (
	probeConnections = 8
	probeKeys        = 1000
	watchConnections = 4
	changesMost      = 100_000 // so many of the watched znodes are changed
	sessionReads     = 2000    // reads each second, over all connected sessions
	pingedSessions   = 20 * time.Second
	idleSessions     = 7 * time.Second // a third of pingedSessions: all sessions have sent a ping
	leftSessions     = 10 * time.Minute
	voters           = 3
	leadersMost      = 200       // of the candidates, so many come to lead
	manyHeap         = 512 << 20 // heap of each of Apache's processes where the number of servers varies
)

var curves = []curve{
	{name: "znodes", title: "Znodes of 100 bytes, standalone", item: "znodes", points: powers(4, 7), most: map[string]int{zooKeeper: million},
		drawn: []string{memoryAll, "getData p99", "setData p99", restartTime}, bytes: 900, run: znodeCurve},
	{name: "watched", title: "Watches, each on a znode of its own, 4 connections, standalone", item: "watches", points: powers(4, 6),
		drawn: []string{memoryAll, eventTime, "setData p99"}, bytes: 5000, run: watchCurve},
	{name: "connected", title: "Connected sessions that ping every 6.7 s, and 2,000 reads a second over all of them, standalone", item: "sessions",
		points: []int{500, 1500, 5000, 15_000}, drawn: []string{memoryAll, "CPU of the server", "getData p99"}, bytes: 200_000, run: connectedCurve},
	{name: "left", title: "Sessions with a timeout of ten minutes whose connections have ended, standalone", item: "sessions", points: powers(3, 5),
		drawn: []string{memoryAll, "setData p99"}, bytes: 20_000, run: leftCurve},
	{name: "candidates", title: "Candidates of one election, the first 200 lead and leave one after the other, three servers", item: "candidates", points: powers(1, 4),
		drawn: []string{handoverTime, "CPU of the servers, each handover"}, bytes: 200_000, run: candidateCurve},
	{name: "children", title: "Children of one znode, standalone", item: "children", points: powers(3, 6),
		drawn: []string{listTime, "create and delete of a child p99"}, bytes: 1500, run: childCurve},
	{name: "servers", title: "Servers, setData of 100 bytes, 32 × 16 (heap of Apache ZooKeeper: 512 MiB each)", item: "servers", points: []int{3, 5, 7}, fixed: true,
		drawn: []string{"setData", leaderCPU}, run: func(ctx context.Context, r *run, system string, n int) ([]figure, error) {
			return serverCurve(ctx, r, system, n, 0)
		}},
	{name: "observers", title: "Observers beside three voters that the clients use, setData of 100 bytes, 32 × 16 (the same heap)", item: "observers", points: []int{2, 4, 6}, fixed: true,
		drawn: []string{"setData", leaderCPU}, run: func(ctx context.Context, r *run, system string, n int) ([]figure, error) {
			return serverCurve(ctx, r, system, voters, n)
		}},
}

// longSessions lets sessions have a timeout of leftSessions.
var longSessions = "maxSessionTimeout=" + strconv.FormatInt(leftSessions.Milliseconds(), 10)

// powers returns the powers of ten with these exponents.
func powers(from, to int) (all []int) {
	for e := from; e <= to; e++ {
		all = append(all, int(math.Pow10(e)))
	}
	return all
}

// pointName is the name of a point's row.
func (c *curve) pointName(n int) string { return c.name + "-" + strconv.Itoa(n) }

// beyond reports whether a point is too large for a system.
func (c *curve) beyond(system string, n int) bool { return c.most[system] > 0 && n > c.most[system] }

// curveRows returns a row for each point of each curve.
func curveRows() (all []row) {
	for i := range curves {
		c := &curves[i]
		for _, n := range c.points {
			measure := func(ctx context.Context, r *run, system string) ([]figure, error) {
				if c.beyond(system, n) {
					return nil, &skipError{fmt.Sprintf("%s is measured with at most %s %s", systemNames[system], number(float64(c.most[system])), c.item)}
				}
				items := n
				if !c.fixed {
					items = max(2, n/max(r.divided, 1))
				}
				if err := r.fits(system, items*c.bytes); err != nil {
					return nil, err
				}
				return c.run(ctx, r, system, items)
			}
			all = append(all, row{c.pointName(n), fmt.Sprintf("%s: %s", c.title, number(float64(n))), "", measure, nil, c.name, c.beyond(zooKeeper, n)})
		}
	}
	return all
}

// skipError says why something is not measured. It is kept as a result, so that it is shown.
type skipError struct{ why string }

func (e *skipError) Error() string { return e.why }

// baseMemory is what the programs need besides what grows.
const baseMemory = 256 << 20

// fits returns an error if the machine has too little memory.
func (r *run) fits(system string, need int) error {
	need += baseMemory
	if system == zooKeeper {
		need += r.heapBytes()
	}
	free, err := available()
	if err == nil && need > free {
		return &skipError{fmt.Sprintf("it needs about %d MiB of memory, and the machine has %d MiB available", need>>20, free>>20)}
	}
	return nil // a system that does not say how much is available
}

// heapBytes returns the heap of Apache's Java process.
func (r *run) heapBytes() int {
	digits := strings.TrimRight(r.heap, "gGmM")
	n, err := strconv.Atoi(digits)
	if err != nil {
		return 0
	}
	if strings.ContainsAny(r.heap, "gG") {
		return n << 30
	}
	return n << 20
}

// available returns how much memory new processes can use, in bytes.
func available() (int, error) {
	text, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(text)) {
		if value, ok := strings.CutPrefix(line, "MemAvailable:"); ok {
			kib, err := strconv.Atoi(strings.Fields(value)[0])
			return kib << 10, err
		}
	}
	return 0, os.ErrNotExist
}

// curveSetting returns the setting of one measurement of a curve.
func (c *cluster) curveSetting(servers string, pids []int) bench.Setting {
	s := c.run.setting(servers, pids)
	s.Warmup, s.Duration = c.run.curveDuration/3, c.run.curveDuration
	return s
}

// standalone starts one server, and calls f with a client.
func (r *run) standalone(ctx context.Context, system string, s setup, f func(c *cluster, client *zk.Client) ([]figure, error)) (all []figure, err error) {
	s.servers = 1
	err = r.withClient(ctx, system, s, func(c *cluster, client *zk.Client) (err error) {
		all, err = f(c, client)
		return err
	})
	return all, err
}

// withClient starts servers, and calls f with a client.
func (r *run) withClient(ctx context.Context, system string, s setup, f func(*cluster, *zk.Client) error) error {
	return r.with(ctx, system, s, func(c *cluster) error {
		if err := c.settled(ctx); err != nil {
			return err
		}
		client, err := connect(ctx, c.Clients())
		if err != nil {
			return err
		}
		defer client.Detach()
		return f(c, client)
	})
}

// grown returns the resident memory of the servers, and by how much it has grown for each of n items.
func grown(before, now int64, n int) []figure {
	return []figure{
		{memoryAll, "MiB", float64(now) / (1 << 20), false},
		{"growth of it for each", "bytes", float64(now-before) / float64(n), false},
	}
}

// probe measures requests of a few connections, one at a time on each, below a root.
func (c *cluster) probe(ctx context.Context, root string, l bench.Load) (*bench.Report, error) {
	l.Setting = c.curveSetting(c.Clients(), c.pids())
	l.Root = root
	l.Connections, l.Outstanding, l.Size = probeConnections, 1, size
	reports, err := results(l.Run(ctx))
	if err != nil {
		return nil, err
	}
	return reports[0], nil
}

// probed returns the figures of a probe.
func probed(name string, r *bench.Report) []figure {
	all := []figure{
		{name, "/s", r.PerSecond(), true},
		{name + " p50", "µs", micros(r.P50), false},
		{name + " p99", "µs", micros(r.P99), false},
	}
	if r.ServerKnown {
		all = append(all, figure{"CPU of the server, each " + name, "µs", micros(r.ServerCPU) / float64(max(r.Operations, 1)), false})
	}
	return all
}

// others measures writes of znodes that are not among those of the curve.
func (c *cluster) others(ctx context.Context) ([]figure, error) {
	r, err := c.probe(ctx, "/other", bench.Load{Kind: bench.Write, Keys: probeKeys})
	if err != nil {
		return nil, err
	}
	return probed("setData", r), nil
}

// snapshotsOfFill is about how many snapshots a server writes while its tree is filled.
const snapshotsOfFill = 4

// filling returns the setup of a server that is filled with n znodes.
func filling(n int) setup {
	return setup{settings: []string{"snapCount=" + strconv.Itoa(max(100_000, n/snapshotsOfFill))}}
}

func znodeCurve(ctx context.Context, r *run, system string, n int) ([]figure, error) {
	return r.standalone(ctx, system, filling(n), func(c *cluster, client *zk.Client) ([]figure, error) {
		before, err := bench.Resident(c.pids()...)
		if err != nil {
			return nil, err
		}
		if err := bench.Fill(ctx, client, "/bench", n, size); err != nil {
			return nil, err
		}
		now, err := bench.Resident(c.pids()...)
		if err != nil {
			return nil, err
		}
		all := grown(before, now, n)
		for _, kind := range []bench.Kind{bench.Read, bench.Write} {
			report, err := c.probe(ctx, "/bench", bench.Load{Kind: kind, Keys: n, Filled: true})
			if err != nil {
				return nil, err
			}
			all = append(all, probed(map[bench.Kind]string{bench.Read: "getData", bench.Write: "setData"}[kind], report)...)
		}
		took, err := c.restarted(ctx)
		return append(all, figure{restartTime, "ms", millis(took), false}), err
	})
}

// restarted kills the server, starts it again, and returns how long it took until it has answered a read.
func (c *cluster) restarted(ctx context.Context) (time.Duration, error) {
	if err := c.Kill(1); err != nil {
		return 0, err
	}
	began := time.Now()
	if err := c.start(1, setup{}); err != nil {
		return 0, err
	}
	if err := c.until(ctx, func() bool { return c.role(ctx, 1) != "" }); err != nil {
		return 0, err
	}
	client, err := connect(ctx, c.Clients())
	if err != nil {
		return 0, err
	}
	defer client.Detach()
	_, _, err = client.Get(ctx, "/bench")
	return time.Since(began), err
}

func watchCurve(ctx context.Context, r *run, system string, n int) ([]figure, error) {
	return r.standalone(ctx, system, filling(n), func(c *cluster, client *zk.Client) (all []figure, err error) {
		if err := bench.Fill(ctx, client, "/bench", n, size); err != nil {
			return nil, err
		}
		before, err := bench.Resident(c.pids()...)
		if err != nil {
			return nil, err
		}
		reports, err := bench.Watches{
			Setting: c.curveSetting(c.Clients(), c.pids()), Watches: n, Connections: watchConnections, Size: size, Changes: min(n, changesMost), Filled: true,
			Between: func(ctx context.Context) error {
				now, err := bench.Resident(c.pids()...)
				if err != nil {
					return err
				}
				others, err := c.others(ctx)
				all = append(grown(before, now, n), others...)
				return err
			},
		}.Run(ctx)
		if err != nil {
			return nil, err
		}
		all = append(all, probed("getData that sets a watch", reports[0])...)
		return append(all, figure{eventTime, "ms", millis(reports[1].P99), false},
			figure{"CPU of the server, each change and event", "µs", micros(reports[1].PerOperation(reports[1].ServerCPU)), false}), nil
	})
}

func connectedCurve(ctx context.Context, r *run, system string, n int) ([]figure, error) {
	return r.standalone(ctx, system, setup{}, func(c *cluster, client *zk.Client) ([]figure, error) {
		before, err := bench.Resident(c.pids()...)
		if err != nil {
			return nil, err
		}
		s := c.curveSetting(c.Clients(), c.pids())
		s.Duration = max(s.Duration, idleSessions)
		s.Raw.Timeout = pingedSessions
		reports, err := results(bench.Load{Setting: s, Kind: bench.Read, Connections: n, Outstanding: 1, Keys: probeKeys, Size: size, Rate: sessionReads}.Run(ctx))
		if err != nil {
			return nil, err
		}
		report := reports[0]
		return append(grown(before, report.ServerMemory, n),
			figure{"CPU of the server", "% of a core", 100 * report.ServerCPU.Seconds() / report.Elapsed.Seconds(), false},
			figure{"getData p50", "µs", micros(report.P50), false}, figure{"getData p99", "µs", micros(report.P99), false}), nil
	})
}

func leftCurve(ctx context.Context, r *run, system string, n int) ([]figure, error) {
	return r.standalone(ctx, system, setup{settings: []string{longSessions}}, func(c *cluster, client *zk.Client) ([]figure, error) {
		before, err := bench.Resident(c.pids()...)
		if err != nil {
			return nil, err
		}
		s := c.curveSetting(c.Clients(), c.pids())
		s.Raw.Timeout = leftSessions
		report, end, err := bench.Abandon{Setting: s, Sessions: n}.Run(ctx)
		end()
		if err != nil {
			return nil, err
		}
		others, err := c.others(ctx)
		return slices.Concat(grown(before, report.ServerMemory, n), probed("opening", report), others), err
	})
}

func candidateCurve(ctx context.Context, r *run, system string, n int) (all []figure, err error) {
	err = r.with(ctx, system, setup{servers: voters, settings: []string{longSessions}}, func(c *cluster) error {
		if err := c.settled(ctx); err != nil {
			return err
		}
		before, err := bench.Resident(c.pids()...)
		if err != nil {
			return err
		}
		s := c.curveSetting(c.Clients(), c.pids())
		s.Raw.Timeout = leftSessions
		reports, err := results(bench.Departures{Setting: s, Candidates: n, Leaders: min(n, leadersMost)}.Run(ctx))
		if err != nil {
			return err
		}
		report := reports[0]
		all = append(grown(before, report.ServerMemory, n),
			figure{handoverTime, "ms", millis(report.P50), false}, figure{"handover p99", "ms", millis(report.P99), false},
			figure{"CPU of the servers, each handover", "µs", micros(report.ServerCPU) / float64(report.Operations), false})
		return nil
	})
	return all, err
}

// listConnections is how many clients list children at the same time.
const listConnections = 4

func childCurve(ctx context.Context, r *run, system string, n int) ([]figure, error) {
	return r.standalone(ctx, system, filling(n), func(c *cluster, client *zk.Client) ([]figure, error) {
		if err := bench.FillFlat(ctx, client, "/bench", n, 0); err != nil {
			return nil, err
		}
		s := c.curveSetting(c.Clients(), c.pids())
		lists, err := results(bench.Load{Setting: s, Kind: bench.List, Connections: listConnections, Outstanding: 1, Keys: n, Filled: true}.Run(ctx))
		if err != nil {
			return nil, err
		}
		report := lists[0]
		bids, err := c.probe(ctx, "/bench", bench.Load{Kind: bench.Ephemerals, Keys: n, Filled: true})
		if err != nil {
			return nil, err
		}
		return append([]figure{
			{"listings", "/s", report.PerSecond(), true},
			{listTime, "ms", millis(report.P50), false}, {"listing p99", "ms", millis(report.P99), false},
			{"CPU of the server, each listing", "µs", micros(report.ServerCPU) / float64(max(report.Operations, 1)), false},
			{memoryAll, "MiB", float64(report.ServerMemory) / (1 << 20), false},
		}, probed("create and delete of a child", bids)...), nil
	})
}

// serverCurve measures writes by clients of the voters.
func serverCurve(ctx context.Context, r *run, system string, voting, observers int) (all []figure, err error) {
	if err := r.fits(system, (voting+observers)*manyHeap); err != nil {
		return nil, err
	}
	heap := strconv.Itoa(manyHeap)
	s := setup{servers: voting + observers, observers: observers, java: []string{"-Xms" + heap, "-Xmx" + heap}}
	err = r.with(ctx, system, s, func(c *cluster) error {
		if err := c.settled(ctx); err != nil {
			return err
		}
		leader := -1
		var addresses []string
		for id := range voting {
			addresses = append(addresses, c.Client(id+1))
			if c.role(ctx, id+1) == "leader" {
				leader = id
			}
		}
		if leader < 0 {
			return fmt.Errorf("no server leads")
		}
		l := load(bench.Write, connections, outstanding)
		l.Setting = c.curveSetting(strings.Join(addresses, ","), c.pids())
		reports, err := results(l.Run(ctx))
		if err != nil {
			return err
		}
		report := reports[0]
		all = []figure{
			{"setData", "/s", report.PerSecond(), true},
			{"setData p50", "ms", millis(report.P50), false}, {"setData p99", "ms", millis(report.P99), false},
		}
		if report.ServerKnown {
			each := func(d time.Duration) float64 { return micros(d) / float64(max(report.Operations, 1)) }
			all = append(all, figure{leaderCPU, "µs", each(report.EachCPU[leader]), false},
				figure{"CPU of all servers, each write", "µs", each(report.ServerCPU), false},
				figure{memoryAll + " of all servers", "MiB", float64(report.ServerMemory) / (1 << 20), false})
		}
		return nil
	})
	return all, err
}

// tableOfCurve returns the table of a curve, in Markdown: a column for each point, and a row for each figure of each
// system. It is empty if nothing was measured.
func tableOfCurve(all []result, c *curve) string {
	var b strings.Builder
	head, line := "| figure | server |", "|---|---|"
	var names []figure
	for _, n := range c.points {
		head, line = head+" "+number(float64(n))+" |", line+"---|"
		for _, f := range figureNames(all, c.pointName(n)) {
			if !slices.ContainsFunc(names, func(g figure) bool { return g.Name == f.Name }) {
				names = append(names, f)
			}
		}
	}
	if len(names) == 0 {
		return ""
	}
	b.WriteString(head + "\n" + line + "\n")
	for _, f := range names {
		title := f.Name
		for _, system := range []string{zooKeeper, bellwether} {
			fmt.Fprintf(&b, "| %s | %s |", title, systemNames[system])
			for _, n := range c.points {
				fmt.Fprintf(&b, " %s |", cell(values(all, c.pointName(n), f.Name, system), f.Unit))
			}
			b.WriteString("\n")
			title = ""
		}
		b.WriteString("|  | ratio |")
		for _, n := range c.points {
			fmt.Fprintf(&b, " %s |", ratioCell(all, c.pointName(n), f, zooKeeper))
		}
		b.WriteString("\n")
	}
	return b.String()
}

// skippedOf returns why points of a curve were not measured, one line for each.
func skippedOf(all []result, c *curve) string {
	var b strings.Builder
	for _, n := range c.points {
		for _, r := range all {
			if r.Row == c.pointName(n) && r.Skipped != "" && r.Pair == 0 {
				fmt.Fprintf(&b, "- %s, %s %s: not measured. %s.\n", systemNames[r.System], number(float64(n)), c.item, capital(r.Skipped))
			}
		}
	}
	return b.String()
}

func capital(s string) string { return strings.ToUpper(s[:1]) + s[1:] }

// curvesOf returns the section with the curves: circumstances, charts and tables.
func curvesOf(all []result, drawn []chart) string {
	var b strings.Builder
	for i := range curves {
		c := &curves[i]
		table := tableOfCurve(all, c)
		if table == "" {
			continue
		}
		fmt.Fprintf(&b, "### %s\n\n    make bench-report ROWS=%s\n\n", c.title, c.name)
		for _, d := range drawn {
			if strings.HasPrefix(filepath.Base(d.file), "curve-"+c.name+"-") {
				fmt.Fprintf(&b, "![%s](%s)\n", d.title, d.file)
			}
		}
		b.WriteString("\n" + table + "\n")
		if skipped := skippedOf(all, c); skipped != "" {
			b.WriteString(skipped + "\n")
		}
	}
	return fmt.Sprintf("## What grows with what\n\n%s Each measurement takes %s after a third of it as warm-up.\n\n    make bench-report ROWS=%s PAIRS=%[4]d CURVES=%[4]d\n\n",
		circumstances(all), all[0].Settings.Curves, curveNames(all), pairsOf(all)) +
		"The tables show medians over the pairs. A ratio says how many times better Bellwether was in the same pair: median (minimum to maximum). Both axes of the charts\n" +
		"are logarithmic. A point that only Bellwether reaches is measured in the first pair only. The memory of Apache ZooKeeper includes garbage that its collector has not collected, up to the heap. " +
		"[Scale](scale.md) explains what the\nfigures mean for the size of a machine.\n\n" + b.String()
}

// curveNames returns the names of the curves that were measured, as ROWS takes them.
func curveNames(all []result) string {
	var names []string
	for i := range curves {
		if tableOfCurve(all, &curves[i]) != "" {
			names = append(names, curves[i].name)
		}
	}
	return strings.Join(names, ",")
}
