package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"bellwether/internal/bench"
	"bellwether/internal/fourletter"
	"bellwether/zk"
)

// work is something that servers do beside the requests of clients. Its row compares the latency of writes at a fixed
// rate without and with it.
type work struct {
	name, title string
	count       string // what is counted during the writes, to show that the work was done
	run         func(ctx context.Context, r *run, system string) (*compared, error)
}

// compared is the result of a work.
type compared struct {
	without, with *bench.Report
	// The longest fsync of the log of any server since the measurement began, in ms. It tells a busy disk from other reasons.
	withoutFsync, withFsync float64
	count                   int
}

// The writes whose latency is measured, and the sizes of the works.
const (
	moderateRate        = 1000 // writes due each second
	moderateConnections = 8
	moderateOutstanding = 32 // on each connection, so that a stop of some hundred milliseconds finds requests to send
	workZnodes          = million
	expiring            = 10_000
	expiryTimeout       = 20 * time.Second
	beforeExpiry        = 3 * time.Second // the writes with expiry are measured from then on
	afterExpiry         = time.Second     // and until then
	neverSnapshot       = 100_000_000     // snapCount
	oftenSnapshot       = 2_000
	leastDone           = 2 // snapshots or collections, so that at least one of them is complete
	lookPause           = 20 * time.Millisecond
)

var works = []work{
	{"with-snapshot", "one server with 1,000,000 znodes writes snapshots", "snapshots begun", besideSnapshots},
	{"with-follower", "a follower with an empty disk gets 1,000,000 znodes, three servers", "ms until the follower follows", besideFollower},
	{"with-expiry", "10,000 sessions with an ephemeral znode each expire, one server", "sessions expired", besideExpiry},
	{"with-collector", "the garbage collector of one server with 1,000,000 znodes runs often (writes of 4 KiB)", "collections", besideCollector},
}

// The figures of a work.
const (
	withoutP999 = "p99.9 without"
	withP999    = "p99.9 with"
	ratioP999   = "p99.9, with to without"
	withoutMax  = "maximum without"
	withMax     = "maximum with"
)

// workRows returns the rows of all works.
func workRows() (all []row) {
	for _, w := range works {
		measure := func(ctx context.Context, r *run, system string) ([]figure, error) {
			if err := r.fits(system, workNeed/max(r.divided, 1)); err != nil {
				return nil, err
			}
			c, err := w.run(ctx, r, system)
			if err != nil {
				return nil, err
			}
			return []figure{
				{withoutP999, "ms", millis(c.without.P999), false}, {withP999, "ms", millis(c.with.P999), false},
				{ratioP999, "", float64(c.with.P999) / float64(c.without.P999), false},
				{withoutMax, "ms", millis(c.without.Max), false}, {withMax, "ms", millis(c.with.Max), false},
				{"longest fsync of a log without", "ms", c.withoutFsync, false}, {"longest fsync of a log with", "ms", c.withFsync, false},
				{"duration of the measurement with it", "s", c.with.Elapsed.Seconds(), false},
				{w.count, "", float64(c.count), false},
			}, nil
		}
		all = append(all, row{w.name, w.title, "", measure, nil, "", false})
	}
	return all
}

// workNeed is the memory that the works need, generously: three servers with 1,000,000 znodes.
const workNeed = 3 << 30

// moderate measures writes at a moderate rate below a root of its own, during the work, or without one if it is nil. It also
// returns the longest fsync of a log.
func (c *cluster) moderate(ctx context.Context, root, servers string, size int, warmup time.Duration, beside func(context.Context) error) (*bench.Report, float64, error) {
	l := bench.Load{Kind: bench.Write, Connections: moderateConnections, Outstanding: moderateOutstanding, Keys: keys, Size: size, Rate: moderateRate}
	l.Setting = c.run.setting(servers, nil)
	l.Root, l.Warmup = root, warmup
	l.Beside = func(ctx context.Context) error {
		for id := range c.size {
			if _, err := c.word(ctx, id+1, "srst"); err != nil {
				return err
			}
		}
		if beside != nil {
			return beside(ctx)
		}
		select {
		case <-ctx.Done():
		case <-time.After(l.Duration):
		}
		return ctx.Err()
	}
	reports, err := results(l.Run(ctx))
	if err != nil {
		return nil, 0, err
	}
	longest := 0.0
	for id := range c.size {
		text, err := c.word(ctx, id+1, "mntr")
		if err != nil {
			return nil, 0, err
		}
		longest = max(longest, mntrValue(text, "zk_max_fsynctime"))
	}
	return reports[0], longest, nil
}

// word sends a server a four-letter word.
func (c *cluster) word(ctx context.Context, id int, word string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, wordTimeout)
	defer cancel()
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", c.Client(id))
	if err != nil {
		return "", err
	}
	return fourletter.Ask(ctx, conn, word, wordTimeout)
}

// wordTimeout bounds a four-letter word to a busy server.
const wordTimeout = 20 * time.Second

