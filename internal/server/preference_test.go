package server

import (
	"testing"
	"time"

	"bellwether/internal/config"
	"bellwether/internal/ensemble"
	"bellwether/internal/peerwire"
)

// TestPreferredServerLeads: while clients write, leadership goes to the server with the highest
// priority, and each write is carried out once.
func TestPreferredServerLeads(t *testing.T) {
	g := newTestEnsemble(t, 3, 0, false)
	for _, m := range g.servers {
		g.start(m)
	}
	first := g.settled()
	preferred := g.servers[int(first.id)%len(g.servers)]
	g.change = func(c *config.Config) { c.Ensemble.Priorities = map[ensemble.ServerID]int{preferred.id: 5} }
	g.hooks.PreferMS = 300
	for _, m := range g.servers {
		g.stopped(m)
		g.start(m)
		g.settled()
	}
	g.counting(func() {
		eventually(t, "the preferred server leads", func() bool { return g.leader() == preferred })
		if st := g.settled().Status(); st.Prefers != peerwire.NoServer || st.PrefersFor != 0 {
			t.Errorf("it prefers server %d", st.Prefers)
		}
		g.wrote(50)
	})
	g.equal()
}

// TestPreferredLeaderIsShown: the status of a leader names the server that it will make the leader, and
// after how long.
func TestPreferredLeaderIsShown(t *testing.T) {
	g := newTestEnsemble(t, 3, 0, false)
	g.change = func(c *config.Config) { c.Ensemble.Priorities = map[ensemble.ServerID]int{1: 5} }
	g.hooks.PreferMS = time.Hour.Milliseconds()
	g.start(g.servers[1])
	g.start(g.servers[2])
	eventually(t, "a quorum serves", func() bool { return g.leader() != nil })
	g.start(g.servers[0])
	l := g.settled()
	eventually(t, "the leader prefers server 1", func() bool {
		st := l.Status()
		return st.Prefers == 1 && st.PrefersFor == time.Hour
	})
}
