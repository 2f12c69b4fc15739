package replica

import (
	"slices"
	"strings"
	"testing"

	"bellwether/internal/peerwire"
	"bellwether/internal/record"
	"bellwether/internal/tree"
	"bellwether/wire"
)

// TestAbandonedRequestsAreReported: a write whose connection ends before it is applied is
// reported with its result if the option is on, on the leader and on a follower, and
// nothing is remembered after it.
func TestAbandonedRequestsAreReported(t *testing.T) {
	for _, report := range []bool{true, false} {
		for i, name := range []string{"leader", "follower"} {
			t.Run(name, func(t *testing.T) {
				h, s := leaderFirst(t, true)
				at := s[i]
				at.r.opt.ReportAbandoned = report
				c, conn := h.connect(at, 0)
				h.stallDisks(nil)
				send := func(xid int32, op wire.OpCode, body wire.Record) {
					at.inbox = append(at.inbox, &Request{Conn: conn, Xid: xid, Op: op, Body: wire.Append(nil, body), Client: xid})
				}
				send(1, wire.OpCreate, &wire.CreateRequest{Path: "/n-", ACL: wire.OpenACL(), Flags: wire.FlagPersistentSequential})
				send(2, wire.OpDelete, &wire.PathVersionRequest{Path: "/missing", Version: -1})
				at.inbox = append(at.inbox, &Request{Conn: conn, Xid: 3, Op: wire.OpDelete, Refuse: wire.ErrThrottledOp, Client: int32(3)})
				send(4, wire.OpGetData, &wire.PathWatchRequest{Path: "/"})
				h.run(100)
				at.inbox = append(at.inbox, Disconnected{conn})
				h.run(100)
				if report { // a request that the server refused is reported at once
					if len(c.replies) != 1 || c.replies[0].Header.Err != wire.ErrThrottledOp || c.replies[0].Request.Client != int32(3) {
						t.Fatalf("at the end of the connection: %+v", c.replies)
					}
					c.replies = nil
				}
				h.release()
				h.run(300)
				if !h.exists("/n-0000000000") {
					t.Fatal("the write is not applied")
				}
				if !report {
					if len(c.replies) != 0 || at.r.abandoned.requests != nil {
						t.Errorf("reported without the option: %+v", c.replies)
					}
					return
				}
				if len(c.replies) != 2 {
					t.Fatalf("%d reports: %+v", len(c.replies), c.replies)
				}
				if p, ok := c.replies[0].Response.(*wire.PathResponse); !ok || p.Path != "/n-0000000000" || c.replies[0].Request.Client != int32(1) {
					t.Errorf("first report: %+v", c.replies[0])
				}
				if o := c.replies[1]; o.Header.Err != wire.ErrNoNode || o.Request.Client != int32(2) {
					t.Errorf("second report: %+v", o)
				}
				if a := at.r.abandoned; a.count != 0 || len(a.requests) != 0 {
					t.Errorf("still remembered: %+v", a)
				}
			})
		}
	}
}

// abandonOne opens a session at a follower, which loses a create request on the way to the leader, and ends
// the session's connection.
func (h *cluster) abandonOne(at, leader *server) *client {
	h.t.Helper()
	c, conn := h.connect(at, 0)
	h.delay = h.packets(at, leader)
	h.create(at, conn, 1, "/lost")
	h.run(50)
	at.inbox = append(at.inbox, Disconnected{conn})
	h.run(50)
	h.delayed, h.delay = nil, nil // the request does not arrive
	if at.r.abandoned.count != 1 {
		h.t.Fatalf("%d abandoned requests", at.r.abandoned.count)
	}
	return c
}

// TestAbandonedRequestsAreForgotten: a request that the leader never got is forgotten when
// its session gets a new connection at the same server, and when its session ends.
func TestAbandonedRequestsAreForgotten(t *testing.T) {
	h, s := leaderFirst(t, true)
	at := s[1]
	at.r.opt.ReportAbandoned = true
	c := h.abandonOne(at, s[0])
	if again, _ := h.connect(at, c.session); again.session != c.session || at.r.abandoned.count != 0 {
		t.Errorf("session %v came back as %v, %d remembered", c.session, again.session, at.r.abandoned.count)
	}
	h.abandonOne(at, s[0])
	h.run(60_000)
	if st := at.r.Status(); st.Role != peerwire.Following || at.r.abandoned.count != 0 {
		t.Errorf("%v: %d remembered after the end of the session", st.Role, at.r.abandoned.count)
	}
	if h.exists("/lost") {
		t.Error("the request has arrived")
	}
}

