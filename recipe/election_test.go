package recipe

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"bellwether/internal/claim"
	"bellwether/wire"
	"bellwether/zk"
)

const parent = "/app/job"

// elect makes a candidate with a client of its own.
func (s *fakeServer) elect(id string, o *ElectionOptions) *Election {
	s.t.Helper()
	e, err := NewElection(s.connect(zk.Options{}), parent, id, o)
	if err != nil {
		s.t.Fatal(err)
	}
	return e
}

// campaign waits for the handle.
func campaign(t *testing.T, e *Election) *Handle {
	t.Helper()
	h, err := e.Campaign(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// later is a campaign that runs on its own goroutine, and its outcome.
type later struct {
	h   *Handle
	err error
}

func campaignLater(ctx context.Context, e *Election) <-chan later {
	out := make(chan later, 1)
	go func() {
		h, err := e.Campaign(ctx)
		out <- later{h, err}
	}()
	synctest.Wait()
	return out
}

// pending fails the test if the campaign has ended.
func pending(t *testing.T, c <-chan later) {
	t.Helper()
	synctest.Wait()
	select {
	case l := <-c:
		t.Fatalf("campaign ended early: %+v, %v", l.h, l.err)
	default:
	}
}

// won waits for the handle of the campaign.
func won(t *testing.T, c <-chan later) *Handle {
	t.Helper()
	l := <-c
	if l.err != nil {
		t.Fatal(l.err)
	}
	return l.h
}

// lostBy fails the test unless the handle has ended for this reason.
func lostBy(t *testing.T, h *Handle, r Reason) {
	t.Helper()
	synctest.Wait()
	var lost *LostError
	if err := h.Lost(); !errors.As(err, &lost) || lost.Reason != r {
		t.Errorf("handle lost by %v, want %v", err, r)
	}
	if h.Context().Err() == nil || !errors.Is(context.Cause(h.Context()), lost) {
		t.Errorf("context ended with %v", context.Cause(h.Context()))
	}
	if h.Left() > 0 {
		t.Errorf("%v left of a handle that is over", h.Left())
	}
}

// published waits until the term has lasted long enough to be published.
func published() {
	time.Sleep(2 * time.Millisecond)
	synctest.Wait()
}

// TestBriefTermIsNotPublished also checks that the next leader is published.
func TestBriefTermIsNotPublished(t *testing.T) {
	bubble(t, func(t *testing.T, s *fakeServer) {
		var made atomic.Int64
		s.hook(func(_ *peer, op wire.OpCode, _ string) fate {
			if op == wire.OpMulti {
				made.Add(1)
			}
			return normal
		})
		a, b := s.elect("a", nil), s.elect("b", nil)
		campaign(t, a)
		later := campaignLater(t.Context(), b)
		if err := a.Resign(t.Context()); err != nil {
			t.Fatal(err)
		}
		won(t, later)
		if made.Load() != 0 {
			t.Error("a term that was over at once was published")
		}
		published()
		if data, _, _ := s.node(parent + "/LEADER"); !strings.Contains(data, `"id":"b"`) || made.Load() != 1 {
			t.Errorf("LEADER is %s, written %d times", data, made.Load())
		}
	})
}

// TestOneLeadsOthersWait checks that candidates lead in the order of the line, and that each departure
// causes one event.
func TestOneLeadsOthersWait(t *testing.T) {
	bubble(t, func(t *testing.T, s *fakeServer) {
		a, b, c := s.elect("a", nil), s.elect("b", nil), s.elect("c", nil)
		ha := campaign(t, a)
		if left := ha.Left(); ha.Proof() != nil || left != 8900*time.Millisecond {
			t.Errorf("%v left, proof %v", left, ha.Proof())
		}
		lb := campaignLater(t.Context(), b)
		lc := campaignLater(t.Context(), c)
		pending(t, lb)
		pending(t, lc)
		published()
		if ok, err := ha.Published(); !ok || err != nil {
			t.Errorf("published %v, %v", ok, err)
		}

		before := s.eventCount()
		if err := a.Resign(t.Context()); err != nil {
			t.Fatal(err)
		}
		hb := won(t, lb)
		pending(t, lc)
		lostBy(t, ha, Resigned)
		if n := s.eventCount() - before; n != 1 {
			t.Errorf("%d events for one departure", n)
		}
		if hb.Token() <= ha.Token() {
			t.Errorf("token %v after %v", hb.Token(), ha.Token())
		}
		if err := b.Resign(t.Context()); err != nil {
			t.Fatal(err)
		}
		hc := won(t, lc)
		if hc.Token() <= hb.Token() {
			t.Errorf("token %v after %v", hc.Token(), hb.Token())
		}
		published()
		data, owner, _ := s.node(parent + "/LEADER")
		if !strings.Contains(data, `"id":"c"`) || owner != c.c.Session().ID {
			t.Errorf("LEADER is %s of %v", data, owner)
		}
	})
}

// TestMiddleDepartureWakesOneThatWaitsOn checks that the candidate that is woken when a
// candidate in the middle of the line departs lists the bids again and continues to wait.
func TestMiddleDepartureWakesOneThatWaitsOn(t *testing.T) {
	bubble(t, func(t *testing.T, s *fakeServer) {
		a, b, c := s.elect("a", nil), s.elect("b", nil), s.elect("c", nil)
		campaign(t, a)
		ctx, cancel := context.WithCancel(t.Context())
		lb := campaignLater(ctx, b)
		lc := campaignLater(t.Context(), c)
		before := s.eventCount()
		cancel()
		if l := <-lb; !errors.Is(l.err, context.Canceled) {
			t.Errorf("cancelled campaign: %v", l.err)
		}
		pending(t, lc)
		if n := s.eventCount() - before; n != 1 {
			t.Errorf("%d events for one departure", n)
		}
		// c now watches only the bid of a, so the departure costs one event again
		if err := a.Resign(t.Context()); err != nil {
			t.Fatal(err)
		}
		won(t, lc)
		if n := s.eventCount() - before; n != 2 {
			t.Errorf("%d events for two departures", n)
		}
	})
}

// TestLostCreateRepliesLeaveNoSecondBid loses the reply to the creation of a bid, whether or not the
// creation was carried out.
func TestLostCreateRepliesLeaveNoSecondBid(t *testing.T) {
	for _, f := range []fate{dropReply, dropAll} {
		bubble(t, func(t *testing.T, s *fakeServer) {
			tries := 0
			s.hook(func(_ *peer, op wire.OpCode, path string) fate {
				if op != wire.OpPing && strings.Contains(path, "-n_") {
					if tries++; tries <= 2 {
						return f
					}
				}
				return normal
			})
			campaign(t, s.elect("a", nil))
			if n := len(s.bids(parent)); n != 1 {
				t.Errorf("%d bids", n)
			}
		})
	}
}

// TestCancelledCampaignLeavesNoBid checks that the bid is removed in the background if its creation was
// under way and the connection is lost.
func TestCancelledCampaignLeavesNoBid(t *testing.T) {
	bubble(t, func(t *testing.T, s *fakeServer) {
		e := s.elect("a", nil)
		s.put("/app", "")
		s.put(parent, "")
		s.hook(func(_ *peer, op wire.OpCode, path string) fate {
			if op == wire.OpCreate2 && strings.Contains(path, "-n_") {
				s.setAway(true)
				return dropReply
			}
			return normal
		})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		if _, err := e.Campaign(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("campaign: %v", err)
		}
		if took := time.Since(began); took != time.Second {
			t.Errorf("returned after %v", took)
		}
		if n := len(s.bids(parent)); n != 1 {
			t.Fatalf("%d bids, the test wants one whose reply was lost", n)
		}
		s.setAway(false)
		if err := e.Resign(t.Context()); err != nil {
			t.Error(err)
		}
		if n := len(s.bids(parent)); n != 0 {
			t.Errorf("%d bids left over", n)
		}
	})
}

// TestQueuedBidIsNotMadeByTheNextSession expires the session while the creation of a bid waits for a
// connection. No unknown bid may be created.
func TestQueuedBidIsNotMadeByTheNextSession(t *testing.T) {
	bubble(t, func(t *testing.T, s *fakeServer) {
		e := s.elect("a", nil)
		first := true
		s.hook(func(p *peer, op wire.OpCode, _ string) fate {
			if op == wire.OpCreate2 && first {
				first = false
				go s.expire(p.session)
				return dropAll
			}
			return normal
		})
		campaign(t, e)
		if n := len(s.bids(parent)); n != 1 {
			t.Errorf("%d bids", n)
		}
	})
}

// TestRefusedCampaignIsTyped checks the error of a refused campaign, and that nothing is left.
func TestRefusedCampaignIsTyped(t *testing.T) {
	bubble(t, func(t *testing.T, s *fakeServer) {
		s.hook(func(_ *peer, op wire.OpCode, _ string) fate {
			if op == wire.OpMultiRead {
				return deny
			}
			return normal
		})
		_, err := s.elect("a", nil).Campaign(t.Context())
		var lost *LostError
		if !errors.As(err, &lost) || lost.Reason != Refused || !errors.Is(err, zk.ErrNoAuth) {
			t.Errorf("error is %v", err)
		}
		if n := len(s.bids(parent)); n != 0 {
			t.Errorf("%d bids left over", n)
		}
	})
}

// TestOneElectionIsOneCandidate checks that an Election cannot campaign twice at a time.
func TestOneElectionIsOneCandidate(t *testing.T) {
	bubble(t, func(t *testing.T, s *fakeServer) {
		e := s.elect("a", nil)
		h := campaign(t, e)
		if _, err := e.Campaign(t.Context()); !errors.Is(err, ErrCampaigning) {
			t.Errorf("second campaign: %v", err)
		}
		if err := e.Resign(t.Context()); err != nil || h.Lost() == nil {
			t.Errorf("resign: %v, lost %v", err, h.Lost())
		}
		if err := e.Resign(t.Context()); err != nil {
			t.Errorf("second resign: %v", err)
		}
		campaign(t, e)
	})
}

// TestRequestsStayInTheirSession checks that a request is not carried out in a later session than the one
// that it was made for.
func TestRequestsStayInTheirSession(t *testing.T) {
	bubble(t, func(t *testing.T, s *fakeServer) {
		e := s.elect("a", nil)
		s.put("/app", "")
		s.put(parent, "")
		old := e.c.Session().ID
		s.expire(old)
		time.Sleep(time.Second)
		create := claim.Op{Kind: claim.OpCreate, Path: parent + "/x-n_", Sequential: true}
		a := e.carryOut(t.Context(), claim.Request{N: 1, Session: old, Ops: []claim.Op{create}}, nil)
		if !errors.Is(a.Results[0].Err, zk.ErrSessionExpired) {
			t.Errorf("result is %+v", a.Results[0])
		}
		if n := len(s.bids(parent)); n != 0 {
			t.Errorf("%d bids that were made for another session", n)
		}
	})
}

// TestOneBidAtATime checks that the bid of a term that lapsed without a connection is removed before the
// next bid is made.
func TestOneBidAtATime(t *testing.T) {
	bubble(t, func(t *testing.T, s *fakeServer) {
		e := s.elect("a", &ElectionOptions{Margin: time.Second})
		h := campaign(t, e)
		s.silence()
		<-h.Context().Done()
		next := campaignLater(t.Context(), e)
		s.setAway(false)
		s.hook(func(_ *peer, op wire.OpCode, _ string) fate {
			if n := len(s.bids(parent)); op == wire.OpCreate2 && n != 0 {
				t.Errorf("%d bids exist when the next one is made", n)
			}
			return normal
		})
		won(t, next)
	})
}

// TestResignEndsACampaign checks that Resign ends the Campaign of a waiting candidate and removes its bid.
func TestResignEndsACampaign(t *testing.T) {
	bubble(t, func(t *testing.T, s *fakeServer) {
		a, b := s.elect("a", nil), s.elect("b", nil)
		campaign(t, a)
		lb := campaignLater(t.Context(), b)
		if err := b.Resign(t.Context()); err != nil {
			t.Error(err)
		}
		if l := <-lb; !errors.Is(l.err, ErrResigned) {
			t.Errorf("campaign ended with %v, want ErrResigned", l.err)
		}
		if n := len(s.bids(parent)); n != 1 {
			t.Errorf("%d bids", n)
		}
	})
}

// TestTwoCandidatesOfOneClient checks that two candidates can share a session, and set no more watches
// than they need.
func TestTwoCandidatesOfOneClient(t *testing.T) {
	bubble(t, func(t *testing.T, s *fakeServer) {
		a := s.elect("a", nil)
		b, err := NewElection(a.c, parent, "b", nil)
		if err != nil {
			t.Fatal(err)
		}
		campaign(t, a)
		lb := campaignLater(t.Context(), b)
		if err := a.Resign(t.Context()); err != nil {
			t.Fatal(err)
		}
		h := won(t, lb)
		s.expire(a.c.Session().ID)
		<-h.Context().Done()
		lostBy(t, h, SessionExpired)
	})
}

// TestPersistentLeaderIsTyped checks that a persistent LEADER is reported by its type, and that the leader
// goes on.
func TestPersistentLeaderIsTyped(t *testing.T) {
	bubble(t, func(t *testing.T, s *fakeServer) {
		s.put("/app", "")
		s.put(parent, "")
		s.put(parent+"/LEADER", "since 1999")
		h := campaign(t, s.elect("a", nil))
		published()
		ok, err := h.Published()
		var taken *LeaderTaken
		if ok || !errors.As(err, &taken) || !taken.Persistent {
			t.Errorf("published %v, %v", ok, err)
		}
		s.delete(parent + "/LEADER")
		time.Sleep(2 * time.Second)
		if ok, err := h.Published(); !ok || err != nil {
			t.Errorf("published %v, %v", ok, err)
		}
	})
}

// TestPlainNames checks that Apache's recipe can parse all children of the parent, and that plain names
// offer no guard.
func TestPlainNames(t *testing.T) {
	bubble(t, func(t *testing.T, s *fakeServer) {
		a := s.elect("a", &ElectionOptions{Naming: PlainNames})
		h := campaign(t, a)
		synctest.Wait()
		if _, err := h.Do(t.Context()); !errors.Is(err, ErrNoGuard) {
			t.Errorf("guard: %v", err)
		}
		if l, err := a.Leader(t.Context()); err != nil || l.ID != "a" || l.Token != h.Token() {
			t.Errorf("leader %+v, %v", l, err)
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		if names := s.children(parent); len(names) != 1 || names[0] != "n_0000000000" {
			t.Errorf("children are %v", names)
		}
	})
}

func TestBadArguments(t *testing.T) {
	for _, c := range []struct {
		parent, id string
		o          ElectionOptions
	}{
		{parent: "job"}, {parent: "/job/"}, {parent: ""}, {parent: "/job", id: "\xff"},
		{parent: "/job", o: ElectionOptions{Naming: GoZKNames + 1}}, {parent: "/job", o: ElectionOptions{Leader: "x"}},
		{parent: "/job", o: ElectionOptions{Leader: "/x/"}},
	} {
		if _, err := NewElection(nil, c.parent, c.id, &c.o); err == nil {
			t.Errorf("%+v is accepted", c)
		}
	}
}