// mntrValue returns a value of mntr; 0: there is none.
func mntrValue(text, name string) float64 {
	for line := range strings.Lines(text) {
		if value, ok := strings.CutPrefix(line, name+"\t"); ok {
			v, _ := strconv.ParseFloat(strings.TrimSpace(value), 64) // 0: no number
			return v
		}
	}
	return 0
}

// divide returns a number of the size of a work, divided as the flags say.
func (r *run) divide(n int) int { return max(1, n/max(r.divided, 1)) }

// onFilled calls f with servers that have many znodes.
func (r *run) onFilled(ctx context.Context, system string, s setup, f func(*cluster) error) error {
	s.settings = append(s.settings, fmt.Sprintf("snapCount=%d", neverSnapshot))
	return r.withClient(ctx, system, s, func(c *cluster, client *zk.Client) error {
		if err := bench.Fill(ctx, client, "/filled", r.divide(workZnodes), size); err != nil {
			return err
		}
		return f(c)
	})
}

// besideCounted compares the writes, with so many bytes of data, of one filled server after a restart with those after a restart
// with a change. The change makes the server do some work again and again; done counts it since the start of the process.
func (r *run) besideCounted(ctx context.Context, system string, bytes int, calm, change setup, done func(*cluster) (int, error)) (both *compared, err error) {
	both = &compared{}
	err = r.onFilled(ctx, system, setup{servers: 1}, func(c *cluster) error {
		if err := c.restart(ctx, calm); err != nil {
			return err
		}
		if both.without, both.withoutFsync, err = c.moderate(ctx, "/without", c.Clients(), bytes, r.warmup, nil); err != nil {
			return err
		}
		if err := c.restart(ctx, change); err != nil {
			return err
		}
		both.with, both.withFsync, err = c.moderate(ctx, "/with", c.Clients(), bytes, r.warmup, func(ctx context.Context) error {
			before, err := done(c)
			for end := time.Now().Add(r.duration); err == nil; {
				var now int
				if now, err = done(c); now-before >= leastDone && time.Now().After(end) {
					both.count = now - before
					return err
				}
				if time.Now().After(end.Add(serveTimeout)) {
					return fmt.Errorf("the work was done %d times in %v", now-before, r.duration+serveTimeout)
				}
				err = errors.Join(err, pause(ctx))
			}
			return err
		})
		return err
	})
	return both, err
}

// pause waits for a short time, because processes cannot notify.
func pause(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(lookPause):
		return nil
	}
}

// besideSnapshots makes a server begin a snapshot after every few transactions.
func besideSnapshots(ctx context.Context, r *run, system string) (*compared, error) {
	seen := map[string]bool{} // old snapshots may be deleted
	return r.besideCounted(ctx, system, size, setup{}, setup{settings: []string{fmt.Sprintf("snapCount=%d", oftenSnapshot)}}, func(c *cluster) (int, error) {
		files, err := filepath.Glob(filepath.Join(c.Folder(1), "version-2", "snapshot.*"))
		for _, file := range files {
			seen[file] = true
		}
		return len(seen), err
	})
}

// collectOften makes the collectors run often, and collectRarely as good as never, under writes of collectedBytes. With
// collectOften Go's collector lets the heap grow by a fifth. Apache's Java process has a small young generation, and marks the old
// one after each collection of the young one.
var (
	collectOften = setup{
		env:  []string{"GOGC=20", "GODEBUG=gctrace=1"},
		java: []string{"-XX:+UseG1GC", "-Xmn16m", "-XX:InitiatingHeapOccupancyPercent=1", "-XX:-G1UseAdaptiveIHOP", "-Xlog:gc:stderr"},
	}
	collectRarely = setup{env: []string{"GOGC=400"}}
)

// collectedBytes are the bytes of data of the writes beside which the collector runs, so that there is garbage to collect.
const collectedBytes = 4 << 10

// besideCollector makes the garbage collector run often.
func besideCollector(ctx context.Context, r *run, system string) (*compared, error) {
	var count atomic.Int64
	change := collectOften
	change.line = func(_ int, text string) {
		if isCollection(text) {
			count.Add(1)
		}
	}
	return r.besideCounted(ctx, system, collectedBytes, collectRarely, change, func(*cluster) (int, error) { return int(count.Load()), nil })
}

// isCollection reports whether a line of a log says that a collection has ended.
func isCollection(line string) bool {
	return strings.HasPrefix(line, "gc ") && strings.Contains(line, " @") ||
		strings.Contains(line, "[gc]") && strings.Contains(line, " Pause ")
}

// besideFollower empties the disk of a follower once at the beginning of the measurement, which lasts at least as long as the one
// without. Otherwise a server that synchronises faster would do more of this work in the same time. The writes go through the
// other two servers.
func besideFollower(ctx context.Context, r *run, system string) (both *compared, err error) {
	both = &compared{}
	err = r.onFilled(ctx, system, setup{servers: 3}, func(c *cluster) error {
		victim, err := c.follower(ctx)
		if err != nil {
			return err
		}
		var others []string
		for id := 1; id <= c.size; id++ {
			if id != victim {
				others = append(others, c.Client(id))
			}
		}
		servers := strings.Join(others, ",")
		if both.without, both.withoutFsync, err = c.moderate(ctx, "/without", servers, size, r.warmup, nil); err != nil {
			return err
		}
		both.with, both.withFsync, err = c.moderate(ctx, "/with", servers, size, r.warmup, func(ctx context.Context) error {
			rest := time.NewTimer(r.duration)
			defer rest.Stop()
			began := time.Now()
			if err := c.replace(ctx, victim); err != nil {
				return err
			}
			both.count = int(time.Since(began).Milliseconds())
			select {
			case <-rest.C:
			case <-ctx.Done():
			}
			return ctx.Err()
		})
		return err
	})
	return both, err
}

