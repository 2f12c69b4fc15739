package recipe

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"bellwether/wire"
	"bellwether/zk"
)

// holders are the ways to hold something for as long as a session lasts. Each returns the contexts that
// end with the session.
var holders = map[string]func(t *testing.T, c *zk.Client) []context.Context{
	"Campaign": func(t *testing.T, c *zk.Client) []context.Context {
		e, err := NewElection(c, parent, "a", nil)
		if err != nil {
			t.Fatal(err)
		}
		return []context.Context{campaign(t, e).Context()}
	},
	"Lead": func(t *testing.T, c *zk.Client) []context.Context {
		e, err := NewElection(c, parent, "a", nil)
		if err != nil {
			t.Fatal(err)
		}
		leading := make(chan []context.Context)
		go func() {
			_ = e.Lead(t.Context(), func(ctx context.Context, h *Handle) error {
				leading <- []context.Context{ctx, h.Context()}
				<-ctx.Done()
				return nil
			})
		}()
		return <-leading
	},
	"Lock": func(t *testing.T, c *zk.Client) []context.Context {
		l, err := NewLock(c, parent, nil)
		if err != nil {
			t.Fatal(err)
		}
		h, err := l.Lock(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		again, err := h.Again()
		if err != nil {
			t.Fatal(err)
		}
		child, cancel := context.WithCancel(h.Context())
		t.Cleanup(cancel)
		return []context.Context{h.Context(), again.Context(), child}
	},
	"RLock": func(t *testing.T, c *zk.Client) []context.Context {
		l, err := NewReadWriteLock(c, parent, nil)
		if err != nil {
			t.Fatal(err)
		}
		h, err := l.RLock(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return []context.Context{h.Context()}
	},
	"Semaphore": func(t *testing.T, c *zk.Client) []context.Context {
		l, err := NewSemaphore(c, parent, 2, nil)
		if err != nil {
			t.Fatal(err)
		}
		h, err := l.Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return []context.Context{h.Context()}
	},
	"MultiLock": func(t *testing.T, c *zk.Client) []context.Context {
		h, err := twoLocks(t, c).Lock(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return []context.Context{h.Context(), h.Holds()[0].Context(), h.Holds()[1].Context()}
	},
	"Lock.Do": func(t *testing.T, c *zk.Client) []context.Context {
		l, err := NewLock(c, parent, nil)
		if err != nil {
			t.Fatal(err)
		}
		given := make(chan context.Context)
		go func() { _ = l.Do(t.Context(), stayFor[*Hold](given)) }()
		return []context.Context{<-given}
	},
	"Semaphore.Do": func(t *testing.T, c *zk.Client) []context.Context {
		s, err := NewSemaphore(c, parent, 2, nil)
		if err != nil {
			t.Fatal(err)
		}
		given := make(chan context.Context)
		go func() { _ = s.Do(t.Context(), stayFor[*Hold](given)) }()
		return []context.Context{<-given}
	},
	"MultiLock.Do": func(t *testing.T, c *zk.Client) []context.Context {
		m := twoLocks(t, c)
		given := make(chan context.Context)
		go func() { _ = m.Do(t.Context(), stayFor[*MultiHold](given)) }()
		return []context.Context{<-given}
	},
}

// twoLocks returns a MultiLock of two paths.
func twoLocks(t *testing.T, c *zk.Client) *MultiLock {
	t.Helper()
	var locks []*Lock
	for _, path := range []string{"/a", "/b"} {
		l, err := NewLock(c, path, nil)
		if err != nil {
			t.Fatal(err)
		}
		locks = append(locks, l)
	}
	m, err := NewMultiLock(locks...)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// stayFor returns a function for Do that passes on its context and returns when the context ends.
func stayFor[H any](given chan<- context.Context) func(context.Context, H) error {
	return func(ctx context.Context, _ H) error {
		given <- ctx
		<-ctx.Done()
		return nil
	}
}

// TestCloseEndsContextsFirst checks that every context that ends with the session has ended before
// closeSession reaches the server, and before Detach returns.
func TestCloseEndsContextsFirst(t *testing.T) {
	for name, hold := range holders {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *fakeServer) {
				c := s.connect(zk.Options{})
				contexts := hold(t, c)
				synctest.Wait()
				s.hook(func(_ *peer, op wire.OpCode, _ string) fate {
					if op == wire.OpCloseSession {
						ended(t, contexts, "the server hears of the close")
					}
					return normal
				})
				if err := c.Close(t.Context()); err != nil {
					t.Fatal(err)
				}
				detached := s.connect(zk.Options{})
				contexts = hold(t, detached)
				detached.Detach()
				ended(t, contexts, "Detach has returned")
			})
		})
	}
}

func ended(t *testing.T, contexts []context.Context, when string) {
	t.Helper()
	for i, ctx := range contexts {
		if ctx.Err() == nil {
			t.Errorf("context %d has not ended when %s", i, when)
		}
	}
}

// TestZeroRegistrationStatus checks that no status follows the zero value, so that Next ends with its
// context.
func TestZeroRegistrationStatus(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var s RegistrationStatus
	if _, err := s.Next(ctx); !errors.Is(err, context.Canceled) || s.Changed() != nil || s.Final() {
		t.Errorf("Next: %v; changed %v, final %v", err, s.Changed(), s.Final())
	}
}
