package server

import (
	"bytes"
	"net"
	"testing"
	"time"

	"bellwether/internal/driver"
	"bellwether/wire"
)

// quick returns a configuration that allows short sessions.
func quick() Options {
	c := testConfig()
	c.TickTime = 20 * time.Millisecond
	c.MinSessionTimeout, c.MaxSessionTimeout = 100*time.Millisecond, lastingMS*time.Millisecond
	return Options{Config: c}
}

// TestSilentSessionExpires: a session that is not heard from expires: its ephemerals are
// deleted, its connection is closed without a frame, and it cannot be resumed.
func TestSilentSessionExpires(t *testing.T) {
	s := start(t, quick())
	watcher := s.connect()
	var c *client
	var begin time.Time
	var timeout time.Duration
	withTimeouts(t, 100*time.Millisecond, func(d time.Duration) error {
		c, timeout = s.connectFor(d), d
		e := create("/e", "x")
		e.Flags = wire.FlagEphemeral
		begin = time.Now()
		if err := c.try(wire.OpCreate, e, nil); err != nil {
			return err
		}
		return watcher.try(wire.OpExists, &wire.PathWatchRequest{Path: "/e", Watch: true}, &wire.StatResponse{})
	})
	var event wire.WatcherEvent
	if h := watcher.reply(&event); h.Xid != wire.XidEvent || event.Type != wire.EventNodeDeleted {
		t.Fatalf("%+v %+v", h, event)
	}
	if took := time.Since(begin); took < timeout {
		t.Errorf("expired after %v, timeout is %v", took, timeout)
	}
	c.closed()
	if got := s.resume(c.session.Session, c.session.Password); got.TimeoutMS != 0 {
		t.Errorf("expired session was resumed: %+v", got)
	}
}

// resume tries to resume a session and returns the answer.
func (r *running) resume(id wire.SessionID, password []byte) wire.ConnectResponse {
	r.t.Helper()
	c := r.dial()
	c.handshake(wire.ConnectRequest{TimeoutMS: 5000, Session: id, Password: password, HasReadOnly: true})
	if c.session.TimeoutMS == 0 {
		c.closed()
	}
	return c.session
}

// TestSessionResumed: a session moves to the connection that resumes it with its
// password, and the older connection is closed. A client without the password does not
// disturb the session.
func TestSessionResumed(t *testing.T) {
	s := start(t, Options{})
	c := s.connect()
	wrong := s.resume(c.session.Session, bytes.Repeat([]byte{1}, 16))
	if wrong.TimeoutMS != 0 || wrong.Session != 0 || !bytes.Equal(wrong.Password, make([]byte, 16)) || !wrong.HasReadOnly {
		t.Errorf("wrong password: %+v", wrong)
	}
	if short := s.resume(c.session.Session, c.session.Password[:15]); short.TimeoutMS != 0 {
		t.Errorf("short password: %+v", short)
	}
	c.must(wire.OpPing, nil, nil)
	again := s.resume(c.session.Session, c.session.Password)
	if again.Session != c.session.Session || !bytes.Equal(again.Password, c.session.Password) || again.TimeoutMS != 5000 {
		t.Errorf("resumed: %+v", again)
	}
	c.closed()
	if unknown := s.resume(77, ptr(wire.SessionID(77).Password())); unknown.TimeoutMS != 0 || unknown.Session != 0 {
		t.Errorf("unknown session: %+v", unknown)
	}
}

func ptr(p [wire.PasswordLen]byte) []byte { return p[:] }

// TestLostSessionIsRefusedNotReplaced: a server that has lost its data refuses the
// earlier sessions and does not open new ones in their place
// (ClickHouse/ClickHouse#116690).
func TestLostSessionIsRefusedNotReplaced(t *testing.T) {
	c := start(t, Options{}).connect()
	if got := start(t, Options{Seed: 2}).resume(c.session.Session, c.session.Password); got.Session != 0 || got.TimeoutMS != 0 {
		t.Errorf("another server resumed %v as %+v", c.session.Session, got)
	}
}

