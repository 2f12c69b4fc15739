package server

import (
	"encoding/binary"
	"io"
	"net/netip"
	"slices"
	"testing"
	"time"

	"bellwether/internal/config"
	"bellwether/wire"
)

// get reads a znode and returns how long that took.
func (c *client) get(path string) time.Duration {
	c.t.Helper()
	return took(func() { c.call(wire.OpGetData, &wire.PathWatchRequest{Path: path}, nil) })
}

// gets reads a znode several times, and returns how long each read took.
func (c *client) gets(path string, times int) (all []time.Duration) {
	c.t.Helper()
	for range times {
		all = append(all, c.get(path))
	}
	return all
}

// limited returns options with these limits.
func limited(r config.Rates) Options {
	o := Options{Config: testConfig()}
	o.Config.Limits.Rates = r
	return o
}

// TestRequestsPerSecond: an address gets one second's requests at once, and then waits for each
// further one, whatever the number of its connections. Heartbeats, the end of a session and other
// addresses never wait. Each operation of a multi counts.
func TestRequestsPerSecond(t *testing.T) {
	inBubble(t, limited(config.Rates{Requests: 5}), func(t *testing.T, s *bubble) {
		a, b, other := s.connectFrom("10.0.0.1"), s.connectFrom("10.0.0.1"), s.connectFrom("10.0.0.2")
		wantTimes(t, "reads", a.gets("/", 8), 0, 0, 0, 0, 0, 200, 200, 200)
		wantTimes(t, "another connection", b.gets("/", 1), 200)
		wantTimes(t, "heartbeat", []time.Duration{took(func() { a.must(wire.OpPing, nil, nil) })}, 0)
		wantTimes(t, "another address", other.gets("/", 5), 0, 0, 0, 0, 0)
		write := took(func() { a.create("/a", "") })
		wantTimes(t, "write", []time.Duration{write}, 200)
		var ops []wire.Op
		for range 4 {
			ops = append(ops, wire.Op{Type: wire.OpCheck, Request: &wire.PathVersionRequest{Path: "/a", Version: -1}})
		}
		multi := took(func() { a.must(wire.OpMulti, &wire.MultiRequest{Ops: ops}, nil) })
		wantTimes(t, "multi of four", []time.Duration{multi}, 800)
		for i := range ops {
			ops[i] = wire.Op{Type: wire.OpGetData, Request: &wire.PathWatchRequest{Path: "/a"}}
		}
		multi = took(func() { a.must(wire.OpMultiRead, &wire.MultiRequest{Ops: ops}, nil) })
		wantTimes(t, "multiRead of four", []time.Duration{multi}, 800)
		wantTimes(t, "login", []time.Duration{a.login("bob:pw")}, 200)
		if n := s.stats.limited[clientRequests].Value(); n != 8 {
			t.Errorf("client_requests_delayed is %d", n)
		}
		wantTimes(t, "end", []time.Duration{took(func() { a.must(wire.OpCloseSession, nil, nil) })}, 0)
		time.Sleep(5 * time.Second)
		wantTimes(t, "later", b.gets("/", 6), 0, 0, 0, 0, 0, 200)
	})
}

// TestRequestsInAPipeline: requests that were sent together wait one after the other, and
// are answered in order.
func TestRequestsInAPipeline(t *testing.T) {
	inBubble(t, limited(config.Rates{Requests: 10}), func(t *testing.T, s *bubble) {
		c := s.connectFrom("10.0.0.1")
		var out []byte
		for xid := range int32(30) {
			if xid%2 == 0 {
				out = append(out, request(xid, wire.OpSetData, &wire.SetDataRequest{Path: "/", Version: -1})...)
			} else {
				out = append(out, request(xid, wire.OpGetData, &wire.PathWatchRequest{Path: "/"})...)
			}
		}
		go c.nc.Write(out)
		all := took(func() {
			for xid := range int32(30) {
				if h := c.reply(nil); h.Xid != xid || h.Err != wire.OK {
					t.Fatalf("%+v, want xid %d", h, xid)
				}
			}
		})
		wantTimes(t, "all", []time.Duration{all}, 2000)
	})
}

