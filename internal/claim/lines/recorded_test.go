package lines

import (
	"strings"
	"testing"

	"bellwether/internal/claim"
	"bellwether/internal/claim/claimtest"
)

// TestRecordedHistories plays histories that were recorded, of elections and of each kind of lock: a candidate asks for the same in the
// same situation, waits as long, tells the same, and has the same state.
func TestRecordedHistories(t *testing.T) {
	claimtest.Recorded(t, "election", func(seed uint64, h *claimtest.History) {
		w := seeded(seed, broken{})
		w.history, w.refuses = h, claimtest.Refuses(seed)
		if w.run(400, claim.Own, claim.Own, claim.CuratorLatch, claim.KazooLock); w.refuses == 0 {
			w.fail(t)
		}
	})
	for _, x := range lockWorlds {
		claimtest.Recorded(t, strings.NewReplacer(" ", "-", "'", "").Replace(x.name), func(seed uint64, h *claimtest.History) {
			w := seeded(seed, broken{})
			w.history, w.refuses = h, claimtest.Refuses(seed)
			if w.runLocks(400, x.leases, x.places...); w.refuses == 0 {
				w.fail(t)
			}
		})
	}
}
