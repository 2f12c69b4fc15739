package replica

import (
	"fmt"
	"slices"
	"testing"

	"bellwether/internal/election"
	"bellwether/internal/peerwire"
	"bellwether/internal/tree"
	"bellwether/internal/zab"
	"bellwether/wire"
)

// TestThreeServersServe: three servers elect a leader, and a client of each writes. The
// leader dies. The session of a client of a surviving server continues there.
func TestThreeServersServe(t *testing.T) {
	h := newCluster(t, 3, false)
	h.run(500)
	first := h.leader()
	var conns []ConnID
	var clients []*client
	for i, s := range h.servers {
		c, id := h.connect(s, 0)
		if c.session == 0 {
			t.Fatalf("server %d: no session", s.id)
		}
		h.create(s, id, 1, fmt.Sprintf("/a%d", i))
		h.create(s, id, 2, fmt.Sprintf("/a%d/b", i))
		h.create(s, id, 3, fmt.Sprintf("/nowhere/b%d", i))
		s.inbox = append(s.inbox, &Request{Conn: id, Xid: 4, Op: wire.OpSync, Body: wire.Append(nil, &wire.PathRequest{Path: "/"})})
		s.inbox = append(s.inbox, &Request{Conn: id, Xid: wire.XidPing, Op: wire.OpPing})
		h.run(500)
		var got []string
		for _, o := range c.replies {
			got = append(got, fmt.Sprint(o.Header.Xid, o.Header.Err))
		}
		want := []string{fmt.Sprint(1, wire.OK), fmt.Sprint(2, wire.OK), fmt.Sprint(3, wire.ErrNoNode), fmt.Sprint(4, wire.OK), fmt.Sprint(wire.XidPing, wire.OK)}
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("server %d answered %v, want %v", s.id, got, want)
		}
		clients, conns = append(clients, c), append(conns, id)
	}
	h.kill(first)
	h.run(1000)
	second := h.leader()
	for i, c := range clients {
		if !c.closed {
			t.Errorf("connection %d was not closed", conns[i])
		}
		again, id := h.connect(second, c.session)
		if again.session != c.session {
			t.Errorf("session %v was not resumed: %v", c.session, again.session)
		}
		h.create(second, id, 9, fmt.Sprintf("/c%d", i))
		h.run(100)
		if len(again.replies) != 1 || again.replies[0].Header.Err != wire.OK {
			t.Errorf("answers %+v", again.replies)
		}
	}
	h.start(first)
	h.run(1000)
	for _, s := range h.servers {
		if got, want := s.r.Applied(), second.r.Applied(); got != want {
			t.Errorf("server %d is at %v, the leader at %v", s.id, got, want)
		}
		_, d1 := s.r.tree.Digest()
		if _, d2 := second.r.tree.Digest(); d1 != d2 {
			t.Errorf("server %d has another tree", s.id)
		}
	}
	h.run(8000) // no session is heard from, so all expire
	for _, c := range clients {
		if _, ok := second.r.tree.Session(c.session); ok {
			t.Errorf("session %v has not expired", c.session)
		}
	}
}

