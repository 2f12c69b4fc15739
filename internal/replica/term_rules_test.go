package replica

import (
	"testing"

	"bellwether/internal/peerwire"
	"bellwether/internal/record"
	"bellwether/internal/tree"
	"bellwether/internal/zab"
	"bellwether/wire"
)

// received returns the packet that an event delivers; nil for other events.
func received(e Event) (zab.LinkID, *peerwire.QuorumPacket) {
	if z, ok := e.(Zab); ok {
		if in, ok := z.Event.(zab.Received); ok {
			return in.Link, in.Packet
		}
	}
	return 0, nil
}

// TestKeptConnections: connections survive the end of a term if the clients may be kept, the server has
// space for its log, and the term was that of a native leader or did not serve.
func TestKeptConnections(t *testing.T) {
	for _, c := range []struct {
		name string
		set  func(m *member)
		want bool
	}{
		{"native leader", func(*member) {}, true},
		{"clients are not to be kept", func(m *member) { m.opt.KeepClients = false }, false},
		{"no space for the log", func(m *member) { m.disabled = "no space" }, false},
		{"compatible leader", func(m *member) { m.opt.CompatibleOnly = true }, false},
		{"compatible leader that has not served", func(m *member) { m.opt.CompatibleOnly, m.serving = true, false }, true},
	} {
		h, s := leaderFirst(t, true)
		_, id := h.connect(s[1], 0)
		c.set(s[1].r.member)
		if got := s[1].r.keep(s[1].r.conns[id]); got != c.want {
			t.Errorf("%s: kept %v", c.name, got)
		}
	}
}

// TestNewLeaderKnowsItsKeptSessions: a new leader records the sessions of the connections that it has kept as its own, so that it
// refuses what another server forwards for them.
func TestNewLeaderKnowsItsKeptSessions(t *testing.T) {
	h, s := leaderFirst(t, true)
	kept := map[*server]wire.SessionID{}
	for _, o := range s[1:] {
		c, _ := h.connect(o, 0)
		kept[o] = c.session
	}
	h.kill(s[0])
	h.run(3000)
	l := h.leader()
	if at, known := l.r.member.serverOf[kept[l]]; !known || at != l.id {
		t.Errorf("the session of a kept connection is at server %d, known: %v; want server %d", at, known, l.id)
	}
}

// TestConnectionsEndAfterAMissedTerm: when a server serves again, it closes the connections that were kept
// if it has missed a term in which their requests may have been carried out. In the same epoch as before
// only a connection with a request in flight is closed.
func TestConnectionsEndAfterAMissedTerm(t *testing.T) {
	for _, c := range []struct {
		name   string
		later  wire.Epoch // how much later the present epoch is than the one in which the server served last
		flight bool
		kept   bool
	}{
		{"the next epoch", 1, false, true},
		{"the next epoch, a request in flight", 1, true, true},
		{"the same epoch", 0, false, true},
		{"the same epoch, a request in flight", 0, true, false},
		{"an epoch was missed", 2, false, false},
		{"an epoch was missed, a request in flight", 2, true, false},
	} {
		h, s := leaderFirst(t, true)
		_, id := h.connect(s[1], 0)
		if c.flight {
			h.delay = h.packets(s[1], s[0])
			h.create(s[1], id, 1, "/a")
			h.run(0)
		}
		r := s[1].r
		m := r.member
		m.epoch += 2 // so that there are earlier ones
		r.resumeKept(m.epoch - c.later)
		if kept := r.conns[id] != nil; kept != c.kept {
			t.Errorf("%s: kept %v", c.name, kept)
		}
	}
}

// TestServesNotAfterItsTerm: if UPTODATE and the end of the link arrive in one batch, the term is over
// before the server begins to serve, so it does not begin.
func TestServesNotAfterItsTerm(t *testing.T) {
	h := newCluster(t, 3, true)
	s, over := h.servers[0], false
	h.delay = func(to *server, e Event) bool {
		if link, p := received(e); to == s && p != nil && p.Type == peerwire.PacketUpToDate {
			s.r.Step(h.now, e)
			s.r.Step(h.now, Zab{zab.Closed{Link: link, Why: "end of file"}})
			over = true
			return true
		}
		_, wake := e.(Wake)
		return over && to == s && !wake
	}
	h.run(1000)
	if st := s.r.Status(); !over || st.Serving {
		t.Errorf("the term has ended: %v; %+v", over, st)
	}
}

// TestPreparedChangesEndWithTheTerm: what a leader has prepared and not committed does not affect the tree
// after its term: another leader may cut it off.
func TestPreparedChangesEndWithTheTerm(t *testing.T) {
	h, s := leaderFirst(t, true)
	c, id := h.connect(s[0], 0)
	h.delay = func(to *server, e Event) bool { return to != s[0] }
	h.create(s[0], id, 1, "/a")
	h.run(0)
	again := func() wire.OpCode {
		body := wire.Append(nil, &wire.CreateRequest{Path: "/a", ACL: wire.OpenACL()})
		txn, _ := s[0].r.tree.Prepare(&tree.Request{Session: c.session, Cxid: 2, Op: wire.OpCreate, Body: body}, s[0].r.member.log.Last()+1, h.now.Wall)
		return txn.Type
	}
	if op := again(); op != wire.OpError {
		t.Fatalf("during the term, a second create of /a is prepared as %v", op)
	}
	h.kill(s[1])
	h.kill(s[2])
	h.run(0)
	if st := s[0].r.Status(); st.Role != peerwire.Looking {
		t.Fatalf("the term goes on: %+v", st)
	}
	if op := again(); op != wire.OpCreate {
		t.Errorf("after the term, a create of /a is prepared as %v", op)
	}
}

