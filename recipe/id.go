package recipe

import (
	"context"
	"log/slog"

	"bellwether/internal/claim/value"
	"bellwether/zk"
)

// IDs generates numbers, starting at 1, and never generates a number twice. It reserves a block
// of numbers with one change of a counter. If a process does not use all numbers of a block,
// the rest stay unused. Its methods may be called from any goroutine.
type IDs struct {
	counter *Counter
	block   int64

	turn turn // makes concurrent calls of Next wait for one block; guards left
	left value.Numbers
}

// idBlock is the value of IDsOptions.Block that 0 stands for.
const idBlock = 100

// IDsOptions are the settings of IDs. A nil pointer means all defaults.
type IDsOptions struct {
	// Block is how many numbers each reservation takes. Default 100.
	Block int
	// ACL is given to each znode that is created. By default everybody may do everything.
	ACL zk.ACLs

	// Logger and Observer receive reports as described at ElectionOptions.
	Logger   *slog.Logger
	Observer func(Observation)
}

// NewIDs prepares a generator of numbers with the counter at path. The caller still owns the client.
func NewIDs(c *zk.Client, path string, o *IDsOptions) (*IDs, error) {
	opt := optionsOr(o)
	counter, err := NewCounter(c, path, &CounterOptions{ACL: opt.ACL, Logger: opt.Logger, Observer: opt.Observer})
	counter.v.cfg.Repeatable = true
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
	id, _ := d.left.Next() // a block has at least one number
	return id, nil
}

// Close removes the mark of the counter, a znode below it; see Value.
func (d *IDs) Close(ctx context.Context) error { return d.counter.Close(ctx) }
