package claim

import (
	"errors"
	"testing"

	"bellwether/wire"
)

// talking is a part that a dialogue can be had with.
type talking struct{ *commit }

func (p talking) Over() bool            { return p.phase == TxOver }
func (p talking) Outcome() Outcome      { return 0 }
func (p talking) Doubt() wire.SessionID { return 0 }
func (p talking) Err() error            { return p.err }

// TestRefusedCoordinatorLeavesAnothersPlace: what stands where its own znode may have
// been is looked at, and taken away only if it is this session's.
func TestRefusedCoordinatorLeavesAnothersPlace(t *testing.T) {
	for owner, then := range map[wire.SessionID][]OpKind{1: {OpDelete}, 2: nil} {
		c := NewCoordinator(CommitConfig{Path: "/tx", Transaction: Transaction{Sites: []string{"a"}}})
		d := dialogue{t: t, m: talking{&c.commit}}
		d.step(Attached{Session: 1}, OpMulti)
		d.step(d.answer(Result{}), OpSync, OpWatch, OpGet, OpGet, OpGet, OpGet)
		d.step(d.answer(Result{}, refused, refused, refused, refused, refused), OpSync, OpStat, OpStat)
		d.step(d.answer(Result{}, of(owner, 5, 0), none), then...)
		if then != nil {
			d.step(d.answer(Result{}))
		}
		if s := c.State(); s.Phase != TxOver || !errors.Is(s.Err, wire.ErrNoAuth) {
			t.Errorf("of session %d: %+v", owner, s)
		}
	}
}

// TestSiteThatGivesUpKeepsItsVote, and looks again where it cannot know what became
// of a request.
func TestSiteThatGivesUpKeepsItsVote(t *testing.T) {
	tx := Result{Data: Transaction{Sites: []string{"a"}}.Encode()}
	s := NewSite(CommitConfig{Path: "/tx", Site: "a"})
	d := dialogue{t: t, m: talking{&s.commit}}
	d.step(Attached{Session: 1}, OpSync, OpWatch, OpGet, OpGet, OpGet, OpGet)
	d.step(d.answer(Result{}, of(3, 5, 0), none, none, none, tx), OpCreate)
	d.step(Resign{})
	d.step(Disconnected{})
	d.step(d.lost())
	d.step(Attached{Session: 1}, OpSync, OpStat, OpStat)
	d.step(d.answer(Result{}, of(3, 5, 0), of(1, 6, 0)), OpDelete)
	d.step(d.answer(Result{Err: wire.ErrBadVersion})) // it has voted
	if got := s.State(); got.Phase != TxOver || got.Err != nil || !got.Withdrawn {
		t.Errorf("%+v", got)
	}
}
