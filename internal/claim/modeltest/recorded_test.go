package modeltest

import (
	"testing"

	"bellwether/internal/claim/claimtest"
)

// recordedSteps is how many random steps a recorded history has.
const recordedSteps = 500

// TestRecordedHistories plays histories that were recorded, of every kind of operation: each machine asks for the same in the same
// situation, waits as long, tells the same, and ends in the same way.
func TestRecordedHistories(t *testing.T) {
	for name, world := range map[string]func(choose func(int) int) (w *singleWorld, run func(steps int)){
		"queue-taken": func(choose func(int) int) (*singleWorld, func(int)) {
			w := newQueueWorld(choose, singleBroken{}, "")
			return w.singleWorld, w.run
		},
		"queue-acknowledged": func(choose func(int) int) (*singleWorld, func(int)) {
			w := newQueueWorld(choose, singleBroken{}, modelClaims)
			return w.singleWorld, w.run
		},
		"queue-late": func(choose func(int) int) (*singleWorld, func(int)) {
			w := newLateWorld(choose, singleBroken{}, false)
			return w.singleWorld, w.run
		},
		"counter": func(choose func(int) int) (*singleWorld, func(int)) {
			w := newCounterWorld(choose, singleBroken{})
			return w.singleWorld, w.run
		},
		"numbers": func(choose func(int) int) (*singleWorld, func(int)) {
			w := newNumbersWorld(choose, singleBroken{})
			return w, func(steps int) {
				for range steps {
					w.act()
				}
				w.settle()
			}
		},
		"configuration": func(choose func(int) int) (*singleWorld, func(int)) {
			w := newConfigWorld(choose, singleBroken{})
			return w.singleWorld, w.run
		},
		"barrier": func(choose func(int) int) (*singleWorld, func(int)) {
			w := newBarrierWorld(choose, singleBroken{})
			return w.singleWorld, w.run
		},
		"double-barrier": func(choose func(int) int) (*singleWorld, func(int)) {
			w := newRoundsWorld(choose, singleBroken{}, 4, 3)
			return w.singleWorld, w.run
		},
		"members": func(choose func(int) int) (*singleWorld, func(int)) {
			w := newGateWorld(choose, singleBroken{}, 4, 3)
			return w.singleWorld, w.run
		},
		"registration": func(choose func(int) int) (*singleWorld, func(int)) {
			w := newPlaceWorld(choose, singleBroken{}, 3)
			return w.singleWorld, w.run
		},
	} {
		t.Run(name, func(t *testing.T) {
			claimtest.Recorded(t, name, func(seed uint64, h *claimtest.History) {
				w, run := world(seededChoice(seed))
				w.history, w.refuses = h, claimtest.Refuses(seed)
				if run(recordedSteps); w.wrong != "" && w.refuses == 0 {
					t.Fatal(w.wrong)
				}
			})
		})
	}
}
