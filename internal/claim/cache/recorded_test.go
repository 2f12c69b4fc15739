package cache

import (
	"testing"

	"bellwether/internal/claim/claimtest"
)

// TestRecordedHistories plays histories that were recorded: the cache asks for the same and reports the same in the same situation.
func TestRecordedHistories(t *testing.T) {
	claimtest.Recorded(t, "cache", func(seed uint64, h *claimtest.History) {
		w := newCacheWorld(seededChoice(seed))
		w.history, w.refuses = h, claimtest.Refuses(seed)
		if w.run(500); w.refuses == 0 {
			w.fail(t)
		}
	})
}
