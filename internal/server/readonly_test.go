package server

import (
	"testing"

	"bellwether/internal/config"
	"bellwether/wire"
)

// connectReader opens a session on a server without a quorum.
func (r *running) connectReader() *client {
	r.t.Helper()
	c := r.dial()
	c.handshake(wire.ConnectRequest{TimeoutMS: lastingMS, Password: make([]byte, 16), ReadOnly: true, HasReadOnly: true})
	if c.session.Session == 0 || !c.session.ReadOnly {
		r.t.Fatalf("not a read-only session: %+v", c.session)
	}
	return c
}

// TestReadOnlyServes: two servers of three are killed. The last one answers reads, on its
// readers and its loop, and stops that when another server returns.
func TestReadOnlyServes(t *testing.T) {
	g := newTestEnsemble(t, 3, 0, false)
	g.change = func(c *config.Config) { c.ReadOnlyMode = true }
	for _, m := range g.servers {
		g.start(m)
	}
	g.settled()
	last := g.follower()
	before := last.connect()
	before.create("/a", "v")
	for _, m := range g.servers {
		if m != last {
			g.kill(m)
		}
	}
	eventually(t, "reads are answered", func() bool { return last.Status().ReadOnly && last.Serving() })
	before.closed()
	c := last.connectReader()
	var all []byte
	for i := range int32(100) {
		op, q := wire.OpGetData, wire.Record(&wire.PathWatchRequest{Path: "/a"})
		switch i % 10 {
		case 3:
			op, q = wire.OpSync, &wire.PathRequest{Path: "/a"}
		case 7:
			op, q = wire.OpDelete, &wire.PathVersionRequest{Path: "/a", Version: -1}
		}
		all = append(all, request(i+1, op, q)...)
	}
	c.write(all)
	for i := range int32(100) {
		want := wire.OK
		if i%10 == 3 || i%10 == 7 {
			want = wire.ErrNotReadOnly
		}
		if h := c.reply(nil); h.Xid != i+1 || h.Err != want {
			t.Fatalf("answer %d is %+v, want %v", i+1, h, want)
		}
	}
	if h := c.call(wire.OpPing, nil, nil); h.Xid != wire.XidPing {
		t.Errorf("ping: %+v", h)
	}
	for _, m := range g.servers {
		if m.down {
			g.start(m)
			break
		}
	}
	c.closed()
	eventually(t, "there is a quorum", func() bool { return !last.Status().ReadOnly && last.Serving() })
	again := last.dial()
	again.handshake(wire.ConnectRequest{TimeoutMS: lastingMS, Session: before.session.Session, Password: before.session.Password, HasReadOnly: true})
	if again.session.Session != before.session.Session {
		t.Errorf("the session from before: %+v", again.session)
	}
	again.create("/b", "")
}
