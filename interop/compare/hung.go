package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"bellwether/interop/target"
	"bellwether/zk"
)

// hungFor is how long a disk hangs in a scenario. A gap that lasts as long is shown
// as longer than that.
const hungFor = 30 * time.Second

// hungDisk is a scenario: an ensemble, whose disk hangs, and what happens then.
type hungDisk struct {
	what    string
	members int
	// disk is the server whose disk hangs: its number, or 0 for the leader and -1
	// for a follower.
	disk    int
	restart bool // the leader is restarted then
	load    bool // other clients write large values meanwhile
}

var hungDisks = []hungDisk{
	{what: "disk of server 5 of five hangs, the leader is restarted", members: 5, disk: 5, restart: true},
	{what: "disk of the leader of three hangs", members: 3},
	{what: "disk of the leader of three hangs, under load", members: 3, load: true},
	{what: "disk of a follower of three hangs", members: 3, disk: -1},
}

// hung takes the figures of ensembles with a disk that hangs: fsfreeze lets an ext4
// image behind a loop device hang, which needs root or sudo.
func hung(ctx context.Context, kind target.Kind, p plan) ([]figure, error) {
	dir, err := os.MkdirTemp("", "bellwether-compare-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	if _, err := target.Binary(); err != nil {
		return nil, err
	}
	f := &fleet{meter: &meter{ctx: ctx, kind: kind, plan: p, dir: dir}}
	for _, s := range hungDisks {
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
	return f.figures, nil
}

// hang plays a scenario once, in a new ensemble.
func (f *fleet) hang(s hungDisk) (gap time.Duration, err error) {
	f.servers++
	dir := filepath.Join(f.dir, strconv.Itoa(f.servers))
	places := make([]target.Place, s.members)
	disks := make([]*frozenDisk, s.members)
	for i := range places {
		if s.disk > 0 && i != s.disk-1 {
			continue
		}
		if disks[i], err = makeDisk(filepath.Join(dir, fmt.Sprint("disk", i+1))); err != nil {
			return 0, err
		}
		defer disks[i].remove()
		places[i].Data = filepath.Join(disks[i].dir, "data")
	}
	f.e, err = target.NewEnsemble(dir, target.EnsembleOptions{
		Kinds: slices.Repeat([]target.Kind{f.kind}, s.members), Places: places, JVM: []string{"-Xmx" + f.plan.heap},
		Extra: map[string]string{"tickTime": "2000", "initLimit": "10", "syncLimit": "5"},
	})
	if err != nil {
		return 0, err
	}
	defer f.end()
	if err := f.e.Begin(); err != nil {
		return 0, err
	}
	leader, err := f.ledByAnother(s.disk - 1)
	if err != nil {
		return 0, err
	}
	hangs := s.disk - 1
	switch s.disk {
	case 0:
		hangs = leader
	case -1:
		hangs = (leader + 1) % s.members
	}
	return f.longestHungGap(disks[hangs], hangs, leader, s)
}

// ledByAnother waits until a server leads that is not this one.
func (f *fleet) ledByAnother(than int) (leader int, err error) {
	for {
		leader, err = f.e.AwaitWhole(patience)
		if err != nil || leader != than {
			return leader, err
		}
		if err := f.e.Servers[than].Stop(); err != nil {
			return 0, err
		}
		if _, err := f.e.AwaitLeader(patience, than); err != nil {
			return 0, err
		}
		if err := f.e.Servers[than].Begin(); err != nil {
			return 0, err
		}
	}
}

// longestHungGap lets a disk hang for hungFor and writes through the servers that
// neither have it nor are restarted.
func (f *fleet) longestHungGap(disk *frozenDisk, hangs, leader int, scenario hungDisk) (time.Duration, error) {
	var others []string
	for i, s := range f.e.Servers {
		if i != hangs && (i != leader || !scenario.restart) {
			others = append(others, s.Addr)
		}
	}
	c, err := f.client(strings.Join(others, ","))
	if err != nil {
		return 0, err
	}
	defer c.Detach()
	if _, _, err := c.Create(f.ctx, "/written", nil); err != nil {
		return 0, err
	}
	if err := disk.freeze(); err != nil {
		return 0, err
	}
	defer disk.thaw()
	ctx, cancel := context.WithTimeout(f.ctx, hungFor)
	defer cancel()
	if scenario.load {
		end, err := f.large(ctx, strings.Join(others, ","))
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

// The load of a scenario: clients that write values of this size, for so long that
// the disks have room for it.
const (
	largeWriters = 16
	largeValue   = 900 << 10
	largeFor     = 6 * time.Second
)

// large loads some servers for largeFor; end waits for that.
func (f *fleet) large(ctx context.Context, servers string) (end func(), err error) {
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
					_, _, _ = c.Create(ctx, path, nil) // the next set shows whether it is there
				}
			}
		})
	}
	return func() {
		writers.Wait()
		cancel()
	}, nil
}

// gapUntil writes until ctx ends and returns the longest time without an
// acknowledged write.
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

// frozenDisk is a file system that can be frozen.
type frozenDisk struct{ dir string }

// makeDisk makes and mounts one.
func makeDisk(dir string) (*frozenDisk, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	image := dir + ".img"
	if err := os.WriteFile(image, nil, 0o644); err != nil {
		return nil, err
	}
	if err := os.Truncate(image, 4<<30); err != nil {
		return nil, err
	}
	for _, cmd := range [][]string{
		{"mkfs.ext4", "-q", image}, {"mount", "-o", "loop", image, dir}, {"chown", fmt.Sprint(os.Getuid()), dir},
	} {
		if err := asRoot(cmd...); err != nil {
			return nil, err
		}
	}
	return &frozenDisk{dir}, nil
}

func (d *frozenDisk) freeze() error { return asRoot("fsfreeze", "-f", d.dir) }

// thaw ends freeze; one that was not frozen is left as it is.
func (d *frozenDisk) thaw() { _ = asRoot("fsfreeze", "-u", d.dir) }

func (d *frozenDisk) remove() {
	d.thaw()
	if err := asRoot("umount", d.dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
}

// asRoot runs a command as root.
func asRoot(args ...string) error {
	if os.Getuid() != 0 {
		args = append([]string{"sudo", "-n"}, args...)
	}
	if out, err := exec.Command(args[0], args[1:]...).CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", strings.Join(args, " "), err, out)
	}
	return nil
}
