package bench

import (
	"context"
	"sync/atomic"
	"time"
)

// pace tells workers when to begin their operations. Without a rate, an operation begins when
// its worker is free. With a rate, operations are due at fixed times, whether or not workers
// are free.
type pace struct {
	begin, end time.Time
	gap        time.Duration // from one operation to the next; 0: no rate
	due        int64         // operations that are due before end; without a rate: the limit, 0: none
	taken      atomic.Int64
	late       *latencies // how late timers have woken workers that were free
	unsent     int64      // operations that were due and that no worker has taken; settle counts them
}

// drainMax is how long after the end workers still take operations that were due before it.
const drainMax = time.Second

func newPace(rate int, d time.Duration, begin time.Time) *pace {
	p := &pace{begin: begin, end: begin.Add(d)}
	if rate > 0 {
		p.gap = time.Second / time.Duration(rate)
		p.due = int64(d / p.gap)
		p.late = newLatencies()
	}
	return p
}

// limit lets a pace without a rate end after n operations instead of at a time; 0: no limit.
func (p *pace) limit(n int) *pace {
	if n > 0 {
		p.due, p.end = int64(n), p.begin.Add(limitedMax)
	}
	return p
}

// limitedMax bounds the time of a limited pace.
const limitedMax = 24 * time.Hour

// more counts an operation of a pace without a rate, unless there are no more.
func (p *pace) more(now time.Time) bool {
	return now.Before(p.end) && (p.due == 0 || p.taken.Add(1) <= p.due)
}

// take returns the time from which the latency of the next operation counts. It returns
// false at the end, or when ctx has ended.
func (p *pace) take(ctx context.Context) (time.Time, bool) {
	now := time.Now()
	if p.gap == 0 {
		return now, ctx.Err() == nil && p.more(now)
	}
	if now.After(p.end.Add(drainMax)) || ctx.Err() != nil {
		return now, false
	}
	i := p.taken.Add(1) - 1
	if i >= p.due {
		return now, false
	}
	due := p.begin.Add(time.Duration(i) * p.gap)
	if !due.After(now) {
		return due, true
	}
	return p.await(ctx, due)
}

// await waits until a free worker's operation is due. The system wakes the worker a little
// late. That is not the fault of the servers, so the latency counts from then on, and the
// lateness is reported.
func (p *pace) await(ctx context.Context, due time.Time) (time.Time, bool) {
	timer := time.NewTimer(time.Until(due))
	defer timer.Stop()
	select {
	case <-timer.C:
		now := time.Now()
		p.late.record(now.Sub(due))
		return now, true
	case <-ctx.Done():
		return due, false
	}
}

// poll returns the time from which the latency of the next operation counts, and false if no
// operation is due. It does not wait. free says that its caller was free when the operation was
// due, so that it was late in looking; then the latency counts from now on.
func (p *pace) poll(now time.Time, free bool) (time.Time, bool) {
	if p.gap == 0 {
		return now, p.more(now)
	}
	due, ok := p.next()
	if !ok || due.After(now) || now.After(p.end.Add(drainMax)) {
		return now, false
	}
	p.taken.Add(1)
	if free {
		p.late.record(now.Sub(due))
		return now, true
	}
	return due, true
}

// next returns when the next operation is due; false: never, or there is no rate.
func (p *pace) next() (time.Time, bool) {
	i := p.taken.Load()
	return p.begin.Add(time.Duration(i) * p.gap), p.gap > 0 && i < p.due
}

// over reports whether poll returns no more operations.
func (p *pace) over(now time.Time) bool {
	if p.gap == 0 {
		return !now.Before(p.end) || p.due > 0 && p.taken.Load() >= p.due
	}
	_, more := p.next()
	return !more || now.After(p.end.Add(drainMax))
}

// cut lets the pace end at a time before its end. Only the goroutine of a loop may call it.
func (p *pace) cut(now time.Time) {
	if p.end = now; p.gap > 0 {
		p.due = min(p.due, max(0, int64(now.Sub(p.begin)/p.gap)+1))
	}
}

// split shares the operations out to n paces, in turn.
func (p *pace) split(n int) []*pace {
	all := make([]*pace, n)
	for i := range all {
		share := &pace{begin: p.begin.Add(time.Duration(i) * p.gap), end: p.end, gap: p.gap * time.Duration(n), late: newLatencies()}
		share.due = (p.due - int64(i) + int64(n) - 1) / int64(n)
		all[i] = share
	}
	return all
}

// joinPaces settles paces that belong together, and returns one with their sums.
func joinPaces(all []*pace, b *book) *pace {
	sum := &pace{late: newLatencies()}
	for _, p := range all {
		p.settle(b)
		sum.unsent += p.unsent
		sum.late.h.Merge(p.late.h)
	}
	return sum
}

// settle counts the operations that no worker has taken. It records for each how long it has
// been due, which is less than its latency would have been.
func (p *pace) settle(b *book) {
	if p.gap == 0 {
		return
	}
	now := time.Now()
	for i := min(p.taken.Load(), p.due); i < p.due; i++ {
		p.unsent++
		b.whole.record(now.Sub(p.begin.Add(time.Duration(i) * p.gap)))
	}
}

// lateness returns the 99th percentile of how late timers were.
func (p *pace) lateness() time.Duration {
	if p.late == nil || p.late.h.TotalCount() == 0 {
		return 0
	}
	return p.late.at(99)
}
