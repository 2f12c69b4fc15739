package lines

import (
	"math"
	"slices"
	"testing"
	"time"

	"bellwether/internal/claim"
	"bellwether/internal/claim/claimtest"
	"bellwether/internal/claim/commit"
	"bellwether/wire"
)

// These tests step replies that no correct server sends, or that must arrive at an exact moment.

// ask steps the event and returns the request that the machine then makes.
func ask(t *testing.T, e *Election, ev claim.Event) claim.Request {
	t.Helper()
	e.Step(claim.Moment{}, ev)
	r := e.Ready().Request
	if r == nil {
		t.Fatalf("%T%+v brought no request; %+v", ev, ev, e.State())
	}
	return *r
}

// standing returns an Election whose bid was just created, and its request for a look.
func standing(t *testing.T) (*Election, claim.Request) {
	e := NewElection(Config{Parent: "/p", ID: "me", Leader: "/p/LEADER"})
	r := ask(t, e, claim.Attached{Session: 7, Lease: claim.Lease{Timeout: 10 * time.Second}})
	r = ask(t, e, claim.Reply{N: r.N, Results: []claim.Result{{Path: "/p/" + claim.BidPrefix(claim.Own, claim.Nonce{}) + "0000000003"}}})
	return e, r
}

func own(owner wire.SessionID) claim.Result {
	return claim.Result{Stat: wire.Stat{Czxid: 9, EphemeralOwner: owner}}
}

// leading returns an Election that leads, and its request to publish.
func leading(t *testing.T) (*Election, claim.Request) {
	e, r := standing(t)
	r = ask(t, e, claim.Reply{N: r.N, Results: alone(e)})
	if e.State().Phase != Leading {
		t.Fatalf("%+v", e.State())
	}
	return e, r
}

// alone returns the results of a look when no other bid exists.
func alone(e *Election) []claim.Result {
	return []claim.Result{{Names: []string{e.State().Bid}}, own(7)}
}

// wantSync fails unless a request is a look that follows a sync.
func wantSync(t *testing.T, r claim.Request) {
	t.Helper()
	if got := claimtest.Kinds(r); !slices.Equal(got, []claim.OpKind{claim.OpSync, claim.OpList, claim.OpGet}) {
		t.Fatalf("asks for %v, not to look behind a sync", got)
	}
}

// TestBidStaysWhileItsWorkGoesOn checks that a bid whose term ended before its deadline stays until the
// work has stopped or the deadline has passed.
func TestBidStaysWhileItsWorkGoesOn(t *testing.T) {
	for _, stops := range []bool{true, false} {
		e := NewElection(Config{Parent: "/p", ID: "me", Margin: 3 * time.Second})
		r := ask(t, e, claim.Attached{Session: 7, Lease: claim.Lease{Timeout: 10 * time.Second}})
		r = ask(t, e, claim.Reply{N: r.N, Results: []claim.Result{{Path: "/p/" + claim.BidPrefix(claim.Own, claim.Nonce{}) + "0000000003"}}})
		e.Step(claim.Moment{}, claim.Reply{N: r.N, Results: alone(e)})
		deadline := e.Deadline(claim.Moment{})
		at := claim.Moment{Mono: deadline - 3*time.Second, Wall: deadline - 3*time.Second}
		e.Step(at, claim.Tick{})
		if rd, s := e.Ready(), e.State(); s.Phase != Leaving || s.Reason != claim.LeaseLapsed || rd.Request != nil || rd.Wake != 3*time.Second {
			t.Fatalf("%+v, and %+v to do", s, rd)
		}
		var ev claim.Event = claim.Resign{}
		if !stops {
			at, ev = claim.Moment{Mono: deadline, Wall: deadline}, claim.Tick{}
		}
		e.Step(at, ev)
		if r := e.Ready().Request; r == nil || r.Ops[0].Kind != claim.OpDelete {
			t.Errorf("asks for %+v, not to delete its bid; its work has stopped: %v", r, stops)
		}
	}
}