// replace kills a server, puts its data aside, starts it again, and waits until it follows. It deletes nothing, because a file
// system may tell the disk which blocks are free (the mount option discard), and such a command can hold up each fsync of the others.
func (c *cluster) replace(ctx context.Context, id int) error {
	if err := c.Kill(id); err != nil {
		return err
	}
	if err := os.Rename(filepath.Join(c.Folder(id), "version-2"), filepath.Join(c.Folder(id), "before")); err != nil {
		return err
	}
	if err := c.start(id, setup{}); err != nil {
		return err
	}
	return c.until(ctx, func() bool { return c.role(ctx, id) == "follower" })
}

// besideExpiry lets many sessions expire together.
func besideExpiry(ctx context.Context, r *run, system string) (both *compared, err error) {
	both = &compared{count: r.divide(expiring)}
	_, err = r.standalone(ctx, system, setup{}, func(c *cluster, client *zk.Client) ([]figure, error) {
		const root = "/expiring"
		if _, _, err := client.Create(ctx, root, nil); err != nil {
			return nil, err
		}
		if both.without, both.withoutFsync, err = c.moderate(ctx, "/without", c.Clients(), size, r.warmup, nil); err != nil {
			return nil, err
		}
		s := r.setting(c.Clients(), nil)
		s.Root, s.Raw.Timeout = root, expiryTimeout
		_, end, err := bench.Abandon{Setting: s, Sessions: both.count, Ephemerals: true, Hold: true}.Run(ctx)
		end()
		ended := time.Now()
		if err != nil {
			return nil, err
		}
		both.with, both.withFsync, err = c.moderate(ctx, "/with", c.Clients(), size, max(time.Second, time.Until(ended.Add(expiryTimeout-beforeExpiry))), func(ctx context.Context) error {
			return awaitExpiry(ctx, client, root, both.count)
		})
		return nil, err
	})
	return both, err
}

// awaitExpiry waits until no child of the root is left, of n at the beginning, and then for a moment more.
func awaitExpiry(ctx context.Context, client *zk.Client, root string, n int) error {
	for began := time.Now(); ; {
		stat, _, err := client.Exists(ctx, root)
		switch {
		case err != nil:
			return err
		case n > 0 && int(stat.NumChildren) < n:
			return fmt.Errorf("%d of %d sessions expired before the measurement", n-int(stat.NumChildren), n)
		case stat.NumChildren == 0:
			select {
			case <-ctx.Done():
			case <-time.After(afterExpiry):
			}
			return ctx.Err()
		case time.Since(began) > serveTimeout:
			return fmt.Errorf("%d sessions have not expired after %v", stat.NumChildren, serveTimeout)
		}
		n = 0 // only at the beginning
		if err := pause(ctx); err != nil {
			return err
		}
	}
}

// worksOf returns the section about work beside writes.
func worksOf(all []result, _ []chart) string {
	var b strings.Builder
	var names []string
	for _, row := range workRows() {
		title := row.title
		if len(figureNames(all, row.name)) > 0 {
			names = append(names, row.name)
		}
		for _, f := range figureNames(all, row.name) {
			fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", title, f.Name,
				workCell(values(all, row.name, f.Name, zooKeeper), f), workCell(values(all, row.name, f.Name, bellwether), f))
			title = ""
		}
	}
	return fmt.Sprintf("## Latency of writes while other work goes on\n\n%s Each measurement begins after\n%s of warm-up and takes %s, or as long as the work.\n\n    make bench-report ROWS=%s PAIRS=%d DURATION=%[3]s\n\n",
		circumstances(all), all[0].Settings.Warmup, all[0].Settings.Duration, strings.Join(names, ","), pairsOf(all)) +
		fmt.Sprintf("%s setData requests of %d bytes are due each second, over %d connections. A latency counts from the time at which a request was due. "+
			"The table shows medians over the\npairs, and for ratios also the smallest and the largest one. The aim is that p99.9 is at most twice what it is without the work.\n\n",
			number(moderateRate), size, moderateConnections) +
		"| other work | figure | Apache ZooKeeper | Bellwether |\n|---|---|---|---|\n" + b.String()
}

// workCell shows a figure, and the spread of a ratio.
func workCell(values map[int]float64, f figure) string {
	if len(values) == 0 {
		return ""
	}
	if f.Name != ratioP999 {
		return strings.TrimSpace(cell(values, f.Unit))
	}
	var found []float64
	for _, v := range values {
		found = append(found, v)
	}
	s := spreadOf(found)
	return fmt.Sprintf("**%s** (%s to %s)", number(s.median), number(s.least), number(s.most))
}
