package server

import (
	"bytes"
	"fmt"
	"net"
	"testing"
	"time"

	"bellwether/wire"
)

// dialFrom opens a connection from a given local address.
func (r *running) dialFrom(ip string) *client {
	r.t.Helper()
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(ip)}}
	nc, err := d.Dial("tcp", r.Addr().String())
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { nc.Close() })
	return &client{t: r.t, nc: nc}
}

// eventually fails unless the condition becomes true in time.
func eventually(t testing.TB, what string, cond func() bool) {
	t.Helper()
	end := time.Now().Add(eventTimeout)
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for !cond() {
		if time.Now().After(end) {
			t.Fatal("never came true: ", what)
		}
		<-tick.C
	}
}

// TestConnectionsOfOneAddress: maxClientCnxns limits the connections from one address. A
// connection beyond it is closed at once. When a connection ends, another is accepted.
func TestConnectionsOfOneAddress(t *testing.T) {
	o := Options{Config: testConfig()}
	o.Config.Limits.ClientCnxns = 2
	s := start(t, o)
	var kept []*client
	for _, ip := range []string{"127.0.0.1", "127.0.0.2", "127.77.0.3"} {
		for range 2 {
			c := s.dialFrom(ip)
			c.handshake(wire.ConnectRequest{TimeoutMS: lastingMS})
			kept = append(kept, c)
		}
		s.dialFrom(ip).closed()
	}
	if n := s.stats.rejected.Value(); n != 3 {
		t.Errorf("%d rejected", n)
	}
	kept[0].nc.Close()
	eventually(t, "room for another", func() bool { return len(s.conns.sockets()) == 5 })
	c := s.dialFrom("127.0.0.1")
	c.handshake(wire.ConnectRequest{TimeoutMS: lastingMS})
}

// TestConnectionsInAll: maxCnxns limits all connections.
func TestConnectionsInAll(t *testing.T) {
	o := Options{Config: testConfig()}
	o.Config.Limits.Cnxns = 3
	s := start(t, o)
	for i := range 3 {
		s.dialFrom(fmt.Sprintf("127.0.0.%d", i+1)).handshake(wire.ConnectRequest{TimeoutMS: lastingMS})
	}
	s.dialFrom("127.0.0.9").closed()
}

// TestClientThatNeverReads: a client that requests much and reads nothing uses a bounded
// amount of memory, because its requests are no longer read. Other clients are not
// disturbed.
func TestClientThatNeverReads(t *testing.T) {
	s := start(t, Options{})
	other := s.connect()
	big := bytes.Repeat([]byte{1}, 1<<20-1024)
	other.must(wire.OpCreate, &wire.CreateRequest{Path: "/big", Data: big, ACL: wire.OpenACL()}, nil)
	slow := s.connect()
	get := request(1, wire.OpGetData, &wire.PathWatchRequest{Path: "/big"})
	slow.nc.SetDeadline(time.Now().Add(300 * time.Millisecond))
	sent := 0
	for {
		n, err := slow.nc.Write(bytes.Repeat(get, 1000))
		if sent += n; err != nil {
			break
		}
	}
	t.Logf("%d requests went out before the server stopped reading", sent/len(get))
	for _, c := range s.conns.all() {
		c.out.mu.Lock()
		owed := c.out.owed()
		c.out.mu.Unlock()
		if owed > outputHigh+2<<20 {
			t.Errorf("%d bytes wait for one connection", owed)
		}
	}
	if other.data("/") != "" {
		t.Error("unreachable")
	}
}

// TestEventsThatNobodyReads: events that a client does not read are bounded too: the
// connection is closed. An event is never dropped from a connection that continues (etcd
// 17529).
func TestEventsThatNobodyReads(t *testing.T) {
	s := start(t, Options{OutputMax: 64 << 10})
	slow, c := s.connect(), s.connect()
	slow.must(wire.OpAddWatch, &wire.AddWatchRequest{Path: "/", Mode: wire.WatchPersistentRecursive}, nil)
	long := "/" + string(bytes.Repeat([]byte{'x'}, 20_000))
	c.create(long, "")
	for i := 0; s.conns.len() == 2; i++ {
		if i > 10_000 {
			t.Fatal("the slow connection is never closed")
		}
		var out []byte
		for range 100 {
			out = append(out, request(1, wire.OpSetData, &wire.SetDataRequest{Path: long, Version: -1})...)
		}
		c.write(out)
		for range 100 {
			c.reply(nil)
		}
	}
	if c.data("/") != "" {
		t.Error("unreachable")
	}
}

