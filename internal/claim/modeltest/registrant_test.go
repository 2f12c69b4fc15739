package modeltest

import (
	"errors"
	"testing"
	"time"

	"bellwether/internal/claim"
	"bellwether/internal/claim/claimtest"
	"bellwether/internal/claim/registry"
	"bellwether/wire"
)

// registering is a dialogue with a Registrant at a place.
type registering struct{ claimtest.Dialogue }

const modelPlace = "/app/place"

func register(t *testing.T, own ...wire.SessionID) *registering {
	m := registry.NewRegistrant(registry.RegistrantConfig{Path: modelPlace, Data: []byte("one"), Own: own})
	return &registering{claimtest.Dialogue{T: t, M: m}}
}

func (d *registering) state() registry.RegistrantState { return d.M.(*registry.Registrant).State() }

// is fails unless what is wanted is the state.
func (d *registering) is(want registry.RegistrantState) {
	d.T.Helper()
	if got := d.state(); got != want {
		d.T.Errorf("%+v, want %+v", got, want)
	}
}

// fired is the event of the watch that the request with this number has set.
func fired(n uint64, t wire.EventType) claim.Fired {
	return claim.Fired{Path: modelPlace, Type: t, N: n}
}

var (
	exists = claim.Result{Err: wire.ErrNodeExists}
)

// standing is one that stands in session 1, of zxid 5 and version 0, and the
// number of its watch.
func (d *registering) standing() uint64 {
	d.T.Helper()
	d.Step(claim.Attached{Session: 1}, claim.OpCreate)
	d.Step(d.Answer(claim.Result{}), claim.OpExists)
	d.Step(d.Answer(claimtest.Of(1, 5, 0)))
	d.is(registry.RegistrantState{Stands: true, Session: 1, Token: 5, Have: 1})
	return d.N
}

// TestRegistrantStands after two requests, is set by one, and deletes its znode
// when it resigns.
func TestRegistrantStands(t *testing.T) {
	d := register(t)
	n := d.standing()
	d.Step(registry.Keep{Data: []byte("two"), N: 2}, claim.OpSet)
	d.Step(fired(n, wire.EventNodeDataChanged)) // its own doing
	d.Step(d.Answer(claimtest.Of(1, 5, 1)), claim.OpExists)
	d.is(registry.RegistrantState{Stands: true, Session: 1, Token: 5, Have: 2})
	d.Step(d.Answer(claimtest.Of(1, 5, 1)))
	d.Step(claim.Resign{}, claim.OpSync, claim.OpStat)
	d.is(registry.RegistrantState{Session: 1, Leaving: true})
	d.Step(d.Answer(claim.Result{}, claimtest.Of(1, 5, 1)), claim.OpDelete)
	d.Step(d.Answer(claim.Result{Err: wire.ErrBadVersion}), claim.OpSync, claim.OpStat)
	d.Step(d.Answer(claim.Result{}, claimtest.Of(1, 5, 2)), claim.OpDelete)
	d.Step(d.Answer(claim.Result{}))
	d.Ends(claim.Succeeded)
}

// TestRegistrantMakesParents once: where they are gone again it is refused, for
// a while.
func TestRegistrantMakesParents(t *testing.T) {
	d := register(t)
	d.Step(claim.Attached{Session: 1}, claim.OpCreate)
	d.Step(d.Answer(claimtest.None), claim.OpParents)
	d.Step(d.Answer(claim.Result{}), claim.OpCreate)
	d.Step(d.Answer(claimtest.None))
	if err := d.state().Err; !errors.Is(err, registry.ErrNoParent) {
		t.Error(err)
	}
	d.Step(claim.Tick{})
	d.At = registry.RegistrationRetry
	d.Step(claim.Tick{}, claim.OpCreate)
}

// TestRegistrantLooksAfterALostAnswer, and sets what may be other data.
func TestRegistrantLooksAfterALostAnswer(t *testing.T) {
	d := register(t)
	d.Step(claim.Attached{Session: 1}, claim.OpCreate)
	d.Step(d.Lost())
	d.Step(claim.Attached{Session: 1}, claim.OpExists)
	d.Step(d.Answer(claimtest.Of(1, 5, 0)), claim.OpSet)
	d.Step(d.Lost())
	d.Step(claim.Attached{Session: 1}, claim.OpExists)
	d.Step(d.Answer(claimtest.Of(1, 5, 1)), claim.OpSet)
	d.is(registry.RegistrantState{Session: 1})
	d.Step(d.Answer(claimtest.Of(1, 5, 2)))
	d.is(registry.RegistrantState{Stands: true, Session: 1, Token: 5, Have: 1})
}

