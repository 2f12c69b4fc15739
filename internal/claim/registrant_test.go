package claim

import (
	"errors"
	"testing"
	"time"

	"bellwether/wire"
)

// registering is a dialogue with a Registrant at a place.
type registering struct{ dialogue }

const modelPlace = "/app/place"

func register(t *testing.T, own ...wire.SessionID) *registering {
	m := NewRegistrant(RegistrantConfig{Path: modelPlace, Data: []byte("one"), Own: own})
	return &registering{dialogue{t: t, m: m}}
}

func (d *registering) state() RegistrantState { return d.m.(*Registrant).State() }

// is fails unless what is wanted is the state.
func (d *registering) is(want RegistrantState) {
	d.t.Helper()
	if got := d.state(); got != want {
		d.t.Errorf("%+v, want %+v", got, want)
	}
}

// fired is the event of the watch that the request with this number has set.
func fired(n uint64, t wire.EventType) Fired { return Fired{modelPlace, t, n} }

// of is a znode of a session.
func of(s wire.SessionID, czxid wire.Zxid, version int32) Result {
	return Result{Stat: wire.Stat{EphemeralOwner: s, Czxid: czxid, Version: version}}
}

var (
	exists  = Result{Err: wire.ErrNodeExists}
	refused = Result{Err: wire.ErrNoAuth}
)

// standing is one that stands in session 1, of zxid 5 and version 0, and the
// number of its watch.
func (d *registering) standing() uint64 {
	d.t.Helper()
	d.step(Attached{Session: 1}, OpCreate)
	d.step(d.answer(Result{}), OpExists)
	d.step(d.answer(of(1, 5, 0)))
	d.is(RegistrantState{Stands: true, Session: 1, Token: 5, Have: 1})
	return d.n
}

// TestRegistrantStands after two requests, is set by one, and deletes its znode
// when it resigns.
func TestRegistrantStands(t *testing.T) {
	d := register(t)
	n := d.standing()
	d.step(Keep{[]byte("two"), 2}, OpSet)
	d.step(fired(n, wire.EventNodeDataChanged)) // its own doing
	d.step(d.answer(of(1, 5, 1)), OpExists)
	d.is(RegistrantState{Stands: true, Session: 1, Token: 5, Have: 2})
	d.step(d.answer(of(1, 5, 1)))
	d.step(Resign{}, OpSync, OpStat)
	d.is(RegistrantState{Session: 1, Leaving: true})
	d.step(d.answer(Result{}, of(1, 5, 1)), OpDelete)
	d.step(d.answer(Result{Err: wire.ErrBadVersion}), OpSync, OpStat)
	d.step(d.answer(Result{}, of(1, 5, 2)), OpDelete)
	d.step(d.answer(Result{}))
	d.ends(Succeeded)
}

// TestRegistrantMakesParents once: where they are gone again it is refused, for
// a while.
func TestRegistrantMakesParents(t *testing.T) {
	d := register(t)
	d.step(Attached{Session: 1}, OpCreate)
	d.step(d.answer(none), OpParents)
	d.step(d.answer(Result{}), OpCreate)
	d.step(d.answer(none))
	if err := d.state().Err; !errors.Is(err, ErrNoParent) {
		t.Error(err)
	}
	d.step(Tick{})
	d.at = registrationRetry
	d.step(Tick{}, OpCreate)
}

// TestRegistrantLooksAfterALostAnswer, and sets what may be other data.
func TestRegistrantLooksAfterALostAnswer(t *testing.T) {
	d := register(t)
	d.step(Attached{Session: 1}, OpCreate)
	d.step(d.lost())
	d.step(Attached{Session: 1}, OpExists)
	d.step(d.answer(of(1, 5, 0)), OpSet)
	d.step(d.lost())
	d.step(Attached{Session: 1}, OpExists)
	d.step(d.answer(of(1, 5, 1)), OpSet)
	d.is(RegistrantState{Session: 1})
	d.step(d.answer(of(1, 5, 2)))
	d.is(RegistrantState{Stands: true, Session: 1, Token: 5, Have: 1})
}

