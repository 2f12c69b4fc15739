package modeltest

import (
	"errors"
	"testing"
	"time"

	"bellwether/internal/claim"
	"bellwether/internal/claim/barrier"
	"bellwether/wire"
)

// walk gives events to one state machine, one at a time, and checks what it requests.
type walk struct {
	*testing.T
	m *barrier.Member
}

// entering returns the dialogue of member "b" of a barrier for two members. Its znode has the czxid 10,
// and it has just requested its first look.
func entering(t *testing.T) (walk, *claim.Request) {
	w := walk{t, barrier.NewMember(barrier.MemberConfig{Path: "/g", Name: "b", N: 2})}
	r := w.step(claim.Attached{Session: 7})
	return w, w.answer(r, claim.Result{Path: "/g/b", Stat: wire.Stat{Czxid: 10}})
}

func (w walk) step(ev claim.Event) *claim.Request {
	w.m.Step(claim.Moment{}, ev)
	return w.m.Ready().Request
}

func (w walk) answer(r *claim.Request, res ...claim.Result) *claim.Request {
	w.Helper()
	if r == nil || len(r.Ops) != len(res) {
		w.Fatalf("asks for %+v, not for %d operations", r, len(res))
	}
	return w.step(claim.Reply{N: r.N, Results: res})
}

var noNode = claim.Result{Err: wire.ErrNoNode}

func listing(in ...string) claim.Result    { return claim.Result{Names: in} }
func since(zxid wire.Zxid) claim.Result    { return claim.Result{Stat: wire.Stat{Czxid: zxid}} }
func (w walk) phase(p barrier.MemberPhase) { w.Helper(); w.is(w.m.Phase() == p, "phase") }
func (w walk) is(ok bool, what string) {
	w.Helper()
	if !ok {
		w.Fatalf("%s: phase %d, over %v, %v", what, w.m.Phase(), w.m.Over(), w.m.Err())
	}
}

// asks fails the test unless the first operation of a request is this one.
func (w walk) asks(r *claim.Request, kind claim.OpKind, path string) {
	w.Helper()
	if r == nil || r.Ops[0].Kind != kind || r.Ops[0].Path != path {
		w.Fatalf("it asks for %+v, want %v of %s", r, kind, path)
	}
}

// TestMemberWaitsForReady checks that only the creation of the ready znode lets a waiting member in.
// After any other event of that znode the member reads again (Curator GH-1290).
func TestMemberWaitsForReady(t *testing.T) {
	w, look := entering(t)
	w.is(w.answer(look, noNode, listing("b")) == nil, "waits")
	look = w.step(claim.Fired{Path: "/g/ready", Type: wire.EventNodeDeleted})
	w.phase(barrier.Entering)
	w.is(w.answer(look, noNode, listing("b")) == nil, "waits again")
	w.step(claim.Fired{Path: "/g/ready", Type: wire.EventNodeCreated})
	w.phase(barrier.Inside)
	w.is(w.m.Settled(), "settled")
}

// TestMemberMakesReady checks that a member that sees enough other members creates the ready znode, and
// is inside even if another member has created it first.
func TestMemberMakesReady(t *testing.T) {
	w, look := entering(t)
	r := w.answer(look, noNode, listing("a", "b"))
	w.is(r != nil && r.Ops[1].Path == "/g/ready", "makes ready")
	w.answer(r, claim.Result{}, claim.Result{Err: wire.ErrNodeExists})
	w.phase(barrier.Inside)
}

// TestMemberRemnant checks that a ready znode whose round has ended lets no member in. The oldest member
// removes it, in a transaction that checks its own znode.
func TestMemberRemnant(t *testing.T) {
	w, look := entering(t)
	r := w.answer(look, since(5), listing("b", "c", "ready"))
	r = w.answer(r, since(10), since(12), since(5))
	w.is(r != nil && r.Ops[0].Kind == claim.OpMulti && r.Ops[0].Ops[0].Path == "/g/b", "removes it")
	look = w.answer(r, claim.Result{})
	w.phase(barrier.Entering)
	w.answer(look, noNode, listing("b", "c"))
}

// TestMemberComesLate checks that an older ready znode lets a member in while a member of its round is
// present. Otherwise the member waits for the oldest member.
func TestMemberComesLate(t *testing.T) {
	w, look := entering(t)
	r := w.answer(look, since(5), listing("a", "b", "ready"))
	w.answer(r, since(3), since(10), since(5))
	w.phase(barrier.Inside)
	w.is(w.m.Late(), "late")

	w, look = entering(t)
	r = w.answer(look, since(5), listing("a", "b", "ready"))
	r = w.answer(r, since(8), since(10), since(5))
	w.is(r != nil && r.Ops[0].Kind == claim.OpWatch && r.Ops[0].Path == "/g/a", "watches the oldest")
}

