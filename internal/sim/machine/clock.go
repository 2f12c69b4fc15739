package machine

import (
	"time"

	"bellwether/internal/claim"
	"bellwether/internal/replica"
)

// Units of simulated time.
const (
	Millisecond int64 = 1000
	Second      int64 = 1000 * Millisecond
)

// epochMS is the time at which the wall clocks begin, in ms since 1970.
const epochMS int64 = 1_700_000_000_000

// Clock holds the clocks of a machine. They run a little too fast or too slow. The
// monotonic clock stands still while the machine is suspended and may jump forward, and the
// wall clock may be set.
type Clock struct {
	ppm    int64 // millionths by which the clock is too fast
	asleep int64 // µs of its own time for which it was suspended, without those by which it jumped
	Slept  int64 // its own time at which it was suspended; -1: it is not suspended
	Offset int64 // µs to add for the wall clock
}

// NewClock returns clocks that are too fast by some millionths.
func NewClock(ppm int64) Clock { return Clock{ppm: ppm, Slept: -1, Offset: epochMS * Millisecond} }

func (c *Clock) own(now int64) int64 { return now + now*c.ppm/1_000_000 }

// Mono returns the monotonic clock in µs.
func (c *Clock) Mono(now int64) int64 {
	if c.Slept >= 0 {
		return c.Slept - c.asleep
	}
	return c.own(now) - c.asleep
}

// When returns the simulated time at which the monotonic clock reaches mono, if the machine
// is not suspended before.
func (c *Clock) When(mono int64) int64 {
	t := mono + c.asleep
	return t - t*c.ppm/(1_000_000+c.ppm) + 1
}

// wall returns the wall clock in µs.
func (c *Clock) wall(now int64) int64 { return c.own(now) + c.Offset }

// Suspend makes the machine sleep, and Resume wakes it up.
func (c *Clock) Suspend(now int64) { c.Slept = c.own(now) }

func (c *Clock) Resume(now int64) {
	c.asleep += c.own(now) - c.Slept
	c.Slept = -1
}

// Jump moves the monotonic clock forward by some µs.
func (c *Clock) Jump(by int64) { c.asleep -= by }

// Time returns the times that a server passes in with an event.
func (c *Clock) Time(now int64) replica.Time {
	return replica.Time{Mono: c.Mono(now) / Millisecond, Wall: c.wall(now) / Millisecond}
}

// Moment returns the times that a state machine of claim gets with an event.
func (c *Clock) Moment(now int64) claim.Moment {
	return claim.Moment{
		Mono: time.Duration(c.Mono(now)) * time.Microsecond,
		Wall: time.Duration(c.wall(now)) * time.Microsecond,
	}
}
