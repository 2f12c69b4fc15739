package zk

import (
	"context"
	"slices"
	"time"

	"bellwether/internal/leasequery"
	"bellwether/wire"
)

// leaseDelayUnknown is Lease.Delay for servers that do not say it: (syncLimit 5 + 2)
// ticks of 2 s.
const leaseDelayUnknown = 14 * time.Second

// Lease holds what the client can prove about its session: the session lives at least until
// Confirmed + Timeout - Delay, less one percent for clocks that drift. See [Lease.Term].
type Lease struct {
	Session SessionID // 0: no session or a closing one, nothing is proved
	// Confirmed is when the last answered ping, or the ConnectRequest of the last
	// attachment, was sent. It has the monotonic and the wall clock.
	Confirmed time.Time
	// Timeout is the smallest timeout that the session ever had.
	Timeout time.Duration
	// Delay is how old the connected server's knowledge of the session may have been when
	// it answered: the server that expires sessions may learn of a ping that much later.
	Delay time.Duration
	// DelayKnown says that Delay was set in the options or given by the server;
	// otherwise it is an assumption.
	DelayKnown bool
}

// Term returns how long one confirmation lasts: Timeout - Delay - 1 %. It returns 0 if the
// lease proves nothing: there is no session, or less than 300 ms and a tenth of Delay is
// left, because the next confirmation could come too late to use that.
func (l Lease) Term() time.Duration {
	term := l.Timeout - l.Delay - l.Timeout/100
	if l.Session == 0 || term < 300*time.Millisecond+l.Delay/10 {
		return 0
	}
	return term
}

// Left returns how long the session is sure to live from now on; it is negative when
// nothing is sure. It measures the time that has passed by the monotonic clock and by
// the wall clock and takes the larger value, because the monotonic clock stops while the
// machine is suspended.
func (l Lease) Left() time.Duration { return l.leftAt(time.Now()) }

func (l Lease) leftAt(now time.Time) time.Duration {
	mono := now.Sub(l.Confirmed)
	wall := now.Round(0).Sub(l.Confirmed.Round(0))
	return l.Term() - max(mono, wall)
}

// Lease returns the present lease. Each answered ping extends it; see KeepAlive.
func (c *Client) Lease() Lease {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.lease
}

// KeepAlive makes the client ping the server in this interval until stop is called. If
// every is 0 the interval is a tenth of the session timeout; without KeepAlive it is a
// third. If there are several callers, the shortest interval counts. Holders of locks
// and leaders call it.
func (c *Client) KeepAlive(every time.Duration) (stop func()) {
	pace := &every
	c.mu.Lock()
	c.paces, c.paced = append(c.paces, pace), true
	c.mu.Unlock()
	c.wakeWriter()
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if i := slices.Index(c.paces, pace); i >= 0 {
			c.paces = slices.Delete(c.paces, i, i+1)
		}
	}
}

// paceChanged reports whether an interval of KeepAlive was added since the last call, so
// that a ping may be due earlier.
func (c *Client) paceChanged() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	changed := c.paced
	c.paced = false
	return changed
}

// pingEvery returns the time between two pings.
func (c *Client) pingEvery() time.Duration {
	t := c.timeout()
	every := min(t/3, pingMax)
	for _, p := range c.paces {
		if *p > 0 {
			every = min(every, *p)
		} else {
			every = min(every, t/10)
		}
	}
	return max(every, pingMin)
}

// confirm notes a proof that the session lived at sent or later. Client.mu is held.
func (c *Client) confirm(l *link, sent time.Time) {
	if l.readOnly || c.closing || c.sess.over || c.sess.ID != l.session {
		return // a session on a read-only server or one that is over or being closed has no lease
	}
	if sent.After(l.confirmed) {
		l.confirmed = sent
	}
	next := Lease{
		Session: l.session, Confirmed: l.confirmed, Timeout: c.sess.Timeout,
		Delay: l.delay, DelayKnown: l.delay > 0,
	}
	if !next.DelayKnown {
		next.Delay = leaseDelayUnknown
	}
	// If the new server has a longer delay, the new proof may end earlier than the proof
	// before it. The earlier proof is still valid.
	old := c.lease
	if old.Session == next.Session && old.Confirmed.Add(-old.Delay).After(next.Confirmed.Add(-next.Delay)) {
		next.Confirmed, next.Delay, next.DelayKnown = old.Confirmed, old.Delay, old.DelayKnown
	}
	c.lease = next
}

// askDelay returns the first request on a link. The request asks how old the server's
// knowledge of sessions may be when the server answers a ping. askDelay returns nil if
// the client has already asked, or if it does not need the answer. Client.mu is held.
func (c *Client) askDelay(l *link) *call {
	if l.asked || !c.asksDelay(l) {
		return nil
	}
	l.asked = true
	return c.ownCall(wire.OpSync, &wire.NullPathRequest{Path: wire.Text(leasequery.Question)}, func(k *call) {
		c.delayAnswered(l, k)
		if k.err == nil {
			close(l.told)
		}
	})
}

// asksDelay reports whether the client asks the server of the link for its delay.
func (c *Client) asksDelay(l *link) bool { return !l.readOnly && c.opt.LeaseDelay <= 0 }

// awaitDelay waits until the server has said its delay, or that it knows none, so that
// the lease is as long as it can be. It waits for at most the time between two pings. It
// returns false if s is no longer the status.
func (c *Client) awaitDelay(ctx context.Context, s Status) bool {
	c.mu.Lock()
	l, most := c.link, c.pingEvery()
	c.mu.Unlock()
	switch {
	case l == nil:
		return false
	case !c.asksDelay(l):
		return true
	}
	timer := time.NewTimer(most)
	defer timer.Stop()
	select {
	case <-l.told:
	case <-s.Changed():
		return false
	case <-timer.C:
	case <-ctx.Done():
	}
	return true
}

// delayAnswered reads the delay from the answer. A server that does not know the question
// answers with a copy of the question.
func (c *Client) delayAnswered(l *link, k *call) {
	var resp wire.NullPathResponse
	if k.err != nil || k.header.Err != wire.OK || k.decode(&resp, false) != nil {
		return
	}
	if ms, ok := leasequery.ParseAnswer(resp.Path.String); ok {
		l.delay = time.Duration(ms) * time.Millisecond
		c.confirm(l, l.confirmed)
	}
}
