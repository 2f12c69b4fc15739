package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync/atomic"
	"syscall"
	"time"

	"bellwether/interop/target"
	"bellwether/zk"
)

const (
	members   = 3                // servers of the ensemble
	idleCount = 4                // idle clients per server
	waitMax   = 60 * time.Second // bounds every wait
	syncs     = 500              // fsync calls that are measured
)

// departures are the ways in which a leader fails.
var departures = []struct {
	what   string
	signal syscall.Signal
}{
	{"kill -9", syscall.SIGKILL},
	{"SIGTERM", syscall.SIGTERM},
	{"SIGSTOP", syscall.SIGSTOP},
}

// failover measures an ensemble of three servers of one kind.
func failover(ctx context.Context, kind target.Kind, p plan) ([]figure, error) {
	dir, err := os.MkdirTemp("", "bellwether-compare-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	f := &ensemble{meter: &meter{ctx: ctx, kind: kind, plan: p, dir: dir}}
	defer f.end()
	if _, err := target.Binary(); err != nil { // so that no start includes the build
		return nil, err
	}
	for _, step := range []func() error{f.coldStarts, f.writes, f.departures, f.disk} {
		if err := step(); err != nil {
			return nil, err
		}
	}
	return f.figures, nil
}

// ensemble measures one ensemble.
type ensemble struct {
	*meter
	e    *target.Ensemble
	path string // the znode that is written
}

// begin starts a new ensemble and returns when a write was acknowledged.
func (f *ensemble) begin() (time.Duration, error) {
	f.end()
	f.servers++
	extra := map[string]string{"tickTime": "2000", "initLimit": "10", "syncLimit": "5", "preAllocSize": "65536"}
	maps.Copy(extra, f.extra)
	var err error
	f.e, err = target.NewEnsemble(filepath.Join(f.dir, strconv.Itoa(f.servers)), target.EnsembleOptions{
		Kinds: slices.Repeat([]target.Kind{f.kind}, members),
		JVM:   []string{"-Xmx" + f.plan.heap},
		Extra: extra,
	})
	if err != nil {
		return 0, err
	}
	began := time.Now()
	if err := f.e.Begin(); err != nil {
		return 0, err
	}
	c, err := f.client(f.e.Addrs())
	if err != nil {
		return 0, err
	}
	defer c.Close(context.WithoutCancel(f.ctx))
	f.path = "/written"
	_, _, err = c.Create(f.ctx, f.path, nil)
	return time.Since(began), err
}

func (f *ensemble) end() {
	if f.e != nil {
		f.e.Kill()
		f.e = nil
	}
}

// client connects to the servers.
func (f *ensemble) client(servers string) (*zk.Client, error) {
	ctx, cancel := context.WithTimeout(f.ctx, waitMax)
	defer cancel()
	return zk.Connect(ctx, servers, nil)
}

// clientAt connects to one server; the client may use any server afterwards.
func (f *ensemble) clientAt(server int) (*zk.Client, error) {
	c, err := f.client(f.e.Servers[server].Addr)
	if err != nil {
		return nil, err
	}
	return c, c.SetServers(f.e.Addrs())
}

// coldStarts starts all servers at once with empty directories.
func (f *ensemble) coldStarts() error {
	var took []time.Duration
	for range f.plan.rounds {
		d, err := f.begin()
		if err != nil {
			return err
		}
		took = append(took, d)
	}
	f.say(spread(took), "time from exec of three empty servers to the first write")
	return nil
}

// writes puts a load of writes on the ensemble of the last start, through all servers.
func (f *ensemble) writes() error {
	if _, err := f.e.AwaitWhole(waitMax); err != nil {
		return err
	}
	for _, load := range loads {
		if load.kind != "write" {
			continue
		}
		args := []string{"bench", load.kind, "--server", f.e.Addrs(), "-o", "json",
			"--connections", strconv.Itoa(load.connections), "--outstanding", strconv.Itoa(load.outstanding),
			"--warmup", f.plan.warmup.String(), "--duration", f.plan.duration.String()}
		r, err := f.bench(args)
		if err != nil {
			return err
		}
		f.say(fmt.Sprintf("%.0f/s, p50 %d, p99 %d, p99.9 %d µs", r.PerSecond, r.P50, r.P99, r.P999),
			"write, three servers, %d connections, %d in flight on each", load.connections, load.outstanding)
	}
	return nil
}

// departures makes leaders fail in each way, several times.
func (f *ensemble) departures() error {
	var sent []int64
	for _, d := range departures {
		var survivor, orphan []time.Duration
		var dropped []int64
		for range f.plan.rounds {
			r, err := f.depart(d.signal)
			if err != nil {
				return fmt.Errorf("%s: %w", d.what, err)
			}
			survivor, orphan = append(survivor, r.survivor), append(orphan, r.orphan)
			dropped, sent = append(dropped, r.dropped), append(sent, r.sent...)
		}
		f.say(spread(survivor), "%s of the leader: time without a write, client of another server", d.what)
		f.say(spread(orphan), "%s of the leader: time without a write, client of the leader", d.what)
		f.say(counts(dropped)+fmt.Sprintf(" of %d", (members-1)*idleCount), "%s of the leader: connections of other servers dropped", d.what)
	}
	f.say(counts(sent), "notifications sent by a server in an election")
	return nil
}

// round is the measurement of one failure of the leader.
type round struct {
	survivor, orphan time.Duration // longest time without an acknowledged write, for a client of another server and of the leader
	dropped          int64         // lost connections among the idle connections of the other servers
	sent             []int64       // notifications that each of the other servers sent in each election
}

// depart sends the leader a signal, measures, and brings the ensemble back.
func (f *ensemble) depart(signal syscall.Signal) (r round, err error) {
	leader, err := f.e.AwaitWhole(waitMax)
	if err != nil {
		return r, err
	}
	other := (leader + 1) % members
	writers := []*zk.Client{}
	for _, server := range []int{other, leader} {
		c, err := f.clientAt(server)
		if err != nil {
			return r, err
		}
		defer c.Detach()
		writers = append(writers, c)
	}
	idle, err := f.connectIdle(leader)
	if err != nil {
		return r, err
	}
	defer idle.end()
	began, over := time.Now(), make(chan struct{})
	if err := f.e.Servers[leader].Signal(signal); err != nil {
		return r, err
	}
	gaps := make([]chan time.Duration, len(writers))
	for i, c := range writers {
		gaps[i] = make(chan time.Duration, 1)
		go func() { gaps[i] <- f.longestGap(c, began, over) }()
	}
	_, err = f.e.AwaitLeader(waitMax, leader)
	close(over)
	r.survivor, r.orphan = <-gaps[0], <-gaps[1]
	if err != nil {
		return r, err
	}
	if r.survivor == 0 || r.orphan == 0 {
		return r, errors.New("no write was acknowledged")
	}
	r.dropped = idle.dropped.Load()
	if r.sent, err = f.notifications(leader, began); err != nil {
		return r, err
	}
	return r, f.mend(leader, signal)
}

// mend brings the old leader back.
func (f *ensemble) mend(leader int, signal syscall.Signal) error {
	s := f.e.Servers[leader]
	if signal == syscall.SIGSTOP {
		if err := s.Signal(syscall.SIGCONT); err != nil {
			return err
		}
		// Until it notices that it was stopped, two servers report that they lead.
		for end := time.Now().Add(waitMax); s.Role() == "leader" && time.Now().Before(end); {
			<-time.After(10 * time.Millisecond)
		}
	} else {
		if err := s.Stop(); err != nil && !errors.Is(err, os.ErrProcessDone) {
			return err
		}
		if err := s.Begin(); err != nil {
			return err
		}
	}
	_, err := f.e.AwaitWhole(waitMax)
	return err
}

// longestGap writes until a write has succeeded after over, and returns the longest time
// without an acknowledged write since began; 0 if no write succeeds. A server that was asked
// to stop still answers for a moment.
func (f *ensemble) longestGap(c *zk.Client, began time.Time, over <-chan struct{}) time.Duration {
	ctx, cancel := context.WithTimeout(f.ctx, waitMax)
	defer cancel()
	last, longest := began, time.Duration(0)
	for ctx.Err() == nil {
		after := false
		select {
		case <-over:
			after = true
		default:
		}
		if _, err := c.Set(ctx, f.path, nil, zk.AnyVersion); err != nil {
			continue
		}
		now := time.Now()
		last, longest = now, max(longest, now.Sub(last))
		if after {
			return longest
		}
	}
	return 0
}

// idleClients is the set of idle clients of the remaining servers.
type idleClients struct {
	clients []*zk.Client
	stop    context.CancelFunc
	dropped atomic.Int64
}

func (f *ensemble) connectIdle(leader int) (*idleClients, error) {
	ctx, stop := context.WithCancel(f.ctx)
	o := &idleClients{stop: stop}
	for server := range f.e.Servers {
		if server == leader {
			continue
		}
		for range idleCount {
			c, err := f.clientAt(server)
			if err != nil {
				o.end()
				return nil, err
			}
			o.clients = append(o.clients, c)
			go o.watch(ctx, c)
		}
	}
	return o, nil
}

// watch records the first lost connection of a client.
func (o *idleClients) watch(ctx context.Context, c *zk.Client) {
	for s := range c.States(ctx) {
		if s.State != zk.Connected {
			o.dropped.Add(1)
			return
		}
	}
}

func (o *idleClients) end() {
	o.stop()
	for _, c := range o.clients {
		c.Detach()
	}
}

// notifications returns how many notifications each remaining server has sent in each
// election since a time. Servers that do not report this have none.
func (f *ensemble) notifications(gone int, since time.Time) ([]int64, error) {
	var all []int64
	for i, s := range f.e.Servers {
		if i == gone || f.kind != target.Bellwether {
			continue
		}
		text, err := s.Word("elog")
		if err != nil {
			return nil, err
		}
		var elections []struct {
			Began time.Time `json:"began"`
			Sent  int64     `json:"sent"`
		}
		if err := json.Unmarshal([]byte(text), &elections); err != nil {
			return nil, err
		}
		for _, e := range elections {
			if e.Began.After(since) {
				all = append(all, e.Sent)
			}
		}
	}
	return all, nil
}

// disk measures how long one fsync takes on the servers' disk.
func (f *ensemble) disk() error {
	file, err := os.Create(filepath.Join(f.dir, "synced"))
	if err != nil {
		return err
	}
	defer file.Close()
	var took []time.Duration
	for range syncs {
		if _, err := file.Write(make([]byte, 4<<10)); err != nil {
			return err
		}
		began := time.Now()
		if err := syscall.Fdatasync(int(file.Fd())); err != nil {
			return err
		}
		took = append(took, time.Since(began))
	}
	f.say(spread(took), "fdatasync of 4 KiB appended, on this disk")
	return nil
}

// spread shows the minimum, the median and the maximum of durations.
func spread(took []time.Duration) string {
	m := median(took)
	unit, name := time.Millisecond, "ms"
	if m < unit {
		unit, name = time.Microsecond, "µs"
	}
	return fmt.Sprintf("min %d, median %d, max %d %s", took[0]/unit, m/unit, took[len(took)-1]/unit, name)
}

// counts is like spread, but for numbers; an empty list is shown as a dash.
func counts(n []int64) string {
	if len(n) == 0 {
		return "-"
	}
	m := median(n)
	return fmt.Sprintf("min %d, median %d, max %d", n[0], m, n[len(n)-1])
}
