package share

import (
	"testing"

	"pgregory.net/rapid"

	"bellwether/internal/claim/claimtest"
)

// TestRecordedHistories plays histories that were recorded: a member starts and ends the same in the same situation.
func TestRecordedHistories(t *testing.T) {
	claimtest.Recorded(t, "sharing", func(seed uint64, h *claimtest.History) {
		rapid.Custom(func(t *rapid.T) int {
			w := &shareWorld{T: t, tasks: seed%2 == 0, most: int(seed/2) % 3, history: h,
				members: map[string]bool{}, parts: map[string]bool{"p0": true, "p1": true, "p2": true}, made: map[string]int{}}
			for _, id := range []string{"a", "b", "c"} {
				p := &partner{w: w, id: id}
				w.partners = append(w.partners, p)
				p.begin()
			}
			for range 200 {
				w.act()
			}
			w.rest()
			return 0
		}).Example(int(seed))
	})
}
