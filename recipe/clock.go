package recipe

import (
	"time"

	"bellwether/internal/claim"
)

// clock reads the monotonic clock and the wall clock of the computer, as durations since newClock.
type clock struct {
	origin time.Time
	now    func() time.Time
	skew   func() time.Duration // by how much a test has moved the wall clock; nil outside tests
}

func newClock() clock { return clock{origin: time.Now(), now: time.Now} }

// moment converts a time.Time to both clocks' readings.
func (c clock) moment(t time.Time) claim.Moment {
	return claim.Moment{Mono: t.Sub(c.origin), Wall: t.Round(0).Sub(c.origin.Round(0))}
}

// read returns the current moment.
func (c clock) read() claim.Moment {
	m := c.moment(c.now())
	if c.skew != nil {
		m.Wall += c.skew()
	}
	return m
}