// TestMemberIsWokenWhileItWatches checks a change of the ready znode that happens while the member sets
// its watch on the oldest member. The member must read again, because a ready znode could otherwise be
// created without an event.
func TestMemberIsWokenWhileItWatches(t *testing.T) {
	w, look := entering(t)
	r := w.answer(look, since(5), listing("a", "b", "ready"))
	r = w.answer(r, since(8), since(10), since(5))
	w.is(w.step(claim.Fired{Path: "/g/ready", Type: wire.EventNodeDeleted}) == nil, "one request at a time")
	look = w.answer(r, since(8))
	w.is(look != nil && look.Ops[0].Kind == claim.OpExists, "looks again")
	w.answer(look, since(20), listing("a", "b", "ready"))
	w.phase(barrier.Inside)
}

// TestMemberLeavesWithItsRound checks that a member waits only for members that are older than the ready
// znode, and that the last member removes the ready znode.
func TestMemberLeavesWithItsRound(t *testing.T) {
	w, look := entering(t)
	w.answer(look, noNode, listing("b"))
	w.step(claim.Fired{Path: "/g/ready", Type: wire.EventNodeCreated})
	r := w.step(barrier.Depart{})
	w.is(r != nil && r.Ops[0].Kind == claim.OpSync, "brings the server up to date, which may not know what an event told")
	r = w.answer(r, claim.Result{}, since(20), since(10), listing("a", "b", "ready"))
	w.is(r != nil && r.Ops[0].Kind == claim.OpWatch && r.Ops[0].Path == "/g/a", "looks at a")
	r = w.answer(r, since(30)) // this member is younger than ready
	w.is(r != nil && r.Ops[0].Kind == claim.OpMulti && len(r.Ops[0].Ops) == 2, "takes ready along")
	w.answer(r, claim.Result{})
	w.is(w.m.Outcome() == claim.Succeeded, "out")
}

// TestMemberEndsWithItsSession checks that a member ends when its session does, and that a member that
// resigns deletes its znode before it ends.
func TestMemberEndsWithItsSession(t *testing.T) {
	w, _ := entering(t)
	w.step(claim.Expired{})
	w.is(errors.Is(w.m.Err(), wire.ErrSessionExpired), "expired")

	w, look := entering(t)
	w.answer(look, noNode, listing("b"))
	r := w.step(claim.Resign{})
	r = w.answer(r, noNode, since(10), listing("b"))
	w.is(r != nil && r.Ops[0].Kind == claim.OpDelete && r.Ops[0].Path == "/g/b", "removes its znode")
	w.answer(r, claim.Result{})
	w.is(w.m.Outcome() == claim.Withdrawn, "withdrawn")
}

// TestMemberGivesUpInDoubt checks a member that resigns after the answer to the creation of its znode was
// lost. It sends a sync before it looks for the znode, because its new server may not know the znode yet.
func TestMemberGivesUpInDoubt(t *testing.T) {
	w := walk{t, barrier.NewMember(barrier.MemberConfig{Path: "/g", Name: "b", N: 2})}
	r := w.step(claim.Attached{Session: 7})
	w.answer(r, claim.Result{Err: wire.ErrConnectionLoss})
	w.step(claim.Resign{})
	r = w.step(claim.Attached{Session: 7})
	w.is(r != nil && r.Ops[0].Kind == claim.OpSync, "brings it up to date")
	r = w.answer(r, claim.Result{}, noNode, since(10), listing("b"))
	w.is(r != nil && r.Ops[0].Kind == claim.OpDelete && r.Ops[0].Path == "/g/b", "removes its znode")
}

// TestBarrierLooksAgain checks that the client looks again after an event and after a lost answer.
func TestBarrierLooksAgain(t *testing.T) {
	b := barrier.NewBarrier("/g", barrier.PassBarrier)
	next := func(at time.Duration, ev claim.Event) *claim.Request {
		b.Step(claim.Moment{Mono: at}, ev)
		return b.Ready().Request
	}
	r := next(0, claim.Attached{Session: 7})
	if look := r.Ops[1]; look.Kind != claim.OpWatch || !look.Strict {
		t.Errorf("it looks with %+v, want a watch that fails if the znode may not be read", look)
	}
	if r = next(0, claim.Reply{N: r.N, Results: []claim.Result{{}, {}}}); r != nil || b.Over() {
		t.Fatalf("asks for %+v while it is closed", r)
	}
	r = next(0, claim.Fired{Path: "/g"})
	if r = next(0, claim.Reply{N: r.N, Results: []claim.Result{{Err: wire.ErrConnectionLoss}, {Err: wire.ErrConnectionLoss}}}); r != nil {
		t.Fatalf("asks for %+v at once", r)
	}
	r = next(claim.BackoffMin, claim.Tick{})
	if next(claim.BackoffMin, claim.Reply{N: r.N, Results: []claim.Result{{}, noNode}}); b.Outcome() != claim.Succeeded {
		t.Errorf("%v, %v", b.Outcome(), b.Err())
	}
}

