package relay_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"bellwether/internal/secure"
	"bellwether/internal/shadow"
	"bellwether/internal/shadow/relay"
	"bellwether/wire"
)

const waitMax = time.Minute

// handler answers a request of a fake server.
type handler func(op wire.OpCode, body []byte) (wire.ReplyHeader, wire.Record)

// fake is a server that speaks the protocol and answers by a function.
type fake struct {
	net.Listener
	answer handler

	srvr string // answer to the word srvr; empty: none

	before func(requests []wire.OpCode) []shadow.Observed // events before the reply to the last of the requests; nil: none

	mu     sync.Mutex
	seen   []wire.OpCode
	watch  bool   // a read has asked for a watch
	auths  int    // auth packets with the password of the super user
	shown  string // subject of the last client's certificate
	hosted int    // connections
}

func listen(t *testing.T) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

// serve starts a fake server.
func serve(t *testing.T, answer handler) *fake {
	return start(&fake{Listener: listen(t), answer: answer})
}

func start(f *fake) *fake {
	go func() {
		for {
			conn, err := f.Accept()
			if err != nil {
				return
			}
			go f.session(conn)
		}
	}()
	return f
}

// certificate notes the certificate of a client.
func (f *fake) certificate(conn net.Conn) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.hosted++
	if with, ok := conn.(*tls.Conn); ok {
		if f.shown = ""; len(with.ConnectionState().PeerCertificates) > 0 {
			f.shown = secure.NameOf(with.ConnectionState().PeerCertificates[0])
		}
	}
}

func (f *fake) session(conn net.Conn) {
	defer conn.Close()
	var first [4]byte
	if _, err := io.ReadFull(conn, first[:]); err != nil {
		return
	}
	if string(first[:]) == "srvr" {
		io.WriteString(conn, f.srvr)
		return
	}
	if _, err := wire.ReadFrame(io.MultiReader(bytes.NewReader(first[:]), conn), nil, wire.FrameMax); err != nil {
		return
	}
	f.certificate(conn)
	conn.Write(wire.AppendFrame(nil, &wire.ConnectResponse{TimeoutMS: 30_000, Session: 7, Password: make([]byte, wire.PasswordLen)}))
	for {
		b, err := wire.ReadFrame(conn, nil, wire.FrameMax)
		if err != nil {
			return
		}
		c := wire.Decoder(b)
		var q wire.RequestHeader
		q.Code(&c)
		f.note(q.Op, c.Rest())
		if f.before != nil {
			for _, e := range f.before(f.requests()) {
				conn.Write(wire.AppendFrame(nil, &wire.ReplyHeader{Xid: wire.XidEvent, Zxid: e.Zxid}, &e.WatcherEvent))
			}
		}
		h, rec := f.answer(q.Op, c.Rest())
		h.Xid = q.Xid
		records := []wire.Record{&h}
		if rec != nil {
			records = append(records, rec)
		}
		if _, err := conn.Write(wire.AppendFrame(nil, records...)); err != nil {
			return
		}
	}
}

func (f *fake) note(op wire.OpCode, body []byte) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.seen = append(f.seen, op)
	var auth wire.AuthRequest
	if op == wire.OpAuth && wire.Decode(body, &auth) == nil && string(auth.Auth) == "super:secret" {
		f.auths++
	}
	var r wire.PathWatchRequest
	f.watch = f.watch || op == wire.OpGetData && wire.Decode(body, &r) == nil && r.Watch
}

func (f *fake) requests() []wire.OpCode {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.seen)
}

// holds answers reads of a server that has one znode.
func holds(zxid wire.Zxid, data string) handler {
	return func(op wire.OpCode, _ []byte) (wire.ReplyHeader, wire.Record) {
		h := wire.ReplyHeader{Zxid: zxid}
		switch op {
		case wire.OpGetData:
			return h, &wire.DataResponse{Data: []byte(data), Stat: wire.Stat{Czxid: 1, Mzxid: 1, Pzxid: 1}}
		case wire.OpSetData:
			return h, &wire.StatResponse{Stat: wire.Stat{Czxid: 1, Mzxid: 1, Pzxid: 1}}
		}
		return h, nil
	}
}

// running is a relay with its report and its differences.
type running struct {
	*relay.Relay
	addr  string
	end   func() *shadow.Report
	found atomic.Int64
}

