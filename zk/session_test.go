package zk

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"bellwether/wire"
)

// These tests follow the life of a session: it expires, has no server, is resumed, is closed.

// TestExpiredSession: a server says that the session has expired. Everything that belongs to the session
// ends with it.
func TestExpiredSession(t *testing.T) {
	bubble(t, func(t *testing.T) {
		e := newEnsemble(t)
		e.greet = func(p *peer, req wire.ConnectRequest) *wire.ConnectResponse {
			if p.n == 1 {
				return refused()
			}
			return e.accept(req)
		}
		c := e.connect(Options{})
		_, _, w, _ := c.ChildrenW(t.Context(), "/a")
		s, err := c.AddWatch(t.Context(), "/a", wire.WatchPersistent)
		if err != nil {
			t.Fatal(err)
		}
		e.cut()
		synctest.Wait()
		if _, err := c.Set(t.Context(), "/a", nil, 0); !errors.Is(err, ErrSessionExpired) || isLost(err) {
			t.Errorf("queued write: %v, want ErrSessionExpired", err)
		}
		if _, err := w.Wait(t.Context()); err != ErrSessionExpired {
			t.Errorf("watch: %v", err)
		}
		if _, err := s.Next(t.Context()); err != ErrSessionExpired {
			t.Errorf("stream: %v", err)
		}
		waitFor(t, c, Connected)
		if req := e.connectRequest(2); req.Session != 0 || req.LastZxidSeen != 0 {
			t.Errorf("the new session asks %+v", req)
		}
		if c.Session().ID != 2 {
			t.Errorf("session is %s", c.Session().ID)
		}
	})
}

// TestAnswerThatTheSessionIsOver: a server answers a request with the error that the session is over, and would still accept the
// session: its end was not committed, and the leader has failed. The client does not use the session again.
func TestAnswerThatTheSessionIsOver(t *testing.T) {
	for _, one := range []bool{false, true} {
		bubble(t, func(t *testing.T) {
			e := newEnsemble(t)
			e.serve = func(p *peer, h wire.RequestHeader, body []byte) bool {
				if p.n > 0 || h.Op != wire.OpDelete {
					return false
				}
				p.reply(h.Xid, wire.ErrSessionExpired, nil)
				return true
			}
			c := e.connect(Options{OneSession: one})
			_, _, w, _ := c.ChildrenW(t.Context(), "/a")
			if err := c.Delete(t.Context(), "/a/bid", AnyVersion); !errors.Is(err, ErrSessionExpired) || isLost(err) {
				t.Errorf("delete: %v, want ErrSessionExpired", err)
			}
			if l := c.Lease(); l.Session == 1 {
				t.Errorf("the lease of the session goes on: %+v", l)
			}
			if _, err := w.Wait(t.Context()); err != ErrSessionExpired {
				t.Errorf("watch: %v", err)
			}
			synctest.Wait()
			if one {
				if err := c.Err(); !errors.Is(err, ErrSessionExpired) {
					t.Errorf("the client goes on: %v", err)
				}
				return
			}
			waitFor(t, c, Connected)
			if req := e.connectRequest(1); req.Session != 0 || req.LastZxidSeen != 0 {
				t.Errorf("the client asks for its old session: %+v", req)
			}
			if c.Session().ID != 2 {
				t.Errorf("session is %s", c.Session().ID)
			}
		})
	}
}

// TestResultThatTheSessionIsOver: a ZooKeeper server gives that error to an operation of a Multi, and answers the Multi without one.
func TestResultThatTheSessionIsOver(t *testing.T) {
	bubble(t, func(t *testing.T) {
		e := newEnsemble(t)
		e.serve = func(p *peer, h wire.RequestHeader, body []byte) bool {
			if p.n > 0 || h.Op != wire.OpMulti {
				return false
			}
			p.reply(h.Xid, wire.OK, &wire.MultiResponse{Results: []wire.OpResult{{Type: wire.OpError, Err: wire.ErrSessionExpired}, {Type: wire.OpError, Err: wire.ErrRuntimeInconsistency}}})
			return true
		}
		c := e.connect(Options{})
		if _, err := c.Multi(t.Context(), DeleteOp("/a/bid", AnyVersion), SetOp("/a/b", nil, 1)); !errors.Is(err, ErrSessionExpired) || isLost(err) {
			t.Errorf("multi: %v, want ErrSessionExpired", err)
		}
		if l := c.Lease(); l.Session == 1 {
			t.Errorf("the lease of the session goes on: %+v", l)
		}
		waitFor(t, c, Expired) // once the answers to other calls had time to arrive
		waitFor(t, c, Connected)
		if req := e.connectRequest(1); req.Session != 0 {
			t.Errorf("the client asks for its old session: %+v", req)
		}
	})
}

