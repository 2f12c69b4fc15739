package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"bellwether/interop/target"
	"bellwether/zk"
)

// Sizes of the bulk loads; -znodes gives the number of znodes.
const (
	probeEvery    = 10 * time.Millisecond // time between two writes of the other client
	multiOps      = 20_000                // operations of one multi
	multiClients  = 16                    // clients that send multis in parallel
	multiRounds   = 5                     // multis per client
	watchPaths    = 90_000                // paths of one setWatches: as many as fit into a frame of 1 MiB
	snapshotEvery = 2_000                 // snapCount while snapshots are written
	snapshotTime  = 20 * time.Second
	snapshotsKept = 4  // snapshots that each server keeps while it is filled
	kazooShare    = 20 // kazoo deletes znodes one by one, so it gets only this fraction of them
)

// bulkLoads are the loads of -bulk, each with its own server or ensemble.
var bulkLoads = []struct {
	what  string
	extra map[string]string
	setup func(b *bulk) error
	run   func(b *bulk) error
}{
	{what: "multis of 20,000 operations, 16 clients", run: (*bulk).multis},
	{what: "end of a session with ephemerals, half as many as -znodes, 1,000 in a directory", setup: ephemerals(ephemeralBatch), run: (*bulk).endSession},
	{what: "end of a session with ephemerals, half as many as -znodes, all in one directory", setup: ephemerals(math.MaxInt), run: (*bulk).endSession},
	{what: "end of a session with ephemerals, half as many as -znodes, each in its own directory", setup: ephemerals(1), run: (*bulk).endSession},
	{what: "end of a session with ephemerals, half as many as -znodes, each of them watched", setup: (*bulk).watchedEphemerals, run: (*bulk).endSession},
	{what: "setWatches of 90,000 paths, 10 times", run: (*bulk).setWatches},
	{what: "setWatches of 90,000 paths that all have an event, 10 times", run: (*bulk).dueWatches},
	{what: "snapshots during writes", extra: map[string]string{"snapCount": strconv.Itoa(snapshotEvery)},
		setup: (*bulk).fillAndPurge, run: (*bulk).snapshots},
	{what: "wchp and wchc, with -znodes watches", setup: (*bulk).watched, run: words("wchp", "wchc")},
	{what: "wchs, mntr and cons, with -znodes watches", setup: (*bulk).watched, run: words("wchs", "mntr", "cons")},
	{what: "dump, half as many ephemerals as -znodes", setup: ephemerals(ephemeralBatch), run: words("dump")},
	{what: "deleteall of bellwether", setup: (*bulk).fill, run: (*bulk).deleteAll},
	{what: "deleteall of zkCli", setup: (*bulk).fill, run: (*bulk).deleteAllJava},
	{what: "recursive delete of kazoo, a 20th of -znodes", setup: (*bulk).fillLess, run: (*bulk).deleteAllKazoo},
}