// TestBytesPerSecond: the bytes of requests are limited. A request that is larger than one
// second's bytes passes when all of them are there.
func TestBytesPerSecond(t *testing.T) {
	inBubble(t, limited(config.Rates{Bytes: 1000}), func(t *testing.T, s *bubble) {
		c := s.connectFrom("10.0.0.1")
		set := func(bytes int) time.Duration {
			const rest = headerLen + 4 + len("/") + 4 + 4
			q := &wire.SetDataRequest{Path: "/", Data: make([]byte, bytes-rest), Version: -1}
			return took(func() { c.must(wire.OpSetData, q, nil) })
		}
		wantTimes(t, "writes", []time.Duration{set(600), set(400), set(100), set(5000), set(100)}, 0, 0, 100, 1000, 4100)
		if n := s.stats.limited[clientBytes].Value(); n != 3 {
			t.Errorf("client_bytes_delayed is %d", n)
		}
	})
}

// TestPathLimits: a limit for a path holds for all clients together, for the path and what
// is below it, and the limit of the longest path counts. Other paths are not affected.
func TestPathLimits(t *testing.T) {
	o := limited(config.Rates{PathRequests: []config.PathRate{{Path: "/a/b", PerSecond: 10}, {Path: "/a", PerSecond: 2}},
		PathBytes: []config.PathRate{{Path: "/", PerSecond: 1000}}})
	inBubble(t, o, func(t *testing.T, s *bubble) {
		c, d := s.connectFrom("10.0.0.1"), s.connectFrom("10.0.0.2")
		wantTimes(t, "/a", c.gets("/a", 3), 0, 0, 500)
		wantTimes(t, "below /a, another client", d.gets("/a/x", 2), 500, 500)
		wantTimes(t, "/a/b", d.gets("/a/b", 12), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 100, 100)
		wantTimes(t, "/ab", d.gets("/ab", 5), 0, 0, 0, 0, 0)
		wantTimes(t, "no path", []time.Duration{took(func() { d.must(wire.OpWhoAmI, nil, nil) })}, 0)
		time.Sleep(2 * time.Second)
		multi := &wire.MultiRequest{Ops: []wire.Op{
			{Type: wire.OpCreate, Request: create("/a", "")}, {Type: wire.OpCreate, Request: create("/a/b", "")},
			{Type: wire.OpSetData, Request: &wire.SetDataRequest{Path: "/a", Version: -1}},
			{Type: wire.OpDelete, Request: &wire.PathVersionRequest{Path: "/a/b", Version: -1}}}}
		c.must(wire.OpMulti, multi, nil)
		wantTimes(t, "/a/b after a multi with two operations there", c.gets("/a/b", 10), 0, 0, 0, 0, 0, 0, 0, 0, 100, 100)
		wantTimes(t, "/a after 200 ms", c.gets("/a", 1), 300)
		time.Sleep(2 * time.Second)
		big := &wire.SetDataRequest{Path: "/zookeeper", Data: make([]byte, 1000-4-len("/zookeeper")-4-4), Version: -1}
		d.call(wire.OpSetData, big, nil)
		wantTimes(t, "bytes", c.gets("/", 1), 6)
		if requests, bytes := s.stats.limited[pathRequests].Value(), s.stats.limited[pathBytes].Value(); requests != 8 || bytes != 1 {
			t.Errorf("path_requests_delayed is %d, path_bytes_delayed %d", requests, bytes)
		}
	})
}

// TestRefusedRequestsUseUpNoLimit: a client without a required login cannot use up the limit of a
// path and so stop those that have logged in.
func TestRefusedRequestsUseUpNoLimit(t *testing.T) {
	o := limited(config.Rates{PathRequests: []config.PathRate{{Path: "/a", PerSecond: 2}}})
	o.Config.Access.EnforceAuth, o.Config.Access.AuthSchemes = true, []string{"digest"}
	inBubble(t, o, func(t *testing.T, s *bubble) {
		c, stranger := s.connectFrom("10.0.0.1"), s.connectFrom("10.0.0.2")
		c.must(wire.OpAuth, auth(wire.Text("digest"), []byte("bob:pw")), nil)
		check := wire.Op{Type: wire.OpCheck, Request: &wire.PathVersionRequest{Path: "/a", Version: -1}}
		if h := stranger.call(wire.OpMulti, &wire.MultiRequest{Ops: slices.Repeat([]wire.Op{check}, 1000)}, nil); h.Err != wire.ErrSessionClosedRequireAuth {
			t.Errorf("%+v", h)
		}
		wantTimes(t, "/a", c.gets("/a", 3), 0, 0, 500)
	})
}