// TestListWithoutOwnBidProvesNothing checks that an Election does not lead because of a list that lacks
// its own bid, even after a sync.
func TestListWithoutOwnBidProvesNothing(t *testing.T) {
	e, r := standing(t)
	r = ask(t, e, claim.Reply{N: r.N, Results: []claim.Result{{}, own(7)}})
	wantSync(t, r)
	e.Step(claim.Moment{}, claim.Reply{N: r.N, Results: []claim.Result{{}, {}, own(7)}})
	if s := e.State(); s.Phase != Standing {
		t.Fatalf("%+v", s)
	}
	e.Step(claim.Moment{Mono: claim.BackoffMin}, claim.Tick{})
	again := e.Ready().Request
	if again == nil {
		t.Fatal("does not look again")
	}
	wantSync(t, *again)
}

// TestBidThatIsNotThereIsLookedForBehindASync checks that an Election that does not find its bid looks again after
// a sync, because the server may be behind. If the bid is still missing then, it counts as gone.
func TestBidThatIsNotThereIsLookedForBehindASync(t *testing.T) {
	gone := claim.Result{Err: wire.ErrNoNode}
	for name, look := range map[string][]claim.Result{
		"no bid":            {{}, gone},
		"no parent":         {gone, gone},
		"another session's": {{}, own(8)},
	} {
		t.Run(name, func(t *testing.T) {
			e, r := standing(t)
			r = ask(t, e, claim.Reply{N: r.N, Results: look})
			wantSync(t, r)
			e.Step(claim.Moment{}, claim.Reply{N: r.N, Results: append([]claim.Result{{}}, look...)})
			if s := e.State(); s.Phase != Done || s.Reason != claim.BidGone {
				t.Errorf("%+v", s)
			}
		})
	}
}

// TestSyncThatIsLostIsAskedForAgain checks that a look whose sync was lost is repeated with a sync.
func TestSyncThatIsLostIsAskedForAgain(t *testing.T) {
	e, r := standing(t)
	r = ask(t, e, claim.Reply{N: r.N, Results: []claim.Result{{}, own(7)}})
	lost := claim.Result{Err: wire.ErrConnectionLoss}
	e.Step(claim.Moment{}, claim.Reply{N: r.N, Results: []claim.Result{lost, lost, lost}})
	wantSync(t, ask(t, e, claim.Attached{Session: 7, Lease: claim.Lease{Timeout: 10 * time.Second}}))
}

// TestLookFromBeforeALapseIsTooOld checks a process that was stopped until its lease had lapsed. It must
// not lead because of what it read before, even if its next ping is answered first.
func TestLookFromBeforeALapseIsTooOld(t *testing.T) {
	e, r := standing(t)
	later := claim.Moment{Mono: 11 * time.Second, Wall: 11 * time.Second}
	e.Step(later, claim.Confirmed{Lease: claim.Lease{Sent: later, Timeout: 10 * time.Second}})
	e.Step(later, claim.Reply{N: r.N, Results: alone(e)})
	again := e.Ready().Request
	if s := e.State(); s.Phase != Standing || again == nil {
		t.Fatalf("%+v", s)
	}
	wantSync(t, *again)
	e.Step(later, claim.Reply{N: again.N, Results: append([]claim.Result{{}}, alone(e)...)})
	if s := e.State(); s.Phase != Leading {
		t.Errorf("%+v", s)
	}
}

// TestFirstWithoutProofLooksAgain checks that a bid that is first without a proof looks again when the
// proof arrives.
func TestFirstWithoutProofLooksAgain(t *testing.T) {
	e, r := standing(t)
	later := claim.Moment{Mono: 11 * time.Second, Wall: 11 * time.Second}
	e.Step(later, claim.Reply{N: r.N, Results: alone(e)})
	r = *e.Ready().Request
	wantSync(t, r)
	e.Step(later, claim.Reply{N: r.N, Results: append([]claim.Result{{}}, alone(e)...)})
	if s := e.State(); s.Phase != Standing {
		t.Fatalf("leads without proof: %+v", s)
	}
	e.Step(later, claim.Confirmed{Lease: claim.Lease{Sent: later, Timeout: 10 * time.Second}})
	r = *e.Ready().Request
	wantSync(t, r)
	e.Step(later, claim.Reply{N: r.N, Results: append([]claim.Result{{}}, alone(e)...)})
	if s := e.State(); s.Phase != Leading {
		t.Errorf("%+v", s)
	}
}

