package lines

import (
	"fmt"
	"testing"

	"bellwether/internal/claim"
	"bellwether/internal/claim/claimtest"
)

// TestRecordedHistories plays histories that were recorded, of elections and of each kind of lock: a candidate asks for the same in the
// same situation, waits as long, tells the same, and has the same state.
func TestRecordedHistories(t *testing.T) {
	for seed := range uint64(3) {
		w := seeded(seed, broken{})
		w.history = new(claimtest.History)
		w.run(250, claim.Own, claim.Own, claim.CuratorLatch, claim.KazooLock)
		w.fail(t)
		w.history.Match(t, fmt.Sprint("election-", seed))
	}
	for i, x := range lockWorlds {
		for seed := range uint64(1) {
			w := seeded(seed, broken{})
			w.history = new(claimtest.History)
			w.runLocks(250, x.leases, x.places...)
			w.fail(t)
			w.history.Match(t, fmt.Sprint("lock-", i, "-", seed))
		}
	}
}
