package recipe

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"bellwether/wire"
	"bellwether/zk"
)

const gate = "/app/gate"

func after(f func() error) <-chan error {
	out := make(chan error, 1)
	go func() { out <- f() }()
	synctest.Wait()
	return out
}

// still fails if the call has returned.
func still(t *testing.T, out <-chan error) {
	t.Helper()
	synctest.Wait()
	select {
	case err := <-out:
		t.Fatalf("returned early: %v", err)
	default:
	}
}

func returned(t *testing.T, out <-chan error) {
	t.Helper()
	if err := <-out; err != nil {
		t.Fatal(err)
	}
}

func (s *fakeServer) double(n int, o *BarrierOptions) *DoubleBarrier {
	d, err := NewDoubleBarrier(s.connect(zk.Options{}), gate, n, o)
	if err != nil {
		s.t.Fatal(err)
	}
	return d
}

// TestBarrierHoldsUntilOpened checks that clients wait until the barrier is opened, also across a lost
// connection and an expired session. Each waiting client costs one event.
func TestBarrierHoldsUntilOpened(t *testing.T) {
	bubble(t, func(t *testing.T, s *fakeServer) {
		a, err := NewBarrier(s.connect(zk.Options{}), gate, nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(a.Wait(t.Context()), a.Close(t.Context()), a.Close(t.Context())); err != nil {
			t.Fatal(err)
		}
		var outs []<-chan error
		var clients []*zk.Client
		for range 10 {
			c := s.connect(zk.Options{})
			b, _ := NewBarrier(c, gate, nil)
			clients = append(clients, c)
			outs = append(outs, after(func() error { return b.Wait(context.Background()) }))
		}
		s.change(gate, "woken for nothing")
		s.cut(clients[1])
		s.expire(clients[2].Session().ID)
		time.Sleep(time.Second)
		for _, out := range outs {
			still(t, out)
		}
		before := s.eventCount()
		if err := errors.Join(a.Open(t.Context()), a.Open(t.Context())); err != nil {
			t.Fatal(err)
		}
		for _, out := range outs {
			returned(t, out)
		}
		if n := s.eventCount() - before; n != 10 {
			t.Errorf("%d events for 10 who wait", n)
		}
	})
}

// TestDoubleBarrierBeginsAndEndsTogether lets all members enter and leave three times,
// once without and once with the option Kazoo. Entering and leaving cost at most 2(n-1)
// events besides the n events of ready.
func TestDoubleBarrierBeginsAndEndsTogether(t *testing.T) {
	for _, o := range []*BarrierOptions{nil, {Kazoo: true}} {
		bubble(t, func(t *testing.T, s *fakeServer) {
			const n = 5
			var members []*DoubleBarrier
			for range n {
				members = append(members, s.double(n, o))
			}
			before := s.eventCount()
			for range 3 {
				var outs []<-chan error
				for _, m := range members {
					for _, out := range outs {
						still(t, out)
					}
					outs = append(outs, after(func() error { return m.Enter(context.Background()) }))
				}
				for _, out := range outs {
					returned(t, out)
				}
				outs = nil
				for _, m := range members {
					for _, out := range outs {
						still(t, out)
					}
					outs = append(outs, after(func() error { return m.Leave(context.Background()) }))
				}
				for _, out := range outs {
					returned(t, out)
				}
				if left := s.bids(gate); len(left) > 0 {
					t.Errorf("left behind: %v", left)
				}
			}
			if got := s.eventCount() - before; got > 3*(n-1+2*(n-1)) {
				t.Errorf("%d events in three rounds of %d", got, n)
			}
		})
	}
}

// TestGH1290DoubleBarrierIsNotPassedEarly checks that neither an event other than the creation of ready
// nor a new connection lets a member pass (Curator GH-1290).
func TestGH1290DoubleBarrierIsNotPassedEarly(t *testing.T) {
	bubble(t, func(t *testing.T, s *fakeServer) {
		a, b := s.double(2, nil), s.double(2, nil)
		out := after(func() error { return a.Enter(context.Background()) })
		still(t, out)
		s.mu.Lock()
		for p := range s.peers {
			if p.session == a.b.c.Session().ID {
				s.event(p, wire.EventNodeDataChanged, gate+"/ready")
				s.event(p, wire.EventNodeDeleted, gate+"/ready")
				p.send(&wire.ReplyHeader{Xid: wire.XidEvent, Zxid: -1}, &wire.WatcherEvent{Type: wire.EventNone, State: wire.StateSyncConnected})
			}
		}
		s.mu.Unlock()
		still(t, out)
		s.cut(a.b.c)
		time.Sleep(time.Second)
		still(t, out)
		if err := b.Enter(t.Context()); err != nil {
			t.Fatal(err)
		}
		returned(t, out)
		out = after(func() error { return a.Leave(context.Background()) })
		still(t, out)
		s.cut(a.b.c)
		time.Sleep(time.Second)
		still(t, out)
		if err := b.Leave(t.Context()); err != nil {
			t.Fatal(err)
		}
		returned(t, out)
	})
}

// TestDoubleBarrierLosesReplies checks that lost replies do no harm, and that a member whose session
// expires is out.
func TestDoubleBarrierLosesReplies(t *testing.T) {
	for _, f := range []fate{dropReply, dropAll} {
		bubble(t, func(t *testing.T, s *fakeServer) {
			a, b := s.double(2, nil), s.double(2, nil)
			n := 0
			s.hook(func(_ *peer, op wire.OpCode, _ string) fate {
				if op == wire.OpCreate || op == wire.OpCreate2 || op == wire.OpDelete || op == wire.OpMulti {
					if n++; n%2 == 1 && n < 20 {
						return f
					}
				}
				return normal
			})
			out := after(func() error { return a.Enter(context.Background()) })
			time.Sleep(10 * time.Second)
			still(t, out)
			if err := b.Enter(t.Context()); err != nil {
				t.Fatal(err)
			}
			returned(t, out)
			out = after(func() error { return a.Leave(context.Background()) })
			if err := b.Leave(t.Context()); err != nil {
				t.Fatal(err)
			}
			returned(t, out)
			if left := s.bids(gate); len(left) > 0 {
				t.Errorf("left behind: %v", left)
			}
			s.hook(nil)
			out = after(func() error { return a.Enter(context.Background()) })
			s.expire(a.b.c.Session().ID)
			if err := <-out; !errors.Is(err, zk.ErrSessionExpired) {
				t.Errorf("after an expiry: %v", err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			if err := a.Enter(ctx); !errors.Is(err, context.DeadlineExceeded) || len(s.bids(gate)) > 0 {
				t.Errorf("cancelled: %v, %v left", err, s.bids(gate))
			}
		})
	}
}

// TestBarrierWaitIsRefused checks that Wait returns at once if the server refuses it, or if it is
// cancelled while the server does not answer.
func TestBarrierWaitIsRefused(t *testing.T) {
	bubble(t, func(t *testing.T, s *fakeServer) {
		b, err := NewBarrier(s.connect(zk.Options{}), gate, nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := b.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		s.hook(func(_ *peer, op wire.OpCode, _ string) fate {
			if op == wire.OpGetData {
				return deny
			}
			return normal
		})
		if err := b.Wait(t.Context()); !errors.Is(err, zk.ErrNoAuth) {
			t.Errorf("refused: %v", err)
		}
		s.hook(nil)
		ctx, cancel := context.WithCancel(t.Context())
		out := after(func() error { return b.Wait(ctx) })
		still(t, out)
		s.silence()
		cancel()
		time.Sleep(2 * time.Second)
		select {
		case err := <-out:
			if !errors.Is(err, context.Canceled) {
				t.Errorf("cancelled: %v", err)
			}
		default:
			t.Error("cancelled, and waits for a server that does not answer")
		}
	})
}

// TestBarrierWaitOutlivesTheSession checks that Wait continues in a later session, also
// if the session ends before its first read. A server that is behind must not end the
// wait.
func TestBarrierWaitOutlivesTheSession(t *testing.T) {
	bubble(t, func(t *testing.T, s *fakeServer) {
		c := s.connect(zk.Options{})
		b, err := NewBarrier(c, gate, nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := b.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		s.hook(func(_ *peer, op wire.OpCode, _ string) fate {
			if op == wire.OpSync {
				return swallow
			}
			return normal
		})
		out := after(func() error { return b.Wait(context.Background()) })
		s.expire(c.Session().ID)
		s.hook(nil)
		time.Sleep(time.Second)
		still(t, out)
		syncs := 0
		s.hook(func(_ *peer, op wire.OpCode, _ string) fate {
			if op == wire.OpSync {
				syncs++
			}
			return normal
		})
		s.expire(c.Session().ID)
		time.Sleep(time.Second)
		still(t, out)
		if syncs == 0 {
			t.Error("the next session reads without a sync")
		}
		if err := b.Open(t.Context()); err != nil {
			t.Fatal(err)
		}
		returned(t, out)
	})
}

// TestDoubleBarrierAgainAtOnce checks that a member that leaves does not wait for members that have
// entered again.
func TestDoubleBarrierAgainAtOnce(t *testing.T) {
	for _, o := range []*BarrierOptions{nil, {Kazoo: true}} {
		bubble(t, func(t *testing.T, s *fakeServer) {
			d, other := s.double(2, o), s.connect(zk.Options{})
			const first, second = gate + "/!1", gate + "/!2" // these names sort before those of all members under test
			s.put("/app", "")
			s.put(gate, "")
			if _, _, err := other.Create(t.Context(), first, nil, zk.Ephemeral); err != nil {
				t.Fatal(err)
			}
			if err := d.Enter(t.Context()); err != nil || d.Session() != d.b.c.State().Session {
				t.Fatalf("in by session %v: %v", d.Session(), err)
			}
			out := after(func() error { return d.Leave(context.Background()) })
			still(t, out)
			ops := []zk.Op{zk.DeleteOp(first, zk.AnyVersion), zk.CreateOp(second, nil, zk.Ephemeral)}
			if o == nil {
				ops = append(ops, zk.DeleteOp(gate+"/ready", zk.AnyVersion))
			}
			if _, err := other.Multi(t.Context(), ops...); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			select {
			case err := <-out:
				if err != nil {
					t.Error(err)
				}
			default:
				t.Fatal("waits for a member of the next round")
			}
			if err := d.Enter(t.Context()); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// TestCancelledEnterLeavesNoMember checks that a cancelled Enter leaves no member, also if the connection
// comes back late.
func TestCancelledEnterLeavesNoMember(t *testing.T) {
	bubble(t, func(t *testing.T, s *fakeServer) {
		d := s.double(2, nil)
		ctx, cancel := context.WithCancel(t.Context())
		out := after(func() error { return d.Enter(ctx) })
		still(t, out)
		s.setAway(true)
		s.cut(d.b.c)
		cancel()
		time.Sleep(5 * time.Second)
		if err := <-out; !errors.Is(err, context.Canceled) {
			t.Errorf("cancelled: %v", err)
		}
		s.setAway(false)
		time.Sleep(2 * time.Second)
		if left := s.bids(gate); len(left) > 0 {
			t.Errorf("left behind: %v", left)
		}
	})
}
