package replica

import (
	"slices"
	"testing"
)

// TestMovedSessionIsReported: the server that a session leaves reports that the session has moved, so that
// an operator sees why the connection was closed.
func TestMovedSessionIsReported(t *testing.T) {
	h, s := leaderFirst(t, true)
	old, _ := h.connect(s[1], 0)
	h.connect(s[2], old.session)
	h.run(300)
	if want := (SessionMoved{old.session}); !old.closed || !slices.ContainsFunc(s[1].seen, func(x Observation) bool { return x == want }) {
		t.Errorf("closed: %v; reported: %v", old.closed, s[1].seen)
	}
}

// TestHeldConnectionsWaitHalfASecond: a connection to a server whose disk does not answer waits for a leader for a third
// of its timeout, and for half a second at most.
func TestHeldConnectionsWaitHalfASecond(t *testing.T) {
	r := &Replica{}
	r.stall.duty = "an fsync"
	for timeout, want := range map[int32]int64{600: 1200, 1500: 1500, 30_000: 1500} {
		if by := r.holdBy(&conn{since: 1000, timeout: timeout}); by != want {
			t.Errorf("timeout %d: until %d, want %d", timeout, by, want)
		}
	}
}
