package main

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"bellwether/interop/target"
)

// hangLengths are the durations for which the leader's disk hangs, one after the other.
var hangLengths = []time.Duration{
	6 * time.Second, 8 * time.Second, 500 * time.Millisecond, 1200 * time.Millisecond, 1500 * time.Millisecond,
	2 * time.Second, 3 * time.Second, 4 * time.Second, 5 * time.Second, 8 * time.Second,
}

// Descriptions of the two scenarios: each duration in its own ensemble, and all durations
// in one ensemble, each on the server that leads at that time.
const (
	hangsOnce  = "disk of the leader of three hangs once"
	hangsAgain = "disk of the leader of three hangs again"
)

// hangAgain makes the leader's disk hang for different times. For each it shows the longest
// time without a write, for a client of the other servers and for one that was connected to
// the leader and may use any server, and the longest time in which no server reported that
// it leads.
func (f *ensemble) hangAgain(what string) error {
	lengths := [][]time.Duration{hangLengths}
	if what == hangsOnce {
		lengths = nil
		for _, length := range hangLengths {
			lengths = append(lengths, []time.Duration{length})
		}
	}
	for _, l := range lengths {
		if err := f.hangLeaders(what, l); err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
	}
	return nil
}

// hangLeaders starts an ensemble and makes the disk of its leader hang.
func (f *ensemble) hangLeaders(what string, lengths []time.Duration) error {
	disks, err := f.beginOnDisks(members, -1)
	if err != nil {
		return err
	}
	defer disks.End()
	defer f.end()
	if err := f.makeWritten(f.e.Addrs()); err != nil {
		return err
	}
	for _, length := range lengths {
		g, err := f.hangLeader(disks, length)
		if err != nil {
			return err
		}
		f.say(g.String(), "%s, for %v: longest time without a write for a client of the other servers, and for a client of any server; longest time without a leader", what, length)
	}
	return nil
}

// hangGaps holds the longest times during one hang, and whether another server led after
// it.
type hangGaps struct {
	healthy, any, leaderless time.Duration
	changed                  bool
}

func (g hangGaps) String() string {
	text := fmt.Sprintf("%d, %d; %d ms", g.healthy.Milliseconds(), g.any.Milliseconds(), g.leaderless.Milliseconds())
	if g.changed {
		text += ", another leads"
	}
	return text
}

// hangLeader makes the leader's disk hang once, and waits until all servers serve again.
func (f *ensemble) hangLeader(disks *target.Disks, length time.Duration) (g hangGaps, err error) {
	leader, err := f.e.AwaitWhole(waitMax)
	if err != nil {
		return g, err
	}
	var others []string
	for i, s := range f.e.Servers {
		if i != leader {
			others = append(others, s.Addr)
		}
	}
	healthy, err := f.client(strings.Join(others, ","))
	if err != nil {
		return g, err
	}
	defer healthy.Detach()
	any, err := f.clientAt(leader)
	if err != nil {
		return g, err
	}
	defer any.Detach()
	ctx, end := context.WithCancel(f.ctx)
	defer end()
	var all sync.WaitGroup
	all.Go(func() { g.healthy = gapUntil(ctx, healthy) })
	all.Go(func() { g.any = gapUntil(ctx, any) })
	all.Go(func() { g.leaderless = f.leaderlessUntil(ctx) })
	now := leader
	if err = disks.Freeze(leader); err == nil {
		<-time.After(length)
		err = disks.Thaw(leader)
	}
	if err == nil {
		now, err = f.e.AwaitWhole(waitMax)
	}
	g.changed = now != leader
	<-time.After(time.Second)
	end()
	all.Wait()
	return g, err
}

// leaderlessUntil asks all servers for their roles until ctx ends, and returns the longest
// time in which none reported that it leads.
func (f *ensemble) leaderlessUntil(ctx context.Context) (longest time.Duration) {
	const every = 10 * time.Millisecond
	began := time.Now()
	var led atomic.Int64 // the time since began at which a server last reported this
	var all sync.WaitGroup
	for _, s := range f.e.Servers {
		all.Go(func() {
			for ; ctx.Err() == nil; <-time.After(every) {
				if s.Role() == "leader" {
					led.Store(int64(time.Since(began)))
				}
			}
		})
	}
	for ; ctx.Err() == nil; <-time.After(every) {
		longest = max(longest, time.Since(began)-time.Duration(led.Load()))
	}
	all.Wait()
	return longest
}
