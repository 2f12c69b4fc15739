package lines

import (
	"testing"

	"bellwether/internal/claim"
	"bellwether/wire"
)

// TestLookMustShowTheOwnBid: a look counts without a sync only if it shows this line's bid, with the present
// session as its owner. Otherwise the server may be behind, and the bid may be that of an earlier session.
func TestLookMustShowTheOwnBid(t *testing.T) {
	const bid = "x-n_0000000001"
	own := func(session wire.SessionID) claim.Result {
		return claim.Result{Stat: wire.Stat{EphemeralOwner: session}}
	}
	with, without := claim.Result{Names: []string{"a", bid}}, claim.Result{Names: []string{"a"}}
	none := claim.Result{Err: wire.ErrNoNode}
	for _, c := range []struct {
		name      string
		list, own claim.Result
		misses    bool
	}{
		{"the bid", with, own(2), false},
		{"the bid of an earlier session", with, own(1), true},
		{"a persistent znode", with, own(0), true},
		{"not among the children", without, own(2), true},
		{"the bid is gone", with, none, true},
		{"the parent is gone", none, own(2), true},
		{"refused", claim.Result{Err: wire.ErrNoAuth}, own(2), false},
	} {
		l := &Line{}
		l.Current, l.own.Name = 2, bid
		if got := l.misses(c.list, c.own); got != c.misses {
			t.Errorf("%s: misses %v", c.name, got)
		}
	}
}
