package replica

import (
	"testing"

	"bellwether/internal/peerwire"
	"bellwether/internal/zab"
	"bellwether/wire"
)

// isPing reports whether an event is a ping of a leader or the answer to one.
func isPing(e Event) bool {
	z, ok := e.(Zab)
	if !ok {
		return false
	}
	r, ok := z.Event.(zab.Received)
	return ok && r.Packet.Type == peerwire.PacketPing
}

// ping delivers a client's ping and everything that follows from it at once.
func (h *cluster) ping(s *server, conn ConnID) {
	s.inbox = append(s.inbox, &Request{Conn: conn, Xid: wire.XidPing, Op: wire.OpPing})
	h.run(0)
}

// withoutLease delays the answers to the leader's pings until its lease has ended.
func (h *cluster) withoutLease(leader *server) {
	h.delay = func(to *server, e Event) bool { return to == leader && isPing(e) }
	h.run(600)
}

// TestLeaderAnswersPingsWithinItsLease: a leader answers a client's ping only while it has its lease. It
// holds other pings until it has the lease again.
func TestLeaderAnswersPingsWithinItsLease(t *testing.T) {
	h, s := leaderFirst(t, false)
	c, id := h.connect(s[0], 0)
	if h.ping(s[0], id); len(c.replies) != 1 {
		t.Fatalf("%d pings are answered within the lease, want 1", len(c.replies))
	}
	h.withoutLease(s[0])
	if h.ping(s[0], id); len(c.replies) != 1 {
		t.Error("a ping is answered without the lease")
	}
	h.release()
	if h.run(200); len(c.replies) != 2 {
		t.Errorf("%d pings are answered when the leader has its lease again, want 2", len(c.replies))
	}
}

// TestHeldPingOfEndingSession: a leader does not answer a ping that it holds if the end of its session is
// proposed meanwhile, even when it has the lease again before the end is committed.
func TestHeldPingOfEndingSession(t *testing.T) {
	h, s := leaderFirst(t, false)
	c, id := h.connect(s[0], 0)
	h.withoutLease(s[0])
	h.ping(s[0], id)
	h.stallDisks(nil)
	s[0].inbox = append(s[0].inbox, Expire{Session: c.session})
	h.run(0)
	answers := h.delayed
	h.delayed = nil
	for _, d := range answers {
		if isPing(d.e) {
			d.to.inbox = append(d.to.inbox, d.e)
		}
	}
	h.run(100)
	if lease := s[0].r.Lease(); lease < h.now.Mono || !s[0].r.Ending(c.session) || c.closed {
		t.Fatalf("lease until %d, now %d; the session ends: %v; the connection is closed: %v", lease, h.now.Mono, s[0].r.Ending(c.session), c.closed)
	}
	if len(c.replies) != 0 {
		t.Error("the ping is answered although the end of its session is proposed")
	}
}

// TestFollowerAnswersConfirmedPings: when the leader confirms a touch, a follower answers the pings up to
// this touch, and no later ones.
func TestFollowerAnswersConfirmedPings(t *testing.T) {
	h, s := leaderFirst(t, false)
	c, id := h.connect(s[1], 0)
	h.delay = h.packets(s[1], s[0])
	h.ping(s[1], id)
	first := s[1].r.member.touch
	h.ping(s[1], id)
	s[1].r.confirmed(first - 1)
	for want, token := range []uint64{first - 1, first, first + 1} {
		s[1].r.confirmed(token)
		h.carryOut(s[1], s[1].r.Ready())
		if len(c.replies) != want {
			t.Errorf("touch %d of the touches %d and %d is confirmed: %d pings are answered, want %d", token, first, first+1, len(c.replies), want)
		}
	}
}

// TestHeardSessionsDoNotExpire: a session lives longer than its timeout if its server hears from it: by
// pings, or by the driver, which reports other requests. This holds at the leader and at a follower, also
// if only one session was heard from.
func TestHeardSessionsDoNotExpire(t *testing.T) {
	const timeout = 6000
	for _, c := range []struct {
		name string
		at   int // 0: the leader
		hear func(h *cluster, s *server, c *client, id ConnID)
	}{
		{"pings at the leader", 0, func(h *cluster, s *server, _ *client, id ConnID) { h.ping(s, id) }},
		{"pings at a follower", 1, func(h *cluster, s *server, _ *client, id ConnID) { h.ping(s, id) }},
		{"requests at the leader", 0, heardByDriver},
		{"requests at a follower", 1, heardByDriver},
		{"silence", 1, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			h, s := leaderFirst(t, false)
			x, id := h.connect(s[c.at], 0)
			for range 3 * timeout / 1000 {
				if c.hear != nil {
					c.hear(h, s[c.at], x, id)
				}
				h.run(1000)
			}
			if _, lives := s[0].r.tree.Session(x.session); lives != (c.hear != nil) {
				t.Errorf("the session lives: %v", lives)
			}
		})
	}
}

// heardByDriver reports that requests of a session were read.
func heardByDriver(h *cluster, s *server, c *client, _ ConnID) {
	s.inbox = append(s.inbox, Touched{Sessions: []Touch{{Session: c.session, Mono: h.now.Mono}}})
}

// TestPingsAreAnsweredAtOnce: the leader and a follower answer a client's ping in the ms in which it arrives, also if the
// leader has lost its lease, because its machine was suspended: it then pings its followers at once.
func TestPingsAreAnsweredAtOnce(t *testing.T) {
	for _, at := range []int{0, 1} {
		h, s := leaderFirst(t, false)
		c, id := h.connect(s[at], 0)
		h.run(5)
		if h.ping(s[at], id); len(c.replies) != 1 {
			t.Errorf("server %d of leader and follower: %d pings are answered at once, want 1", at, len(c.replies))
		}
		h.run(5)
		h.now.Wall += 5000 // the machines were suspended
		if h.ping(s[at], id); len(c.replies) != 2 || s[0].r.Lease() != h.now.Mono+500 {
			t.Errorf("server %d, no lease: %d pings are answered at once, want 2; lease until %d, now %d", at, len(c.replies), s[0].r.Lease(), h.now.Mono)
		}
	}
}

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
