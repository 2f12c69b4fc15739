package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"bellwether/interop/target"
	"bellwether/zk"
)

// hungFor is how long a disk hangs in a scenario. If a gap lasts as long, its value is shown
// as a lower bound.
const hungFor = 30 * time.Second

// diskSize is large enough for the loads.
const diskSize = "4G"

// hungDisk describes a scenario: an ensemble, the disk that hangs, and what else happens.
type hungDisk struct {
	what    string
	members int
	// disk is the server whose disk hangs: its number, 0 for the leader, or -1 for a
	// follower.
	disk    int
	restart bool // the leader is then restarted
	load    bool // other clients meanwhile write large values
}

var hungDisks = []hungDisk{
	{what: "disk of server 5 of five hangs, the leader is restarted", members: 5, disk: 5, restart: true},
	{what: "disk of the leader of three hangs", members: 3},
	{what: "disk of the leader of three hangs, under load", members: 3, load: true},
	{what: "disk of a follower of three hangs", members: 3, disk: -1},
}

// hung measures ensembles with a disk that hangs: an ext4 image on a loop device, frozen by
// fsfreeze, which needs root or sudo.
func hung(ctx context.Context, kind target.Kind, p plan) ([]figure, error) {
	dir, err := os.MkdirTemp("", "bellwether-compare-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	if _, err := target.Binary(); err != nil {
		return nil, err
	}
	f := &ensemble{meter: &meter{ctx: ctx, kind: kind, plan: p, dir: dir}}
	for _, s := range hungDisks {
		if !strings.Contains(s.what, p.only) {
			continue
		}
		var gaps []time.Duration
		for range p.rounds {
			gap, err := f.hang(s)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", s.what, err)
			}
			gaps = append(gaps, gap)
		}
		text := spread(gaps)
		if gaps[len(gaps)-1] >= hungFor {
			text += fmt.Sprintf(" (the disk hung for %v)", hungFor)
		}
		f.say(text, "%s: longest time without a write, client of the other servers", s.what)
	}
	for _, what := range []string{hangsOnce, hangsAgain} {
		if strings.Contains(what, p.only) {
			if err := f.hangAgain(what); err != nil {
				return nil, err
			}
		}
	}
	return f.figures, nil
}

// hang runs a scenario once, with a new ensemble.
func (f *ensemble) hang(s hungDisk) (gap time.Duration, err error) {
	only := s.disk - 1 // the server whose disk can hang; negative: all disks can hang
	disks, err := f.beginOnDisks(s.members, only)
	if err != nil {
		return 0, err
	}
	defer disks.End()
	defer f.end()
	leader, err := f.ledByAnother(only)
	if err != nil {
		return 0, err
	}
	hangs, disk := only, 0
	switch s.disk {
	case 0:
		hangs, disk = leader, leader
	case -1:
		hangs = (leader + 1) % s.members
		disk = hangs
	}
	return f.longestHungGap(disks, disk, hangs, leader, s)
}

// beginOnDisks starts an ensemble whose disks can hang. If only is negative, all disks can,
// and server i has disk i. Otherwise just the disk of the server with the number only can
// hang. Both kinds of servers use their default timeouts.
func (f *ensemble) beginOnDisks(servers, only int) (*target.Disks, error) {
	n := servers
	if only >= 0 {
		n = 1
	}
	disks, err := target.StartDisks(n, diskSize)
	if err != nil {
		return nil, err
	}
	places := make([]target.Place, servers)
	for i := range n {
		places[max(i, only)].Data = filepath.Join(disks.Path(i), "data")
	}
	f.servers++
	f.e, err = target.NewEnsemble(filepath.Join(f.dir, strconv.Itoa(f.servers)), target.EnsembleOptions{
		Kinds: slices.Repeat([]target.Kind{f.kind}, servers), Places: places, JVM: []string{"-Xmx" + f.plan.heap},
		Extra: map[string]string{"tickTime": "2000", "initLimit": "10", "syncLimit": "5"},
	})
	if err == nil {
		err = f.e.Begin()
	}
	if err != nil {
		f.end()
		disks.End()
		return nil, err
	}
	return disks, nil
}

