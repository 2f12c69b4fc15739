package recipe

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"bellwether/wire"
	"bellwether/zk"
)

// TestLockDo checks that Do returns the result of its function, and holds the lock exactly while the
// function runs.
func TestLockDo(t *testing.T) {
	for _, want := range []error{nil, errors.New("out of paper"), &zk.UnknownOutcomeError{Err: zk.ErrConnectionLoss}} {
		bubble(t, func(t *testing.T, s *fakeServer) {
			l := s.lock(nil)
			err := l.Do(t.Context(), func(ctx context.Context, h *Hold) error {
				if _, err := h.Do(ctx, zk.CheckOp("/", zk.AnyVersion)); err != nil {
					t.Error(err)
				}
				if n := len(s.bids(parent)); n != 1 {
					t.Errorf("%d bids", n)
				}
				return want
			})
			if err != want {
				t.Errorf("%v, want %v", err, want)
			}
			if bids := s.bids(parent); len(bids) > 0 {
				t.Errorf("left over: %v", bids)
			}
		})
	}
}

// TestLockDoReleasesWhenTheFunctionPanics checks that the lock is free after a panic.
func TestLockDoReleasesWhenTheFunctionPanics(t *testing.T) {
	bubble(t, func(t *testing.T, s *fakeServer) {
		l := s.lock(nil)
		func() {
			defer func() {
				if recover() != "boom" {
					t.Error("the panic is lost")
				}
			}()
			_ = l.Do(t.Context(), func(context.Context, *Hold) error { panic("boom") })
		}()
		release(t, acquire(t, l.Lock))
	})
}

// TestLockDoSaysThatTheLockWasLost checks that Do reports a lost lock, whatever the function returns, and
// ends its context.
func TestLockDoSaysThatTheLockWasLost(t *testing.T) {
	own := errors.New("out of paper")
	for name, returns := range map[string]func(ctx context.Context, h *Hold) error{
		"nil":              func(context.Context, *Hold) error { return nil },
		"the context's":    func(ctx context.Context, _ *Hold) error { return ctx.Err() },
		"the hold's":       func(_ context.Context, h *Hold) error { return fmt.Errorf("work: %w", h.Lost()) },
		"its own":          func(context.Context, *Hold) error { return own },
		"what Do has said": func(ctx context.Context, h *Hold) error { return second(h.Do(ctx)) },
	} {
		bubble(t, func(t *testing.T, s *fakeServer) {
			l := s.lock(nil)
			err := l.Do(t.Context(), func(ctx context.Context, h *Hold) error {
				s.expire(l.c.Session().ID)
				<-ctx.Done()
				return returns(ctx, h)
			})
			var lost *LostError
			if !errors.Is(err, ErrNotHeld) || !errors.As(err, &lost) || lost.Reason != SessionExpired || name == "its own" && !errors.Is(err, own) {
				t.Errorf("%s: %v", name, err)
			}
		})
	}
}

// TestLockDoWaitsForItsFunction checks that the next client holds the lock only after the function has
// returned, even if the function's context has ended before.
func TestLockDoWaitsForItsFunction(t *testing.T) {
	bubble(t, func(t *testing.T, s *fakeServer) {
		a, b := s.lock(nil), s.lock(nil)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() {
			done <- a.Do(ctx, func(ctx context.Context, _ *Hold) error {
				<-ctx.Done()
				time.Sleep(3 * time.Second)
				return ctx.Err()
			})
		}()
		synctest.Wait()
		next := acquireLater(t.Context(), b.Lock)
		cancel()
		time.Sleep(2 * time.Second)
		waits(t, next)
		if err := <-done; err != context.Canceled {
			t.Errorf("Do: %v", err)
		}
		release(t, got(t, next))
	})
}

// TestLockDoWithoutTheLock checks that Do does not call the function if it cannot take the lock.
func TestLockDoWithoutTheLock(t *testing.T) {
	bubble(t, func(t *testing.T, s *fakeServer) {
		h := acquire(t, s.lock(nil).Lock)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		err := s.lock(nil).Do(ctx, func(context.Context, *Hold) error {
			t.Error("called without the lock")
			return nil
		})
		if err != context.DeadlineExceeded {
			t.Errorf("Do: %v", err)
		}
		release(t, h)
	})
}

// TestLockDoAndRelease checks that the function given to Do may release the lock itself, and that it may keep the
// lock after its end by a Hold from Again.
func TestLockDoAndRelease(t *testing.T) {
	bubble(t, func(t *testing.T, s *fakeServer) {
		l := s.lock(nil)
		if err := l.Do(t.Context(), func(ctx context.Context, h *Hold) error { return h.Release(context.WithoutCancel(ctx)) }); err != nil {
			t.Error(err)
		}
		var kept *Hold
		err := l.Do(t.Context(), func(_ context.Context, h *Hold) (err error) {
			kept, err = h.Again()
			return err
		})
		if err != nil || kept.Lost() != nil || len(s.bids(parent)) != 1 {
			t.Errorf("%v, kept: %v", err, kept.Lost())
		}
		release(t, kept)
	})
}

// TestSemaphoreDo checks that Do holds a lease while its function runs.
func TestSemaphoreDo(t *testing.T) {
	bubble(t, func(t *testing.T, s *fakeServer) {
		m := made(NewSemaphore(s.connect(zk.Options{}), "/app/semaphore", 1, nil))
		err := m.Do(t.Context(), func(ctx context.Context, _ *Hold) error {
			if _, err := m.TryAcquire(ctx); !errors.Is(err, ErrHeld) {
				t.Errorf("TryAcquire: %v", err)
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
		release(t, acquire(t, m.TryAcquire))
	})
}

// TestLockDoReportsARefusedRemoval checks that Do returns the error of a server that refuses to remove the
// bid.
func TestLockDoReportsARefusedRemoval(t *testing.T) {
	bubble(t, func(t *testing.T, s *fakeServer) {
		err := s.lock(nil).Do(t.Context(), func(context.Context, *Hold) error {
			s.hook(func(_ *peer, op wire.OpCode, _ string) fate {
				if op == wire.OpDelete {
					return deny
				}
				return normal
			})
			return nil
		})
		if !errors.Is(err, zk.ErrNoAuth) {
			t.Errorf("Do: %v", err)
		}
	})
}
