package cache

import (
	"fmt"
	"testing"

	"bellwether/internal/claim/claimtest"
)

// TestRecordedHistories plays histories that were recorded: the cache asks for the same and reports the same in the same situation.
func TestRecordedHistories(t *testing.T) {
	for seed := range uint64(4) {
		w := newCacheWorld(seededChoice(seed))
		w.history = new(claimtest.History)
		w.run(200)
		w.fail(t)
		w.history.Match(t, fmt.Sprint("cache-", seed))
	}
}