// TestOutstandingLimitIsBackPressure: with more requests in process than
// globalOutstandingLimit, a connection is read only as its replies are sent. All requests
// are answered, in order.
func TestOutstandingLimitIsBackPressure(t *testing.T) {
	o := Options{Config: testConfig()}
	o.Config.Limits.Outstanding = 10
	s := start(t, o)
	c := s.connect()
	c.create("/a", "")
	const n = 5000
	go func() {
		var out []byte
		for xid := range int32(n) {
			out = append(out, request(xid, wire.OpSetData, &wire.SetDataRequest{Path: "/a", Version: -1})...)
		}
		c.nc.Write(out)
	}()
	for xid := range int32(n) {
		if h := c.reply(nil); h.Xid != xid || h.Err != wire.OK {
			t.Fatalf("reply %d: %+v", xid, h)
		}
	}
	if s.stats.throttleWaits.Value() == 0 {
		t.Error("nothing was held back")
	}
	eventually(t, "nothing is in process", func() bool { return s.inProcess.Load() == 0 && s.inProcessBytes.Load() == 0 })
}

// TestRequestThrottle: the request throttler delays all connections, and all requests are
// answered in the end.
func TestRequestThrottle(t *testing.T) {
	o := Options{Config: testConfig()}
	o.Config.Limits.Throttle.MaxRequests = 3
	o.Config.Limits.Throttle.Stall = time.Millisecond
	s := start(t, o)
	c := s.connect()
	c.create("/a", "")
	var out []byte
	for xid := range int32(200) {
		out = append(out, request(xid, wire.OpSetData, &wire.SetDataRequest{Path: "/a", Version: -1})...)
	}
	c.write(out)
	for xid := range int32(200) {
		if h := c.reply(nil); h.Xid != xid || h.Err != wire.OK {
			t.Fatalf("reply %d: %+v", xid, h)
		}
	}
}

// TestLargeRequestsAreBounded: large requests are bounded in total. The connection that
// exceeds the limit is closed.
func TestLargeRequestsAreBounded(t *testing.T) {
	o := Options{Config: testConfig()}
	o.Config.Limits.LargeThreshold, o.Config.Limits.LargeBytes = 1000, 5000
	s := start(t, o)
	c := s.connect()
	c.create("/a", "")
	for range 20 {
		c.must(wire.OpSetData, &wire.SetDataRequest{Path: "/a", Version: -1, Data: make([]byte, 4000)}, nil)
	}
	c.send(wire.OpSetData, &wire.SetDataRequest{Path: "/a", Version: -1, Data: make([]byte, 6000)})
	c.closed()
	if n := s.stats.large.Value(); n != 1 {
		t.Errorf("%d rejected", n)
	}
	eventually(t, "nothing large is in process", func() bool { return s.large.Load() == 0 })
}

// TestClosedConnectionsAreNotShown: a connection that the server has half-closed is not
// shown to operators, although its socket is still read until the client closes its side.
// The socket still counts towards the limit of its address.
func TestClosedConnectionsAreNotShown(t *testing.T) {
	o := Options{Config: testConfig()}
	o.Config.Limits.ClientCnxns = 1
	s := start(t, o)
	c := s.connect()
	c.must(wire.OpCloseSession, nil, nil)
	c.closed()
	sockets := 0
	eventually(t, "the connection is not shown", func() bool {
		sockets = len(s.conns.sockets())
		return s.Status().Connections == 0
	})
	if sockets == 0 {
		t.Fatal("the connection is shown until its socket is closed")
	}
	if listed := s.Connections(); len(listed) != 0 {
		t.Errorf("listed: %+v", listed)
	}
	s.dial().closed()
	c.nc.Close()
	eventually(t, "the socket is closed", func() bool { return len(s.conns.sockets()) == 0 })
	s.connect()
}
