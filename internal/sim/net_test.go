package sim

import (
	"testing"

	"bellwether/internal/peerwire"
	"bellwether/internal/record"
	"bellwether/internal/store"
)

// TestSeveredAndWithoutPower checks that a severed connection ends for both sides, also if
// one machine loses power before the other side learns of it. What is sent until then is
// lost.
func TestSeveredAndWithoutPower(t *testing.T) {
	s := New(Options{Seed: 1, Voters: 3})
	a, b := &s.servers[0].host, &s.servers[1].host
	k := s.net.newCord(a, b)
	gone := false
	for i := range k.ends {
		k.ends[i].take = func(any) { t.Error("something arrived") }
		k.ends[i].gone = func(string) { gone = gone || i == 0 }
	}
	s.net.block(b, a)
	k.sever(b, 0)
	k.send(0, "lost")
	s.RunFor(3 * second) // until the reset is on its way
	k.vanish(1)
	s.net.unblock(b, a)
	if !s.RunUntil(func() bool { return gone }, 10*second) {
		t.Error("the end that has power was never told")
	}
}

// TestWhoPlaysZooKeeperHearsWhatItHasLost checks that a compatible server, which waits for
// a better vote, is told at once of votes for it that name a history or an epoch which its
// disk has lost.
func TestWhoPlaysZooKeeperHearsWhatItHasLost(t *testing.T) {
	v := &server{id: 1, compatible: true, knows: []*record.Txn{setTxn(z(8, 3), "x")}, saved: store.Epochs{Current: 8}}
	for _, c := range []struct {
		n     peerwire.Notification
		plain bool
		want  bool
	}{
		{peerwire.Notification{Leader: 1, Zxid: z(8, 3), PeerEpoch: 8}, true, true},
		{peerwire.Notification{Leader: 2, Zxid: z(9, 3), PeerEpoch: 9}, true, true},
		{peerwire.Notification{Leader: 1, Zxid: z(8, 4), PeerEpoch: 8}, true, false},
		{peerwire.Notification{Leader: 1, Zxid: z(8, 3), PeerEpoch: 9}, true, false},
		{peerwire.Notification{Leader: 1}, true, false},
		{peerwire.Notification{Leader: 2, Zxid: z(8, 3), PeerEpoch: 8}, false, false},
	} {
		v.compatible = c.plain
		if v.doubts(flown{n: c.n}) != c.want {
			t.Errorf("plays ZooKeeper %v, %+v: %v", c.plain, c.n, !c.want)
		}
	}
}
