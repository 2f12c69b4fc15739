package server

import (
	"testing"

	"bellwether/internal/config"
	"bellwether/internal/store"
)

// TestOwnSnapshotFollowsTheLeaders: a server that was synchronised by SNAP writes a snapshot of its own as soon as
// it serves. ZooKeeper started on the leader's snapshot alone would compare no digests.
func TestOwnSnapshotFollowsTheLeaders(t *testing.T) {
	g := newTestEnsemble(t, 3, 1, false)
	g.change = func(c *config.Config) { c.Ensemble.CommitLogCount, c.Ensemble.SnapshotFactor = 1, -1 }
	for _, m := range g.servers[:3] {
		g.start(m)
	}
	g.settled().connect().createMany()
	late := g.servers[3]
	g.start(late)
	eventually(t, "the server has a snapshot with a digest", func() bool {
		r, err := store.Check(late.fs, store.Options{DataDir: late.dir})
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range r.Snapshots {
			if s.Nodes > manyCreated && s.Digest != nil && s.Digest.Zxid > 0 {
				return true
			}
		}
		return false
	})
}