// TestSessionsThatEndSoon: if a server calls each session over soon after it was attached, the client waits before the next one, and
// longer each time. A session that lives is asked for without such a wait.
func TestSessionsThatEndSoon(t *testing.T) {
	bubble(t, func(t *testing.T) {
		e := newEnsemble(t)
		const soon = 12
		e.serve = func(p *peer, h wire.RequestHeader, body []byte) bool {
			if p.n >= soon || h.Op != wire.OpDelete {
				return false
			}
			p.reply(h.Xid, wire.ErrSessionExpired, nil)
			return true
		}
		c := e.connect(Options{SessionTimeout: 4 * time.Second})
		began := time.Now()
		for c.Session().ID <= soon {
			c.Delete(t.Context(), "/a/bid", AnyVersion)
			waitFor(t, c, Connected)
		}
		if took := time.Since(began); took < 2*time.Second {
			t.Errorf("%d sessions within %v", soon, took)
		}
		time.Sleep(3 * time.Second)
		e.cut()
		began = time.Now()
		synctest.Wait()
		waitFor(t, c, Connected)
		if took := time.Since(began); took > 100*time.Millisecond {
			t.Errorf("the session that lives is back after %v", took)
		}
	})
}

// TestDetachFromASessionThatIsOver: nobody can continue it.
func TestDetachFromASessionThatIsOver(t *testing.T) {
	bubble(t, func(t *testing.T) {
		e := newEnsemble(t)
		e.serve = func(p *peer, h wire.RequestHeader, body []byte) bool {
			if h.Op != wire.OpDelete {
				return false
			}
			p.reply(h.Xid, wire.ErrSessionExpired, nil)
			return true
		}
		c := e.connect(Options{OneSession: true})
		if err := c.Delete(t.Context(), "/a/bid", AnyVersion); !errors.Is(err, ErrSessionExpired) {
			t.Errorf("delete: %v", err)
		}
		if s := c.Detach(); s.ID != 0 {
			t.Errorf("session %v can be continued", s.ID)
		}
	})
}

// TestNothingIsSentAfterSuchAnAnswer: a call that comes after the header of that answer, while its rest is on its way, is not sent.
func TestNothingIsSentAfterSuchAnAnswer(t *testing.T) {
	bubble(t, func(t *testing.T) {
		e := newEnsemble(t)
		rest := make(chan struct{})
		e.serve = func(p *peer, h wire.RequestHeader, body []byte) bool {
			switch {
			case p.n > 0:
				return false
			case h.Op == wire.OpDelete:
				frame := wire.AppendFrame(nil, &wire.ReplyHeader{Xid: h.Xid, Zxid: 100, Err: wire.ErrSessionExpired}, &wire.PathResponse{Path: "/a/bid"})
				p.conn.Write(frame[:4+wire.ReplyHeaderLen])
				go func() {
					<-rest
					p.conn.Write(frame[4+wire.ReplyHeaderLen:])
				}()
				return true
			case h.Op != wire.OpPing:
				t.Errorf("%v is sent in a session that is over", h.Op)
			}
			return false
		}
		c := e.connect(Options{})
		synctest.Wait() // the first ping is answered
		var calls sync.WaitGroup
		calls.Go(func() {
			if err := c.Delete(t.Context(), "/a/bid", AnyVersion); !errors.Is(err, ErrSessionExpired) || isLost(err) {
				t.Errorf("delete: %v", err)
			}
		})
		synctest.Wait()
		calls.Go(func() {
			if _, _, err := c.Create(t.Context(), "/a/next", nil, Ephemeral); !errors.Is(err, ErrSessionExpired) || isLost(err) {
				t.Errorf("create: %v, want ErrSessionExpired", err)
			}
		})
		synctest.Wait()
		close(rest)
		calls.Wait()
	})
}