// TestClientsSurviveLeaderChange: when the leader dies, clients of the surviving servers
// keep their connections. Each of their writes in flight takes effect once: those that
// the leader had not read, those that it had proposed to only one follower, and those
// that were requested while there was no leader.
func TestClientsSurviveLeaderChange(t *testing.T) {
	h := newCluster(t, 3, true)
	h.run(500)
	first := h.leader()
	var survivors []*server
	var conns []ConnID
	var clients []*client
	for _, s := range h.servers {
		if s != first {
			c, id := h.connect(s, 0)
			survivors, clients, conns = append(survivors, s), append(clients, c), append(conns, id)
		}
	}
	h.create(survivors[0], conns[0], 1, "/n")
	h.run(50)
	sequential := func(i int, xid int32) {
		body := wire.Append(nil, &wire.CreateRequest{Path: "/n/", ACL: wire.OpenACL(), Flags: wire.FlagPersistentSequential})
		survivors[i].inbox = append(survivors[i].inbox, &Request{Conn: conns[i], Xid: xid, Op: wire.OpCreate, Body: body})
	}
	// Proposed, and on the disk of only one follower.
	sequential(0, 2)
	h.batch(survivors[0])
	h.batch(first)
	h.batch(survivors[0])
	// Forwarded, but not read by the leader.
	sequential(1, 2)
	h.batch(survivors[1])
	h.kill(first)
	// While there is no leader: another write, a sync, a read, a ping.
	sequential(0, 3)
	for i, s := range survivors {
		s.inbox = append(s.inbox,
			&Request{Conn: conns[i], Xid: 4, Op: wire.OpSync, Body: wire.Append(nil, &wire.PathRequest{Path: "/"})},
			&Request{Conn: conns[i], Xid: 5, Op: wire.OpGetChildren, Body: wire.Append(nil, &wire.PathWatchRequest{Path: "/n"})},
			&Request{Conn: conns[i], Xid: wire.XidPing, Op: wire.OpPing})
	}
	h.run(1000)
	second := h.leader()
	if second == first {
		t.Fatal("no other leader")
	}
	for i, c := range clients {
		var got []int32
		for _, o := range c.replies {
			if o.Kind == Reply && o.Header.Err != wire.OK {
				t.Errorf("client %d: %+v", i, o)
			}
			if o.Request.Xid > 1 {
				got = append(got, o.Request.Xid)
			}
		}
		want := []int32{2, 4, 5}
		if i == 0 {
			want = []int32{2, 3, 4, 5}
		}
		if c.closed || !slices.Equal(got, want) {
			t.Errorf("client %d: closed %v, answers %v, want %v", i, c.closed, got, want)
		}
	}
	for _, s := range survivors {
		var kids tree.Listing
		if s.r.tree.Children(anonymousReader{}, "/n", false, &kids); len(kids.Children) != 3 {
			t.Errorf("server %d: children %v, want three", s.id, kids.Children)
		}
	}
}

// TestHalfOpenConnectionIsClosed: a session that was resumed at another server is no
// longer served at the old one, even if its old connection is half open and the leader
// changes.
func TestHalfOpenConnectionIsClosed(t *testing.T) {
	h := newCluster(t, 3, true)
	h.run(500)
	first := h.leader()
	var others []*server
	for _, s := range h.servers {
		if s != first {
			others = append(others, s)
		}
	}
	old, id := h.connect(others[0], 0)
	again, _ := h.connect(others[1], old.session)
	if again.session != old.session || again.closed {
		t.Fatal("the session was not resumed")
	}
	if !old.closed {
		t.Error("the connection that the client has left is open")
	}
	h.kill(first)
	h.create(others[0], id, 7, "/late")
	h.run(1000)
	var stat wire.StatResponse
	if code := h.leader().r.tree.Exists(anonymousReader{}, "/late", false, &stat); code != wire.ErrNoNode {
		t.Errorf("a write of the old connection took effect: %v", code)
	}
	if again.closed {
		t.Error("the new connection was closed")
	}
}

// TestConnectionsWithoutLeaderAreClosed: without a leader a connection is kept for a
// third of its timeout, then closed.
func TestConnectionsWithoutLeaderAreClosed(t *testing.T) {
	h := newCluster(t, 3, true)
	h.run(500)
	last := h.follower()
	c, _ := h.connect(last, 0)
	for _, s := range h.servers {
		if s != last {
			h.kill(s)
		}
	}
	h.run(1900)
	if c.closed {
		t.Error("closed after 1.9 s of 6")
	}
	if h.run(200); !c.closed {
		t.Error("still open after 2.1 s of 6")
	}
}