// TestRegistrantIsMadeAgain when somebody deletes it, and does not stand before; the
// watch on nothing is given up first.
func TestRegistrantIsMadeAgain(t *testing.T) {
	d := register(t)
	n := d.standing()
	d.step(fired(n, wire.EventNodeDeleted), OpExists)
	d.is(RegistrantState{Session: 1})
	d.step(d.answer(none), OpUnwatch, OpCreate)
	d.step(d.answer(Result{}, Result{Err: wire.ErrThrottledOp}))
	d.is(RegistrantState{Session: 1})
	d.at += time.Minute
	d.step(Tick{}, OpExists)
	d.step(d.answer(none), OpUnwatch, OpCreate)
	d.step(d.answer(Result{}, Result{}), OpExists)
	d.is(RegistrantState{Session: 1})
	d.step(d.answer(of(1, 9, 0)))
	d.is(RegistrantState{Stands: true, Session: 1, Token: 9, Have: 1})
}

// TestRegistrantFindsItsZnodeGone where the event was of something else.
func TestRegistrantFindsItsZnodeGone(t *testing.T) {
	d := register(t)
	n := d.standing()
	d.step(fired(n, wire.EventNodeDataChanged), OpExists)
	d.is(RegistrantState{Stands: true, Session: 1, Token: 5, Have: 1}) // as was last seen
	d.step(d.answer(none), OpUnwatch, OpCreate)
	d.is(RegistrantState{Session: 1})
}

// TestRegistrantDoubtsWhileDisconnected, and asks for nothing when it is back.
func TestRegistrantDoubtsWhileDisconnected(t *testing.T) {
	d := register(t)
	d.standing()
	d.step(Disconnected{})
	d.is(RegistrantState{Stands: true, Doubtful: true, Session: 1, Token: 5, Have: 1})
	d.step(Attached{Session: 1})
	d.is(RegistrantState{Stands: true, Session: 1, Token: 5, Have: 1})
}

// TestRegistrantLeavesAForeignZnodeAlone and waits for its event.
func TestRegistrantLeavesAForeignZnodeAlone(t *testing.T) {
	d := register(t)
	d.step(Attached{Session: 1}, OpCreate)
	d.step(d.answer(exists), OpExists)
	d.step(d.answer(of(8, 3, 0)))
	d.is(RegistrantState{Session: 1, Owned: true, Owner: 8})
	d.step(Keep{[]byte("two"), 2})
	d.step(fired(d.n, wire.EventNodeDeleted), OpCreate)
	d.step(d.answer(exists), OpExists)
	d.step(d.answer(of(0, 4, 0)))
	d.is(RegistrantState{Session: 1, Owned: true})
	d.step(Resign{}, OpSync, OpStat)
	d.step(d.answer(Result{}, of(0, 4, 0)))
	d.ends(Succeeded)
}

// TestRegistrantTakesOverFromItself: in the next session the znode of the one
// before is replaced, by its version, and so is that of a process before; nobody's is not.
func TestRegistrantTakesOverFromItself(t *testing.T) {
	d := register(t, 7, 0)
	n := d.standing()
	d.step(Expired{})
	d.is(RegistrantState{Session: 1, Err: wire.ErrSessionExpired})
	d.step(Attached{Session: 2}, OpCreate)
	d.step(fired(n, 0)) // that of the session before
	for _, owner := range []wire.SessionID{1, 7} {
		d.step(d.answer(exists), OpExists)
		d.step(d.answer(of(owner, 5, 3)), OpMulti)
		if del := d.ops[0].Ops[0]; del.Kind != OpDelete || del.Version != 3 {
			t.Errorf("deletes %+v", del)
		}
		d.step(d.answer(Result{Err: wire.ErrBadVersion}), OpCreate)
	}
	d.step(d.answer(exists), OpExists)
	n = d.n
	d.step(d.answer(of(1, 5, 4)), OpMulti)
	d.step(fired(n, wire.EventNodeDeleted)) // its own doing
	d.step(d.answer(Result{}), OpExists)
	d.step(fired(n, wire.EventNodeDeleted))
	d.step(d.answer(of(2, 9, 0)))
	d.is(RegistrantState{Stands: true, Session: 2, Token: 9, Have: 1})

	d = register(t, 0)
	d.step(Attached{Session: 1}, OpCreate)
	d.step(d.answer(exists), OpExists)
	d.step(d.answer(of(0, 5, 0)))
}

