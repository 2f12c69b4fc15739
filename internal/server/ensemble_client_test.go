package server

import (
	"slices"
	"sync"
	"testing"
	"time"

	"bellwether/internal/config"
	"bellwether/internal/peerwire"
	"bellwether/wire"
)

// TestSessionMovesToAnotherServer: a client resumes its session at another server, and
// its older connection is closed. A wrong password is refused, and so is a session that
// was closed.
func TestSessionMovesToAnotherServer(t *testing.T) {
	g := startTestEnsemble(t, 3, 0, false)
	for _, from := range g.servers {
		for _, to := range g.servers {
			if from == to {
				continue
			}
			c := from.connect()
			s := c.session
			d := to.dial()
			d.handshake(wire.ConnectRequest{TimeoutMS: lastingMS, Session: s.Session, Password: make([]byte, 16)})
			if d.session.Session != 0 {
				t.Fatal("a wrong password was accepted")
			}
			d = to.dial()
			d.handshake(wire.ConnectRequest{TimeoutMS: lastingMS, Session: s.Session, Password: s.Password, LastZxidSeen: to.Tree().LastZxid()})
			if d.session.Session != s.Session {
				t.Fatalf("from %d to %d: session %v, answered %v", from.id, to.id, s.Session, d.session.Session)
			}
			d.must(wire.OpCreate, &wire.CreateRequest{Path: "/e", ACL: wire.OpenACL(), Flags: 1}, &wire.PathResponse{})
			c.closed()
			d.must(wire.OpCloseSession, nil, nil)
			d.closed()
			again := from.dial()
			again.handshake(wire.ConnectRequest{TimeoutMS: lastingMS, Session: s.Session, Password: s.Password})
			if again.session.Session != 0 {
				t.Fatal("a closed session was resumed")
			}
			g.equal()
			if h := from.connect().call(wire.OpExists, &wire.PathWatchRequest{Path: "/e"}, nil); h.Err != wire.ErrNoNode {
				t.Errorf("the ephemeral has outlived its session: %v", h.Err)
			}
		}
	}
}

// TestClientAheadIsRefused: a client that has seen a later state than a server has must
// try another server.
func TestClientAheadIsRefused(t *testing.T) {
	g := startTestEnsemble(t, 3, 0, false)
	for _, m := range g.servers {
		c := m.dial()
		c.write(wire.AppendFrame(nil, &wire.ConnectRequest{TimeoutMS: lastingMS, Password: make([]byte, 16), LastZxidSeen: 1 << 40}))
		c.closed()
	}
}

// TestPingsKeepSessionsAlive: a session lives as long as its client pings, on the leader
// and on a follower, and expires when it is silent.
func TestPingsKeepSessionsAlive(t *testing.T) {
	g := startTestEnsemble(t, 3, 0, false)
	withTimeouts(t, time.Second, func(timeout time.Duration) error { return g.pingSome(timeout) })
	g.equal()
}

// TestFollowersAnswerPingsSoon: the fastest answer of a follower to a ping does not wait for a ping of the leader.
func TestFollowersAnswerPingsSoon(t *testing.T) {
	const heartbeat = 100 * time.Millisecond
	g := startTestEnsemble(t, 3, 0, false)
	for _, m := range g.servers {
		c := m.connectFor(lastingMS * time.Millisecond)
		best := time.Hour
		for range 20 {
			began := time.Now()
			c.must(wire.OpPing, nil, nil)
			best = min(best, time.Since(began))
		}
		if best >= heartbeat/2 {
			t.Errorf("server %d: the fastest of 20 pings takes %v", m.id, best)
		}
	}
}

// pingSome opens a pinging and a silent session on each server and waits until the silent
// ones have expired. It fails if a pinging one expires too.
func (g *testEnsemble) pingSome(timeout time.Duration) error {
	g.t.Helper()
	var pinging, silent []*client
	for _, m := range g.servers {
		for _, list := range []*[]*client{&pinging, &silent} {
			c := m.connectFor(timeout)
			*list = append(*list, c)
			if err := c.try(wire.OpCreate, &wire.CreateRequest{Path: "/e", ACL: wire.OpenACL(), Flags: 3}, &wire.PathResponse{}); err != nil {
				return err
			}
		}
	}
	live := func(c *client) bool {
		l := g.leader()
		if l == nil {
			return true // no server expires sessions now
		}
		_, ok := l.Tree().Session(c.session.Session)
		return ok
	}
	tick := time.NewTicker(20 * time.Millisecond) // the interval of a client's pings
	defer tick.Stop()
	for slices.ContainsFunc(silent, live) {
		for _, c := range pinging {
			if err := c.try(wire.OpPing, nil, nil); err != nil {
				return err
			}
		}
		<-tick.C
	}
	for _, c := range silent {
		c.closed()
	}
	for _, c := range pinging {
		if err := c.try(wire.OpSync, &wire.PathRequest{Path: "/"}, &wire.PathResponse{}); err != nil {
			return err
		}
		if !live(c) {
			g.t.Errorf("session %v has expired and is still served", c.session.Session)
		}
		c.must(wire.OpCloseSession, nil, nil)
	}
	return nil
}

