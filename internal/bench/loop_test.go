package bench

import (
	"bufio"
	"context"
	"errors"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"bellwether/wire"
	"bellwether/zk"
)

// answer is what a scripted server replies to a request; nil: nothing.
type answerer func(h wire.RequestHeader, n int) []wire.Record

// succeed answers any request of a load.
func succeed(h wire.RequestHeader, _ int) []wire.Record {
	header := &wire.ReplyHeader{Xid: h.Xid}
	switch h.Op {
	case wire.OpGetData:
		return []wire.Record{header, &wire.DataResponse{Data: []byte("x")}}
	case wire.OpSetData:
		return []wire.Record{header, &wire.StatResponse{}}
	case wire.OpCreate:
		return []wire.Record{header, &wire.PathResponse{Path: "/root/bid-1"}}
	case wire.OpGetChildren:
		return []wire.Record{header, &wire.ChildrenResponse{Children: []string{"a", "b"}}}
	}
	return []wire.Record{header}
}

// serveScript opens a session and answers requests until the client or the script ends it. It returns
// the codes of all requests.
func serveScript(conn net.Conn, timeout time.Duration, answer answerer) (ops []wire.OpCode) {
	defer conn.Close()
	requests := bufio.NewReader(conn)
	if _, err := wire.ReadFrame(requests, nil, FrameMax); err != nil {
		return nil
	}
	welcome := &wire.ConnectResponse{TimeoutMS: int32(timeout.Milliseconds()), Session: 1, Password: make([]byte, wire.PasswordLen)}
	conn.Write(wire.AppendFrame(nil, welcome))
	for n := 1; ; n++ {
		frame, err := wire.ReadFrame(requests, nil, FrameMax)
		if err != nil {
			return ops
		}
		var h wire.RequestHeader
		d := wire.Decoder(frame)
		h.Code(&d)
		ops = append(ops, h.Op)
		if h.Op == wire.OpCloseSession {
			return ops
		}
		records := answer(h, n)
		if records == nil {
			continue
		}
		if _, err := conn.Write(wire.AppendFrame(nil, records...)); err != nil {
			return ops
		}
	}
}

// scripted returns a load on a scripted server, with connections in memory, and a function that
// returns the requests of one connection after it has ended.
func scripted(l Load, timeout time.Duration, answer answerer) (Load, func() []wire.OpCode) {
	ended := make(chan []wire.OpCode, 100)
	l.Keys = max(l.Keys, 1)
	l.Raw = &Raw{Servers: []string{"script:1"}, Timeout: timeout, Dial: func(context.Context, string) (net.Conn, error) {
		client, server := net.Pipe()
		go func() { ended <- serveScript(server, timeout, answer) }()
		return client, nil
	}}
	return l, func() []wire.OpCode { return <-ended }
}

// TestLoopChecksReplies shows that a reply counts only if it is the one that is due and has no error,
// and that other replies, and a lost connection, end the load.
func TestLoopChecksReplies(t *testing.T) {
	for _, c := range []struct {
		what   string
		answer answerer
		want   string
	}{
		{"a reply to another request", func(h wire.RequestHeader, n int) []wire.Record { h.Xid++; return succeed(h, n) }, "reply 2 instead of 1"},
		{"an event", func(h wire.RequestHeader, n int) []wire.Record { h.Xid = wire.XidEvent; return succeed(h, n) }, "reply -1 instead of 1"},
		{"an error", func(h wire.RequestHeader, _ int) []wire.Record {
			return []wire.Record{&wire.ReplyHeader{Xid: h.Xid, Err: zk.ErrNoNode}}
		}, zk.ErrNoNode.Error()},
		{"a reply without a header", func(wire.RequestHeader, int) []wire.Record { return []wire.Record{&wire.SASLResponse{}} }, "a reply of 4 bytes"},
		{"no reply", func(wire.RequestHeader, int) []wire.Record { return nil }, "no reply within 1s"},
	} {
		synctest.Test(t, func(t *testing.T) {
			l, _ := scripted(Load{Setting: Setting{Duration: time.Hour}, Kind: Read, Connections: 2, Outstanding: 1}, time.Second, c.answer)
			_, err := l.raw(t.Context())
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: %v, want %q", c.what, err, c.want)
			}
			if lost := errors.Is(err, zk.ErrConnectionLoss); lost != (c.what == "no reply") {
				t.Errorf("%s: %v", c.what, err)
			}
		})
	}
}