// TestWriteAfterSyncKeepsOrder: a leader answers a sync only when a quorum has confirmed
// its leadership. A write that the same connection requests after the sync must not be
// applied before that.
func TestWriteAfterSyncKeepsOrder(t *testing.T) {
	h := newCluster(t, 3, false)
	h.run(500)
	for i, s := range h.servers {
		c, id := h.connect(s, 0)
		path := wire.Append(nil, &wire.PathRequest{Path: "/"})
		s.inbox = append(s.inbox, &Request{Conn: id, Xid: 1, Op: wire.OpSync, Body: path})
		h.create(s, id, 2, fmt.Sprintf("/s%d", i))
		s.inbox = append(s.inbox, &Request{Conn: id, Xid: 3, Op: wire.OpSync, Body: path})
		h.create(s, id, 4, fmt.Sprintf("/t%d", i))
		h.run(500)
		var got []int32
		for _, o := range c.replies {
			got = append(got, o.Header.Xid)
		}
		if !slices.Equal(got, []int32{1, 2, 3, 4}) {
			t.Errorf("server %d answers %v", s.id, got)
		}
	}
}

// TestLeaderIsRedialled: a link that ends before the leader says anything, as at a relay,
// does not end the role: the server dials the leader again.
func TestLeaderIsRedialled(t *testing.T) {
	h := newCluster(t, 3, true)
	h.relays = 10
	h.run(1400)
	h.leader()
	for _, s := range h.servers {
		if n := len(s.r.Elections()); h.relays > 0 || n != 1 {
			t.Errorf("%d links are still to be cut, server %d had %d elections", h.relays, s.id, n)
		}
	}
	// The server gives up the leader if that goes on for long.
	h = newCluster(t, 3, true)
	h.relays = 1 << 30
	h.run(1400)
	if n := len(h.servers[0].r.Elections()); n < 2 || n > 10 {
		t.Errorf("%d elections", n)
	}
}

// TestMultiAnswersEachCreateInItsForm: in the answer to a multi, the result of a create has no stat and that of a create2 has one, wherever the
// client is.
func TestMultiAnswersEachCreateInItsForm(t *testing.T) {
	h, s := leaderFirst(t, true)
	for i, at := range s[:2] {
		c, conn := h.connect(at, 0)
		create := func(op wire.OpCode, path string) wire.Op {
			return wire.Op{Type: op, Request: &wire.CreateRequest{Path: fmt.Sprint(path, i), ACL: wire.OpenACL()}}
		}
		o := h.do(at, c, conn, wire.OpMulti, &wire.MultiRequest{Ops: []wire.Op{create(wire.OpCreate, "/a"), create(wire.OpCreate2, "/b")}})
		var forms []string
		if m, ok := o.Response.(*wire.MultiResponse); ok {
			for _, r := range m.Results {
				forms = append(forms, fmt.Sprintf("%v %T", r.Type, r.Response))
			}
		}
		if want := []string{"create *wire.PathResponse", "create2 *wire.PathStatResponse"}; !slices.Equal(forms, want) {
			t.Errorf("server %d answers %v %v", at.id, o.Header.Err, forms)
		}
	}
}

// TestWhatServersSayOfThemselves: a leader answers pings until its lease ends, a follower answers none by itself, and only the leader knows when
// sessions expire. A server that has lost its quorum is stranded.
func TestWhatServersSayOfThemselves(t *testing.T) {
	h, s := leaderFirst(t, true)
	h.connect(s[1], 0)
	l, f := s[0].r, s[1].r
	if l.Lease() < h.now.Mono || l.Lease() > h.now.Mono+2000 || f.Lease() != -1 {
		t.Errorf("leases until %d and %d, now %d", l.Lease(), f.Lease(), h.now.Mono)
	}
	if len(l.Expiring()) != 1 || f.Expiring() != nil || l.PendingSyncs() != 0 || f.PendingSyncs() != 0 || l.Stranded() || f.Stranded() {
		t.Errorf("expiring %v and %v, stranded %v and %v", l.Expiring(), f.Expiring(), l.Stranded(), f.Stranded())
	}
	if len(l.Learners()) != 2 || len(f.Learners()) != 0 {
		t.Errorf("learners %v and %v", l.Learners(), f.Learners())
	}
	h.kill(s[0])
	h.kill(s[2])
	h.run(10)
	if !f.Stranded() || f.Lease() != -1 || f.Learners() != nil || f.Status().Role != peerwire.Looking {
		t.Errorf("without a quorum: stranded %v, lease %d, %+v", f.Stranded(), f.Lease(), f.Status())
	}
}

