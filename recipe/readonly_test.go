package recipe

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"bellwether/wire"
	"bellwether/zk"
)

// TestReadOnlyServerHoldsNoClaim checks that with a server without a quorum no client leads, holds,
// registers or enters, or sends a request for it. With a quorum all do.
func TestReadOnlyServerHoldsNoClaim(t *testing.T) {
	for name, claim := range map[string]func(context.Context, *zk.Client) error{
		"election": func(ctx context.Context, c *zk.Client) error {
			e, err := NewElection(c, parent, "a", nil)
			if err == nil {
				_, err = e.Campaign(ctx)
			}
			return err
		},
		"lock": func(ctx context.Context, c *zk.Client) error {
			l, err := NewLock(c, parent, nil)
			if err == nil {
				_, err = l.Lock(ctx)
			}
			return err
		},
		"shared lock": func(ctx context.Context, c *zk.Client) error {
			l, err := NewReadWriteLock(c, parent, nil)
			if err == nil {
				_, err = l.RLock(ctx)
			}
			return err
		},
		"semaphore": func(ctx context.Context, c *zk.Client) error {
			s, err := NewSemaphore(c, parent, 2, nil)
			if err == nil {
				_, err = s.Acquire(ctx)
			}
			return err
		},
		"registration": func(ctx context.Context, c *zk.Client) error {
			r, err := Register(ctx, c, place, nil, nil)
			for err == nil && r.Status().Standing != Stands {
				_, err = r.Status().Next(ctx)
			}
			return err
		},
		"double barrier": func(ctx context.Context, c *zk.Client) error {
			b, err := NewDoubleBarrier(c, parent, 1, nil)
			if err == nil {
				err = b.Enter(ctx)
			}
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *fakeServer) { claimWithoutQuorum(t, s, claim) })
		})
	}
}

func claimWithoutQuorum(t *testing.T, s *fakeServer, claim func(context.Context, *zk.Client) error) {
	s.setPoor(true)
	c := s.connect(zk.Options{ReadOnly: true})
	if st := c.State(); st.State != zk.ReadOnly {
		t.Fatalf("the client is %v", st.State)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- claim(ctx, c) }()
	time.Sleep(time.Minute)
	synctest.Wait()
	select {
	case err := <-done:
		t.Fatalf("claimed: %v", err)
	default:
	}
	for op, n := range s.requests {
		if op.IsWrite() || op == wire.OpSync {
			t.Errorf("%d times %v was asked for", n, op)
		}
	}
	s.setPoor(false)
	s.cut(c)
	if err := <-done; err != nil {
		t.Errorf("with a quorum: %v", err)
	}
	if l := c.Lease(); l.Session != c.Session().ID {
		t.Errorf("the lease is of session %v", l.Session)
	}
}

// setPoor takes the quorum from the server, or gives it back.
func (s *fakeServer) setPoor(poor bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.poor = poor
}
