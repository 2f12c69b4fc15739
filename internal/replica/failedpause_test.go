package replica

import (
	"testing"

	"bellwether/internal/ensemble"
)

// TestPausesBeginAgainWithEachFailedTerm: each failed term begins the pauses of all failed
// candidates again. Until its pause is over, other candidates are preferred to a failed one.
func TestPausesBeginAgainWithEachFailedTerm(t *testing.T) {
	m := &member{failed: failedTerms{
		4: {times: 1, at: 2000},
		5: {times: 2, at: 1000},
		3: {times: 3, at: 1500, ours: true},
	}}
	until := map[ensemble.ServerID]int64{}
	for _, f := range m.failedCandidates(2000) {
		until[f.Candidate] = f.Until
	}
	if until[4] != 3000 || until[5] != 4000 || until[3] > 2000 {
		t.Errorf("%v", until)
	}
}
