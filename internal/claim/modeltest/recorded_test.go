package modeltest

import (
	"fmt"
	"testing"

	"bellwether/internal/claim/claimtest"
)

// TestRecordedHistories plays histories that were recorded, of every kind of operation: each machine asks for the same in the same
// situation, waits as long, tells the same, and ends in the same way.
func TestRecordedHistories(t *testing.T) {
	for name, run := range map[string]func(seed uint64, h *claimtest.History){
		"queue-taken": func(seed uint64, h *claimtest.History) {
			recordQueue(newQueueWorld(seededChoice(seed), singleBroken{}, ""), h)
		},
		"queue-acknowledged": func(seed uint64, h *claimtest.History) {
			recordQueue(newQueueWorld(seededChoice(seed), singleBroken{}, modelClaims), h)
		},
		"queue-late": func(seed uint64, h *claimtest.History) {
			recordQueue(newLateWorld(seededChoice(seed), singleBroken{}, false), h)
		},
		"counter": func(seed uint64, h *claimtest.History) {
			w := newCounterWorld(seededChoice(seed), singleBroken{})
			w.history = h
			w.run(300)
		},
		"numbers": func(seed uint64, h *claimtest.History) {
			w := newNumbersWorld(seededChoice(seed), singleBroken{})
			w.history = h
			for range 300 {
				w.act()
			}
			w.settle()
		},
		"configuration": func(seed uint64, h *claimtest.History) {
			w := newConfigWorld(seededChoice(seed), singleBroken{})
			w.history = h
			w.run(300)
		},
		"barrier": func(seed uint64, h *claimtest.History) {
			w := newBarrierWorld(seededChoice(seed), singleBroken{})
			w.history = h
			w.run(300)
		},
		"double-barrier": func(seed uint64, h *claimtest.History) {
			w := newRoundsWorld(seededChoice(seed), singleBroken{}, 4, 3)
			w.history = h
			w.run(300)
		},
		"members": func(seed uint64, h *claimtest.History) {
			w := newGateWorld(seededChoice(seed), singleBroken{}, 4, 3)
			w.history = h
			w.run(300)
		},
		"registration": func(seed uint64, h *claimtest.History) {
			w := newPlaceWorld(seededChoice(seed), singleBroken{}, 3)
			w.history = h
			w.run(300)
		},
	} {
		for seed := range uint64(2) {
			t.Run(fmt.Sprint(name, "-", seed), func(t *testing.T) {
				h := new(claimtest.History)
				run(seed, h)
				h.Match(t, fmt.Sprint(name, "-", seed))
			})
		}
	}
}

func recordQueue(w *queueWorld, h *claimtest.History) {
	w.history = h
	w.run(300)
}
