package peer

import (
	"context"
	"net"
	"syscall"
	"testing"
	"time"

	"bellwether/wire"
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
	var dialled []net.Conn
	for range 2 {
		c, err := ln.Accept()
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		dialled = append(dialled, c)
		if len(dialled) == 1 {
			frame := wire.AppendFrame(nil, new(vote(1)))
			if _, err := c.Write(frame); err != nil {
				t.Fatal(err)
			}
			await(t, s, heard(1, 1))
			c.Close()
		}
	}
	dialled[1].(*net.TCPConn).SetLinger(0)
	dialled[1].Close()
	await(t, s, down(1)) // whoever dials again is accepted by nobody, and refused by nobody
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