func run(t *testing.T, old, observer string) *running {
	t.Helper()
	return runWith(t, relay.Options{Old: []string{old}, Observer: observer})
}

func runWith(t *testing.T, opt relay.Options) *running {
	t.Helper()
	l := listen(t)
	r := &running{addr: l.Addr().String()}
	var err error
	opt.Listen, opt.Found = l, func(shadow.Found) { r.found.Add(1) }
	if opt.Logger == nil {
		opt.Logger = slog.New(slog.NewTextHandler(t.Output(), nil))
	}
	r.Relay, err = relay.New(opt)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- r.Run(ctx) }()
	r.end = sync.OnceValue(func() *shadow.Report {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		return r.Report()
	})
	t.Cleanup(func() { r.end() })
	return r
}

// await waits until the report meets a condition.
func (r *running) await(t *testing.T, what string, cond func(*shadow.Report) bool) {
	t.Helper()
	for end := time.Now().Add(waitMax); !cond(r.Report()); <-time.After(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("no %s: %+v", what, r.Report())
		}
	}
}

// session is a client with a session.
type session struct {
	t *testing.T
	net.Conn
	xid int32
}

func dial(t *testing.T, addr string) *session {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	return begin(t, conn)
}

// begin opens a session.
func begin(t *testing.T, conn net.Conn) *session {
	t.Helper()
	t.Cleanup(func() { conn.Close() })
	conn.SetDeadline(time.Now().Add(waitMax))
	c := &session{t: t, Conn: conn}
	c.send(&wire.ConnectRequest{TimeoutMS: 30_000, Password: make([]byte, wire.PasswordLen)})
	c.receive()
	return c
}

func (c *session) send(records ...wire.Record) {
	c.t.Helper()
	if _, err := c.Write(wire.AppendFrame(nil, records...)); err != nil {
		c.t.Fatal(err)
	}
}

func (c *session) receive() []byte {
	c.t.Helper()
	b, err := wire.ReadFrame(c, nil, wire.FrameMax)
	if err != nil {
		c.t.Fatal(err)
	}
	return b
}

func (c *session) call(op wire.OpCode, body wire.Record) {
	c.t.Helper()
	c.xid++
	xid := c.xid
	if op == wire.OpAuth {
		xid = wire.XidAuth
	}
	c.send(&wire.RequestHeader{Xid: xid, Op: op}, body)
	for {
		var h wire.ReplyHeader
		d := wire.Decoder(c.receive())
		if h.Code(&d); h.Xid != wire.XidEvent {
			return
		}
	}
}

func (c *session) get() { c.call(wire.OpGetData, &wire.PathWatchRequest{Path: "/n"}) }

func (c *session) auth(user string) {
	c.call(wire.OpAuth, &wire.AuthRequest{Scheme: wire.Text("digest"), Auth: []byte(user + ":pw")})
}

// replies returns a condition: so many replies were counted, of any outcome.
func replies(op wire.OpCode, n int64) func(*shadow.Report) bool {
	return func(r *shadow.Report) bool { t := r.Operations[op.String()]; return t != nil && t.Replies >= n }
}

// TestBytesAreForwarded sends bytes of all kinds in both directions, with and without meaning. They arrive unchanged,
// and so do the ends of both directions. There is no observer.
func TestBytesAreForwarded(t *testing.T) {
	random := make([]byte, 1<<20)
	for i := range random {
		random[i] = byte(rand.Uint32())
	}
	random[0] = 0xff // not the length of a frame
	hello := wire.AppendFrame(nil, &wire.ConnectRequest{TimeoutMS: 1, Password: make([]byte, wire.PasswordLen)})
	welcome := wire.AppendFrame(nil, &wire.ConnectResponse{TimeoutMS: 1, Password: make([]byte, wire.PasswordLen)})
	for i, c := range []struct{ client, server []byte }{
		{random, random},
		{[]byte("ruok"), []byte("imok")},
		{slices.Concat(hello, random), slices.Concat(welcome, random)},
		{hello, slices.Concat(welcome, wire.AppendFrame(nil, &wire.ReplyHeader{Xid: 99}), random)},
		{nil, nil},
	} {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			old := listen(t)
			got := make(chan []byte, 1)
			go func() {
				conn, err := old.Accept()
				if err != nil {
					return
				}
				defer conn.Close()
				go conn.Write(c.server)
				b, _ := io.ReadAll(conn)
				got <- b
				conn.(*net.TCPConn).CloseWrite()
			}()
			r := run(t, old.Addr().String(), "127.0.0.1:1")
			conn, err := net.Dial("tcp", r.addr)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			conn.SetDeadline(time.Now().Add(waitMax))
			back := make(chan []byte, 1)
			go func() {
				b := make([]byte, len(c.server))
				io.ReadFull(conn, b)
				back <- b
			}()
			if _, err := conn.Write(c.client); err != nil {
				t.Fatal(err)
			}
			if b := <-back; !bytes.Equal(b, c.server) {
				t.Errorf("the client got %d bytes, not those of the server", len(b))
			}
			conn.(*net.TCPConn).CloseWrite()
			if b := <-got; !bytes.Equal(b, c.client) {
				t.Errorf("the server got %d bytes, not those of the client", len(b))
			}
			if n, err := conn.Read(make([]byte, 1)); err != io.EOF {
				t.Errorf("at the end: %d bytes, %v", n, err)
			}
			if report := r.end(); len(c.client) > len(hello) && len(report.NotDecoded) != 1 {
				t.Errorf("%+v", report)
			}
		})
	}
}

