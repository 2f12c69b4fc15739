package recipe

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	"bellwether/zk"
)

// makers has a constructor of each recipe, for any path.
var makers = map[string]func(ctx context.Context, c *zk.Client, path string) error{
	"election":   func(_ context.Context, c *zk.Client, p string) error { return second(NewElection(c, p, "id", nil)) },
	"lock":       func(_ context.Context, c *zk.Client, p string) error { return second(NewLock(c, p, nil)) },
	"read-write": func(_ context.Context, c *zk.Client, p string) error { return second(NewReadWriteLock(c, p, nil)) },
	"semaphore":  func(_ context.Context, c *zk.Client, p string) error { return second(NewSemaphore(c, p, 2, nil)) },
	"barrier":    func(_ context.Context, c *zk.Client, p string) error { return second(NewBarrier(c, p, nil)) },
	"double":     func(_ context.Context, c *zk.Client, p string) error { return second(NewDoubleBarrier(c, p, 2, nil)) },
	"queue":      func(_ context.Context, c *zk.Client, p string) error { return second(NewQueue(c, p, nil)) },
	"work queue": func(_ context.Context, c *zk.Client, p string) error { return second(NewWorkQueue(c, p, nil)) },
	"value":      func(_ context.Context, c *zk.Client, p string) error { return second(NewValue(c, p, nil)) },
	"counter":    func(_ context.Context, c *zk.Client, p string) error { return second(NewCounter(c, p, nil)) },
	"ids":        func(_ context.Context, c *zk.Client, p string) error { return second(NewIDs(c, p, nil)) },
	"group":      func(_ context.Context, c *zk.Client, p string) error { return second(NewGroup(c, p, nil)) },
	"discovery":  func(_ context.Context, c *zk.Client, p string) error { return second(NewDiscovery(c, p, nil)) },
	"partitioner": func(_ context.Context, c *zk.Client, p string) error {
		return second(NewPartitioner(c, p, "id", nil, nil))
	},
	"work":        func(_ context.Context, c *zk.Client, p string) error { return second(NewWork(c, p, nil)) },
	"coordinator": func(_ context.Context, c *zk.Client, p string) error { return second(NewCoordinator(c, p, nil)) },
	"site": func(_ context.Context, c *zk.Client, p string) error {
		return second(NewSite(c, p, "s", &ledger{}, nil))
	},
	"register": func(ctx context.Context, c *zk.Client, p string) error { return second(Register(ctx, c, p, nil, nil)) },
	"cache":    func(ctx context.Context, c *zk.Client, p string) error { return second(OpenCache(ctx, c, p, nil)) },
	"configuration": func(ctx context.Context, c *zk.Client, p string) error {
		for _, err := range WatchConfig(ctx, c, p, nil) {
			return err
		}
		return nil
	},
}

func second[T any](_ T, err error) error { return err }

// TestPathsAreLookedAt checks that constructors refuse invalid paths without a request to a server.
func TestPathsAreLookedAt(t *testing.T) {
	bubble(t, func(t *testing.T, s *fakeServer) {
		c := s.connect(zk.Options{})
		for _, path := range []string{"", "a", "/a/", "//", "/a//b", "/a/./b", "/a/..", "/a\x00b", "/\xff"} {
			for name, make := range makers {
				if err := make(t.Context(), c, path); !errors.Is(err, zk.ErrBadArguments) {
					t.Errorf("%s at %q: %v", name, path, err)
				}
			}
		}
	})
}

// TestNilArgumentsAreErrors checks that a nil client, and a nil function or participant that a recipe would call on a
// goroutine of its own, is an error that says what is nil.
func TestNilArgumentsAreErrors(t *testing.T) {
	bubble(t, func(t *testing.T, s *fakeServer) {
		for name, make := range makers {
			if err := make(t.Context(), nil, "/app"); !errors.Is(err, zk.ErrBadArguments) || !strings.Contains(err.Error(), "the client is nil") {
				t.Errorf("%s: %v", name, err)
			}
		}
		c := s.connect(zk.Options{})
		p, err1 := NewPartitioner(c, "/app/p", "id", nil, nil)
		w, err2 := NewWork(c, "/app/w", nil)
		if err := errors.Join(err1, err2); err != nil {
			t.Fatal(err)
		}
		for want, err := range map[string]error{
			"the Participant is nil":  second(NewSite(c, "/app/t", "s", nil, nil)),
			"a lock is nil":           second(NewMultiLock(s.lock(nil), nil)),
			"the function own is nil": p.Run(t.Context(), nil),
			"the function do is nil":  w.Run(t.Context(), "id", nil),
		} {
			if !errors.Is(err, zk.ErrBadArguments) || !strings.Contains(err.Error(), want) {
				t.Errorf("%v, want %s", err, want)
			}
		}
	})
}

