package zk

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"bellwether/wire"
)

// TestLeaseCountsFromTheSending: the lease counts from the moment at which the answered
// ping was sent, not from the moment of the answer.
func TestLeaseCountsFromTheSending(t *testing.T) {
	bubble(t, func(t *testing.T) {
		e := newEnsemble(t)
		e.serve = func(_ *peer, h wire.RequestHeader, _ []byte) bool {
			if h.Op == wire.OpPing {
				time.Sleep(2 * time.Second)
			}
			return false
		}
		began := time.Now()
		c := e.connect(Options{SessionTimeout: 20 * time.Second, LeaseDelay: 3 * time.Second})
		l := c.Lease()
		if !l.Confirmed.Equal(began) || l.Session != 1 || !l.DelayKnown {
			t.Fatalf("after the connect the lease is %+v", l)
		}
		if want := 20*time.Second - 3*time.Second - 200*time.Millisecond; l.Left() != want || l.Term() != want {
			t.Errorf("left is %v, term %v, want %v", l.Left(), l.Term(), want)
		}
		time.Sleep(20*time.Second/3 + time.Second) // this is one second after a ping was sent
		if got := c.Lease(); !got.Confirmed.Equal(began) {
			t.Errorf("an unanswered ping counts: %+v", got)
		}
		time.Sleep(1100 * time.Millisecond)
		if got := c.Lease().Confirmed.Sub(began); got != 20*time.Second/3 {
			t.Errorf("the answered ping counts from %v, want when it was sent", got)
		}
	})
}

// TestLeaseAfterReattachment: the smallest timeout that the session ever had counts. After a
// re-attachment the lease counts from the ConnectRequest.
func TestLeaseAfterReattachment(t *testing.T) {
	bubble(t, func(t *testing.T) {
		e := newEnsemble(t)
		timeouts := []int32{8000, 4000, 9000}
		e.greet = func(p *peer, req wire.ConnectRequest) *wire.ConnectResponse {
			resp := e.accept(req)
			resp.TimeoutMS = timeouts[p.n]
			time.Sleep(time.Second / 2)
			return resp
		}
		e.serve = func(_ *peer, h wire.RequestHeader, _ []byte) bool { return h.Op == wire.OpPing }
		c := e.connect(Options{LeaseDelay: time.Second, SessionTimeout: 9 * time.Second})
		for n := range timeouts {
			s := waitFor(t, c, Connected)
			want := Lease{Session: 1, Timeout: 4 * time.Second, Delay: time.Second, DelayKnown: true}
			if n == 0 {
				want.Timeout = 8 * time.Second
			}
			got := c.Lease()
			if at := s.Since.Sub(got.Confirmed); at != time.Second/2 {
				t.Errorf("attachment %d: confirmed %v before it was answered, want when it was asked", n, at)
			}
			got.Confirmed = time.Time{}
			if got != want {
				t.Errorf("attachment %d: lease is %+v, want %+v", n, got, want)
			}
			e.cut()
			synctest.Wait()
		}
	})
}

// TestLeaseTakesTheLargerClock: of the two clocks the one that shows more time counts. So a machine that
// was suspended has used up its lease, although its monotonic clock stood still.
func TestLeaseTakesTheLargerClock(t *testing.T) {
	now := time.Now()
	wallOnly := func(d time.Duration) time.Time { return now.Round(0).Add(d) }
	l := Lease{Session: 1, Timeout: 10 * time.Second, Delay: 0}
	term := l.Term()
	cases := []struct {
		name      string
		confirmed time.Time
		at        time.Time
		want      time.Duration
	}{
		{"both agree", now, now.Add(3 * time.Second), term - 3*time.Second},
		{"suspended: the wall went on", wallOnly(-8 * time.Second), now, term - 8*time.Second},
	}
	for _, x := range cases {
		l.Confirmed = x.confirmed
		if got := l.leftAt(x.at); got.Round(time.Millisecond) != x.want.Round(time.Millisecond) {
			t.Errorf("%s: %v left, want %v", x.name, got, x.want)
		}
	}
}

// TestLeaseProvesNothing: there is no lease without a session, or if the server's knowledge may be too
// old.
func TestLeaseProvesNothing(t *testing.T) {
	for delay, want := range map[time.Duration]time.Duration{
		200 * time.Millisecond: 394 * time.Millisecond, 500 * time.Millisecond: 0, // less than 350 ms are left
	} {
		if got := (Lease{Session: 1, Timeout: 600 * time.Millisecond, Delay: delay}).Term(); got != want {
			t.Errorf("timeout 600 ms, delay %v: term %v, want %v", delay, got, want)
		}
	}
	if l := (Lease{}); l.Left() > 0 || l.Term() != 0 {
		t.Errorf("no session: %v left", l.Left())
	}
	bubble(t, func(t *testing.T) {
		e := newEnsemble(t)
		c := e.connect(Options{SessionTimeout: 10 * time.Second})
		if l := c.Lease(); l.DelayKnown || l.Delay != leaseDelayUnknown || l.Left() > 0 {
			t.Errorf("a server that does not say: %+v", l)
		}
	})
}

