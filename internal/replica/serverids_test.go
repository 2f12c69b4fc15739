package replica

import (
	"fmt"
	"testing"

	"bellwether/internal/ensemble"
	"bellwether/wire"
)

// TestServerIDs: all server ids are valid numbers: 0 is not a missing id, and ids above
// 255 or with the same low byte name different servers. Each server serves as a follower,
// each leads when its history is the longest, and a session moves between them.
func TestServerIDs(t *testing.T) {
	for _, ids := range [][]ensemble.ServerID{{0, 1, 2}, {0, 1, 256}, {255, 256, 257}, {0, 1 << 31, 1<<62 + 5}} {
		t.Run(fmt.Sprint(ids), func(t *testing.T) {
			h := newClusterOf(t, false, ids...)
			h.run(1000)
			if first := h.leader(); first.id != ids[2] {
				t.Fatalf("server %d leads, want %d", first.id, ids[2])
			}
			for i, s := range h.servers {
				c, _ := h.connect(s, 0)
				if got, want := uint8(c.session>>56), uint8(ids[i]); got != want {
					t.Errorf("server %d assigned the session %v", s.id, c.session)
				}
			}
			leadsFirst(t, h)
		})
	}
}

// leadsFirst makes the first of three servers lead: the last one misses a write, and the
// middle one is down when the last one returns.
func leadsFirst(t *testing.T, h *cluster) {
	first, middle, last := h.servers[0], h.servers[1], h.servers[2]
	h.kill(last)
	h.run(2000)
	if s := h.leader(); s != middle {
		t.Fatalf("server %d leads, want %d", s.id, middle.id)
	}
	moved, conn := h.connect(middle, 0)
	h.create(middle, conn, 1, "/missed")
	h.run(500)
	h.kill(middle)
	h.start(last)
	h.run(3000)
	if s := h.leader(); s != first {
		t.Fatalf("server %d leads, want %d", s.id, first.id)
	}
	for _, s := range []*server{last, first} {
		again, conn := h.connect(s, moved.session)
		h.create(s, conn, 2, fmt.Sprint("/at", s.id))
		h.run(500)
		if again.session != moved.session || len(again.replies) != 1 || again.replies[0].Header.Err != wire.OK {
			t.Errorf("server %d: session %v of %v, answered %+v", s.id, again.session, moved.session, again.replies)
		}
	}
}