// measureBulk measures all bulk loads whose description contains the value of -only.
func measureBulk(ctx context.Context, kind target.Kind, p plan) ([]figure, error) {
	dir, err := os.MkdirTemp("", "bellwether-compare-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	m := &meter{ctx: ctx, kind: kind, plan: p, dir: dir}
	for _, load := range bulkLoads {
		if !strings.Contains(load.what, p.only) {
			continue
		}
		b := &bulk{meter: m, extra: load.extra}
		if err := b.measure(load.what, load.setup, load.run); err != nil {
			first, _, _ := strings.Cut(err.Error(), "\n")
			b.say("failed: "+first, "%s", load.what)
		}
	}
	return m.figures, nil
}

// bulk is one load and the servers under that load.
type bulk struct {
	*meter
	extra   map[string]string
	servers []*target.Server
	at      string       // the server under load: the leader of an ensemble
	other   string       // the server of the other client: a follower of an ensemble
	loaded  *zk.Client   // the session that owns the ephemerals
	raws    []*rawClient // the connections with watches
}

// measure runs one load while another client writes, and reports how long that client's
// writes took.
func (b *bulk) measure(what string, setup, run func(*bulk) error) error {
	if err := b.begin(); err != nil {
		return err
	}
	defer b.end()
	if setup != nil {
		if err := setup(b); err != nil {
			return err
		}
	}
	// Garbage collection and disk writes of the setup must not count as part of the load.
	if err := b.settle(); err != nil {
		return err
	}
	for _, s := range b.servers {
		if _, err := s.Word("srst"); err != nil { // so that the largest values are those of the load
			return err
		}
	}
	pr, err := b.probe()
	if err != nil {
		return err
	}
	began := time.Now()
	err = run(b)
	took := time.Since(began)
	if e := pr.end(); err != nil || e != nil {
		return errors.Join(err, e)
	}
	loop, err := b.longest("zk_max_loop_time_ms")
	if err != nil {
		return err
	}
	fsync, err := b.longest("zk_max_fsynctime")
	if err != nil {
		return err
	}
	late, err := b.longest("zk_max_heartbeat_late_ms")
	if err != nil {
		return err
	}
	answer, err := b.longest("zk_max_heartbeat_answer_ms")
	if err != nil {
		return err
	}
	b.say(fmt.Sprintf("longest write %d ms, %d of %d above 100 ms; latest heartbeat %s, latest answer %s; longest loop batch %s, longest fsync %s; load %.1f s",
		pr.longest().Milliseconds(), pr.above(100*time.Millisecond), len(pr.took), late, answer, loop, fsync, took.Seconds()), "%s", what)
	return nil
}

// begin starts one server, or three servers with -ensemble.
func (b *bulk) begin() error {
	b.meter.servers++
	dir := filepath.Join(b.dir, strconv.Itoa(b.meter.servers))
	extra := map[string]string{"tickTime": "2000", "preAllocSize": "65536", "maxSessionTimeout": "60000"}
	for k, v := range b.extra {
		extra[k] = v
	}
	jvm := []string{"-Xmx" + b.plan.heap}
	if !b.plan.ensemble {
		if err := os.Mkdir(dir, 0o755); err != nil {
			return err
		}
		s, err := target.Start(b.kind, dir, target.Options{JVM: jvm, Extra: extra, Reap: time.Minute})
		if err != nil {
			return err
		}
		b.servers, b.at, b.other = []*target.Server{s}, s.Addr, s.Addr
		return nil
	}
	extra["initLimit"], extra["syncLimit"] = "10", "5"
	e, err := target.NewEnsemble(dir, target.EnsembleOptions{
		Kinds: slices.Repeat([]target.Kind{b.kind}, members), JVM: jvm, Extra: extra})
	if err != nil {
		return err
	}
	b.servers = e.Servers
	if err := e.Begin(); err != nil {
		return err
	}
	leader, err := e.AwaitWhole(waitMax)
	if err != nil {
		return err
	}
	b.at, b.other = e.Servers[leader].Addr, e.Servers[(leader+1)%members].Addr
	return nil
}

func (b *bulk) end() {
	for _, r := range b.raws {
		r.conn.Close()
	}
	for _, s := range b.servers {
		s.Kill()
	}
}

// settle waits until writes take no longer than usual.
func (b *bulk) settle() error {
	c, err := zk.Connect(b.ctx, b.other, nil)
	if err != nil {
		return err
	}
	defer c.Close(context.WithoutCancel(b.ctx))
	for calm := 0; calm < 200; calm++ {
		began := time.Now()
		if err := c.Sync(b.ctx, "/"); err != nil {
			return err
		}
		if time.Since(began) > 20*time.Millisecond {
			calm = 0
		}
		<-time.After(probeEvery)
	}
	return nil
}

// longest returns the largest value, in ms, of a metric since the load began, over all
// servers.
func (b *bulk) longest(name string) (string, error) {
	longest := -1.0
	for _, s := range b.servers {
		text, err := s.Word("mntr")
		if err != nil {
			return "", err
		}
		for line := range strings.Lines(text) {
			if v, ok := strings.CutPrefix(line, name+"\t"); ok {
				ms, err := strconv.ParseFloat(strings.TrimSpace(v), 64)
				if err != nil {
					return "", err
				}
				longest = max(longest, ms)
			}
		}
	}
	if longest < 0 {
		return "not told", nil
	}
	return fmt.Sprintf("%.0f ms", longest), nil
}

// prober is the other client. It starts a write every probeEvery, whether or not earlier
// ones are answered.
type prober struct {
	client *zk.Client
	stop   context.CancelFunc
	done   chan struct{}
	mu     sync.Mutex
	took   []time.Duration
	err    error
}

func (b *bulk) probe() (*prober, error) {
	c, err := zk.Connect(b.ctx, b.other, nil)
	if err != nil {
		return nil, err
	}
	if _, _, err := c.Create(b.ctx, "/probed", nil); err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(b.ctx)
	pr := &prober{client: c, stop: stop, done: make(chan struct{})}
	go pr.run(ctx, b.ctx)
	return pr, nil
}

func (pr *prober) run(until, ctx context.Context) {
	defer close(pr.done)
	tick := time.NewTicker(probeEvery)
	defer tick.Stop()
	var writes sync.WaitGroup
	defer writes.Wait()
	for {
		select {
		case <-until.Done():
			return
		case <-tick.C:
		}
		began := time.Now()
		writes.Go(func() {
			_, err := pr.client.Set(ctx, "/probed", nil, zk.AnyVersion)
			pr.mu.Lock()
			defer pr.mu.Unlock()
			pr.took, pr.err = append(pr.took, time.Since(began)), errors.Join(pr.err, err)
		})
	}
}

// end waits for the replies to all writes.
func (pr *prober) end() error {
	pr.stop()
	<-pr.done
	pr.client.Detach()
	return pr.err
}

func (pr *prober) longest() time.Duration { return slices.Max(pr.took) }

func (pr *prober) above(limit time.Duration) (n int) {
	for _, d := range pr.took {
		if d > limit {
			n++
		}
	}
	return n
}

// multis lets another process send the multis. In this process, the clients that encode multis
// and decode results would take processor time from the client whose writes are measured.
func (b *bulk) multis() error {
	out, err := exec.CommandContext(b.ctx, os.Args[0], clientWord, "multis", b.at, "/m", strconv.Itoa(multiClients)).CombinedOutput()
	if err != nil {
		return fmt.Errorf("multis: %w\n%s", err, out)
	}
	return nil
}

// sendMultis lets n clients send transactions that create many znodes and delete them again.
func sendMultis(ctx context.Context, server, path string, n int) error {
	return together(ctx, server, n, func(c *zk.Client, i int) error {
		top := path + strconv.Itoa(i)
		if _, _, err := c.Create(ctx, top, nil); err != nil {
			return err
		}
		var ops []zk.Op
		for n := range multiOps / 2 {
			ops = append(ops, zk.CreateOp(top+"/"+strconv.FormatInt(int64(n), 36), nil))
		}
		for n := range multiOps / 2 {
			ops = append(ops, zk.DeleteOp(top+"/"+strconv.FormatInt(int64(n), 36), zk.AnyVersion))
		}
		for range multiRounds {
			if _, err := c.Multi(ctx, ops...); err != nil {
				return err
			}
		}
		return nil
	})
}

// together calls the function do in parallel with n clients of the loaded server.
func (b *bulk) together(n int, do func(c *zk.Client, i int) error) error {
	return together(b.ctx, b.at, n, do)
}

// together calls the function do in parallel with n clients of a server.
func together(ctx context.Context, server string, n int, do func(c *zk.Client, i int) error) error {
	var all sync.WaitGroup
	errs := make([]error, n)
	for i := range n {
		all.Go(func() {
			c, err := zk.Connect(ctx, server, nil)
			if err == nil {
				err = do(c, i)
				err = errors.Join(err, c.Close(context.WithoutCancel(ctx)))
			}
			errs[i] = err
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

// ephemeralBatch is the number of ephemerals that one multi creates.
const ephemeralBatch = 1000

// ephemeral returns the path of an ephemeral, with perDirectory of them in each directory.
func ephemeral(i, perDirectory int) string {
	return fmt.Sprintf("/e%06d/member-%06d", i/perDirectory, i)
}

// ephemerals returns a setup that gives one session many ephemerals.
func ephemerals(perDirectory int) func(*bulk) error {
	return func(b *bulk) error {
		c, err := zk.Connect(b.ctx, b.at, &zk.Options{SessionTimeout: time.Minute})
		if err != nil {
			return err
		}
		b.loaded = c
		for n := 0; n < b.plan.znodes/2; n += ephemeralBatch {
			var ops []zk.Op
			for i := n; i < n+ephemeralBatch; i++ {
				if i%perDirectory == 0 {
					ops = append(ops, zk.CreateOp(path.Dir(ephemeral(i, perDirectory)), nil))
				}
				ops = append(ops, zk.CreateOp(ephemeral(i, perDirectory), []byte("10.0.0.1:2181"), zk.Ephemeral))
			}
			if _, err := c.Multi(b.ctx, ops...); err != nil {
				return err
			}
		}
		return nil
	}
}

// watchedEphemerals also sets a data watch on each ephemeral, from other connections to the
// same server.
func (b *bulk) watchedEphemerals() error {
	if err := ephemerals(ephemeralBatch)(b); err != nil {
		return err
	}
	const share = 25_000 // watches per connection: as many as fit into a frame of 1 MiB
	for n := 0; n < b.plan.znodes/2; n += share {
		data := make([]string, min(share, b.plan.znodes/2-n))
		for i := range data {
			data[i] = ephemeral(n+i, ephemeralBatch)
		}
		r, err := dialRaw(b.at)
		if err != nil {
			return err
		}
		b.raws = append(b.raws, r)
		if err := r.watchFromNowOn(data); err != nil {
			return err
		}
	}
	for _, r := range b.raws {
		go r.drain()
	}
	return nil
}

func (b *bulk) endSession() error { return b.loaded.Close(b.ctx) }

// watchedPath returns the path of a watch. It is short, so that many fit into a frame.
func watchedPath(i int) string {
	s := strconv.FormatInt(int64(i), 36)
	return "/" + strings.Repeat("0", max(0, 5-len(s))) + s
}

// setWatches sets many watches on missing znodes, on one connection after the other.
func (b *bulk) setWatches() error { return b.watch(10, func(int) []string { return paths(0) }, nil) }

// dueWatches sets many watches that all fire at once.
func (b *bulk) dueWatches() error { return b.watch(10, nil, func(int) []string { return paths(0) }) }

// watched sets -znodes watches and keeps their connections.
func (b *bulk) watched() error {
	n := (b.plan.znodes + watchPaths - 1) / watchPaths
	return b.watch(n, func(i int) []string { return paths(i * watchPaths) }, nil)
}

func paths(from int) []string {
	all := make([]string, watchPaths)
	for i := range all {
		all[i] = watchedPath(from + i)
	}
	return all
}

// watch sends a setWatches on each of n connections: exist lists paths watched for their
// creation, data paths watched for changes.
func (b *bulk) watch(n int, exist, data func(i int) []string) error {
	for i := range n {
		r, err := dialRaw(b.at)
		if err != nil {
			return err
		}
		b.raws = append(b.raws, r)
		if err := r.setWatches(exist, data, i); err != nil {
			return err
		}
	}
	return nil
}

// fill creates -znodes znodes below one parent.
func (b *bulk) fill() error { return b.fillN(b.plan.znodes) }

func (b *bulk) fillLess() error { return b.fillN(b.plan.znodes / kazooShare) }

func (b *bulk) fillN(n int) error {
	c, err := zk.Connect(b.ctx, b.at, nil)
	if err != nil {
		return err
	}
	defer c.Close(context.WithoutCancel(b.ctx))
	if _, _, err := c.Create(b.ctx, filled, nil); err != nil {
		return err
	}
	return fill(b.ctx, b.at, filled, n)
}

// fillAndPurge fills the servers and removes all but their newest snapshots meanwhile: with
// the snapCount of this load they would fill the disk.
func (b *bulk) fillAndPurge() error {
	var purge sync.WaitGroup
	defer purge.Wait()
	ctx, stop := context.WithCancel(b.ctx)
	defer stop()
	purge.Go(func() {
		for ctx.Err() == nil {
			for _, s := range b.servers {
				files, _ := filepath.Glob(filepath.Join(s.Data, "version-2", "snapshot.*"))
				slices.SortFunc(files, func(x, y string) int { // the names have the zxid in hex without leading zeros, so sort by its value
					return cmp.Or(cmp.Compare(len(x), len(y)), strings.Compare(x, y))
				})
				for _, f := range files[:max(0, len(files)-snapshotsKept)] {
					_ = os.Remove(f) // a file that remains is removed a second later
				}
			}
			<-time.After(time.Second)
		}
	})
	return b.fill()
}

// filled is the parent of the znodes that fill creates.
const filled = "/filled"

// snapshots writes until several snapshots have followed each other.
func (b *bulk) snapshots() error {
	ctx, cancel := context.WithTimeout(b.ctx, snapshotTime)
	defer cancel()
	return b.together(8, func(c *zk.Client, i int) error {
		for n := 0; ctx.Err() == nil; n++ {
			at := fmt.Sprintf("%s/%06d", filled, (n*8+i)%max(1, b.plan.znodes/perParent))
			if _, err := c.Set(b.ctx, at, []byte("changed"), zk.AnyVersion); err != nil {
				return err
			}
		}
		return nil
	})
}

// words returns a load that sends four-letter words several times.
func words(all ...string) func(*bulk) error {
	return func(b *bulk) error {
		for _, word := range all {
			for range 5 {
				if _, err := target.Word(b.at, word); err != nil {
					return err
				}
			}
		}
		return nil
	}
}