// TestReadOnlyFlagIsEchoed: the answer to a handshake contains the flag byte exactly if
// the client has sent one.
func TestReadOnlyFlagIsEchoed(t *testing.T) {
	s := start(t, Options{})
	for _, has := range []bool{true, false} {
		c := s.dial()
		c.write(wire.AppendFrame(nil, &wire.ConnectRequest{TimeoutMS: 5000, Password: make([]byte, 16), HasReadOnly: has}))
		want := 36
		if has {
			want = 37
		}
		if got := len(c.frame()); got != want {
			t.Errorf("flag sent %v: answer has %d bytes, want %d", has, got, want)
		}
	}
}

// TestTimeoutIsClamped: the requested timeout is clamped to what the server allows.
func TestTimeoutIsClamped(t *testing.T) {
	s := start(t, Options{}) // tickTime 2000
	for ask, want := range map[int32]int32{-5: 4000, 0: 4000, 100: 4000, 7000: 7000, 100_000_000: 40_000} {
		c := s.dial()
		c.handshake(wire.ConnectRequest{TimeoutMS: ask, HasReadOnly: true, ProtocolVersion: 7})
		if c.session.TimeoutMS != want || c.session.ProtocolVersion != 0 {
			t.Errorf("asked for %d, got %+v, want %d", ask, c.session, want)
		}
	}
}

// TestClientAheadIsDisconnected: a client that has seen a later state than the server is
// disconnected without a byte, so that it tries another server (etcd 15271).
func TestClientAheadIsDisconnected(t *testing.T) {
	s := start(t, Options{})
	s.connect().create("/a", "")
	c := s.dial()
	c.write(wire.AppendFrame(nil, &wire.ConnectRequest{LastZxidSeen: 3, TimeoutMS: 5000}))
	c.closed()
	c = s.dial()
	c.handshake(wire.ConnectRequest{LastZxidSeen: 2, TimeoutMS: 5000})
	if c.session.Session == 0 {
		t.Error("a client that has seen the server's own state was refused")
	}
}

// TestRequestsAfterTheHandshake: requests in the same segment as the handshake wait for
// it and are answered in order.
func TestRequestsAfterTheHandshake(t *testing.T) {
	c := start(t, Options{}).dial()
	out := wire.AppendFrame(nil, &wire.ConnectRequest{TimeoutMS: 5000, Password: make([]byte, 16), HasReadOnly: true})
	out = append(out, request(1, wire.OpCreate, create("/a", "x"))...)
	out = append(out, request(2, wire.OpGetData, &wire.PathWatchRequest{Path: "/a"})...)
	out = append(out, request(-2, wire.OpPing, nil)...)
	c.write(out)
	if err := wire.Decode(c.frame(), &c.session); err != nil || c.session.Session == 0 {
		t.Fatal(c.session, err)
	}
	for _, want := range []int32{1, 2, -2} {
		if h := c.reply(nil); h.Xid != want || h.Err != wire.OK {
			t.Fatalf("reply %+v, want xid %d", h, want)
		}
	}
}

// TestCloseSession: a closeSession is answered, then the connection is closed. Requests
// after it get no answer, and the session cannot be resumed.
func TestCloseSession(t *testing.T) {
	s := start(t, Options{})
	c := s.connect()
	e := create("/e", "")
	e.Flags = wire.FlagEphemeral
	out := request(1, wire.OpCreate, e)
	out = append(out, request(2, wire.OpCloseSession, nil)...)
	out = append(out, request(3, wire.OpGetData, &wire.PathWatchRequest{Path: "/"})...)
	out = append(out, request(4, wire.OpCreate, create("/late", ""))...)
	c.write(out)
	c.reply(nil)
	if h := c.reply(nil); h.Xid != 2 || h.Err != wire.OK {
		t.Fatalf("close: %+v", h)
	}
	c.closed()
	if got := s.resume(c.session.Session, c.session.Password); got.TimeoutMS != 0 {
		t.Errorf("closed session was resumed: %+v", got)
	}
	other := s.connect()
	for _, p := range []string{"/e", "/late"} {
		if h := other.call(wire.OpExists, &wire.PathWatchRequest{Path: p}, nil); h.Err != wire.ErrNoNode {
			t.Errorf("%s: %v", p, h.Err)
		}
	}
}

