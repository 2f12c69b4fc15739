package recipe

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"bellwether/zk"
)

// TestResignEndsLeadAtAnyMoment checks that Lead has ended when Resign has returned nil: Lead has
// returned, its function does not run, and it has no bid. Resign is called at random moments while faults
// harm the candidates.
func TestResignEndsLeadAtAnyMoment(t *testing.T) {
	for seed := range uint64(300) {
		bubble(t, func(t *testing.T, s *fakeServer) {
			r, dice := rand.New(rand.NewPCG(seed, 1)), rand.New(rand.NewPCG(seed, 2))
			other := s.elect("other", nil)
			stop, cancel := context.WithCancel(t.Context())
			if r.IntN(2) == 0 {
				leadLater(stop, other, func(ctx context.Context, _ *Handle) error { <-ctx.Done(); return ctx.Err() })
			}
			e := s.elect("a", &ElectionOptions{Margin: 2 * time.Second})
			windDown := time.Duration(r.Int64N(int64(4 * time.Second)))
			var running atomic.Int32
			done := make(chan error, 1)
			go func() {
				done <- e.Lead(t.Context(), func(ctx context.Context, h *Handle) error {
					running.Add(1)
					defer running.Add(-1)
					<-ctx.Done()
					time.Sleep(windDown)
					return ctx.Err()
				})
			}()
			var harm sync.WaitGroup
			harms := r.IntN(5)
			harm.Go(func() { // one after the other: if the server were silent twice at once, it would answer again too early
				for range harms {
					time.Sleep(time.Duration(dice.Int64N(int64(10 * time.Second))))
					harmCandidate(s, e, dice.IntN(4))
				}
			})
			synctest.Wait() // Lead has begun
			time.Sleep(time.Duration(r.Int64N(int64(30 * time.Second))))
			if r.IntN(3) == 0 { // at the moment of an expiry
				harm.Go(func() { s.expire(e.c.Session().ID) })
			}
			ctx, end := context.WithTimeout(t.Context(), time.Minute)
			defer end()
			if err := e.Resign(ctx); err != nil {
				t.Errorf("seed %d: Resign: %v", seed, err)
			}
			synctest.Wait()
			select {
			case err := <-done:
				if !errors.Is(err, ErrResigned) {
					t.Errorf("seed %d: Lead: %v", seed, err)
				}
			default:
				t.Errorf("seed %d: Lead goes on after Resign returned nil", seed)
			}
			harm.Wait()
			time.Sleep(time.Minute)
			if n := running.Load(); n != 0 {
				t.Errorf("seed %d: the function runs", seed)
			}
			cancel()
			synctest.Wait()
			if bids := s.bids(parent); len(bids) > 0 {
				t.Errorf("seed %d: bids left over: %v", seed, bids)
			}
			s.stop()
		})
	}
}

// harmCandidate causes a fault that ends the term or the bid of a candidate.
func harmCandidate(s *fakeServer, e *Election, what int) {
	switch what {
	case 0:
		s.expire(e.c.Session().ID)
	case 1:
		s.cut(e.c)
	case 2:
		if bids := s.bids(parent); len(bids) > 0 {
			s.delete(parent + "/" + bids[0])
		}
	case 3:
		s.silence()
		time.Sleep(8 * time.Second) // longer than the lease
		s.hook(nil)
		s.setAway(false)
	}
}

// TestResignBetweenTerms resigns while Lead pauses: no other bid follows.
func TestResignBetweenTerms(t *testing.T) {
	bubble(t, func(t *testing.T, s *fakeServer) {
		e := s.elect("a", nil)
		var terms atomic.Int32
		done := leadLater(t.Context(), e, func(context.Context, *Handle) error { terms.Add(1); return zk.ErrConnectionLoss })
		time.Sleep(10 * time.Second)
		before := terms.Load()
		for len(s.bids(parent)) > 0 {
			time.Sleep(time.Millisecond)
		}
		if err := e.Resign(t.Context()); err != nil {
			t.Error(err)
		}
		if err := <-done; !errors.Is(err, ErrResigned) || before < 3 || terms.Load() > before+1 {
			t.Errorf("Lead: %v after %d terms, then %d", err, before, terms.Load())
		}
	})
}

