package server

import (
	"sync/atomic"
	"testing"
	"time"

	"bellwether/internal/store"
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

// What comes after a batch has looked at the clock is not of that batch: a server
// that was stopped just then would take it for something of before.
func TestTimeIsThatBehindTheBatch(t *testing.T) {
	s, err := New(Options{Config: testConfig(), FS: store.NewMem(1), Log: testLog(t)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	l := newLoop(s)
	var looked, asked int
	s.opt.Seams.Skew = func() time.Duration {
		looked++
		s.inbox.ask(func(*loop) { asked = looked })
		return 0
	}
	l.batch(false)
	if looked == 0 || asked != 0 {
		t.Fatalf("the clock was looked at %d times, and what came at time %d is carried out", looked, asked)
	}
	l.batch(false)
	if asked == 0 {
		t.Error("what came is not carried out")
	}
}
