package recipe

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"bellwether/internal/claim"
	"bellwether/wire"
	"bellwether/zk"
)

// leadLater runs Lead beside the test.
func leadLater(ctx context.Context, e *Election, fn func(context.Context, *Handle) error) <-chan error {
	out := make(chan error, 1)
	go func() { out <- e.Lead(ctx, fn) }()
	synctest.Wait()
	return out
}

// work is a leading function that reports its handle and returns when its context ends.
func work(handles chan<- *Handle) func(context.Context, *Handle) error {
	return func(ctx context.Context, h *Handle) error {
		handles <- h
		<-ctx.Done()
		return ctx.Err()
	}
}

// TestChecklist12LeadContendsAgain checks that an expired session ends the function but not Lead.
func TestChecklist12LeadContendsAgain(t *testing.T) {
	bubble(t, func(t *testing.T, s *fakeServer) {
		e := s.elect("a", nil)
		handles := make(chan *Handle, 9)
		ctx, cancel := context.WithCancel(t.Context())
		done := leadLater(ctx, e, work(handles))
		var last wire.Zxid
		for range 3 {
			h := <-handles
			if h.Token() <= last {
				t.Errorf("token %v after %v", h.Token(), last)
			}
			last = h.Token()
			s.expire(e.c.Session().ID)
		}
		<-handles
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("Lead: %v", err)
		}
		if n := len(s.bids(parent)); n != 0 {
			t.Errorf("%d bids left over", n)
		}
	})
}

// TestLeadGoesOnAfterAnOperationFoundTheEnd checks that a candidate goes on if its function returns the
// error of Do that says that the term is over, whether the handle knew that or not.
func TestLeadGoesOnAfterAnOperationFoundTheEnd(t *testing.T) {
	for name, end := range map[string]func(s *fakeServer, h *Handle){
		"the bid was deleted": func(s *fakeServer, h *Handle) { s.delete(h.Bid()) },
		"the session expired unnoticed": func(s *fakeServer, h *Handle) {
			s.setAway(true)
			s.cut(h.t.b.c)
			synctest.Wait() // requests from here on are not sent
			time.AfterFunc(time.Second, func() {
				s.expire(h.t.session)
				s.setAway(false)
			})
		},
	} {
		bubble(t, func(t *testing.T, s *fakeServer) {
			e := s.elect("a", nil)
			terms := 0
			err := e.Lead(t.Context(), func(ctx context.Context, h *Handle) error {
				if terms++; terms == 2 {
					return nil
				}
				end(s, h)
				_, err := h.Do(t.Context(), zk.CreateOp("/late", nil))
				if !errors.Is(err, ErrNotLeader) {
					t.Errorf("%s: Do gives %v", name, err)
				}
				return fmt.Errorf("the work: %w", err)
			})
			if err != nil || terms != 2 {
				t.Errorf("%s: Lead: %v after %d terms", name, err, terms)
			}
			if _, _, ok := s.node("/late"); ok {
				t.Errorf("%s: the write went through", name)
			}
		})
	}
}

// TestLeadReturnsWhatTheFunctionReturns also checks that the bid is removed.
func TestLeadReturnsWhatTheFunctionReturns(t *testing.T) {
	other := &LostError{Parent: "/other", Reason: BidGone, recipe: "election"}
	for _, want := range []error{nil, errors.New("out of paper"), ErrNotLeader, fmt.Errorf("%w: %w", ErrNotLeader, other)} {
		bubble(t, func(t *testing.T, s *fakeServer) {
			var h *Handle
			err := s.elect("a", nil).Lead(t.Context(), func(_ context.Context, mine *Handle) error {
				h = mine
				return want
			})
			if err != want {
				t.Errorf("Lead: %v, want %v", err, want)
			}
			lostBy(t, h, Resigned)
			if n := len(s.bids(parent)); n != 0 {
				t.Errorf("%d bids left over", n)
			}
		})
	}
}

