package recipe

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strconv"

	"bellwether/zk"
)

// CounterFormat is how a Counter's znode holds the number.
type CounterFormat int

// The formats.
const (
	DecimalCounter CounterFormat = iota // digits, as kazoo's Counter
	BinaryCounter                       // 8 bytes, as Curator's DistributedAtomicLong
)

// ErrCounterRange: the sum does not fit into 64 bits. Nothing was changed.
var ErrCounterRange = errors.New("the counter would leave the range of 64 bits")

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
	n.v, err = NewValue(c, path, &ValueOptions{Initial: n.encode(0), ACL: opt.ACL})
	return n, err
}

// Get reads the number.
func (n *Counter) Get(ctx context.Context) (int64, error) {
	data, err := n.v.Get(ctx)
	if err != nil {
		return 0, err
	}
	return n.decode(data)
}

// Add adds, and returns the sum. See Value.Update for its errors.
func (n *Counter) Add(ctx context.Context, delta int64) (sum int64, err error) {
	_, err = n.v.Update(ctx, func(old []byte) ([]byte, error) {
		was, err := n.decode(old)
		if err != nil {
			return nil, err
		}
		if delta > 0 && was > math.MaxInt64-delta || delta < 0 && was < math.MinInt64-delta {
			return nil, ErrCounterRange
		}
		sum = was + delta
		return n.encode(sum), nil
	})
	return sum, err
}

// Close removes what the Counter has left beside its number.
func (n *Counter) Close(ctx context.Context) error { return n.v.Close(ctx) }

func (n *Counter) encode(i int64) []byte {
	if n.format == BinaryCounter {
		return binary.BigEndian.AppendUint64(nil, uint64(i))
	}
	return strconv.AppendInt(nil, i, 10)
}

func (n *Counter) decode(data []byte) (int64, error) {
	if len(data) == 0 {
		return 0, nil // made by hand
	}
	if n.format == BinaryCounter {
		if len(data) != 8 {
			return 0, fmt.Errorf("counter %s: %d bytes, want 8", n.v.path, len(data))
		}
		return int64(binary.BigEndian.Uint64(data)), nil
	}
	i, err := strconv.ParseInt(string(data), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("counter %s: %w", n.v.path, err)
	}
	return i, nil
}
