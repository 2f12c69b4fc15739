package recipe

import (
	"time"

	"bellwether/internal/claim"
)

// clock reads the machine's two clocks as durations since its making.
type clock struct {
	origin time.Time
	now    func() time.Time
	skew   func() time.Duration // by which the wall clock was set; nil in earnest
}

func newClock() clock { return clock{origin: time.Now(), now: time.Now} }

// moment is a time.Time with both its readings.
func (c clock) moment(t time.Time) claim.Moment {
	return claim.Moment{Mono: t.Sub(c.origin), Wall: t.Round(0).Sub(c.origin.Round(0))}
}

// read is the present moment.
func (c clock) read() claim.Moment {
	m := c.moment(c.now())
	if c.skew != nil {
		m.Wall += c.skew()
	}
	return m
}
