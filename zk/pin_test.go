package zk

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"bellwether/wire"
)

// TestPinnedCallsEndWithTheirSession shows that neither a queued nor a later
// call is carried out by the session that follows the one it is bound to.
func TestPinnedCallsEndWithTheirSession(t *testing.T) {
	bubble(t, func(t *testing.T) {
		e := newEnsemble(t)
		e.greet = func(p *peer, req wire.ConnectRequest) *wire.ConnectResponse {
			if p.n == 1 {
				return refused()
			}
			return e.accept(req)
		}
		c := e.connect(Options{})
		ctx := InSession(t.Context(), c.Session().ID)
		if _, _, err := c.Create(ctx, "/a", nil, Ephemeral); err != nil {
			t.Fatal(err)
		}
		e.cut()
		synctest.Wait()
		waitFor(t, c, Connected)
		if _, _, err := c.Create(ctx, "/b", nil, Ephemeral); !errors.Is(err, ErrSessionExpired) || isLost(err) {
			t.Errorf("pinned create: %v, want ErrSessionExpired", err)
		}
		if _, _, err := c.Create(t.Context(), "/c", nil); err != nil {
			t.Error(err)
		}
		if slices.Contains(e.log(), "create2 /b") {
			t.Error("the pinned create reached the server")
		}
	})
}

// TestPinnedCallsDoNotLeaveAReadOnlyServer: a session that a read-only server opened ends without
// expiring when another server opens a new session.
func TestPinnedCallsDoNotLeaveAReadOnlyServer(t *testing.T) {
	bubble(t, func(t *testing.T) {
		e := newEnsemble(t)
		e.greet = func(p *peer, req wire.ConnectRequest) *wire.ConnectResponse {
			resp := e.accept(req)
			resp.ReadOnly = p.n == 0
			return resp
		}
		c := e.open(Options{ReadOnly: true})
		waitFor(t, c, ReadOnly)
		synctest.Wait()
		ctx := InSession(t.Context(), c.Session().ID)
		e.cut()
		synctest.Wait()
		if _, _, err := c.Create(ctx, "/a", nil, Ephemeral); !errors.Is(err, ErrSessionExpired) || isLost(err) {
			t.Errorf("pinned create: %v, want ErrSessionExpired", err)
		}
		if slices.Contains(e.log(), "create2 /a") {
			t.Error("the pinned create reached the server")
		}
	})
}

// TestClosingProvesNothing shows that the lease ends before a server can learn that the client closes,
// even while pings are answered.
func TestClosingProvesNothing(t *testing.T) {
	bubble(t, func(t *testing.T) {
		e := newEnsemble(t)
		var c *Client
		e.serve = func(p *peer, h wire.RequestHeader, _ []byte) bool {
			if h.Op == wire.OpCloseSession {
				p.reply(wire.XidPing, 0, nil)
				if l := c.Lease(); l.Session != 0 || l.Term() != 0 {
					t.Errorf("lease is %+v while the session is being closed", l)
				}
			}
			return false
		}
		c = e.connect(Options{LeaseDelay: time.Second})
		if c.Lease().Left() <= 0 {
			t.Fatal("no lease before the close")
		}
		if err := c.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
}
