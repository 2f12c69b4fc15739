package server

import (
	"sync/atomic"
	"testing"
	"time"
)

// A machine that was suspended has a monotonic clock that stood, and one on the
// wall that went on. Its leader answers no ping by itself before the others have
// answered it again, whoever looks first: a connection or the loop.
func TestLeaseEndsWithASleep(t *testing.T) {
	var slept atomic.Int64
	g := newTeam(t, 3, 0, false)
	g.seams.Skew = func() time.Duration { return time.Duration(slept.Load()) }
	for _, m := range g.servers {
		g.start(m)
	}
	l := g.settled()
	for _, step := range []time.Duration{time.Minute, time.Minute, -time.Minute} {
		eventually(t, "it answers pings by itself", func() bool { return l.leased() })
		thaw := l.Freeze()
		before := l.lease.Load()
		slept.Add(int64(step))
		if step > 0 && l.leased() {
			t.Error("it answers pings by itself behind a sleep")
		}
		thaw()
		eventually(t, "the others have answered again", func() bool { return l.lease.Load() > before && l.leased() })
	}
}
