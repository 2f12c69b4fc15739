package recipe

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"bellwether/wire"
	"bellwether/zk"
)

// denyRemoval makes the server refuse deletions, also in transactions.
func (s *fakeServer) denyRemoval() {
	s.hook(func(_ *peer, op wire.OpCode, _ string) fate {
		if op == wire.OpDelete || op == wire.OpMulti {
			return deny
		}
		return normal
	})
}

// TestBidThatStaysIsReported checks a client that may not delete its own bid, and would wait behind it until
// its session ends. The call that leaves the bid returns an error that says so. So does the next bid of
// the same client, from whichever object, until the bid can be removed.
func TestBidThatStaysIsReported(t *testing.T) {
	hold := func(acquire func(context.Context) (*Hold, error)) func(context.Context) error {
		return func(ctx context.Context) error {
			h, err := acquire(ctx)
			if err != nil {
				return err
			}
			return h.Release(ctx)
		}
	}
	for name, use := range map[string]func(c *zk.Client) func(context.Context) error{
		"lock": func(c *zk.Client) func(context.Context) error { return hold(made(NewLock(c, "/app/lock", nil)).Lock) },
		"write lock": func(c *zk.Client) func(context.Context) error {
			return hold(made(NewReadWriteLock(c, "/app/lock", nil)).Lock)
		},
		"read lock": func(c *zk.Client) func(context.Context) error {
			return hold(made(NewReadWriteLock(c, "/app/lock", nil)).RLock)
		},
		"semaphore": func(c *zk.Client) func(context.Context) error {
			return hold(made(NewSemaphore(c, "/app/semaphore", 1, nil)).Acquire)
		},
		"several locks": func(c *zk.Client) func(context.Context) error {
			return func(ctx context.Context) error {
				h, err := made(NewMultiLock(made(NewLock(c, "/app/lock", nil)))).Lock(ctx)
				if err != nil {
					return err
				}
				return h.Release(ctx)
			}
		},
		"election": func(c *zk.Client) func(context.Context) error {
			return func(ctx context.Context) error {
				e := made(NewElection(c, "/app/election", "a", nil))
				if _, err := e.Campaign(ctx); err != nil {
					return err
				}
				return e.Resign(ctx)
			}
		},
		"queue": func(c *zk.Client) func(context.Context) error {
			return func(ctx context.Context) error {
				ctx, cancel := context.WithTimeout(ctx, time.Second)
				defer cancel()
				_, err := made(NewQueue(c, jobs, nil)).Take(ctx)
				return err
			}
		},
		"work queue": func(c *zk.Client) func(context.Context) error {
			return func(ctx context.Context) error {
				ctx, cancel := context.WithTimeout(ctx, time.Second)
				defer cancel()
				_, err := made(NewWorkQueue(c, jobs, nil)).Take(ctx)
				return err
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *fakeServer) {
				s.put("/app", "")
				c := s.connect(zk.Options{})
				s.denyRemoval()
				if err := use(c)(t.Context()); !errors.Is(err, zk.ErrNoAuth) {
					t.Errorf("the call that leaves it: %v", err)
				}
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				err := use(c)(ctx)
				if !errors.Is(err, zk.ErrNoAuth) || !strings.Contains(err.Error(), "stands in the way") {
					t.Errorf("the next one: %v", err)
				}
				s.hook(nil)
				if err := use(c)(ctx); err != nil && !strings.Contains(name, "queue") || err != nil && !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("once it can be removed: %v", err)
				}
				if n := s.ephemerals(); n > 0 {
					t.Errorf("%d ephemeral znodes are left", n)
				}
			})
		})
	}
}

// TestCancelledLockReportsItsBid checks that a cancelled Lock reports a bid that the server does not let
// it remove.
func TestCancelledLockReportsItsBid(t *testing.T) {
	bubble(t, func(t *testing.T, s *fakeServer) {
		s.put("/app", "")
		locked("/app/lock")(t, s.connect(zk.Options{}))
		c := s.connect(zk.Options{})
		s.denyRemoval()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := made(NewLock(c, "/app/lock", nil)).Lock(ctx)
		if !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, zk.ErrNoAuth) {
			t.Errorf("cancelled: %v", err)
		}
		s.expire(c.Session().ID) // the bid disappears with the session
		ctx, cancel = context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err = made(NewLock(c, "/app/lock", nil)).Lock(ctx); errors.Is(err, zk.ErrNoAuth) && strings.Contains(err.Error(), "in the way") {
			t.Errorf("in the next session: %v", err)
		}
	})
}
