package recipe

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"bellwether/internal/claim"
	"bellwether/wire"
	"bellwether/zk"
)

// These tests check what a handle promises, and how it ends.

// TestChecklist09DeadlineEndsTheHandle checks that, if the server does not answer, the context ends at the
// deadline, counted from the sending of the last answered ping.
func TestChecklist09DeadlineEndsTheHandle(t *testing.T) {
	bubble(t, func(t *testing.T, s *fakeServer) {
		h := campaign(t, s.elect("a", nil))
		s.silence()
		left := h.Left()
		began := time.Now()
		<-h.Context().Done()
		if took := time.Since(began); took != left || took > 8900*time.Millisecond {
			t.Errorf("ended after %v, %v were left", took, left)
		}
		lostBy(t, h, LeaseLapsed)
		if _, err := h.Do(t.Context()); !errors.Is(err, ErrNotLeader) {
			t.Errorf("Do after the end: %v", err)
		}
	})
}

// TestOldSessionProvesNoMoreThanANewOne checks that a handle ends with the lease of its session, even if the
// client was connected long before the election was made and its last proof is old. In an earlier version a
// handle counted from the creation of the election, without the delay.
func TestOldSessionProvesNoMoreThanANewOne(t *testing.T) {
	bubble(t, func(t *testing.T, s *fakeServer) {
		c := s.connect(zk.Options{})
		for range 7 {
			time.Sleep(700 * time.Millisecond)
			e, err := NewElection(c, parent, "a", nil)
			if err != nil {
				t.Fatal(err)
			}
			h := campaign(t, e)
			published() // a ping may just have been answered, so the handle learns of it
			if left, most := h.Left(), c.Lease().Left(); left > most || left < most-time.Millisecond {
				t.Errorf("%v left of a handle, %v of its session", left, most)
			}
			if err := e.Resign(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// TestPingsKeepTheHandle checks that pings keep a handle for a day.
func TestPingsKeepTheHandle(t *testing.T) {
	bubble(t, func(t *testing.T, s *fakeServer) {
		h := campaign(t, s.elect("a", nil))
		for range 24 * 60 {
			time.Sleep(time.Minute)
			if left := h.Left(); left < 7*time.Second || h.Lost() != nil {
				t.Fatalf("%v left, lost %v", left, h.Lost())
			}
		}
	})
}

// TestPaceOfPings checks that a leader sends at least ten pings in a session timeout, four in what one ping gives its
// handle, and not fewer if the option KeepAlive asks for a longer interval.
func TestPaceOfPings(t *testing.T) {
	for _, c := range []struct {
		timeout, delay, option, want time.Duration
	}{
		{10 * time.Second, time.Second, 0, time.Second},
		{16 * time.Second, 14 * time.Second, 0, 460 * time.Millisecond},
		{16 * time.Second, 14 * time.Second, 5 * time.Second, 460 * time.Millisecond},
		{10 * time.Second, time.Second, 2 * time.Second, 2 * time.Second},
		{10 * time.Second, time.Second, 100 * time.Millisecond, 100 * time.Millisecond},
	} {
		bubble(t, func(t *testing.T, s *fakeServer) {
			var pings atomic.Int32
			s.hook(func(_ *peer, op wire.OpCode, _ string) fate {
				if op == wire.OpPing {
					pings.Add(1)
				}
				return normal
			})
			e, err := NewElection(s.connect(zk.Options{SessionTimeout: c.timeout}), parent, "a", &ElectionOptions{LeaseDelay: c.delay, KeepAlive: c.option})
			if err != nil {
				t.Fatal(err)
			}
			h := campaign(t, e)
			const n = 200
			time.Sleep(c.want / 2)
			before := pings.Load()
			time.Sleep(n * c.want)
			if got := pings.Load() - before; got < n-2 || got > n+2 {
				t.Errorf("%+v: %d pings instead of %d", c, got, n)
			}
			if err := h.Lost(); err != nil {
				t.Errorf("%+v: %v", c, err)
			}
		})
	}
}

// TestReconnectKeepsTheTerm checks that a reconnect in time keeps the term and its bid.
func TestReconnectKeepsTheTerm(t *testing.T) {
	bubble(t, func(t *testing.T, s *fakeServer) {
		e := s.elect("a", nil)
		h := campaign(t, e)
		for range 5 {
			s.cut(e.c)
			time.Sleep(3 * time.Second)
		}
		if err := h.Lost(); err != nil || h.Left() < 7*time.Second {
			t.Errorf("lost %v, %v left", err, h.Left())
		}
	})
}

// TestExpiryEndsTheTerm checks that an expired session ends the term, and that the next campaign has a new
// session and bid.
func TestExpiryEndsTheTerm(t *testing.T) {
	bubble(t, func(t *testing.T, s *fakeServer) {
		e := s.elect("a", nil)
		h := campaign(t, e)
		s.expire(e.c.Session().ID)
		<-h.Context().Done()
		lostBy(t, h, SessionExpired)
		next := campaign(t, e)
		if next.Token() <= h.Token() || next.Bid() == h.Bid() {
			t.Errorf("second term %v %s after %v %s", next.Token(), next.Bid(), h.Token(), h.Bid())
		}
	})
}

// TestExpiryWhileWaiting checks that a waiting candidate makes a new bid when its session expires.
func TestExpiryWhileWaiting(t *testing.T) {
	bubble(t, func(t *testing.T, s *fakeServer) {
		a, b := s.elect("a", nil), s.elect("b", nil)
		campaign(t, a)
		lb := campaignLater(t.Context(), b)
		s.expire(b.c.Session().ID)
		time.Sleep(time.Second)
		if n := len(s.bids(parent)); n != 2 {
			t.Fatalf("%d bids", n)
		}
		pending(t, lb)
		if err := a.Resign(t.Context()); err != nil {
			t.Fatal(err)
		}
		won(t, lb)
	})
}

// TestCloseEndsTheHandleFirst checks that the handle has ended before the server learns of the close.
func TestCloseEndsTheHandleFirst(t *testing.T) {
	bubble(t, func(t *testing.T, s *fakeServer) {
		e := s.elect("a", nil)
		h := campaign(t, e)
		s.hook(func(_ *peer, op wire.OpCode, _ string) fate {
			if op == wire.OpCloseSession && (h.Left() > 0 || h.Lost() == nil) {
				t.Errorf("%v left while the session is closed", h.Left())
			}
			return normal
		})
		if err := e.c.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		lostBy(t, h, SessionClosed)
		if _, err := e.Campaign(t.Context()); !errors.Is(err, zk.ErrClosed) {
			t.Errorf("campaign on a closed client: %v", err)
		}
	})
}

// TestCloseWithoutAnAnswerEndsTheContext checks that the context ends long before Close gives up.
func TestCloseWithoutAnAnswerEndsTheContext(t *testing.T) {
	bubble(t, func(t *testing.T, s *fakeServer) {
		e := s.elect("a", nil)
		h := campaign(t, e)
		s.hook(func(_ *peer, op wire.OpCode, _ string) fate {
			if op == wire.OpCloseSession {
				return swallow
			}
			return normal
		})
		began := time.Now()
		closed := make(chan time.Duration, 1)
		go func() {
			_ = e.c.Close(t.Context()) // it returns an error, because the server does not answer
			closed <- time.Since(began)
		}()
		<-h.Context().Done()
		if took := time.Since(began); took > 500*time.Millisecond {
			t.Errorf("the context ended after %v", took)
		}
		lostBy(t, h, SessionClosed)
		if took := <-closed; took < time.Second {
			t.Errorf("Close took %v, the test wants one that waits", took)
		}
	})
}

// TestWallClockJumpEndsTheHandle checks that the time for which the machine was suspended counts, although the
// monotonic clock stood still.
func TestWallClockJumpEndsTheHandle(t *testing.T) {
	bubble(t, func(t *testing.T, s *fakeServer) {
		e := s.elect("a", nil)
		var asleep time.Duration
		e.clock.skew = func() time.Duration { return asleep }
		h := campaign(t, e)
		synctest.Wait()
		h.t.mu.Lock() // mu also guards the reading of the clock
		asleep = 8 * time.Second
		h.t.mu.Unlock()
		if left := h.Left(); left <= 0 || left > time.Second {
			t.Errorf("%v left after 8 s asleep", left)
		}
		h.t.mu.Lock()
		asleep = time.Hour
		h.t.mu.Unlock()
		if h.Left() > 0 || h.Lost() == nil {
			t.Errorf("%v left after an hour asleep", h.Left())
		}
		began := time.Now()
		<-h.Context().Done()
		if took := time.Since(began); took > time.Second {
			t.Errorf("noticed after %v", took)
		}
	})
}

// TestNoProofSaysSo checks that Proof of a handle returns an error if the session timeout
// is too short beside the delay.
func TestNoProofSaysSo(t *testing.T) {
	bubble(t, func(t *testing.T, s *fakeServer) {
		h := campaign(t, s.elect("a", &ElectionOptions{LeaseDelay: 10 * time.Second}))
		var none *NoProof
		if !errors.As(h.Proof(), &none) || none.Delay != 10*time.Second {
			t.Errorf("proof %v", h.Proof())
		}
		s.silence()
		began := time.Now()
		<-h.Context().Done()
		if took := time.Since(began); took > 6667*time.Millisecond {
			t.Errorf("a context without proof lasted %v", took)
		}
	})
}

// TestLeaseOfTheClient checks that package zk proves a lease for exactly as long as the recipes do.
func TestLeaseOfTheClient(t *testing.T) {
	for _, delay := range []time.Duration{1, 100, 500, 2000, 14000, 60000} {
		for timeout := 100 * time.Millisecond; timeout < 80*time.Second; timeout += max(time.Millisecond, timeout/100) {
			one := claim.Lease{Timeout: timeout, Delay: delay * time.Millisecond}
			other := zk.Lease{Session: 1, Timeout: timeout, Delay: delay * time.Millisecond}
			if proven := one.Proof() == nil; proven != (other.Term() > 0) || proven && one.Window() != other.Term() {
				t.Fatalf("timeout %v, delay %v: a recipe has %v (%v), the client %v", timeout, one.Delay, one.Window(), one.Proof(), other.Term())
			}
		}
	}
}

// TestGuardedWrites checks that an old handle writes nothing, even if it does not know that it is over.
func TestGuardedWrites(t *testing.T) {
	bubble(t, func(t *testing.T, s *fakeServer) {
		s.put("/state", "")
		a, b := s.elect("a", nil), s.elect("b", nil)
		ha := campaign(t, a)
		if res, err := ha.Do(t.Context(), zk.CreateOp("/made", []byte("x"))); err != nil || len(res) != 1 || res[0].Path != "/made" {
			t.Fatalf("%+v, %v", res, err)
		}
		lb := campaignLater(t.Context(), b)
		s.delete(ha.Bid()) // an operator deletes the bid; a does not know that yet
		won(t, lb)
		if ha.Lost() != nil {
			t.Fatal("the handle knows that it is over, so this test shows nothing")
		}
		if _, err := ha.Do(t.Context(), zk.CreateOp("/again", nil)); !errors.Is(err, ErrNotLeader) {
			t.Errorf("guarded write of an older handle: %v", err)
		}
		if _, _, ok := s.node("/again"); ok {
			t.Error("the write of an older handle went through")
		}
	})
}

// TestHandleFindsOutThatItsBidIsGone checks that a term ends within a third of the session timeout after somebody
// has deleted its bid, without an operation of the caller.
func TestHandleFindsOutThatItsBidIsGone(t *testing.T) {
	bubble(t, func(t *testing.T, s *fakeServer) {
		h := campaign(t, s.elect("a", nil))
		s.delete(h.Bid())
		time.Sleep(4 * time.Second)
		lostBy(t, h, BidGone)
	})
}

// TestAnswerThatTheBidIsGoneEndsTheTerm checks that a term is over as soon as an operation of its handle returns the
// server's answer that the bid is gone.
func TestAnswerThatTheBidIsGoneEndsTheTerm(t *testing.T) {
	bubble(t, func(t *testing.T, s *fakeServer) {
		for name, operation := range map[string]func(ctx context.Context, h *Handle) error{
			"Do":            func(ctx context.Context, h *Handle) error { return second(h.Do(ctx)) },
			"PublishConfig": func(ctx context.Context, h *Handle) error { return PublishConfig(ctx, h, "/config", nil, nil) },
		} {
			for _, ctx := range []func(*Handle) context.Context{
				(*Handle).Context,
				func(*Handle) context.Context { return t.Context() },
			} {
				h := campaign(t, s.elect("a", nil))
				published()
				s.delete(h.Bid())
				err := operation(ctx(h), h)
				if h.Context().Err() == nil || h.Lost() == nil || h.Left() > 0 {
					t.Errorf("%s: %v, but the handle has %v left, lost %v", name, err, h.Left(), h.Lost())
				}
				var lost *LostError
				if !errors.Is(err, ErrNotLeader) || !errors.As(err, &lost) || lost.Reason != BidGone {
					t.Errorf("%s: %v", name, err)
				}
				lostBy(t, h, BidGone)
			}
		}
	})
}

// TestAnswerAfterTheEndKeepsItsReason checks that an answer that the bid is gone does not replace the reason for which
// the term has ended before.
func TestAnswerAfterTheEndKeepsItsReason(t *testing.T) {
	bubble(t, func(t *testing.T, s *fakeServer) {
		e := s.elect("a", nil)
		h := campaign(t, e)
		published()
		s.hook(func(_ *peer, op wire.OpCode, path string) fate {
			if op == wire.OpMulti && path == "/made" {
				time.Sleep(time.Second)
			}
			return normal
		})
		over := make(chan error, 1)
		go func() { over <- second(h.Do(t.Context(), zk.CreateOp("/made", nil))) }()
		synctest.Wait()
		s.delete(h.Bid())
		if err := e.Resign(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := <-over; !errors.Is(err, ErrNotLeader) || !errors.Is(err, ErrResigned) {
			t.Errorf("Do: %v", err)
		}
		lostBy(t, h, Resigned)
	})
}

// TestErrorsOfGuardedOperations checks that errors of the operations are returned as they are.
func TestErrorsOfGuardedOperations(t *testing.T) {
	bubble(t, func(t *testing.T, s *fakeServer) {
		h := campaign(t, s.elect("a", nil))
		res, err := h.Do(t.Context(), zk.CreateOp("/a/b", nil), zk.CreateOp("/c", nil))
		if !errors.Is(err, zk.ErrNoNode) || errors.Is(err, ErrNotLeader) {
			t.Errorf("error is %v, want ErrNoNode of the operation", err)
		}
		if len(res) != 2 || !errors.Is(res[0].Err, zk.ErrNoNode) || !errors.Is(res[1].Err, wire.ErrRuntimeInconsistency) {
			t.Errorf("results are %+v", res)
		}
	})
}