// TestRepliesAreCompared shows that reads without a watch are repeated without one and with the client's auth packets, that
// writes are not repeated, and that sessions at the observer are closed.
func TestRepliesAreCompared(t *testing.T) {
	old, observer := serve(t, holds(9, "data")), serve(t, holds(9, "data"))
	r := run(t, old.Addr().String(), observer.Addr().String())
	c := dial(t, r.addr)
	c.auth("bob")
	c.get()
	c.call(wire.OpSetData, &wire.SetDataRequest{Path: "/n", Data: []byte("data"), Version: -1})
	r.await(t, "comparisons", replies(wire.OpSetData, 1))
	report := r.end()
	for _, op := range []string{"auth", "getData", "setData"} {
		if report.Operations[op].Equal != 1 {
			t.Errorf("%s: %+v", op, report.Operations[op])
		}
	}
	want := []wire.OpCode{wire.OpAuth, wire.OpGetData, wire.OpGetData, wire.OpCloseSession}
	if seen := observer.requests(); !slices.Equal(seen, want) || observer.watch || r.found.Load() != 0 {
		t.Errorf("the observer got %v, watch %v, %d differences", seen, observer.watch, r.found.Load())
	}
}

// TestDifferencesAreReported has an observer with other data, and one that refuses an auth packet.
func TestDifferencesAreReported(t *testing.T) {
	other := holds(9, "other")
	for name, answer := range map[string]handler{
		"data": other,
		"identity": func(op wire.OpCode, body []byte) (wire.ReplyHeader, wire.Record) {
			if op == wire.OpAuth {
				return wire.ReplyHeader{Err: wire.ErrAuthFailed}, nil
			}
			return other(op, body)
		},
	} {
		r := run(t, serve(t, holds(9, "data")).Addr().String(), serve(t, answer).Addr().String())
		c := dial(t, r.addr)
		c.auth("bob")
		c.get()
		r.await(t, "comparison", replies(wire.OpGetData, 1))
		report := r.end()
		if len(report.Differences) != 1 || report.Differences[0].Field != name || r.found.Load() != 1 || report.Differing() != 1 {
			t.Errorf("%s: %+v", name, report.Differences)
		}
	}
}

// TestObserverCatchesUp has an observer that reaches the zxid of the reply only after some reads.
func TestObserverCatchesUp(t *testing.T) {
	var zxid atomic.Int64
	behind := func(op wire.OpCode, body []byte) (wire.ReplyHeader, wire.Record) {
		return holds(wire.Zxid(zxid.Add(1)), "data")(op, body)
	}
	r := run(t, serve(t, holds(9, "data")).Addr().String(), serve(t, behind).Addr().String())
	dial(t, r.addr).get()
	r.await(t, "comparison", func(r *shadow.Report) bool { t := r.Operations["getData"]; return t != nil && t.Equal == 1 })
}