// TestKeepAlive: KeepAlive pings ten times in a timeout, or as often as requested. With several callers,
// the shortest interval counts. After a release, the longer interval counts again.
func TestKeepAlive(t *testing.T) {
	bubble(t, func(t *testing.T) {
		e := newEnsemble(t)
		var n int
		e.serve = func(_ *peer, h wire.RequestHeader, _ []byte) bool {
			if h.Op == wire.OpPing {
				e.mu.Lock()
				n++
				e.mu.Unlock()
			}
			return false
		}
		pings := func(d time.Duration) int {
			e.mu.Lock()
			before := n
			e.mu.Unlock()
			time.Sleep(d)
			synctest.Wait()
			e.mu.Lock()
			defer e.mu.Unlock()
			return n - before
		}
		c := e.connect(Options{SessionTimeout: 9 * time.Second})
		synctest.Wait()
		near(t, "alone", pings(90*time.Second), 30)
		slow := c.KeepAlive(0)
		near(t, "with a leader", pings(90*time.Second), 100)
		fast := c.KeepAlive(300 * time.Millisecond)
		near(t, "with a fast one", pings(90*time.Second), 300)
		fast()
		fast()
		near(t, "the fast one gone", pings(90*time.Second), 100)
		slow()
		near(t, "both gone", pings(90*time.Second), 30)
		absurd := c.KeepAlive(1)
		near(t, "absurdly fast", pings(time.Second), 200)
		absurd()
	})
}

func near(t *testing.T, what string, got, want int) {
	t.Helper()
	if got < want-1 || got > want+1 {
		t.Errorf("%s: %d pings, want %d", what, got, want)
	}
}

// TestServerSaysItsDelay: a server that knows the lease question answers how old its knowledge may be.
// For a server that echoes the question, the client assumes a default.
func TestServerSaysItsDelay(t *testing.T) {
	for _, answers := range []bool{true, false} {
		t.Run(fmt.Sprint(answers), func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				e := newEnsemble(t)
				e.delay = func(p *peer) int64 {
					if answers && p.n < 2 {
						return 500
					}
					return 0
				}
				c, err := Connect(t.Context(), "10.0.0.1", &Options{SessionTimeout: 30 * time.Second, Dial: e.dial})
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(c.stop)
				want := leaseDelayUnknown
				if answers {
					want = 500 * time.Millisecond
				}
				if l := c.Lease(); l.Delay != want || l.DelayKnown != answers {
					t.Errorf("lease is %+v", l)
				}
				time.Sleep(time.Second)
				e.cut()
				waitFor(t, c, Connecting)
				waitFor(t, c, Connected)
				time.Sleep(time.Second)
				if got := e.questionCount(); got != 2 {
					t.Errorf("asked %d times on two connections", got)
				}
			})
		})
	}
}

// TestLeaseKeepsTheBetterProof: a proof from a server with a longer delay does not shorten the time that
// is proven already.
func TestLeaseKeepsTheBetterProof(t *testing.T) {
	bubble(t, func(t *testing.T) {
		e := newEnsemble(t)
		e.delay = func(p *peer) int64 {
			if p.n == 0 {
				return 500
			}
			return 0
		}
		c := e.connect(Options{SessionTimeout: 30 * time.Second})
		defer c.KeepAlive(0)()
		time.Sleep(time.Second)
		before := c.Lease()
		e.cut() // the next server does not answer the lease question: 14 s are assumed
		waitFor(t, c, Connecting)
		waitFor(t, c, Connected)
		time.Sleep(5 * time.Second)
		if got := c.Lease(); got.Confirmed != before.Confirmed || got.Delay != before.Delay {
			t.Errorf("lease is %+v, want the first server's until the second's is better", got)
		}
		time.Sleep(15 * time.Second)
		if got := c.Lease(); got.Delay != leaseDelayUnknown || got.DelayKnown || got.Left() < 10*time.Second {
			t.Errorf("lease is %+v with %v left", got, got.Left())
		}
	})
}

// TestDelayIsAskedFirst: the lease question is sent before every other request of a connection, also
// before those that waited for the connection. It is not sent if its answer would have no use.
func TestDelayIsAskedFirst(t *testing.T) {
	bubble(t, func(t *testing.T) {
		e := newEnsemble(t)
		var known []bool
		var c *Client
		e.delay = func(*peer) int64 { return 500 }
		e.serve = func(p *peer, h wire.RequestHeader, _ []byte) bool {
			if h.Op == wire.OpGetData {
				known = append(known, p.e.questionCount() == 1)
			}
			return false
		}
		c = e.open(Options{SessionTimeout: 30 * time.Second})
		if _, _, err := c.Get(t.Context(), "/a"); err != nil {
			t.Fatal(err)
		}
		if l := c.Lease(); len(known) != 1 || !known[0] || !l.DelayKnown {
			t.Errorf("asked before the first request: %v; lease is %+v", known, l)
		}
		own := e.connect(Options{LeaseDelay: time.Second})
		if _, _, err := own.Get(t.Context(), "/a"); err != nil || e.questionCount() != 1 {
			t.Errorf("%v; asked %d times, want once: the second client has a delay of its own", err, e.questionCount())
		}
	})
}

// TestConnectWithoutAnAnswerAboutTheDelay: a server that never answers the lease question delays Connect
// by no more than the time between two pings. If a server closes the connection instead, one more
// connection is needed.
func TestConnectWithoutAnAnswerAboutTheDelay(t *testing.T) {
	bubble(t, func(t *testing.T) {
		e := newEnsemble(t)
		e.delay = func(p *peer) int64 {
			if p.n == 0 {
				p.conn.Close()
			}
			return notSaid
		}
		began := time.Now()
		c, err := Connect(t.Context(), "10.0.0.1", &Options{SessionTimeout: 30 * time.Second, Dial: e.dial})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(c.stop)
		if took := time.Since(began); took < 10*time.Second || took > 11*time.Second || c.State().State != Connected {
			t.Errorf("connected after %v: %+v", took, c.State())
		}
		if l := c.Lease(); l.DelayKnown || l.Delay != leaseDelayUnknown {
			t.Errorf("lease is %+v", l)
		}
	})
}
