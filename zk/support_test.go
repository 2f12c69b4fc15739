package zk

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"bellwether/wire"
)

// old makes the ensemble know only the operations of version 3.4. It answers others with code -6 and zxid
// -1 and closes the connection, or closes it without an answer.
func (e *ensemble) old(silent bool) {
	e.serve = func(p *peer, h wire.RequestHeader, _ []byte) bool {
		if !isNewer(h.Op) {
			return false
		}
		if !silent {
			p.replyAt(h.Xid, -1, wire.ErrUnimplemented, nil)
		}
		p.conn.Close()
		return true
	}
}

// TestChecklist18UnknownOperation: 18. An operation that the server does not know ends one connection,
// and not one for each use. If the operation has an older form, the client uses that.
func TestChecklist18UnknownOperation(t *testing.T) {
	bubble(t, func(t *testing.T) {
		e := newEnsemble(t)
		e.old(false)
		c := e.connect(Options{})
		for range 5 {
			if _, err := c.WhoAmI(t.Context()); !errors.Is(err, ErrUnsupported) {
				t.Fatalf("error is %v, want ErrUnsupported", err)
			}
			time.Sleep(time.Second)
		}
		if n := e.connections(); n != 2 || c.Session().ID != 1 {
			t.Errorf("%d connections, session %s; want one cut and the same session", n, c.Session().ID)
		}
		for range 3 {
			if path, _, err := c.Create(t.Context(), "/a", nil); path != "/a" || err != nil {
				t.Fatalf("create: %q, %v", path, err)
			}
		}
		if got := count(e.log(), "create /a"); got != 3 {
			t.Errorf("requests are %q, want three creates in the old form", e.log())
		}
		for range 3 {
			got, err := c.MultiRead(t.Context(), GetOp("/a"), ChildrenOp("/b"))
			if err != nil || string(got[0].Data) != "/a" || got[1].Err != nil {
				t.Errorf("multiRead: %v, %v", got, err)
			}
		}
		if _, err := c.AddWatch(t.Context(), "/a", wire.WatchPersistent); !errors.Is(err, ErrUnsupported) {
			t.Errorf("addWatch: %v", err)
		}
		_, _, w, err := c.GetW(t.Context(), "/a")
		if err != nil {
			t.Fatal(err)
		}
		if err := w.Remove(t.Context()); err != nil {
			t.Errorf("remove: %v, want none: here the watch is gone", err)
		}
		c.Sync(t.Context(), "/")
		if n := e.connections(); n != 6 {
			t.Errorf("%d connections, want one more for each operation", n)
		}
	})
}

// TestChecklist18ProbeSavesTheConnection: 18. With Probe, an unknown operation never ends a connection
// that is in use.
func TestChecklist18ProbeSavesTheConnection(t *testing.T) {
	for _, silent := range []bool{false, true} {
		t.Run(fmt.Sprint("silent=", silent), func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				e := newEnsemble(t)
				e.old(silent)
				c := e.connect(Options{Probe: true})
				first := c.State()
				for range 3 {
					if _, _, err := c.Create(t.Context(), "/a", nil); err != nil {
						t.Fatal(err)
					}
					if _, err := c.CountDescendants(t.Context(), "/a"); !errors.Is(err, ErrUnsupported) {
						t.Errorf("count: %v", err)
					}
				}
				if c.State().Since != first.Since {
					t.Error("the session's connection was cut")
				}
				want := 3
				if silent {
					want = 5 // an operation that ended the connection without an answer is probed once more
				}
				if n := e.connections(); n != want {
					t.Errorf("%d connections, want %d: one and those of two probes", n, want)
				}
			})
		})
	}
}

// TestChecklist18SilentCutIsSettledByAProbe: 18. If a server closes the connection without an answer, it
// is asked on another connection whether it knows the operation, before the operation is sent again. So
// there is no storm of reconnects.
func TestChecklist18SilentCutIsSettledByAProbe(t *testing.T) {
	bubble(t, func(t *testing.T) {
		e := newEnsemble(t)
		e.old(true)
		c := e.connect(Options{})
		_, _, err := c.Create(t.Context(), "/a", nil)
		if !isLost(err) {
			t.Fatalf("first create: %v, want an unknown outcome", err)
		}
		waitFor(t, c, Connected)
		for range 3 {
			if _, _, err = c.Create(t.Context(), "/a", nil); err != nil {
				t.Fatal(err)
			}
		}
		if n := e.connections(); n != 4 {
			t.Errorf("%d connections, want the cut one, the next and a probe's two", n)
		}
	})
}

