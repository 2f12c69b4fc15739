package replica

import (
	"math/rand/v2"
	"testing"

	"bellwether/internal/zab"
	"bellwether/wire"
)

// leaderless returns an ensemble of which one server is up.
func leaderless(t *testing.T) (h *cluster, s *server) {
	h = newCluster(t, 3, true)
	h.kill(h.servers[0])
	h.kill(h.servers[1])
	h.run(10)
	return h, h.servers[2]
}

// connectNow opens a client connection and delivers nothing else.
func (h *cluster) connectNow(s *server, timeoutMS int32) (*client, ConnID) {
	h.conns++
	c := &client{at: s}
	h.clients[h.conns] = c
	s.inbox = append(s.inbox, Connect{Conn: h.conns, TimeoutMS: timeoutMS})
	h.run(0)
	return c, h.conns
}

// TestHeldConnectionsEndInTime: each connection that waits for a leader is closed when a
// third of its timeout has passed, whatever other connections do.
func TestHeldConnectionsEndInTime(t *testing.T) {
	h, s := leaderless(t)
	type waiter struct {
		*client
		conn ConnID
		due  int64
		left bool
	}
	var all []*waiter
	dice := rand.New(rand.NewPCG(1, 2))
	for range 60 {
		timeout := int32(4000 + 1000*dice.IntN(30))
		c, id := h.connectNow(s, timeout)
		all = append(all, &waiter{client: c, conn: id, due: h.now.Mono + int64(timeout/3)})
		if w := all[dice.IntN(len(all))]; dice.IntN(3) == 0 && !w.closed && !w.left {
			w.left = true
			s.inbox = append(s.inbox, Disconnected{w.conn})
		}
		h.run(int64(dice.IntN(500)))
	}
	for range 16_000 {
		h.run(1)
		for _, w := range all {
			if !w.left && w.closed != (h.now.Mono >= w.due) {
				t.Fatalf("at %d a connection that is due at %d is closed: %v", h.now.Mono, w.due, w.closed)
			}
		}
	}
}

// TestHeldConnectionsCostNothing: a server that looks for a leader wakes up often. It
// does not go through all waiting connections each time, and forgets those that were
// closed.
func TestHeldConnectionsCostNothing(t *testing.T) {
	h, s := leaderless(t)
	wake := func() float64 {
		return testing.AllocsPerRun(100, func() {
			s.r.Step(h.now, Wake{})
			s.r.Ready()
		})
	}
	alone := wake()
	for range 1000 {
		h.connectNow(s, 20_000)
	}
	h.run(10)
	if n := wake(); n > alone {
		t.Errorf("%v allocations to wake up with a thousand waiting connections, %v with none", n, alone)
	}
	for range 5000 {
		_, id := h.connectNow(s, 20_000)
		s.inbox = append(s.inbox, Disconnected{id})
		h.run(0)
	}
	if n := len(s.r.member.held); n > 2001 {
		t.Errorf("%d connections are remembered, 1000 wait", n)
	}
}

// TestHeldConnectionsLeaveAServerThatCannotJoin: a follower has lost its leader, which others follow, and gets nothing from it
// any more. Its connections do not wait for a third of a long timeout, because their clients can use the other servers.
func TestHeldConnectionsLeaveAServerThatCannotJoin(t *testing.T) {
	h := newCluster(t, 3, true)
	h.run(1000)
	s := h.follower()
	early, _ := h.ask(s, Connect{TimeoutMS: 30_000})
	h.delay = func(at *server, e Event) bool { // nothing from the leader arrives
		z, ok := e.(Zab)
		_, received := z.Event.(zab.Received)
		return ok && received && at == s
	}
	for s.r.member.joining == Never {
		h.run(1)
	}
	h.run(1000)
	late, _ := h.connectNow(s, 30_000)
	if h.run(1990); early.closed || late.closed {
		t.Fatalf("closed before the time is over: %v, %v", early.closed, late.closed)
	}
	if h.run(20); !early.closed || late.closed {
		t.Errorf("3 s after the server began to join: closed %v, and the later one %v", early.closed, late.closed)
	}
	if h.run(1000); !late.closed {
		t.Error("the later one still waits")
	}
}