// TestLoopSendsPings shows that a session with little load does not expire, and that a ping does
// not count.
func TestLoopSendsPings(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		answer := func(h wire.RequestHeader, n int) []wire.Record { return succeed(h, n) }
		l, ops := scripted(Load{Setting: Setting{Duration: 10 * time.Second}, Kind: Write, Connections: 1, Outstanding: 1, Rate: 1}, 900*time.Millisecond, answer)
		l.Rate, l.Duration = 1, 3*time.Second
		reports, err := l.raw(t.Context())
		if err != nil || reports[0].Operations != 3 {
			t.Fatalf("%v, %v", reports, err)
		}
		pings := 0
		all := ops()
		for _, op := range all {
			if op == wire.OpPing {
				pings++
			}
		}
		if pings < 4 || len(all) != 3+pings+1 {
			t.Errorf("%v", all)
		}
	})
}

// TestLoopEphemerals shows that both requests of an operation are counted, and that each created
// znode is deleted.
func TestLoopEphemerals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := func(h wire.RequestHeader, n int) []wire.Record {
			time.Sleep(10 * time.Millisecond)
			return succeed(h, n)
		}
		l, ops := scripted(Load{Setting: Setting{Duration: time.Second}, Kind: Ephemerals, Connections: 1, Outstanding: 1}, time.Second, slow)
		reports, err := l.raw(t.Context())
		if err != nil || len(reports) != 3 {
			t.Fatal(reports, err)
		}
		if n := reports[0].Operations; n != 50 || reports[1].Operations != n || reports[2].Operations != n {
			t.Errorf("%v", reports)
		}
		if p50 := [3]time.Duration{reports[0].P50, reports[1].P50, reports[2].P50}; p50[0] < 19*time.Millisecond || p50[1] > 11*time.Millisecond || p50[2] > 11*time.Millisecond {
			t.Errorf("medians %v", p50)
		}
		if all := ops(); len(all) != 101 || all[0] != wire.OpCreate || all[1] != wire.OpDelete {
			t.Errorf("%d requests", len(all))
		}
	})
}

// TestLoopOpenLoop shows for loops what TestOpenLoopCountsFromDue shows for workers: when the server
// stops for 4 s, the operations that were due meanwhile are slow, and a closed loop hides that.
func TestLoopOpenLoop(t *testing.T) {
	for _, rate := range []int{10, 0} {
		synctest.Test(t, func(t *testing.T) {
			answer := func(h wire.RequestHeader, n int) []wire.Record {
				if rate == 0 {
					time.Sleep(100 * time.Millisecond)
				}
				if n == 21 {
					time.Sleep(4 * time.Second)
				}
				return succeed(h, n)
			}
			l, _ := scripted(Load{Setting: Setting{Duration: 10 * time.Second}, Kind: Read, Connections: 1, Outstanding: 1, Rate: rate}, 30*time.Second, answer)
			reports, err := l.raw(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			slow, r := 0, reports[0]
			for _, bar := range r.took.h.Distribution() {
				if time.Duration(bar.From) > 150*time.Millisecond {
					slow += int(bar.Count)
				}
			}
			// The operations that were due in the 4 s waited for 2 s on average.
			if want := map[int]int{10: 39, 0: 1}[rate]; slow != want {
				t.Errorf("rate %d: %d operations were slow, want %d", rate, slow, want)
			}
			if rate > 0 && (r.Operations != 100 || r.Unsent != 0 || r.TimerLate > time.Millisecond || r.PerSecond() != 10) {
				t.Errorf("%v", r)
			}
		})
	}
}

// TestLoopUnsent shows that operations that no connection was free for are counted, and that
// several loops share a rate.
func TestLoopUnsent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := func(h wire.RequestHeader, n int) []wire.Record {
			time.Sleep(100 * time.Millisecond)
			return succeed(h, n)
		}
		l, _ := scripted(Load{Setting: Setting{Duration: time.Second}, Kind: Read, Connections: 3, Outstanding: 1, Rate: 100}, time.Minute, slow)
		reports, err := l.raw(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		// Each of three connections takes 10 operations a second for two seconds.
		if r := reports[0]; r.Operations+r.Unsent != 100 || r.Unsent < 34 || r.Unsent > 43 || r.Max < time.Second {
			t.Errorf("%v", r)
		}
	})
}

