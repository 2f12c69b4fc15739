package replica

import (
	"testing"

	"bellwether/wire"
)

// A client that was shown the beginning of an epoch, by a server that had the
// leader's snapshot, is let in by all that serve in that epoch; one that has
// seen a transaction of it only by those that have it.
func TestTheBeginningOfAnEpochIsNotAhead(t *testing.T) {
	h := newHerd(t, 3, false)
	h.run(500)
	first := h.leader()
	c, _ := h.connect(first, 0)
	h.kill(first)
	h.run(1000)
	second := h.leader()
	epoch := second.r.Standing().Epoch
	if z := second.r.Applied(); z.Epoch() >= epoch {
		t.Fatalf("epoch %d is no fresh one at %v", epoch, z)
	}
	pw := c.session.Password()
	for _, s := range h.servers {
		if s == first {
			continue
		}
		ask := Connect{Session: c.session, Password: pw[:], TimeoutMS: 6000, Seen: wire.MakeZxid(epoch, 1)}
		if later, _ := h.ask(s, ask); !later.closed || later.session != 0 {
			t.Errorf("server %d at %v let in who has seen %v", s.id, s.r.Applied(), ask.Seen)
		}
	}
	for _, s := range h.servers {
		if s == first {
			continue
		}
		ask := Connect{Session: c.session, Password: pw[:], TimeoutMS: 6000, Seen: wire.MakeZxid(epoch, 0)}
		if again, _ := h.ask(s, ask); again.session != c.session {
			t.Errorf("server %d at %v refused who has seen %v", s.id, s.r.Applied(), ask.Seen)
		}
	}
}
