package zk

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"bellwether/internal/leasequery"
	"bellwether/wire"
)

// ensemble is a set of servers that a test controls. Each connection is a pipe with a
// goroutine at the far end. Requests that the test does not handle are answered with
// success.
type ensemble struct {
	t *testing.T
	// away: no server answers at any address.
	away atomic.Bool
	// refuse: dialling this address fails.
	refuse func(address string) error
	// silent: a connection to this address is never answered.
	silent func(address string) bool
	isro   atomic.Value // string: the answer to the four-letter word isro
	// greet answers a ConnectRequest; nil closes the connection. By default the request
	// is granted.
	greet func(p *peer, req wire.ConnectRequest) *wire.ConnectResponse
	// delay is the lease delay that a server reports, in ms. By default the server echoes
	// the question.
	delay func(p *peer) int64
	// serve handles a request. If it returns false, the request gets the normal answer.
	serve func(p *peer, h wire.RequestHeader, body []byte) bool

	wrap func(net.Conn) net.Conn // TLS

	mu        sync.Mutex
	subjects  []string // subjects of the clients' certificates
	dialled   []string
	requests  []string // "op path" of each request, except pings and the lease question
	asked     []wire.ConnectRequest
	peers     []*peer
	sessions  int64
	zxid      wire.Zxid
	questions int // number of lease questions
}

// peer is the server's end of one connection.
type peer struct {
	e       *ensemble
	address string
	conn    net.Conn
	r       *bufio.Reader
	n       int // number of the connection in the test, from 0
	session wire.SessionID
}

func newEnsemble(t *testing.T) *ensemble { return &ensemble{t: t, zxid: 100} }

