package server

import (
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"bellwether/internal/rate"
	"bellwether/wire"
)

// login offers a user and password, and returns how long the answer took.
func (c *client) login(text string) time.Duration {
	c.t.Helper()
	return took(func() { c.must(wire.OpAuth, auth(wire.Text("digest"), []byte(text)), nil) })
}

// wantTimes fails the test unless got has the times ms, in milliseconds.
func wantTimes(t *testing.T, what string, got []time.Duration, ms ...int) {
	t.Helper()
	var want []time.Duration
	for _, n := range ms {
		want = append(want, time.Duration(n)*time.Millisecond)
	}
	if !slices.Equal(got, want) {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

// TestWrongPasswordsOfTheSuperUser: a client that tries many passwords of the super user waits
// longer for each answer, also on new connections. Other addresses are not affected. A client
// with the right password at the same address waits for one second at most. After a minute
// without a failure nobody waits.
func TestWrongPasswordsOfTheSuperUser(t *testing.T) {
	o := Options{Config: testConfig()}
	o.Config.Access.SuperDigest = "super:D/InIHSb7yEEbrWz8b9l71RjZJU=" // of super:test
	inBubble(t, o, func(t *testing.T, s *bubble) {
		var times []time.Duration
		c := s.connectFrom("10.0.0.1")
		for i := range 20 {
			if i%3 == 0 {
				c = s.connectFrom("10.0.0.1")
			}
			times = append(times, c.login(fmt.Sprint("super:", i)))
		}
		wantTimes(t, "answers", times, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 20, 40, 80, 160, 320, 640, 1000, 1000, 1000)
		wantTimes(t, "another address", []time.Duration{s.connectFrom("10.0.0.2").login("super:x")}, 0)
		other := s.connectFrom("10.0.0.1")
		wantTimes(t, "without a login", []time.Duration{took(func() { other.must(wire.OpPing, nil, nil) })}, 0)
		wantTimes(t, "the right password", []time.Duration{other.login("super:test")}, 1000)
		if failed, late := s.stats.loginFailures.Value(), s.stats.loginDelays.Value(); failed != 21 || late != 10 {
			t.Errorf("%d failures, %d delays", failed, late)
		}
		time.Sleep(rate.FailuresForgotten)
		wantTimes(t, "after a quiet minute", []time.Duration{s.connectFrom("10.0.0.1").login("super:x")}, 0)
	})
}

// TestGuessesThatNoAuthReveals: each identity of the scheme digest counts as a failed
// login when a read, a write or a multi is refused, and only once. Clients without such an
// identity, and those that are admitted, do not count.
func TestGuessesThatNoAuthReveals(t *testing.T) {
	inBubble(t, Options{}, func(t *testing.T, s *bubble) {
		owner := s.connectFrom("10.0.0.9")
		owner.login("bob:pw")
		own := create("/own", "")
		own.ACL = wire.CreatorACL()
		owner.must(wire.OpCreate, own, nil)
		owner.data("/own")
		read := func(c *client) wire.ReplyHeader {
			return c.call(wire.OpGetData, &wire.PathWatchRequest{Path: "/own"}, nil)
		}
		c := s.connectFrom("10.0.0.1")
		failures := func(what string, want int64) {
			t.Helper()
			if got := s.stats.loginFailures.Value(); got != want {
				t.Errorf("%s: %d failures, want %d", what, got, want)
			}
		}
		read(c)
		failures("no identity", 0)
		c.login("bob:1")
		failures("nothing was refused", 0)
		for range 3 {
			if h := read(c); h.Err != wire.ErrNoAuth {
				t.Fatal(h)
			}
		}
		failures("a read was refused three times", 1)
		for i := range 4 {
			c.login(fmt.Sprint("bob:2", i))
		}
		read(c)
		failures("four more identities", 5)
		c.login("bob:3")
		set := &wire.SetDataRequest{Path: "/own", Version: -1}
		c.call(wire.OpSetData, set, nil)
		failures("a write was refused", 6)
		c.login("bob:4")
		c.call(wire.OpMulti, &wire.MultiRequest{Ops: []wire.Op{{Type: wire.OpSetData, Request: set}}}, nil)
		failures("a multi was refused", 7)
		c.login("bob:5")
		c.call(wire.OpMultiRead, &wire.MultiRequest{Ops: []wire.Op{{Type: wire.OpGetData, Request: &wire.PathWatchRequest{Path: "/own"}}}}, nil)
		failures("a multiRead was refused", 8)
	})
}

// TestGuessesBehindWrites: a client that sends many guesses without waiting for replies is
// not faster: a guess is answered after the writes that show earlier guesses to be wrong.
func TestGuessesBehindWrites(t *testing.T) {
	inBubble(t, Options{}, func(t *testing.T, s *bubble) {
		owner := s.connectFrom("10.0.0.9")
		owner.login("bob:pw")
		own := create("/own", "")
		own.ACL = wire.CreatorACL()
		owner.must(wire.OpCreate, own, nil)
		c := s.connectFrom("10.0.0.1")
		const guesses = 20
		var out []byte
		for i := range int32(guesses) {
			out = append(out, request(2*i, wire.OpAuth, auth(wire.Text("digest"), fmt.Appendf(nil, "bob:%d", i)))...)
			out = append(out, request(2*i+1, wire.OpSetData, &wire.SetDataRequest{Path: "/own", Version: -1})...)
		}
		go c.nc.Write(out)
		all := took(func() {
			for range 2 * guesses {
				c.reply(nil)
			}
		})
		if want := 20 + 40 + 80 + 160 + 320 + 640 + 3*1000; all != time.Duration(want)*time.Millisecond {
			t.Errorf("all took %v, want %d ms", all, want)
		}
	})
}

// TestLoginDelayIsOff: with loginDelayMax=0 no login waits. A session with a short timeout
// waits for a third of that timeout at most.
func TestLoginDelayIsOff(t *testing.T) {
	o := Options{Config: testConfig()}
	o.Config.Access.SuperDigest = "super:D/InIHSb7yEEbrWz8b9l71RjZJU="
	o.Config.MinSessionTimeout = 600 * time.Millisecond
	inBubble(t, o, func(t *testing.T, s *bubble) {
		c := s.dialFrom("2001:db8::1")
		c.handshake(wire.ConnectRequest{TimeoutMS: 600, Password: make([]byte, 16)})
		for i := range 15 {
			c.login(fmt.Sprint("super:", i))
		}
		var times []time.Duration
		for range 8 {
			times = append(times, c.login("super:x"))
		}
		wantTimes(t, "with a timeout of 600 ms", times, 200, 200, 200, 200, 200, 200, 200, 200)
		wantTimes(t, "the same network", []time.Duration{s.connectFrom("2001:db8::2").login("super:x")}, 640)
		wantTimes(t, "another network", []time.Duration{s.connectFrom("2001:db8:0:1::1").login("super:x")}, 0)
		off := *s.config()
		off.Limits.LoginDelay = 0
		s.Reload(&off)
		wantTimes(t, "off", []time.Duration{s.connectFrom("2001:db8::1").login("super:x")}, 0)
	})
}

// failedLogin tries to log in by SASL with a wrong password on a new connection from an address, and
// returns how long the server took to answer the two messages of the login.
func (b *bubble) failedLogin(addr string) time.Duration {
	b.t.Helper()
	c := b.connectFrom(addr)
	return took(func() {
		_, answer := c.challenge("bob", "guessed")
		if h, _ := c.token(answer); h.Err != wire.ErrAuthFailed {
			b.t.Fatalf("a wrong password: %v", h.Err)
		}
	})
}

// TestWrongPasswordsBySASL shows exactly how late failed logins by SASL are answered: each of their two
// messages waits, also on new connections, and they count together with the wrong passwords of the super
// user. Other addresses are not affected. The log names each address once, however often it tries.
func TestWrongPasswordsBySASL(t *testing.T) {
	var log logBook
	o := loginOptions(t)
	o.Log = slog.New(slog.NewTextHandler(&log, nil))
	o.Config.Access.SuperDigest = "super:D/InIHSb7yEEbrWz8b9l71RjZJU="
	lines := func(addr string) int {
		n := 0
		for line := range strings.Lines(log.String()) {
			if strings.Contains(line, "its next logins are answered late (loginDelayMax)") && strings.Contains(line, "peer="+addr+" ") {
				n++
			}
		}
		return n
	}
	inBubble(t, o, func(t *testing.T, s *bubble) {
		var times []time.Duration
		for range 11 {
			times = append(times, s.failedLogin("10.0.0.1"))
		}
		wantTimes(t, "eleven logins", times, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)
		if n := lines("10.0.0.1"); n != 1 {
			t.Errorf("%d lines name the address after its first failures that count", n)
		}
		times = nil
		for range 8 {
			times = append(times, s.failedLogin("10.0.0.1"))
		}
		wantTimes(t, "further logins", times, 2*20, 2*40, 2*80, 2*160, 2*320, 2*640, 2*1000, 2*1000)
		c := s.connectFrom("10.0.0.1")
		wantTimes(t, "the right password", []time.Duration{took(func() { c.logIn("bob") })}, 2*1000)
		wantTimes(t, "a request after it", []time.Duration{took(func() { c.must(wire.OpPing, nil, nil) })}, 0)
		wantTimes(t, "the super user", []time.Duration{s.connectFrom("10.0.0.1").login("super:x")}, 1000)
		wantTimes(t, "another address", []time.Duration{s.failedLogin("10.0.0.2")}, 0)
		if n, other := lines("10.0.0.1"), lines("10.0.0.2"); n != 1 || other != 0 {
			t.Errorf("%d lines name the address, and %d another one that failed once", n, other)
		}
		for range 12 {
			s.failedLogin("10.0.0.2")
		}
		if n, other := lines("10.0.0.1"), lines("10.0.0.2"); n != 1 || other != 1 {
			t.Errorf("%d lines name the address, and %d another one that failed often", n, other)
		}
		time.Sleep(rate.FailuresForgotten)
		wantTimes(t, "after a quiet minute", []time.Duration{s.failedLogin("10.0.0.1")}, 0)
	})
}
