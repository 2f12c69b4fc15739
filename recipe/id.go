package recipe

import (
	"context"
	"log/slog"

	"bellwether/internal/claim/value"
	"bellwether/zk"
)

// IDs generates numbers, from 1, none of which is generated twice. It reserves a block
// of numbers with one change of a counter; the numbers of a block that a process does
// not use stay unused. Its methods may be called from any goroutine.
type IDs struct {
	counter *Counter
	block   int64

	turn turn // who comes second waits for the first one's block
	left value.Numbers
}

// idBlock is IDsOptions.Block where it is 0.
const idBlock = 100

// IDsOptions are the settings of IDs; nil is all defaults.
type IDsOptions struct {
	// Block is how many numbers are reserved at a time. Default 100.
	Block int
	// ACL of the znodes made, open to everybody by default.
	ACL zk.ACLs

	// Logger and Observer are those of ElectionOptions.
	Logger   *slog.Logger
	Observer func(Observation)
}

// NewIDs prepares numbers from the counter at path. The caller still owns the client.
func NewIDs(c *zk.Client, path string, o *IDsOptions) (*IDs, error) {
	var opt IDsOptions
	if o != nil {
		opt = *o
	}
	counter, err := NewCounter(c, path, &CounterOptions{ACL: opt.ACL, Logger: opt.Logger, Observer: opt.Observer})
	counter.v.cfg.Anew = true
	return &IDs{counter: counter, block: int64(orDefault(opt.Block, idBlock)), turn: newTurn()}, err
}

// Next returns the next number. If it is not known whether a block was reserved, the
// block stays unused.
func (d *IDs) Next(ctx context.Context) (int64, error) {
	if err := d.turn.take(ctx); err != nil {
		return 0, err
	}
	defer d.turn.give()
	if id, ok := d.left.Next(); ok {
		return id, nil
	}
	sum, err := d.counter.Add(ctx, d.block)
	if err != nil {
		return 0, err
	}
	d.left.Reserved(sum, d.block)
	id, _ := d.left.Next() // a block has one at least
	return id, nil
}

// Close removes the znode that the IDs have created beside their counter.
func (d *IDs) Close(ctx context.Context) error { return d.counter.Close(ctx) }
