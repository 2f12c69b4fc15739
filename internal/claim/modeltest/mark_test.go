package modeltest

import (
	"testing"

	"bellwether/internal/claim"
	"bellwether/internal/claim/claimtest"
	"bellwether/internal/claim/value"
	"bellwether/wire"
)

// TestMarkOfTheSession checks that the first change of a session creates the mark, and a later one sets it, so
// that neither needs a second try.
func TestMarkOfTheSession(t *testing.T) {
	for session, want := range map[wire.SessionID]claim.OpKind{1: claim.OpSet, 2: claim.OpCreate} {
		m := value.NewChange(value.ChangeConfig{Path: modelValue, Mark: modelValue + "/m"}, value.Mark{Session: 1})
		d := &claimtest.Dialogue{T: t, M: m}
		d.Step(claim.Attached{Session: session}, claim.OpGet)
		d.Step(d.Answer(claim.Result{Data: []byte("5"), Stat: wire.Stat{Version: 7}}))
		d.Step(value.Propose{Data: []byte("6")}, claim.OpMulti)
		ops := d.Ops[0].Ops
		if last := ops[len(ops)-1]; last.Path != modelValue+"/m" || last.Kind != want {
			t.Errorf("session %d: %v of %s, want %v", session, last.Kind, last.Path, want)
		}
	}
}
