package server

import (
	"errors"
	"net"
	"os"
	"testing"
	"time"

	"bellwether/wire"
)

// TestHooksOfClientsAndClock: a listener from the options takes the place of the client port, and a skew
// of the clock shows in the times of new znodes.
func TestHooksOfClientsAndClock(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	const skew = 1000 * time.Hour
	r := start(t, Options{Hooks: Hooks{Clients: ln, Skew: func() time.Duration { return skew }}})
	if r.Addr() != ln.Addr() {
		t.Errorf("it listens at %v, not %v", r.Addr(), ln.Addr())
	}
	c := r.connect()
	c.create("/x", "")
	var s wire.StatResponse
	c.must(wire.OpExists, &wire.PathWatchRequest{Path: "/x"}, &s)
	if ahead := time.Until(time.UnixMilli(s.Stat.Ctime)); ahead < skew-time.Minute || ahead > skew+time.Minute {
		t.Errorf("the znode was made in %v", ahead)
	}
	if err := r.end(); err != nil {
		t.Error(err)
	}
	if _, err := ln.Accept(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("the listener after the end: %v", err)
	}
}

// TestFreezeAndAbort: a frozen server decides nothing until it is released, and a frozen server can be
// aborted.
func TestFreezeAndAbort(t *testing.T) {
	r := start(t, Options{})
	c := r.connect()
	thaw := r.Freeze()
	c.send(wire.OpCreate, create("/x", ""))
	c.nc.SetReadDeadline(time.Now().Add(50 * time.Millisecond))
	if _, err := c.nc.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("a frozen server answers: %v", err)
	}
	thaw()
	c.nc.SetReadDeadline(time.Now().Add(eventTimeout))
	if h := c.reply(&wire.PathResponse{}); h.Err != wire.OK {
		t.Errorf("the create was answered %v", h.Err)
	}
	r.Freeze()
	why := errors.New("aborted")
	r.Abort(why)
	if err := r.end(); !errors.Is(err, why) {
		t.Errorf("it ended with %v", err)
	}
}

// TestExpireOnDemand: a session that is expired on demand ends as any other session does. An id that
// belongs to no session has no effect.
func TestExpireOnDemand(t *testing.T) {
	r := start(t, Options{})
	c, other := r.connect(), r.connect()
	c.must(wire.OpCreate, &wire.CreateRequest{Path: "/mine", ACL: wire.OpenACL(), Flags: 1}, &wire.PathResponse{})
	r.Expire(7)
	r.Expire(c.session.Session)
	c.closed()
	if h := other.call(wire.OpExists, &wire.PathWatchRequest{Path: "/mine"}, nil); h.Err != wire.ErrNoNode {
		t.Errorf("the ephemeral: %v", h.Err)
	}
}