// TestLateRepliesAreIgnored checks that only the reply to the outstanding request counts.
func TestLateRepliesAreIgnored(t *testing.T) {
	e, r := standing(t)
	e.Step(claim.Moment{}, claim.Reply{N: r.N - 1, Results: []claim.Result{{Err: wire.ErrNoNode}, {Err: wire.ErrNoNode}, {Err: wire.ErrNoNode}}})
	if s := e.State(); s.Phase != Standing {
		t.Fatalf("%+v", s)
	}
}

// TestAnotherSessionEndsTheClaim checks that a new session counts as an expiry of the old one, even if no
// server says so (ClickHouse Keeper 116690).
func TestAnotherSessionEndsTheClaim(t *testing.T) {
	e, _ := leading(t)
	e.Step(claim.Moment{}, claim.Attached{Session: 8, Lease: claim.Lease{Timeout: 10 * time.Second}})
	if s := e.State(); s.Phase != Done || s.Reason != claim.SessionExpired {
		t.Fatalf("%+v", s)
	}
}

// TestChecklist10FoundBidMustMatch checks that name, owner and content of a found bid must all match.
func TestChecklist10FoundBidMustMatch(t *testing.T) {
	for _, c := range []struct {
		owner wire.SessionID
		data  string
		ours  bool
	}{{7, "me", true}, {8, "me", false}, {7, "you", false}} {
		e := NewElection(Config{Parent: "/p", ID: "me"})
		r := ask(t, e, claim.Attached{Session: 7, Lease: claim.Lease{Timeout: 10 * time.Second}})
		e.Step(claim.Moment{}, claim.Reply{N: r.N, Results: []claim.Result{{Err: wire.ErrConnectionLoss}}})
		r = ask(t, e, claim.Attached{Session: 7, Lease: claim.Lease{Timeout: 10 * time.Second}})
		r = ask(t, e, claim.Reply{N: r.N, Results: []claim.Result{{}, {Names: []string{"LEADER", claim.BidPrefix(claim.Own, claim.Nonce{}) + "0000000003"}}}})
		r = ask(t, e, claim.Reply{N: r.N, Results: []claim.Result{{Data: []byte(c.data), Stat: wire.Stat{EphemeralOwner: c.owner}}}})
		if found := r.Ops[0].Kind != claim.OpCreate; found != c.ours {
			t.Errorf("%+v: taken as ours: %v", c, found)
		}
	}
}

// TestReplacingNamesTheVersion checks that a LEADER that changed after it was read is not deleted.
func TestReplacingNamesTheVersion(t *testing.T) {
	e, r := leading(t)
	r = ask(t, e, claim.Reply{N: r.N, Results: []claim.Result{{Err: wire.ErrNodeExists, Failed: 1}}})
	stale := claim.Notice{ID: "x", Bid: "gone", Token: 1}.Encode()
	r = ask(t, e, claim.Reply{N: r.N, Results: []claim.Result{{Data: stale, Stat: wire.Stat{EphemeralOwner: 5, Version: 4}}}})
	r = ask(t, e, claim.Reply{N: r.N, Results: []claim.Result{{}, {Err: wire.ErrNoNode}}})
	if ops := r.Ops[0].Ops; len(ops) != 3 || ops[1].Kind != claim.OpDelete || ops[1].Version != 4 {
		t.Fatalf("%+v", ops)
	}
	r = ask(t, e, claim.Reply{N: r.N, Results: []claim.Result{{Err: wire.ErrBadVersion, Failed: 1}}})
	if ops := r.Ops[0].Ops; len(ops) != 2 || ops[1].Kind != claim.OpCreate {
		t.Fatalf("after a conflict: %+v", ops)
	}
}

// TestPublishingNeedsTheBid checks that the publication fails if the bid is gone, and that this ends the
// term.
func TestPublishingNeedsTheBid(t *testing.T) {
	e, r := leading(t)
	e.Step(claim.Moment{}, claim.Reply{N: r.N, Results: []claim.Result{{Err: wire.ErrNoNode, Failed: 0}}})
	if s := e.State(); s.Phase != Done || s.Reason != claim.BidGone {
		t.Fatalf("%+v", s)
	}
}

