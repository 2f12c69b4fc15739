package driver

import (
	"testing"
	"time"
)

// TestStallBound: a call may take the limit, or three times the longest normal call of the last
// minute, but at most ten times the limit. Stalls count as normal from the third one on.
func TestStallBound(t *testing.T) {
	const limit = time.Second
	for _, c := range []struct {
		name  string
		calls []time.Duration // durations of calls that follow each other at intervals of a second
		idle  time.Duration   // time without calls after them
		want  time.Duration
	}{
		{"no calls", nil, 0, limit},
		{"fast calls", []time.Duration{time.Millisecond, 100 * time.Millisecond}, 0, limit},
		{"a call of 700 ms", []time.Duration{700 * time.Millisecond}, 0, 2100 * time.Millisecond},
		{"it is forgotten", []time.Duration{700 * time.Millisecond}, 2 * time.Minute, limit},
		{"a stall", []time.Duration{time.Hour}, 0, limit},
		{"two stalls", []time.Duration{5 * time.Second, 5 * time.Second}, 0, limit},
		{"three stalls: the disk is slow", []time.Duration{3 * time.Second, 3 * time.Second, 3 * time.Second}, 0, 9 * time.Second},
		{"a very slow disk", []time.Duration{5 * time.Second, 5 * time.Second, 5 * time.Second}, 0, 10 * limit},
	} {
		var b StallBound
		now := int64(time.Hour)
		for _, took := range c.calls {
			now += int64(took)
			b.Note(now, took, limit)
			now += int64(time.Second)
		}
		now += int64(c.idle)
		if got := b.Bound(now, limit); got != c.want {
			t.Errorf("%s: a call may take %v, want %v", c.name, got, c.want)
		}
	}
}

// TestSlowestCall: the slowest call counts for one to two minutes, whether it was a stall or not.
func TestSlowestCall(t *testing.T) {
	const limit = time.Second
	for _, took := range []time.Duration{300 * time.Millisecond, 5 * time.Second} {
		var b StallBound
		now := int64(time.Hour)
		b.Note(now, took, limit)
		b.Note(now, time.Millisecond, limit)
		if got := b.Slowest(now+int64(59*time.Second), limit); got != took {
			t.Errorf("%v, want %v", got, took)
		}
		if got := b.Slowest(now+int64(3*time.Minute), limit); got != 0 {
			t.Errorf("%v after three minutes", got)
		}
	}
}

// TestStallsAtOnceAreOne: calls that stall at the same time count as one stall.
func TestStallsAtOnceAreOne(t *testing.T) {
	var b StallBound
	now := int64(time.Hour)
	for range 5 {
		b.Note(now, 5*time.Second, time.Second)
	}
	if got := b.Bound(now, time.Second); got != time.Second {
		t.Errorf("a call may take %v", got)
	}
}