// TestClientsDoNotNoticeTheObserver: clients get their replies while the observer does not exist, does not answer, or
// has ended. What is not compared is counted.
func TestClientsDoNotNoticeTheObserver(t *testing.T) {
	const many = 6000
	never := make(chan struct{})
	t.Cleanup(func() { close(never) })
	hung := serve(t, func(wire.OpCode, []byte) (wire.ReplyHeader, wire.Record) { <-never; return wire.ReplyHeader{}, nil })
	gone := serve(t, holds(9, "data"))
	gone.Close()
	for addr, want := range map[string]shadow.Reason{hung.Addr().String(): shadow.UnsureDropped, gone.Addr().String(): shadow.UnsureNoObserver} {
		r := run(t, serve(t, holds(9, "data")).Addr().String(), addr)
		c := dial(t, r.addr)
		go func() {
			for xid := range int32(many) {
				c.Write(wire.AppendFrame(nil, &wire.RequestHeader{Xid: xid, Op: wire.OpGetData}, &wire.PathWatchRequest{Path: "/n"}))
			}
		}()
		for range many {
			c.receive()
		}
		r.await(t, string(want), func(r *shadow.Report) bool {
			t := r.Operations["getData"]
			return t != nil && t.NotCompared[want] > 0
		})
		if r.found.Load() != 0 {
			t.Errorf("%d differences", r.found.Load())
		}
	}
}

// TestIdentitiesAreBounded: more clients with different auth packets than lanes are forwarded, and counted.
func TestIdentitiesAreBounded(t *testing.T) {
	old, observer := serve(t, holds(9, "data")), serve(t, holds(9, "data"))
	r := run(t, old.Addr().String(), observer.Addr().String())
	for i := range 40 {
		c := dial(t, r.addr)
		c.auth(fmt.Sprint("user", i))
	}
	r.await(t, "replies", replies(wire.OpAuth, 40))
	if tally := r.Report().Operations["auth"]; tally.Equal != 32 || tally.NotCompared[shadow.UnsureLanes] != 8 {
		t.Errorf("%+v", tally)
	}
}

// TestCheckNamesTheServer: a wrong address is an error at the start.
func TestCheckNamesTheServer(t *testing.T) {
	there := serve(t, holds(1, ""))
	gone := listen(t)
	gone.Close()
	for _, c := range []struct {
		old, observer string
		ok            bool
	}{
		{there.Addr().String(), there.Addr().String(), true},
		{gone.Addr().String() + " " + there.Addr().String(), there.Addr().String(), true},
		{gone.Addr().String(), there.Addr().String(), false},
		{there.Addr().String(), gone.Addr().String(), false},
	} {
		r, err := relay.New(relay.Options{Listen: listen(t), Old: strings.Fields(c.old), Observer: c.observer, Logger: slog.New(slog.NewTextHandler(t.Output(), nil))})
		if err != nil {
			t.Fatal(err)
		}
		if err := r.Check(t.Context()); (err == nil) != c.ok {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

// TestCheckWarnsOfOtherServers: the server that is given as the observer is not Bellwether, or not an observer, or does not say what it is. The
// check succeeds, and the log warns.
func TestCheckWarnsOfOtherServers(t *testing.T) {
	const other, voter, unknown = "not a Bellwether server", "not an observer", "cannot check that"
	const version = "Zookeeper version: 3.9.5-bellwether-0.1.0, built on 2026-11-21 05:30 UTC\n"
	for _, c := range []struct {
		srvr string
		want []string
	}{
		{version + "Mode: observer\n", nil},
		{version + "Mode: follower\n", []string{voter}},
		{version + "Mode: standalone\n", []string{voter}},
		{"Zookeeper version: 3.8.0-5a02a05, built on 2022-02-25 08:49 UTC\nMode: observer\n", []string{other}},
		{"Zookeeper version: 3.8.0-5a02a05, built on 2022-02-25 08:49 UTC\nMode: leader\n", []string{other, voter}},
		{"srvr is not executed because it is not in the whitelist.\n", []string{unknown}},
		{"", []string{unknown}},
	} {
		observer := start(&fake{Listener: listen(t), answer: holds(1, ""), srvr: c.srvr})
		var log logText
		r, err := relay.New(relay.Options{Listen: listen(t), Old: []string{observer.Addr().String()}, Observer: observer.Addr().String(), Logger: log.logger()})
		if err != nil {
			t.Fatal(err)
		}
		if err := r.Check(t.Context()); err != nil {
			t.Errorf("%q: %v", c.srvr, err)
		}
		for _, text := range []string{other, voter, unknown} {
			if want := slices.Contains(c.want, text); (log.lines(text) == 1) != want {
				t.Errorf("%q: a warning with %q: %v", c.srvr, text, !want)
			}
		}
	}
}
