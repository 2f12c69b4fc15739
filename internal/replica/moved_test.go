package replica

import (
	"slices"
	"testing"

	"bellwether/wire"
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
	r := &Replica{member: &member{joining: Never}}
	r.stall.duty = "an fsync"
	for timeout, want := range map[int32]int64{600: 1200, 1500: 1500, 30_000: 1500} {
		if by := r.holdBy(&conn{since: 1000, timeout: timeout}); by != want {
			t.Errorf("timeout %d: until %d, want %d", timeout, by, want)
		}
	}
}

// TestOldConnectionUnderAZooKeeperLeader: such a leader does not announce that a session moves, so the old connection stays open. A
// write on it has no effect after the move, wherever the session has moved to. It gets no answer, and ends the old connection.
func TestOldConnectionUnderAZooKeeperLeader(t *testing.T) {
	for _, to := range []int{2, 1} { // the leader, and another follower
		h := newCluster(t, 3, true)
		for _, s := range h.servers {
			s.r.member.opt.CompatibleOnly = true
		}
		h.run(1000)
		from, at := h.servers[0], h.servers[to]
		if h.leader().id != 3 {
			t.Fatalf("server %d leads", h.leader().id)
		}
		old, conn := h.connect(from, 0)
		again, _ := h.connect(at, old.session)
		if again.session != old.session || old.closed {
			t.Fatalf("session %v came back as %v; the old connection is closed: %v", old.session, again.session, old.closed)
		}
		h.create(from, conn, 1, "/late")
		h.run(600)
		if h.exists("/late") {
			t.Errorf("a write at server 1 took effect after the session had moved to server %d", at.id)
		}
		refused := from.count(func(o Observation) bool { return o == ForwardRefused{old.session} })
		if !old.closed || again.closed || len(old.replies) > 0 || refused != 1 {
			t.Errorf("to server %d: closed %v and %v, answers %v, refused %d times", at.id, old.closed, again.closed, old.answers(), refused)
		}
	}
}

// TestNewSessionIsAtItsServer: the leader takes requests for a new session only from the server that has asked for the session, also if
// that server has sent none yet.
func TestNewSessionIsAtItsServer(t *testing.T) {
	h, s := leaderFirst(t, true)
	for _, at := range s {
		c, _ := h.connect(at, 0)
		for _, other := range s[1:] {
			want := wire.OK
			if other != at {
				want = wire.ErrSessionMoved
			}
			if code := s[0].r.checkServerOf(c.session, other.id); code != want {
				t.Errorf("session of server %d, request of server %d: %v", at.id, other.id, code)
			}
		}
	}
}
