package replica

import (
	"fmt"
	"testing"

	"bellwether/internal/peerwire"
	"bellwether/internal/zab"
	"bellwether/wire"
)

// leaderFirst starts three servers and lists them with the leader first.
func leaderFirst(t *testing.T, keep bool) (*cluster, []*server) {
	h := newCluster(t, 3, keep)
	h.run(1000)
	order := []*server{h.leader()}
	for _, s := range h.servers {
		if s != order[0] {
			order = append(order, s)
		}
	}
	return h, order
}

// stallDisks delays the disks of all servers but one until release is called, so that
// nothing is committed.
func (h *cluster) stallDisks(but *server) {
	h.delay = func(to *server, e Event) bool {
		_, synced := e.(Synced)
		return synced && to != but
	}
}

func (h *cluster) exists(path string) bool {
	var stat wire.StatResponse
	return h.leader().r.tree.Exists(anonymousReader{}, path, false, &stat) == wire.OK
}

// TestWritesAfterMoveHaveNoEffect: when a session moves, what its old connection requests
// after the move has no effect, even before the move is committed, wherever the session
// moves to.
func TestWritesAfterMoveHaveNoEffect(t *testing.T) {
	for _, to := range []struct {
		name     string
		from, to int
	}{{"to the leader", 1, 0}, {"from the leader", 0, 1}, {"between followers", 1, 2}, {"within a follower", 1, 1}, {"within the leader", 0, 0}} {
		t.Run(to.name, func(t *testing.T) {
			h, s := leaderFirst(t, true)
			old, id := h.connect(s[to.from], 0)
			h.stallDisks(s[0])
			again, now := h.connect(s[to.to], old.session)
			if again.session != 0 {
				t.Fatal("attached before the move is committed")
			}
			h.create(s[to.from], id, 1, "/late")
			h.run(100)
			h.release()
			h.run(300)
			if again.session != old.session || again.closed || !old.closed {
				t.Fatalf("session %v, closed %v; the old connection is closed: %v", again.session, again.closed, old.closed)
			}
			if h.exists("/late") {
				t.Error("a write of the old connection took effect after the move")
			}
			h.create(s[to.to], now, 1, "/n")
			h.run(100)
			if len(again.replies) != 1 || again.replies[0].Header.Err != wire.OK || !h.exists("/n") {
				t.Errorf("the new connection was answered %+v", again.replies)
			}
		})
	}
}

// TestSessionMovesTwice: a session that moves twice in a row is at the server to which it
// moved last.
func TestSessionMovesTwice(t *testing.T) {
	h, s := leaderFirst(t, true)
	first, _ := h.connect(s[2], 0)
	h.stallDisks(s[0])
	second, _ := h.connect(s[0], first.session)
	third, id := h.connect(s[1], first.session)
	h.release()
	h.run(300)
	h.create(s[1], id, 1, "/n")
	h.run(100)
	if third.closed || len(third.replies) != 1 || !first.closed || !second.closed {
		t.Errorf("the newest: closed %v, replies %+v; the older ones: closed %v, %v", third.closed, third.replies, first.closed, second.closed)
	}
}

// TestMoveSurvivesItsServer: a session stays where it moved to when that server stops. A
// delayed write of an old connection never takes effect.
func TestMoveSurvivesItsServer(t *testing.T) {
	h, s := leaderFirst(t, true)
	old, id := h.connect(s[1], 0)
	h.delay = h.packets(s[1], s[0])
	h.create(s[1], id, 1, "/late")
	again, now := h.connect(s[2], old.session)
	h.create(s[2], now, 1, "/n")
	h.run(100)
	if len(again.replies) != 1 || !h.exists("/n") {
		t.Fatalf("the new connection was answered %+v", again.replies)
	}
	h.kill(s[2])
	h.run(10)
	h.release()
	h.run(100)
	if h.exists("/late") {
		t.Error("a write of the old connection took effect after one of the new connection")
	}
}

