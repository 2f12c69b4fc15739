package server

import (
	"sync/atomic"
	"testing"
	"time"

	"bellwether/internal/store"
)

// TestLeaseEndsWithASleep: after the machine was suspended, the monotonic clock has
// stopped and the wall clock has not. The leader then answers no ping by itself before
// its followers have answered its pings again, whether a connection or the loop notices
// first.
func TestLeaseEndsWithASleep(t *testing.T) {
	var slept atomic.Int64
	g := newTestEnsemble(t, 3, 0, false)
	g.hooks.Skew = func() time.Duration { return time.Duration(slept.Load()) }
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
			t.Error("it answers pings by itself after a sleep")
		}
		thaw()
		eventually(t, "the others have answered again", func() bool { return l.lease.Load() > before && l.leased() })
	}
}

// TestClockIsReadAfterTheBatch: an event that arrives after the loop has read the clock
// for a batch does not belong to that batch. Otherwise a server that was stopped at that
// moment would treat the event as older than it is.
func TestClockIsReadAfterTheBatch(t *testing.T) {
	s, err := New(Options{Config: testConfig(), FS: store.NewMem(1), Log: testLog(t)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	l := newLoop(s, nil)
	var looked, asked int
	s.opt.Hooks.Skew = func() time.Duration {
		looked++
		s.inbox.ask(func(*loop) { asked = looked })
		return 0
	}
	l.batch(false)
	if looked == 0 || asked != 0 {
		t.Fatalf("the clock was read %d times, and an event of time %d is carried out", looked, asked)
	}
	l.batch(false)
	if asked == 0 {
		t.Error("the event is not carried out")
	}
}
