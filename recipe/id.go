package recipe

import (
	"context"
	"errors"
	"fmt"

	"bellwether/zk"
)

// IDs gives out numbers that nobody else gets, from 1. It reserves a block of
// them by one change of a counter; what a process does not use of its block
// stays unused. Its methods may be called from any goroutine.
type IDs struct {
	counter *Counter
	block   int64

	turn       turn // who comes second waits for the first one's block
	next, last int64
}

// NewIDs prepares numbers from the counter at path, reserved block by block.
func NewIDs(c *zk.Client, path string, block int, acl zk.ACLs) (*IDs, error) {
	if block < 1 {
		return nil, fmt.Errorf("ids %s: a block of %d", path, block)
	}
	return &IDs{counter: NewCounter(c, path, DecimalCounter, acl), block: int64(block), turn: newTurn(), next: 1}, nil
}

// Next returns the next number. A block of which it is not known whether it
// was reserved is left unused.
func (d *IDs) Next(ctx context.Context) (int64, error) {
	if err := d.turn.take(ctx); err != nil {
		return 0, err
	}
	defer d.turn.give()
	for d.next > d.last {
		sum, err := d.counter.Add(ctx, d.block)
		if errors.Is(err, ErrOutcome) && ctx.Err() == nil && d.counter.v.c.Err() == nil {
			continue
		}
		if err != nil {
			return 0, err
		}
		d.next, d.last = sum-d.block+1, sum
	}
	d.next++
	return d.next - 1, nil
}

// Close removes what the IDs have left beside their counter.
func (d *IDs) Close(ctx context.Context) error { return d.counter.Close(ctx) }
