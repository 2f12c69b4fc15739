package zk

import (
	"slices"
	"testing"
	"testing/synctest"

	"bellwether/wire"
)

// TestQueuedCallsAreNotWaitedFor: a queued sync does not delay the read after it: the server answers the
// sync only when the read has arrived.
func TestQueuedCallsAreNotWaitedFor(t *testing.T) {
	bubble(t, func(t *testing.T) {
		e := newEnsemble(t)
		var sync int32
		e.serve = func(p *peer, h wire.RequestHeader, _ []byte) bool {
			switch h.Op {
			case wire.OpSync:
				sync = h.Xid
				return true
			case wire.OpGetData:
				p.reply(sync, 0, &wire.NullPathResponse{})
			}
			return false
		}
		c := e.connect(Options{LeaseDelay: 1})
		queued, answered := make(chan struct{}), make(chan error, 1)
		go func() { answered <- c.Sync(Queued(t.Context(), func() { close(queued) }), "/a") }()
		<-queued
		if _, _, err := c.Get(t.Context(), "/a"); err != nil {
			t.Error(err)
		}
		if err := <-answered; err != nil {
			t.Error(err)
		}
	})
}

// TestCallsBehindOneKeepTheirOrder shows the order of queued calls, also when they are
// sent again on another connection.
func TestCallsBehindOneKeepTheirOrder(t *testing.T) {
	bubble(t, func(t *testing.T) {
		e := newEnsemble(t)
		e.serve = func(p *peer, _ wire.RequestHeader, _ []byte) bool { return p.n == 0 } // the first connection never answers
		c := e.connect(Options{LeaseDelay: 1})
		queued, answered := make(chan struct{}), make(chan error, 2)
		go func() { answered <- c.Sync(Queued(t.Context(), func() { close(queued) }), "/a") }()
		<-queued
		go func() {
			_, _, err := c.Get(t.Context(), "/a")
			answered <- err
		}()
		synctest.Wait()
		e.cut()
		for range 2 {
			if err := <-answered; err != nil {
				t.Error(err)
			}
		}
		want := []string{"sync /a", "getData /a", "sync /a", "getData /a"}
		if got := e.log(); !slices.Equal(got, want) {
			t.Errorf("asked for %q", got)
		}
	})
}

// TestQueuedIsNotCalledForACallThatFailsBefore shows that the function given to Queued is
// not called if the call fails before it is in the queue.
func TestQueuedIsNotCalledForACallThatFailsBefore(t *testing.T) {
	bubble(t, func(t *testing.T) {
		e := newEnsemble(t)
		c := e.connect(Options{LeaseDelay: 1})
		ctx := Queued(InSession(t.Context(), 1<<40), func() { t.Error("told of a call that was not sent") })
		if err := c.Sync(ctx, "/a"); err == nil {
			t.Error("another session's sync was sent")
		}
	})
}
