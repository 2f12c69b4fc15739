package bench

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"bellwether/recipe"
	"bellwether/zk"
)

// Elections measures how fast leadership passes between candidates that resign as soon as
// they lead.
type Elections struct {
	Connect    Connect
	Candidates int // each has its own session
	Warmup     time.Duration
	Duration   time.Duration
	Root       string // the election's path; it must not exist, and Run deletes it at the end
}

// Check returns an error if a field is out of range.
func (e Elections) Check() error {
	switch {
	case e.Candidates < 2 || e.Candidates > connectionsMax:
		return fmt.Errorf("candidates: %d, want 2 to %d", e.Candidates, connectionsMax)
	case e.Duration <= 0:
		return fmt.Errorf("duration: %v, want more than 0", e.Duration)
	}
	return nil
}

// Run runs the elections. In the Report, an operation is a handover, and its latency is
// the time from the start of a resignation until the next candidate knows that it leads.
func (e Elections) Run(ctx context.Context) (Report, error) {
	if err := e.Check(); err != nil {
		return Report{}, err
	}
	s := setting{e.Connect, e.Candidates, e.Root, e.clean}
	return s.use(ctx, func(clients []*zk.Client) (Report, error) { return e.drive(ctx, clients) })
}

// drive lets every client campaign until the time is over.
func (e Elections) drive(ctx context.Context, clients []*zk.Client) (Report, error) {
	bounded, cancel := context.WithTimeout(ctx, e.Warmup+e.Duration)
	defer cancel()
	b := stopwatch{counted: time.Now().Add(e.Warmup), took: newLatencies()}
	errs := make([]error, len(clients))
	var wg sync.WaitGroup
	for i, c := range clients {
		wg.Go(func() {
			if errs[i] = e.campaign(bounded, c, strconv.Itoa(i), &b); errs[i] != nil {
				cancel()
			}
		})
	}
	wg.Wait()
	elapsed := time.Since(b.counted)
	if err := errors.Join(append(errs, ctx.Err())...); err != nil {
		return Report{}, err
	}
	return reportOf("election", elapsed, b.took), nil
}

// campaign lets one candidate campaign and resign again and again until ctx ends.
func (e Elections) campaign(ctx context.Context, c *zk.Client, id string, b *stopwatch) error {
	election, err := recipe.NewElection(c, e.Root, id, nil)
	if err != nil {
		return err
	}
	for {
		h, err := election.Campaign(ctx)
		if err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return err
		}
		b.stop()
		if h.Lost() == nil {
			b.start()
		}
		if err := election.Resign(ctx); err != nil && ctx.Err() == nil {
			return err
		}
	}
}

// clean deletes the znodes that candidates have left.
func (e Elections) clean(ctx context.Context, c *zk.Client) error {
	names, _, err := c.Children(ctx, e.Root)
	for _, name := range names {
		err = errors.Join(err, remove(ctx, c, e.Root+"/"+name))
	}
	return err
}

// stopwatch measures handovers: one leader starts it, the next one stops it.
type stopwatch struct {
	counted time.Time // handovers that start before this time are not recorded
	took    *latencies

	mu    sync.Mutex
	begin time.Time // zero while no handover is in progress
}

func (b *stopwatch) start() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.begin = time.Now()
}

func (b *stopwatch) stop() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.begin.IsZero() && b.begin.After(b.counted) {
		b.took.record(time.Since(b.begin))
	}
	b.begin = time.Time{}
}