// TestResignBeforeAndAfter checks that Resign does nothing without a candidacy, and does not affect a
// later one.
func TestResignBeforeAndAfter(t *testing.T) {
	bubble(t, func(t *testing.T, s *fakeServer) {
		e := s.elect("a", nil)
		for range 3 {
			if err := e.Resign(t.Context()); err != nil {
				t.Error(err)
			}
			if err := e.Lead(t.Context(), func(context.Context, *Handle) error { return nil }); err != nil {
				t.Errorf("Lead: %v", err)
			}
			if err := e.Resign(t.Context()); err != nil {
				t.Error(err)
			}
			h := campaign(t, e)
			s.expire(e.c.Session().ID)
			<-h.Context().Done()
			if err := h.Resign(t.Context()); err != nil {
				t.Error(err)
			}
		}
	})
}

// TestResignWithAnEndedContext checks that a Resign whose context has ended still takes effect.
func TestResignWithAnEndedContext(t *testing.T) {
	bubble(t, func(t *testing.T, s *fakeServer) {
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		a, b := s.elect("a", nil), s.elect("b", nil)
		h := campaign(t, a)
		waiting := campaignLater(t.Context(), b)
		for _, e := range []*Election{a, b} {
			if err := e.Resign(ended); err != nil && !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
		}
		lostBy(t, h, Resigned)
		if l := <-waiting; !errors.Is(l.err, ErrResigned) {
			t.Errorf("Campaign: %v, %v", l.h, l.err)
		}
		synctest.Wait()
		if bids := s.bids(parent); len(bids) > 0 {
			t.Errorf("bids left over: %v", bids)
		}
	})
}

// TestFunctionResigns checks that Handle.Resign with any context, and Election.Resign with a context
// derived from the function's, do not wait for the function that calls them, and end Lead.
func TestFunctionResigns(t *testing.T) {
	for i := range 4 {
		late, byElection := i%2 > 0, i > 1
		bubble(t, func(t *testing.T, s *fakeServer) {
			e := s.elect("a", nil)
			terms := 0
			err := e.Lead(t.Context(), func(ctx context.Context, h *Handle) error {
				if terms++; late { // after the term was lost
					s.expire(e.c.Session().ID)
					<-ctx.Done()
				}
				var err error
				if byElection {
					err = e.Resign(context.WithoutCancel(ctx))
				} else {
					err = h.Resign(context.Background())
				}
				if err != nil {
					t.Error(err)
				}
				<-ctx.Done()
				if !late && h.Lost() != nil {
					t.Errorf("the term ends before the function has returned: %v", h.Lost())
				}
				return ctx.Err()
			})
			if !errors.Is(err, ErrResigned) || terms != 1 {
				t.Errorf("late %v: Lead: %v after %d terms", late, err, terms)
			}
			if bids := s.bids(parent); len(bids) > 0 {
				t.Errorf("bids left over: %v", bids)
			}
		})
	}
}

// TestHandleResign checks that Resign of a handle of Campaign waits until the bid is gone, from any number
// of goroutines.
func TestHandleResign(t *testing.T) {
	bubble(t, func(t *testing.T, s *fakeServer) {
		e := s.elect("a", nil)
		h := campaign(t, e)
		var all sync.WaitGroup
		for i := range 6 {
			all.Go(func() {
				resign := []func(context.Context) error{h.Resign, e.Resign}[i%2]
				if err := resign(t.Context()); err != nil {
					t.Error(err)
				}
				if bids := s.bids(parent); len(bids) > 0 {
					t.Errorf("bids left over: %v", bids)
				}
			})
		}
		all.Wait()
		lostBy(t, h, Resigned)
		if again := campaign(t, e); h.Resign(t.Context()) != nil || again.Lost() != nil {
			t.Error("the handle of an earlier term ended a later one")
		}
	})
}

// TestResignWhileTheServerIsAway checks that Lead returns soon, and that Resign waits until the bid is
// gone.
func TestResignWhileTheServerIsAway(t *testing.T) {
	bubble(t, func(t *testing.T, s *fakeServer) {
		for _, leads := range []bool{true, false} {
			first := s.elect("first", nil)
			if !leads {
				campaign(t, first)
			}
			e := s.elect("a", nil)
			began := make(chan bool, 1)
			done := leadLater(t.Context(), e, func(ctx context.Context, _ *Handle) error { began <- true; <-ctx.Done(); return ctx.Err() })
			if leads {
				<-began
			}
			s.setAway(true)
			s.cut(e.c)
			time.Sleep(time.Second)
			at := time.Now()
			resigned := make(chan error, 1)
			go func() { resigned <- e.Resign(t.Context()) }()
			if err := <-done; !errors.Is(err, ErrResigned) || time.Since(at) > 2*cleanUpDefault {
				t.Errorf("Lead: %v after %v", err, time.Since(at))
			}
			time.Sleep(time.Second)
			select {
			case err := <-resigned:
				t.Errorf("Resign returned while the bid stands: %v", err)
			default:
			}
			s.setAway(false)
			if err := <-resigned; err != nil {
				t.Error(err)
			}
			if err := first.Resign(t.Context()); err != nil {
				t.Error(err)
			}
		}
	})
}

