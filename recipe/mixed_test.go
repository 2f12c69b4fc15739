package recipe

import (
	"context"
	"errors"
	"testing"
	"time"

	"bellwether/zk"
)

// mixedAt is the path that several recipes are given.
const mixedAt = "/app/mixed"

// residents begin to use a recipe at the path, and leave its znodes there.
var residents = map[string]func(t *testing.T, c *zk.Client){
	"election": func(t *testing.T, c *zk.Client) {
		campaign(t, made(NewElection(c, mixedAt, "a", nil)))
	},
	"lock": locked(mixedAt),
	"read-write lock": func(t *testing.T, c *zk.Client) {
		if _, err := made(NewReadWriteLock(c, mixedAt, nil)).RLock(t.Context()); err != nil {
			t.Fatal(err)
		}
	},
	"semaphore": func(t *testing.T, c *zk.Client) {
		if _, err := made(NewSemaphore(c, mixedAt, 1, nil)).Acquire(t.Context()); err != nil {
			t.Fatal(err)
		}
	},
	"queue": func(t *testing.T, c *zk.Client) {
		if err := made(NewQueue(c, mixedAt, nil)).Put(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
	},
	"work queue": func(t *testing.T, c *zk.Client) {
		if err := made(NewWorkQueue(c, mixedAt, nil)).Put(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
	},
	"double barrier": func(t *testing.T, c *zk.Client) {
		if err := made(NewDoubleBarrier(c, mixedAt, 1, nil)).Enter(t.Context()); err != nil {
			t.Fatal(err)
		}
	},
	"transaction": func(t *testing.T, c *zk.Client) {
		co := made(NewCoordinator(c, mixedAt, nil))
		go func() { _, _ = co.Commit(t.Context(), co.Path(), []string{"s"}, nil, nil) }()
	},
	"work": func(t *testing.T, c *zk.Client) {
		w := made(NewWork(c, mixedAt, nil))
		if err := w.Submit(t.Context(), "task", nil); err != nil {
			t.Fatal(err)
		}
		go func() {
			_ = w.Run(t.Context(), "a", func(ctx context.Context, _ Task, _ *Handle) error { <-ctx.Done(); return nil })
		}()
	},
	"partitioner": func(t *testing.T, c *zk.Client) {
		p := made(NewPartitioner(c, mixedAt, "a", []string{"one"}, nil))
		go func() {
			_ = p.Run(t.Context(), func(ctx context.Context, _ string, _ *Handle) error { <-ctx.Done(); return nil })
		}()
	},
}

// newcomers use the path with another recipe. The second field names the residents that they do not
// recognise, because the names of the znodes are ambiguous or the two do not disturb each other.
var newcomers = map[string]struct {
	come   func(ctx context.Context, c *zk.Client) error
	beside []string
}{
	"election": {func(ctx context.Context, c *zk.Client) error {
		_, err := made(NewElection(c, mixedAt, "b", nil)).Campaign(ctx)
		return err
	}, []string{"lock"}}, // a candidate that is not published yet looks like a holder
	"lock": {func(ctx context.Context, c *zk.Client) error {
		_, err := made(NewLock(c, mixedAt, nil)).Lock(ctx)
		return err
	}, []string{"read-write lock"}}, // documented: it acts as one more writer
	"read-write lock": {func(ctx context.Context, c *zk.Client) error {
		_, err := made(NewReadWriteLock(c, mixedAt, nil)).RLock(ctx)
		return err
	}, []string{"lock"}},
	"semaphore": {func(ctx context.Context, c *zk.Client) error {
		_, err := made(NewSemaphore(c, mixedAt, 1, nil)).Acquire(ctx)
		return err
	}, nil},
	"barrier": {func(ctx context.Context, c *zk.Client) error {
		return made(NewBarrier(c, mixedAt, nil)).Wait(ctx)
	}, nil},
	"double barrier": {func(ctx context.Context, c *zk.Client) error {
		return made(NewDoubleBarrier(c, mixedAt, 2, nil)).Enter(ctx)
	}, nil},
	"queue": {func(ctx context.Context, c *zk.Client) error {
		_, err := made(NewQueue(c, mixedAt, nil)).Take(ctx)
		return err
	}, nil},
	"queue, put": {func(ctx context.Context, c *zk.Client) error {
		return made(NewQueue(c, mixedAt, nil)).Put(ctx, nil)
	}, []string{"election", "lock", "read-write lock", "semaphore", "double barrier", "transaction", "work", "partitioner"}},
	"work queue": {func(ctx context.Context, c *zk.Client) error {
		_, err := made(NewWorkQueue(c, mixedAt, nil)).Take(ctx)
		return err
	}, nil},
	"work queue, put": {func(ctx context.Context, c *zk.Client) error {
		return made(NewWorkQueue(c, mixedAt, nil)).Put(ctx, nil)
	}, nil},
	"group": {func(ctx context.Context, c *zk.Client) error {
		for _, err := range made(NewGroup(c, mixedAt, nil)).Watch(ctx) {
			if err != nil {
				return err
			}
		}
		return nil
	}, []string{"semaphore", "queue", "work queue", "double barrier", "transaction", "work", "partitioner"}},
	"serve": {func(ctx context.Context, c *zk.Client) error {
		return made(NewSite(c, mixedAt, "s", failing{}, nil)).Serve(ctx)
	}, []string{"lock", "read-write lock"}},
	"work": {func(ctx context.Context, c *zk.Client) error {
		return made(NewWork(c, mixedAt, nil)).Run(ctx, "b", func(context.Context, Task, *Handle) error { return nil })
	}, []string{"lock", "read-write lock"}},
	"partitioner": {func(ctx context.Context, c *zk.Client) error {
		own := func(ctx context.Context, _ string, _ *Handle) error { <-ctx.Done(); return nil }
		return made(NewPartitioner(c, mixedAt, "b", []string{"two"}, nil)).Run(ctx, own)
	}, []string{"lock", "read-write lock"}},
}

// same reports whether a newcomer uses the recipe of the resident.
func same(newcomer, resident string) bool {
	return newcomer == resident || newcomer == resident+", put" || newcomer == "serve" && resident == "transaction"
}

// TestPathOfAnotherRecipeIsReported checks that a recipe that is given the path of another one returns an error
// that names the other recipe. It must neither wait for ever nor count the znodes of the other recipe.
func TestPathOfAnotherRecipeIsReported(t *testing.T) {
	for newcomer, n := range newcomers {
		for resident, reside := range residents {
			if same(newcomer, resident) {
				continue
			}
			t.Run(newcomer+" beside "+resident, func(t *testing.T) {
				bubble(t, func(t *testing.T, s *fakeServer) {
					s.put("/app", "")
					reside(t, s.connect(zk.Options{}))
					time.Sleep(time.Second)
					before := s.ephemerals()
					ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
					defer cancel()
					err := n.come(ctx, s.connect(zk.Options{}))
					var other *OtherRecipeError
					told := errors.As(err, &other)
					unsure := false
					for _, name := range n.beside {
						unsure = unsure || name == resident
					}
					switch {
					case told == unsure:
						t.Errorf("the newcomer got %v", err)
					case told && (other.Path != mixedAt || other.Found != resident):
						t.Errorf("%v, of %s", err, resident)
					}
					time.Sleep(2 * time.Second)
					if after := s.ephemerals(); told && after != before {
						t.Errorf("%d ephemeral znodes, there were %d", after, before)
					}
				})
			})
		}
	}
}