func TestOneSessionEndsWithIt(t *testing.T) {
	bubble(t, func(t *testing.T) {
		e := newEnsemble(t)
		e.greet = func(p *peer, req wire.ConnectRequest) *wire.ConnectResponse { return refused() }
		c := e.open(Options{OneSession: true, Resume: Session{ID: 9, Password: []byte("secret")}})
		waitFor(t, c, Expired)
		synctest.Wait()
		if _, _, err := c.Get(t.Context(), "/a"); !errors.Is(err, ErrSessionExpired) {
			t.Errorf("call: %v", err)
		}
		if req := e.connectRequest(0); req.Session != 9 || string(req.Password) != "secret" {
			t.Errorf("request is %+v", req)
		}
		if err := c.Close(t.Context()); err != nil || c.State().State != Closed {
			t.Errorf("close: %v, %v", err, c.State().State)
		}
	})
}

// TestBusyWriterPings: a writer that always has requests to send also sends its pings.
func TestBusyWriterPings(t *testing.T) {
	bubble(t, func(t *testing.T) {
		e := newEnsemble(t)
		var pings atomic.Int64
		var over atomic.Bool
		e.serve = func(_ *peer, h wire.RequestHeader, _ []byte) bool {
			if h.Op == wire.OpPing {
				pings.Add(1)
			} else {
				time.Sleep(time.Second / 4)
			}
			return false
		}
		c := e.connect(Options{SessionTimeout: 9 * time.Second})
		for range 20 {
			go func() {
				for !over.Load() {
					c.Set(t.Context(), "/a", make([]byte, batchMax), -1)
				}
			}()
		}
		time.Sleep(time.Minute)
		over.Store(true)
		if n := pings.Load(); n < 18 || e.connections() != 1 {
			t.Errorf("%d pings on %d connections in a minute, want about 20 on one", n, e.connections())
		}
		time.Sleep(time.Minute)
	})
}

// TestKnownBug4508AbsenceIsNotExpiry: while no server can be reached, the client does not report that its
// session has expired (ZOOKEEPER-4508).
func TestKnownBug4508AbsenceIsNotExpiry(t *testing.T) {
	bubble(t, func(t *testing.T) {
		e := newEnsemble(t)
		c := e.connect(Options{SessionTimeout: 4 * time.Second, LeaseDelay: time.Second})
		if left := c.Lease().Left(); left <= 0 {
			t.Fatalf("lease has %v left", left)
		}
		e.away.Store(true)
		e.cut()
		time.Sleep(time.Hour)
		if s := c.State(); s.State != Connecting || s.Session != 1 {
			t.Errorf("status is %+v, want connecting", s)
		}
		if left := c.Lease().Left(); left > 0 {
			t.Errorf("lease has %v left after an hour", left)
		}
		e.away.Store(false)
		if s := waitFor(t, c, Connected); s.Session != 1 {
			t.Errorf("session is %s, want the one that the server still has", s.Session)
		}
	})
}

// TestKnownBugSessionIsForgottenAfterRefusal: the servers have lost their data. They refuse the old
// session id once, and the client never sends it again (go-zookeeper/zk#108, kazoo#42).
func TestKnownBugSessionIsForgottenAfterRefusal(t *testing.T) {
	bubble(t, func(t *testing.T) {
		e := newEnsemble(t)
		e.greet = func(_ *peer, req wire.ConnectRequest) *wire.ConnectResponse {
			if req.Session == 0x99 {
				return refused()
			}
			return e.accept(req)
		}
		c := e.connect(Options{Resume: Session{ID: 0x99, Password: make([]byte, 16)}})
		if c.Session().ID != 1 {
			t.Errorf("session is %s", c.Session().ID)
		}
	})
}

