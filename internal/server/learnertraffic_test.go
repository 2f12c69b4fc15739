package server

import (
	"testing"

	"bellwether/internal/peer"
	"bellwether/internal/zab"
	"bellwether/wire"
)

// TestLinkTrafficOfAnObserver: a leader counts the packets and the requests that an observer sends and
// receives, and the counters can be reset.
func TestLinkTrafficOfAnObserver(t *testing.T) {
	g := startTestEnsemble(t, 3, 1, false)
	leader := g.leader()
	observer := func() observed {
		for _, l := range leader.Learners() {
			if l.Observer {
				return observed{leader.LinkTraffic(l.Link), l}
			}
		}
		t.Fatal("the leader has no observer")
		return observed{}
	}
	before := observer()
	if before.Received == 0 || before.Sent == 0 || before.BeganMS == 0 {
		t.Errorf("after the synchronisation: %+v", before.Traffic)
	}
	c := g.servers[3].connect()
	const writes = 5
	for range writes {
		c.call(wire.OpSetData, &wire.SetDataRequest{Path: "/", Version: -1}, nil)
	}
	after := observer()
	if n := after.Requests - before.Requests; n < writes {
		t.Errorf("%d writes through the observer are counted as %d requests", writes, n)
	}
	if after.Received < before.Received+writes || after.Sent < before.Sent+writes {
		t.Errorf("before %d writes: %+v; afterwards: %+v", writes, before.Traffic, after.Traffic)
	}
	leader.ResetLinkTraffic(after.Link)
	if reset := observer(); reset.Requests != 0 || reset.Received >= after.Received || reset.BeganMS != before.BeganMS {
		t.Errorf("after the reset: %+v", reset.Traffic)
	}
}

// observed is a learner and the traffic of its link.
type observed struct {
	peer.Traffic
	zab.LearnerStatus
}
