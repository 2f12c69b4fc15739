package claim

import (
	"testing"

	"bellwether/wire"
)

// TestRemoval goes through lost answers, and ends when its session does.
func TestRemoval(t *testing.T) {
	begun := func() *dialogue {
		d := &dialogue{t: t, m: NewRemoval("/a/m", 1)}
		d.step(Attached{Session: 1}, OpDelete)
		if op := d.ops[0]; op.Path != "/a/m" || op.Version != AnyVersion {
			t.Errorf("deletes %+v", op)
		}
		return d
	}
	denied := Result{Err: wire.ErrNoAuth}
	for _, c := range []struct {
		gives Result
		want  Outcome
	}{{Result{}, Succeeded}, {none, Succeeded}, {denied, Failed}, {Result{Err: wire.ErrSessionExpired}, Succeeded}} {
		d := begun()
		d.step(d.answer(c.gives))
		d.ends(c.want)
	}
	d := begun()
	d.step(d.lost())
	d.step(Attached{Session: 1}, OpDelete)
	d.step(d.answer(Result{Err: wire.ErrThrottledOp}))
	d.at += d.wake
	d.step(Tick{}, OpDelete)
	d.step(d.answer(none))
	d.ends(Succeeded)

	d = begun()
	d.step(d.lost())
	d.step(Attached{Session: 2}) // it is gone
	d.ends(Succeeded)

	d = begun()
	d.step(Expired{}) // the answer comes in any case
	d.step(d.answer(Result{Err: wire.ErrSessionExpired}))
	d.ends(Succeeded)

	d = begun()
	d.step(Resign{})
	d.step(d.answer(Result{}))
	d.ends(Succeeded)

	d = begun()
	d.step(Resign{})
	d.step(d.lost())
	d.ends(Withdrawn)

	d = begun()
	d.step(Closed{})
	d.step(d.answer(Result{Err: wire.ErrClosing}))
	d.ends(Failed)
}

// TestRemovalOfALaterSession: what goes with a session that is over is gone.
func TestRemovalOfALaterSession(t *testing.T) {
	for _, ev := range []Event{Attached{Session: 2}, Expired{}} {
		d := &dialogue{t: t, m: NewRemoval("/a/m", 1)}
		d.step(Disconnected{})
		d.step(ev)
		d.ends(Succeeded)
	}
}