// TestMemberOfKazoo checks how a member leaves that is compatible with kazoo: it removes ready first, and then waits
// for every other member, since ready no longer shows which of them are of its round.
func TestMemberOfKazoo(t *testing.T) {
	leaving := func(name string) (walk, *claim.Request) {
		w := walk{t, barrier.NewMember(barrier.MemberConfig{Path: "/g", Name: name, N: 2, Kazoo: true})}
		r := w.step(claim.Attached{Session: 7})
		r = w.answer(r, claim.Result{Path: "/g/" + name, Stat: wire.Stat{Czxid: 10}})
		r = w.answer(r, since(20), listing("a", "b", "c", "ready"))
		w.phase(barrier.Inside)
		w.asks(r, claim.OpUnwatch, "/g/ready")
		w.is(w.answer(r, claim.Result{}) == nil, "stays")
		r = w.step(barrier.Depart{})
		w.asks(r, claim.OpDelete, "/g/ready")
		r = w.answer(r, noNode)
		w.asks(r, claim.OpGet, "/g/ready")
		return w, w.answer(r, noNode, since(10), listing("a", "b", "c"))
	}
	w, r := leaving("b")
	w.asks(r, claim.OpWatch, "/g/a")
	r = w.answer(r, since(30)) // it is waited for although it is younger
	w.asks(r, claim.OpDelete, "/g/b")
	w.is(w.answer(r, claim.Result{}) == nil, "waits for a")
	r = w.step(claim.Fired{Path: "/g/a", Type: wire.EventNodeDeleted})
	w.asks(r, claim.OpList, "/g")
	r = w.answer(r, listing("c"))
	w.asks(r, claim.OpWatch, "/g/c")
	r = w.answer(r, noNode) // gone in the meantime
	w.asks(r, claim.OpList, "/g")
	w.answer(r, listing())
	w.is(w.m.Outcome() == claim.Succeeded, "out")

	w, r = leaving("a") // the lowest name leaves last
	w.asks(r, claim.OpWatch, "/g/c")
	w.is(w.answer(r, since(9)) == nil, "waits for c")
	r = w.step(claim.Fired{Path: "/g/c", Type: wire.EventNodeDeleted})
	r = w.answer(r, listing("a", "b"))
	w.asks(r, claim.OpWatch, "/g/b")
	w.answer(r, since(9))
	r = w.step(claim.Fired{Path: "/g/b", Type: wire.EventNodeDeleted})
	r = w.answer(r, listing("a"))
	w.asks(r, claim.OpDelete, "/g/a")
	w.answer(r, claim.Result{})
	w.is(w.m.Outcome() == claim.Succeeded, "out")
}

// TestMemberOfKazooIsRefused checks that a member that may not remove ready deletes its own znode and fails.
func TestMemberOfKazooIsRefused(t *testing.T) {
	w := walk{t, barrier.NewMember(barrier.MemberConfig{Path: "/g", Name: "b", N: 2, Kazoo: true})}
	r := w.step(claim.Attached{Session: 7})
	r = w.answer(r, claim.Result{Path: "/g/b", Stat: wire.Stat{Czxid: 10}})
	w.answer(w.answer(r, since(20), listing("a", "b", "ready")), claim.Result{})
	r = w.step(barrier.Depart{})
	r = w.answer(r, claim.Result{Err: wire.ErrNoAuth})
	w.asks(r, claim.OpDelete, "/g/b")
	w.answer(r, claim.Result{})
	w.is(w.m.Outcome() == claim.Failed && errors.Is(w.m.Err(), wire.ErrNoAuth), "refused")
}

// TestMemberOfAnotherRecipe checks that a member does not enter a znode that another recipe uses, and removes its own
// znode there.
func TestMemberOfAnotherRecipe(t *testing.T) {
	w, look := entering(t)
	r := w.answer(look, noNode, listing("b", claim.Nonce{}.String()+"-n_0000000000"))
	r = w.answer(r, noNode, since(10), listing("b"))
	w.asks(r, claim.OpDelete, "/g/b")
	w.answer(r, claim.Result{})
	var other *claim.OtherRecipeError
	w.is(w.m.Outcome() == claim.Failed && errors.As(w.m.Err(), &other), "failed")
}

// TestBarrierOfAnotherRecipe checks that a client does not wait at a znode that another recipe uses, and that it waits if
// it may not see the children.
func TestBarrierOfAnotherRecipe(t *testing.T) {
	for _, c := range []struct {
		list claim.Result
		over bool
	}{
		{listing(claim.Nonce{}.String() + "-n_0000000000"), true},
		{listing(), false},
		{claim.Result{Err: wire.ErrNoAuth}, false},
	} {
		b := barrier.NewBarrier("/g", barrier.PassBarrier)
		b.Step(claim.Moment{}, claim.Attached{Session: 7})
		r := b.Ready().Request
		for r != nil && !b.Over() {
			res := make([]claim.Result, len(r.Ops))
			for i, op := range r.Ops {
				if res[i].Stat.NumChildren = 1; op.Kind == claim.OpList {
					res[i] = c.list
				}
			}
			b.Step(claim.Moment{}, claim.Reply{N: r.N, Results: res})
			r = b.Ready().Request
		}
		var other *claim.OtherRecipeError
		if b.Over() != c.over || c.over && !errors.As(b.Err(), &other) {
			t.Errorf("%+v: over %v, %v", c.list, b.Over(), b.Err())
		}
	}
}
