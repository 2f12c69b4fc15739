package sim

import "testing"

// What was severed ends for both, also where one of the machines lost power
// before the other was told, and what is sent until then is lost.
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
