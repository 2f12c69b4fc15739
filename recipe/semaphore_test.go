package recipe

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"bellwether/wire"
	"bellwether/zk"
)

func (s *fakeServer) semaphore(n int, o *LockOptions) *Semaphore {
	s.t.Helper()
	m, err := NewSemaphore(s.connect(zk.Options{}), parent, n, o)
	if err != nil {
		s.t.Fatal(err)
	}
	return m
}

// semaphoreParents are the parents of leases and gates, for each naming.
var semaphoreParents = []string{parent + "/leases", parent + "/locks", parent + "-__lock__"}

// TestSemaphoreHasItsLeases checks that there are never more holders than leases, whichever holder leaves.
func TestSemaphoreHasItsLeases(t *testing.T) {
	for _, naming := range []Naming{OwnNames, CuratorLockNames, KazooNames} {
		bubble(t, func(t *testing.T, s *fakeServer) {
			o := &LockOptions{Naming: naming}
			var holds []*Hold
			for range 3 {
				holds = append(holds, acquire(t, s.semaphore(3, o).Acquire))
			}
			var line []<-chan held
			for range 3 {
				line = append(line, acquireLater(t.Context(), s.semaphore(3, o).Acquire))
			}
			for i, h := range []*Hold{holds[1], holds[2], holds[0]} { // release the leases in another order than that of their bids
				waits(t, line[i])
				release(t, h)
				holds[i] = got(t, line[i])
				for _, behind := range line[i+1:] {
					waits(t, behind)
				}
			}
			for _, h := range holds {
				if h.Lost() != nil || h.Left() <= 0 {
					t.Errorf("lost by %v, %v left", h.Lost(), h.Left())
				}
				if _, err := h.Do(t.Context()); err != nil {
					t.Errorf("guard of a lease that is held: %v", err)
				}
				release(t, h)
			}
			s.empty(semaphoreParents...)
		})
	}
}

// TestSemaphoreWakesOne checks that a release wakes one of 10, 100 and 1,000 waiting clients. One event
// tells it that a lease is free, and one more lets the next client take the gate.
func TestSemaphoreWakesOne(t *testing.T) {
	for _, n := range sizes() {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			bubble(t, func(t *testing.T, s *fakeServer) {
				var holds []*Hold
				var line []<-chan held
				for range 2 {
					holds = append(holds, acquire(t, s.semaphore(2, nil).Acquire))
				}
				for range n {
					line = append(line, acquireLater(t.Context(), s.semaphore(2, nil).Acquire))
				}
				requests := s.tally()
				for i, next := range line {
					events, before := s.eventCount(), requests.Load()
					release(t, holds[i])
					holds = append(holds, got(t, next))
					wantEvents, wantRequests := 2, 7
					if i+1 < n {
						waits(t, line[i+1])
					} else {
						wantEvents, wantRequests = 1, 3
					}
					if e := s.eventCount() - events; e != wantEvents {
						t.Fatalf("release %d: %d events", i, e)
					}
					if r := int(requests.Load() - before); r != wantRequests {
						t.Fatalf("release %d: %d requests", i, r)
					}
				}
			})
		})
	}
}

// TestKazooReadsTheLeases checks the data of the parent: kazoo's Semaphore fails if it is missing, and
// compares the number in it.
func TestKazooReadsTheLeases(t *testing.T) {
	bubble(t, func(t *testing.T, s *fakeServer) {
		release(t, acquire(t, s.semaphore(3, &LockOptions{Naming: KazooNames}).Acquire))
		data, _, err := s.connect(zk.Options{}).Get(t.Context(), parent)
		if string(data) != "3" || err != nil {
			t.Errorf("the parent holds %q, %v", data, err)
		}
	})
}

// TestKazoo429TryAcquireLeavesNothing checks that a TryAcquire that fails leaves neither a lease nor a bid at the gate
// (kazoo#429).
func TestKazoo429TryAcquireLeavesNothing(t *testing.T) {
	for _, naming := range []Naming{OwnNames, CuratorLockNames, KazooNames} {
		bubble(t, func(t *testing.T, s *fakeServer) {
			o := &LockOptions{Naming: naming}
			h := acquire(t, s.semaphore(1, o).TryAcquire)
			if _, err := s.semaphore(1, o).TryAcquire(t.Context()); !errors.Is(err, ErrHeld) {
				t.Errorf("TryAcquire of the only lease: %v", err)
			}
			release(t, h)
			s.empty(semaphoreParents...)
			release(t, acquire(t, s.semaphore(1, o).TryAcquire))
		})
	}
}

