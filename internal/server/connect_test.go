package server

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"testing"
	"time"

	"bellwether/wire"
)

// ops is the operator of the tests.
var ops = Operator{Name: "ada", Addr: netip.MustParseAddrPort("192.0.2.7:1234")}

// operator returns a client on a connection of the operator.
func (r *running) operator() *client {
	r.t.Helper()
	nc, err := r.Connect(ops)
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { nc.Close() })
	if err := nc.SetDeadline(time.Now().Add(eventTimeout)); err != nil {
		r.t.Fatal(err)
	}
	c := &client{t: r.t, nc: nc}
	c.handshake(wire.ConnectRequest{TimeoutMS: lastingMS, Password: make([]byte, 16)})
	return c
}

// TestOperatorsHaveSuperAndAreAudited: an operator's connection may do what super may, even if clients
// must log in, and the audit log names the operator and the address.
func TestOperatorsHaveSuperAndAreAudited(t *testing.T) {
	cfg := auditConfig(t)
	cfg.Access.EnforceAuth, cfg.Access.AuthSchemes = true, []string{"digest"}
	r := start(t, Options{Config: cfg})
	c := r.operator()
	c.must(wire.OpCreate, &wire.CreateRequest{Path: "/closed", ACL: []wire.ACL{{Perms: wire.PermRead, ID: wire.ID{Scheme: "digest", ID: "a:b"}}}}, &wire.PathResponse{})
	c.must(wire.OpSetData, &wire.SetDataRequest{Path: "/closed", Data: []byte("x"), Version: 0}, &wire.StatResponse{})
	if got := c.data("/closed"); got != "x" {
		t.Errorf("data: %q", got)
	}
	other := r.connect()
	if h := other.call(wire.OpCreate, create("/other", ""), &wire.PathResponse{}); h.Err != wire.ErrSessionClosedRequireAuth {
		t.Errorf("a client that has not logged in: %v", h.Err)
	}
	r.Record(ops, "transferLeadership", "", errors.New("no other server"))
	r.end()
	var got []string
	for _, e := range records(t, cfg.Audit.File) {
		if e["user"] == "ada" || e["user"] == "ada,192.0.2.7" {
			got = append(got, fmt.Sprint(e["user"], " ", e["ip"], " ", e["operation"], " ", e["znode"], " ", e["result"]))
		}
	}
	want := []string{"ada,192.0.2.7 192.0.2.7 create /closed success", "ada,192.0.2.7 192.0.2.7 setData /closed success", "ada 192.0.2.7 transferLeadership  failure"}
	if !slices.Equal(got, want) {
		t.Errorf("audit log: %q", got)
	}
	if _, err := r.Connect(ops); !errors.Is(err, ErrNotServing) {
		t.Errorf("after the end: %v", err)
	}
}

// TestOperatorsEndSessions: an operator of any server can end a session of a client of another server.
// Its ephemerals are deleted. Ending a session that does not exist is an error.
func TestOperatorsEndSessions(t *testing.T) {
	g := newTestEnsemble(t, 3, 0, false)
	for _, m := range g.servers {
		g.start(m)
	}
	g.settled()
	for i, m := range g.servers {
		at := g.servers[(i+1)%3]
		c := at.connect()
		path := fmt.Sprintf("/ephemeral%d", i)
		c.must(wire.OpCreate, &wire.CreateRequest{Path: path, ACL: wire.OpenACL(), Flags: wire.FlagEphemeral}, &wire.PathResponse{})
		eventually(t, "the session to be known", func() bool {
			_, ok := m.Tree().Session(c.session.Session)
			return ok
		})
		if err := m.CloseSession(ops, c.session.Session); err != nil {
			t.Fatalf("server %d ends a session of server %d: %v", m.id, at.id, err)
		}
		eventually(t, "the ephemeral to be deleted", func() bool {
			return at.Tree().Exists(anonymousReader{}, path, false, new(wire.StatResponse)) == wire.ErrNoNode
		})
		c.untilEnd()
		if err := m.CloseSession(ops, c.session.Session); !errors.Is(err, ErrNoSession) {
			t.Errorf("ending it again: %v", err)
		}
	}
}

// TestFanOuts: changes that notify many connections are kept, newest first, and others are not.
func TestFanOuts(t *testing.T) {
	r := start(t, Options{})
	c := r.connect()
	c.create("/hot", "")
	c.create("/cold", "")
	for i := range FanOutMin {
		w := r.connect()
		w.must(wire.OpGetData, &wire.PathWatchRequest{Path: "/hot", Watch: true}, &wire.DataResponse{})
		if i > 0 {
			w.must(wire.OpGetData, &wire.PathWatchRequest{Path: "/cold", Watch: true}, &wire.DataResponse{})
		}
	}
	for _, path := range []string{"/hot", "/cold"} {
		c.must(wire.OpSetData, &wire.SetDataRequest{Path: path, Version: -1}, &wire.StatResponse{})
	}
	got := r.FanOuts()
	if len(got) != 1 || got[0].Path != "/hot" || got[0].Watchers != FanOutMin || got[0].Type != wire.EventNodeDataChanged || got[0].At.IsZero() {
		t.Errorf("%+v", got)
	}
}

// TestConnectionsShowTheirCost: a connection is described with bytes, watches and identities.
func TestConnectionsShowTheirCost(t *testing.T) {
	r := start(t, Options{})
	c := r.connect()
	c.create("/a", "0123456789")
	c.must(wire.OpGetData, &wire.PathWatchRequest{Path: "/a", Watch: true}, &wire.DataResponse{})
	eventually(t, "the cost", func() bool {
		d := r.Connections()[0]
		sent := int64(len(wire.AppendFrame(nil, &wire.ConnectRequest{Password: make([]byte, 16), HasReadOnly: true})) + len(request(1, wire.OpCreate, create("/a", "0123456789"))) + len(request(2, wire.OpGetData, &wire.PathWatchRequest{Path: "/a", Watch: true})))
		return d.Received == 3 && d.BytesIn == sent && d.Watches == 1 && d.WatchBytes > 2 && d.BytesOut > 100 && len(d.Identities) == 1 && !d.TLS
	})
}
