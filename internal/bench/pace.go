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
	due        int64         // operations that are due before end
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

// take returns the time from which the latency of the next operation counts. It returns
// false at the end, or when ctx has ended.
func (p *pace) take(ctx context.Context) (time.Time, bool) {
	now := time.Now()
	if p.gap == 0 {
		return now, now.Before(p.end) && ctx.Err() == nil
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
