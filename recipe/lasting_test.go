package recipe

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"bellwether/wire"
	"bellwether/zk"
)

// These tests let a server answer with the same error for ever, and count what a
// recipe sends meanwhile. The recipe may end with the error or try again, but
// it must pause before it tries again, and longer each time.

const (
	// lastingMinute is how long each use lasts at most.
	lastingMinute = time.Minute
	// lastingMax bounds what one use sends in that time. A recipe that does not
	// pause sends thousands; pauses that grow to 2 s allow about 40 tries, of a few requests each.
	lastingMax = 500
)

// lastingCodes are all codes that a server may answer a request with, and those
// that only a broken one sends.
var lastingCodes = []wire.Code{
	wire.ErrNoNode, wire.ErrNoAuth, wire.ErrQuotaExceeded, wire.ErrNotReadOnly, wire.ErrUnimplemented, wire.ErrThrottledOp,
	wire.ErrMarshalling, wire.ErrInvalidACL, wire.ErrBadArguments, wire.ErrSessionMoved, wire.ErrSystem, wire.ErrDataInconsistency,
	wire.ErrRuntimeInconsistency, wire.ErrConnectionLoss, wire.ErrOperationTimeout, wire.ErrRequestTimeout, wire.ErrNodeExists,
	wire.ErrBadVersion, wire.ErrNotEmpty, wire.ErrNoChildrenForEphemerals, wire.ErrEphemeralOnLocalSession, wire.ErrAPI,
	wire.ErrSessionExpired, wire.Code(-999),
}

// lastingScopes say which requests are answered with the error.
var lastingScopes = map[string]func(op wire.OpCode, path string) bool{
	"all":    func(wire.OpCode, string) bool { return true },
	"writes": func(op wire.OpCode, _ string) bool { return op.IsWrite() },
	"reads":  func(op wire.OpCode, _ string) bool { return !op.IsWrite() && op != wire.OpSync },
}

// lasting runs one use for a minute in which the requests of a scope have this fate, and
// returns how many it sent.
func lasting(t *testing.T, s *fakeServer, chroot string, use func(context.Context, *zk.Client) error, scope func(wire.OpCode, string) bool, f fate) (int, error) {
	t.Helper()
	var n atomic.Int32
	s.hook(func(_ *peer, op wire.OpCode, path string) fate {
		switch op {
		case wire.OpPing, wire.OpCloseSession, wire.OpSetWatches, wire.OpSetWatches2:
			return normal
		}
		switch i := n.Add(1); {
		case i > 10*lastingMax:
			return swallow // or the clock of the test would never advance
		case scope(op, path):
			return f
		}
		return normal
	})
	c := s.connectAt(chroot, zk.Options{})
	ctx, cancel := context.WithTimeout(t.Context(), lastingMinute)
	defer cancel()
	out := make(chan error, 1)
	go func() { out <- use(ctx, c) }()
	<-ctx.Done()
	sent := int(n.Load())
	s.hook(nil)
	select {
	case err := <-out:
		return sent, err
	case <-time.After(3 * time.Minute):
		t.Error("has not returned three minutes after its context ended")
		s.stop()
		return sent, <-out
	}
}

// TestNoRecipeIsHotUnderALastingError: the requests of a minute are bounded,
// whatever error the server answers with for that time.
func TestNoRecipeIsHotUnderALastingError(t *testing.T) {
	for _, u := range uses {
		t.Run(u.name, func(t *testing.T) {
			for _, code := range lastingCodes {
				for name, scope := range lastingScopes {
					sent, err := 0, error(nil)
					bubble(t, func(t *testing.T, s *fakeServer) {
						s.put("/app", "")
						s.refusal = code
						sent, err = lasting(t, s, "", u.use, scope, deny)
						synctest.Wait()
					})
					if sent > lastingMax {
						t.Errorf("%d requests in %v while %s are answered with %q; it ended with: %v", sent, lastingMinute, name, code, err)
					}
				}
			}
		})
	}
}

// TestNoRecipeIsHotWhereConnectionsEnd: the same where the server ends the connection in place of
// an answer, with the request carried out or not.
func TestNoRecipeIsHotWhereConnectionsEnd(t *testing.T) {
	for _, u := range uses {
		t.Run(u.name, func(t *testing.T) {
			for _, f := range []fate{dropAll, dropReply} {
				for name, scope := range lastingScopes {
					bubble(t, func(t *testing.T, s *fakeServer) {
						s.put("/app", "")
						if sent, err := lasting(t, s, "", u.use, scope, f); sent > lastingMax {
							t.Errorf("%d requests in %v where %s end the connection; it ended with: %v", sent, lastingMinute, name, err)
						}
						synctest.Wait()
					})
				}
			}
		})
	}
}

// TestNoRecipeIsHotUnderAMissingChroot: the same where the znode does not exist below
// which the client sees the tree. The error of whatever has to create something says so.
func TestNoRecipeIsHotUnderAMissingChroot(t *testing.T) {
	waits := map[string]bool{"cache": true, "cache, followed": true} // for somebody who makes the chroot
	for _, u := range uses {
		t.Run(u.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *fakeServer) {
				sent, err := lasting(t, s, "/missing/chroot", u.use, func(wire.OpCode, string) bool { return false }, normal)
				if sent > lastingMax {
					t.Errorf("%d requests in %v", sent, lastingMinute)
				}
				if !errors.Is(err, zk.ErrNoChroot) && !waits[u.name] {
					t.Errorf("it ended with: %v", err)
				}
			})
		})
	}
}