// TestLeadOutlivesConnectionErrors checks that Lead campaigns again after connection errors of its
// function, with pauses that grow.
func TestLeadOutlivesConnectionErrors(t *testing.T) {
	lost := &LostError{Parent: "/other", Reason: SessionExpired, recipe: "lock"}
	for _, failure := range []error{
		&zk.UnknownOutcomeError{Err: zk.ErrConnectionLoss}, &zk.UnknownOutcomeError{Err: context.DeadlineExceeded}, zk.ErrConnectionLoss, zk.ErrSessionExpired,
		zk.ErrQueueFull, zk.ErrNotReadOnly, &zk.OpError{Op: "setData", Path: "/x", Err: &zk.UnknownOutcomeError{Err: zk.ErrSessionExpired}},
		&zk.OpError{Op: "getData", Path: "/x", Err: context.DeadlineExceeded}, fmt.Errorf("%w: %w", ErrNotHeld, lost),
	} {
		bubble(t, func(t *testing.T, s *fakeServer) {
			e := s.elect("a", nil)
			var at []time.Time
			err := e.Lead(t.Context(), func(context.Context, *Handle) error {
				if at = append(at, time.Now()); len(at) == 9 {
					return nil
				}
				return fmt.Errorf("the work: %w", failure)
			})
			if err != nil || len(at) != 9 {
				t.Fatalf("%v: Lead: %v after %d terms", failure, err, len(at))
			}
			if first, last := at[1].Sub(at[0]), at[8].Sub(at[7]); first < 20*time.Millisecond || last < 10*first {
				t.Errorf("%v: the first pause is %v, the last %v", failure, first, last)
			}
		})
	}
}

// TestStopEndsLead checks that Stop ends Lead, Partitioner.Run and Work.Run with any error.
func TestStopEndsLead(t *testing.T) {
	if Stop(nil) != nil {
		t.Error("Stop(nil) is an error")
	}
	for _, want := range []error{zk.ErrSessionExpired, errors.New("out of paper"), ErrNotLeader, context.Canceled} {
		bubble(t, func(t *testing.T, s *fakeServer) {
			c := s.connect(zk.Options{})
			e := made(NewElection(c, parent, "a", nil))
			p := made(NewPartitioner(c, "/app/parts", "a", []string{"one"}, nil))
			w := made(NewWork(c, "/app/work", nil))
			if err := w.Submit(t.Context(), "task", nil); err != nil {
				t.Fatal(err)
			}
			wrapped := fmt.Errorf("the work: %w", Stop(want))
			for name, err := range map[string]error{
				"Lead":        e.Lead(t.Context(), func(context.Context, *Handle) error { return Stop(want) }),
				"Partitioner": p.Run(t.Context(), func(context.Context, string, *Handle) error { return Stop(want) }),
				"Work":        w.Run(t.Context(), "a", func(context.Context, Task, *Handle) error { return Stop(want) }),
			} {
				if err != want {
					t.Errorf("%s: %v, want %v", name, err, want)
				}
			}
			if err := e.Lead(t.Context(), func(context.Context, *Handle) error { return wrapped }); err != wrapped {
				t.Errorf("Lead: %v, want %v", err, wrapped)
			}
		})
	}
}

// TestSharingOutlivesConnectionErrors checks that a part or a task whose function returns a connection
// error is taken up again.
func TestSharingOutlivesConnectionErrors(t *testing.T) {
	bubble(t, func(t *testing.T, s *fakeServer) {
		c := s.connect(zk.Options{})
		p := made(NewPartitioner(c, "/app/parts", "a", []string{"one"}, nil))
		w := made(NewWork(c, "/app/work", nil))
		if err := w.Submit(t.Context(), "task", nil); err != nil {
			t.Fatal(err)
		}
		n := 0
		fails := func() error {
			if n++; n%5 == 0 {
				return Stop(errDone)
			}
			return &zk.UnknownOutcomeError{Err: zk.ErrConnectionLoss}
		}
		if err := p.Run(t.Context(), func(context.Context, string, *Handle) error { return fails() }); err != errDone || n != 5 {
			t.Errorf("Partitioner: %v after %d terms", err, n)
		}
		if err := w.Run(t.Context(), "a", func(context.Context, Task, *Handle) error { return fails() }); err != errDone || n != 10 {
			t.Errorf("Work: %v after %d terms", err, n-5)
		}
	})
}