// TestSyncSeesWhatWasWritten: after a sync a client sees what another client wrote,
// whichever servers they use.
func TestSyncSeesWhatWasWritten(t *testing.T) {
	g := startTestEnsemble(t, 3, 0, false)
	var clients []*client
	for _, m := range g.servers {
		clients = append(clients, m.connect())
	}
	clients[0].create("/a", "")
	for i := range 60 {
		w, r := clients[i%3], clients[(i/3)%3]
		want := string(rune('a' + i%26))
		w.must(wire.OpSetData, &wire.SetDataRequest{Path: "/a", Data: []byte(want), Version: -1}, &wire.StatResponse{})
		r.must(wire.OpSync, &wire.PathRequest{Path: "/"}, &wire.PathResponse{})
		if got := r.data("/a"); got != want {
			t.Fatalf("read %q, written was %q", got, want)
		}
	}
}

// TestWatchesOnEachServer: a watch fires on any server before its client can read the
// change.
func TestWatchesOnEachServer(t *testing.T) {
	g := startTestEnsemble(t, 3, 0, false)
	w := g.follower().connect()
	w.create("/a", "")
	g.equal()
	var watchers []*client
	for _, m := range g.servers {
		c := m.connect()
		c.must(wire.OpGetData, &wire.PathWatchRequest{Path: "/a", Watch: true}, &wire.DataResponse{})
		watchers = append(watchers, c)
	}
	w.must(wire.OpSetData, &wire.SetDataRequest{Path: "/a", Data: []byte("x"), Version: -1}, &wire.StatResponse{})
	for _, c := range watchers {
		var e wire.WatcherEvent
		if h := c.reply(&e); h.Xid != wire.XidEvent || e.Type != wire.EventNodeDataChanged || e.Path != "/a" {
			t.Errorf("%+v %+v", h, e)
		}
		if got := c.data("/a"); got != "x" {
			t.Errorf("read %q", got)
		}
	}
}

// TestClientsWaitForALeader: without a leader connections are accepted and wait, and
// nothing is served.
func TestClientsWaitForALeader(t *testing.T) {
	g := newTestEnsemble(t, 3, 0, false)
	a, b := g.servers[0], g.servers[1]
	g.start(a)
	eventually(t, "it looks", func() bool { st := a.ReplicaStatus(); return st != nil && st.Role == peerwire.Looking })
	if a.Serving() || a.Status().Mode != "looking" || a.Status().Peer != "looking" {
		t.Errorf("%+v", a.Status())
	}
	c := a.dial()
	c.write(wire.AppendFrame(nil, &wire.ConnectRequest{TimeoutMS: 20_000, Password: make([]byte, 16)}))
	brief := a.dial()
	brief.handshakeFails(1000)
	g.start(b)
	if err := wire.Decode(c.frame(), &c.session); err != nil || c.session.Session == 0 {
		t.Fatalf("%+v, %v", c.session, err)
	}
	c.create("/a", "")
}

// handshakeFails fails unless the server closes the connection instead of
// giving it a session.
func (c *client) handshakeFails(timeoutMS int32) {
	c.t.Helper()
	c.write(wire.AppendFrame(nil, &wire.ConnectRequest{TimeoutMS: timeoutMS, Password: make([]byte, 16)}))
	c.closed()
}

// TestStoppedLeaderIsReplaced: a leader that is stopped ends its term at once, and its
// clients continue at other servers.
func TestStoppedLeaderIsReplaced(t *testing.T) {
	g := startTestEnsemble(t, 3, 0, false)
	old := g.leader()
	c := old.connect()
	c.create("/a", "")
	began := time.Now()
	g.stopped(old)
	l := g.settled()
	t.Logf("another one led %v after the stop began", time.Since(began))
	d := l.dial()
	d.handshake(wire.ConnectRequest{TimeoutMS: lastingMS, Session: c.session.Session, Password: c.session.Password})
	if d.session.Session != c.session.Session {
		t.Fatal("the session was lost")
	}
	d.data("/a")
	for _, m := range g.servers {
		if !m.down {
			g.stopped(m)
		}
	}
}

// TestObservers: two of five servers are observers. They serve clients and do not vote.
func TestObservers(t *testing.T) {
	g := startTestEnsemble(t, 3, 2, false)
	for _, m := range g.servers[3:] {
		if !m.serves(peerwire.Observing) || m.Status().Mode != "observer" {
			t.Errorf("server %d: %+v", m.id, m.ReplicaStatus())
		}
		m.connect().create("/by"+m.Status().Mode+string(rune('0'+m.id)), "")
	}
	g.equal()
	g.kill(g.leader())
	g.settled()
	g.servers[4].connect().create("/on", "")
	g.equal()
}

