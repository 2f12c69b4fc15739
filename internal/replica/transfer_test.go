package replica

import (
	"fmt"
	"slices"
	"testing"

	"bellwether/internal/election"
	"bellwether/internal/peerwire"
	"bellwether/internal/zab"
	"bellwether/wire"
)

// isAck reports whether an event acknowledges a transaction.
func isAck(e Event) bool {
	z, ok := e.(Zab)
	if !ok {
		return false
	}
	r, ok := z.Event.(zab.Received)
	return ok && r.Packet.Type == peerwire.PacketAck && r.Packet.Zxid.Counter() > 0
}

// TestTransferHoldsRequests: a leader transfers leadership while its writes are not
// acknowledged yet. Requests that clients make meanwhile, on it and on other servers, are
// held and answered once by the next leader, on the same connections. After that a new
// session is created and an earlier one resumed. During the transfer nothing is proposed.
func TestTransferHoldsRequests(t *testing.T) {
	h, s := leaderFirst(t, true)
	var clients []*client
	var conns []ConnID
	for _, at := range s {
		c, id := h.connect(at, 0)
		clients, conns = append(clients, c), append(conns, id)
	}
	left, leftID := h.connect(s[2], 0)
	s[2].inbox = append(s[2].inbox, Disconnected{leftID})
	h.run(100)
	h.delay = func(to *server, e Event) bool { return to == s[0] && isAck(e) }
	for i, at := range s {
		h.create(at, conns[i], 1, fmt.Sprintf("/before-%d", at.id))
	}
	h.run(20)
	to, err := s[0].r.Successor(s[1].id, false)
	if err != nil || to != s[1].id {
		t.Fatal(to, err)
	}
	s[0].inbox = append(s[0].inbox, TransferLeadership{To: to})
	h.run(5)
	if _, err := s[0].r.Successor(peerwire.NoServer, false); err == nil {
		t.Error("a second transfer can be requested")
	}
	last := s[0].r.member.log.Last()
	for i, at := range s {
		h.create(at, conns[i], 2, fmt.Sprintf("/meanwhile-%d", at.id))
		at.inbox = append(at.inbox,
			&Request{Conn: conns[i], Xid: 3, Op: wire.OpSync, Body: wire.Append(nil, &wire.PathRequest{Path: "/"})},
			&Request{Conn: conns[i], Xid: 4, Op: wire.OpGetChildren, Body: wire.Append(nil, &wire.PathWatchRequest{Path: "/"})},
			&Request{Conn: conns[i], Xid: wire.XidPing, Op: wire.OpPing})
	}
	s[0].inbox = append(s[0].inbox, Connect{Conn: 7001, TimeoutMS: 6000})
	pw := left.session.Password()
	s[0].inbox = append(s[0].inbox, Connect{Conn: 7002, Session: left.session, Password: pw[:], TimeoutMS: 6000})
	opened, resumed := &client{at: s[0]}, &client{at: s[0]}
	h.clients[7001], h.clients[7002] = opened, resumed
	h.run(50)
	if now := s[0].r.member.log.Last(); now != last || !s[0].r.transferring() {
		t.Fatalf("%v was proposed after %v", now, last)
	}
	h.release()
	h.run(100)
	if l := h.leader(); l != s[1] || l.r.Status().Epoch != s[0].r.Status().Epoch {
		t.Fatalf("server %d leads", l.id)
	}
	if all := s[1].r.Elections(); all[len(all)-1].Decision.Ending != election.LeadershipTransferred {
		t.Error(all[len(all)-1].String())
	}
	for i, c := range clients {
		var got []int32
		for _, o := range c.replies {
			if o.Header.Err != wire.OK {
				t.Errorf("client %d: %+v", i, o)
			}
			if o.Request.Xid > 0 {
				got = append(got, o.Request.Xid)
			}
		}
		if c.closed || !slices.Equal(got, []int32{1, 2, 3, 4}) {
			t.Errorf("client %d: closed %v, answers %v", i, c.closed, got)
		}
	}
	if opened.session == 0 || resumed.session != left.session {
		t.Errorf("new session %v; %v resumed, want %v", opened.session, resumed.session, left.session)
	}
}

