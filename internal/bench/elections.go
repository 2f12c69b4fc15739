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
// they lead. The root is the election's path.
type Elections struct {
	Setting
	Candidates int // each has its own session
}

// Check returns an error if a field is out of range.
func (e Elections) Check() error {
	if err := between("candidates", e.Candidates, 2, connectionsMax); err != nil {
		return err
	}
	return e.check()
}

// Run runs the elections. Nobody resigns before all candidates have their bids; then the warm-up begins. In the
// Report, an operation is a handover, and its latency is the time from the start of a resignation until the next
// candidate knows that it leads.
func (e Elections) Run(ctx context.Context) ([]*Report, error) {
	if err := e.Check(); err != nil {
		return nil, err
	}
	return e.use(ctx, e.Candidates, func(clients []*zk.Client) ([]*Report, error) { return e.drive(ctx, clients) })
}

// drive lets every client campaign until the time is over.
func (e Elections) drive(ctx context.Context, clients []*zk.Client) ([]*Report, error) {
	bounded, cancel := context.WithCancel(ctx)
	defer cancel()
	b := stopwatch{took: newLatencies()}
	joined := make(chan struct{})
	errs := make([]error, len(clients))
	var wg sync.WaitGroup
	for i, c := range clients {
		wg.Go(func() {
			if errs[i] = e.campaign(bounded, c, strconv.Itoa(i), joined, &b); errs[i] != nil {
				cancel()
			}
		})
	}
	late := awaitBids(bounded, clients[0], e.Root, e.Candidates)
	close(joined)
	wait(bounded, e.Warmup)
	m := e.begin()
	b.count()
	wait(bounded, e.Duration)
	report := m.report("election", b.stopCounting())
	cancel()
	wg.Wait()
	if err := errors.Join(append(errs, late, ctx.Err())...); err != nil {
		return nil, err
	}
	return []*Report{report}, nil
}

// Until all candidates have their bids, an election waits for joinMax and looks every joinPause.
const (
	joinMax   = 5 * time.Minute
	joinPause = 20 * time.Millisecond
)

// awaitBids waits until n candidates have their bids and the first one has published itself, or ctx has ended.
func awaitBids(ctx context.Context, c *zk.Client, root string, n int) error {
	for end := time.Now().Add(joinMax); ctx.Err() == nil; wait(ctx, joinPause) {
		stat, _, err := c.Exists(ctx, root)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			return err
		case int(stat.NumChildren) > n: // the bids, and LEADER
			return nil
		case time.Now().After(end):
			return fmt.Errorf("%s has %d children after %v, want the bids of %d candidates and a leader", root, stat.NumChildren, joinMax, n)
		}
	}
	return nil
}

// wait waits until some time has passed or ctx has ended.
func wait(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// campaign lets one candidate campaign and resign again and again until ctx ends.
func (e Elections) campaign(ctx context.Context, c *zk.Client, id string, joined <-chan struct{}, b *stopwatch) error {
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
		select {
		case <-joined:
		case <-ctx.Done():
			return nil
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

// stopwatch measures handovers: one leader starts it, the next one stops it.
type stopwatch struct {
	mu       sync.Mutex
	took     *latencies
	counting bool
	begin    time.Time // zero while no handover is in progress that counts
}

// count makes handovers count that start from now on.
func (b *stopwatch) count() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.counting = true
}

// stopCounting returns the latencies of all handovers that have ended.
func (b *stopwatch) stopCounting() *latencies {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.counting, b.begin = false, time.Time{}
	return b.took
}

func (b *stopwatch) start() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.counting {
		b.begin = time.Now()
	}
}

func (b *stopwatch) stop() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.begin.IsZero() {
		b.took.record(time.Since(b.begin))
	}
	b.begin = time.Time{}
}
