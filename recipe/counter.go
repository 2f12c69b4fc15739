package recipe

import (
	"context"
	"errors"
	"log/slog"

	"bellwether/internal/claim/value"
	"bellwether/zk"
)

// CounterFormat says how the znode of a Counter holds the number. The zero value is
// DecimalCounter.
type CounterFormat = value.CounterFormat

// The formats.
const (
	// DecimalCounter holds the number as decimal digits, like kazoo's Counter.
	DecimalCounter CounterFormat = value.DecimalCounter
	// BinaryCounter holds the number as 8 bytes, like Curator's DistributedAtomicLong.
	BinaryCounter CounterFormat = value.BinaryCounter
)

// ErrCounterRange says that the sum does not fit into 64 bits. The number was not changed.
var ErrCounterRange = value.ErrCounterRange

// Counter is a number to which many clients add. Like Value it carries out each change once.
// Its methods may be called from any goroutine.
type Counter struct {
	v      *Value
	format CounterFormat
}

// CounterOptions are the settings of a Counter. A nil pointer means all defaults.
type CounterOptions struct {
	// Format is how the znode holds the number. Default DecimalCounter.
	Format CounterFormat
	// ACL is given to each znode that the Counter creates. By default everybody may do everything.
	ACL zk.ACLs

	// Logger and Observer receive reports as described at ElectionOptions.
	Logger   *slog.Logger
	Observer func(Observation)
}

// NewCounter prepares a Counter at path. The number starts at 0. The caller still owns the
// client.
func NewCounter(c *zk.Client, path string, o *CounterOptions) (*Counter, error) {
	opt := optionsOr(o)
	n := &Counter{format: opt.Format}
	var err error
	n.v, err = NewValue(c, path, &ValueOptions{Initial: value.FormatCounter(n.format, 0), ACL: opt.ACL, Logger: opt.Logger, Observer: opt.Observer})
	return n, err
}

// Get returns the number. If the znode does not hold a number, Get returns a *DataError.
func (n *Counter) Get(ctx context.Context) (int64, error) {
	data, err := n.v.Get(ctx)
	if err != nil {
		return 0, err
	}
	i, err := value.ParseCounter(n.format, data)
	return i, n.named(err)
}

// Add adds delta and returns the sum. Value.Update describes its errors. If the znode
// does not hold a number, Add returns a *DataError and does not change the znode.
func (n *Counter) Add(ctx context.Context, delta int64) (sum int64, err error) {
	_, err = n.v.Update(ctx, func(old []byte) (data []byte, err error) {
		sum, data, err = value.AddCounter(n.format, old, delta)
		if errors.Is(err, ErrCounterRange) {
			return nil, err
		}
		return data, n.named(err)
	})
	return sum, err
}

// named wraps an error about the data in a *DataError with the path of the znode.
func (n *Counter) named(err error) error {
	if err != nil {
		err = &DataError{Path: n.v.cfg.Path, Err: err}
	}
	return err
}

// Close removes the mark of the Counter, a znode below the number; see Value.
func (n *Counter) Close(ctx context.Context) error { return n.v.Close(ctx) }
