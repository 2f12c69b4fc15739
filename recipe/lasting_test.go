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

// These tests let a server answer with the same error all the time, and count the requests that a recipe
// sends meanwhile. The recipe may end with the error or try again, but it must pause before each try, and
// longer each time.

const (
	// lastingMinute is how long each use lasts at most.
	lastingMinute = time.Minute
	// lastingMax bounds the requests of one use in that time. A recipe that does not pause sends thousands.
	// Pauses that grow to 2 s allow about 40 tries of a few requests each.
	lastingMax = 500
)

// lastingCodes are all codes that a server may answer a request with, and those that only a broken server
// sends.
var lastingCodes = []wire.Code{
	wire.ErrNoNode, wire.ErrNoAuth, wire.ErrQuotaExceeded, wire.ErrNotReadOnly, wire.ErrUnimplemented, wire.ErrThrottledOp,
	wire.ErrMarshalling, wire.ErrInvalidACL, wire.ErrBadArguments, wire.ErrSessionMoved, wire.ErrSystem, wire.Code(-3),
	wire.ErrRuntimeInconsistency, wire.ErrConnectionLoss, wire.ErrOperationTimeout, wire.Code(-122), wire.ErrNodeExists,
	wire.ErrBadVersion, wire.ErrNotEmpty, wire.ErrNoChildrenForEphemerals, wire.ErrEphemeralOnLocalSession, wire.Code(-100),
	wire.ErrSessionExpired, wire.Code(-999),
}

// lastingScopes say which requests are answered with the error.
var lastingScopes = map[string]func(op wire.OpCode, path string) bool{
	"all":    func(wire.OpCode, string) bool { return true },
	"writes": func(op wire.OpCode, _ string) bool { return op.IsWrite() },
	"reads":  func(op wire.OpCode, _ string) bool { return !op.IsWrite() && op != wire.OpSync },
}

// lasting runs one use for a minute. Meanwhile the requests of a scope have the given
// fate. It returns how many requests the use sent.
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
			return swallow // otherwise the clock of the test would never advance
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

// TestRecipesPauseUnderALastingError checks that the requests of a minute are bounded, whatever error the
// server answers with.
func TestRecipesPauseUnderALastingError(t *testing.T) {
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

// TestRecipesPauseWhereConnectionsEnd bounds the requests against a server that ends the connection
// instead of answering, whether or not it has carried out the request.
func TestRecipesPauseWhereConnectionsEnd(t *testing.T) {
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

// TestRecipesPauseUnderAMissingChroot bounds the requests of a client whose chroot does not exist. A
// call that has to create a znode returns that error.
func TestRecipesPauseUnderAMissingChroot(t *testing.T) {
	waits := map[string]bool{"cache": true, "cache, followed": true} // these wait until the chroot is created
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
