package sim

import (
	"testing"

	"bellwether/internal/peerwire"
	"bellwether/internal/record"
	"bellwether/internal/sim/machine"
	"bellwether/internal/store"
)

// TestPowerLossOfASeveredEnd checks that a severed connection ends for both sides, also if
// one machine loses power before the other side learns of it. What is sent until then is
// lost.
func TestPowerLossOfASeveredEnd(t *testing.T) {
	s := New(Options{Seed: 1, Voters: 3})
	a, b := &s.servers[0].Host, &s.servers[1].Host
	k := s.net.newConn(a, b)
	gone := false
	for i := range k.ends {
		k.ends[i].take = func(any) { t.Error("something arrived") }
		k.ends[i].gone = func(string) { gone = gone || i == 0 }
	}
	s.net.block(b, a)
	k.sever(b, 0)
	k.send(0, "lost")
	s.RunFor(3 * machine.Second) // until the reset is on its way
	k.vanish(1)
	s.net.unblock(b, a)
	if !s.RunUntil(func() bool { return gone }, 10*machine.Second) {
		t.Error("the end that has power did not learn that the connection has ended")
	}
}

// TestCompatibleServerLearnsWhatItHasLost checks a compatible server that waits for a better
// vote. It learns at once of votes for itself that claim a history or an epoch which its disk has
// lost.
func TestCompatibleServerLearnsWhatItHasLost(t *testing.T) {
	v := &server{id: 1, compatible: true, undelivered: []*record.Txn{setTxn(z(8, 3), "x")}, saved: store.Epochs{Current: 8}}
	for _, c := range []struct {
		n          peerwire.Notification
		compatible bool
		want       bool
	}{
		{peerwire.Notification{Leader: 1, Zxid: z(8, 3), PeerEpoch: 8}, true, true},
		{peerwire.Notification{Leader: 2, Zxid: z(9, 3), PeerEpoch: 9}, true, true},
		{peerwire.Notification{Leader: 1, Zxid: z(8, 4), PeerEpoch: 8}, true, false},
		{peerwire.Notification{Leader: 1, Zxid: z(8, 3), PeerEpoch: 9}, true, false},
		{peerwire.Notification{Leader: 1}, true, false},
		{peerwire.Notification{Leader: 2, Zxid: z(8, 3), PeerEpoch: 8}, false, false},
	} {
		v.compatible = c.compatible
		if v.doubts(sentVote{n: c.n}) != c.want {
			t.Errorf("compatible %v, %+v: %v", c.compatible, c.n, !c.want)
		}
	}
}