// TestLongWaitsAreRefused: a request that would wait for more than a third of its session's
// timeout is refused after that time. A request that a client cannot repeat is carried out then.
func TestLongWaitsAreRefused(t *testing.T) {
	inBubble(t, limited(config.Rates{Bytes: 10}), func(t *testing.T, s *bubble) {
		c := s.connectFrom("10.0.0.1")
		third := time.Duration(lastingMS) * time.Millisecond / 3
		c.create("/big", string(make([]byte, 1000)))
		for _, q := range []struct {
			op   wire.OpCode
			r    wire.Record
			want wire.Code
		}{
			{wire.OpGetData, &wire.PathWatchRequest{Path: "/big"}, wire.ErrThrottledOp},
			{wire.OpSetData, &wire.SetDataRequest{Path: "/big", Version: -1}, wire.ErrThrottledOp},
			{wire.OpAuth, auth(wire.Text("digest"), []byte("bob:pw")), wire.OK},
			{wire.OpSetWatches, &wire.SetWatchesRequest{RelativeZxid: 1 << 40, Data: []string{"/big"}}, wire.OK},
		} {
			start := time.Now()
			if h := c.call(q.op, q.r, nil); h.Err != q.want || time.Since(start) != third {
				t.Errorf("%v: %v after %v, want %v after %v", q.op, h.Err, time.Since(start), q.want, third)
			}
		}
		if n := s.stats.limitRefused.Value(); n != 2 {
			t.Errorf("limited_requests_refused is %d", n)
		}
		s.Reload(testConfig()) // removes the limit
		if n := len(c.data("/big")); n != 1000 {
			t.Errorf("the refused write was carried out: %d bytes", n)
		}
	})
}

// TestLimitsEndNoSession: clients that send far more than the limit allows keep their
// sessions, hear from the server in time, and get no more than the limit.
func TestLimitsEndNoSession(t *testing.T) {
	inBubble(t, limited(config.Rates{Requests: 1}), func(t *testing.T, s *bubble) {
		const timeout, seconds, clients = 4 * time.Second, 60, 5
		admitted := make(chan int, clients)
		for range clients {
			c := s.dialFrom("10.0.0.1")
			c.handshake(wire.ConnectRequest{TimeoutMS: int32(timeout.Milliseconds()), Password: make([]byte, 16)})
			go func() {
				carriedOut := 0
				for end := time.Now().Add(seconds * time.Second); time.Now().Before(end); {
					start := time.Now()
					h := c.call(wire.OpGetData, &wire.PathWatchRequest{Path: "/"}, nil)
					if silent := time.Since(start); silent > timeout/3 {
						t.Errorf("the server was silent for %v", silent)
					}
					switch h.Err {
					case wire.OK:
						carriedOut++
					case wire.ErrThrottledOp:
					default:
						t.Errorf("%+v", h)
					}
				}
				admitted <- carriedOut
			}()
		}
		sum := 0
		for range clients {
			sum += <-admitted
		}
		if sum > seconds+3 || sum < seconds-3 {
			t.Errorf("%d requests in %d s", sum, seconds)
		}
		if n := s.stats.expired.Value(); n != 0 {
			t.Errorf("%d sessions have expired", n)
		}
	})
}

