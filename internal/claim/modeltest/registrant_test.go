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

// is fails the test unless the registrant has this state.
func (d *registering) is(want registry.RegistrantState) {
	d.T.Helper()
	if got := d.state(); got != want {
		d.T.Errorf("%+v, want %+v", got, want)
	}
}

// fired returns an event of the watch that the request with this number has set.
func fired(n uint64, t wire.EventType) claim.Fired {
	return claim.Fired{Path: modelPlace, Type: t, N: n}
}

var (
	exists = claim.Result{Err: wire.ErrNodeExists}
)

// standing lets the registrant stand in session 1, with the zxid 5 and version 0, and returns the number
// of the request that set its watch.
func (d *registering) standing() uint64 {
	d.T.Helper()
	d.Step(claim.Attached{Session: 1}, claim.OpCreate)
	d.Step(d.Answer(claim.Result{}), claim.OpExists)
	d.Step(d.Answer(claimtest.Of(1, 5, 0)))
	d.is(registry.RegistrantState{Stands: true, Session: 1, Token: 5, Have: 1})
	return d.N
}

// TestRegistrantStands checks that a registrant needs two requests to stand and one to change its data,
// and that it deletes its znode when it resigns.
func TestRegistrantStands(t *testing.T) {
	d := register(t)
	n := d.standing()
	d.Step(registry.Keep{Data: []byte("two"), N: 2}, claim.OpSet)
	d.Step(fired(n, wire.EventNodeDataChanged)) // the event of its own write
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

// TestRegistrantMakesParents checks that a registrant creates missing parents once. If they are deleted
// again, it counts that as a refusal and waits before the next try.
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

// TestRegistrantLooksAfterALostAnswer checks that a registrant reads its znode after a lost answer, and
// then writes its data again, because the znode may hold other data.
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

// TestRegistrantIsMadeAgain checks that a registrant whose znode somebody deletes creates it again, and
// does not stand until then. It first removes the watch that it has set on the missing znode.
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

// TestRegistrantFindsItsZnodeGone checks that a read finds the znode deleted, although the event reported
// another change.
func TestRegistrantFindsItsZnodeGone(t *testing.T) {
	d := register(t)
	n := d.standing()
	d.Step(fired(n, wire.EventNodeDataChanged), claim.OpExists)
	d.is(registry.RegistrantState{Stands: true, Session: 1, Token: 5, Have: 1}) // the state that was last read
	d.Step(d.Answer(claimtest.None), claim.OpUnwatch, claim.OpCreate)
	d.is(registry.RegistrantState{Session: 1})
}

// TestRegistrantDoubtsWhileDisconnected checks that a registration counts as doubtful while the connection
// is lost, and that the registrant requests nothing after a reconnect.
func TestRegistrantDoubtsWhileDisconnected(t *testing.T) {
	d := register(t)
	d.standing()
	d.Step(claim.Disconnected{})
	d.is(registry.RegistrantState{Stands: true, Doubtful: true, Session: 1, Token: 5, Have: 1})
	d.Step(claim.Attached{Session: 1})
	d.is(registry.RegistrantState{Stands: true, Session: 1, Token: 5, Have: 1})
}

// TestRegistrantLeavesAForeignZnodeAlone checks that a registrant does not change another owner's znode,
// and waits for its event.
func TestRegistrantLeavesAForeignZnodeAlone(t *testing.T) {
	d := register(t)
	d.Step(claim.Attached{Session: 1}, claim.OpCreate)
	d.Step(d.Answer(exists), claim.OpExists)
	d.Step(d.Answer(claimtest.Of(8, 3, 0)))
	d.is(registry.RegistrantState{Session: 1, Foreign: true, Owner: 8})
	d.Step(registry.Keep{Data: []byte("two"), N: 2})
	d.Step(fired(d.N, wire.EventNodeDeleted), claim.OpCreate)
	d.Step(d.Answer(exists), claim.OpExists)
	d.Step(d.Answer(claimtest.Of(0, 4, 0)))
	d.is(registry.RegistrantState{Session: 1, Foreign: true})
	d.Step(claim.Resign{}, claim.OpSync, claim.OpStat)
	d.Step(d.Answer(claim.Result{}, claimtest.Of(0, 4, 0)))
	d.Ends(claim.Succeeded)
}

// TestRegistrantTakesOverFromItself checks that a registrant replaces the znode of its previous session
// or of an earlier process, with a check of the version. It does not replace a znode without an owner.
func TestRegistrantTakesOverFromItself(t *testing.T) {
	d := register(t, 7, 0)
	n := d.standing()
	d.Step(claim.Expired{})
	d.is(registry.RegistrantState{Session: 1, Err: wire.ErrSessionExpired})
	d.Step(claim.Attached{Session: 2}, claim.OpCreate)
	d.Step(fired(n, 0)) // an event of the watch of the previous session
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
	d.Step(fired(n, wire.EventNodeDeleted)) // the event of its own deletion
	d.Step(d.Answer(claim.Result{}), claim.OpExists)
	d.Step(fired(n, wire.EventNodeDeleted))
	d.Step(d.Answer(claimtest.Of(2, 9, 0)))
	d.is(registry.RegistrantState{Stands: true, Session: 2, Token: 9, Have: 1})

	d = register(t, 0)
	d.Step(claim.Attached{Session: 1}, claim.OpCreate)
	d.Step(d.Answer(exists), claim.OpExists)
	d.Step(d.Answer(claimtest.Of(0, 5, 0)))
}

// TestRegistrantTakesOverInDoubt checks that a registrant that does not know whether it has replaced the
// znode reads it.
func TestRegistrantTakesOverInDoubt(t *testing.T) {
	d := register(t, 7)
	d.Step(claim.Attached{Session: 1}, claim.OpCreate)
	d.Step(d.Answer(exists), claim.OpExists)
	d.Step(d.Answer(claimtest.Of(7, 5, 0)), claim.OpMulti)
	d.Step(d.Lost())
	d.Step(claim.Attached{Session: 1}, claim.OpExists)
	d.Step(d.Answer(claimtest.Of(1, 6, 0)), claim.OpSet)
}

// TestRegistrantIsRefused checks that a registrant that was refused tries again after a pause, or when it
// is given new data.
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
	d.Step(registry.Keep{Data: []byte("one"), N: 1}) // older data than the current
	d.At = time.Second
	d.Step(claim.Resign{}, claim.OpSync, claim.OpStat)
	d.Step(d.Answer(claim.Result{}, claimtest.None))
	d.Ends(claim.Succeeded)
}