// dial is the function for Options.Dial.
func (e *ensemble) dial(ctx context.Context, network, address string) (net.Conn, error) {
	e.mu.Lock()
	e.dialled = append(e.dialled, address)
	e.mu.Unlock()
	if e.away.Load() {
		return nil, errNoListener
	}
	if e.refuse != nil {
		if err := e.refuse(address); err != nil {
			return nil, err
		}
	}
	if e.silent != nil && e.silent(address) {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	near, far := net.Pipe()
	e.mu.Lock()
	p := &peer{e: e, address: address, conn: far, r: bufio.NewReader(far), n: len(e.peers)}
	e.peers = append(e.peers, p)
	e.mu.Unlock()
	go p.run()
	return near, nil
}

// connect opens a client of the ensemble and closes it when the test ends.
func (e *ensemble) connect(o Options, servers ...string) *Client {
	e.t.Helper()
	c := e.open(o, servers...)
	ctx, cancel := context.WithTimeout(e.t.Context(), time.Minute)
	defer cancel()
	for s := range c.States(ctx) {
		if s.State == Connected || s.State == ReadOnly {
			return c
		}
	}
	e.t.Fatal("no session within a minute")
	return nil
}

func (e *ensemble) open(o Options, servers ...string) *Client {
	e.t.Helper()
	o.Dial = e.dial
	list := "10.0.0.1"
	if len(servers) > 0 {
		list = servers[0]
	}
	c, err := Open(list, &o)
	if err != nil {
		e.t.Fatal(err)
	}
	e.t.Cleanup(func() { c.stop() })
	return c
}

func (p *peer) run() {
	if p.e.wrap != nil {
		p.conn = p.e.wrap(p.conn)
		p.r = bufio.NewReader(p.conn)
	}
	defer p.conn.Close()
	if word, err := p.r.Peek(4); err == nil && string(word) == "isro" {
		fmt.Fprintln(p.conn, p.e.isro.Load())
		return
	}
	frame, err := wire.ReadFrame(p.r, nil, 1<<20)
	if err != nil {
		return
	}
	var req wire.ConnectRequest
	if err := wire.Decode(frame, &req); err != nil {
		p.e.t.Errorf("ConnectRequest: %v", err)
		return
	}
	p.e.mu.Lock()
	p.e.asked = append(p.e.asked, req)
	p.e.mu.Unlock()
	greet := p.e.greet
	if greet == nil {
		greet = func(_ *peer, req wire.ConnectRequest) *wire.ConnectResponse { return p.e.accept(req) }
	}
	resp := greet(p, req)
	if resp == nil {
		return
	}
	p.session = resp.Session
	p.conn.Write(wire.AppendFrame(nil, resp))
	for p.one() {
	}
}

// accept returns the answer of a server that accepts the session.
func (e *ensemble) accept(req wire.ConnectRequest) *wire.ConnectResponse {
	e.mu.Lock()
	defer e.mu.Unlock()
	id := req.Session
	if id == 0 {
		e.sessions++
		id = wire.SessionID(e.sessions)
	}
	pw := id.Password()
	return &wire.ConnectResponse{TimeoutMS: req.TimeoutMS, Session: id, Password: pw[:], HasReadOnly: true}
}

// one handles one request of a client.
func (p *peer) one() bool {
	frame, err := wire.ReadFrame(p.r, nil, 1<<21)
	if err != nil {
		return false
	}
	var h wire.RequestHeader
	if err := wire.Decode(frame, &h); err != nil {
		p.e.t.Errorf("request header: %v", err)
		return false
	}
	body := frame[8:]
	if h.Op == wire.OpSync && pathOf(h.Op, body) == leasequery.Question {
		return p.sayDelay(h)
	}
	if h.Op != wire.OpPing {
		p.e.mu.Lock()
		p.e.requests = append(p.e.requests, fmt.Sprint(h.Op, " ", pathOf(h.Op, body)))
		p.e.mu.Unlock()
	}
	if p.e.serve != nil && p.e.serve(p, h, body) {
		return true
	}
	return p.standard(h, body)
}

// sayDelay answers the client's question about the lease delay. Without a delay of the
// test, the answer contains only the path, as ZooKeeper's answer to a sync does.
func (p *peer) sayDelay(h wire.RequestHeader) bool {
	p.e.mu.Lock()
	p.e.questions++
	p.e.mu.Unlock()
	answer := leasequery.Question
	if p.e.delay != nil {
		ms := p.e.delay(p)
		if ms == notSaid {
			return true
		}
		if ms > 0 {
			answer = leasequery.Answer(ms)
		}
	}
	p.reply(h.Xid, wire.OK, &wire.PathResponse{Path: answer})
	return true
}

// notSaid, as a delay, makes the server not answer the question.
const notSaid = -1

// pathOf returns the path in the request's body, if the body begins with one.
func pathOf(op wire.OpCode, body []byte) string {
	var r wire.NullPathRequest
	switch op {
	case wire.OpAuth, wire.OpSetWatches, wire.OpSetWatches2, wire.OpMulti, wire.OpMultiRead, wire.OpCloseSession, wire.OpWhoAmI:
		return ""
	}
	if wire.Decode(body, &r) != nil {
		return "?"
	}
	return r.Path.String
}

// standard sends the normal answer of a server.
func (p *peer) standard(h wire.RequestHeader, body []byte) bool {
	path := pathOf(h.Op, body)
	var resp wire.Record
	switch h.Op {
	case wire.OpCreate:
		resp = &wire.PathResponse{Path: path}
	case wire.OpCreate2, wire.OpCreateContainer, wire.OpCreateTTL:
		resp = &wire.PathStatResponse{Path: path}
	case wire.OpExists, wire.OpSetData, wire.OpSetACL:
		resp = &wire.StatResponse{}
	case wire.OpGetData:
		resp = &wire.DataResponse{Data: []byte(path)}
	case wire.OpGetChildren2:
		resp = &wire.ChildrenStatResponse{}
	case wire.OpSync:
		resp = &wire.PathResponse{Path: path}
	case wire.OpAddWatch:
		resp = &wire.ErrorResponse{}
	}
	p.reply(h.Xid, wire.OK, resp)
	return h.Op != wire.OpCloseSession
}

// reply answers with the ensemble's present zxid.
func (p *peer) reply(xid int32, code wire.Code, resp wire.Record) {
	p.e.mu.Lock()
	z := p.e.zxid
	p.e.mu.Unlock()
	p.replyAt(xid, z, code, resp)
}

func (p *peer) replyAt(xid int32, z wire.Zxid, code wire.Code, resp wire.Record) {
	out := []wire.Record{&wire.ReplyHeader{Xid: xid, Zxid: z, Err: code}}
	if resp != nil {
		out = append(out, resp)
	}
	p.conn.Write(wire.AppendFrame(nil, out...))
}

// event sends a watch event.
func (p *peer) event(z wire.Zxid, typ wire.EventType, path string) {
	p.conn.Write(wire.AppendFrame(nil, &wire.ReplyHeader{Xid: wire.XidEvent, Zxid: z},
		&wire.WatcherEvent{Type: typ, State: wire.StateSyncConnected, Path: path}))
}

// cut closes the newest connection.
func (e *ensemble) cut() { e.peer().conn.Close() }

// peer returns the newest connection.
func (e *ensemble) peer() *peer {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.peers[len(e.peers)-1]
}

func (e *ensemble) log() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return append([]string(nil), e.requests...)
}

func (e *ensemble) questionCount() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.questions
}

func (e *ensemble) connections() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.peers)
}

func (e *ensemble) connectRequest(n int) wire.ConnectRequest {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.asked[n]
}

func (e *ensemble) lastConnectRequest() wire.ConnectRequest {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.asked[len(e.asked)-1]
}

// refused returns the answer for a session that is over.
func refused() *wire.ConnectResponse {
	return &wire.ConnectResponse{Password: make([]byte, wire.PasswordLen), HasReadOnly: true}
}

// bubble runs a test with a fake clock (synctest) and waits for all its goroutines.
func bubble(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	synctest.Test(t, f)
}

// waitFor returns the next status that has this state.
func waitFor(t *testing.T, c *Client, want State) Status {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	for s := range c.States(ctx) {
		if s.State == want {
			return s
		}
	}
	t.Fatalf("state is %v, want %v", c.State().State, want)
	return Status{}
}

var errNoListener = errors.New("connection refused")