// TestRegistrantIsMadeAgain when somebody deletes it, and does not stand before; the
// watch on nothing is given up first.
func TestRegistrantIsMadeAgain(t *testing.T) {
	d := register(t)
	n := d.standing()
	d.Step(fired(n, wire.EventNodeDeleted), claim.OpExists)
	d.is(registry.RegistrantState{Session: 1})
	d.Step(d.Answer(claimtest.None), claim.OpUnwatch, claim.OpCreate)
	d.Step(d.Answer(claim.Result{}, claim.Result{Err: wire.ErrThrottledOp}))
	d.is(registry.RegistrantState{Session: 1})
	d.At += time.Minute
	d.Step(claim.Tick{}, claim.OpExists)
	d.Step(d.Answer(claimtest.None), claim.OpUnwatch, claim.OpCreate)
	d.Step(d.Answer(claim.Result{}, claim.Result{}), claim.OpExists)
	d.is(registry.RegistrantState{Session: 1})
	d.Step(d.Answer(claimtest.Of(1, 9, 0)))
	d.is(registry.RegistrantState{Stands: true, Session: 1, Token: 9, Have: 1})
}

// TestRegistrantFindsItsZnodeGone where the event was of something else.
func TestRegistrantFindsItsZnodeGone(t *testing.T) {
	d := register(t)
	n := d.standing()
	d.Step(fired(n, wire.EventNodeDataChanged), claim.OpExists)
	d.is(registry.RegistrantState{Stands: true, Session: 1, Token: 5, Have: 1}) // as was last seen
	d.Step(d.Answer(claimtest.None), claim.OpUnwatch, claim.OpCreate)
	d.is(registry.RegistrantState{Session: 1})
}

// TestRegistrantDoubtsWhileDisconnected, and asks for nothing when it is back.
func TestRegistrantDoubtsWhileDisconnected(t *testing.T) {
	d := register(t)
	d.standing()
	d.Step(claim.Disconnected{})
	d.is(registry.RegistrantState{Stands: true, Doubtful: true, Session: 1, Token: 5, Have: 1})
	d.Step(claim.Attached{Session: 1})
	d.is(registry.RegistrantState{Stands: true, Session: 1, Token: 5, Have: 1})
}

// TestRegistrantLeavesAForeignZnodeAlone and waits for its event.
func TestRegistrantLeavesAForeignZnodeAlone(t *testing.T) {
	d := register(t)
	d.Step(claim.Attached{Session: 1}, claim.OpCreate)
	d.Step(d.Answer(exists), claim.OpExists)
	d.Step(d.Answer(claimtest.Of(8, 3, 0)))
	d.is(registry.RegistrantState{Session: 1, Owned: true, Owner: 8})
	d.Step(registry.Keep{Data: []byte("two"), N: 2})
	d.Step(fired(d.N, wire.EventNodeDeleted), claim.OpCreate)
	d.Step(d.Answer(exists), claim.OpExists)
	d.Step(d.Answer(claimtest.Of(0, 4, 0)))
	d.is(registry.RegistrantState{Session: 1, Owned: true})
	d.Step(claim.Resign{}, claim.OpSync, claim.OpStat)
	d.Step(d.Answer(claim.Result{}, claimtest.Of(0, 4, 0)))
	d.Ends(claim.Succeeded)
}

// TestRegistrantTakesOverFromItself: in the next session the znode of the one
// before is replaced, by its version, and so is that of a process before; nobody's is not.
func TestRegistrantTakesOverFromItself(t *testing.T) {
	d := register(t, 7, 0)
	n := d.standing()
	d.Step(claim.Expired{})
	d.is(registry.RegistrantState{Session: 1, Err: wire.ErrSessionExpired})
	d.Step(claim.Attached{Session: 2}, claim.OpCreate)
	d.Step(fired(n, 0)) // that of the session before
	for _, owner := range []wire.SessionID{1, 7} {
		d.Step(d.Answer(exists), claim.OpExists)
		d.Step(d.Answer(claimtest.Of(owner, 5, 3)), claim.OpMulti)
		if del := d.Ops[0].Ops[0]; del.Kind != claim.OpDelete || del.Version != 3 {
			t.Errorf("deletes %+v", del)
		}
		d.Step(d.Answer(claim.Result{Err: wire.ErrBadVersion}), claim.OpCreate)
	}
	d.Step(d.Answer(exists), claim.OpExists)
	n = d.N
	d.Step(d.Answer(claimtest.Of(1, 5, 4)), claim.OpMulti)
	d.Step(fired(n, wire.EventNodeDeleted)) // its own doing
	d.Step(d.Answer(claim.Result{}), claim.OpExists)
	d.Step(fired(n, wire.EventNodeDeleted))
	d.Step(d.Answer(claimtest.Of(2, 9, 0)))
	d.is(registry.RegistrantState{Stands: true, Session: 2, Token: 9, Have: 1})

	d = register(t, 0)
	d.Step(claim.Attached{Session: 1}, claim.OpCreate)
	d.Step(d.Answer(exists), claim.OpExists)
	d.Step(d.Answer(claimtest.Of(0, 5, 0)))
}

