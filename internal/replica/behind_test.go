package replica

import (
	"testing"

	"bellwether/wire"
)

// TestStartOfEpochIsNotAhead: a client has seen the start of an epoch on a server that
// loaded the leader's snapshot. Every server that serves in that epoch admits it. If a
// client has seen a transaction of the epoch, only servers that have the transaction
// admit it.
func TestStartOfEpochIsNotAhead(t *testing.T) {
	h := newCluster(t, 3, false)
	h.run(500)
	first := h.leader()
	c, _ := h.connect(first, 0)
	h.kill(first)
	h.run(1000)
	second := h.leader()
	epoch := second.r.Status().Epoch
	if z := second.r.Applied(); z.Epoch() >= epoch {
		t.Fatalf("epoch %d has transactions already, zxid %v", epoch, z)
	}
	pw := c.session.Password()
	for _, s := range h.servers {
		if s == first {
			continue
		}
		ask := Connect{Session: c.session, Password: pw[:], TimeoutMS: 6000, Seen: wire.MakeZxid(epoch, 1)}
		if later, _ := h.ask(s, ask); !later.closed || later.session != 0 {
			t.Errorf("server %d at %v admitted a client that has seen %v", s.id, s.r.Applied(), ask.Seen)
		}
	}
	for _, s := range h.servers {
		if s == first {
			continue
		}
		ask := Connect{Session: c.session, Password: pw[:], TimeoutMS: 6000, Seen: wire.MakeZxid(epoch, 0)}
		if again, _ := h.ask(s, ask); again.session != c.session {
			t.Errorf("server %d at %v refused a client that has seen %v", s.id, s.r.Applied(), ask.Seen)
		}
	}
}
