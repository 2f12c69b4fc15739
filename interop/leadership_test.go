package interop

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"bellwether/interop/target"
	"bellwether/recipe"
	"bellwether/zk"
)

// TestLeadSurvivesRestarts shows that a leading function that returns the error of Handle.Do,
// as in the example of package recipe, leads again after each of 8 restarts of its server.
// Its session survives the restarts.
func TestLeadSurvivesRestarts(t *testing.T) {
	const restarts = 8
	eachTarget(t, func(t *testing.T, kind target.Kind) {
		s := target.StartFor(t, kind, target.Options{})
		root := fresh("restarts")
		k := newCandidate(t, s.Addr, root+"/job", "a", electionTimeout, recipe.ElectionOptions{})
		mustCreate(t, k.c, root)
		mustCreate(t, k.c, root+"/beat")
		session := k.c.Session().ID
		survived := 0
		var led *leading
		for range restarts {
			if led == nil {
				led = k.lead(t, root+"/beat")
			}
			led.awaitWrite(t)
			if err := s.Restart(); err != nil {
				t.Fatal(err)
			}
			if err := led.awaitWrite(t); err != nil {
				t.Logf("Lead ended: %v", err)
				led = nil
			} else {
				survived++
			}
		}
		t.Logf("Lead survived %d of %d restarts", survived, restarts)
		if survived < restarts {
			t.Errorf("Lead survived %d of %d restarts", survived, restarts)
		}
		if now := k.c.Session().ID; now != session {
			t.Errorf("the session changed from %v to %v, so the restarts show nothing", session, now)
		}
		if led != nil {
			led.cancel()
			<-led.done
		}
	})
}

// leading is a running Lead whose function writes without pauses.
type leading struct {
	cancel context.CancelFunc
	writes atomic.Int64
	done   chan error
}

func (k *candidate) lead(t *testing.T, state string) *leading {
	ctx, cancel := context.WithCancel(t.Context())
	l := &leading{cancel: cancel, done: make(chan error, 1)}
	go func() {
		l.done <- k.e.Lead(ctx, func(ctx context.Context, h *recipe.Handle) error {
			for {
				if _, err := h.Do(ctx, zk.SetOp(state, []byte(k.id), zk.AnyVersion)); err != nil {
					return err
				}
				l.writes.Add(1)
			}
		})
	}()
	return l
}

// awaitWrite waits until the function has written ten times more, or Lead has returned.
func (l *leading) awaitWrite(t *testing.T) error {
	t.Helper()
	until := time.After(electionWait)
	for n := l.writes.Load() + 10; l.writes.Load() < n; {
		select {
		case err := <-l.done:
			return errors.Join(err, errEnded)
		case <-until:
			t.Fatal("no write")
		case <-time.After(time.Millisecond):
		}
	}
	return nil
}

var errEnded = errors.New("the leadership has ended")

// TestResignAtTheTimeOfAnExpiry ends sessions at the time of a call of Resign: at the same moment,
// before it and after it, also while the leading function ends. If Resign returned nil, Lead
// must have ended.
func TestResignAtTheTimeOfAnExpiry(t *testing.T) {
	const campaigns = 80
	eachTarget(t, func(t *testing.T, kind target.Kind) {
		s := target.StartFor(t, kind, target.Options{})
		forgotten := map[string]int{}
		for i := range campaigns {
			kind := "while it leads"
			windDown := time.Duration(0)
			if i%2 == 1 {
				kind, windDown = "while it winds down", 60*time.Millisecond
			}
			if !resignBesideExpiry(t, s, windDown, time.Duration(i)*time.Millisecond/2) {
				forgotten[kind]++
			}
		}
		t.Logf("Resign had no effect on %v of %d campaigns", forgotten, campaigns)
		if len(forgotten) > 0 {
			t.Errorf("Resign had no effect on %v of %d campaigns", forgotten, campaigns)
		}
	})
}

// resignBesideExpiry ends a leader's session and resigns a while later. It reports whether
// Lead has then ended.
func resignBesideExpiry(t *testing.T, s *target.Server, windDown, after time.Duration) bool {
	k := newCandidate(t, s.Addr, fresh("resign")+"/job", "a", electionTimeout, recipe.ElectionOptions{})
	leads := make(chan struct{}, 100)
	done := make(chan error, 1)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() {
		done <- k.e.Lead(ctx, func(ctx context.Context, _ *recipe.Handle) error {
			leads <- struct{}{}
			<-ctx.Done()
			<-time.After(windDown)
			return ctx.Err()
		})
	}()
	<-leads
	other, err := zk.Connect(t.Context(), s.Addr, &zk.Options{Resume: k.c.Session(), OneSession: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := other.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	<-time.After(after)
	if err := k.e.Resign(t.Context()); err != nil {
		t.Fatal(err)
	}
	select {
	case <-done:
		return true
	case <-time.After(2 * time.Second):
		cancel()
		<-done
		return false
	}
}

// TestMissingChrootEndsRecipes shows that a recipe under a missing chroot ends with an error that
// says so, and writes little until then.
func TestMissingChrootEndsRecipes(t *testing.T) {
	eachTarget(t, func(t *testing.T, kind target.Kind) {
		s := target.StartFor(t, kind, target.Options{})
		look, err := zk.Connect(t.Context(), s.Addr, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer look.Close(context.Background())
		c, err := zk.Connect(t.Context(), s.Addr+"/missing/chroot", nil)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close(context.Background())
		co, err := recipe.NewCoordinator(c, "/transfers", nil)
		if err != nil {
			t.Fatal(err)
		}
		const lasts = 3 * time.Second
		ctx, cancel := context.WithTimeout(t.Context(), lasts)
		defer cancel()
		before := zxidNow(t, look)
		_, err = co.Commit(ctx, co.Path(), []string{"berlin"}, nil, nil)
		writes := zxidNow(t, look) - before
		t.Logf("%d transactions in at most %v, that is %.0f a second; it ended with: %v", writes, lasts, float64(writes)/lasts.Seconds(), err)
		if writes > 100 || err == nil || !strings.Contains(fmt.Sprint(err), "missing chroot") {
			t.Errorf("%d transactions, and: %v", writes, err)
		}
	})
}

// zxidNow creates a znode and returns the zxid of the create.
func zxidNow(t *testing.T, c *zk.Client) int64 {
	t.Helper()
	_, stat, err := c.Create(t.Context(), fresh("zxid"), nil)
	if err != nil {
		t.Fatal(err)
	}
	return int64(stat.Czxid)
}
