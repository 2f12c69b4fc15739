package lines

import (
	"errors"
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

// TestPublishingIsPostponed checks what a leader reports, and that it goes on leading, when a step of the publication is
// refused or LEADER is another's. It tries again after publishPause.
func TestPublishingIsPostponed(t *testing.T) {
	refused, exists := claimtest.Refused, claim.Result{Err: wire.ErrNodeExists, Failed: 1}
	names := func(bid string, owner wire.SessionID) claim.Result {
		return claim.Result{Data: claim.Notice{ID: "x", Bid: bid, Token: 1}.Encode(), Stat: wire.Stat{EphemeralOwner: owner}}
	}
	const own = "own bid"
	for _, c := range []struct {
		name    string
		answers [][]claim.Result // to the requests after the first one
		want    error
	}{
		{"the write is refused", [][]claim.Result{{refused}}, wire.ErrNoAuth},
		{"the parent of LEADER may not be created", [][]claim.Result{{{Err: wire.ErrNoNode, Failed: 1}}, {refused}}, wire.ErrNoAuth},
		{"LEADER may not be read", [][]claim.Result{{exists}, {refused}}, wire.ErrNoAuth},
		{"the sync is refused", [][]claim.Result{{exists}, {names("other", 5)}, {refused, claimtest.None}}, wire.ErrNoAuth},
		{"the other bid may not be read", [][]claim.Result{{exists}, {names("other", 5)}, {{}, refused}}, wire.ErrNoAuth},
		{"another bid is there", [][]claim.Result{{exists}, {names("other", 5)}, {{}, {}}}, &LeaderTaken{Path: "/p/LEADER", Bid: "other"}},
		{"another session wrote it", [][]claim.Result{{exists}, {names(own, 5)}}, &LeaderTaken{Path: "/p/LEADER"}},
		{"it is persistent", [][]claim.Result{{exists}, {names(own, 0)}}, &LeaderTaken{Path: "/p/LEADER", Persistent: true}},
		{"it is no notice", [][]claim.Result{{exists}, {{Data: []byte("x"), Stat: wire.Stat{EphemeralOwner: 5}}}}, &LeaderTaken{Path: "/p/LEADER"}},
	} {
		e, r := leading(t)
		for i, res := range c.answers {
			if n, err := claim.ParseNotice(res[0].Data); err == nil && n.Bid == own {
				res[0] = names(e.State().Bid, res[0].Stat.EphemeralOwner)
			}
			e.Step(claim.Moment{}, claim.Reply{N: r.N, Results: res})
			switch next := e.Ready().Request; {
			case i == len(c.answers)-1 && next != nil:
				t.Fatalf("%s: it asks for %+v at once", c.name, next)
			case i == len(c.answers)-1:
			case next == nil:
				t.Fatalf("%s: it asks for nothing after answer %d", c.name, i)
			default:
				r = *next
			}
		}
		if s := e.State(); s.Phase != Leading || s.Published || !sameError(s.PublishErr, c.want) {
			t.Errorf("%s: %+v, want %v", c.name, s, c.want)
		}
		if e.Step(claim.Moment{Mono: publishPause}, claim.Tick{}); e.Ready().Request == nil {
			t.Errorf("%s: it does not try again after %v", c.name, publishPause)
		}
	}
}

// sameError reports whether an error is wanted, or a LeaderTaken with the wanted content.
func sameError(got, want error) bool {
	g, ok := got.(*LeaderTaken)
	w, wanted := want.(*LeaderTaken)
	return got == want || ok && wanted && *g == *w
}

// TestPlainBidsAreReadFromTheNewest checks how an Election whose names contain no nonce looks for a bid whose answer
// was lost: it reads at most ProbeMax bids at a time, the newest first, and stops at its own. If it does not find it, and
// may not read one of them, it ends, because a second bid could be blocked by the first.
func TestPlainBidsAreReadFromTheNewest(t *testing.T) {
	var names []string
	for i := range int32(claim.ProbeMax + 2) {
		names = append(names, "n_"+claim.FormatSeq(i))
	}
	searching := func() (*Election, claim.Request) {
		e := NewElection(Config{Parent: "/p", ID: "me", Naming: claim.Plain})
		lease := claim.Lease{Timeout: 10 * time.Second}
		r := ask(t, e, claim.Attached{Session: 7, Lease: lease})
		e.Step(claim.Moment{}, claim.Reply{N: r.N, Results: []claim.Result{{Err: wire.ErrConnectionLoss}}})
		r = ask(t, e, claim.Attached{Session: 7, Lease: lease})
		r = ask(t, e, claim.Reply{N: r.N, Results: []claim.Result{{}, {Names: names}}})
		if len(r.Ops) != claim.ProbeMax || r.Ops[0].Path != "/p/"+names[len(names)-1] {
			t.Fatalf("it reads %d bids, from %s on", len(r.Ops), r.Ops[0].Path)
		}
		return e, r
	}
	e, r := searching()
	others := make([]claim.Result, claim.ProbeMax)
	others[3].Err = wire.ErrNoNode // gone in the meantime
	r = ask(t, e, claim.Reply{N: r.N, Results: others})
	if len(r.Ops) != 2 || r.Ops[0].Path != "/p/"+names[1] {
		t.Fatalf("it reads %d more bids, from %s on", len(r.Ops), r.Ops[0].Path)
	}
	mine := claim.Result{Data: []byte("me\n" + claim.Nonce{}.String()), Stat: wire.Stat{EphemeralOwner: 7}}
	e.Step(claim.Moment{}, claim.Reply{N: r.N, Results: []claim.Result{mine, {}}})
	if s := e.State(); s.Bid != names[1] {
		t.Errorf("%+v, want the bid %s", s, names[1])
	}

	others[5].Err = wire.ErrNoAuth // another user's
	e, r = searching()
	found := slices.Clone(others)
	found[9] = mine
	e.Step(claim.Moment{}, claim.Reply{N: r.N, Results: found})
	if s := e.State(); s.Phase != Standing || s.Bid != names[len(names)-10] {
		t.Errorf("%+v, want the bid %s", s, names[len(names)-10])
	}

	e, r = searching()
	r = ask(t, e, claim.Reply{N: r.N, Results: others}) // it gives up, and looks for a bid that it must remove
	if s := e.State(); s.Phase != Leaving || s.Reason != claim.Refused || s.Err != wire.ErrNoAuth || len(r.Ops) != 2 {
		t.Errorf("%+v, want it refused", s)
	}
	r = ask(t, e, claim.Reply{N: r.N, Results: []claim.Result{{Err: wire.ErrNoAuth}, mine}})
	if r.Ops[0].Kind != claim.OpDelete || r.Ops[0].Path != "/p/"+names[0] {
		t.Errorf("it asks for %+v, not to delete its bid", r.Ops)
	}
}

// TestLineOfAnotherRecipe checks that the first look ends a claim, and removes its bid, if the path holds znodes of a
// recipe that cannot share it.
func TestLineOfAnotherRecipe(t *testing.T) {
	for _, c := range []struct {
		cfg   Config
		other string
		want  string
	}{
		{Config{}, "entry-100-0000000003", "election"},
		{Config{Rule: Exclusive}, "entry-100-0000000003", "lock"},
		{Config{Rule: Shared, Naming: claim.OwnRead}, "entry-100-0000000003", "read-write lock"},
		{Config{Rule: Exclusive}, claim.Nonce{1}.String() + "-r_0000000001", ""},
	} {
		c.cfg.Parent, c.cfg.ID = "/p", "me"
		e := NewElection(c.cfg)
		r := ask(t, e, claim.Attached{Session: 7, Lease: claim.Lease{Timeout: 10 * time.Second}})
		bid := claim.BidPrefix(c.cfg.Naming, claim.Nonce{}) + "0000000003"
		r = ask(t, e, claim.Reply{N: r.N, Results: []claim.Result{{Path: "/p/" + bid}}})
		look := make([]claim.Result, len(r.Ops))
		look[0].Names, look[len(look)-1] = []string{bid, c.other}, own(7)
		e.Step(claim.Moment{}, claim.Reply{N: r.N, Results: look})
		var other *claim.OtherRecipeError
		switch s := e.State(); {
		case c.want == "" && s.Err != nil:
			t.Errorf("%+v: %v", c.cfg, s.Err)
		case c.want != "" && (s.Reason != claim.Refused || !errors.As(s.Err, &other) || other.Want != c.want || other.Path != "/p"):
			t.Errorf("%+v: %+v, want it refused because it is not %s", c.cfg, s, c.want)
		case c.want != "":
			if r := e.Ready().Request; r == nil || r.Ops[0].Kind != claim.OpDelete || r.Ops[0].Path != "/p/"+bid {
				t.Errorf("%+v: it asks for %+v, not to delete its bid", c.cfg, r)
			}
		}
	}
}
