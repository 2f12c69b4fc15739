package sim

import (
	"time"

	"bellwether/internal/claim"
	"bellwether/internal/replica"
)

// Units of simulated time.
const (
	millisecond int64 = 1000
	second      int64 = 1000 * millisecond
)

// epochMS is the time at which the wall clocks begin, in ms since 1970.
const epochMS int64 = 1_700_000_000_000

// clock holds the clocks of a machine. They run a little too fast or too slow. The
// monotonic clock stands still while the machine is suspended, and the wall clock may be
// set.
type clock struct {
	ppm    int64 // millionths by which the clock is too fast
	asleep int64 // µs of its own time for which it was suspended
	slept  int64 // its own time at which it was suspended; -1: it is not suspended
	offset int64 // µs to add for the wall clock
}

func newClock(ppm int64) clock { return clock{ppm: ppm, slept: -1, offset: epochMS * millisecond} }

func (c *clock) own(now int64) int64 { return now + now*c.ppm/1_000_000 }

// mono returns the monotonic clock in µs.
func (c *clock) mono(now int64) int64 {
	if c.slept >= 0 {
		return c.slept - c.asleep
	}
	return c.own(now) - c.asleep
}

// when returns the simulated time at which the monotonic clock reaches mono, if the machine
// is not suspended before.
func (c *clock) when(mono int64) int64 {
	t := mono + c.asleep
	return t - t*c.ppm/(1_000_000+c.ppm) + 1
}

func (c *clock) wall(now int64) int64 { return c.own(now) + c.offset }

func (c *clock) suspend(now int64) { c.slept = c.own(now) }

func (c *clock) resume(now int64) {
	c.asleep += c.own(now) - c.slept
	c.slept = -1
}

// time returns the times that a server passes in with an event.
func (c *clock) time(now int64) replica.Time {
	return replica.Time{Mono: c.mono(now) / millisecond, Wall: c.wall(now) / millisecond}
}

// moment returns the times that a state machine of claim gets with an event.
func (c *clock) moment(now int64) claim.Moment {
	return claim.Moment{
		Mono: time.Duration(c.mono(now)) * time.Microsecond,
		Wall: time.Duration(c.wall(now)) * time.Microsecond,
	}
}
