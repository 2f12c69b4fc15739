package bench

import (
	"context"
	"runtime"
	"sync"
	"time"
)

// pauseMin is the shortest time without a step of any loop that counts as a pause.
const pauseMin = time.Millisecond

// pause is a time in which nothing ran, as durations since the beginning of the measurement.
type pause struct{ from, to time.Duration }

// pauses measures for how long this machine stops as a whole while all its cores and its disk are busy. A host may limit the
// processor time of a virtual machine, and count that of the disk with it: each time the limit is reached, nothing runs, whatever
// the program. A request that is under way then waits, so the highest percentiles of all servers contain these pauses.
func (c Ceiling) pauses(ctx context.Context) (*Report, error) {
	log, err := c.newLog(1)
	if err != nil {
		return nil, err
	}
	defer log.remove()
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(runtime.NumCPU() + 1)) // so that the loops leave the fsyncs their turns
	loops, end := context.WithCancel(ctx)
	defer end()
	busy := make([]*watchedLoop, runtime.NumCPU())
	m := c.setting().begin()
	began := time.Now()
	var wg sync.WaitGroup
	for i := range busy {
		busy[i] = &watchedLoop{began: began}
		wg.Go(func() { busy[i].run(loops) })
	}
	err = log.append(ctx, c.Warmup+c.Duration, newLatencies())
	end()
	wg.Wait()
	if err != nil {
		return nil, err
	}
	took := newLatencies()
	var sum time.Duration
	for _, p := range common(busy) {
		if p.from < c.Warmup {
			continue
		}
		took.record(p.to - p.from)
		sum += p.to - p.from
	}
	r := m.report("ceiling: pauses of the machine", took)
	r.Elapsed, r.ClientCPU = c.Duration, 0 // the loops take what there is
	r.Figures = []Figure{{"% of the time", 100 * sum.Seconds() / c.Duration.Seconds()}}
	return r, nil
}

// watchedLoop keeps a core busy and notes when it did not run.
type watchedLoop struct {
	began  time.Time
	pauses []pause
}

// run looks at the clock until ctx ends. It has a thread of its own, so that each loop can get a core.
func (l *watchedLoop) run(ctx context.Context) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for last := time.Since(l.began); ctx.Err() == nil; {
		now := time.Since(l.began)
		if now-last >= pauseMin {
			l.pauses = append(l.pauses, pause{last, now})
		}
		last = now
	}
}

// common returns the pauses that all loops had at the same time. One loop alone also pauses when its core does something else.
func common(loops []*watchedLoop) []pause {
	all := loops[0].pauses
	for _, l := range loops[1:] {
		var both []pause
		a, b := all, l.pauses
		for len(a) > 0 && len(b) > 0 {
			p := pause{max(a[0].from, b[0].from), min(a[0].to, b[0].to)}
			if p.to-p.from >= pauseMin {
				both = append(both, p)
			}
			if a[0].to < b[0].to {
				a = a[1:]
			} else {
				b = b[1:]
			}
		}
		all = both
	}
	return all
}