// TestTryAcquireDoesNotOvertake checks that TryAcquire takes no lease while a client waits.
func TestTryAcquireDoesNotOvertake(t *testing.T) {
	bubble(t, func(t *testing.T, s *fakeServer) {
		h := acquire(t, s.semaphore(1, nil).Acquire)
		next := acquireLater(t.Context(), s.semaphore(1, nil).Acquire)
		release(t, h)
		if _, err := s.semaphore(1, nil).TryAcquire(t.Context()); !errors.Is(err, ErrHeld) {
			t.Errorf("TryAcquire: %v", err)
		}
		got(t, next)
	})
}

// TestCancelledAcquireLeavesNothing checks a client at the gate and one behind it, and that the next
// client gets the lease.
func TestCancelledAcquireLeavesNothing(t *testing.T) {
	bubble(t, func(t *testing.T, s *fakeServer) {
		h := acquire(t, s.semaphore(1, nil).Acquire)
		first, cancelFirst := context.WithCancel(t.Context())
		second, cancelSecond := context.WithTimeout(t.Context(), time.Second)
		defer cancelSecond()
		atLease := acquireLater(first, s.semaphore(1, nil).Acquire)
		atGate := acquireLater(second, s.semaphore(1, nil).Acquire)
		last := acquireLater(t.Context(), s.semaphore(1, nil).Acquire)
		if l := <-atGate; !errors.Is(l.err, context.DeadlineExceeded) {
			t.Errorf("Acquire: %v", l.err)
		}
		cancelFirst()
		if l := <-atLease; !errors.Is(l.err, context.Canceled) {
			t.Errorf("Acquire: %v", l.err)
		}
		waits(t, last)
		release(t, h)
		release(t, got(t, last))
		s.empty(semaphoreParents...)
	})
}

// TestSemaphoreLostReplies loses the replies to creations, at the gate and of the lease. No unknown bid
// may be left.
func TestSemaphoreLostReplies(t *testing.T) {
	for _, f := range []fate{dropReply, dropAll} {
		for _, part := range []string{"/locks/", "/leases/"} {
			bubble(t, func(t *testing.T, s *fakeServer) {
				first := true
				s.hook(func(_ *peer, op wire.OpCode, path string) fate {
					if op == wire.OpCreate2 && strings.Contains(path, part) && first {
						first = false
						return f
					}
					return normal
				})
				h := acquire(t, s.semaphore(1, nil).Acquire)
				if first {
					t.Error("the test wants a lost reply")
				}
				time.Sleep(time.Second) // until the gate is left
				if n := len(s.bids(semaphoreParents[0])); n != 1 {
					t.Errorf("%d leases", n)
				}
				release(t, h)
				s.empty(semaphoreParents...)
			})
		}
	}
}

// TestSemaphoreOfExpiredSessions checks that a client that waits for a lease goes to the end of the line when its
// session expires, and that the lease of a holder passes on when the holder's session expires.
func TestSemaphoreOfExpiredSessions(t *testing.T) {
	bubble(t, func(t *testing.T, s *fakeServer) {
		a, b := s.semaphore(1, nil), s.semaphore(1, nil)
		ha := acquire(t, a.Acquire)
		lb := acquireLater(t.Context(), b.Acquire)
		lc := acquireLater(t.Context(), s.semaphore(1, nil).Acquire)
		s.expire(b.leases.c.Session().ID)
		time.Sleep(time.Second) // until b is at the end of the line
		waits(t, lb)
		s.expire(a.leases.c.Session().ID)
		hc := got(t, lc)
		<-ha.Context().Done()
		endedBy(t, ha, SessionExpired)
		waits(t, lb)
		release(t, hc)
		got(t, lb)
	})
}

// TestSemaphoreOverLostConnections checks that a waiting client gets a lease that is released while the client has no
// connection.
func TestSemaphoreOverLostConnections(t *testing.T) {
	bubble(t, func(t *testing.T, s *fakeServer) {
		h := acquire(t, s.semaphore(1, nil).Acquire)
		b := s.semaphore(1, nil)
		lb := acquireLater(t.Context(), b.Acquire)
		for range 3 {
			s.cut(b.leases.c)
			time.Sleep(time.Second)
		}
		waits(t, lb)
		s.cut(b.leases.c)
		release(t, h)
		if l := <-lb; l.err != nil {
			t.Error(l.err)
		}
	})
}

func TestSemaphoreArguments(t *testing.T) {
	for _, c := range []struct {
		parent string
		n      int
		naming Naming
	}{{parent, 0, OwnNames}, {"x", 1, OwnNames}, {parent, 1, GoZKNames}, {parent, 1, PlainNames}} {
		if _, err := NewSemaphore(nil, c.parent, c.n, &LockOptions{Naming: c.naming}); err == nil {
			t.Errorf("%+v is accepted", c)
		}
	}
}