// TestAbandonedRequestIsNotTakenForAnother: a request that the leader never got is forgotten
// when its session moves to another server, or when another leader serves. Otherwise a later
// request with the same xid would be reported in its place.
func TestAbandonedRequestIsNotTakenForAnother(t *testing.T) {
	for _, change := range []string{"another server", "another leader"} {
		h, s := leaderFirst(t, true)
		at := s[1]
		at.r.opt.ReportAbandoned = true
		c := h.abandonOne(at, s[0])
		if change == "another leader" {
			h.kill(s[0])
			h.run(3000)
		}
		again, now := h.connect(s[2], c.session)
		h.run(1000)
		if again.session != c.session {
			t.Fatalf("%s: the session is lost", change)
		}
		if at.r.abandoned.count != 0 {
			t.Errorf("%s: %d requests are remembered", change, at.r.abandoned.count)
		}
		before := len(c.replies)
		h.create(s[2], now, 1, "/other")
		h.run(200)
		if !h.exists("/other") || len(c.replies) != before {
			t.Errorf("%s: the request of the other connection is reported: %+v", change, c.replies[before:])
		}
	}
}

// lost counts the abandoned requests that a server has lost.
func (s *server) lost() int {
	n := 0
	for _, o := range s.seen {
		if _, ok := o.(AbandonedLost); ok {
			n++
		}
	}
	return n
}

// TestLostAbandonedRequestsAreCounted: an abandoned request beyond the limit is not
// remembered, and an observation says so.
func TestLostAbandonedRequestsAreCounted(t *testing.T) {
	h, s := leaderFirst(t, true)
	at := s[1]
	at.r.opt.ReportAbandoned = true
	c, conn := h.connect(at, 0)
	h.stallDisks(nil)
	h.create(at, conn, 1, "/n")
	h.run(50)
	full := make([]*Request, abandonedMax)
	for i := range full {
		full[i] = &Request{zxid: forwarded}
	}
	at.r.abandoned = abandoned{requests: map[wire.SessionID][]*Request{c.session + 1: full}, count: abandonedMax}
	at.inbox = append(at.inbox, Disconnected{conn})
	h.run(50)
	h.release()
	h.run(300)
	if at.lost() != 1 || len(c.replies) != 0 {
		t.Errorf("%d are counted, %d reported", at.lost(), len(c.replies))
	}
}

// TestAbandonedRequestUnderAZooKeeperLeader: such a leader does not say that a session moves.
// A later request of the session with the same xid, at another server, is not taken for the
// abandoned request, which counts as lost. The transaction of the abandoned request itself is
// reported.
func TestAbandonedRequestUnderAZooKeeperLeader(t *testing.T) {
	for _, c := range []struct {
		what     string
		body     record.TxnBody
		typ      wire.OpCode
		reported int
	}{
		{"its transaction", &record.CreateTxn{Path: "/lost"}, wire.OpCreate, 1},
		{"another znode", &record.CreateTxn{Path: "/other"}, wire.OpCreate, 0},
		{"another operation", &record.DeleteTxn{Path: "/lost"}, wire.OpDelete, 0},
		{"an error", &record.ErrorTxn{Err: wire.ErrNoNode}, wire.OpError, 0},
		{"a multi", &record.MultiTxn{}, wire.OpMulti, 0},
	} {
		h := newCluster(t, 3, true)
		for _, s := range h.servers {
			s.r.member.opt.CompatibleOnly = true
		}
		h.run(1000)
		s := []*server{h.leader()}
		for _, other := range h.servers {
			if other != s[0] {
				s = append(s, other)
			}
		}
		at := s[1].r
		at.opt.ReportAbandoned = true
		session := h.abandonOne(s[1], s[0]).session
		at.observations = nil
		before := at.outputs.Len()
		at.reportAbandoned(&record.Txn{TxnHeader: record.TxnHeader{Session: session, Cxid: 1, Zxid: wire.MakeZxid(1, 99), Type: c.typ}, Body: c.body}, tree.Result{})
		reported, lost := at.outputs.Len()-before, len(at.observations)
		if reported != c.reported || reported+lost != 1 || at.abandoned.count != 0 {
			t.Errorf("%s: %d reported, %d lost, %d remembered", c.what, reported, lost, at.abandoned.count)
		}
	}
}