// TestUnwantedLinkIsClosed: a server closes a link to a server that it does not want to learn from.
func TestUnwantedLinkIsClosed(t *testing.T) {
	h, s := leaderFirst(t, true)
	for name, at := range map[string]*server{"a leader": s[0], "a follower that has a leader": s[1]} {
		at.r.Step(h.now, Linked{Server: s[2].id, Link: 99})
		if rd := at.r.Ready(); len(rd.Close) != 1 || rd.Close[0] != 99 {
			t.Errorf("%s closes %v", name, rd.Close)
		}
	}
}

// TestManyRequestsYield: the leader lets its driver do other work after every 16 requests of a learner, at the latest.
func TestManyRequestsYield(t *testing.T) {
	h, s := leaderFirst(t, true)
	_, id := h.connect(s[1], 0)
	h.delay = h.packets(s[1], s[0])
	for i := range 48 {
		h.create(s[1], id, int32(i+1), fmt.Sprint("/n", i))
	}
	h.run(10)
	for _, d := range h.delayed {
		s[0].r.Step(h.now, d.e)
	}
	n := 0
	s[0].r.opt.Yield = func() { n++ }
	rd := s[0].r.Ready()
	if logged := len(rd.Duties[0].Append); n != 3 || logged != 48 {
		t.Errorf("yields %d times during %d requests", n, logged)
	}
}

// TestUnknownHistoryIsClaimed: a server that does not know whether its empty disk has replaced another one says that it has no history.
func TestUnknownHistoryIsClaimed(t *testing.T) {
	for _, unknown := range []bool{true, false} {
		h := emptyCluster(t, true, "server.1=127.0.0.1:1:2:participant\nserver.2=127.0.0.1:3:4:participant\n")
		r := New(tree.New(tree.Options{Seed: 1}), Options{ServerID: 1, TickMS: 2000, Member: &Member{Members: h.members, Log: zab.NewLog(0, 0), Unknown: unknown}}, h.now)
		votes := r.Ready().Votes
		if len(votes) != 1 || (votes[0].Notification.Zxid == election.NoHistory) != unknown {
			t.Errorf("unknown %v: %+v", unknown, votes)
		}
	}
}

// TestLeaderWithoutClients: a server that accepts no clients while it leads closes the connections that it has when it comes to lead, and those that
// come then.
func TestLeaderWithoutClients(t *testing.T) {
	h, s := leaderFirst(t, true)
	for _, o := range s {
		o.r.member.opt.NoClientsWhileLeading = true
	}
	next, _ := h.connect(s[1], 0)
	other, _ := h.connect(s[2], 0)
	s[0].inbox = append(s[0].inbox, TransferLeadership{To: s[1].id})
	h.run(500)
	if h.leader() != s[1] || !next.closed || other.closed {
		t.Errorf("server %d leads; its client is closed: %v, another one: %v", h.leader().id, next.closed, other.closed)
	}
	if late, _ := h.connect(s[1], 0); !late.closed || late.session != 0 {
		t.Errorf("%+v", late)
	}
	if late, _ := h.connect(s[0], 0); late.closed || late.session == 0 {
		t.Errorf("at the former leader: %+v", late)
	}
}