// TestSwitchedOffIsNotUnknown: an operation that the server knows but has disabled does not count as
// unknown, and an operation that was answered once always counts as known.
func TestSwitchedOffIsNotUnknown(t *testing.T) {
	bubble(t, func(t *testing.T) {
		e := newEnsemble(t)
		var cut atomic.Bool
		e.serve = func(p *peer, h wire.RequestHeader, _ []byte) bool {
			switch h.Op {
			case wire.OpCreateTTL:
				p.reply(h.Xid, wire.ErrUnimplemented, nil)
				return true
			case wire.OpCreate2:
				if cut.Load() {
					p.conn.Close()
					return true
				}
			}
			return false
		}
		c := e.connect(Options{})
		for range 2 {
			if _, _, err := c.Create(t.Context(), "/a", nil, TTL(time.Hour)); !errors.Is(err, ErrUnsupported) {
				t.Errorf("error is %v", err)
			}
		}
		if got := count(e.log(), "createTTL /a"); got != 2 {
			t.Errorf("sent %d times, want each time", got)
		}
		c.Create(t.Context(), "/a", nil)
		synctest.Wait()
		cut.Store(true)
		if _, _, err := c.Create(t.Context(), "/a", nil); !isLost(err) {
			t.Errorf("error is %v", err)
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		if got := c.supportOf(address{"10.0.0.1", "10.0.0.1", "2181"}).ops[wire.OpCreate2]; got != known {
			t.Errorf("create2 is %d, want known", got)
		}
	})
}

// TestProbeOfEveryOperation: every operation that can be probed has a harmless request for it.
func TestProbeOfEveryOperation(t *testing.T) {
	for op := range wire.OpWhoAmI + 1 {
		if !isNewer(op) {
			continue
		}
		bubble(t, func(t *testing.T) {
			e := newEnsemble(t)
			c := e.connect(Options{})
			if got := c.probe(t.Context(), c.link.address, op); got != known {
				t.Errorf("%s is %d, want known", op, got)
			}
			if !slices.Contains(e.log(), "closeSession ") {
				t.Errorf("%s: the probe left its session", op)
			}
			e.away.Store(true)
			if got := c.probe(t.Context(), c.link.address, op); got != untried {
				t.Errorf("%s without a server is %d, want untried", op, got)
			}
			e = newEnsemble(t)
			e.old(false)
			c = e.connect(Options{})
			if got := c.probe(t.Context(), c.link.address, op); got != unknown {
				t.Errorf("%s is %d, want unknown", op, got)
			}
		})
	}
}

// TestProbeOfAServerThatGoesDown: a probe that fails because the server stops proves nothing. What the
// client knew about the server is still known when the server is back.
func TestProbeOfAServerThatGoesDown(t *testing.T) {
	bubble(t, func(t *testing.T) {
		e := newEnsemble(t)
		var down atomic.Bool
		e.serve = func(p *peer, h wire.RequestHeader, _ []byte) bool {
			if h.Op == wire.OpWhoAmI && down.Load() {
				e.away.Store(true)
				p.conn.Close()
				return true
			}
			return false
		}
		c := e.connect(Options{})
		a := c.link.address
		down.Store(true)
		if got := c.probe(t.Context(), a, wire.OpWhoAmI); got != untried {
			t.Errorf("whoAmI is %d, want untried", got)
		}
		e.away.Store(false)
		down.Store(false)
		if got := c.probe(t.Context(), a, wire.OpWhoAmI); got != known {
			t.Errorf("whoAmI is %d, want known", got)
		}
	})
}

// TestStreamMeetsAnOlderServer: when the client connects to an older server, a stream
// that this server does not support ends with the reason. All other streams and calls
// continue.
func TestStreamMeetsAnOlderServer(t *testing.T) {
	bubble(t, func(t *testing.T) {
		e := newEnsemble(t)
		e.serve = func(p *peer, h wire.RequestHeader, _ []byte) bool {
			if h.Op == wire.OpSetWatches2 && p.n > 0 {
				p.replyAt(h.Xid, -1, wire.ErrUnimplemented, nil)
				p.conn.Close()
				return true
			}
			return false
		}
		c := e.connect(Options{})
		s, _ := c.AddWatch(t.Context(), "/a", wire.WatchPersistent)
		_, _, w, _ := c.GetW(t.Context(), "/b")
		e.cut()
		gap, err := s.Next(t.Context())
		if err != nil || gap.Type != wire.EventNone {
			t.Errorf("got %v, %v", gap, err)
		}
		if _, err := s.Next(t.Context()); err != ErrUnsupported {
			t.Errorf("stream ended with %v", err)
		}
		time.Sleep(time.Second)
		e.peer().event(1, wire.EventNodeDeleted, "/b")
		if _, err := w.Wait(t.Context()); err != nil {
			t.Error(err)
		}
		if n := e.connections(); n != 3 {
			t.Errorf("%d connections, want three", n)
		}
	})
}

// TestChecklist18NoRepeatWithoutAProbe: 18. An unknown operation also ends only one
// connection if the caller tries again at once, before there is another connection.
func TestChecklist18NoRepeatWithoutAProbe(t *testing.T) {
	bubble(t, func(t *testing.T) {
		e := newEnsemble(t)
		e.old(true)
		c := e.connect(Options{})
		for range 5 {
			if _, err := c.CountDescendants(t.Context(), "/a"); err == nil {
				t.Fatal("an old server knows the operation")
			}
		}
		if n := e.connections(); n != 4 {
			t.Errorf("%d connections, want the cut one, the next and a probe's two", n)
		}
		c.beginClose()
		if _, err := c.CountDescendants(t.Context(), "/a"); !errors.Is(err, ErrUnsupported) && !errors.Is(err, ErrClosed) {
			t.Errorf("closed: %v", err)
		}
	})
}

// TestUnknownSupportWaitsForAConnection: without a connection, a call whose operation the next server may not
// know waits until its context or the client ends.
func TestUnknownSupportWaitsForAConnection(t *testing.T) {
	bubble(t, func(t *testing.T) {
		e := newEnsemble(t)
		e.old(true)
		c := e.connect(Options{})
		if _, err := c.CountDescendants(t.Context(), "/a"); !errors.Is(err, ErrConnectionLoss) {
			t.Fatalf("first: %v", err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Nanosecond)
		defer cancel()
		if _, err := c.CountDescendants(ctx, "/a"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("cancelled: %v", err)
		}
		c.stop()
		if _, err := c.CountDescendants(t.Context(), "/a"); !errors.Is(err, ErrClosed) {
			t.Errorf("closed: %v", err)
		}
	})
}
