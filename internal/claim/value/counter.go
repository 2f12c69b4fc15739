package value

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strconv"
)

// CounterFormat is the encoding of a counter in its znode.
type CounterFormat int

// The formats.
const (
	DecimalCounter CounterFormat = iota // decimal digits, as in kazoo's Counter
	BinaryCounter                       // 8 bytes, as in Curator's DistributedAtomicLong
)

// ErrCounterRange means that the sum does not fit into 64 bits. The counter was not changed.
var ErrCounterRange = errors.New("the counter would leave the range of 64 bits")

// FormatCounter returns the data of the znode.
func FormatCounter(f CounterFormat, i int64) []byte {
	if f == BinaryCounter {
		return binary.BigEndian.AppendUint64(nil, uint64(i))
	}
	return strconv.AppendInt(nil, i, 10)
}

// ParseCounter parses the data of a znode. Empty data, of a znode that was created by hand, is 0.
func ParseCounter(f CounterFormat, data []byte) (int64, error) {
	switch {
	case len(data) == 0:
		return 0, nil
	case f != BinaryCounter:
		return strconv.ParseInt(string(data), 10, 64)
	case len(data) != 8:
		return 0, fmt.Errorf("a binary counter has 8 bytes, not %d", len(data))
	}
	return int64(binary.BigEndian.Uint64(data)), nil
}

// AddCounter returns the sum of old and delta, and its encoding.
func AddCounter(f CounterFormat, old []byte, delta int64) (sum int64, data []byte, err error) {
	was, err := ParseCounter(f, old)
	switch {
	case err != nil:
		return 0, nil, err
	case delta > 0 && was > math.MaxInt64-delta, delta < 0 && was < math.MinInt64-delta:
		return 0, nil, ErrCounterRange
	}
	return was + delta, FormatCounter(f, was+delta), nil
}

// Numbers holds the unused numbers of a block. A client reserves a block by adding its size to a counter.
type Numbers struct{ next, left int64 }

// Reserved sets the block that ends with sum.
func (n *Numbers) Reserved(sum, block int64) { n.next, n.left = sum-block+1, block }

// Next returns the next number, or false if none is left.
func (n *Numbers) Next() (int64, bool) {
	if n.left == 0 {
		return 0, false
	}
	n.next, n.left = n.next+1, n.left-1
	return n.next - 1, true
}