// TestWhoIsRefused checks which states count as refused, both for a caller that waits for another owner's
// znode to be deleted and for one that does not.
func TestWhoIsRefused(t *testing.T) {
	for _, c := range []struct {
		s               registry.RegistrantState
		refused, waiter bool // waiter: the result for a caller that waits
	}{
		{registry.RegistrantState{}, false, false}, // nothing is known yet
		{registry.RegistrantState{Stands: true}, false, false},
		{registry.RegistrantState{Stands: true, Doubtful: true}, false, false},
		{registry.RegistrantState{Foreign: true, Owner: 8}, true, false},
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

// TestRegistrantResignsInDoubt checks a registrant that resigns after the answer to its create was lost.
// It finds the znode after a sync. If its session has ended, it does not look for one.
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
	d.Step(d.Answer(claim.Result{})) // the answer of the previous session
	d.Ends(claim.Succeeded)

	d = register(t)
	d.Step(claim.Resign{})
	d.Ends(claim.Succeeded)
}

// TestRegistrantsRemovalIsRefused checks that a registrant reports the error of a refused deletion.
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

// TestRegistrantEndsWithItsClient checks that a registrant ends when its client is closed.
func TestRegistrantEndsWithItsClient(t *testing.T) {
	d := register(t)
	d.standing()
	d.Step(claim.Closed{})
	d.Ends(claim.Failed)
	d.is(registry.RegistrantState{Session: 1, Leaving: true})
}

// TestRegistrantMayNotCreate checks that a registrant that may not create its znode or its parents reports why, and tries
// again after RegistrationRetry.
func TestRegistrantMayNotCreate(t *testing.T) {
	for _, c := range []struct {
		create, parents, want error
	}{
		{wire.ErrNoAuth, nil, wire.ErrNoAuth},
		{wire.ErrNoNode, wire.ErrNoAuth, wire.ErrNoAuth},
		{wire.ErrNoNode, wire.ErrNoNode, registry.ErrNoParent}, // a parent was deleted while others were created
	} {
		d := register(t)
		d.Step(claim.Attached{Session: 1}, claim.OpCreate)
		if c.parents == nil {
			d.Step(d.Answer(claim.Result{Err: c.create}))
		} else {
			d.Step(d.Answer(claim.Result{Err: c.create}), claim.OpParents)
			d.Step(d.Answer(claim.Result{Err: c.parents}))
		}
		if s := d.state(); s.Stands || !errors.Is(s.Err, c.want) {
			t.Errorf("%+v: %+v", c, s)
		}
		d.At = registry.RegistrationRetry - time.Millisecond
		d.Step(claim.Tick{})
		d.At = registry.RegistrationRetry
		d.Step(claim.Tick{}, claim.OpCreate)
	}
}