// TestMoveOfAnEarlierQuestion: a server has asked its leader for a session, and joins the leader again before the move is
// committed. The move does not give the session to a connection that asks after that: the server may not have applied yet what
// was committed when that connection asked.
func TestMoveOfAnEarlierQuestion(t *testing.T) {
	for _, restarts := range []bool{false, true} {
		h := newCluster(t, 5, true)
		h.run(1000)
		leader, at := h.leader(), h.follower()
		old, _ := h.connect(at, 0)
		h.delay = func(to *server, e Event) bool { // nothing is committed
			_, synced := e.(Synced)
			return synced && to != leader && to != at
		}
		again, _ := h.connect(at, old.session)
		move := leader.log[len(leader.log)-1].Zxid
		if restarts {
			h.kill(at)
			h.run(50)
			h.start(at)
			h.run(300)
			again, _ = h.connect(at, old.session)
		} else {
			for id, l := range h.links {
				if l.from == at {
					h.breakLink(id)
				}
			}
			h.run(300)
		}
		if again.closed || again.session != 0 || !at.r.member.serving || leader.log[len(leader.log)-1].Zxid == move {
			t.Fatalf("closed %v, session %v, serves %v: the connection does not ask again", again.closed, again.session, at.r.member.serving)
		}
		h.release()
		behind := false
		h.delay = func(to *server, e Event) bool { // this server gets nothing behind the commit of the first move
			z, _ := e.(Zab)
			r, received := z.Event.(zab.Received)
			if !received || to != at {
				return false
			}
			behind = behind || r.Packet.Type == peerwire.PacketCommit && r.Packet.Zxid > move
			return behind
		}
		h.run(100)
		if again.session != 0 {
			t.Errorf("restarts %v: the session is given back after %v, and the move of the last question comes later", restarts, move)
		}
		h.release()
		h.run(300)
		if again.closed || again.session != old.session {
			t.Errorf("restarts %v: closed %v, session %v, want %v", restarts, again.closed, again.session, old.session)
		}
	}
}

// TestMoveBeforeTheSyncIsAnswered: a connection that has asked after its server has joined the leader again has its move, and waits for
// its sync. When the session moves to another server meanwhile, the connection is closed, and is not attached when the sync is answered.
func TestMoveBeforeTheSyncIsAnswered(t *testing.T) {
	h, s := leaderFirst(t, true)
	leader, at, other := s[0], s[1], s[2]
	old, _ := h.connect(at, 0)
	for id, l := range h.links {
		if l.from == at {
			h.breakLink(id)
		}
	}
	h.run(300)
	h.delay = func(to *server, e Event) bool {
		z, _ := e.(Zab)
		r, received := z.Event.(zab.Received)
		return received && to == at && r.Packet.Type == peerwire.PacketSync
	}
	again, _ := h.connect(at, old.session)
	if again.closed || again.session != 0 || leader.r.member.serverOf[old.session] != at.id {
		t.Fatalf("closed %v, session %v, at server %d: the connection does not wait for its sync", again.closed, again.session, leader.r.member.serverOf[old.session])
	}
	last, _ := h.connect(other, old.session)
	if last.session != old.session || !again.closed {
		t.Errorf("session %v; the connection that waits is closed: %v", last.session, again.closed)
	}
	h.release()
	h.run(300)
	if again.session != 0 || last.closed {
		t.Errorf("session %v is attached to the connection that was left, closed %v", again.session, last.closed)
	}
}

// TestNoPongForEndingSession: a ping is not answered once the end of its session is
// proposed, because the answer would mean that the session lives.
func TestNoPongForEndingSession(t *testing.T) {
	h, s := leaderFirst(t, false)
	c, id := h.connect(s[1], 0)
	h.stallDisks(s[0])
	for range 1000 {
		if h.run(10); s[0].r.Ending(c.session) {
			break
		}
	}
	if !s[0].r.Ending(c.session) {
		t.Fatal("the session does not expire")
	}
	s[1].inbox = append(s[1].inbox, &Request{Conn: id, Xid: wire.XidPing, Op: wire.OpPing})
	h.run(400)
	if len(c.replies) > 0 {
		t.Fatal("the ping was answered before the end of its session is committed")
	}
	h.release()
	h.delay = func(to *server, e Event) bool { // everything for the follower is delivered together
		z, ok := e.(Zab)
		if ok {
			_, ok = z.Event.(zab.Received)
		}
		return ok && to == s[1]
	}
	h.run(400)
	h.release()
	h.run(100)
	if len(c.replies) > 0 || !c.closed {
		t.Errorf("answers %+v, closed %v", c.replies, c.closed)
	}
}

// TestTouchBeforeTickCounts: a session that was heard from in time does not expire at a
// Tick that arrived at the same time.
func TestTouchBeforeTickCounts(t *testing.T) {
	h, s := leaderFirst(t, false)
	c, id := h.connect(s[1], 0)
	h.run(s[0].r.Expiring()[0].Deadline - 150 - h.now.Mono)
	h.delay = func(to *server, e Event) bool {
		switch e := e.(type) {
		case Tick:
			return to == s[0]
		case Zab:
			_, packet := e.Event.(zab.Received)
			return packet && to == s[0]
		}
		return false
	}
	s[1].inbox = append(s[1].inbox, &Request{Conn: id, Xid: wire.XidPing, Op: wire.OpPing})
	h.run(200)
	h.release()
	h.run(1000)
	if c.closed || s[0].r.Ending(c.session) {
		t.Error("expired")
	}
}