// TestSplitPaces shows that the paces of loops have together the operations of one pace.
func TestSplitPaces(t *testing.T) {
	begin := time.Now()
	for _, n := range []int{1, 2, 3, 7} {
		due := map[time.Time]int{}
		for _, p := range newPace(100, time.Second, begin).split(n) {
			for at, ok := p.next(); ok; at, ok = p.next() {
				due[at]++
				p.taken.Add(1)
			}
		}
		if len(due) != 100 || due[begin] != 1 || due[begin.Add(990*time.Millisecond)] != 1 {
			t.Errorf("%d paces: %d times", n, len(due))
		}
	}
}

// TestLoopOverSockets shows that a loop with many connections works if the system takes requests
// only in part, no reply arrives before all are sent, and replies arrive in pieces, and that it ends its sessions.
func TestLoopOverSockets(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	const connections = 3
	ended := make(chan []wire.OpCode, connections)
	var accepted atomic.Int32
	go func() {
		for conn, err := ln.Accept(); err == nil; conn, err = ln.Accept() {
			accepted.Add(1)
			go func() { ended <- serveScript(&inPieces{Conn: conn, hold: 20}, time.Minute, succeed) }()
		}
	}()
	t.Cleanup(func() { ln.Close() })
	l := Load{Setting: Setting{Duration: time.Minute}, Operations: 2 * connections * 20, Kind: Mixed, Reads: 50, Connections: connections, Outstanding: 20, Keys: 5, Size: sizeMax}
	l.Raw = &Raw{Servers: []string{ln.Addr().String()}, Timeout: time.Minute, Dial: func(ctx context.Context, server string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "tcp", server)
	}}
	reports, err := l.raw(t.Context())
	if err != nil || len(reports) != 3 {
		t.Fatal(reports, err)
	}
	if r := reports[0]; r.Operations < connections*20 || r.Operations != reports[1].Operations+reports[2].Operations {
		t.Errorf("%v", reports)
	}
	for range connections {
		if ops := <-ended; len(ops) < 21 || ops[len(ops)-1] != wire.OpCloseSession {
			t.Errorf("%d requests", len(ops))
		}
	}
}

// inPieces sends everything in pieces of five bytes. It sends the first frame at once, and then nothing until
// it has a number of frames.
type inPieces struct {
	net.Conn
	greeted bool
	hold    int
	held    []byte
}

func (c *inPieces) Write(b []byte) (int, error) {
	c.held = append(c.held, b...)
	if c.greeted {
		c.hold--
	}
	if c.greeted && c.hold > 0 {
		return len(b), nil
	}
	c.greeted = true
	for len(c.held) > 0 {
		n, err := c.Conn.Write(c.held[:min(5, len(c.held))])
		if c.held = c.held[n:]; err != nil {
			return 0, err
		}
	}
	return len(b), nil
}

// TestLimitedLoad shows that a load with a number of operations ends after these, with loops and
// with workers.
func TestLimitedLoad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, _ := scripted(Load{Setting: Setting{Warmup: time.Millisecond, Duration: time.Millisecond}, Kind: Create, Connections: 3, Outstanding: 1, Operations: 100}, time.Minute, func(h wire.RequestHeader, n int) []wire.Record {
			time.Sleep(time.Millisecond)
			return succeed(h, n)
		})
		reports, err := l.raw(t.Context())
		if err != nil || reports[0].Operations != 100 {
			t.Errorf("%v, %v", reports, err)
		}
	})
	p, taken := newPace(0, time.Nanosecond, time.Now()).limit(7), 0
	for _, ok := p.take(t.Context()); ok; _, ok = p.take(t.Context()) {
		taken++
	}
	if taken != 7 {
		t.Errorf("%d operations", taken)
	}
}

