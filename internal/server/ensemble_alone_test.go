package server

import (
	"fmt"
	"path/filepath"
	"testing"

	"bellwether/internal/store"
	"bellwether/wire"
)

// alone runs a standalone server over a member's disk, calls f with it, and ends it.
func (m *testServer) alone(t *testing.T, f func(s *running)) {
	t.Helper()
	c := testConfig()
	c.DataDir, c.DataLogDir = m.dir, m.dir
	s := launch(t, Options{Config: c, FS: m.fs, Log: testLog(t)})
	<-s.Ready()
	f(s)
	if err := s.end(); err != nil {
		t.Fatalf("the standalone server ended with %v", err)
	}
}

// mark sets the marker that confirms that a member's empty disk is correct.
func (m *testServer) mark(t *testing.T) {
	t.Helper()
	if err := m.fs.MkdirAll(m.dir); err != nil {
		t.Fatal(err)
	}
	f, err := m.fs.Create(filepath.Join(m.dir, "initialize"))
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestStandaloneServerBecomesMember: a standalone server becomes one of three. The other
// two are empty and marked as new; without the marker an empty server may have lost its
// history and does not vote next to one with a history. All get the history of the first
// server, including sessions and digests.
func TestStandaloneServerBecomesMember(t *testing.T) {
	for _, first := range []int{0, 2} { // the smallest id and the largest
		t.Run(fmt.Sprintf("server %d", first+1), func(t *testing.T) {
			g := newTestEnsemble(t, 3, 0, false)
			old := g.servers[first]
			var session wire.ConnectResponse
			old.alone(t, func(s *running) {
				c := s.connect()
				c.create("/old", "x")
				c.must(wire.OpCreate, &wire.CreateRequest{Path: "/e", ACL: wire.OpenACL(), Flags: 1}, &wire.PathResponse{})
				session = c.session
			})
			// The old server starts first: with one of the others it is a quorum that has its
			// history. The two others alone would be a quorum too. They have no history, and
			// their markers confirm that this is right.
			g.start(old)
			for _, m := range g.servers {
				if m != old {
					m.mark(t)
					g.start(m)
					<-old.Ready()
				}
			}
			g.settled()
			for _, m := range g.servers {
				c := m.connect()
				if got := c.data("/old"); got != "x" {
					t.Errorf("server %d: %q", m.id, got)
				}
				c.create(fmt.Sprintf("/new%d", m.id), "y")
			}
			g.equal()
			if z := g.leader().Tree().LastZxid(); z.Epoch() != 1 {
				t.Errorf("the ensemble writes %v", z)
			}
			c := g.follower().dial()
			c.handshake(wire.ConnectRequest{TimeoutMS: lastingMS, Session: session.Session, Password: session.Password})
			if c.session.Session != session.Session {
				t.Error("its session is gone")
			}
			c.must(wire.OpCloseSession, nil, nil)
			g.equal()
			if h := g.leader().connect().call(wire.OpExists, &wire.PathWatchRequest{Path: "/e"}, nil); h.Err != wire.ErrNoNode {
				t.Errorf("the ephemeral of a closed session: %v", h.Err)
			}
		})
	}
}

// TestMemberStartsStandalone: a member starts as a standalone server over its own disk,
// writes, and becomes a member again. What it wrote is then the longest history, and the
// others take it over.
func TestMemberStartsStandalone(t *testing.T) {
	g := startTestEnsemble(t, 3, 0, false)
	m := g.leader()
	m.connect().create("/together", "x")
	g.equal()
	for _, m := range g.servers {
		g.stopped(m)
	}
	epoch := wire.Epoch(0)
	m.alone(t, func(s *running) {
		c := s.connect()
		if got := c.data("/together"); got != "x" {
			t.Errorf("as a standalone server it has %q", got)
		}
		c.create("/alone", "y")
		epoch = s.Tree().LastZxid().Epoch()
	})
	if epoch != 1 {
		t.Errorf("as a standalone server it writes in epoch %d", epoch)
	}
	// Start this server before the others: without it, the other two would elect a leader
	// that does not have its writes.
	g.start(m)
	for _, other := range g.servers {
		if other != m {
			g.start(other)
			g.settled()
		}
	}
	for _, m := range g.servers {
		c := m.connect()
		c.data("/together")
		if got := c.data("/alone"); got != "y" {
			t.Errorf("server %d: %q", m.id, got)
		}
		c.create(fmt.Sprintf("/again%d", m.id), "z")
	}
	g.equal()
	g.stopped(m)
	m.alone(t, func(s *running) { s.connect().data("/again1") })
	if r, err := store.Check(m.fs, store.Options{DataDir: m.dir, LogDir: m.dir}); err != nil || len(r.Damage) > 0 {
		t.Errorf("the disk: %v, %+v", err, r)
	}
}
