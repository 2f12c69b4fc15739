package server

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"testing"
	"time"

	"bellwether/internal/config"
	"bellwether/internal/ensemble"
	"bellwether/internal/peerwire"
	"bellwether/internal/portblock"
	"bellwether/internal/store"
)

// testEnsemble is an ensemble of servers in this process, connected over loopback.
type testEnsemble struct {
	t       testing.TB
	members *ensemble.Membership
	servers []*testServer
	lines   []string // the lines of servers that are no members yet
	// change is applied to each configuration before a start.
	change func(c *config.Config)
	hooks  Hooks
	book   io.Writer // also receives the logs, if set
	// queueMax is Options.DiskQueueMax.
	queueMax int
}

// testServer is one server of a testEnsemble: its disk, and the server while it runs.
type testServer struct {
	*running
	id   ensemble.ServerID
	fs   store.FS
	dir  string
	down bool
}

// freePorts returns ports that were free a moment ago.
func freePorts(t testing.TB, n int) []int { return freePortsOf(t, "127.0.0.1", n) }

func freePortsOf(t testing.TB, host string, n int) []int {
	t.Helper()
	free, err := portblock.Free(host, n)
	if err != nil {
		t.Fatal(err)
	}
	return free
}

// newTestEnsemble makes voters and observers with empty disks, in memory or, with
// onDisk, in directories. The caller must start them.
func newTestEnsemble(t testing.TB, voters, observers int, onDisk bool) *testEnsemble {
	t.Helper()
	g := &testEnsemble{t: t}
	ports := freePorts(t, 2*(voters+observers))
	var text bytes.Buffer
	for i := range voters + observers {
		role := "participant"
		if i >= voters {
			role = "observer"
		}
		fmt.Fprintf(&text, "server.%d=127.0.0.1:%d:%d:%s\n", i+1, ports[2*i], ports[2*i+1], role)
		m := &testServer{id: ensemble.ServerID(i + 1), dir: "data", down: true}
		if onDisk {
			m.fs, m.dir = store.OS(), t.TempDir()
		} else {
			m.fs = store.NewMem(uint64(i + 1))
		}
		g.servers = append(g.servers, m)
	}
	var err error
	if g.members, err = ensemble.Parse(text.String()); err != nil {
		t.Fatal(err)
	}
	return g
}

// startTestEnsemble runs a new ensemble and waits until all servers serve.
func startTestEnsemble(t *testing.T, voters, observers int, onDisk bool) *testEnsemble {
	t.Helper()
	g := newTestEnsemble(t, voters, observers, onDisk)
	for _, m := range g.servers {
		g.start(m)
	}
	g.settled()
	return g
}

func (g *testEnsemble) start(m *testServer) {
	g.t.Helper()
	c := testConfig()
	c.TickTime, c.MinSessionTimeout, c.MaxSessionTimeout = 500*time.Millisecond, time.Second, time.Minute
	c.DataDir, c.DataLogDir = m.dir, m.dir
	c.Ensemble.Members, c.Ensemble.ID, c.Ensemble.HasID = g.members, m.id, true
	c.Ensemble.InitLimit, c.Ensemble.SyncLimit = 120, 60 // so that a server on a machine that stands still for less is not dropped
	if s, _ := g.members.Server(m.id); s.Role == ensemble.Observer {
		c.Ensemble.PeerType = ensemble.Observer
	}
	if g.change != nil {
		g.change(c)
	}
	log := testLog(g.t)
	if g.book != nil {
		log = slog.New(slog.NewTextHandler(io.MultiWriter(newTestOutput(g.t), g.book), nil))
	}
	m.running, m.down = launch(g.t, Options{Config: c, FS: m.fs, Log: log.With("server", m.id), Hooks: g.hooks, DiskQueueMax: g.queueMax}), false
}

// errKilled is the reason with which kill ends a server.
var errKilled = errors.New("killed by the test")

// kill ends a server without a clean shutdown.
func (g *testEnsemble) kill(m *testServer) {
	g.t.Helper()
	m.fail(errKilled)
	if err := m.end(); !errors.Is(err, errKilled) {
		g.t.Fatalf("server %d ended with %v", m.id, err)
	}
	m.down = true
}

// stopped ends a server cleanly.
func (g *testEnsemble) stopped(m *testServer) {
	g.t.Helper()
	if err := m.end(); err != nil {
		g.t.Fatalf("server %d ended with %v", m.id, err)
	}
	m.down = true
}

// serves reports whether a server serves in this role.
func (m *testServer) serves(role peerwire.ServerState) bool {
	if m.down {
		return false
	}
	st := m.ReplicaStatus()
	return st != nil && st.Serving && st.Role == role
}

// leader returns the server that leads; nil if there is none.
func (g *testEnsemble) leader() *testServer {
	for _, m := range g.servers {
		if m.serves(peerwire.Leading) {
			return m
		}
	}
	return nil
}

// follower returns a server that follows.
func (g *testEnsemble) follower() *testServer {
	g.t.Helper()
	for _, m := range g.servers {
		if m.serves(peerwire.Following) {
			return m
		}
	}
	g.t.Fatal("no follower")
	return nil
}

// settled waits until all running servers serve under one leader, and returns the leader.
func (g *testEnsemble) settled() *testServer {
	g.t.Helper()
	var l *testServer
	eventually(g.t, "all serve", func() bool {
		l = g.leader()
		if l == nil {
			return false
		}
		for _, m := range g.servers {
			if m.down {
				continue
			}
			st := m.ReplicaStatus()
			if st == nil || !st.Serving || st.Leader != l.id || st.Epoch != l.ReplicaStatus().Epoch {
				return false
			}
		}
		return true
	})
	return l
}

// equal waits until all running servers have the same tree.
func (g *testEnsemble) equal() {
	g.t.Helper()
	eventually(g.t, "all have the same tree", func() bool {
		l := g.leader()
		if l == nil {
			return false
		}
		z, digest := l.Tree().Digest()
		for _, m := range g.servers {
			if m.down {
				continue
			}
			if z2, d2 := m.Tree().Digest(); z2 != z || d2 != digest {
				return false
			}
		}
		return true
	})
	for _, m := range g.servers {
		if m.down {
			continue
		}
		if n, first := m.Tree().DigestMismatches(); n > 0 {
			g.t.Errorf("server %d has %d digests that do not match, first %v", m.id, n, first)
		}
	}
}

// TestEnsembleServes: three servers elect a leader. A client of each writes, and all see
// it. The leader is killed, the two others continue, and the third joins again.
func TestEnsembleServes(t *testing.T) {
	for _, onDisk := range []bool{false, true} {
		t.Run(fmt.Sprintf("disk=%v", onDisk), func(t *testing.T) {
			g := startTestEnsemble(t, 3, 0, onDisk)
			for _, m := range g.servers {
				c := m.connect()
				path := fmt.Sprintf("/by%d", m.id)
				c.create(path, "x")
				if got := c.data(path); got != "x" {
					t.Errorf("server %d: %q", m.id, got)
				}
			}
			g.equal()
			first := g.leader()
			g.kill(first)
			g.settled()
			for _, m := range g.servers {
				if !m.down {
					m.connect().create(fmt.Sprintf("/again%d", m.id), "y")
				}
			}
			g.start(first)
			g.settled()
			g.equal()
			c := first.connect()
			for _, m := range g.servers {
				if m != first {
					c.data(fmt.Sprintf("/again%d", m.id))
				}
			}
		})
	}
}