// TestPings shows that pings are measured and that nothing else counts as an answer.
func TestPings(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, _ := scripted(Load{}, time.Minute, succeed)
		p := Pings{Setting{Raw: l.Raw, Warmup: time.Second, Duration: time.Second}}
		if reports, err := p.Run(t.Context()); err != nil || reports[0].Operations < 15 || reports[0].Operations > 21 {
			t.Errorf("%v, %v", reports, err)
		}
		l, _ = scripted(Load{}, time.Minute, func(h wire.RequestHeader, n int) []wire.Record { h.Xid = 5; return succeed(h, n) })
		p.Raw = l.Raw
		if _, err := p.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "reply 5 to a ping") {
			t.Error(err)
		}
	})
}

// TestRepeat shows that only calls after the warm-up count, and that an error ends the run.
func TestRepeat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := Setting{Warmup: time.Second, Duration: 2 * time.Second}
		r, err := s.Repeat(t.Context(), "x", 3, func(context.Context, int) error { time.Sleep(100 * time.Millisecond); return nil })
		if err != nil || r.Operations != 60 || r.Kind != "x" {
			t.Errorf("%v, %v", r, err)
		}
		left := 7
		if r, err := s.Repeat(t.Context(), "x", 1, func(context.Context, int) error {
			if left--; left < 0 {
				return ErrDone
			}
			time.Sleep(time.Second / 2)
			return nil
		}); err != nil || r.Operations != 4 {
			t.Errorf("%v, %v", r, err)
		}
		broken := errors.New("broken")
		if _, err := s.Repeat(t.Context(), "x", 3, func(context.Context, int) error { return broken }); !errors.Is(err, broken) {
			t.Error(err)
		}
	})
}

// TestDeliverOpenLoop shows that the latency of an event counts from the time at which its change was due: a
// change waits for the last one, and so its events are late too.
func TestDeliverOpenLoop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, changes, events := Setting{Duration: time.Second}, 0, make(chan bool, 3)
		d := Delivery{Rate: 10, Change: func() error {
			if changes++; changes == 1 {
				time.Sleep(450 * time.Millisecond)
			}
			for range 3 {
				events <- true
			}
			return nil
		}, Await: func(int) error { <-events; return nil }}
		r, err := s.Deliver(t.Context(), "fanout", 3, d)
		if err != nil || changes != 10 || r.Operations != 30 || r.Unsent != 0 || r.Rate != 10 || r.PerSecond() != 30 {
			t.Fatalf("%d changes, %v, %v", changes, r, err)
		}
		slow := 0
		for _, bar := range r.took.h.Distribution() {
			if time.Duration(bar.From) > 40*time.Millisecond {
				slow += int(bar.Count)
			}
		}
		// The first change, and those that were due after 100, 200, 300 and 400 ms.
		if slow != 5*3 {
			t.Errorf("%d events were late", slow)
		}
	})
}

// TestDeliverClosedLoop shows that the throughput of a closed loop leaves out the time of Prepare.
func TestDeliverClosedLoop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := Delivery{
			Prepare: func() error { time.Sleep(90 * time.Millisecond); return nil },
			Change:  func() error { time.Sleep(10 * time.Millisecond); return nil },
			Await:   func(int) error { return nil },
		}
		r, err := Setting{Duration: time.Second}.Deliver(t.Context(), "fanout", 3, d)
		if err != nil || r.Operations != 30 || r.Elapsed != 100*time.Millisecond {
			t.Errorf("%v, %v", r, err)
		}
	})
}

// TestSessionsOpenLoop shows that the opening of a session which had to wait for others counts from the
// time at which it was due.
func TestSessionsOpenLoop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := Sessions{Sessions: 4 * dialWidth, Rate: 1000}
		s.Connect = func(context.Context) (*zk.Client, error) {
			time.Sleep(100 * time.Millisecond)
			return nil, nil
		}
		r, _, err := s.open(t.Context())
		if err != nil || r.Operations != 4*dialWidth || r.Rate != 1000 {
			t.Fatal(r, err)
		}
		// 32 sessions open each 100 ms, so the last ones, due after 96 to 127 ms, wait for 204 ms.
		if r.Max < 300*time.Millisecond || r.Min > 101*time.Millisecond {
			t.Errorf("%v", r)
		}
	})
}