// TestHeldConnectionsOutliveACutOffServer: a follower is cut off from the others for 5 s. When it can join their leader again, its
// connections do not end before it has had the time to do so.
func TestHeldConnectionsOutliveACutOffServer(t *testing.T) {
	h := newCluster(t, 3, true)
	h.run(1000)
	s := h.follower()
	c, _ := h.ask(s, Connect{TimeoutMS: 30_000})
	h.delay = func(at *server, e Event) bool {
		switch e.(type) {
		case Vote, Zab:
			return at == s
		}
		return false
	}
	h.run(5000)
	if s.r.Status().Serving {
		t.Fatal("the server has noticed nothing")
	}
	h.release()
	h.delay = func(at *server, e Event) bool {
		_, packet := e.(Zab)
		return packet && at == s
	}
	h.run(500) // it takes a while to join
	h.release()
	h.run(500)
	if !s.r.Status().Serving || c.closed {
		t.Errorf("serves: %v, the connection is closed: %v", s.r.Status().Serving, c.closed)
	}
}

// TestHeldConnectionsLeaveAStalledServer: at a server that does not serve and whose disk
// does not answer, connections do not wait long, whether they came before the stall or
// after it began. When the disk has answered, connections wait for the normal time.
func TestHeldConnectionsLeaveAStalledServer(t *testing.T) {
	h, s := leaderless(t)
	early, _ := h.connectNow(s, 30_000)
	h.run(300)
	h.hang(s)
	h.run(190)
	late, _ := h.connectNow(s, 30_000)
	if h.run(0); early.closed {
		t.Error("closed before the time is over")
	}
	if h.run(20); !early.closed || late.closed {
		t.Errorf("after 510 and 20 ms: closed %v and %v", early.closed, late.closed)
	}
	if h.run(500); !late.closed {
		t.Error("a connection that was opened during the stall still waits")
	}
	last, _ := h.connectNow(s, 30_000)
	h.answer(s)
	if h.run(9_000); last.closed {
		t.Error("closed although the disk has answered")
	}
}

// TestKeptConnectionsLeaveAStalledServer: a leader whose disk does not answer transfers
// leadership. Its connections are kept for a short time and then closed, so that their
// clients can go to a server that serves.
func TestKeptConnectionsLeaveAStalledServer(t *testing.T) {
	h := newCluster(t, 3, true)
	h.run(500)
	old := h.leader()
	c, conn := h.connect(old, 0)
	h.hang(old)
	h.create(old, conn, 1, "/x")
	h.run(300)
	if h.leader() == old || c.closed {
		t.Fatalf("the stalled server leads: %v; the connection is closed: %v", h.leader() == old, c.closed)
	}
	if h.run(500); !c.closed {
		t.Error("the connection waits for a server that cannot serve")
	}
}

// TestNothingBehindAnEndInTheLastBatch: a leader loses its quorum and gets, in the same batch, the end of a session
// and a create behind it. The next leader gets the end only.
func TestNothingBehindAnEndInTheLastBatch(t *testing.T) {
	h, s := leaderFirst(t, true)
	c, id := h.connect(s[0], 0)
	for link := range h.links {
		h.breakLink(link)
	}
	s[0].inbox = append(s[0].inbox, &Request{Conn: id, Xid: 1, Op: wire.OpCloseSession})
	h.create(s[0], id, 2, "/behind")
	h.run(1000)
	if _, open := h.leader().r.tree.Session(c.session); open {
		t.Error("the session is still open")
	}
	for _, o := range c.replies {
		if o.Request.Xid > 1 {
			t.Errorf("answer %+v", o)
		}
	}
	if z := h.leader().r.member.log.Last(); z.Counter() != 1 {
		t.Errorf("the term of the next leader has proposed up to %v, want only the end of the session", z)
	}
}

// TestLeaderWithoutClientsClosesConnections: a leader that accepts no clients closes the connection of one that comes.
func TestLeaderWithoutClientsClosesConnections(t *testing.T) {
	h := newCluster(t, 3, true)
	h.run(1000)
	leader := h.leader()
	leader.r.member.opt.NoClientsWhileLeading = true
	if c, _ := h.connect(leader, 0); !c.closed || c.session != 0 {
		t.Errorf("%+v", c)
	}
	if c, _ := h.connect(h.follower(), 0); c.closed || c.session == 0 {
		t.Errorf("a follower: %+v", c)
	}
}