// TestLimitsReload: SIGHUP introduces, changes and removes limits. Limits that do not
// change keep what was taken.
func TestLimitsReload(t *testing.T) {
	inBubble(t, Options{}, func(t *testing.T, s *bubble) {
		c := s.connectFrom("10.0.0.1")
		reload := func(change func(l *config.Limits)) {
			next := *s.config()
			change(&next.Limits)
			s.Reload(&next)
		}
		if s.rates.Load() != nil {
			t.Error("there are limits without a configuration")
		}
		wantTimes(t, "no limit", c.gets("/", 3), 0, 0, 0)
		reload(func(l *config.Limits) { l.Rates.Requests = 2 })
		wantTimes(t, "2", c.gets("/", 3), 0, 0, 500)
		reload(func(l *config.Limits) { l.Cnxns = 1000 })
		wantTimes(t, "another key", c.gets("/", 1), 500)
		reload(func(l *config.Limits) { l.Rates.Requests = 1 })
		wantTimes(t, "1", c.gets("/", 2), 0, 1000)
		reload(func(l *config.Limits) { l.Rates.Requests = 0 })
		wantTimes(t, "removed", c.gets("/", 3), 0, 0, 0)
	})
}

// TestEndWhileRequestsWait: a server that ends does not wait for requests above a limit.
func TestEndWhileRequestsWait(t *testing.T) {
	inBubble(t, limited(config.Rates{Bytes: 1}), func(t *testing.T, s *bubble) {
		c := s.connectFrom("10.0.0.1")
		c.get("/")
		go c.nc.Write(request(1, wire.OpGetData, &wire.PathWatchRequest{Path: "/"}))
		eventually(t, "the request waits", func() bool { return s.stats.limited[clientBytes].Value() == 1 })
		go io.Copy(io.Discard, c.nc)
		wantTimes(t, "end", []time.Duration{took(func() {
			if err := s.end(); err != nil {
				t.Error(err)
			}
		})}, 0)
	})
}

// TestLimitedAddresses: IPv6 addresses of one network are one client, IPv4 addresses are
// not, and a bounded number of addresses is known.
func TestLimitedAddresses(t *testing.T) {
	inBubble(t, limited(config.Rates{Requests: 1}), func(t *testing.T, s *bubble) {
		wantTimes(t, "a network", append(s.connectFrom("2001:db8::1").gets("/", 1), s.connectFrom("2001:db8::2").gets("/", 1)...), 0, 1000)
		wantTimes(t, "another network", s.connectFrom("2001:db8:0:1::1").gets("/", 1), 0)
		wantTimes(t, "IPv4", append(s.connectFrom("10.0.0.1").gets("/", 1), s.connectFrom("10.0.0.2").gets("/", 1)...), 0, 0)
		r := s.rates.Load()
		for i := range uint32(addressesMax + 1) {
			var addr [4]byte
			binary.BigEndian.PutUint32(addr[:], 1<<30+i)
			r.take(0, addrCost{s.clientPrefix(netip.AddrFrom4(addr)), 1, 1}, nil, 0)
		}
		if n := r.byAddr.Len(); n != addressesMax {
			t.Errorf("%d addresses are known", n)
		}
	})
}

// TestRequestPaths: the path of every operation that has one is found, and a body that
// ends early has none.
func TestRequestPaths(t *testing.T) {
	var found []wire.OpCode
	body := wire.Append(nil, create("/a", "x"))
	for op := wire.OpCode(-20); op < 200; op++ {
		path, ok := requestPath(op, body)
		if ok {
			found = append(found, op)
		}
		if ok && path != "/a" || !ok && path != "" {
			t.Errorf("%v: %q", op, path)
		}
		if _, ok := requestPath(op, body[:5]); ok {
			t.Errorf("%v: a path in 5 bytes", op)
		}
	}
	if want := []wire.OpCode{1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 13, 15, 17, 18, 19, 20, 21, 103, 104, 106}; !slices.Equal(found, want) {
		t.Errorf("%v, want %v", found, want)
	}
	for _, c := range []struct {
		top, path string
		want      bool
	}{{"/", "/a", true}, {"/", "/", true}, {"/a", "/a", true}, {"/a", "/a/b", true}, {"/a", "/ab", false}, {"/a", "/", false}, {"/a/b", "/a", false}, {"/a", "", false}} {
		if holds(c.top, c.path) != c.want {
			t.Errorf("holds(%q, %q)", c.top, c.path)
		}
	}
}
