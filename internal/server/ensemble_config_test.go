package server

import (
	"fmt"
	"net"
	"testing"

	"bellwether/internal/config"
	"bellwether/internal/ensemble"
	"bellwether/internal/peerwire"
	"bellwether/wire"
)

// shows fails the test unless a server shows this membership to its clients.
func (m *testServer) shows(want *ensemble.Membership) {
	m.t.Helper()
	var r wire.DataResponse
	m.connect().must(wire.OpGetData, &wire.PathWatchRequest{Path: configPath}, &r)
	if string(r.Data) != want.String() {
		m.t.Errorf("server %d shows %q", m.id, r.Data)
	}
	if s := r.Stat; s.Version != -1 || s.Mzxid != wire.Zxid(want.Version()) || s.Mtime == 0 {
		m.t.Errorf("server %d: stat %+v", m.id, s)
	}
}

// manyCreated is more than a leader keeps in memory.
const manyCreated = 600

// createMany creates so many znodes that a newcomer gets a snapshot.
func (c *client) createMany() {
	for i := range manyCreated {
		c.send(wire.OpCreate, &wire.CreateRequest{Path: fmt.Sprintf("/n%d", i), ACL: wire.OpenACL()})
	}
	for range manyCreated {
		c.reply(&wire.PathResponse{})
	}
}

// TestMembershipIsShown: each server shows the membership of its own configuration: after
// the first start, after a snapshot from the leader, and after a start from a disk with
// an older membership. The digests agree all the time.
func TestMembershipIsShown(t *testing.T) {
	g := newTestEnsemble(t, 3, 1, false)
	g.change = func(c *config.Config) { c.Ensemble.CommitLogCount, c.Ensemble.SnapshotFactor = 1, -1 }
	for _, m := range g.servers[:3] {
		g.start(m)
	}
	l := g.settled()
	c := l.connect()
	c.createMany()
	late := g.servers[3]
	g.start(late)
	g.settled()
	if n := late.member.stats.snaps.Value() + l.member.stats.snaps.Value(); n == 0 {
		t.Error("no snapshot was sent")
	}
	for _, m := range g.servers {
		m.shows(g.members)
	}
	g.equal()
	for _, m := range g.servers {
		g.stopped(m)
	}
	g.members = g.members.WithVersion(0x500)
	for _, m := range g.servers {
		g.start(m)
	}
	g.settled()
	for _, m := range g.servers {
		m.shows(g.members)
	}
	g.equal()
}

// TestReconfigIsDisabled: without reconfigEnabled the membership cannot be changed while
// servers run.
func TestReconfigIsDisabled(t *testing.T) {
	g := startTestEnsemble(t, 3, 0, false)
	for _, m := range g.servers {
		h := m.connect().call(wire.OpReconfig, &wire.ReconfigRequest{Joining: wire.Text("server.4=h:1:2"), ConfigID: -1}, nil)
		if h.Err != wire.ErrReconfigDisabled {
			t.Errorf("server %d: %v", m.id, h.Err)
		}
	}
}

// TestLeaderServesNo: with leaderServes=no the leader serves no client: neither a new
// one, nor one that waited for the leader, nor one that was attached before it led.
// Followers serve.
func TestLeaderServesNo(t *testing.T) {
	g := newTestEnsemble(t, 3, 0, false)
	g.change = func(c *config.Config) { c.Ensemble.LeaderServes = false }
	for _, m := range g.servers {
		g.start(m)
	}
	hello := func(m *testServer) *client {
		c := m.dial()
		c.write(wire.AppendFrame(nil, &wire.ConnectRequest{TimeoutMS: lastingMS, Password: make([]byte, 16)}))
		return c
	}
	l := g.settled()
	hello(l).closed()
	var attached []*client
	for _, m := range g.servers {
		if m != l {
			c := m.connect()
			c.create(fmt.Sprintf("/by%d", m.id), "x")
			attached = append(attached, c)
		}
	}
	g.kill(l)
	g.settled()
	for i, m := range []*testServer{g.servers[l.id%3], g.servers[(l.id+1)%3]} {
		if m.serves(peerwire.Leading) {
			hello(m).closed()
			for _, c := range attached {
				if c.session.Session>>56 == wire.SessionID(m.id) {
					c.closed()
				}
			}
		} else {
			m.connect().create(fmt.Sprintf("/again%d", i), "y")
		}
	}
}

// TestSlowPortDelaysNothing: while opening the leader's quorum port takes long, for
// instance because a name is resolved, the server's loop continues. It leads when the
// port is open.
func TestSlowPortDelaysNothing(t *testing.T) {
	g := newTestEnsemble(t, 3, 0, false)
	opening, goOn := make(chan string, 100), make(chan struct{})
	g.hooks.Listen = func(address string) (net.Listener, error) {
		for _, s := range g.members.Servers() {
			if s.Addresses[0].Quorum() == address {
				opening <- address
				<-goOn
			}
		}
		return net.Listen("tcp", address)
	}
	for _, m := range g.servers {
		g.start(m)
	}
	<-opening
	for range 3 { // Elections returns only when the loop has answered
		for _, m := range g.servers {
			if m.Elections(); m.Serving() {
				t.Error("it serves")
			}
		}
	}
	close(goOn)
	g.settled().connect().create("/a", "")
}