// TestResignWaitsForTheFunction checks that the next candidate leads only after the function has returned.
func TestResignWaitsForTheFunction(t *testing.T) {
	bubble(t, func(t *testing.T, s *fakeServer) {
		a, b := s.elect("a", nil), s.elect("b", nil)
		var h *Handle
		started := make(chan struct{})
		done := leadLater(t.Context(), a, func(ctx context.Context, mine *Handle) error {
			h = mine
			close(started)
			<-ctx.Done()
			if !errors.Is(context.Cause(ctx), ErrResigned) {
				t.Errorf("ended by %v", context.Cause(ctx))
			}
			time.Sleep(3 * time.Second) // the function cleans up
			if h.Lost() != nil {
				t.Errorf("lost by %v before the work is done", h.Lost())
			}
			return nil
		})
		<-started
		lb := campaignLater(t.Context(), b)
		resigned := make(chan error, 1)
		go func() { resigned <- a.Resign(t.Context()) }()
		time.Sleep(2 * time.Second)
		pending(t, lb)
		if err := <-resigned; err != nil {
			t.Error(err)
		}
		won(t, lb)
		if err := <-done; !errors.Is(err, ErrResigned) {
			t.Errorf("Lead: %v", err)
		}
	})
}

// TestMarginLeavesTimeToStop checks that the context ends before the deadline, and that the bid exists
// until the work is done.
func TestMarginLeavesTimeToStop(t *testing.T) {
	bubble(t, func(t *testing.T, s *fakeServer) {
		e := s.elect("a", &ElectionOptions{Margin: 3 * time.Second})
		handles := make(chan *Handle, 9)
		began := make(chan time.Time, 1)
		done := leadLater(t.Context(), e, func(ctx context.Context, h *Handle) error {
			handles <- h
			<-ctx.Done()
			began <- time.Now()
			time.Sleep(2 * time.Second)
			if n := len(s.bids(parent)); n != 1 {
				t.Errorf("%d bids while the work ends", n)
			}
			return ctx.Err()
		})
		h := <-handles
		left := h.Left()
		s.silence()
		at := time.Now()
		if took := (<-began).Sub(at); took != left || took > 5900*time.Millisecond {
			t.Errorf("ended after %v of %v, T - D - 1 %% - margin is 5.9s", took, left)
		}
		lostBy(t, h, LeaseLapsed)
		s.hook(nil)
		s.setAway(false) // connected again before the deadline: the bid must stay until the work is done
		if h := <-handles; h.Token() == 0 {
			t.Error("no second term")
		}
		if err := e.Resign(t.Context()); err != nil {
			t.Error(err)
		}
		<-done
	})
}

// TestOverrunIsReported checks that Overrun is called if the function ignores its context until the deadline.
func TestOverrunIsReported(t *testing.T) {
	bubble(t, func(t *testing.T, s *fakeServer) {
		over := make(chan time.Time, 9)
		e := s.elect("a", &ElectionOptions{Margin: time.Second, Overrun: func(*Handle) { over <- time.Now() }})
		release := make(chan struct{})
		ended := make(chan time.Time, 1)
		ctx, cancel := context.WithCancel(t.Context())
		done := leadLater(ctx, e, func(ctx context.Context, h *Handle) error {
			<-ctx.Done()
			ended <- time.Now()
			<-release
			return ctx.Err()
		})
		s.silence()
		if took := (<-over).Sub(<-ended); took != time.Second {
			t.Errorf("told %v after the context ended, the margin is 1s", took)
		}
		cancel()
		close(release)
		<-done
		if len(over) > 0 {
			t.Error("told twice")
		}
	})
}

// TestPanicInTheFunctionResigns checks that the bid is removed if the function panics.
func TestPanicInTheFunctionResigns(t *testing.T) {
	bubble(t, func(t *testing.T, s *fakeServer) {
		e := s.elect("a", nil)
		func() {
			defer func() {
				if recover() == nil {
					t.Error("no panic")
				}
			}()
			_ = e.Lead(t.Context(), func(context.Context, *Handle) error { panic("boom") })
		}()
		synctest.Wait()
		if n := len(s.bids(parent)); n != 0 {
			t.Errorf("%d bids left over", n)
		}
	})
}