// TestNothingIsAnsweredAfterClose: requests after a closeSession go to the loop, which
// answers none of them, even between the reply and the end of the connection.
func TestNothingIsAnsweredAfterClose(t *testing.T) {
	s := start(t, Options{})
	ours, theirs := net.Pipe()
	defer ours.Close()
	defer theirs.Close()
	c := newConn(s.Server, 1, ours)
	exists := request(2, wire.OpExists, &wire.PathWatchRequest{Path: "/"})[frameHead:]
	for i, frame := range [][]byte{request(1, wire.OpCloseSession, nil)[frameHead:], exists} {
		if err := c.request(frame, new(batch)); err != nil || len(c.pending) != i+1 {
			t.Fatalf("request %d: %d are handed to the loop, %v", i+1, len(c.pending), err)
		}
		c.outstanding.Store(0) // they are answered
	}
	s.inProcess.Store(0)
}

// TestLastReplyIsNotLost: the last reply reaches a client that has sent more than the
// server reads: the server drains the input before it closes the socket.
func TestLastReplyIsNotLost(t *testing.T) {
	s := start(t, Options{})
	for range 20 {
		c := s.connect()
		out := request(1, wire.OpCloseSession, nil)
		for range 20_000 {
			out = append(out, request(2, wire.OpExists, &wire.PathWatchRequest{Path: "/"})...)
		}
		go c.nc.Write(out)
		if h := c.reply(nil); h.Xid != 1 || h.Err != wire.OK {
			t.Fatalf("%+v", h)
		}
		c.closed()
		c.nc.Close()
	}
}

// TestSessionlessConnectionIsClosed: a connection that does not open a session is closed
// after a while.
func TestSessionlessConnectionIsClosed(t *testing.T) {
	o := quick()
	o.Config.Limits.Sessionless = time.Second
	s := start(t, o)
	c := s.dial()
	half := s.dial()
	half.write([]byte{0, 0, 0, 44, 0, 0})
	c.closed()
	half.closed()
	if n := s.stats.sessionlessGone.Value(); n != 2 {
		t.Errorf("counted %d", n)
	}
	if keeps := s.connect(); keeps.data("/") != "" {
		t.Error("unreachable")
	}
}

// TestSessionsSurviveARestart: sessions survive a restart with their full timeout, and so
// do their ephemerals.
func TestSessionsSurviveARestart(t *testing.T) {
	o := Options{Config: testConfig()}
	s := start(t, o)
	o.FS = s.opt.FS
	c := s.connect()
	e := create("/e", "x")
	e.Flags = wire.FlagEphemeral
	c.must(wire.OpCreate, e, nil)
	if err := s.end(); err != nil {
		t.Fatal(err)
	}
	again := start(t, o)
	got := again.dial()
	got.handshake(wire.ConnectRequest{TimeoutMS: lastingMS, Session: c.session.Session, Password: c.session.Password})
	if got.session.Session != c.session.Session {
		t.Fatalf("resumed: %+v", got.session)
	}
	if got.data("/e") != "x" {
		t.Error("the ephemeral is gone")
	}
	if fresh := again.connect(); fresh.session.Session == c.session.Session {
		t.Error("an id was assigned twice")
	}
}

// TestHeardWhileSealed: the reader leaves a ping to the loop if the session was sealed when
// the ping arrived, even if it is no longer sealed when the ping is carried out. The arrival
// was not recorded, so an answer of the reader would promise a later expiry than the
// recorded one.
func TestHeardWhileSealed(t *testing.T) {
	s := start(t, Options{})
	ours, theirs := net.Pipe()
	defer ours.Close()
	defer theirs.Close()
	c := newConn(s.Server, 1<<40, ours)
	c.heard.Store(driver.Sealed)
	now := batch{start: s.clock()}
	now.sealed = !c.touch(now.start)
	c.heard.Store(0) // the loop lets the session live
	if err := c.request(request(wire.XidPing, wire.OpPing, nil)[4:], &now); err != nil {
		t.Fatal(err)
	}
	if now.direct != 0 || len(c.pending) != 1 {
		t.Errorf("%d answered by the reader, %d left to the loop", now.direct, len(c.pending))
	}
	s.inProcess.Add(-1)
}