// TestTransferFallsBackToElection: if the outstanding writes take too long, the term ends
// with an election.
func TestTransferFallsBackToElection(t *testing.T) {
	h, s := leaderFirst(t, true)
	c, id := h.connect(s[0], 0)
	h.delay = func(to *server, e Event) bool { return to == s[0] && isAck(e) }
	h.create(s[0], id, 1, "/a")
	h.run(5)
	epoch := s[0].r.Status().Epoch
	s[0].inbox = append(s[0].inbox, TransferLeadership{To: s[1].id})
	h.run(300)
	h.delay, h.delayed = nil, nil
	h.run(1000)
	l := h.leader()
	if st := l.r.Status(); st.Epoch != epoch+1 {
		t.Errorf("epoch %d follows %d", st.Epoch, epoch)
	}
	if c.closed || len(c.replies) != 1 || c.replies[0].Header.Err != wire.OK {
		t.Errorf("closed %v, %+v", c.closed, c.replies)
	}
}

// TestExpireDuringTransfer: an operator ends a session during a transfer. The client gets
// no answer about that, and the next leader ends the session when asked again.
func TestExpireDuringTransfer(t *testing.T) {
	h, s := leaderFirst(t, true)
	c, id := h.connect(s[0], 0)
	h.delay = func(to *server, e Event) bool { return to == s[0] && isAck(e) }
	h.create(s[0], id, 1, "/a")
	h.run(5)
	s[0].inbox = append(s[0].inbox, TransferLeadership{To: s[1].id})
	h.run(5)
	s[0].inbox = append(s[0].inbox, Expire{Session: c.session})
	h.run(5)
	if !s[0].r.transferring() || s[0].r.Ending(c.session) {
		t.Errorf("transferring: %v; the session ends: %v", s[0].r.transferring(), s[0].r.Ending(c.session))
	}
	h.release()
	h.run(100)
	if _, lives := s[1].r.tree.Session(c.session); !lives || c.closed || h.leader() != s[1] {
		t.Fatalf("the session lives: %v; closed: %v", lives, c.closed)
	}
	s[1].inbox = append(s[1].inbox, Expire{Session: c.session})
	h.run(100)
	if _, lives := s[1].r.tree.Session(c.session); lives || !c.closed {
		t.Errorf("the session lives: %v; closed: %v", lives, c.closed)
	}
}

// TestFollowerCannotTransfer: a server that does not lead reports that, and ignores the
// event.
func TestFollowerCannotTransfer(t *testing.T) {
	h, s := leaderFirst(t, false)
	if _, err := s[1].r.Successor(peerwire.NoServer, false); err == nil {
		t.Error("a follower names a successor")
	}
	s[1].inbox = append(s[1].inbox, TransferLeadership{To: s[2].id})
	h.run(500)
	if h.leader() != s[0] {
		t.Error("another server leads")
	}
	alone := New(s[0].r.tree, Options{}, h.now)
	if _, err := alone.Successor(peerwire.NoServer, false); err == nil {
		t.Error("a standalone server names a successor")
	}
}

// TestStoppingLeaderIsNotInQuorum: a leader that stops does not count towards the quorum
// that establishes the next leader, which would lose its quorum otherwise. Here the third
// server is late. The first one waits for it, and no client of the other servers is
// disconnected.
func TestStoppingLeaderIsNotInQuorum(t *testing.T) {
	h, s := leaderFirst(t, true)
	c, _ := h.connect(s[2], 0)
	epoch := s[0].r.Status().Epoch
	h.delay = h.packets(s[2], s[1])
	s[0].inbox = append(s[0].inbox, TransferLeadership{To: s[1].id, Leaving: true})
	h.run(50)
	if st := s[0].r.Status(); st.Serving {
		t.Errorf("the stopping server counts towards the quorum: %+v", st)
	}
	h.release()
	h.run(50)
	if st := s[0].r.Status(); !st.Serving || st.Leader != s[1].id || st.Epoch != epoch+1 {
		t.Errorf("the stopping server cannot stop: %+v", st)
	}
	h.kill(s[0])
	h.run(300)
	if st := h.leader().r.Status(); st.Leader != s[1].id || st.Epoch != epoch+1 || c.closed {
		t.Errorf("%+v, closed %v", st, c.closed)
	}
}
