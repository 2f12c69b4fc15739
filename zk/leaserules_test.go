package zk

import (
	"testing"
	"time"
	"unsafe"

	"bellwether/wire"
)

// TestEachAnswerProvesItsOwnPing: an answer belongs to the oldest ping that is not answered, so the lease
// counts from the sending of that ping, also when later pings are unanswered.
func TestEachAnswerProvesItsOwnPing(t *testing.T) {
	bubble(t, func(t *testing.T) {
		e := newEnsemble(t)
		late := 3 // pings that are answered 2.5 s after the answer before
		e.serve = func(_ *peer, h wire.RequestHeader, _ []byte) bool {
			if h.Op == wire.OpPing && late > 0 {
				late--
				time.Sleep(2500 * time.Millisecond)
			}
			return false
		}
		began := time.Now()
		c := e.connect(Options{SessionTimeout: 30 * time.Second, LeaseDelay: time.Second})
		defer c.KeepAlive(time.Second)() // pings at 0, 1, 2 s and so on
		for _, x := range []struct{ at, want time.Duration }{
			{2600 * time.Millisecond, 0}, {5100 * time.Millisecond, time.Second}, {7400 * time.Millisecond, time.Second},
		} {
			time.Sleep(time.Until(began.Add(x.at)))
			if got := c.Lease().Confirmed.Sub(began); got != x.want {
				t.Errorf("after %v the session is proved at %v, want %v", x.at, got, x.want)
			}
		}
		time.Sleep(time.Second) // until the last late answer
	})
}

// suspended returns t with a wall clock that shows d more, and the same monotonic clock: this is how
// time.Now reads after the machine was suspended for d. Package time has no function for that.
func suspended(t time.Time, d time.Duration) time.Time {
	later := t.Add(d)
	(*struct {
		wall uint64
		mono int64
		loc  *time.Location
	})(unsafe.Pointer(&later)).mono -= int64(d)
	return later
}

// TestSuspendUsesUpTheLease: the time of a suspend counts, although the monotonic clock stands still. A wall
// clock that was set back does not lengthen the lease.
func TestSuspendUsesUpTheLease(t *testing.T) {
	now := time.Now()
	l := Lease{Session: 1, Confirmed: now, Timeout: 10 * time.Second}
	for _, x := range []struct{ runs, asleep, passed time.Duration }{
		{3 * time.Second, 0, 3 * time.Second},
		{3 * time.Second, 4 * time.Second, 7 * time.Second},
		{3 * time.Second, -time.Hour, 3 * time.Second},
	} {
		at := suspended(now.Add(x.runs), x.asleep)
		if mono, wall := at.Sub(now), at.Round(0).Sub(now.Round(0)); mono != x.runs || wall != x.runs+x.asleep {
			t.Fatalf("the test cannot set the clocks: they show %v and %v", mono, wall)
		}
		if got, want := l.leftAt(at), l.Term()-x.passed; got != want {
			t.Errorf("%+v: %v left, want %v", x, got, want)
		}
	}
}

// TestNoLeaseWhileClosing: a client that closes its session has no lease any more, also when the answer to
// an earlier ping arrives after that.
func TestNoLeaseWhileClosing(t *testing.T) {
	bubble(t, func(t *testing.T) {
		e := newEnsemble(t)
		var c *Client
		late := make(chan Lease, 1)
		e.serve = func(_ *peer, h wire.RequestHeader, _ []byte) bool {
			switch h.Op {
			case wire.OpPing:
				time.Sleep(2 * time.Second)
			case wire.OpCloseSession: // the client has received the answer to the ping before
				time.Sleep(time.Second)
				late <- c.Lease()
			}
			return false
		}
		c = e.connect(Options{SessionTimeout: 30 * time.Second, LeaseDelay: time.Second})
		stop := c.KeepAlive(time.Second)
		time.Sleep(1500 * time.Millisecond) // a ping is unanswered
		stop()
		c.Close(t.Context())
		select {
		case l := <-late:
			if l.Session != 0 || l.Left() > 0 {
				t.Errorf("the lease of a closing session: %+v", l)
			}
		default:
			t.Error("the server has seen no closeSession")
		}
	})
}