// TestRequestUnderAZooKeeperLeader: clients such as kazoo use the same xids again on each connection. Under a ZooKeeper leader a server
// may apply a transaction of the session's earlier connection, at another server, while a request with its xid waits. That
// transaction is not its answer. A change that was not carried out was acknowledged like that.
func TestRequestUnderAZooKeeperLeader(t *testing.T) {
	for _, compatible := range []bool{true, false} {
		h := newCluster(t, 3, true)
		for _, s := range h.servers {
			s.r.member.opt.CompatibleOnly = compatible
		}
		h.run(1000)
		at := h.follower()
		_, conn := h.connect(at, 0)
		h.delay = h.packets(at, h.leader())
		h.create(at, conn, 1, "/own-")
		h.run(1)
		create := *at.r.conns[conn].waiting.First()
		multi := &Request{Xid: 1, Op: wire.OpMulti, zxid: forwarded, doubtful: create.doubtful}
		reconfig := &Request{Xid: 1, Op: wire.OpReconfig, zxid: forwarded, doubtful: create.doubtful}
		for _, c := range []struct {
			q     *Request
			typ   wire.OpCode
			body  record.TxnBody
			could bool
		}{
			{create, wire.OpCreate, &record.CreateTxn{Path: "/own-"}, true},
			{create, wire.OpCreate, &record.CreateTxn{Path: "/own-0000000001"}, true},
			{create, wire.OpCreate, &record.CreateTxn{Path: "/other"}, false},
			{create, wire.OpSetData, &record.SetDataTxn{Path: "/own-"}, false},
			{create, wire.OpMulti, &record.MultiTxn{}, false},
			{create, wire.OpError, &record.ErrorTxn{Err: wire.ErrNoNode}, true},
			{multi, wire.OpMulti, &record.MultiTxn{}, true},
			{multi, wire.OpError, &record.ErrorTxn{Err: wire.ErrNoNode}, true},
			{multi, wire.OpCreate, &record.CreateTxn{Path: "/own-"}, false},
			{reconfig, wire.OpReconfig, &record.SetDataTxn{}, true},
		} {
			txn := &record.Txn{TxnHeader: record.TxnHeader{Cxid: 1, Zxid: 1, Type: c.typ}, Body: c.body}
			if got := c.q.awaits(txn); got != (c.could || !compatible) {
				t.Errorf("compatible %v: %v awaits %v of %+v: %v", compatible, c.q.Op, c.typ, c.body, got)
			}
		}
	}
}

// TestTransactionOfARequest: a transaction is that of a request if it does with the same znode what the request asks for. The requests
// of a delete and of a check are of one type, so both transactions count.
func TestTransactionOfARequest(t *testing.T) {
	txns := map[string]func(path string) record.TxnBody{
		"create":    func(p string) record.TxnBody { return &record.CreateTxn{Path: p} },
		"container": func(p string) record.TxnBody { return &record.CreateContainerTxn{Path: p} },
		"TTL":       func(p string) record.TxnBody { return &record.CreateTTLTxn{Path: p} },
		"delete":    func(p string) record.TxnBody { return &record.DeleteTxn{Path: p} },
		"check":     func(p string) record.TxnBody { return &record.CheckTxn{Path: p} },
		"setData":   func(p string) record.TxnBody { return &record.SetDataTxn{Path: p} },
		"setACL":    func(p string) record.TxnBody { return &record.SetACLTxn{Path: p} },
		"error":     func(string) record.TxnBody { return &record.ErrorTxn{} },
	}
	for _, c := range []struct {
		request wire.Record
		makes   string
	}{
		{&wire.CreateRequest{Path: "/a"}, "create container TTL"},
		{&wire.CreateTTLRequest{CreateRequest: wire.CreateRequest{Path: "/a"}}, "create container TTL"},
		{&wire.PathVersionRequest{Path: "/a"}, "delete check"},
		{&wire.SetDataRequest{Path: "/a"}, "setData"},
		{&wire.SetACLRequest{Path: "/a"}, "setACL"},
		{&wire.PathRequest{Path: "/a"}, ""},
	} {
		for name, txn := range txns {
			want := slices.Contains(strings.Fields(c.makes), name)
			sequential := want && strings.HasPrefix(c.makes, "create")
			for path, want := range map[string]bool{"/a": want, "/a0000000001": sequential, "/b": false} {
				if got := sameZnode(c.request, txn(path)); got != want {
					t.Errorf("%T of /a, transaction %s of %s: %v", c.request, name, path, got)
				}
			}
		}
	}
}

