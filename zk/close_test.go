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

// TestCloseEndsUseBeforeTheServerHears: when closeSession reaches the server, the client no longer relies
// on its session: the status is Closed, the lease has ended, and the functions given to OnClose have run.
func TestCloseEndsUseBeforeTheServerHears(t *testing.T) {
	bubble(t, func(t *testing.T) {
		e := newEnsemble(t)
		var c *Client
		var mu sync.Mutex
		var called []string
		heard := false
		e.serve = func(_ *peer, h wire.RequestHeader, _ []byte) bool {
			if h.Op != wire.OpCloseSession {
				return false
			}
			mu.Lock()
			defer mu.Unlock()
			heard = true
			if s := c.State(); s.State != Closed || s.Session != 1 {
				t.Errorf("status is %v of session %s, want closed of session 1", s.State, s.Session)
			}
			if l := c.Lease(); l.Session != 0 {
				t.Errorf("lease is %+v, want none", l)
			}
			if want := []string{"a", "c"}; !slices.Equal(called, want) {
				t.Errorf("called: %q, want %q", called, want)
			}
			return false
		}
		c = e.connect(Options{})
		add := func(name string) func() {
			return c.OnClose(func() { mu.Lock(); defer mu.Unlock(); called = append(called, name) })
		}
		add("a")
		add("b")()
		add("c")
		status := c.State()
		if err := c.Close(t.Context()); err != nil || !heard {
			t.Errorf("close: %v, the server heard of it: %v", err, heard)
		}
		if next, err := status.Next(t.Context()); err != nil || next.State != Closed || !next.Final() {
			t.Errorf("next status is %v, %v; want closed and nothing after it", next.State, err)
		}
		if add("d"); called[len(called)-1] != "d" {
			t.Errorf("called: %q; a function given after Close is called at once", called)
		}
	})
}

// TestSecondCloseWaitsForTheFirst: a second Close waits until the first one has completed, and so does
// Detach.
func TestSecondCloseWaitsForTheFirst(t *testing.T) {
	for name, end := range map[string]func(c *Client){
		"Close":  func(c *Client) { c.Close(context.Background()) },
		"Detach": func(c *Client) { c.Detach() },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				e := newEnsemble(t)
				c := e.connect(Options{})
				release := make(chan struct{})
				ended := false
				c.OnClose(func() { <-release; ended = true })
				go c.Close(context.Background())
				synctest.Wait()
				second := make(chan bool)
				go func() { end(c); second <- ended }()
				synctest.Wait()
				if slices.Contains(e.log(), "closeSession ") {
					t.Error("the server heard of the end before OnClose's function returned")
				}
				close(release)
				if !<-second {
					t.Error("the second call returned before OnClose's function")
				}
			})
		})
	}
}

// TestDetachEndsUse: after Detach the client does nothing more that depends on the session, and the
// session stays alive.
func TestDetachEndsUse(t *testing.T) {
	bubble(t, func(t *testing.T) {
		e := newEnsemble(t)
		c := e.connect(Options{})
		called := false
		c.OnClose(func() { called = true })
		s := c.Detach()
		if !called || s.ID != 1 || c.State().State != Closed || c.Lease().Session != 0 {
			t.Errorf("called %v, session %s, status %v, lease %+v", called, s.ID, c.State().State, c.Lease())
		}
		if slices.Contains(e.log(), "closeSession ") {
			t.Error("the session was closed")
		}
		if again := e.connect(Options{Resume: s}); again.Session().ID != 1 {
			t.Errorf("resumed session %s, want 1", again.Session().ID)
		}
		if c.Detach().ID != 1 || c.Close(t.Context()) != nil {
			t.Error("a second end of a detached client fails")
		}
		if slices.Contains(e.log(), "closeSession ") {
			t.Error("Close after Detach closed the session of another client")
		}
	})
}

// TestCloseWithAnEndedContext: a context that has ended does not keep Close from ending
// the session.
func TestCloseWithAnEndedContext(t *testing.T) {
	bubble(t, func(t *testing.T) {
		e := newEnsemble(t)
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		for range 100 {
			c := e.connect(Options{})
			if err := c.Close(ended); err != nil {
				t.Errorf("close: %v", err)
			}
		}
		if got := count(e.log(), "closeSession "); got != 100 {
			t.Errorf("%d of 100 sessions were closed", got)
		}
	})
}

// TestCloseWithAnEndedContextIsBounded: Close also ends the session while the client reconnects, and
// gives up after a second.
func TestCloseWithAnEndedContextIsBounded(t *testing.T) {
	bubble(t, func(t *testing.T) {
		e := newEnsemble(t)
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		var silent atomic.Bool
		e.serve = func(*peer, wire.RequestHeader, []byte) bool { return silent.Load() }
		c := e.connect(Options{})
		e.cut()
		if err := c.Close(ended); err != nil || count(e.log(), "closeSession ") != 1 {
			t.Errorf("while it reconnects: %v", err)
		}
		ways := map[string]func(){
			"silent": func() { silent.Store(true) },
			"away":   func() { e.away.Store(true); e.cut() },
		}
		for name, end := range ways {
			c := e.connect(Options{})
			end()
			began := time.Now()
			if err := c.Close(ended); !errors.Is(err, context.Canceled) || time.Since(began) != closeTimeMin {
				t.Errorf("%s: %v after %v, want the context's error after %v", name, err, time.Since(began), closeTimeMin)
			}
			silent.Store(false)
			e.away.Store(false)
		}
	})
}

// TestZeroStatus: the zero Status has no successor, so only the context ends a wait for one.
func TestZeroStatus(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var s Status
		select {
		case <-s.Changed():
			t.Error("the zero status has changed")
		default:
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := s.Next(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Next: %v, want the context's error", err)
		}
		if s.Final() || s.State.String() != "connecting" {
			t.Errorf("status is %+v", s)
		}
	})
}