// TestResignAfterClose checks that Resign returns if the client is closed or being closed.
func TestResignAfterClose(t *testing.T) {
	bubble(t, func(t *testing.T, s *fakeServer) {
		for _, first := range []bool{true, false} {
			e := s.elect("a", nil)
			handles := make(chan *Handle, 9)
			done := leadLater(t.Context(), e, work(handles))
			h := <-handles
			closed := make(chan error, 1)
			go func() { closed <- e.c.Close(t.Context()) }()
			if first {
				<-closed
			}
			if err := errors.Join(e.Resign(t.Context()), h.Resign(t.Context())); err != nil {
				t.Error(err)
			}
			if err := <-done; !errors.Is(err, zk.ErrClosed) && !errors.Is(err, ErrResigned) {
				t.Errorf("Lead: %v", err)
			}
		}
	})
}

// TestResignWaitsForAFunctionThatIgnoresItsContext checks a function that ignores its context: Resign waits as long as its
// own context lasts, and takes effect when the function returns.
func TestResignWaitsForAFunctionThatIgnoresItsContext(t *testing.T) {
	bubble(t, func(t *testing.T, s *fakeServer) {
		e := s.elect("a", nil)
		release := make(chan struct{})
		done := leadLater(t.Context(), e, func(context.Context, *Handle) error { <-release; return zk.ErrConnectionLoss })
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := e.Resign(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Resign: %v", err)
		}
		if n := len(s.bids(parent)); n != 1 {
			t.Errorf("%d bids while the function runs", n)
		}
		close(release)
		if err := <-done; !errors.Is(err, ErrResigned) {
			t.Errorf("Lead: %v", err)
		}
	})
}

// TestOwnerResigns checks that Run of a Partitioner or of Work ends with ErrResigned, and that an
// unfinished task stays.
func TestOwnerResigns(t *testing.T) {
	bubble(t, func(t *testing.T, s *fakeServer) {
		c := s.connect(zk.Options{})
		p := made(NewPartitioner(c, "/app/parts", "a", []string{"one", "two"}, nil))
		w := made(NewWork(c, "/app/work", nil))
		if err := w.Submit(t.Context(), "task", nil); err != nil {
			t.Fatal(err)
		}
		resigns := func(ctx context.Context, h *Handle) error {
			if err := h.Resign(t.Context()); err != nil {
				t.Error(err)
			}
			<-ctx.Done()
			return ctx.Err()
		}
		err := p.Run(t.Context(), func(ctx context.Context, _ string, h *Handle) error { return resigns(ctx, h) })
		if !errors.Is(err, ErrResigned) {
			t.Errorf("Partitioner: %v", err)
		}
		err = w.Run(t.Context(), "a", func(ctx context.Context, _ Task, h *Handle) error { return resigns(ctx, h) })
		if _, _, there := s.node("/app/work/tasks/task"); !errors.Is(err, ErrResigned) || !there {
			t.Errorf("Work: %v, the task is there: %v", err, there)
		}
	})
}

// TestPanicLeavesTheElectionUsable checks that an Election can campaign again after a panic.
func TestPanicLeavesTheElectionUsable(t *testing.T) {
	bubble(t, func(t *testing.T, s *fakeServer) {
		e := s.elect("a", nil)
		func() {
			defer func() { _ = recover() }()
			_ = e.Lead(t.Context(), func(context.Context, *Handle) error { panic("boom") })
		}()
		if err := e.Resign(t.Context()); err != nil {
			t.Error(err)
		}
		if err := e.Lead(t.Context(), func(context.Context, *Handle) error { return nil }); err != nil {
			t.Error(err)
		}
	})
}

// TestOneCandidacyAtATime checks that Lead keeps its Election busy between its terms too.
func TestOneCandidacyAtATime(t *testing.T) {
	bubble(t, func(t *testing.T, s *fakeServer) {
		e := s.elect("a", nil)
		ctx, cancel := context.WithCancel(t.Context())
		done := leadLater(ctx, e, func(context.Context, *Handle) error { return zk.ErrConnectionLoss })
		for range 200 {
			time.Sleep(37 * time.Millisecond)
			if _, err := e.Campaign(t.Context()); !errors.Is(err, ErrCampaigning) {
				t.Fatalf("Campaign: %v", err)
			}
		}
		cancel()
		<-done
	})
}
