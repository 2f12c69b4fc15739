package recipe

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"bellwether/zk"
)

// waitingCalls has one call of each recipe that waits. The first function of each entry
// makes another client cause the wait.
var waitingCalls = []struct {
	name  string
	block func(t *testing.T, c *zk.Client)
	wait  func(ctx context.Context, c *zk.Client) error
}{
	{"campaign", leadsAlready, func(ctx context.Context, c *zk.Client) error {
		_, err := made(NewElection(c, "/app/election", "b", nil)).Campaign(ctx)
		return err
	}},
	{"lead", nil, func(ctx context.Context, c *zk.Client) error {
		return made(NewElection(c, "/app/election", "b", nil)).Lead(ctx, func(ctx context.Context, _ *Handle) error {
			<-ctx.Done()
			return ctx.Err()
		})
	}},
	{"observe", nil, func(ctx context.Context, c *zk.Client) error {
		for _, err := range made(NewElection(c, "/app/election", "b", nil)).Observe(ctx) {
			if err != nil {
				return err
			}
		}
		return nil
	}},
	{"lock", locked("/app/lock"), func(ctx context.Context, c *zk.Client) error {
		_, err := made(NewLock(c, "/app/lock", nil)).Lock(ctx)
		return err
	}},
	{"read lock", locked("/app/lock"), func(ctx context.Context, c *zk.Client) error {
		_, err := made(NewReadWriteLock(c, "/app/lock", nil)).RLock(ctx)
		return err
	}},
	{"several locks", locked("/app/lock"), func(ctx context.Context, c *zk.Client) error {
		_, err := made(NewMultiLock(made(NewLock(c, "/app/a", nil)), made(NewLock(c, "/app/lock", nil)))).Lock(ctx)
		return err
	}},
	{"semaphore", func(t *testing.T, c *zk.Client) {
		if _, err := made(NewSemaphore(c, "/app/semaphore", 1, nil)).Acquire(t.Context()); err != nil {
			t.Fatal(err)
		}
	}, func(ctx context.Context, c *zk.Client) error {
		_, err := made(NewSemaphore(c, "/app/semaphore", 1, nil)).Acquire(ctx)
		return err
	}},
	{"barrier", func(t *testing.T, c *zk.Client) {
		if err := made(NewBarrier(c, gate, nil)).Close(t.Context()); err != nil {
			t.Fatal(err)
		}
	}, func(ctx context.Context, c *zk.Client) error { return made(NewBarrier(c, gate, nil)).Wait(ctx) }},
	{"enter", nil, func(ctx context.Context, c *zk.Client) error {
		return made(NewDoubleBarrier(c, gate, 2, nil)).Enter(ctx)
	}},
	{"queue", nil, func(ctx context.Context, c *zk.Client) error {
		_, err := made(NewQueue(c, jobs, nil)).Take(ctx)
		return err
	}},
	{"work queue", nil, func(ctx context.Context, c *zk.Client) error {
		_, err := made(NewWorkQueue(c, jobs, nil)).Take(ctx)
		return err
	}},
	{"register", func(t *testing.T, c *zk.Client) {
		if _, err := Register(t.Context(), c, "/app/registration", nil, nil); err != nil {
			t.Fatal(err)
		}
	}, func(ctx context.Context, c *zk.Client) error {
		_, err := Register(ctx, c, "/app/registration", nil, &RegistrationOptions{Wait: true})
		return err
	}},
	{"group", nil, func(ctx context.Context, c *zk.Client) error {
		for _, err := range made(NewGroup(c, "/app/group", nil)).Watch(ctx) {
			if err != nil {
				return err
			}
		}
		return nil
	}},
	{"partitioner", nil, func(ctx context.Context, c *zk.Client) error {
		own := func(ctx context.Context, _ string, _ *Handle) error { <-ctx.Done(); return ctx.Err() }
		return made(NewPartitioner(c, "/app/parts", "a", []string{"one", "two"}, nil)).Run(ctx, own)
	}},
	{"work", nil, func(ctx context.Context, c *zk.Client) error {
		do := func(ctx context.Context, _ Task, _ *Handle) error { return nil }
		return made(NewWork(c, "/app/work", nil)).Run(ctx, "a", do)
	}},
	{"configuration", nil, func(ctx context.Context, c *zk.Client) error {
		for _, err := range WatchConfig(ctx, c, "/app/config", nil) {
			if err != nil {
				return err
			}
		}
		return nil
	}},
	{"serve", nil, func(ctx context.Context, c *zk.Client) error {
		return made(NewSite(c, txRoot, "s", &ledger{}, nil)).Serve(ctx)
	}},
	{"commit", nil, func(ctx context.Context, c *zk.Client) error {
		co := made(NewCoordinator(c, txRoot, nil))
		_, err := co.Commit(ctx, co.Path(), []string{"s"}, nil, nil)
		return err
	}},
	{"value", nil, func(ctx context.Context, c *zk.Client) error {
		_, err := made(NewValue(c, "/app/value", nil)).Update(ctx, func([]byte) ([]byte, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		})
		return err
	}},
}

func leadsAlready(t *testing.T, c *zk.Client) {
	campaign(t, made(NewElection(c, "/app/election", "a", nil)))
}

func locked(path string) func(t *testing.T, c *zk.Client) {
	return func(t *testing.T, c *zk.Client) {
		if _, err := made(NewLock(c, path, nil)).Lock(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

// TestCancelledCallsReturnWithoutServers checks that a call returns at once if its context ends while no
// server can be reached. What it has left on the servers is removed as soon as the client is connected
// again in the same session.
func TestCancelledCallsReturnWithoutServers(t *testing.T) {
	for _, w := range waitingCalls {
		for name, early := range map[string]bool{"lost while it waits": false, "lost before": true} {
			t.Run(w.name+"/"+name, func(t *testing.T) {
				bubble(t, func(t *testing.T, s *fakeServer) {
					s.put("/app", "")
					if w.block != nil {
						w.block(t, s.connect(zk.Options{}))
					}
					c := s.connect(zk.Options{})
					published()
					before := s.ephemerals()
					away := func() { s.setAway(true); s.cut(c); synctest.Wait() }
					if early {
						away()
					}
					ctx, cancel := context.WithCancel(t.Context())
					out := after(func() error { return w.wait(ctx, c) })
					if !early {
						time.Sleep(10 * time.Millisecond)
						away()
					}
					cancelled := time.Now()
					cancel()
					if err := <-out; err == nil {
						t.Error("it returned no error")
					}
					if took := time.Since(cancelled); took > 100*time.Millisecond {
						t.Errorf("it returned %v after its context ended", took)
					}
					s.setAway(false)
					time.Sleep(3 * time.Second)
					if c.State().State != zk.Connected || c.State().Session == 0 {
						t.Fatalf("the client is %v", c.State())
					}
					if left := s.ephemerals(); left != before {
						t.Errorf("%d ephemeral znodes stand, %d stood before", left, before)
					}
				})
			})
		}
	}
}

// ephemerals returns the number of ephemeral znodes.
func (s *fakeServer) ephemerals() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, node := range s.nodes {
		if node.stat.EphemeralOwner != 0 {
			n++
		}
	}
	return n
}