// TestTransactionThatAnswers: a request that this server has proposed is answered by the transaction with
// its zxid; one that it has forwarded, by the transaction with its xid. A closeSession answers only a
// closeSession.
func TestTransactionThatAnswers(t *testing.T) {
	for _, c := range []struct {
		op   wire.OpCode
		zxid wire.Zxid
		txn  record.TxnHeader
		want bool
	}{
		{wire.OpCreate, 5, record.TxnHeader{Zxid: 5, Type: wire.OpCreate}, true},
		{wire.OpCreate, 5, record.TxnHeader{Zxid: 6, Type: wire.OpCreate, Cxid: 1}, false},
		{wire.OpCreate, forwarded, record.TxnHeader{Zxid: 5, Type: wire.OpCreate, Cxid: 1}, true},
		{wire.OpCreate, forwarded, record.TxnHeader{Zxid: 5, Type: wire.OpError, Cxid: 1}, true},
		{wire.OpCreate, forwarded, record.TxnHeader{Zxid: 5, Type: wire.OpCreate, Cxid: 2}, false},
		{wire.OpCreate, held, record.TxnHeader{Zxid: 5, Type: wire.OpCreate, Cxid: 1}, false},
		{wire.OpCreate, forwarded, record.TxnHeader{Zxid: 5, Type: wire.OpCloseSession, Cxid: 1}, false},
		{wire.OpCloseSession, forwarded, record.TxnHeader{Zxid: 5, Type: wire.OpCloseSession, Cxid: 1}, true},
	} {
		q := &Request{Xid: 1, Op: c.op, zxid: c.zxid}
		if got := q.awaits(&record.Txn{TxnHeader: c.txn}); got != c.want {
			t.Errorf("%v that waits for %v, transaction %+v: %v", c.op, c.zxid, c.txn, got)
		}
	}
}

// TestResumedSessionWaitsForTheSync: under a compatible leader a client gets its session back only when
// the sync is answered that its server has sent behind the question whether the session lives. Before
// that the server may lack what the client has seen.
func TestResumedSessionWaitsForTheSync(t *testing.T) {
	h := newCluster(t, 3, false)
	for _, s := range h.servers {
		s.r.member.opt.CompatibleOnly = true
	}
	h.run(1000)
	first, _ := h.connect(h.servers[0], 0)
	h.delay = func(to *server, e Event) bool {
		_, p := received(e)
		return to == h.servers[1] && p != nil && p.Type == peerwire.PacketSync
	}
	again, _ := h.connect(h.servers[1], first.session)
	if first.session == 0 || again.session != 0 || again.closed || len(h.delayed) != 1 {
		t.Fatalf("session %v, resumed %v, closed %v before the sync is answered; %d answers wait", first.session, again.session, again.closed, len(h.delayed))
	}
	h.release()
	if h.run(100); again.session != first.session {
		t.Errorf("resumed %v, want %v", again.session, first.session)
	}
}

// TestDisabledServerDoesNotLook: a server without space for its log begins no election until there is
// space again.
func TestDisabledServerDoesNotLook(t *testing.T) {
	h, s := leaderFirst(t, false)
	full := s[1]
	z, gen := full.r.member.log.Last(), full.r.member.generation
	before := len(full.r.Elections())
	full.inbox = append(full.inbox, LogFull{z, gen}, Zab{zab.Refused{Zxid: z, Generation: gen, Why: "no space"}})
	h.run(3000)
	if n := len(full.r.Elections()); n != before || full.r.Status().Serving {
		t.Errorf("%d elections while the log is full; %+v", n-before, full.r.Status())
	}
	full.inbox = append(full.inbox, LogFree{})
	h.run(1000)
	if n := len(full.r.Elections()); n == before || !full.r.Status().Serving {
		t.Errorf("%d elections when the log has space again; %+v", n-before, full.r.Status())
	}
}

// TestNothingBehindAnEndThatWaits: a leader whose term is about to end keeps the closeSession of a client for the
// next leader. What the client sends behind it is dropped, as in every other case.
func TestNothingBehindAnEndThatWaits(t *testing.T) {
	h, s := leaderFirst(t, true)
	_, id := h.connect(s[0], 0)
	r := s[0].r
	r.member.leader.Step(h.now.Mono, zab.Leave{Why: "no quorum is connected any more"})
	body := wire.Append(nil, &wire.CreateRequest{Path: "/late", ACL: wire.OpenACL()})
	r.Step(h.now, &Request{Conn: id, Xid: 1, Op: wire.OpCloseSession})
	r.Step(h.now, &Request{Conn: id, Xid: 2, Op: wire.OpCreate, Body: body})
	if n := r.conns[id].waiting.Len(); n != 1 {
		t.Errorf("%d requests wait, want the closeSession alone", n)
	}
}

// TestPingIsNotAnsweredBetweenTerms: a late confirmation of the leader answers no ping of a learner that does not serve any more.
func TestPingIsNotAnsweredBetweenTerms(t *testing.T) {
	for serving, want := range map[bool]int{true: 0, false: 1} {
		h, s := leaderFirst(t, true)
		_, id := h.connect(s[1], 0)
		r := s[1].r
		r.member.pings.Push(heldPing{r.conns[id], &Request{}, 5})
		r.member.serving = serving
		r.confirmed(5)
		if got := r.member.pings.Len(); got != want {
			t.Errorf("serving %v: %d pings wait, want %d", serving, got, want)
		}
	}
}
