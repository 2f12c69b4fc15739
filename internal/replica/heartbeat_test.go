package replica

import (
	"testing"

	"bellwether/internal/zab"
)

// TestLeaderBeatsBetweenSteps: while the driver is busy, a leader's heartbeats are sent when they are due, and Heartbeat says when
// the next ones are.
func TestLeaderBeatsBetweenSteps(t *testing.T) {
	h := newCluster(t, 3, true)
	h.run(1000)
	now := h.now
	now.Mono, now.Wall = now.Mono+2000, now.Wall+2000
	leader := h.leader()
	send, due, next := leader.r.Heartbeat(now, zab.Arrived{})
	if len(send) != 2 || due == 0 || due > now.Mono || next <= now.Mono || next == Never {
		t.Errorf("%d packets, due at %d, the next ones at %d; now it is %d", len(send), due, next, now.Mono)
	}
}

// TestLeaderWithoutClientsClosesConnections: a leader that accepts no clients closes the connection of one that comes.
func TestLeaderWithoutClientsClosesConnections(t *testing.T) {
	h := newCluster(t, 3, true)
	h.run(1000)
	leader := h.leader()
	leader.r.member.opt.NoClientsWhileLeading = true
	if c, _ := h.connect(leader, 0); !c.closed || c.session != 0 {
		t.Errorf("%+v", c)
	}
	if c, _ := h.connect(h.follower(), 0); c.closed || c.session == 0 {
		t.Errorf("a follower: %+v", c)
	}
}