// TestClientsSurviveCounterRollover: when a term ends because its zxid counter is used
// up, the clients of all servers, including the leader's, keep their connections.
func TestClientsSurviveCounterRollover(t *testing.T) {
	h := newCluster(t, 3, true)
	for _, s := range h.servers {
		s.r.member.opt.CounterMax = 4
	}
	h.run(1000)
	var clients []*client
	var conns []ConnID
	for _, s := range h.servers {
		c, id := h.connect(s, 0)
		clients, conns = append(clients, c), append(conns, id)
	}
	for x := range int32(10) {
		for i, s := range h.servers {
			h.create(s, conns[i], x+1, fmt.Sprintf("/%d-%d", i, x))
		}
		h.run(20)
	}
	h.run(3000)
	for i, c := range clients {
		for _, o := range c.replies {
			if o.Header.Err != wire.OK {
				t.Errorf("client %d: %+v", i, o)
			}
		}
		if c.closed || len(c.replies) != 10 {
			t.Errorf("client %d: closed %v, %d answers, want 10", i, c.closed, len(c.replies))
		}
	}
}

// TestCloseSessionAnswersNoWrite: the closeSession of an expired session has cxid 0. It
// does not answer a write whose xid is 0.
func TestCloseSessionAnswersNoWrite(t *testing.T) {
	h, s := leaderFirst(t, false)
	c, id := h.connect(s[1], 0)
	h.delay = h.packets(s[1], s[0])
	h.create(s[1], id, 0, "/n")
	h.run(9000)
	if !c.closed || len(c.replies) > 0 {
		t.Errorf("closed %v, answers %+v", c.closed, c.replies)
	}
}

// TestTimeoutSurvivesLeaderChange: a session keeps the timeout that its last connection
// negotiated, longer or shorter, when the leader changes, also if the new leader gets a request
// of the session before the report that names the timeout.
func TestTimeoutSurvivesLeaderChange(t *testing.T) {
	for _, test := range []struct {
		createdMS int32
		writes    bool
	}{{6000, false}, {6000, true}, {30_000, false}, {30_000, true}} {
		h, s := leaderFirst(t, true)
		first, _ := h.ask(s[2], Connect{TimeoutMS: test.createdMS})
		pw := first.session.Password() // s[2] is the next leader
		c, id := h.ask(s[1], Connect{Session: first.session, Password: pw[:], TimeoutMS: 12_000})
		h.kill(s[0])
		if test.writes {
			h.run(10) // the request waits for the next leader
			h.create(s[1], id, 1, "/n")
		}
		h.run(9000)
		if h.leader() == s[1] {
			t.Fatal("the server of the session leads, but the test needs another leader")
		}
		if c.closed {
			t.Errorf("%+v: a session of 12 s expired within 9 s", test)
		}
		if h.run(8000); !c.closed {
			t.Errorf("%+v: the session does not expire", test)
		}
	}
}

// TestLateTouchKeepsTimeout: a client moves, and gets a longer timeout. A report of the server that it
// has left arrives after that, and does not bring the shorter timeout back.
func TestLateTouchKeepsTimeout(t *testing.T) {
	for _, to := range []string{"the leader", "a follower"} {
		h, s := leaderFirst(t, false)
		first, id := h.connect(s[1], 0) // for 6 s
		h.delay = h.packets(s[1], s[0])
		s[1].inbox = append(s[1].inbox, &Request{Conn: id, Xid: wire.XidPing, Op: wire.OpPing})
		h.run(10)
		at := map[string]*server{"the leader": s[0], "a follower": s[2]}[to]
		pw := first.session.Password()
		c, _ := h.ask(at, Connect{Session: first.session, Password: pw[:], TimeoutMS: 12_000})
		h.release()
		h.run(9000)
		if c.session != first.session || c.closed {
			t.Errorf("to %s: session %v, closed %v within 9 s, but the timeout is 12 s", to, c.session, c.closed)
		}
		if h.run(5000); !c.closed {
			t.Errorf("to %s: the session does not expire", to)
		}
	}
}

// TestReportedTimeouts: which of the timeouts that servers report a new leader believes. It only knows that the session was created with
// 10 s. A ZooKeeper server reports that, too, when it applies the creation, wherever the client is.
func TestReportedTimeouts(t *testing.T) {
	for _, test := range []struct {
		reports []int32
		want    int32
	}{
		{nil, 10_000},
		{[]int32{0}, 10_000},
		{[]int32{10_000}, 10_000},
		{[]int32{30_000}, 30_000},
		{[]int32{6000}, 6000},
		{[]int32{10_000, 6000}, 6000},
		{[]int32{10_000, 30_000}, 30_000},
		{[]int32{6000, 4000}, 6000},
		{[]int32{30_000, 6000}, 30_000},
		{[]int32{6000, 30_000}, 30_000}, // the first report may be that of a server that the client has left
		{[]int32{30_000, 10_000}, 30_000},
	} {
		h, s := leaderFirst(t, false)
		c, _ := h.connect(s[0], 0)
		r := s[0].r
		r.expiry.Assume(c.session, 10_000, r.now.Mono)
		for _, timeout := range test.reports {
			r.heardFrom(peerwire.TouchedSession{Session: c.session, TimeoutMS: timeout})
		}
		if got, _ := r.expiry.Timeout(c.session); got != test.want {
			t.Errorf("%v: %d, want %d", test.reports, got, test.want)
		}
		r.heardFrom(peerwire.TouchedSession{Session: c.session + 1, TimeoutMS: 6000})
		if got, _ := r.expiry.Timeout(c.session + 1); got != 0 {
			t.Errorf("an unknown session expires after %d ms", got)
		}
	}
}