// TestNamesAreLookedAt checks that arguments which become names of znodes are refused if they are invalid.
func TestNamesAreLookedAt(t *testing.T) {
	bubble(t, func(t *testing.T, s *fakeServer) {
		c, ctx := s.connect(zk.Options{}), t.Context()
		g, err1 := NewGroup(c, "/app/g", nil)
		d, err2 := NewDiscovery(c, "/app/d", nil)
		w, err3 := NewWork(c, "/app/w", nil)
		if err := errors.Join(err1, err2, err3); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"", ".", "..", "a/b", "a\x00b"} {
			for what, err := range map[string]error{
				"member":   second(g.Join(ctx, name, nil)),
				"service":  second(d.Register(ctx, Instance{Name: name})),
				"provider": second(d.Provider(ctx, name, nil)),
				"task":     w.Submit(ctx, name, nil),
				"part":     second(NewPartitioner(c, "/app/p", "id", []string{name}, nil)),
				"site":     second(NewSite(c, "/app/t", name, nil, nil)),
			} {
				if !errors.Is(err, zk.ErrBadArguments) {
					t.Errorf("%s %q: %v", what, name, err)
				}
			}
		}
	})
}

// TestEndedContextDoesNothing checks that a call whose context has already ended closes, opens, puts and
// takes nothing.
func TestEndedContextDoesNothing(t *testing.T) {
	bubble(t, func(t *testing.T, s *fakeServer) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		b, err := NewBarrier(s.connect(zk.Options{}), gate, nil)
		if err != nil {
			t.Fatal(err)
		}
		q, w, d := s.queue(nil), s.work(nil), s.double(1, nil)
		if err := w.Put(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		item, err := w.Take(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		before := len(s.persistent())
		for what, err := range map[string]error{
			"close": b.Close(ctx), "open": b.Open(ctx), "wait": b.Wait(ctx), "put": q.Put(ctx, nil), "take": second(q.Take(ctx)),
			"work put": w.Put(ctx, nil), "work take": second(w.Take(ctx)), "ack": item.Ack(ctx), "enter": d.Enter(ctx),
		} {
			if err != context.Canceled {
				t.Errorf("%s: %v", what, err)
			}
		}
		synctest.Wait()
		if after := len(s.persistent()); after != before {
			t.Errorf("%d znodes, then %d", before, after)
		}
	})
}

// TestReleaseGoesOn checks that Release gives an item back even if its caller has stopped waiting.
func TestReleaseGoesOn(t *testing.T) {
	bubble(t, func(t *testing.T, s *fakeServer) {
		q := s.work(nil)
		item := takeOne(t, q)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := item.Release(ctx); err != nil && err != context.Canceled {
			t.Errorf("released: %v", err)
		}
		synctest.Wait()
		if left := s.bids(q.claims); len(left) > 0 {
			t.Errorf("claims left: %v", left)
		}
	})
}

// TestLeaveWaitsItsTurn checks that Leave waits while Enter still runs, but no longer than its context
// lasts.
func TestLeaveWaitsItsTurn(t *testing.T) {
	bubble(t, func(t *testing.T, s *fakeServer) {
		d := s.double(2, nil)
		inner, cancel := context.WithCancel(t.Context())
		entered := make(chan error, 1)
		go func() { entered <- d.Enter(inner) }()
		synctest.Wait()
		ctx, stop := context.WithCancel(t.Context())
		stop()
		if err := d.Leave(ctx); err != context.Canceled {
			t.Errorf("left: %v", err)
		}
		if in := d.Session(); in != 0 {
			t.Errorf("in already, in session %v", in)
		}
		cancel()
		if err := <-entered; err != context.Canceled {
			t.Errorf("entered: %v", err)
		}
	})
}

// TestClosedRecipeReturnsErrClosed checks that a recipe that was closed says so while its client is still open.
func TestClosedRecipeReturnsErrClosed(t *testing.T) {
	bubble(t, func(t *testing.T, s *fakeServer) {
		c := s.connect(zk.Options{})
		r, err := Register(t.Context(), c, "/app/r", nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		k, err := OpenCache(t.Context(), c, "/app", nil)
		if err != nil {
			t.Fatal(err)
		}
		k.Close()
		<-k.Done()
		if err := r.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		for want, err := range map[string]error{
			"cache /app was closed": k.Err(), "registration /app/r was closed": r.Set(t.Context(), nil),
		} {
			if !errors.Is(err, zk.ErrClosed) || err.Error() != want {
				t.Errorf("%v, want %s", err, want)
			}
		}
	})
}
