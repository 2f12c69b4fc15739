package interop

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"testing"
	"time"

	"bellwether/internal/shadow"
	"bellwether/wire"
	"bellwether/zk"
)

// TestShadowFindsWrongEvents puts a proxy before the observer that drops watch events, changes or delays them. Each lie is found
// for a watch that fires once, a persistent one, and one that the client sets again after a reconnect.
func TestShadowFindsWrongEvents(t *testing.T) {
	t.Parallel()
	s := shadowEnsemble(t)
	liar := &lying{to: s.observer}
	run := s.run(t, liar.listen(t), s.e.Servers[0])
	ctx, cancel := context.WithTimeout(t.Context(), shadowTimeout)
	defer cancel()
	writer, err := zk.Connect(ctx, s.e.Servers[0].Addr, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer writer.Close(context.Background())
	watcher := rawShadowClient(t, run.addr, nil)
	watcher.call(wire.OpExists, &wire.PathWatchRequest{Path: "/", Watch: true})
	run.settle(t, watcher) // the session at the observer exists, so no transaction comes between the servers' watches
	n := 0
	for name, watch := range map[string]func(path string){
		"getData":     func(path string) { watcher.call(wire.OpGetData, &wire.PathWatchRequest{Path: path, Watch: true}) },
		"getChildren": func(path string) { watcher.call(wire.OpGetChildren, &wire.PathWatchRequest{Path: path, Watch: true}) },
		"persistent":  func(path string) { watcher.call(wire.OpAddWatch, &wire.AddWatchRequest{Path: path}) },
		"recursive": func(path string) {
			watcher.call(wire.OpAddWatch, &wire.AddWatchRequest{Path: path, Mode: wire.WatchPersistentRecursive})
		},
		"setWatches": func(path string) {
			watcher.call(wire.OpSetWatches, &wire.SetWatchesRequest{RelativeZxid: watcher.zxid, Data: []string{path}})
		},
	} {
		for lie, wants := range map[int64]string{lieNone: "", lieDrop: "none", lieType: "none", liePath: "none", lieLate: "none"} {
			n++
			path := fmt.Sprintf("/event-%d", n)
			if _, _, err := writer.Create(ctx, path, nil); err != nil {
				t.Fatal(err)
			}
			watcher.reaches(path)
			watch(path)
			run.settle(t, watcher)
			liar.events.Store(lie)
			before := run.Report()
			if err := writer.Delete(ctx, path, -1); err != nil {
				t.Fatal(err)
			}
			watcher.event(path)
			run.settle(t, watcher)
			liar.events.Store(lieNone)
			found := ""
			for _, d := range run.Report().Differences[len(before.Differences):] {
				if d.Op == "notification" && d.Path == path {
					found = d.Difference.Observer
					break
				}
			}
			if found != wants {
				t.Errorf("%s, lie %d: %q: %+v", name, lie, found, run.Report().Differences[len(before.Differences):])
			}
		}
	}
}

// rawClient is a client without a library, which sends one request after the other.
type rawClient struct {
	t       *testing.T
	conn    net.Conn
	in      *bufio.Reader
	session wire.ConnectResponse
	xid     int32
	zxid    wire.Zxid
	events  map[string]bool
}

// rawShadowClient opens a session, or resumes one.
func rawShadowClient(t *testing.T, addr string, of *rawClient) *rawClient {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	conn.SetDeadline(time.Now().Add(shadowTimeout))
	c := &rawClient{t: t, conn: conn, in: bufio.NewReader(conn), events: map[string]bool{}}
	hello := &wire.ConnectRequest{TimeoutMS: 30_000, Password: make([]byte, wire.PasswordLen), HasReadOnly: true}
	if of != nil {
		hello.Session, hello.Password, hello.LastZxidSeen, c.zxid = of.session.Session, of.session.Password, of.zxid, of.zxid
	}
	conn.Write(wire.AppendFrame(nil, hello)) // a write error shows in the next read
	b, err := wire.ReadFrame(c.in, nil, wire.FrameMax)
	if err == nil {
		err = wire.Decode(b, &c.session)
	}
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// call sends a request and returns the code of the reply.
func (c *rawClient) call(op wire.OpCode, body wire.Record) wire.Code {
	c.t.Helper()
	c.xid++
	records := []wire.Record{&wire.RequestHeader{Xid: c.xid, Op: op}}
	if body != nil {
		records = append(records, body)
	}
	c.conn.Write(wire.AppendFrame(nil, records...)) // a write error shows in the next read
	for {
		b, err := wire.ReadFrame(c.in, nil, 32<<20)
		if err != nil {
			c.t.Fatalf("%v: %v", op, err)
		}
		var h wire.ReplyHeader
		d := wire.Decoder(b)
		h.Code(&d)
		if h.Xid != wire.XidEvent {
			c.zxid = max(c.zxid, h.Zxid)
			return h.Err
		}
		var e wire.WatcherEvent
		if err := wire.Decode(d.Rest(), &e); err != nil {
			c.t.Fatal(err)
		}
		c.events[e.Path] = true
	}
}

// exists asks without a watch.
func (c *rawClient) exists(path string) wire.Code {
	return c.call(wire.OpExists, &wire.PathWatchRequest{Path: path})
}

// reaches waits until the server has a znode.
func (c *rawClient) reaches(path string) {
	for c.exists(path) != wire.OK {
	}
}

// event waits until an event about a znode has arrived.
func (c *rawClient) event(path string) {
	for !c.events[path] {
		c.exists(path)
	}
}

// settle waits until all replies to a client were compared.
func (r shadowRun) settle(t *testing.T, c *rawClient) {
	t.Helper()
	counted := func(report *shadow.Report) int64 {
		if tally := report.Operations["getEphemerals"]; tally != nil {
			return tally.Replies
		}
		return 0
	}
	before := counted(r.Report())
	c.call(wire.OpGetEphemerals, &wire.NullPathRequest{})
	r.await(t, "comparison", func(report *shadow.Report) bool { return counted(report) > before })
}

// await waits until the report meets a condition.
func (r shadowRun) await(t *testing.T, what string, cond func(*shadow.Report) bool) {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(eventTimeout); !cond(r.Report()); <-tick.C {
		if time.Now().After(end) {
			t.Fatalf("no %s: %+v", what, r.Report())
		}
	}
}
