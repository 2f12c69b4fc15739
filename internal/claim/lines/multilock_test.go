package lines

import (
	"errors"
	"testing"

	"bellwether/internal/claim"
	"bellwether/internal/claim/claimtest"
)

// takes steps a MultiLock event by event.
type takes struct {
	t *testing.T
	m *MultiLock
}

func several(t *testing.T, paths ...string) *takes {
	d := &takes{t, NewMultiLock(paths)}
	d.wants("take /a")
	return d
}

// step steps an event, and fails unless exactly these operations begin.
func (d *takes) step(ev claim.Event, starts ...string) {
	d.t.Helper()
	d.m.Step(claim.Moment{}, ev)
	d.wants(starts...)
}

func (d *takes) wants(starts ...string) {
	d.t.Helper()
	claimtest.WantStarts(d.t, d.m.Ready().Start, starts)
}

// is fails unless Held, Over and Err have these values.
func (d *takes) is(held, over bool, err error) {
	d.t.Helper()
	if d.m.Held() != held || d.m.Over() != over || !errors.Is(d.m.Err(), err) || err == nil && d.m.Err() != nil {
		d.t.Errorf("held %v, over %v by %v", d.m.Held(), d.m.Over(), d.m.Err())
	}
}

// TestMultiLockFromBeginToEnd checks that locks are taken in the order of their paths, and given back in
// reverse order.
func TestMultiLockFromBeginToEnd(t *testing.T) {
	d := several(t, "/c", "/a", "/b")
	d.step(LockTaken{"/a"}, "take /b")
	d.step(LockTaken{"/b"}, "take /c")
	d.is(false, false, nil)
	d.step(LockTaken{"/c"})
	d.is(true, false, nil)
	d.step(claim.Resign{}, "give back /c", "give back /b", "give back /a")
	d.is(false, false, nil)
	d.step(claim.Resign{Err: claimtest.ErrRefused})
	d.step(LockGone{"/b"})
	d.step(LockLost{"/a"})
	d.step(LockGone{"/a"})
	d.is(false, false, nil)
	d.step(LockGone{"/c"})
	d.is(false, true, nil)
	d.step(claim.Resign{Err: claimtest.ErrRefused})
	d.is(false, true, nil)
}

// TestMultiLockBeginsAgain checks that after a loss all locks are given back and then taken again.
func TestMultiLockBeginsAgain(t *testing.T) {
	d := several(t, "/b", "/a")
	d.step(LockTaken{"/a"}, "take /b")
	d.step(LockLost{"/a"}, "stop taking /b", "give back /a")
	d.step(LockLost{"/a"})
	d.step(LockGone{"/a"})
	d.step(LockRefused{"/b", errors.New("stopped")}, "take /a")
	d.step(LockTaken{"/a"}, "take /b")
	d.step(LockLost{"/a"}, "stop taking /b", "give back /a")
	d.step(LockTaken{"/b"}, "give back /b") // the lock was taken before it could be stopped
	d.step(LockGone{"/a"})
	d.step(LockGone{"/b"}, "take /a")
	d.step(LockLost{"/a"}, "stop taking /a") // the lock was lost as soon as it was taken
	d.step(LockTaken{"/a"}, "give back /a")
	d.step(LockGone{"/a"}, "take /a")
	d.is(false, false, nil)
}

// TestMultiLockLosesALock checks that after the loss of a held lock the others are given back when Resign is
// stepped.
func TestMultiLockLosesALock(t *testing.T) {
	d := several(t, "/a", "/b")
	d.step(LockTaken{"/a"}, "take /b")
	d.step(LockTaken{"/b"})
	d.step(LockLost{"/b"})
	d.is(false, false, nil)
	d.step(LockLost{"/a"})
	d.step(claim.Resign{Err: claimtest.ErrGivenUp}, "give back /b", "give back /a")
	d.step(LockGone{"/a"})
	d.step(LockGone{"/b"})
	d.is(false, true, claimtest.ErrGivenUp)
}

// TestMultiLockIsRefused checks that no lock stays held after one was refused, or after Resign.
func TestMultiLockIsRefused(t *testing.T) {
	d := several(t, "/a")
	d.step(LockRefused{"/a", claimtest.ErrRefused})
	d.is(false, true, claimtest.ErrRefused)

	d = several(t, "/a", "/b")
	d.step(LockTaken{"/a"}, "take /b")
	d.step(LockRefused{"/b", claimtest.ErrRefused}, "give back /a")
	d.is(false, false, claimtest.ErrRefused)
	d.step(LockGone{"/a"})
	d.is(false, true, claimtest.ErrRefused)

	d = several(t, "/a", "/b")
	d.step(LockTaken{"/a"}, "take /b")
	d.step(LockLost{"/a"}, "stop taking /b", "give back /a")
	d.step(LockRefused{Path: "/b"})
	d.step(claim.Resign{Err: claimtest.ErrGivenUp}) // the machine does not start again
	d.step(LockGone{"/a"})
	d.is(false, true, claimtest.ErrGivenUp)
}
