package claim

import (
	"time"

	"bellwether/wire"
)

const (
	BackoffMin = 50 * time.Millisecond // first pause
	BackoffMax = 2 * time.Second       // longest pause
	// backoffCalm is the time after the last failure at which a Backoff forgets all failures.
	backoffCalm = 4 * BackoffMax
	// reconnectMax is the longest pause that a new connection ends. It is the pause after the third loss
	// in a row.
	reconnectMax = 4 * BackoffMin
	// freeFailures is how many answers may contain an error before the next one causes a pause. A machine
	// needs fewer to find out which znodes are missing and to create them.
	freeFailures = 8
)

// Backoff computes the pause before the next try. Each failure doubles the pause, from 50 ms up to 2 s. A
// jitter shortens each pause by up to a half, so that clients that failed together do not retry together.
// The zero value has seen no failure.
type Backoff struct {
	Timer
	full     time.Duration // the current pause without the jitter
	Failures int           // number of answers that contained an error
	last     Moment        // time of the last failure
}

// Fail begins the next pause.
func (b *Backoff) Fail(now Moment) {
	b.calm(now)
	b.full = min(max(2*b.full, BackoffMin), BackoffMax)
	b.Timer = Timer{now, b.full - jitter(now, b.full/2)}
}

// CountError records an error in an answer. The next try often repairs the cause, so a pause begins only
// after more than freeFailures errors in short succession.
func (b *Backoff) CountError(now Moment) {
	b.calm(now)
	if b.Failures++; b.Failures > freeFailures {
		b.Fail(now)
	}
}

// CountErrors calls CountError once if any of the results is an error.
func (b *Backoff) CountErrors(now Moment, results []Result) {
	for _, r := range results {
		if r.Err != nil {
			b.CountError(now)
			return
		}
	}
}

// Reconnected ends the current pause if it is at most reconnectMax. A short pause was caused by the lost
// connection, which is restored. A longer pause continues, because the request itself may break
// connections, for example if it is larger than the server accepts.
func (b *Backoff) Reconnected() {
	if b.full <= reconnectMax {
		b.Timer = Timer{}
	}
}

// Fired resets the count of errors if the watch event shows a change of the tree: the next try may then
// succeed. The removal of a watch does not count as a change. A current pause continues, because a write
// whose answer was lost may itself have caused the event.
func (b *Backoff) Fired(ev Fired) {
	if ev.Type >= wire.EventNodeCreated && ev.Type <= wire.EventNodeChildrenChanged {
		b.Failures = 0
	}
}

// calm forgets all failures if the last one was more than backoffCalm ago.
func (b *Backoff) calm(now Moment) {
	if now.Since(b.last) > backoffCalm {
		*b = Backoff{}
	}
	b.last = now
}

// Left returns how much of the current pause remains; 0 when it is over.
func (b *Backoff) Left(now Moment) time.Duration {
	if b.Over(now) {
		return 0
	}
	return b.Remaining(now)
}

// jitter returns a duration below limit. It is derived from the nanoseconds of the clock, which differ
// between processes.
func jitter(now Moment, limit time.Duration) time.Duration {
	const golden = 0x9e3779b97f4a7c15 // gives neighbouring moments very different results
	return time.Duration(uint64(now.Mono) * golden >> 1 % uint64(limit))
}

// Timer ends when the time Wait has passed since From. The zero Timer has already ended.
type Timer struct {
	From Moment
	Wait time.Duration
}

func (t Timer) Remaining(now Moment) time.Duration { return t.Wait - now.Since(t.From) }

func (t Timer) Over(now Moment) bool { return t.Wait == 0 || t.Remaining(now) <= 0 }
