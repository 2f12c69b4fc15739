package zk

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"bellwether/wire"
)

// TestAbandonedWatchBesideAnother: the watch of an abandoned read stays on the server if another read of
// the path relies on it. That read may have been answered already, or may still be under way.
func TestAbandonedWatchBesideAnother(t *testing.T) {
	for _, before := range []bool{true, false} {
		bubble(t, func(t *testing.T) {
			e := newEnsemble(t)
			release := make(chan struct{})
			slow := make(chan struct{}, 1)
			e.serve = func(_ *peer, h wire.RequestHeader, _ []byte) bool {
				if h.Op == wire.OpGetData {
					select {
					case <-slow:
						<-release
					default:
					}
				}
				return false
			}
			c := e.connect(Options{})
			var w *Watch
			var err error
			if before {
				_, _, w, err = c.GetW(t.Context(), "/a")
				fine(t, w, err)
			}
			slow <- struct{}{} // the next read
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			if _, _, _, err := c.GetW(ctx, "/a"); err == nil {
				t.Fatal("the read was answered")
			}
			got := make(chan *Watch, 1)
			if !before {
				go func() { _, _, w, _ := c.GetW(t.Context(), "/a"); got <- w }()
				synctest.Wait()
			}
			close(release)
			if !before {
				w = <-got
			}
			synctest.Wait()
			if n := count(e.log(), "removeWatches /a"); n != 0 {
				t.Errorf("the other watch was there before: %v; the server was told %d times to forget it", before, n)
			}
			e.peer().event(101, wire.EventNodeDataChanged, "/a")
			if _, err := w.Wait(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}
