package recipe

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"bellwether/wire"
	"bellwether/zk"
)

// lock makes a lock with a client of its own.
func (s *fakeServer) lock(o *LockOptions) *Lock {
	s.t.Helper()
	l, err := NewLock(s.connect(zk.Options{}), parent, o)
	if err != nil {
		s.t.Fatal(err)
	}
	return l
}

// held is an acquisition that runs beside the test, and its outcome.
type held struct {
	h   *Hold
	err error
}

func acquireLater(ctx context.Context, acquire func(context.Context) (*Hold, error)) <-chan held {
	out := make(chan held, 1)
	go func() {
		h, err := acquire(ctx)
		out <- held{h, err}
	}()
	synctest.Wait()
	return out
}

// acquire waits for the hold.
func acquire(t *testing.T, f func(context.Context) (*Hold, error)) *Hold {
	t.Helper()
	h, err := f(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// got returns the hold, which must exist by now.
func got(t *testing.T, c <-chan held) *Hold {
	t.Helper()
	synctest.Wait()
	select {
	case l := <-c:
		if l.err != nil {
			t.Fatal(l.err)
		}
		return l.h
	default:
		t.Fatal("not acquired")
		return nil
	}
}

// waits fails the test if the acquisition has ended.
func waits(t *testing.T, c <-chan held) {
	t.Helper()
	synctest.Wait()
	select {
	case l := <-c:
		t.Fatalf("acquisition ended early: %+v, %v", l.h, l.err)
	default:
	}
}

func release(t *testing.T, h interface{ Release(context.Context) error }) {
	t.Helper()
	if err := h.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// endedBy fails the test unless the hold has ended for this reason.
func endedBy(t *testing.T, h *Hold, r Reason) {
	t.Helper()
	synctest.Wait()
	var lost *LostError
	if err := h.Lost(); !errors.As(err, &lost) || lost.Reason != r {
		t.Errorf("hold lost by %v, want %v", err, r)
	}
	if h.Context().Err() == nil || !errors.Is(context.Cause(h.Context()), lost) {
		t.Errorf("context ended with %v", context.Cause(h.Context()))
	}
	if h.Left() > 0 {
		t.Errorf("%v left of a hold that is over", h.Left())
	}
	if _, err := h.Do(t.Context(), zk.CreateOp("/over", nil)); !errors.Is(err, ErrNotHeld) {
		t.Errorf("Do after the end: %v", err)
	}
}

// empty fails the test if a parent has children.
func (s *fakeServer) empty(parents ...string) {
	s.t.Helper()
	for _, p := range parents {
		if names := s.bids(p); len(names) != 0 {
			s.t.Errorf("left over at %s: %q", p, names)
		}
	}
}

// tally counts the requests that the server gets, without pings.
func (s *fakeServer) tally() *atomic.Int32 {
	var n atomic.Int32
	s.hook(func(_ *peer, op wire.OpCode, _ string) fate {
		if op != wire.OpPing {
			n.Add(1)
		}
		return normal
	})
	return &n
}

// TestLockExcludes checks the order of the line, and the methods of a Hold.
func TestLockExcludes(t *testing.T) {
	bubble(t, func(t *testing.T, s *fakeServer) {
		a := acquire(t, s.lock(nil).Lock)
		if left := a.Left(); a.Proof() != nil || left != 8900*time.Millisecond || a.Lost() != nil {
			t.Errorf("%v left, proof %v, lost %v", left, a.Proof(), a.Lost())
		}
		second, third := s.lock(nil), s.lock(nil)
		lb := acquireLater(t.Context(), second.Lock)
		lc := acquireLater(t.Context(), third.Lock)
		waits(t, lb)
		release(t, a)
		endedBy(t, a, Resigned)
		if !errors.Is(a.Lost(), ErrReleased) || !strings.Contains(a.Lost().Error(), "lock /app/job: released") {
			t.Errorf("lost by %v", a.Lost())
		}
		b := got(t, lb)
		waits(t, lc)
		release(t, b)
		c := got(t, lc)
		if a.Token() >= b.Token() || b.Token() >= c.Token() {
			t.Errorf("tokens %v, %v, %v", a.Token(), b.Token(), c.Token())
		}
		release(t, c)
		release(t, c) // releasing it again changes nothing
		s.empty(parent)
	})
}

// TestLockWakesOne checks that a release wakes one of 10, 100 and 1,000 waiting clients. A release costs
// the servers the delete, one event, and the read of the woken client.
func TestLockWakesOne(t *testing.T) {
	for _, n := range sizes() {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			bubble(t, func(t *testing.T, s *fakeServer) {
				h := acquire(t, s.lock(nil).Lock)
				var line []<-chan held
				for range n {
					line = append(line, acquireLater(t.Context(), s.lock(nil).Lock))
				}
				requests := s.tally()
				for i, next := range line {
					events, before := s.eventCount(), requests.Load()
					release(t, h)
					h = got(t, next)
					if i+1 < n {
						waits(t, line[i+1])
					}
					if e := s.eventCount() - events; e != 1 {
						t.Fatalf("release %d: %d events", i, e)
					}
					if r := requests.Load() - before; r != 2 { // delete; multiRead
						t.Fatalf("release %d: %d requests", i, r)
					}
				}
			})
		})
	}
}

// TestLockOfAnExpiredSession checks that the lock passes on when the holder's session expires, that its
// hold has ended, and that its next bid is at the end of the line.
func TestLockOfAnExpiredSession(t *testing.T) {
	bubble(t, func(t *testing.T, s *fakeServer) {
		a, b := s.lock(nil), s.lock(nil)
		ha := acquire(t, a.Lock)
		lb := acquireLater(t.Context(), b.Lock)
		s.expire(a.c.Session().ID)
		<-ha.Context().Done()
		endedBy(t, ha, SessionExpired)
		hb := got(t, lb)
		again := acquireLater(t.Context(), a.Lock)
		waits(t, again)
		release(t, hb)
		if h := got(t, again); h.Token() <= hb.Token() || h.Bid() == ha.Bid() {
			t.Errorf("token %v of %s after %v of %s", h.Token(), h.Bid(), hb.Token(), ha.Bid())
		}
	})
}

// TestLockEndsBeforeItIsGivenAway checks that, if the server does not answer the holder, the next client
// holds the lock only after the deadline.
func TestLockEndsBeforeItIsGivenAway(t *testing.T) {
	bubble(t, func(t *testing.T, s *fakeServer) {
		a, b := s.lock(nil), s.lock(nil)
		ha := acquire(t, a.Lock)
		mute := a.c.Session().ID
		s.setAway(true) // b stays connected
		s.hook(func(p *peer, _ wire.OpCode, _ string) fate {
			if p.session == mute {
				return swallow
			}
			return normal
		})
		hb := acquire(t, b.Lock)
		if ha.Left() > 0 || ha.Lost() == nil {
			t.Errorf("%v left beside the next holder", ha.Left())
		}
		endedBy(t, ha, LeaseLapsed)
		release(t, hb)
	})
}

// TestCurator604LockOfTheSessionBefore expires the session while the server still shows the old bid. The
// new session must not take that bid for its own.
func TestCurator604LockOfTheSessionBefore(t *testing.T) {
	bubble(t, func(t *testing.T, s *fakeServer) {
		l := s.lock(nil)
		first := acquire(t, l.Lock)
		old := l.c.Session().ID
		s.mu.Lock()
		s.nodes[first.Bid()].stat.EphemeralOwner = 0 // the server does not remove it with the session yet
		s.mu.Unlock()
		s.expire(old)
		<-first.Context().Done()
		s.mu.Lock()
		s.nodes[first.Bid()].stat.EphemeralOwner = old
		s.mu.Unlock()
		next := acquireLater(t.Context(), l.Lock)
		waits(t, next)
		s.delete(first.Bid())
		h := got(t, next)
		if h.Token() <= first.Token() || h.Bid() == first.Bid() {
			t.Errorf("%s with token %v after %s with %v", h.Bid(), h.Token(), first.Bid(), first.Token())
		}
	})
}

// TestKazoo170LockOverSuspendedConnections breaks connections again and again while one client holds and
// one waits. No client hangs and no second bid is made.
func TestKazoo170LockOverSuspendedConnections(t *testing.T) {
	bubble(t, func(t *testing.T, s *fakeServer) {
		a, b := s.lock(nil), s.lock(nil)
		ha := acquire(t, a.Lock)
		lb := acquireLater(t.Context(), b.Lock)
		for range 5 {
			s.cut(b.c)
			s.cut(a.c)
			time.Sleep(2 * time.Second)
		}
		if n := len(s.bids(parent)); n != 2 || ha.Lost() != nil {
			t.Fatalf("%d bids, lost %v", n, ha.Lost())
		}
		waits(t, lb)
		s.cut(b.c) // the lock is released while the waiting client has no connection
		release(t, ha)
		hb := <-lb
		if hb.err != nil {
			t.Fatal(hb.err)
		}
		release(t, hb.h)
		s.empty(parent)
	})
}

// TestCurator335NoOrphanedLock loses the reply to the creation of a bid. Whether the caller gives up or
// goes on, no unknown bid is left.
func TestCurator335NoOrphanedLock(t *testing.T) {
	for _, f := range []fate{dropReply, dropAll} {
		for _, giveUp := range []bool{false, true} {
			bubble(t, func(t *testing.T, s *fakeServer) {
				l := s.lock(nil)
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				first := true
				s.hook(func(_ *peer, op wire.OpCode, path string) fate {
					if op == wire.OpCreate2 && strings.Contains(path, "-n_") && first {
						first = false
						if giveUp {
							cancel()
						}
						return f
					}
					return normal
				})
				h, err := l.Lock(ctx)
				switch {
				case giveUp && !errors.Is(err, context.Canceled):
					t.Errorf("Lock: %v", err)
				case giveUp:
					s.empty(parent)
				case err != nil:
					t.Fatal(err)
				default:
					if n := len(s.bids(parent)); n != 1 {
						t.Errorf("%d bids", n)
					}
					release(t, h)
				}
			})
		}
	}
}

// TestCancelledLockLeavesNoBid also checks that a cancelled Lock costs the client behind it one event.
func TestCancelledLockLeavesNoBid(t *testing.T) {
	bubble(t, func(t *testing.T, s *fakeServer) {
		a := acquire(t, s.lock(nil).Lock)
		b, c := s.lock(nil), s.lock(nil)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		lb := acquireLater(ctx, b.Lock)
		lc := acquireLater(t.Context(), c.Lock)
		events := s.eventCount()
		if l := <-lb; !errors.Is(l.err, context.DeadlineExceeded) {
			t.Errorf("Lock: %v", l.err)
		}
		waits(t, lc)
		if n := s.eventCount() - events; n != 1 || len(s.bids(parent)) != 2 {
			t.Errorf("%d events, bids %q", n, s.bids(parent))
		}
		release(t, a)
		release(t, got(t, lc))
		s.empty(parent)
	})
}

// TestTryLock checks that TryLock does not wait, leaves nothing, and wakes nobody.
func TestTryLock(t *testing.T) {
	bubble(t, func(t *testing.T, s *fakeServer) {
		a, b := s.lock(nil), s.lock(nil)
		h := acquire(t, a.TryLock)
		events := s.eventCount()
		if _, err := b.TryLock(t.Context()); !errors.Is(err, ErrHeld) {
			t.Errorf("TryLock of a held lock: %v", err)
		}
		if n := s.eventCount() - events; n != 0 || len(s.bids(parent)) != 1 {
			t.Errorf("%d events, bids %q", n, s.bids(parent))
		}
		release(t, h)
		release(t, acquire(t, b.TryLock))
		s.empty(parent)
	})
}

// TestTryLockIgnoresPersistentZnodes checks that a persistent znode with the name of a bid does not count as
// one.
func TestTryLockIgnoresPersistentZnodes(t *testing.T) {
	bubble(t, func(t *testing.T, s *fakeServer) {
		for _, p := range []string{"/app", parent, parent + "/x-0000000000", parent + "/notes"} {
			s.put(p, "")
		}
		release(t, acquire(t, s.lock(nil).TryLock))
	})
}

// TestAgain checks that a lock is released with the last Hold of its bid.
func TestAgain(t *testing.T) {
	bubble(t, func(t *testing.T, s *fakeServer) {
		outer := acquire(t, s.lock(nil).Lock)
		next := acquireLater(t.Context(), s.lock(nil).Lock)
		inner, err := outer.Again()
		if err != nil {
			t.Fatal(err)
		}
		if inner.Token() != outer.Token() || inner.Left() != outer.Left() {
			t.Errorf("token %v of %v, %v left of %v", inner.Token(), outer.Token(), inner.Left(), outer.Left())
		}
		release(t, outer)
		release(t, outer) // a second Release of the same Hold does not count
		endedBy(t, outer, Resigned)
		if _, err := outer.Again(); !errors.Is(err, ErrNotHeld) {
			t.Errorf("Again of a released hold: %v", err)
		}
		waits(t, next)
		if inner.Lost() != nil {
			t.Errorf("lost by %v", inner.Lost())
		}
		release(t, inner)
		release(t, got(t, next))
	})
}

// TestLockGuardsWrites checks that an old hold writes nothing, even if it does not know that it is over.
func TestLockGuardsWrites(t *testing.T) {
	bubble(t, func(t *testing.T, s *fakeServer) {
		a := acquire(t, s.lock(nil).Lock)
		if res, err := a.Do(t.Context(), zk.CreateOp("/made", nil)); err != nil || len(res) != 1 || res[0].Path != "/made" {
			t.Fatalf("%+v, %v", res, err)
		}
		next := acquireLater(t.Context(), s.lock(nil).Lock)
		s.delete(a.Bid()) // an operator deletes the bid
		got(t, next)
		if a.Lost() != nil {
			t.Fatal("the hold knows that it is over, so this test shows nothing")
		}
		if _, err := a.Do(t.Context(), zk.CreateOp("/again", nil)); !errors.Is(err, ErrNotHeld) {
			t.Errorf("guarded write of an older hold: %v", err)
		}
		if _, _, ok := s.node("/again"); ok {
			t.Error("the write of an older hold went through")
		}
		if a.Lost() == nil || a.Context().Err() == nil || a.Left() > 0 {
			t.Errorf("after the server's answer the hold has %v left, lost %v", a.Left(), a.Lost())
		}
		endedBy(t, a, BidGone)
	})
}

// TestOneLockManyCallers checks that each call makes a bid of its own, also over one client.
func TestOneLockManyCallers(t *testing.T) {
	bubble(t, func(t *testing.T, s *fakeServer) {
		l := s.lock(nil)
		inside, most := 0, 0
		var mu sync.Mutex
		var all sync.WaitGroup
		for range 10 {
			all.Go(func() {
				h, err := l.Lock(t.Context())
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				inside++
				most = max(most, inside)
				mu.Unlock()
				time.Sleep(time.Second)
				mu.Lock()
				inside--
				mu.Unlock()
				if err := h.Release(t.Context()); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		if most != 1 {
			t.Errorf("%d at once", most)
		}
		s.empty(parent)
	})
}

// TestLockNamings checks the names of other libraries.
func TestLockNamings(t *testing.T) {
	for naming, part := range map[Naming]string{OwnNames: "-n_", CuratorLockNames: "-lock-", KazooNames: "__lock__", GoZKNames: "-lock-"} {
		bubble(t, func(t *testing.T, s *fakeServer) {
			acquire(t, s.lock(&LockOptions{Naming: naming}).Lock)
			if names := s.bids(parent); len(names) != 1 || !strings.Contains(names[0], part) {
				t.Errorf("%v: %q", naming, names)
			}
		})
	}
	for _, naming := range []Naming{PlainNames, CuratorLatchNames, GoZKNames + 1} {
		if _, err := NewLock(nil, parent, &LockOptions{Naming: naming}); err == nil {
			t.Errorf("%v is accepted", naming)
		}
	}
	for _, bad := range []string{"", "job", "/job/"} {
		if _, err := NewLock(nil, bad, nil); err == nil {
			t.Errorf("parent %q is accepted", bad)
		}
	}
}

// TestTokenGate checks that the gate refuses older tokens.
func TestTokenGate(t *testing.T) {
	var g TokenGate
	var stale *StaleToken
	ok := func(err error) {
		t.Helper()
		if err != nil {
			t.Error(err)
		}
	}
	refused := func(err error, newest wire.Zxid) {
		t.Helper()
		if !errors.As(err, &stale) || stale.Newest != newest {
			t.Errorf("%v, want refusal by %v", err, newest)
		}
	}
	ok(g.Admit(5))
	ok(g.Admit(5))
	ok(g.AdmitShared(8))
	ok(g.AdmitShared(6)) // readers may come in any order
	refused(g.AdmitShared(4), 5)
	refused(g.Admit(7), 8) // a reader with a newer token has been admitted
	ok(g.Admit(9))
	refused(g.AdmitShared(8), 9)
	if g.Seen() != 9 {
		t.Errorf("seen %v", g.Seen())
	}
}

// TestTokenGateAdmitsInOrder checks that the tokens admitted from many goroutines never decrease.
func TestTokenGateAdmitsInOrder(t *testing.T) {
	var g TokenGate
	var all sync.WaitGroup
	for w := range 4 {
		all.Go(func() {
			var mine []wire.Zxid
			for i := range wire.Zxid(1000) {
				if token := i*4 + wire.Zxid(w); g.Admit(token) == nil {
					mine = append(mine, token)
					if g.Seen() < token {
						t.Errorf("seen %v after %v", g.Seen(), token)
					}
				}
			}
			if !slices.IsSorted(mine) {
				t.Error("admitted out of order")
			}
		})
	}
	all.Wait()
}