// TestEnsembleFigures: the figures of mntr show which server leads and which ones follow.
func TestEnsembleFigures(t *testing.T) {
	g := startTestEnsemble(t, 3, 1, false)
	g.servers[0].connect().create("/a", "")
	g.equal()
	l := g.leader()
	eventually(t, "all learners are synchronised", func() bool { return l.figure("synced_followers") == 2 })
	for name, want := range map[string]float64{"learners": 3, "synced_observers": 1, "quorum_size": 3, "synced_non_voting_followers": 0, "looking_count": 1} {
		if got := l.figure(name); got != want {
			t.Errorf("%s of the leader: %v, want %v", name, got, want)
		}
	}
	for name, m := range map[string]*testServer{"pending_syncs": l, "revalidate_count": l, "stale_replies": l, "connection_drop_count": l} {
		if got := m.figure(name); got != 0 {
			t.Errorf("%s: %v", name, got)
		}
	}
	if got := g.servers[3].figure("observer_master_id"); got != float64(l.id) {
		t.Errorf("the observer learns from %v, %d leads", got, l.id)
	}
	if st := l.Status(); st.Mode != "leader" || st.Peer != "leading - broadcast" || st.Proposals == nil || st.Proposals.Last <= 0 {
		t.Errorf("%+v", st)
	}
	f := g.follower()
	if st := f.Status(); st.Mode != "follower" || st.Peer != "following - broadcast" || st.Proposals != nil {
		t.Errorf("%+v", st)
	}
	if got := f.figure("learners"); got != -1 {
		t.Errorf("a follower has %v learners", got)
	}
	// A server that starts last may still win an election that others had decided.
	if e := f.Elections(); len(e) == 0 || e[len(e)-1].Epoch != 1 {
		t.Errorf("elections %v", e)
	}
	if n := len(l.Learners()); n != 3 || f.Learners() != nil {
		t.Errorf("%d learners, %v", n, f.Learners())
	}
}

// figure returns a figure of mntr; -1 if it is missing.
func (r *running) figure(name string) float64 {
	for _, s := range r.Metrics().Samples() {
		if s.Name == name {
			return s.Value
		}
	}
	return -1
}

// TestHeldRequestsAreBounded: without a leader the requests of clients are held, within
// limits: when the limits of requests in process are reached, connections are no longer
// read.
func TestHeldRequestsAreBounded(t *testing.T) {
	g := newTestEnsemble(t, 3, 0, false)
	const limit = 20
	g.change = func(c *config.Config) {
		c.Limits.Outstanding = limit
		c.MinSessionTimeout, c.MaxSessionTimeout = time.Second, time.Minute
	}
	for _, m := range g.servers {
		g.start(m)
	}
	l := g.settled()
	m := g.follower()
	var clients []*client
	for range 3 {
		c := m.dial()
		c.handshake(wire.ConnectRequest{TimeoutMS: 18_000, Password: make([]byte, 16)})
		clients = append(clients, c)
	}
	for _, other := range g.servers {
		if other != m {
			g.kill(other)
		}
	}
	eventually(t, "it has no leader", func() bool { return !m.Serving() })
	var all sync.WaitGroup
	defer all.Wait()
	for _, c := range clients {
		all.Go(func() { // runs until the connection ends
			frame := wire.AppendFrame(nil, &wire.RequestHeader{Xid: 1, Op: wire.OpSetData}, &wire.SetDataRequest{Path: "/", Data: make([]byte, 100<<10), Version: -1})
			for range 1000 {
				if _, err := c.nc.Write(frame); err != nil {
					return
				}
			}
		})
	}
	eventually(t, "it holds what it may", func() bool { return m.inProcess.Load() >= limit })
	for range 20 { // each check is answered by the loop after the events before it
		m.Elections()
		if n := m.inProcess.Load(); n > limit+int64(len(clients)) {
			t.Fatalf("%d requests are held", n)
		}
	}
	for _, c := range clients {
		c.nc.Close()
	}
	eventually(t, "nothing is held when they have waited a third of their timeout", func() bool { return m.inProcess.Load() == 0 && m.inProcessBytes.Load() == 0 })
	g.start(l)
}

// TestHeldBytesAreBounded: At the limit of bytes in process, not even one request of each
// further connection is held: the connection is closed, and its client can try another
// server.
func TestHeldBytesAreBounded(t *testing.T) {
	g := startTestEnsemble(t, 3, 0, false)
	g.settled()
	m := g.follower()
	c, d := m.dial(), m.dial()
	for _, c := range []*client{c, d} {
		c.handshake(wire.ConnectRequest{TimeoutMS: 20_000, Password: make([]byte, 16)})
	}
	for _, other := range g.servers {
		if other != m {
			g.kill(other)
		}
	}
	eventually(t, "it has no leader", func() bool { return !m.Serving() })
	d.send(wire.OpSetData, &wire.SetDataRequest{Path: "/", Version: -1})
	eventually(t, "a request is held", func() bool { return m.inProcess.Load() == 1 })
	m.inProcessBytes.Add(inProcessBytesMax)
	defer m.inProcessBytes.Add(-inProcessBytesMax)
	c.send(wire.OpSetData, &wire.SetDataRequest{Path: "/", Version: -1})
	c.closed()
	if n := m.inProcess.Load(); n != 1 {
		t.Errorf("%d requests are held", n)
	}
}