// makeWritten creates the znode that gapUntil writes.
func (f *ensemble) makeWritten(servers string) error {
	c, err := f.client(servers)
	if err != nil {
		return err
	}
	defer c.Detach()
	_, _, err = c.Create(f.ctx, "/written", nil)
	return err
}

// ledByAnother waits until a server other than this one leads.
func (f *ensemble) ledByAnother(than int) (leader int, err error) {
	for {
		leader, err = f.e.AwaitWhole(waitMax)
		if err != nil || leader != than {
			return leader, err
		}
		if err := f.e.Servers[than].Stop(); err != nil {
			return 0, err
		}
		if _, err := f.e.AwaitLeader(waitMax, than); err != nil {
			return 0, err
		}
		if err := f.e.Servers[than].Begin(); err != nil {
			return 0, err
		}
	}
}

// longestHungGap makes a disk hang for hungFor. It writes through the servers that neither
// use that disk nor are restarted.
func (f *ensemble) longestHungGap(disks *target.Disks, disk, hangs, leader int, scenario hungDisk) (time.Duration, error) {
	var others []string
	for i, s := range f.e.Servers {
		if i != hangs && (i != leader || !scenario.restart) {
			others = append(others, s.Addr)
		}
	}
	servers := strings.Join(others, ",")
	if err := f.makeWritten(servers); err != nil {
		return 0, err
	}
	c, err := f.client(servers)
	if err != nil {
		return 0, err
	}
	defer c.Detach()
	if err := disks.Freeze(disk); err != nil {
		return 0, err
	}
	defer func() { _ = disks.Thaw(disk) }() // if this fails, the removal of the disk thaws it
	ctx, cancel := context.WithTimeout(f.ctx, hungFor)
	defer cancel()
	if scenario.load {
		end, err := f.large(ctx, servers)
		if err != nil {
			return 0, err
		}
		defer end()
	}
	longest := make(chan time.Duration, 1)
	go func() { longest <- gapUntil(ctx, c) }()
	if scenario.restart {
		s := f.e.Servers[leader]
		if err := s.Stop(); err != nil {
			return 0, err
		}
		if err := s.Begin(); err != nil {
			return 0, err
		}
	}
	return <-longest, nil
}

// The load of a scenario: clients that write values of this size, for as long as the disks
// have space.
const (
	largeWriters = 16
	largeValue   = 900 << 10
	largeFor     = 6 * time.Second
)

// large puts a load on some servers for largeFor; end waits for its end.
func (f *ensemble) large(ctx context.Context, servers string) (end func(), err error) {
	ctx, cancel := context.WithTimeout(ctx, largeFor)
	var writers sync.WaitGroup
	for i := range largeWriters {
		c, err := f.client(servers)
		if err != nil {
			cancel()
			return nil, err
		}
		writers.Go(func() {
			defer c.Detach()
			path, data := fmt.Sprintf("/large-%d", i), make([]byte, largeValue)
			for ctx.Err() == nil {
				if _, err := c.Set(ctx, path, data, zk.AnyVersion); errors.Is(err, zk.ErrNoNode) {
					_, _, _ = c.Create(ctx, path, nil) // if this fails, the next set fails too
				}
			}
		})
	}
	return func() {
		writers.Wait()
		cancel()
	}, nil
}

// gapUntil writes until ctx ends and returns the longest time without an acknowledged
// write.
func gapUntil(ctx context.Context, c *zk.Client) time.Duration {
	last, longest := time.Now(), time.Duration(0)
	for ctx.Err() == nil {
		if _, err := c.Set(ctx, "/written", make([]byte, 100), zk.AnyVersion); err == nil {
			now := time.Now()
			last, longest = now, max(longest, now.Sub(last))
		}
	}
	return max(longest, time.Since(last))
}