// TestRequestMadeTransaction: a transaction is certainly that of a request only if it does the same with the same znode, and certainly another one's
// if it does something else. Errors, and changes of the membership, can be those of any.
func TestRequestMadeTransaction(t *testing.T) {
	ask := func(op wire.OpCode, body wire.Record) *Request {
		q := &Request{Op: op}
		if body != nil {
			q.Body = wire.Append(nil, body)
		}
		return q
	}
	create := &wire.CreateRequest{Path: "/a", ACL: wire.OpenACL()}
	multi := func(paths ...string) *Request {
		m := &wire.MultiRequest{}
		for _, path := range paths {
			m.Ops = append(m.Ops, wire.Op{Type: wire.OpCreate, Request: &wire.CreateRequest{Path: path, ACL: wire.OpenACL()}})
		}
		return ask(wire.OpMulti, m)
	}
	made := func(kind wire.OpCode, body record.TxnBody) *record.Txn {
		return &record.Txn{TxnHeader: record.TxnHeader{Type: kind}, Body: body}
	}
	both := func(paths ...string) *record.Txn {
		m := &record.MultiTxn{}
		for _, path := range paths {
			m.Ops = append(m.Ops, record.SubTxn{Type: wire.OpCreate, Body: &record.CreateTxn{Path: path}})
		}
		return made(wire.OpMulti, m)
	}
	broken := &Request{Op: wire.OpSetData, Body: []byte{1}}
	for _, c := range []struct {
		name          string
		request       *Request
		txn           *record.Txn
		made, foreign bool
	}{
		{"create", ask(wire.OpCreate, create), made(wire.OpCreate, &record.CreateTxn{Path: "/a"}), true, false},
		{"create of a sequential znode", ask(wire.OpCreate2, create), made(wire.OpCreate, &record.CreateTxn{Path: "/a0000000001"}), true, false},
		{"create elsewhere", ask(wire.OpCreate, create), made(wire.OpCreate, &record.CreateTxn{Path: "/b"}), false, true},
		{"create, and a delete", ask(wire.OpCreate, create), made(wire.OpDelete, &record.DeleteTxn{Path: "/a"}), false, true},
		{"container", ask(wire.OpCreateContainer, create), made(wire.OpCreateContainer, &record.CreateContainerTxn{Path: "/a"}), true, false},
		{"TTL", ask(wire.OpCreateTTL, &wire.CreateTTLRequest{CreateRequest: wire.CreateRequest{Path: "/a", ACL: wire.OpenACL()}}), made(wire.OpCreateTTL, &record.CreateTTLTxn{Path: "/a"}), true, false},
		{"TTL elsewhere", ask(wire.OpCreateTTL, &wire.CreateTTLRequest{CreateRequest: wire.CreateRequest{Path: "/a", ACL: wire.OpenACL()}}), made(wire.OpCreateTTL, &record.CreateTTLTxn{Path: "/b"}), false, true},
		{"delete", ask(wire.OpDelete, &wire.PathVersionRequest{Path: "/a"}), made(wire.OpDelete, &record.DeleteTxn{Path: "/a"}), true, false},
		{"delete below", ask(wire.OpDelete, &wire.PathVersionRequest{Path: "/a"}), made(wire.OpDelete, &record.DeleteTxn{Path: "/a/b"}), false, true},
		{"setData", ask(wire.OpSetData, &wire.SetDataRequest{Path: "/a"}), made(wire.OpSetData, &record.SetDataTxn{Path: "/a"}), true, false},
		{"setData elsewhere", ask(wire.OpSetData, &wire.SetDataRequest{Path: "/a"}), made(wire.OpSetData, &record.SetDataTxn{Path: "/b"}), false, true},
		{"setData, and setACL", ask(wire.OpSetData, &wire.SetDataRequest{Path: "/a"}), made(wire.OpSetACL, &record.SetACLTxn{Path: "/a"}), false, true},
		{"setACL", ask(wire.OpSetACL, &wire.SetACLRequest{Path: "/a"}), made(wire.OpSetACL, &record.SetACLTxn{Path: "/a"}), true, false},
		{"setACL elsewhere", ask(wire.OpSetACL, &wire.SetACLRequest{Path: "/a"}), made(wire.OpSetACL, &record.SetACLTxn{Path: "/b"}), false, true},
		{"closeSession", ask(wire.OpCloseSession, nil), made(wire.OpCloseSession, nil), true, false},
		{"closeSession, and a create", ask(wire.OpCloseSession, nil), made(wire.OpCreate, &record.CreateTxn{Path: "/a"}), false, true},
		{"multi", multi("/a", "/b"), both("/a", "/b"), true, false},
		{"multi with a different second operation", multi("/a", "/b"), both("/a", "/c"), false, false},
		{"multi with a different first operation", multi("/a", "/b"), both("/c", "/b"), false, false},
		{"longer multi", multi("/a"), both("/a", "/b"), false, false},
		{"multi, and a create", multi("/a"), made(wire.OpCreate, &record.CreateTxn{Path: "/a"}), false, true},
		{"an error", ask(wire.OpCreate, create), made(wire.OpError, &record.ErrorTxn{}), false, false},
		{"reconfiguration", ask(wire.OpReconfig, &wire.ReconfigRequest{}), made(wire.OpSetData, &record.SetDataTxn{Path: "/a"}), false, false},
		{"request that cannot be read", broken, made(wire.OpSetData, &record.SetDataTxn{Path: "/a"}), false, true},
	} {
		if got := c.request.made(c.txn); got != c.made {
			t.Errorf("%s: certainly that of the request: %v", c.name, got)
		}
		if got := c.request.foreign(c.txn); got != c.foreign {
			t.Errorf("%s: certainly not that of the request: %v", c.name, got)
		}
	}
}
