package embed

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"bellwether/recipe"
	"bellwether/zk"
)

// TestBubbleSessionExpires shows that a session whose client is cut off expires with the first tick after its
// timeout. In a bubble this takes no real time.
func TestBubbleSessionExpires(t *testing.T) {
	for _, servers := range []int{1, 3} {
		synctest.Test(t, func(t *testing.T) {
			const timeout, tick = 10 * time.Second, 100 * time.Millisecond
			e := started(t, Options{Servers: servers, InMemory: true, TickTime: tick})
			watcher := connected(t, e, nil)
			c := connectedTo(t, e, e.Server(1), &zk.Options{SessionTimeout: timeout})
			create(t, c, "/alive", "", zk.Ephemeral)
			must(t, watcher.Sync(patient(t), "/alive"))
			_, found, w, err := watcher.ExistsW(patient(t), "/alive")
			if err != nil || !found {
				t.Fatal(found, err)
			}
			heard := time.Now()
			c.Detach()
			<-w.Done()
			if took := time.Since(heard); took < timeout || took > timeout+2*tick {
				t.Errorf("of %d servers: the session expired after %v", servers, took)
			}
		})
	}
}

// TestBubbleFailover shows that another server leads after the leader of three servers was killed. The
// test measures the time with the clock of the bubble.
func TestBubbleFailover(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		e := started(t, Options{Servers: 3, InMemory: true})
		c := connected(t, e, nil)
		create(t, c, "/x", "one")
		for range 3 {
			leader, err := e.Leader(patient(t))
			must(t, err)
			must(t, leader.Kill())
			_, err = c.Set(patient(t), "/x", []byte("two"), -1)
			for err != nil {
				_, err = c.Set(patient(t), "/x", []byte("two"), -1)
			}
			must(t, leader.Start())
			must(t, e.AwaitServing(patient(t)))
		}
		holds(t, c, "/x", "two")
		if took := time.Since(began); took > 20*time.Second {
			t.Errorf("three changes of leaders took %v", took)
		}
	})
}

// TestBubbleElection shows that a candidate of a recipe takes over when the leading candidate is cut off.
func TestBubbleElection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := started(t, Options{Servers: 3, InMemory: true})
		ctx, cancel := context.WithCancel(t.Context())
		leads := make(chan string)
		ended := make(chan struct{}, 2)
		clients := map[string]*zk.Client{}
		for _, name := range []string{"a", "b"} {
			c := connected(t, e, &zk.Options{SessionTimeout: 6 * time.Second})
			clients[name] = c
			el, err := recipe.NewElection(c, "/election", name, nil)
			must(t, err)
			go func() {
				el.Lead(ctx, func(ctx context.Context, _ *recipe.Handle) error {
					leads <- name
					<-ctx.Done()
					return nil
				})
				ended <- struct{}{}
			}()
		}
		first := <-leads
		e.Cut(Session(clients[first].Session().ID), Everyone)
		began := time.Now()
		if second := <-leads; second == first {
			t.Errorf("%s leads again", second)
		}
		if took := time.Since(began); took > 20*time.Second {
			t.Errorf("the next leader came after %v", took)
		}
		e.Heal()
		cancel()
		<-ended
		<-ended
	})
}

// TestBubbleLock shows that a lock passes to the next client when its holder is cut off. The context of the old
// holder ends before the next client holds the lock, by the clock of the bubble, and the next token is larger.
func TestBubbleLock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := started(t, Options{Servers: 3, InMemory: true})
		timeout := &zk.Options{SessionTimeout: 6 * time.Second}
		a, b := connected(t, e, timeout), connected(t, e, timeout)
		first, err := recipe.NewLock(a, "/lock", &recipe.LockOptions{ID: "a"})
		must(t, err)
		second, err := recipe.NewLock(b, "/lock", &recipe.LockOptions{ID: "b"})
		must(t, err)
		held, err := first.Lock(t.Context())
		must(t, err)

		e.Cut(Session(a.Session().ID), Everyone)
		began := time.Now()
		next, err := second.Lock(t.Context())
		must(t, err)
		if took := time.Since(began); took < 4*time.Second || took > 10*time.Second {
			t.Errorf("the next holder came after %v", took)
		}
		if held.Context().Err() == nil || held.Left() > 0 {
			t.Errorf("two hold the lock: the first for %v more", held.Left())
		}
		if next.Token() <= held.Token() {
			t.Errorf("token %v after %v", next.Token(), held.Token())
		}
		e.Heal()
		must(t, next.Release(t.Context()))
	})
}

// TestBubbleCutForAnHour shows that a client that was cut off for an hour gets a new session and finds the data
// that it wrote before.
func TestBubbleCutForAnHour(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := started(t, Options{Servers: 3, InMemory: true})
		c := connected(t, e, nil)
		create(t, c, "/x", "before")
		before := c.Session().ID
		e.Cut(Session(before), Everyone)
		time.Sleep(time.Hour)
		told, ctx := make(chan error, 1), patient(t)
		go func() { told <- c.Sync(ctx, "/") }()
		synctest.Wait() // the call already waits for a connection, so it belongs to the session that has expired
		e.Heal()
		wants(t, <-told, zk.ErrSessionExpired)
		holds(t, c, "/x", "before")
		if after := c.Session().ID; after == before {
			t.Errorf("session %v has outlived an hour", after)
		}
	})
}

// TestBubbleSkipsTime shows that an hour of the bubble's clock passes at once, and that nothing is lost.
func TestBubbleSkipsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := started(t, Options{Servers: 3, InMemory: true})
		c := connected(t, e, nil)
		create(t, c, "/x", "before", zk.Ephemeral)
		time.Sleep(time.Hour)
		holds(t, c, "/x", "before")
	})
}
