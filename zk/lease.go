package zk

import (
	"time"

	"bellwether/wire"
)

// leaseDelayUnknown is D for servers that do not say: (syncLimit 5 + 2) ticks of 2 s.
const leaseDelayUnknown = 14 * time.Second

// Lease is what the client can prove about its session: it lives at least
// until Confirmed + Timeout - Delay, less one percent for clocks that drift.
type Lease struct {
	Session wire.SessionID // 0: no session, nothing is proved
	// Confirmed is when the last answered ping, or the ConnectRequest of the
	// last attachment, was sent; with monotonic and wall clock.
	Confirmed time.Time
	// Timeout is the smallest the session ever had.
	Timeout time.Duration
	// Delay is how old the server's own knowledge may have been when it answered.
	Delay time.Duration
	// DelayKnown: Delay was set in the options or said by the server;
	// otherwise it is an assumption.
	DelayKnown bool
}

// Term is how long a confirmation lasts: Timeout - Delay - 1 %. When it is
// not positive the lease proves nothing.
func (l Lease) Term() time.Duration {
	if l.Session == 0 {
		return 0
	}
	return l.Timeout - l.Delay - l.Timeout/100
}

// Left is how long the session is sure to live from now; negative when
// nothing is sure. Time that passed is the larger of monotonic and wall
// clock, as the monotonic one stops while the machine is suspended.
func (l Lease) Left() time.Duration { return l.leftAt(time.Now()) }

func (l Lease) leftAt(now time.Time) time.Duration {
	mono := now.Sub(l.Confirmed)
	wall := now.Round(0).Sub(l.Confirmed.Round(0))
	return l.Term() - max(mono, wall)
}

// Lease is the present lease. It grows with every answered ping; see KeepAlive.
func (c *Client) Lease() Lease {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.lease
}

// KeepAlive makes the client ping every interval, or ten times in a session
// timeout where every is 0, instead of three times, until stop is called. The
// shortest interval of all callers counts. It also asks the servers for their
// Delay. Holders of locks and leaders call it.
func (c *Client) KeepAlive(every time.Duration) (stop func()) { return c.keepAlive(every) }
