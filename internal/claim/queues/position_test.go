package queues

import (
	"testing"

	"bellwether/internal/claim"
	"bellwether/wire"
)

// TestPersistentZnodesInALineAreIgnored checks that a consumer does not wait behind a persistent znode, which no
// session's end deletes, and waits behind the bid of another consumer.
func TestPersistentZnodesInALineAreIgnored(t *testing.T) {
	take := &Take{}
	for _, ahead := range []string{"n-0000000001", "n-0000000002"} {
		take.place.ahead = ahead
		take.tookAhead([]claim.Result{{}})
		if !take.place.persistent || !take.place.ignored[ahead] {
			t.Errorf("%s has no owner: %+v", ahead, take.place)
		}
	}
	take = &Take{}
	take.place.ahead = "n-0000000003"
	take.tookAhead([]claim.Result{{Stat: wire.Stat{EphemeralOwner: 7}}})
	if take.place.persistent || take.place.ignored[take.place.ahead] || !take.place.watch {
		t.Errorf("the bid of session 7: %+v", take.place)
	}
}