// TestDetachAndResume: a detached session lives on. The next client takes over what the
// first client knew of the session: the last zxid that it has seen, and the smallest
// timeout.
func TestDetachAndResume(t *testing.T) {
	bubble(t, func(t *testing.T) {
		e := newEnsemble(t)
		c := e.connect(Options{SessionTimeout: 5 * time.Second})
		if err := c.Sync(t.Context(), "/"); err != nil { // zxid 100
			t.Fatal(err)
		}
		s := c.Detach()
		if slices.Contains(e.log(), "closeSession ") {
			t.Error("detach closed the session")
		}
		c = e.connect(Options{Resume: s, SessionTimeout: 30 * time.Second})
		if req := e.lastConnectRequest(); req.Session != s.ID || req.LastZxidSeen != 100 {
			t.Errorf("request is %+v, want session %s at zxid 100", req, s.ID)
		}
		if got := c.State().Timeout; got != 30*time.Second {
			t.Errorf("timeout is %v", got)
		}
		if got := c.Lease(); got.Session != s.ID || got.Timeout != 5*time.Second {
			t.Errorf("lease is %+v, want one that counts with 5 s", got)
		}
		if err := c.Close(t.Context()); err != nil {
			t.Error(err)
		}
		if !slices.Contains(e.log(), "closeSession ") {
			t.Error("close did not close the session")
		}
	})
}

// TestNewSessionRefused: if a server refuses to open a new session, no session has expired. The client
// asks again after pauses.
func TestNewSessionRefused(t *testing.T) {
	bubble(t, func(t *testing.T) {
		e := newEnsemble(t)
		e.greet = func(p *peer, req wire.ConnectRequest) *wire.ConnectResponse {
			if p.n < 20 {
				return refused()
			}
			return e.accept(req)
		}
		began := time.Now()
		c := e.open(Options{OneSession: true})
		if s, err := c.State().Next(t.Context()); err != nil || s.State != Connected {
			t.Errorf("status is %+v, %v, want connected", s, err)
		}
		if took := time.Since(began); took < time.Second {
			t.Errorf("asked 21 times in %v: no pause", took)
		}
	})
}

// TestClose: Close first waits for the answers to earlier calls, then for the server's answer to
// closeSession, and its time is bounded.
func TestClose(t *testing.T) {
	bubble(t, func(t *testing.T) {
		e := newEnsemble(t)
		c := e.connect(Options{})
		got := make(chan error, 1)
		_, _, w, _ := c.GetW(t.Context(), "/a")
		go func() { _, err := c.Set(t.Context(), "/a", nil, 0); got <- err }()
		synctest.Wait()
		if err := c.Close(t.Context()); err != nil {
			t.Error(err)
		}
		if err := <-got; err != nil {
			t.Errorf("a write before Close: %v", err)
		}
		if _, err := c.Set(t.Context(), "/a", nil, 0); !errors.Is(err, ErrClosed) {
			t.Errorf("a write after Close: %v", err)
		}
		if _, err := w.Wait(t.Context()); err != ErrClosed {
			t.Errorf("watch: %v", err)
		}
		if err := c.Close(t.Context()); err != nil {
			t.Errorf("second Close: %v", err)
		}
	})
}

// TestCloseDoesNotWaitForTheEndOfTheConnection: Close ends with the answer, whether or not the server
// closes the connection.
func TestCloseDoesNotWaitForTheEndOfTheConnection(t *testing.T) {
	bubble(t, func(t *testing.T) {
		e := newEnsemble(t)
		e.serve = func(p *peer, h wire.RequestHeader, _ []byte) bool {
			if h.Op == wire.OpCloseSession {
				p.reply(h.Xid, 0, nil)
			}
			return h.Op == wire.OpCloseSession
		}
		c := e.connect(Options{})
		began := time.Now()
		if err := c.Close(t.Context()); err != nil || time.Since(began) != 0 {
			t.Errorf("close: %v after %v", err, time.Since(began))
		}
	})
}

func TestCloseOutlivesALostConnection(t *testing.T) {
	bubble(t, func(t *testing.T) {
		e := newEnsemble(t)
		e.serve = func(p *peer, h wire.RequestHeader, _ []byte) bool {
			if h.Op == wire.OpCloseSession && p.n < 5 {
				p.conn.Close()
				return true
			}
			return false
		}
		c := e.connect(Options{})
		if err := c.Close(t.Context()); err != nil {
			t.Errorf("close: %v, want the sixth connection's answer", err)
		}
	})
}

