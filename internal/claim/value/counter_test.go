package value

import (
	"errors"
	"math"
	"testing"
)

// TestNumbers checks that a block has each of its numbers once, in order, up to the sum of the counter.
func TestNumbers(t *testing.T) {
	var n Numbers
	if _, ok := n.Next(); ok {
		t.Error("there is a number before a block is reserved")
	}
	for _, sum := range []int64{5, 105, 0, -3} {
		n.Reserved(sum, 3)
		for want := sum - 2; want <= sum; want++ {
			if got, ok := n.Next(); !ok || got != want {
				t.Errorf("block up to %d: %d, %v, want %d", sum, got, ok, want)
			}
		}
		if got, ok := n.Next(); ok {
			t.Errorf("block up to %d: %d follows", sum, got)
		}
	}
}

// TestAddCounter checks both formats, empty data, bad data, and the range.
func TestAddCounter(t *testing.T) {
	for _, c := range []struct {
		format CounterFormat
		old    string
		delta  int64
		sum    int64
		data   string
	}{
		{DecimalCounter, "", 3, 3, "3"},
		{DecimalCounter, "7", -10, -3, "-3"},
		{BinaryCounter, "", 1, 1, "\x00\x00\x00\x00\x00\x00\x00\x01"},
		{BinaryCounter, "\x00\x00\x00\x00\x00\x00\x01\x00", -1, 255, "\x00\x00\x00\x00\x00\x00\x00\xff"},
		{DecimalCounter, "9223372036854775806", 1, math.MaxInt64, "9223372036854775807"},
		{DecimalCounter, "-9223372036854775807", -1, math.MinInt64, "-9223372036854775808"},
	} {
		if sum, data, err := AddCounter(c.format, []byte(c.old), c.delta); sum != c.sum || string(data) != c.data || err != nil {
			t.Errorf("%q + %d: %d, %q, %v", c.old, c.delta, sum, data, err)
		}
	}
	for _, c := range []struct {
		format CounterFormat
		old    string
		delta  int64
		rang   bool
	}{
		{DecimalCounter, "9223372036854775806", 2, true},
		{DecimalCounter, "-9223372036854775807", -2, true},
		{DecimalCounter, "x", 1, false},
		{BinaryCounter, "1234567", 1, false},
		{BinaryCounter, "123456789", 1, false},
	} {
		if _, _, err := AddCounter(c.format, []byte(c.old), c.delta); err == nil || errors.Is(err, ErrCounterRange) != c.rang {
			t.Errorf("%q + %d: %v", c.old, c.delta, err)
		}
	}
}