// observe collects what Observe yields.
func observe(ctx context.Context, e *Election) (<-chan Leader, <-chan error) {
	seen, end := make(chan Leader, 99), make(chan error, 1)
	go func() {
		for l, err := range e.Observe(ctx) {
			if err != nil {
				end <- err
				return
			}
			seen <- l
		}
		end <- nil
	}()
	synctest.Wait()
	return seen, end
}

// TestChecklist13ObserversLearnThroughLeader checks that a change costs an observer at most two events,
// and the candidates none.
func TestChecklist13ObserversLearnThroughLeader(t *testing.T) {
	bubble(t, func(t *testing.T, s *fakeServer) {
		o := s.elect("observer", nil)
		ctx, cancel := context.WithCancel(t.Context())
		seen, end := observe(ctx, o)
		if l := <-seen; !l.Vacant() {
			t.Errorf("first: %+v", l)
		}
		if _, err := o.Leader(t.Context()); !errors.Is(err, ErrNoLeader) {
			t.Errorf("leader: %v", err)
		}
		a, b := s.elect("a", nil), s.elect("b", nil)
		ha := campaign(t, a)
		if l := <-seen; l.ID != "a" || l.Token != ha.Token() {
			t.Errorf("second: %+v", l)
		}
		lb := campaignLater(t.Context(), b)
		for _, change := range []func(){
			func() { _ = a.Resign(t.Context()) },
			func() { s.expire(b.c.Session().ID); <-won(t, lb).Context().Done() },
		} {
			before := s.eventCount()
			change()
			synctest.Wait()
			time.Sleep(time.Second)
			if n := s.eventCount() - before; n > 3 { // one of the events goes to a candidate
				t.Errorf("%d events for a change", n)
			}
		}
		synctest.Wait()
		s.cut(o.c)
		campaign(t, b)
		time.Sleep(time.Second)
		if l, err := o.Leader(t.Context()); err != nil || l.ID != "b" {
			t.Errorf("leader %+v, %v", l, err)
		}
		cancel()
		if err := <-end; !errors.Is(err, context.Canceled) {
			t.Errorf("observer ended with %v", err)
		}
		var ids []string
		for len(seen) > 0 {
			if l := <-seen; !l.Vacant() {
				ids = append(ids, l.ID)
			}
		}
		if !slices.Equal(ids, []string{"b", "b"}) {
			t.Errorf("then seen %v", ids)
		}
	})
}

// TestObserverOutlivesItsSession checks that Observe continues in a later session.
func TestObserverOutlivesItsSession(t *testing.T) {
	bubble(t, func(t *testing.T, s *fakeServer) {
		o, a := s.elect("o", nil), s.elect("a", nil)
		campaign(t, a)
		published()
		ctx, cancel := context.WithCancel(t.Context())
		seen, end := observe(ctx, o)
		<-seen
		s.expire(o.c.Session().ID)
		time.Sleep(time.Second)
		if err := a.Resign(t.Context()); err != nil {
			t.Fatal(err)
		}
		if l := <-seen; !l.Vacant() {
			t.Errorf("%+v", l)
		}
		cancel()
		<-end
	})
}

// TestObserversIgnoreOlderTokens checks that Observe ignores a LEADER that names an older term.
func TestObserversIgnoreOlderTokens(t *testing.T) {
	bubble(t, func(t *testing.T, s *fakeServer) {
		o := s.elect("o", nil)
		stat := wire.Stat{EphemeralOwner: 1}
		for _, c := range []struct {
			token string
			ok    bool
		}{{"0x5", true}, {"0x7", true}, {"0x6", false}, {"0x7", true}} {
			n := claim.NoticeOf([]byte(`{"id":"x","bid":"b","token":"`+c.token+`"}`), stat)
			if l := Leader(o.know(n)); l.Vacant() == c.ok {
				t.Errorf("token %s taken: %+v", c.token, l)
			}
		}
	})
}

