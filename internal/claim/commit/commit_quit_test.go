package commit

import (
	"errors"
	"testing"
	"time"

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

// looking returns the dialogue of a site that has looked at a transaction whose data is tx, with a coordinator that
// lives. It asks for the given operations.
func looking(t *testing.T, cfg Config, tx []byte, then ...claim.OpKind) (*claimtest.Dialogue, *Site) {
	cfg.Path = "/tx"
	s := NewSite(cfg)
	d := &claimtest.Dialogue{T: t, M: s}
	d.Step(claim.Attached{Session: 1}, claim.OpSync, claim.OpWatch, claim.OpGet, claim.OpGet, claim.OpGet, claim.OpGet)
	d.Step(d.Answer(claim.Result{}, claimtest.Of(3, 5, 0), claimtest.None, claimtest.None, claimtest.None, claim.Result{Data: tx}), then...)
	return d, s
}

// TestSiteThatIsNotAsked checks that a site takes no part in a transaction that does not name it, nor in one whose data
// cannot be read.
func TestSiteThatIsNotAsked(t *testing.T) {
	_, s := looking(t, Config{Site: "b"}, Transaction{Sites: []string{"a"}}.Encode())
	if got := s.State(); got.Phase != TxOver || got.Err != nil {
		t.Errorf("%+v", got)
	}
	_, s = looking(t, Config{Site: "a"}, []byte("not a transaction"))
	var data *claim.DataError
	if got := s.State(); got.Phase != TxOver || !errors.As(got.Err, &data) || data.Path != "/tx" {
		t.Errorf("%+v", got)
	}
}

// TestPatience checks that the time of Patience begins with the first look that shows the transaction, and that without
// Patience it never ends.
func TestPatience(t *testing.T) {
	tx := Transaction{Sites: []string{"a"}}.Encode()
	for _, c := range []struct {
		patience, at time.Duration
		out          bool
	}{
		{20 * time.Second, 20*time.Second - 1, false},
		{20 * time.Second, 20 * time.Second, true},
		{0, 0, false},
		{0, time.Hour, false},
	} {
		d, s := looking(t, Config{Site: "a", Patience: c.patience}, tx, claim.OpCreate)
		d.At = c.at
		d.Step(claim.Tick{})
		if got := s.timedOut(); got != c.out {
			t.Errorf("%v after the look, with %v of patience: timed out %v", c.at, c.patience, got)
		}
	}
}

// TestTakeoverIsRefused checks that a coordinator that may not take the place of the one that is gone ends with the
// server's error.
func TestTakeoverIsRefused(t *testing.T) {
	c := NewCoordinator(Config{Path: "/tx", Transaction: Transaction{Sites: []string{"a"}}})
	d := &claimtest.Dialogue{T: t, M: c}
	d.Step(claim.Attached{Session: 1}, claim.OpMulti)
	d.Step(d.Lost())
	d.Step(claim.Attached{Session: 1}, claim.OpSync, claim.OpWatch, claim.OpGet, claim.OpGet, claim.OpGet, claim.OpGet)
	tx := claim.Result{Data: Transaction{Sites: []string{"a"}}.Encode()}
	d.Step(d.Answer(claim.Result{}, claimtest.None, claimtest.None, claimtest.None, claimtest.None, tx), claim.OpCreate)
	d.Step(d.Answer(claimtest.Refused))
	if s := c.State(); s.Phase != TxOver || s.Err != wire.ErrNoAuth {
		t.Errorf("%+v", s)
	}
}

// TestTransactionWithForeignZnodesStays checks that a party that cannot remove a transaction, because a znode of another
// program is below it, tries once more only if its children have changed.
func TestTransactionWithForeignZnodesStays(t *testing.T) {
	_, s := looking(t, Config{Site: "a"}, Transaction{Sites: []string{"a"}}.Encode(), claim.OpCreate)
	s.decision = Abort
	list := func(names ...string) { s.tookList([]claim.Result{{}, {Names: names}}) }
	stuck := func() { s.tookSweep([]claim.Result{{Err: wire.ErrNotEmpty}}) }
	for _, names := range [][]string{{"done_", "foreign"}, {"done_", "foreign", "later"}} {
		if list(names...); s.Over() {
			t.Fatalf("%q: it ends without a try to remove them", names)
		}
		if stuck(); s.Over() {
			t.Fatalf("%q: it ends without a look whether they have changed", names)
		}
	}
	if list("later", "done_", "foreign"); s.Outcome() != claim.Succeeded {
		t.Errorf("it goes on, and the same znodes are there: %v", s.Outcome())
	}
}