// TestLoadBesideWork shows that a load with work beside it is measured as long as the work takes, with and without a rate,
// that the work begins after the warm-up, and that operations which were due while a server stops are not lost at the end.
func TestLoadBesideWork(t *testing.T) {
	for _, rate := range []int{0, 100} {
		synctest.Test(t, func(t *testing.T) {
			began := time.Now()
			slow := func(h wire.RequestHeader, n int) []wire.Record {
				time.Sleep(5 * time.Millisecond)
				if now := time.Since(began); now > 9500*time.Millisecond && now < 10*time.Second {
					time.Sleep(time.Second) // the work ends meanwhile
				}
				return succeed(h, n)
			}
			l, _ := scripted(Load{Setting: Setting{Warmup: 3 * time.Second, Duration: time.Second}, Kind: Write, Connections: 1, Outstanding: 1, Rate: rate}, 30*time.Second, slow)
			l.Beside = func(context.Context) error {
				if d := time.Since(began); d < 2900*time.Millisecond || d > 3100*time.Millisecond {
					t.Errorf("the work begins after %v", d)
				}
				time.Sleep(7 * time.Second)
				return nil
			}
			reports, err := l.raw(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			r := reports[0]
			if r.Elapsed < 7*time.Second || r.Elapsed > 9*time.Second {
				t.Errorf("rate %d: measured for %v", rate, r.Elapsed)
			}
			if rate > 0 && (r.Operations < 700 || r.Operations > 702 || r.Max < 900*time.Millisecond) {
				t.Errorf("%v", r)
			}
			if rate == 0 && (r.Operations < 1000 || r.Operations > 1400) {
				t.Errorf("%v", r)
			}
		})
	}
}

// TestFailedWorkEndsTheLoad shows that an error of the work is the error of the load.
func TestFailedWorkEndsTheLoad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broken := errors.New("broken")
		slow := func(h wire.RequestHeader, n int) []wire.Record { time.Sleep(time.Millisecond); return succeed(h, n) }
		l, _ := scripted(Load{Setting: Setting{Duration: time.Second}, Kind: Write, Connections: 1, Outstanding: 1}, 30*time.Second, slow)
		l.Beside = func(context.Context) error { return broken }
		if _, err := l.raw(t.Context()); !errors.Is(err, broken) {
			t.Error(err)
		}
	})
}

// TestLoopLists shows that a listing is one request, and that its load neither creates nor deletes anything in a filled
// tree.
func TestLoopLists(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := func(h wire.RequestHeader, n int) []wire.Record {
			time.Sleep(10 * time.Millisecond)
			return succeed(h, n)
		}
		l, ops := scripted(Load{Setting: Setting{Duration: time.Second, Root: "/root"}, Kind: List, Connections: 1, Outstanding: 1, Filled: true}, 30*time.Second, slow)
		reports, err := l.Run(t.Context())
		if err != nil || reports[0].Operations != 100 {
			t.Fatal(reports, err)
		}
		if all := ops(); len(all) != 101 || all[0] != wire.OpGetChildren || all[100] != wire.OpCloseSession {
			t.Errorf("%v", all)
		}
	})
}

// TestScatteredKeys shows that the operations on a filled tree use each key once before they use one again, also with a
// number of keys that is no power of ten, and not in the order in which the keys were created.
func TestScatteredKeys(t *testing.T) {
	for _, keys := range []int{1, 7, 1000, 12_345} {
		seen := make([]bool, keys)
		near := 0 // to the key of the operation before
		for n := range keys {
			i := scattered(n, keys)
			if seen[i] {
				t.Fatalf("%d keys: key %d again", keys, i)
			}
			seen[i] = true
			if d := i - scattered(max(n-1, 0), keys); n > 0 && d < keys/10 && d > -keys/10 {
				near++
			}
		}
		if keys > 7 && near > 0 {
			t.Errorf("%d of %d keys are near the one before", near, keys)
		}
	}
	l := Load{Setting: Setting{Raw: &Raw{}}, Keys: 1000, Filled: true, Kind: Read}
	request, _, _ := newRequests(&l).begin(nil, 1, 0, 1)
	if want := key("", scattered(1, 1000)); !strings.Contains(string(request), want) {
		t.Errorf("%q does not read %s", request, want)
	}
}