// TestRegistrantTakesOverInDoubt: it may have, so it looks.
func TestRegistrantTakesOverInDoubt(t *testing.T) {
	d := register(t, 7)
	d.Step(claim.Attached{Session: 1}, claim.OpCreate)
	d.Step(d.Answer(exists), claim.OpExists)
	d.Step(d.Answer(claimtest.Of(7, 5, 0)), claim.OpMulti)
	d.Step(d.Lost())
	d.Step(claim.Attached{Session: 1}, claim.OpExists)
	d.Step(d.Answer(claimtest.Of(1, 6, 0)), claim.OpSet)
}

// TestRegistrantIsRefused and tries again after a while, or when something else
// is wanted.
func TestRegistrantIsRefused(t *testing.T) {
	d := register(t)
	d.Step(claim.Attached{Session: 1}, claim.OpCreate)
	d.Step(d.Answer(claimtest.Refused))
	d.is(registry.RegistrantState{Session: 1, Err: wire.ErrNoAuth})
	d.Step(registry.Keep{Data: []byte("two"), N: 2}, claim.OpCreate)
	d.Step(d.Answer(claimtest.Refused))
	if w := d.Wake; w != registry.RegistrationRetry {
		t.Errorf("wakes in %v", w)
	}
	d.Step(registry.Keep{Data: []byte("one"), N: 1}) // an older one
	d.At = time.Second
	d.Step(claim.Resign{}, claim.OpSync, claim.OpStat)
	d.Step(d.Answer(claim.Result{}, claimtest.None))
	d.Ends(claim.Succeeded)
}

// TestWhoIsRefused, who waits for a foreign znode to go, and who does not.
func TestWhoIsRefused(t *testing.T) {
	for _, c := range []struct {
		s               registry.RegistrantState
		refused, waiter bool // and who waits
	}{
		{registry.RegistrantState{}, false, false}, // nothing is known yet
		{registry.RegistrantState{Stands: true}, false, false},
		{registry.RegistrantState{Stands: true, Doubtful: true}, false, false},
		{registry.RegistrantState{Owned: true, Owner: 8}, true, false},
		{registry.RegistrantState{Err: wire.ErrSessionExpired}, false, false},
		{registry.RegistrantState{Err: wire.ErrNoAuth}, true, true},
		{registry.RegistrantState{Leaving: true}, true, true},
		{registry.RegistrantState{Leaving: true, Err: wire.ErrSessionExpired}, true, true},
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
	d.Step(claim.Attached{Session: 1}, claim.OpCreate)
	d.Step(claim.Resign{})
	d.Step(d.Lost())
	d.Step(claim.Attached{Session: 1}, claim.OpSync, claim.OpStat)
	d.Step(d.Answer(claim.Result{}, claimtest.Of(1, 5, 0)), claim.OpDelete)
	d.Step(d.Lost())
	d.Step(claim.Attached{Session: 1}, claim.OpSync, claim.OpStat)
	d.Step(d.Answer(claim.Result{}, claimtest.None))
	d.Ends(claim.Succeeded)

	d = register(t)
	d.Step(claim.Attached{Session: 1}, claim.OpCreate)
	d.Step(claim.Resign{})
	d.Step(claim.Attached{Session: 2})
	d.Step(d.Answer(claim.Result{})) // of the session before
	d.Ends(claim.Succeeded)

	d = register(t)
	d.Step(claim.Resign{})
	d.Ends(claim.Succeeded)
}

// TestRegistrantsRemovalIsRefused: it says so.
func TestRegistrantsRemovalIsRefused(t *testing.T) {
	d := register(t)
	d.standing()
	d.Step(claim.Resign{}, claim.OpSync, claim.OpStat)
	d.Step(d.Answer(claim.Result{}, claimtest.Of(1, 5, 0)), claim.OpDelete)
	d.Step(d.Answer(claimtest.Refused))
	if d.Ends(claim.Failed); !errors.Is(d.M.(*registry.Registrant).Err(), wire.ErrNoAuth) {
		t.Error(d.M.(*registry.Registrant).Err())
	}
}

// TestRegistrantEndsWithItsClient.
func TestRegistrantEndsWithItsClient(t *testing.T) {
	d := register(t)
	d.standing()
	d.Step(claim.Closed{})
	d.Ends(claim.Failed)
	d.is(registry.RegistrantState{Session: 1, Leaving: true})
}
