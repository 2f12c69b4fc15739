package election

import (
	"testing"

	"bellwether/internal/ensemble"
	"bellwether/internal/peerwire"
	"bellwether/wire"
)

// TestALeaderThatIsNotReachedIsGivenUp: a message in which a server says that it leads
// counts for a limited time. A leader that resigns before an observer has reached it
// tells only the voters.
func TestALeaderThatIsNotReachedIsGivenUp(t *testing.T) {
	voters := []ensemble.ServerID{1, 2, 3}
	e := New(Options{ID: 4, Committed: membership(0, voters, []ensemble.ServerID{4}, nil, nil)})
	e.Step(0, Look{Zxid: wire.MakeZxid(1, 1), Epoch: 1, Why: "started"})
	word := func(now int64, from ensemble.ServerID, state peerwire.ServerState) {
		e.Step(now, Heard{From: from, Notification: peerwire.Notification{
			State: state, Leader: 1, Zxid: wire.MakeZxid(1, 1), ElectionEpoch: 5, PeerEpoch: 1, Version: peerwire.NotificationPlain,
		}})
	}
	word(1, 1, peerwire.Leading)
	word(1, 2, peerwire.Following)
	if r := e.Ready(); r.Decision == nil || r.Decision.State != peerwire.Observing {
		t.Fatalf("decided %+v", r.Decision)
	}
	word(700, 1, peerwire.Leading)
	word(1200, 1, peerwire.Leading) // only the first one counts
	e.Step(1600, Tick{})
	if r := e.Ready(); r.GiveUp != "" || r.Wake != 1700 {
		t.Fatalf("gives up at 1600: %q, wakes at %d", r.GiveUp, r.Wake)
	}
	e.Step(1700, Tick{})
	if r := e.Ready(); r.GiveUp == "" {
		t.Fatal("dials for ever")
	}
}
