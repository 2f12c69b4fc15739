package recipe

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"bellwether/zk"
)

// several makes a MultiLock with a client of its own.
func (s *fakeServer) several(parents ...string) *MultiLock {
	s.t.Helper()
	c := s.connect(zk.Options{})
	var locks []*Lock
	for _, p := range parents {
		l, err := NewLock(c, p, nil)
		if err != nil {
			s.t.Fatal(err)
		}
		locks = append(locks, l)
	}
	m, err := NewMultiLock(locks...)
	if err != nil {
		s.t.Fatal(err)
	}
	return m
}

type heldAll struct {
	h   *MultiHold
	err error
}

func lockAllLater(ctx context.Context, m *MultiLock) <-chan heldAll {
	out := make(chan heldAll, 1)
	go func() {
		h, err := m.Lock(ctx)
		out <- heldAll{h, err}
	}()
	synctest.Wait()
	return out
}

// TestMultiLockHoldsAllOrNothing checks that a client waits only for the first lock that it cannot get, in
// whatever order the locks are given, and that a failed TryLock leaves nothing.
func TestMultiLockHoldsAllOrNothing(t *testing.T) {
	bubble(t, func(t *testing.T, s *fakeServer) {
		a, err := s.several("/x", "/y").Lock(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		lb := lockAllLater(t.Context(), s.several("/y", "/z", "/x"))
		if n := len(s.bids("/y")) + len(s.bids("/z")); n != 1 {
			t.Errorf("%d bids behind the first, want one", n)
		}
		if _, err := s.several("/z", "/y").TryLock(t.Context()); !errors.Is(err, ErrHeld) {
			t.Errorf("TryLock: %v", err)
		}
		s.empty("/z")
		if a.Proof() != nil || a.Left() <= 0 || a.Lost() != nil || len(a.Holds()) != 2 {
			t.Errorf("proof %v, %v left, lost %v", a.Proof(), a.Left(), a.Lost())
		}
		release(t, a)
		if a.Context().Err() == nil || !errors.Is(a.Lost(), ErrReleased) || a.Left() > 0 {
			t.Errorf("after release: %v, %v left", a.Lost(), a.Left())
		}
		b := <-lb
		if b.err != nil {
			t.Fatal(b.err)
		}
		release(t, b.h)
		s.empty("/x", "/y", "/z")
	})
}

// TestMultiLockGuardsWithAllBids checks that a write fails if one of the bids is gone.
func TestMultiLockGuardsWithAllBids(t *testing.T) {
	bubble(t, func(t *testing.T, s *fakeServer) {
		h, err := s.several("/x", "/y").Lock(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if res, err := h.Do(t.Context(), zk.CreateOp("/made", nil)); err != nil || len(res) != 1 || res[0].Path != "/made" {
			t.Fatalf("%+v, %v", res, err)
		}
		if res, err := h.Do(t.Context(), zk.CreateOp("/made", nil)); !errors.Is(err, zk.ErrNodeExists) || len(res) != 1 {
			t.Errorf("%+v, %v", res, err)
		}
		s.delete(h.Holds()[1].Bid())
		var lost *LostError
		if _, err := h.Do(t.Context(), zk.CreateOp("/again", nil)); !errors.Is(err, ErrNotHeld) || !errors.As(err, &lost) || lost.Parent != "/y" {
			t.Errorf("with one bid gone: %v", err)
		}
		if h.Context().Err() == nil || h.Left() > 0 || !errors.As(h.Lost(), &lost) || lost.Reason != BidGone {
			t.Errorf("%v left, lost by %v", h.Left(), h.Lost())
		}
		if err := h.Holds()[0].Lost(); err != nil {
			t.Errorf("the lock whose bid exists: %v", err)
		}
		release(t, h)
		s.empty("/x", "/y")
	})
}

// TestMultiLockStartsAgain checks that Lock takes all locks again in the next session if the session expires
// while it holds some of them.
func TestMultiLockStartsAgain(t *testing.T) {
	bubble(t, func(t *testing.T, s *fakeServer) {
		other, err := s.several("/y").Lock(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		m := s.several("/x", "/y")
		l := lockAllLater(t.Context(), m)
		s.expire(m.locks[0].c.Session().ID)
		time.Sleep(time.Second)
		if len(s.bids("/x")) != 1 || len(s.bids("/y")) != 2 {
			t.Errorf("bids %q and %q", s.bids("/x"), s.bids("/y"))
		}
		release(t, other)
		h := <-l
		if h.err != nil || h.h.Lost() != nil {
			t.Fatal(h.err, h.h.Lost())
		}
		release(t, h.h)
		s.empty("/x", "/y")
	})
}

// TestCancelledMultiLockLeavesNothing checks that a cancelled Lock of a MultiLock releases the locks that
// it had taken.
func TestCancelledMultiLockLeavesNothing(t *testing.T) {
	bubble(t, func(t *testing.T, s *fakeServer) {
		other, err := s.several("/y").Lock(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if l := <-lockAllLater(ctx, s.several("/x", "/y")); !errors.Is(l.err, context.DeadlineExceeded) {
			t.Errorf("Lock: %v", l.err)
		}
		s.empty("/x")
		release(t, other)
		s.empty("/y")
	})
}

// TestMultiLockWithReaders checks that sides of read-write locks can be among the locks.
func TestMultiLockWithReaders(t *testing.T) {
	bubble(t, func(t *testing.T, s *fakeServer) {
		reader := func() *MultiLock {
			rw := s.readWrite(nil)
			x, err := NewLock(rw.read.c, "/x", nil)
			if err != nil {
				t.Fatal(err)
			}
			m, err := NewMultiLock(x, rw.Reader())
			if err != nil {
				t.Fatal(err)
			}
			return m
		}
		r := acquire(t, s.readWrite(nil).RLock)
		h, err := reader().Lock(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		release(t, r)
		release(t, h)
	})
}

func TestMultiLockArguments(t *testing.T) {
	bubble(t, func(t *testing.T, s *fakeServer) {
		a, b := s.lock(nil), s.lock(nil)
		for _, locks := range [][]*Lock{nil, {a, a}, {a, b}} {
			if _, err := NewMultiLock(locks...); err == nil {
				t.Errorf("%d locks are accepted", len(locks))
			}
		}
	})
}

// TestMultiLockDo checks that all locks are held while the function runs, that a lost lock is reported,
// and that nothing is left.
func TestMultiLockDo(t *testing.T) {
	bubble(t, func(t *testing.T, s *fakeServer) {
		m := s.several("/x", "/y")
		want := errors.New("out of paper")
		err := m.Do(t.Context(), func(ctx context.Context, h *MultiHold) error {
			if _, err := h.Do(ctx, zk.CreateOp("/made", nil)); err != nil || len(s.bids("/x")) != 1 || len(s.bids("/y")) != 1 {
				t.Errorf("%v with bids %q and %q", err, s.bids("/x"), s.bids("/y"))
			}
			return want
		})
		if err != want {
			t.Errorf("%v, want what the function returned", err)
		}
		s.empty("/x", "/y")
		err = m.Do(t.Context(), func(ctx context.Context, h *MultiHold) error {
			s.delete(h.Holds()[1].Bid())
			<-ctx.Done()
			return nil
		})
		var lost *LostError
		if !errors.Is(err, ErrNotHeld) || !errors.As(err, &lost) || lost.Parent != "/y" || lost.Reason != BidGone {
			t.Errorf("with one bid gone: %v", err)
		}
		s.empty("/x", "/y")
		if err = m.Do(t.Context(), func(ctx context.Context, h *MultiHold) error { return h.Release(context.WithoutCancel(ctx)) }); err != nil {
			t.Errorf("released by its function: %v", err)
		}
		func() {
			defer func() { _ = recover() }()
			_ = m.Do(t.Context(), func(context.Context, *MultiHold) error { panic("boom") })
		}()
		time.Sleep(time.Second)
		s.empty("/x", "/y")
	})
}
