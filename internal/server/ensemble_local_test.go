package server

import (
	"fmt"
	"testing"
	"time"

	"bellwether/internal/config"
	"bellwether/wire"
)

// newLocalSessionsEnsemble makes an ensemble with local sessions. One of its servers is
// an observer.
func newLocalSessionsEnsemble(t *testing.T) *testEnsemble {
	g := newTestEnsemble(t, 3, 1, false)
	g.change = func(c *config.Config) {
		c.Ensemble.LocalSessions, c.Ensemble.UpgradeLocal, c.Ensemble.KeepClients = true, true, true
	}
	for _, m := range g.servers {
		g.start(m)
	}
	g.settled()
	return g
}

// locals waits until a server counts this many local and global sessions.
func (m *testServer) locals(local, global float64) {
	m.t.Helper()
	eventually(m.t, fmt.Sprintf("server %d has %v local and %v global sessions", m.id, local, global), func() bool {
		return m.figure("local_sessions") == local && m.figure("global_sessions") == global
	})
}

// TestShownZxidDoesNotGoBack: a client has seen the start of an epoch at a server that had just received
// a snapshot. A server whose tree ends before that must show the client no smaller zxid. The session is
// local, because a global session would be a transaction of the epoch.
func TestShownZxidDoesNotGoBack(t *testing.T) {
	g := newLocalSessionsEnsemble(t)
	began := wire.MakeZxid(g.leader().ReplicaStatus().Epoch, 0)
	for _, m := range g.servers {
		c := m.dial()
		c.handshake(wire.ConnectRequest{TimeoutMS: lastingMS, Password: make([]byte, 16), LastZxidSeen: began})
		for _, ask := range []struct {
			op wire.OpCode
			q  wire.Record
		}{{wire.OpExists, &wire.PathWatchRequest{Path: "/"}}, {wire.OpSync, &wire.PathRequest{Path: "/"}}, {wire.OpPing, nil}} {
			if h := c.call(ask.op, ask.q, nil); h.Err != wire.OK || h.Zxid != began {
				t.Errorf("server %d: %v shows %v (%v), %v was seen", m.id, ask.op, h.Zxid, h.Err, began)
			}
		}
	}
	c := g.follower().connect()
	if h := c.call(wire.OpCreate, &wire.CreateRequest{Path: "/x", ACL: wire.OpenACL()}, nil); h.Err != wire.OK || h.Zxid != began+1 {
		t.Errorf("a write shows %v (%v)", h.Zxid, h.Err)
	}
}

// TestLocalSessionsOnEachRole: on servers of each role, a local session is counted where
// it lives, survives its connection and the leader, and becomes global with its first
// ephemeral.
func TestLocalSessionsOnEachRole(t *testing.T) {
	g := newLocalSessionsEnsemble(t)
	var clients []*client
	for _, m := range g.servers {
		c := m.connect()
		c.create(fmt.Sprintf("/by%d", m.id), "x")
		m.locals(1, 0)
		clients = append(clients, c)
	}
	dead := g.leader()
	g.kill(dead)
	g.settled()
	for i, m := range g.servers {
		if m == dead {
			continue
		}
		c := clients[i]
		c.must(wire.OpPing, nil, nil)
		c.create(fmt.Sprintf("/again%d", m.id), "y")
		m.locals(1, 0)
		if got := m.resume(c.session.Session, c.session.Password); got.Session != c.session.Session {
			t.Errorf("server %d does not know its session: %+v", m.id, got)
		}
		c.closed()
	}
	g.start(dead)
	g.settled()
	if got := dead.resume(clients[dead.id-1].session.Session, clients[dead.id-1].session.Password); got.TimeoutMS != 0 {
		t.Errorf("a session from before a restart: %+v", got)
	}
	for i, m := range g.servers {
		c := m.connect()
		c.must(wire.OpCreate, &wire.CreateRequest{Path: "/e", ACL: wire.OpenACL(), Flags: wire.FlagEphemeralSequential}, &wire.PathResponse{})
		eventually(t, "all servers know the session", func() bool {
			return g.servers[0].figure("global_sessions") == float64(i+1) && g.servers[3].figure("global_sessions") == float64(i+1)
		})
	}
	g.equal()
}

// TestLocalSessionsExpire: on servers of each role, a silent local session expires, and
// one that pings does not.
func TestLocalSessionsExpire(t *testing.T) {
	g := newLocalSessionsEnsemble(t)
	zxid := g.leader().Tree().LastZxid()
	withTimeouts(t, time.Second, func(timeout time.Duration) error { return g.expireLocal(timeout) })
	if now := g.leader().Tree().LastZxid(); now != zxid {
		t.Errorf("their ends are transactions: %v after %v", now, zxid)
	}
}

// expireLocal opens a pinging and a silent session on each server and waits until the
// silent ones have expired. It fails if a pinging one expires too.
func (g *testEnsemble) expireLocal(timeout time.Duration) error {
	g.t.Helper()
	var pinging, silent []*client
	for _, m := range g.servers {
		pinging, silent = append(pinging, m.connectFor(timeout)), append(silent, m.connectFor(timeout))
	}
	for left := 0.0; left != float64(len(g.servers)); {
		left = 0
		for i, m := range g.servers {
			if err := pinging[i].try(wire.OpPing, nil, nil); err != nil {
				return err
			}
			left += m.figure("local_sessions")
		}
	}
	for i, m := range g.servers {
		silent[i].closed()
		if got := m.resume(silent[i].session.Session, silent[i].session.Password); got.TimeoutMS != 0 {
			g.t.Errorf("expired and resumed: %+v", got)
		}
		if err := pinging[i].try(wire.OpCloseSession, nil, nil); err != nil {
			return err
		}
		m.locals(0, 0)
	}
	return nil
}

// TestStandaloneSessionsAreGlobal: a standalone server makes global sessions whatever the
// configuration says, as ZooKeeper does.
func TestStandaloneSessionsAreGlobal(t *testing.T) {
	c := testConfig()
	c.Ensemble.LocalSessions = true
	s := start(t, Options{Config: c})
	s.connect()
	if local, global, z := s.figure("local_sessions"), s.figure("global_sessions"), s.Tree().LastZxid(); local != 0 || global != 1 || z != 1 {
		t.Errorf("%v local and %v global sessions, at %v", local, global, z)
	}
}
