package peer

import (
	"context"
	"net"
	"slices"
	"syscall"
	"testing"
	"time"
)

// A knock that the system took for a server that has ended was not heard: it
// is a dial that failed, and what became of that server is asked at once.
func TestKnockThatIsResetIsNoKnock(t *testing.T) {
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
			return unhurried{c.(*net.TCPConn)}, nil
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
	if r := m.remotes[2]; !r.knocked.IsZero() {
		t.Error("an answer is still waited for")
	}
}

// unhurried is a connection on which an answer may take longer than it should.
type unhurried struct{ *net.TCPConn }

func (unhurried) SetReadDeadline(time.Time) error { return nil }

// The same for a server with a smaller id, whose connection is kept: one that is
// dialled because it has ended the last, and is reset, was the system's.
func TestResetBehindAnEndIsDown(t *testing.T) {
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
	// A connection that has lived for a while before it is reset was no system's:
	// where the machine stands still meanwhile there is another.
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
		for late := time.After(10 * settled); late != nil && !was(down); {
			select {
			case <-s.more:
			case <-late:
				late = nil
			}
		}
	}
	if !was(down) { // whoever dials again is refused by nobody
		t.Error("a reset is not Down")
	}
}

// accepted is the next connection.
func accepted(t *testing.T, ln net.Listener) net.Conn {
	t.Helper()
	c, err := ln.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// Once a knock is answered, nothing is waited for when that connection ends.
func TestAnsweredKnockIsForgotten(t *testing.T) {
	l := newLAN(t, 2, 0)
	a, sa := l.mesh(1)
	_, sb := l.mesh(2)
	a.Send(2, vote(1))
	await(t, sa, up(2))
	await(t, sb, heard(1, 1))
	a.mu.Lock()
	defer a.mu.Unlock()
	if r := a.remotes[2]; !r.knocked.IsZero() {
		t.Error("an answer is still waited for")
	}
}

// A connection that is reset as soon as it is made is the system's, for a
// server that ended: the first time the next dial follows at once, and finds
// out. A server that goes on to reset is dialled at the usual pace.
func TestResetOnceIsLookedIntoAtOnce(t *testing.T) {
	l := newLAN(t, 2, 0)
	m, _ := l.mesh(1)
	r := newRemote(m, 2)
	for round, want := range []time.Duration{sendGap, 2 * retryMin, 4 * retryMin} {
		c := &conn{}
		r.conn, r.tried = c, time.Now()
		r.parted(c, false, syscall.ECONNRESET)
		if wait := r.next.Sub(r.tried); (wait <= sendGap) != (want == sendGap) || wait < want {
			t.Errorf("round %d: the next dial follows after %v, want %v", round, wait, want)
		}
	}
}
