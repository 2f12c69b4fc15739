package recipe

import (
	"context"
	"errors"
	"log/slog"

	"bellwether/internal/claim"
	"bellwether/zk"
)

// CounterFormat is how a Counter's znode holds the number: as [DecimalCounter], the
// zero value, or [BinaryCounter].
type CounterFormat = claim.CounterFormat

// The formats.
const (
	DecimalCounter CounterFormat = claim.DecimalCounter // digits, as kazoo's Counter
	BinaryCounter  CounterFormat = claim.BinaryCounter  // 8 bytes, as Curator's DistributedAtomicLong
)

// ErrCounterRange: the sum does not fit into 64 bits. Nothing was changed.
var ErrCounterRange = claim.ErrCounterRange

// Counter is a number that many clients add to. It counts nothing twice and
// loses nothing; see Value. Its methods may be called from any goroutine.
type Counter struct {
	v      *Value
	format CounterFormat
}

// CounterOptions are the settings of a Counter; nil is all defaults.
type CounterOptions struct {
	// Format of the number. Default DecimalCounter.
	Format CounterFormat
	// ACL of the znodes made, open to everybody by default.
	ACL zk.ACLs

	// Logger and Observer are those of ElectionOptions.
	Logger   *slog.Logger
	Observer func(Observation)
}

// NewCounter prepares a Counter at path, which begins with 0. The client
// stays the caller's.
func NewCounter(c *zk.Client, path string, o *CounterOptions) (*Counter, error) {
	var opt CounterOptions
	if o != nil {
		opt = *o
	}
	n := &Counter{format: opt.Format}
	var err error
	n.v, err = NewValue(c, path, &ValueOptions{Initial: n.format.Encode(0), ACL: opt.ACL, Logger: opt.Logger, Observer: opt.Observer})
	return n, err
}

// Get reads the number. What is no number gives a *DataError.
func (n *Counter) Get(ctx context.Context) (int64, error) {
	data, err := n.v.Get(ctx)
	if err != nil {
		return 0, err
	}
	i, err := n.format.Parse(data)
	return i, n.named(err)
}

// Add adds, and returns the sum. See Value.Update for its errors; what is no number
// gives a *DataError, and stays.
func (n *Counter) Add(ctx context.Context, delta int64) (sum int64, err error) {
	_, err = n.v.Update(ctx, func(old []byte) (data []byte, err error) {
		sum, data, err = n.format.Add(old, delta)
		if errors.Is(err, ErrCounterRange) {
			return nil, err
		}
		return data, n.named(err)
	})
	return sum, err
}

// named says whose data is no number.
func (n *Counter) named(err error) error {
	if err != nil {
		err = &DataError{Path: n.v.cfg.Path, Err: err}
	}
	return err
}

// Close removes what the Counter has left beside its number.
func (n *Counter) Close(ctx context.Context) error { return n.v.Close(ctx) }