// TestAnswerThatTheBidIsMissingEndsTheTerm checks that the answer to the caller's transaction ends the term, as the
// Line's own check does, but only if it is about this bid and of this session.
func TestAnswerThatTheBidIsMissingEndsTheTerm(t *testing.T) {
	for _, answered := range []bool{true, false} { // the answer to the Line's own request
		e, r := leading(t)
		if answered {
			e.Step(claim.Moment{}, claim.Reply{N: r.N, Results: []claim.Result{{}}})
		}
		bid := "/p/" + e.State().Bid
		for _, other := range []BidMissing{{Path: bid, Session: 6}, {Path: bid + "1", Session: 7}, {Path: "/p/", Session: 7}} {
			if e.Step(claim.Moment{}, other); e.State().Phase != Leading {
				t.Errorf("%+v ended the term of %s: %+v", other, bid, e.State())
			}
		}
		e.Step(claim.Moment{}, BidMissing{Path: bid, Session: 7})
		if s := e.State(); s.Phase < Leaving || s.Reason != claim.BidGone {
			t.Fatalf("%+v", s)
		}
		if !answered {
			e.Step(claim.Moment{}, claim.Reply{N: r.N, Results: []claim.Result{{Err: wire.ErrNoNode}}})
		}
		if s := e.State(); s.Phase != Done || s.RemoveErr != nil {
			t.Errorf("there is no bid to remove: %+v", s)
		}
	}
}

// TestOnlyOneRequestIsOutstanding steps random events, and checks after each step that at most one request
// is outstanding.
func TestOnlyOneRequestIsOutstanding(t *testing.T) {
	e, _ := leading(t)
	for _, ev := range []claim.Event{claim.Disconnected{}, claim.Attached{Session: 7, Lease: claim.Lease{Timeout: 10 * time.Second}}, claim.Tick{}, claim.Fired{Path: "/p/x"}, claim.Resign{}} {
		e.Step(claim.Moment{}, ev)
		if r := e.Ready().Request; r != nil {
			t.Fatalf("%T: %+v while another is outstanding", ev, r)
		}
	}
}

func TestSequenceNumbersCompareByDifference(t *testing.T) {
	for _, c := range []struct {
		a, b int32
		want bool
	}{
		{1, 2, true}, {2, 1, false}, {3, 3, false},
		{math.MaxInt32, math.MinInt32, true}, {math.MinInt32, math.MaxInt32, false},
		{math.MaxInt32 - 5, math.MinInt32 + 5, true}, {-1, 0, true},
	} {
		if got := claim.Before(c.a, c.b); got != c.want {
			t.Errorf("before(%d, %d) = %v", c.a, c.b, got)
		}
	}
}

// TestGivenUpTransactionKeepsItsPlace checks that a coordinator that recovers a transaction that was never
// begun leaves a znode in its place. A request to begin it from before the restart may still arrive, and
// must then fail.
func TestGivenUpTransactionKeepsItsPlace(t *testing.T) {
	c := commit.NewCoordinator(commit.Config{Path: "/tx/1", Doubt: true})
	next := func(ev claim.Event) *claim.Request {
		c.Step(claim.Moment{}, ev)
		return c.Ready().Request
	}
	look := func(r *claim.Request, there ...claim.Result) *claim.Request {
		if r == nil || r.Ops[0].Kind != claim.OpSync {
			t.Fatalf("asks for %+v, not to look", r)
		}
		res := append([]claim.Result{{}}, there...)
		for len(res) < len(r.Ops) {
			res = append(res, claim.Result{Err: wire.ErrNoNode})
		}
		return next(claim.Reply{N: r.N, Results: res})
	}
	fence := look(next(claim.Attached{Session: 7}))
	if fence == nil || len(fence.Ops[0].Ops) != 2 || c.State().Decision != commit.Undecided {
		t.Fatalf("asks for %+v, %+v", fence, c.State())
	}
	gone := claim.Result{Err: wire.ErrNoNode}
	again := next(claim.Reply{N: fence.N, Results: []claim.Result{{}}})
	made := fence.Ops[0].Ops
	if look(again, gone, claim.Result{Data: made[1].Data}, gone, gone, claim.Result{Data: made[0].Data}); c.State().Decision != commit.Abort {
		t.Fatalf("%+v", c.State())
	}
	if r := next(commit.Carried{}); r != nil || c.State().Phase != commit.TxOver {
		t.Errorf("asks for %+v, %+v", r, c.State())
	}
}
