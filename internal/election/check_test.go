package election

import (
	"fmt"
	"testing"

	"bellwether/internal/ensemble"
	"bellwether/internal/peerwire"
	"bellwether/wire"
)

// check returns the first invariant of the Election that does not hold, or an empty text. round is the
// round before the last step.
func (e *Election) check(round wire.Epoch) string {
	idle := e.resendAt == Never && e.settleAt == Never && e.settleBy == Never && e.againAt == Never && e.splitAt == Never
	switch {
	case e.state == peerwire.Looking && e.round < round:
		return fmt.Sprintf("round %d follows round %d", e.round, round)
	case e.state != peerwire.Looking && !idle:
		return fmt.Sprintf("a wait of the search runs in the role %v", e.state)
	case e.state == peerwire.Looking && e.dialBy != Never:
		return fmt.Sprintf("a dial is due at %d while the server looks", e.dialBy)
	case e.settleAt != Never && e.settleBy == Never:
		return fmt.Sprintf("a wait ends at %d, and the round has no limit", e.settleAt)
	case len(e.supporters) > 0 && e.state != peerwire.Leading:
		return fmt.Sprintf("supporters %v in the role %v", e.supporters, e.state)
	case e.state == peerwire.Leading && !e.supporters[e.id]:
		return "a leader that does not support itself"
	case e.next != nil && e.next.Version() <= e.committed.Version():
		return fmt.Sprintf("the proposed version %d is not newer than %d", e.next.Version(), e.committed.Version())
	}
	return ""
}

// TestCheckFindsBrokenElections shows that check notices each invariant that is broken.
func TestCheckFindsBrokenElections(t *testing.T) {
	for name, broken := range map[string]func(e *Election){
		"round":      func(e *Election) { e.round = 1 },
		"wait":       func(e *Election) { e.state = peerwire.Following; e.splitAt = 5 },
		"dial":       func(e *Election) { e.dialBy = 5 },
		"limit":      func(e *Election) { e.settleAt = 5; e.settleBy = Never },
		"supporters": func(e *Election) { e.supporters = map[ensemble.ServerID]bool{2: true} },
		"membership": func(e *Election) { e.next = e.committed },
	} {
		e := New(Options{ID: 1, Committed: plain(0, 3)})
		e.Step(0, Look{Zxid: 0x100000001, Epoch: 1, Why: "started"})
		e.Ready()
		e.round = 2
		if wrong := e.check(2); wrong != "" {
			t.Fatal(wrong)
		}
		if broken(e); e.check(2) == "" {
			t.Errorf("%s: check has not noticed the broken invariant", name)
		}
	}
}
