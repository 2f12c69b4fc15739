package modeltest

import (
	"testing"

	"bellwether/internal/claim"
	"bellwether/internal/claim/claimtest"
	"bellwether/internal/claim/registry"
	"bellwether/wire"
)

// TestRemoval checks that a removal is repeated after a lost answer, fails if the server refuses it, and succeeds
// if the znode is missing or the session ends.
func TestRemoval(t *testing.T) {
	begun := func() *claimtest.Dialogue {
		d := &claimtest.Dialogue{T: t, M: registry.NewRemoval("/a/m", 1)}
		d.Step(claim.Attached{Session: 1}, claim.OpDelete)
		if op := d.Ops[0]; op.Path != "/a/m" || op.Version != claim.AnyVersion {
			t.Errorf("deletes %+v", op)
		}
		return d
	}
	denied := claim.Result{Err: wire.ErrNoAuth}
	for _, c := range []struct {
		gives claim.Result
		want  claim.Outcome
	}{{claim.Result{}, claim.Succeeded}, {claimtest.None, claim.Succeeded}, {denied, claim.Failed}, {claim.Result{Err: wire.ErrSessionExpired}, claim.Succeeded}} {
		d := begun()
		d.Step(d.Answer(c.gives))
		d.Ends(c.want)
	}
	d := begun()
	d.Step(d.Lost())
	d.Step(claim.Attached{Session: 1}, claim.OpDelete)
	d.Step(d.Answer(claim.Result{Err: wire.ErrThrottledOp}))
	d.At += d.Wake
	d.Step(claim.Tick{}, claim.OpDelete)
	d.Step(d.Answer(claimtest.None))
	d.Ends(claim.Succeeded)

	d = begun()
	d.Step(d.Lost())
	d.Step(claim.Attached{Session: 2}) // the znode is gone
	d.Ends(claim.Succeeded)

	d = begun()
	d.Step(claim.Expired{}) // the answer still arrives
	d.Step(d.Answer(claim.Result{Err: wire.ErrSessionExpired}))
	d.Ends(claim.Succeeded)

	d = begun()
	d.Step(claim.Resign{})
	d.Step(d.Answer(claim.Result{}))
	d.Ends(claim.Succeeded)

	d = begun()
	d.Step(claim.Resign{})
	d.Step(d.Lost())
	d.Ends(claim.Withdrawn)

	d = begun()
	d.Step(claim.Closed{})
	d.Step(d.Answer(claim.Result{Err: wire.ErrClosing}))
	d.Ends(claim.Failed)
}

// TestRemovalOfALaterSession checks that a znode of an ended session counts as removed.
func TestRemovalOfALaterSession(t *testing.T) {
	for _, ev := range []claim.Event{claim.Attached{Session: 2}, claim.Expired{}} {
		d := &claimtest.Dialogue{T: t, M: registry.NewRemoval("/a/m", 1)}
		d.Step(claim.Disconnected{})
		d.Step(ev)
		d.Ends(claim.Succeeded)
	}
}
