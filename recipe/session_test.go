package recipe

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"bellwether/zk"
)

// TestLastSession checks that no call waits for another session, or sends further requests, when the only
// session of a client (zk.Options.OneSession) has expired.
func TestLastSession(t *testing.T) {
	waits := map[string]func(ctx context.Context, c *zk.Client) error{
		"barrier": func(ctx context.Context, c *zk.Client) error {
			b, err := NewBarrier(c, gate, nil)
			return errors.Join(err, b.Close(ctx), b.Wait(ctx))
		},
		"double barrier": func(ctx context.Context, c *zk.Client) error {
			d, err := NewDoubleBarrier(c, gate, 2, nil)
			_ = d.Enter(ctx)
			return errors.Join(err, d.Enter(ctx))
		},
		"queue": func(ctx context.Context, c *zk.Client) error {
			q, err := NewQueue(c, jobs, nil)
			_, taken := q.Take(ctx)
			return errors.Join(err, taken)
		},
		"lock": func(ctx context.Context, c *zk.Client) error {
			l, err := NewLock(c, "/app/lock", nil)
			h, _ := l.Lock(ctx)
			<-h.Context().Done()
			_, again := l.Lock(ctx)
			return errors.Join(err, again)
		},
		"site": func(ctx context.Context, c *zk.Client) error {
			s, err := NewSite(c, txRoot, "s", &ledger{}, nil)
			return errors.Join(err, s.Serve(ctx))
		},
		"commit": func(ctx context.Context, c *zk.Client) error {
			co, err := NewCoordinator(c, txRoot, nil)
			_, decided := co.Commit(ctx, co.Path(), []string{"nobody"}, nil, nil)
			return errors.Join(err, decided)
		},
		"observer": func(ctx context.Context, c *zk.Client) error {
			e, err := NewElection(c, "/app/election", "a", nil)
			for _, end := range e.Observe(ctx) {
				err = errors.Join(err, end)
			}
			return err
		},
		"configuration": func(ctx context.Context, c *zk.Client) (err error) {
			for _, err = range WatchConfig(ctx, c, "/app/config", nil) {
			}
			return err
		},
		"cache": func(ctx context.Context, c *zk.Client) error {
			k, err := OpenCache(ctx, c, grove, nil)
			if err == nil {
				<-k.Done()
				err = k.Err()
			}
			return err
		},
		"registration": func(ctx context.Context, c *zk.Client) error {
			r, err := Register(ctx, c, place, nil, nil)
			time.Sleep(time.Minute)
			return errors.Join(err, r.Set(ctx, nil))
		},
		"work": func(ctx context.Context, c *zk.Client) error {
			return made(NewWork(c, "/app/work", nil)).Run(ctx, "a", func(context.Context, Task, *Handle) error { return nil })
		},
	}
	for name, wait := range waits {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *fakeServer) {
				c := s.connect(zk.Options{OneSession: true})
				ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
				defer cancel()
				out := after(func() error { return wait(ctx, c) })
				time.Sleep(time.Second)
				still(t, out)
				s.expire(c.Session().ID)
				if err := <-out; !errors.Is(err, zk.ErrSessionExpired) && !errors.Is(err, zk.ErrClosed) {
					t.Errorf("ended with %v", err)
				}
				synctest.Wait()
			})
		})
	}
}

// made is the result of a constructor.
func made[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// TestConstructorsRefusePaths checks that constructors refuse invalid paths.
func TestConstructorsRefusePaths(t *testing.T) {
	for _, path := range []string{"", "app", "/app/"} {
		_, value := NewValue(nil, path, nil)
		_, counter := NewCounter(nil, path, nil)
		_, ids := NewIDs(nil, path, nil)
		_, group := NewGroup(nil, path, nil)
		_, discovery := NewDiscovery(nil, path, nil)
		_, work := NewWork(nil, path, nil)
		_, partitioner := NewPartitioner(nil, path, "a", nil, nil)
		_, lock := NewLock(nil, path, nil)
		_, queue := NewQueue(nil, path, nil)
		_, barrier := NewBarrier(nil, path, nil)
		_, coordinator := NewCoordinator(nil, path, nil)
		for i, err := range []error{value, counter, ids, group, discovery, work, partitioner, lock, queue, barrier, coordinator} {
			if err == nil {
				t.Errorf("%q is a path, for constructor %d", path, i)
			}
		}
	}
}
