package bench

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"bellwether/recipe"
	"bellwether/zk"
)

// Departures measures how leadership passes on in an election with many candidates, of which only the first ones come to
// lead. The others have a connection, a session and a bid, but no client library, so that this process can hold very many of
// them. The Raw of the Setting opens them; its timeout must be longer than the measurement.
type Departures struct {
	Setting
	Candidates int // all of them
	Leaders    int // how many of them lead, one after the other
}

// Check returns an error if a field is out of range.
func (d Departures) Check() error {
	if d.Raw == nil {
		return errors.New("departures: want connections without the client library for the candidates that only wait")
	}
	return firstOf(between("candidates", d.Candidates, 2, connectionsMax), between("leaders", d.Leaders, 2, d.Candidates), checkFiles(d.Candidates))
}

// crowdName is how the bids of the waiting candidates begin: as those of package recipe do.
var crowdName = strings.Repeat("0", 32) + "-n_"

// Run lets all candidates join, and then each leader resign once, except for the last one. In the Report, an operation is a
// departure, and its latency is the time from the start of the resignation until the next candidate knows that it leads. Run
// uses neither Warmup nor Duration.
func (d Departures) Run(ctx context.Context) ([]*Report, error) {
	if err := d.Check(); err != nil {
		return nil, err
	}
	d.Warmup = 0
	return d.use(ctx, d.Leaders, func(clients []*zk.Client) ([]*Report, error) { return d.drive(ctx, clients) })
}

func (d Departures) drive(ctx context.Context, clients []*zk.Client) ([]*Report, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	b := stopwatch{took: newLatencies()}
	joined, over := make(chan struct{}), make(chan struct{})
	var led atomic.Int64
	last := func() bool { return led.Add(1) == int64(len(clients)) }
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel(nil)
	for i, c := range clients {
		wg.Go(func() {
			if err := d.leadOnce(ctx, c, strconv.Itoa(i), joined, over, last, &b); err != nil {
				cancel(err)
			}
		})
	}
	if err := awaitBids(ctx, clients[0], d.Root, len(clients)); err != nil {
		return nil, err
	}
	end, err := d.crowd(ctx)
	defer end()
	if err != nil {
		return nil, err
	}
	joinedStat, _, err := clients[0].Exists(ctx, d.Root)
	if err != nil {
		return nil, err
	}
	b.count()
	m := d.begin()
	close(joined)
	select {
	case <-over:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	r := m.report("departures", b.stopCounting())
	r.Figures = []Figure{{"bids at the beginning", float64(joinedStat.NumChildren - 1)}} // without LEADER
	return []*Report{r}, nil
}

// crowd lets the candidates join that only wait. The caller must call end, also after an error.
func (d Departures) crowd(ctx context.Context) (end func(), err error) {
	n := d.Candidates - d.Leaders
	if n == 0 {
		return func() {}, nil
	}
	_, end, err = Abandon{Setting: d.Setting, Sessions: n, Ephemerals: true, Name: crowdName, Hold: true}.Run(ctx)
	return end, err
}

// leadOnce lets one candidate wait until it leads, and then resign once all have joined. The last one closes over instead.
func (d Departures) leadOnce(ctx context.Context, c *zk.Client, id string, joined <-chan struct{}, over chan<- struct{}, last func() bool, b *stopwatch) error {
	election, err := recipe.NewElection(c, d.Root, id, nil)
	if err != nil {
		return err
	}
	if _, err := election.Campaign(ctx); err != nil {
		if ctx.Err() != nil {
			return nil // it has not led when the measurement ends with an error
		}
		return err
	}
	b.stop()
	select {
	case <-joined:
	case <-ctx.Done():
		return nil
	}
	if last() {
		close(over)
		return nil
	}
	b.start()
	if err := election.Resign(ctx); err != nil && ctx.Err() == nil {
		return err
	}
	return nil
}