// TestCloseFindsTheSessionGone: if the answer to closeSession is lost and the session is refused
// afterwards, Close has succeeded, and no expiry is reported.
func TestCloseFindsTheSessionGone(t *testing.T) {
	bubble(t, func(t *testing.T) {
		e := newEnsemble(t)
		e.greet = func(p *peer, req wire.ConnectRequest) *wire.ConnectResponse {
			if p.n > 0 {
				return refused()
			}
			return e.accept(req)
		}
		e.serve = func(p *peer, h wire.RequestHeader, _ []byte) bool {
			if h.Op == wire.OpCloseSession {
				p.conn.Close()
			}
			return h.Op == wire.OpCloseSession
		}
		c := e.connect(Options{})
		status := c.State()
		if err := c.Close(t.Context()); err != nil {
			t.Error(err)
		}
		for status.State != Closed {
			if status, _ = status.Next(t.Context()); status.State == Expired {
				t.Error("the end that was asked for is reported as an expiry")
			}
		}
	})
}

func TestCloseGivesUp(t *testing.T) {
	bubble(t, func(t *testing.T) {
		e := newEnsemble(t)
		c := e.connect(Options{SessionTimeout: 5 * time.Second})
		e.away.Store(true)
		e.cut()
		began := time.Now()
		if err := c.Close(context.Background()); !errors.Is(err, errNoListener) || time.Since(began) != 5*time.Second {
			t.Errorf("close: %v after %v, want the reason after the session's timeout", err, time.Since(began))
		}
		c = e.open(Options{})
		synctest.Wait()
		began = time.Now()
		if err := c.Close(context.Background()); err != nil || time.Since(began) > time.Second {
			t.Errorf("close without a session: %v after %v", err, time.Since(began))
		}
	})
}

func TestConnectSaysWhyNot(t *testing.T) {
	bubble(t, func(t *testing.T) {
		e := newEnsemble(t)
		e.away.Store(true)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_, err := Connect(ctx, "10.0.0.1", &Options{Dial: e.dial})
		if !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, errNoListener) {
			t.Errorf("error is %v, want the deadline and the last attempt", err)
		}
	})
}

// TestErr: Err is nil as long as a call can succeed, in this session or in a later one.
func TestErr(t *testing.T) {
	for _, one := range []bool{false, true} {
		bubble(t, func(t *testing.T) {
			e := newEnsemble(t)
			e.greet = func(_ *peer, req wire.ConnectRequest) *wire.ConnectResponse {
				if req.Session != 0 {
					return refused()
				}
				return e.accept(req)
			}
			c := e.connect(Options{OneSession: one})
			if err := c.Err(); err != nil {
				t.Errorf("connected: %v", err)
			}
			expired := c.State()
			e.cut()
			for expired.State != Expired {
				var err error
				if expired, err = expired.Next(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			if err := c.Err(); one != errors.Is(err, ErrSessionExpired) || !one && err != nil {
				t.Errorf("expired, the only session %v: %v", one, err)
			}
			_ = c.Close(t.Context())
			if err := c.Err(); !errors.Is(err, ErrClosed) {
				t.Errorf("closed: %v", err)
			}
		})
	}
}

// TestHungHandshakeKeepsTheSession: a server may accept a connection and not answer, for instance while
// it starts. The session survives that, even if there is no other server.
func TestHungHandshakeKeepsTheSession(t *testing.T) {
	bubble(t, func(t *testing.T) {
		e := newEnsemble(t)
		c := e.connect(Options{SessionTimeout: 30 * time.Second})
		var hung atomic.Bool
		e.greet = func(p *peer, req wire.ConnectRequest) *wire.ConnectResponse {
			if hung.CompareAndSwap(false, true) {
				<-t.Context().Done()
				return nil
			}
			return e.accept(req)
		}
		began := time.Now()
		e.cut()
		waitFor(t, c, Connecting)
		waitFor(t, c, Connected)
		if took := time.Since(began); took > 11*time.Second || !hung.Load() || c.Session().ID != 1 {
			t.Errorf("connected again after %v, hung: %v, session %s", took, hung.Load(), c.Session().ID)
		}
	})
}
