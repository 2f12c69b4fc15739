package peer

import (
	"context"
	"net"
	"slices"
	"syscall"
	"testing"
	"time"
)

// TestResetAnnouncementDoesNotCount: a connection may be accepted only by the operating system, for a
// server process that has ended. The initial message was then not received. The connection counts as
// a failed dial, and the server is dialled again at once.
func TestResetAnnouncementDoesNotCount(t *testing.T) {
	l := newLAN(t, 2, 0)
	ln, err := l.listen(l.election(2))
	if err != nil {
		t.Fatal(err)
	}
	m, s := l.mesh(1, func(o *Options) {
		o.Dial = func(ctx context.Context, address string) (net.Conn, error) {
			c, err := new(net.Dialer).DialContext(ctx, "tcp", address)
			if err != nil {
				return nil, err
			}
			return noDeadlines{c.(*net.TCPConn)}, nil
		}
	})
	m.Send(2, vote(1))
	c, err := ln.Accept()
	if err != nil {
		t.Fatal(err)
	}
	ln.Close()
	c.(*net.TCPConn).SetLinger(0)
	c.Close()
	eventually(t, "a dial has failed", func() bool { return m.Figures().DialFailures.Value() > 0 })
	await(t, s, down(2))
	m.mu.Lock()
	defer m.mu.Unlock()
	if r := m.remotes[2]; !r.announced.IsZero() {
		t.Error("an answer is still waited for")
	}
}

// noDeadlines is a connection on which the wait for an answer has no limit.
type noDeadlines struct{ *net.TCPConn }

func (noDeadlines) SetReadDeadline(time.Time) error { return nil }

// TestResetAfterEndOfConnectionIsDown checks a server with a smaller id, to which this server keeps its
// connection. If the last connection has ended and a new one is reset at once, only the operating system
// had accepted the new one, and the server is reported as Down.
func TestResetAfterEndOfConnectionIsDown(t *testing.T) {
	l := newLAN(t, 2, 0)
	ln, err := l.listen(l.election(1))
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	_, s := l.mesh(2)
	was := func(is func(Event) bool) bool { return slices.ContainsFunc(s.list(), is) }
	down := func(e Event) bool { return e == Event(Down{1}) }
	ups := func() int {
		return len(slices.DeleteFunc(s.list(), func(e Event) bool { return e != Event(Up{1}) }))
	}
	// A connection that has existed for a while before it is reset was accepted by the process. If the
	// machine pauses during a round, the test tries another one.
	for round := 1; round < 20 && !was(down); round++ {
		c := accepted(t, ln)
		if _, err := c.Write(frame(vote(round))); err != nil {
			t.Fatal(err)
		}
		eventually(t, "it is heard", func() bool {
			return was(func(e Event) bool { h, ok := e.(Heard); return ok && heard(1, round)(h) })
		})
		before := ups()
		c.Close()
		c = accepted(t, ln)
		eventually(t, "it is up again", func() bool { return ups() > before })
		c.(*net.TCPConn).SetLinger(0)
		c.Close()
		for late := time.After(10 * settledAfter); late != nil && !was(down); {
			select {
			case <-s.more:
			case <-late:
				late = nil
			}
		}
	}
	if !was(down) { // the dial after the reset is accepted, so nothing but the reset can be reported
		t.Error("a reset is not Down")
	}
}

// accepted returns the next connection.
func accepted(t *testing.T, ln net.Listener) net.Conn {
	t.Helper()
	c, err := ln.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// TestAnsweredAnnouncementIsForgotten: once the other server has answered the announcement, this server
// does not wait for an answer when that connection ends.
func TestAnsweredAnnouncementIsForgotten(t *testing.T) {
	l := newLAN(t, 2, 0)
	a, sa := l.mesh(1)
	_, sb := l.mesh(2)
	a.Send(2, vote(1))
	await(t, sa, up(2))
	await(t, sb, heard(1, 1))
	a.mu.Lock()
	defer a.mu.Unlock()
	if r := a.remotes[2]; !r.announced.IsZero() {
		t.Error("an answer is still waited for")
	}
}

// TestDialFollowsAReset: if a connection is reset as soon as it is made, only the operating system has
// accepted it, for a process that has ended. After the first reset the next dial follows at once. A
// server that goes on to reset connections is dialled at the usual interval.
func TestDialFollowsAReset(t *testing.T) {
	l := newLAN(t, 2, 0)
	m, _ := l.mesh(1)
	r := newRemote(m, 2)
	for round, want := range []time.Duration{sendGap, 2 * retryMin, 4 * retryMin} {
		c := &conn{}
		r.conn, r.tried = c, time.Now()
		r.disconnected(c, false, syscall.ECONNRESET)
		if wait := r.next.Sub(r.tried); (wait <= sendGap) != (want == sendGap) || wait < want {
			t.Errorf("round %d: the next dial follows after %v, want %v", round, wait, want)
		}
	}
}