// TestRegistrantTakesOverInDoubt: it may have, so it looks.
func TestRegistrantTakesOverInDoubt(t *testing.T) {
	d := register(t, 7)
	d.step(Attached{Session: 1}, OpCreate)
	d.step(d.answer(exists), OpExists)
	d.step(d.answer(of(7, 5, 0)), OpMulti)
	d.step(d.lost())
	d.step(Attached{Session: 1}, OpExists)
	d.step(d.answer(of(1, 6, 0)), OpSet)
}

// TestRegistrantIsRefused and tries again after a while, or when something else
// is wanted.
func TestRegistrantIsRefused(t *testing.T) {
	d := register(t)
	d.step(Attached{Session: 1}, OpCreate)
	d.step(d.answer(refused))
	d.is(RegistrantState{Session: 1, Err: wire.ErrNoAuth})
	d.step(Keep{[]byte("two"), 2}, OpCreate)
	d.step(d.answer(refused))
	if w := d.wake; w != registrationRetry {
		t.Errorf("wakes in %v", w)
	}
	d.step(Keep{[]byte("one"), 1}) // an older one
	d.at = time.Second
	d.step(Resign{}, OpSync, OpStat)
	d.step(d.answer(Result{}, none))
	d.ends(Succeeded)
}

// TestWhoIsRefused, who waits for a foreign znode to go, and who does not.
func TestWhoIsRefused(t *testing.T) {
	for _, c := range []struct {
		s               RegistrantState
		refused, waiter bool // and who waits
	}{
		{RegistrantState{}, false, false}, // nothing is known yet
		{RegistrantState{Stands: true}, false, false},
		{RegistrantState{Stands: true, Doubtful: true}, false, false},
		{RegistrantState{Owned: true, Owner: 8}, true, false},
		{RegistrantState{Err: wire.ErrSessionExpired}, false, false},
		{RegistrantState{Err: wire.ErrNoAuth}, true, true},
		{RegistrantState{Leaving: true}, true, true},
		{RegistrantState{Leaving: true, Err: wire.ErrSessionExpired}, true, true},
	} {
		if c.s.Refused(false) != c.refused || c.s.Refused(true) != c.waiter {
			t.Errorf("%+v: %v, and who waits %v", c.s, c.s.Refused(false), c.s.Refused(true))
		}
	}
}

// TestRegistrantResignsInDoubt: what a create with a lost answer has made is
// found behind a sync, and not where its session has ended.
func TestRegistrantResignsInDoubt(t *testing.T) {
	d := register(t)
	d.step(Attached{Session: 1}, OpCreate)
	d.step(Resign{})
	d.step(d.lost())
	d.step(Attached{Session: 1}, OpSync, OpStat)
	d.step(d.answer(Result{}, of(1, 5, 0)), OpDelete)
	d.step(d.lost())
	d.step(Attached{Session: 1}, OpSync, OpStat)
	d.step(d.answer(Result{}, none))
	d.ends(Succeeded)

	d = register(t)
	d.step(Attached{Session: 1}, OpCreate)
	d.step(Resign{})
	d.step(Attached{Session: 2})
	d.step(d.answer(Result{})) // of the session before
	d.ends(Succeeded)

	d = register(t)
	d.step(Resign{})
	d.ends(Succeeded)
}

// TestRegistrantsRemovalIsRefused: it says so.
func TestRegistrantsRemovalIsRefused(t *testing.T) {
	d := register(t)
	d.standing()
	d.step(Resign{}, OpSync, OpStat)
	d.step(d.answer(Result{}, of(1, 5, 0)), OpDelete)
	d.step(d.answer(refused))
	if d.ends(Failed); !errors.Is(d.m.(*Registrant).Err(), wire.ErrNoAuth) {
		t.Error(d.m.(*Registrant).Err())
	}
}

// TestRegistrantEndsWithItsClient.
func TestRegistrantEndsWithItsClient(t *testing.T) {
	d := register(t)
	d.standing()
	d.step(Closed{})
	d.ends(Failed)
	d.is(RegistrantState{Session: 1, Leaving: true})
}
