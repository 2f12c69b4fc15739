package driver

import "time"

const (
	// stallFactor is how many times the disk's longest normal call a call may take
	// before it counts as a stall.
	stallFactor = 3
	// slowAfter is how many stalls within two periods show that the disk is slow
	// and does not hang.
	slowAfter = 3
	// The bound is at most boundFactor times the limit.
	boundFactor = 10
	// period is the shortest time for which a call or a stall counts.
	period = time.Minute
)

// StallBound says how long a call of the disk may take. A call that takes longer is a stall. The bound is
// the limit, or stallFactor times the longest normal call of the last period if that is more, but at most
// boundFactor times the limit. A call within the bound is normal. A stall is not normal, so a disk that
// has hung once is detected just as early the next time. From the slowAfter-th stall of the last period on,
// stalls are normal as well: a disk that is always so slow must not keep its server out of the ensemble
// for ever.
//
// All times are of one clock, in ns. The zero value has recorded no calls.
type StallBound struct {
	// longest holds the longest normal call of the current period and of the one before, and stalls the
	// numbers of stalls. periodEnds is when the next period begins.
	longest    [2]time.Duration
	slowest    [2]time.Duration // likewise, of all calls
	stalls     [2]int
	periodEnds int64
	stallEnded int64 // when the last call that stalled returned
}

// Bound returns how long a call may take, given the limit.
func (b *StallBound) Bound(now int64, limit time.Duration) time.Duration {
	if now >= b.periodEnds {
		if now >= b.periodEnds+int64(period) {
			b.longest[0], b.slowest[0], b.stalls[0] = 0, 0, 0
		}
		b.longest[0], b.longest[1] = 0, b.longest[0]
		b.slowest[0], b.slowest[1] = 0, b.slowest[0]
		b.stalls[0], b.stalls[1] = 0, b.stalls[0]
		b.periodEnds = now + int64(period)
	}
	return min(max(limit, stallFactor*max(b.longest[0], b.longest[1])), boundFactor*limit)
}

// Slowest returns how long the longest call of the last one to two minutes took, given the limit.
func (b *StallBound) Slowest(now int64, limit time.Duration) time.Duration {
	b.Bound(now, limit)
	return max(b.slowest[0], b.slowest[1])
}

// Note records a call that has returned now. Calls that stall at the same time are one stall.
func (b *StallBound) Note(now int64, took, limit time.Duration) {
	bound := b.Bound(now, limit)
	b.slowest[0] = max(b.slowest[0], took)
	if took > bound {
		if now-int64(took) >= b.stallEnded {
			b.stalls[0]++
		}
		b.stallEnded = now
		if b.stalls[0]+b.stalls[1] < slowAfter {
			return
		}
	}
	b.longest[0] = max(b.longest[0], took)
}
