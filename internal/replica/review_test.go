package replica

import (
	"testing"

	"bellwether/internal/zab"
	"bellwether/wire"
)

// leaderFirst starts three servers and lists them, the leader first.
func leaderFirst(t *testing.T, keep bool) (*herd, []*server) {
	h := newHerd(t, 3, keep)
	h.run(1000)
	order := []*server{h.leader()}
	for _, s := range h.servers {
		if s != order[0] {
			order = append(order, s)
		}
	}
	return h, order
}

// stallDisks has nothing committed until release is called: the disks of all
// servers but one are slow.
func (h *herd) stallDisks(but *server) {
	h.delay = func(to *server, e Event) bool {
		_, synced := e.(Synced)
		return synced && to != but
	}
}

func (h *herd) exists(path string) bool {
	var stat wire.StatResponse
	return h.leader().r.tree.Exists(nobody{}, path, false, &stat) == wire.OK
}

// Wherever a session moves to, what its old connection asks for behind the
// move does not happen, even before the move is committed.
func TestNothingBehindAMoveHappens(t *testing.T) {
	for _, to := range []struct {
		name     string
		from, to int
	}{{"to the leader", 1, 0}, {"from the leader", 0, 1}, {"between followers", 1, 2}, {"within a follower", 1, 1}, {"within the leader", 0, 0}} {
		t.Run(to.name, func(t *testing.T) {
			h, s := leaderFirst(t, true)
			old, id := h.connect(s[to.from], 0)
			h.stallDisks(s[0])
			again, now := h.connect(s[to.to], old.session)
			if again.session != 0 {
				t.Fatal("attached before the move is committed")
			}
			h.create(s[to.from], id, 1, "/late")
			h.run(100)
			h.release()
			h.run(300)
			if again.session != old.session || again.closed || !old.closed {
				t.Fatalf("session %v, closed %v; the old connection is closed: %v", again.session, again.closed, old.closed)
			}
			if h.exists("/late") {
				t.Error("a write of the old connection happened behind the move")
			}
			h.create(s[to.to], now, 1, "/n")
			h.run(100)
			if len(again.replies) != 1 || again.replies[0].Header.Err != wire.OK || !h.exists("/n") {
				t.Errorf("the connection of now was answered %+v", again.replies)
			}
		})
	}
}

// A session that moves twice in a row is where it has moved to last.
func TestASessionMovesTwice(t *testing.T) {
	h, s := leaderFirst(t, true)
	first, _ := h.connect(s[2], 0)
	h.stallDisks(s[0])
	second, _ := h.connect(s[0], first.session)
	third, id := h.connect(s[1], first.session)
	h.release()
	h.run(300)
	h.create(s[1], id, 1, "/n")
	h.run(100)
	if third.closed || len(third.replies) != 1 || !first.closed || !second.closed {
		t.Errorf("the newest: closed %v, replies %+v; the older ones: closed %v, %v", third.closed, third.replies, first.closed, second.closed)
	}
}

// A session stays where it moved to when that server leaves: a write of an
// old connection that was under way for long comes too late for ever.
func TestAMoveOutlivesItsServer(t *testing.T) {
	h, s := leaderFirst(t, true)
	old, id := h.connect(s[1], 0)
	h.delay = func(to *server, e Event) bool {
		z, ok := e.(Zab)
		if !ok || to != s[0] {
			return false
		}
		r, ok := z.Event.(zab.Received)
		return ok && h.links[r.Link] != nil && h.links[r.Link].from == s[1]
	}
	h.create(s[1], id, 1, "/late")
	again, now := h.connect(s[2], old.session)
	h.create(s[2], now, 1, "/n")
	h.run(100)
	if len(again.replies) != 1 || !h.exists("/n") {
		t.Fatalf("the new connection was answered %+v", again.replies)
	}
	h.kill(s[2])
	h.run(10)
	h.release()
	h.run(100)
	if h.exists("/late") {
		t.Error("a write of the old connection happened behind one of the new connection")
	}
}
