package claim

import (
	"time"

	"bellwether/wire"
)

const (
	BackoffMin = 50 * time.Millisecond // the first pause
	BackoffMax = 2 * time.Second       // the longest pause
	// backoffCalm is how long after its last failure a Backoff forgets all of them.
	backoffCalm = 4 * BackoffMax
	// reconnectMax is the longest pause that a new connection ends: that of the third loss in a row.
	reconnectMax = 4 * BackoffMin
	// freeFailures is how many answers may be errors before they cost a pause. To
	// find out what is missing, and make it, takes fewer.
	freeFailures = 8
)

// Backoff says how long to wait before the next try. The pauses double with each
// failure, from 50 ms to 2 s. Each is shortened by up to a half, so that clients that
// failed together do not try again together. The zero value has seen no failure.
type Backoff struct {
	Timer
	full     time.Duration // the present pause before it was shortened
	Failures int           // answers with an error
	last     Moment        // when it was last told of a failure
}

// Fail begins the next pause.
func (b *Backoff) Fail(now Moment) {
	b.calm(now)
	b.full = min(max(2*b.full, BackoffMin), BackoffMax)
	b.Timer = Timer{now, b.full - jitter(now, b.full/2)}
}

// Stumble takes note of a failure that the next try may well repair. Only after many
// of them, close together, does it begin a pause: then an error lasts, and each repair
// leads back to it.
func (b *Backoff) Stumble(now Moment) {
	b.calm(now)
	if b.Failures++; b.Failures > freeFailures {
		b.Fail(now)
	}
}

// Stumbles is Stumble if one of the results is an error.
func (b *Backoff) Stumbles(now Moment, results []Result) {
	for _, r := range results {
		if r.Err != nil {
			b.Stumble(now)
			return
		}
	}
}

// Reconnected ends one of the first pauses: its reason was the lost connection, and there is
// another one. Later pauses stay, as the request itself may be what ends connections: one that is larger
// than the server accepts, for example.
func (b *Backoff) Reconnected() {
	if b.full <= reconnectMax {
		b.Timer = Timer{}
	}
}

// Fired forgets the answers with an error where the tree has changed: the next try finds it
// different. The end of a watch, as by its removal, is no such event. A pause that
// lasts is not ended, as a write whose answer was lost may have fired the watch.
func (b *Backoff) Fired(ev Fired) {
	if ev.Type >= wire.EventNodeCreated && ev.Type <= wire.EventNodeChildrenChanged {
		b.Failures = 0
	}
}

// calm forgets the failures of long ago.
func (b *Backoff) calm(now Moment) {
	if now.Since(b.last) > backoffCalm {
		*b = Backoff{}
	}
	b.last = now
}

// Left is how long the present pause lasts yet; it is over at 0 and below.
func (b *Backoff) Left(now Moment) time.Duration {
	if b.Over(now) {
		return 0
	}
	return b.Remaining(now)
}

// jitter is a duration below the limit, chosen by the nanoseconds of the clock, in
// which no two processes agree.
func jitter(now Moment, limit time.Duration) time.Duration {
	const golden = 0x9e3779b97f4a7c15 // spreads neighbouring moments
	return time.Duration(uint64(now.Mono) * golden >> 1 % uint64(limit))
}

// Timer is due some time after a moment; the zero timer is due at once.
type Timer struct {
	From Moment
	Wait time.Duration
}

func (t Timer) Remaining(now Moment) time.Duration { return t.Wait - now.Since(t.From) }

func (t Timer) Over(now Moment) bool { return t.Wait == 0 || t.Remaining(now) <= 0 }