// TestObserverThatLeavesHoldsNoWatch checks that no watch is left when Observe ends.
func TestObserverThatLeavesHoldsNoWatch(t *testing.T) {
	bubble(t, func(t *testing.T, s *fakeServer) {
		a, o := s.elect("a", nil), s.elect("o", nil)
		campaign(t, a)
		synctest.Wait()
		for range o.Observe(t.Context()) {
			break
		}
		before := s.eventCount()
		if err := a.Resign(t.Context()); err != nil {
			t.Fatal(err)
		}
		if n := s.eventCount() - before; n != 0 {
			t.Errorf("%d events for nobody", n)
		}
	})
}

// TestCandidatesInTheirOrder checks the order of candidates of all namings.
func TestCandidatesInTheirOrder(t *testing.T) {
	bubble(t, func(t *testing.T, s *fakeServer) {
		var ids []string
		var last *Election
		for n := OwnNames; n <= GoZKNames; n++ {
			e := s.elect(n.String(), &ElectionOptions{Naming: n, Leader: "/leaders/job"})
			campaignLater(t.Context(), e)
			ids = append(ids, n.String())
			last = e
		}
		s.put(parent+"/task-0000000099", "no bid")
		published()
		all, err := last.Candidates(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for i, c := range all {
			got = append(got, c.ID)
			if c.Naming.String() != c.ID || c.Session == 0 || i > 0 && c.Token <= all[i-1].Token {
				t.Errorf("candidate %+v", c)
			}
		}
		if !slices.Equal(got, ids) {
			t.Errorf("candidates %v, want %v", got, ids)
		}
		if l, err := last.Leader(t.Context()); err != nil || l.ID != "own" {
			t.Errorf("leader %+v, %v", l, err)
		}
	})
}

// TestNobodyStands checks what an election reports if its parent does not exist.
func TestNobodyStands(t *testing.T) {
	bubble(t, func(t *testing.T, s *fakeServer) {
		e := s.elect("a", &ElectionOptions{Naming: PlainNames})
		if all, err := e.Candidates(t.Context()); err != nil || len(all) != 0 {
			t.Errorf("%v, %v", all, err)
		}
		if _, err := e.Leader(t.Context()); !errors.Is(err, ErrNoLeader) {
			t.Errorf("leader: %v", err)
		}
		for _, err := range e.Observe(t.Context()) {
			if !errors.Is(err, ErrNoLeader) {
				t.Errorf("observe: %v", err)
			}
		}
	})
}

// TestAwayForLong checks that all terms and calls end properly after an hour without a server.
func TestAwayForLong(t *testing.T) {
	bubble(t, func(t *testing.T, s *fakeServer) {
		e := s.elect("a", nil)
		handles := make(chan *Handle, 9)
		ctx, cancel := context.WithCancel(t.Context())
		done := leadLater(ctx, e, work(handles))
		h := <-handles
		s.silence()
		s.cut(e.c)
		time.Sleep(time.Hour)
		lostBy(t, h, LeaseLapsed)
		s.setAway(false)
		s.hook(nil)
		if next := <-handles; next.Token() <= h.Token() {
			t.Errorf("token %v after %v", next.Token(), h.Token())
		}
		cancel()
		<-done
	})
}

// TestClosedClientEndsLead checks that Lead returns when its client is closed.
func TestClosedClientEndsLead(t *testing.T) {
	bubble(t, func(t *testing.T, s *fakeServer) {
		e := s.elect("a", nil)
		handles := make(chan *Handle, 9)
		done := leadLater(t.Context(), e, work(handles))
		<-handles
		if err := e.c.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := <-done; !errors.Is(err, zk.ErrClosed) {
			t.Errorf("Lead: %v", err)
		}
	})
}
