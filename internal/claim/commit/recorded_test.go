package commit

import (
	"math/rand/v2"
	"testing"

	"bellwether/internal/claim/claimtest"
)

// TestRecordedHistories plays histories that were recorded: the coordinator and the sites ask for the same in the same situation, wait as
// long, tell the same, and have the same state.
func TestRecordedHistories(t *testing.T) {
	claimtest.Recorded(t, "transaction", func(seed uint64, h *claimtest.History) {
		r := rand.New(rand.NewPCG(seed, 14))
		w := newTxWorld(modelSites, seed%2 == 0, r.IntN, txBroken{})
		w.history, w.refuses = h, claimtest.Refuses(seed)
		if w.faults(300); w.refuses == 0 {
			w.fail(t)
		}
	})
}
