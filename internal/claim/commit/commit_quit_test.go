package commit

import (
	"errors"
	"testing"

	"bellwether/internal/claim"
	"bellwether/internal/claim/claimtest"
	"bellwether/wire"
)

// TestRefusedCoordinatorLeavesAnothersPlace checks that a refused coordinator reads its znode and deletes
// it only if its own session owns it.
func TestRefusedCoordinatorLeavesAnothersPlace(t *testing.T) {
	for owner, then := range map[wire.SessionID][]claim.OpKind{1: {claim.OpDelete}, 2: nil} {
		c := NewCoordinator(Config{Path: "/tx", Transaction: Transaction{Sites: []string{"a"}}})
		d := claimtest.Dialogue{T: t, M: c}
		d.Step(claim.Attached{Session: 1}, claim.OpMulti)
		d.Step(d.Answer(claim.Result{}), claim.OpSync, claim.OpWatch, claim.OpGet, claim.OpGet, claim.OpGet, claim.OpGet)
		d.Step(d.Answer(claim.Result{}, claimtest.Refused, claimtest.Refused, claimtest.Refused, claimtest.Refused, claimtest.Refused), claim.OpSync, claim.OpStat, claim.OpStat)
		d.Step(d.Answer(claim.Result{}, claimtest.Of(owner, 5, 0), claimtest.None), then...)
		if then != nil {
			d.Step(d.Answer(claim.Result{}))
		}
		if s := c.State(); s.Phase != TxOver || !errors.Is(s.Err, wire.ErrNoAuth) {
			t.Errorf("of session %d: %+v", owner, s)
		}
	}
}

// TestSiteThatGivesUpKeepsItsVote checks that a site that gives up reads its znode again if the outcome of a
// request is unknown, and ends without an error if its vote keeps the znode from being deleted.
func TestSiteThatGivesUpKeepsItsVote(t *testing.T) {
	tx := claim.Result{Data: Transaction{Sites: []string{"a"}}.Encode()}
	s := NewSite(Config{Path: "/tx", Site: "a"})
	d := claimtest.Dialogue{T: t, M: s}
	d.Step(claim.Attached{Session: 1}, claim.OpSync, claim.OpWatch, claim.OpGet, claim.OpGet, claim.OpGet, claim.OpGet)
	d.Step(d.Answer(claim.Result{}, claimtest.Of(3, 5, 0), claimtest.None, claimtest.None, claimtest.None, tx), claim.OpCreate)
	d.Step(claim.Resign{})
	d.Step(claim.Disconnected{})
	d.Step(d.Lost())
	d.Step(claim.Attached{Session: 1}, claim.OpSync, claim.OpStat, claim.OpStat)
	d.Step(d.Answer(claim.Result{}, claimtest.Of(3, 5, 0), claimtest.Of(1, 6, 0)), claim.OpDelete)
	d.Step(d.Answer(claim.Result{Err: wire.ErrBadVersion})) // the site has voted
	if got := s.State(); got.Phase != TxOver || got.Err != nil || !got.Withdrawn {
		t.Errorf("%+v", got)
	}
}