// TestNewSessionSurvivesTwoLeaderChanges: a connection requests a session, and two
// leaders in a row end before they commit it. The third one does.
func TestNewSessionSurvivesTwoLeaderChanges(t *testing.T) {
	h := newCluster(t, 5, false)
	h.run(1000)
	s := h.servers[0]
	id := ConnID(7)
	c := &client{at: s}
	h.clients[id] = c
	h.delay = func(to *server, e Event) bool { // while the server serves, no commit reaches it
		z, ok := e.(Zab)
		if !ok || to != s || !s.r.Status().Serving {
			return false
		}
		r, ok := z.Event.(zab.Received)
		return ok && r.Packet.Type == peerwire.PacketCommit
	}
	s.inbox = append(s.inbox, Connect{Conn: id, Password: make([]byte, wire.PasswordLen), TimeoutMS: 20_000})
	h.run(100)
	h.kill(h.leader())
	h.run(1000) // the session is in the history, and the connection asks for it
	h.delay, h.delayed = nil, nil
	h.kill(h.leader())
	h.run(2000)
	if c.session == 0 || c.closed {
		t.Errorf("session %v, closed %v", c.session, c.closed)
	}
}

// TestMoveIsAnnouncedAfterCommit: a learner that speaks ZooKeeper's protocol is told that
// a session moves to it only when the move is committed. Otherwise a next leader might
// not know of the move.
func TestMoveIsAnnouncedAfterCommit(t *testing.T) {
	h := newCluster(t, 3, true)
	for _, s := range h.servers {
		s.r.member.opt.CompatibleOnly = s.id == 1
	}
	h.run(1000)
	leader, plain := h.leader(), h.servers[0]
	if leader == plain {
		t.Fatal("the compatible server leads")
	}
	old, _ := h.connect(h.servers[1], 0)
	told := false
	h.delay = func(to *server, e Event) bool {
		if z, ok := e.(Zab); ok && to == plain {
			r, ok := z.Event.(zab.Received)
			told = told || ok && r.Packet.Type == peerwire.PacketRevalidate
		}
		_, synced := e.(Synced)
		return synced && to != leader
	}
	again, _ := h.connect(plain, old.session)
	if told {
		t.Error("the learner was told before the move is committed")
	}
	h.release()
	h.run(300)
	if again.session != old.session || !old.closed {
		t.Errorf("session %v, want %v; the old connection is closed: %v", again.session, old.session, old.closed)
	}
}

// TestFullDiskWhileLooking: a server whose disk becomes full does not take part in the
// result of a running election. The others find another leader.
func TestFullDiskWhileLooking(t *testing.T) {
	h := newCluster(t, 3, false)
	full := h.servers[2] // would win the election
	full.inbox = append(full.inbox, LogFull{})
	h.run(8000)
	if st := full.r.Status(); st.Role != peerwire.Looking || h.leader() == full {
		t.Fatalf("the server with the full disk is %v", st.Role)
	}
	full.inbox = append(full.inbox, LogFree{})
	h.run(2000)
	if st := full.r.Status(); !st.Serving {
		t.Errorf("the server does not serve when its disk has space again: %+v", st)
	}
}

// TestFullDiskWhileLeading: a leader whose disk becomes full ends its term and no longer
// claims to lead.
func TestFullDiskWhileLeading(t *testing.T) {
	h, s := leaderFirst(t, false)
	z, gen := s[0].r.member.log.Last(), s[0].r.member.generation
	s[0].inbox = append(s[0].inbox, LogFull{z, gen}, Zab{zab.Refused{Zxid: z, Generation: gen, Why: "no space"}})
	h.run(1000)
	if h.leader() == s[0] {
		t.Fatal("the server with the full disk leads")
	}
	s[0].inbox = append(s[0].inbox, LogFree{})
	h.run(1000)
	if st := s[0].r.Status(); !st.Serving {
		t.Errorf("the server does not serve when its disk has space again: %+v", st)
	}
}
