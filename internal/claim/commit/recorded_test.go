package commit

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"bellwether/internal/claim/claimtest"
)

// TestRecordedHistories plays histories that were recorded: the coordinator and the sites ask for the same in the same situation, wait as
// long, tell the same, and have the same state.
func TestRecordedHistories(t *testing.T) {
	for seed := range uint64(4) {
		r := rand.New(rand.NewPCG(seed, 14))
		w := begunTx(seed%2 == 0, r.IntN, txBroken{})
		w.history = new(claimtest.History)
		w.faults(200)
		w.fail(t)
		w.history.Match(t, fmt.Sprint("transaction-", seed))
	}
}
