package server

import (
	"sync/atomic"
	"testing"
	"time"

	"bellwether/internal/store"
)

// TestLeaderWithoutRoomGivesWay: a leader whose disk becomes full transfers leadership before a write
// fails, and each write is carried out once. The server says why until there is room again.
func TestLeaderWithoutRoomGivesWay(t *testing.T) {
	g := newTestEnsemble(t, 3, 0, false)
	free := map[*testServer]*atomic.Int64{}
	for _, m := range g.servers {
		left := new(atomic.Int64)
		left.Store(1 << 40)
		free[m] = left
		g.hooks.Free = func() float64 { return float64(left.Load()) }
		g.start(m)
	}
	first := g.settled()
	g.counting(func() {
		free[first].Store(roomMin - 1)
		eventually(t, "another server leads", func() bool { l := g.leader(); return l != nil && l != first })
		g.settled()
		g.wrote(50)
	})
	eventually(t, "the old leader says why", func() bool { return first.Status().GivesWay != "" })
	free[first].Store(2 * roomMin)
	eventually(t, "there is room again", func() bool { return first.Status().GivesWay == "" })
	g.equal()
}

// TestSlowDiskIsNamed: a server says how slow its disk is although it answers.
func TestSlowDiskIsNamed(t *testing.T) {
	now := int64(time.Hour)
	w := &diskWatch{limit: func() time.Duration { return time.Second }, clock: func() int64 { return now }, log: testLog(t)}
	for _, c := range []struct{ took, want time.Duration }{
		{249 * time.Millisecond, 0}, {250 * time.Millisecond, 250 * time.Millisecond}, {900 * time.Millisecond, 900 * time.Millisecond},
	} {
		call := w.Begin(store.OpSync, "/data/log.1")
		now += int64(c.took)
		w.End(call)
		if got := w.slowest(); got != c.want {
			t.Errorf("a call took %v: %v, want %v", c.took, got, c.want)
		}
	}
}
