package recipe

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"maps"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"bellwether/wire"
	"bellwether/zk"
)

// fakeServer is a small ZooKeeper server that tests can control: it has a tree, sessions that expire,
// watches, and hooks between request and reply. It runs in a synctest bubble, so its clock is that of the
// test.
type fakeServer struct {
	t *testing.T

	mu       sync.Mutex
	nodes    map[string]*fakeNode
	sessions map[wire.SessionID]*fakeSession
	peers    map[*peer]bool
	lastID   wire.SessionID
	zxid     wire.Zxid
	events   int // watch events sent
	reads    int // number of znodes read or listed, also in a multiRead
	requests map[wire.OpCode]int

	ahead   time.Duration // how far its clock is ahead of that of the clients
	away    bool          // no client can connect
	poor    bool          // the server has no quorum: it accepts only clients that allow that, and no writes
	guarded bool          // the server lets no transaction set data
	old     bool          // the server knows what 3.4 knows, and ends the connection at any other request
	// before sees each request. Its result decides what happens to the request.
	before  func(p *peer, op wire.OpCode, path string) fate
	refusal wire.Code // the code with which deny answers; ErrNoAuth by default
}

// fate is what happens to a request.
type fate int

const (
	normal      fate = iota
	dropReply        // carried out, then the connection ends without a reply
	dropAll          // the connection ends before it is carried out
	swallow          // never answered
	answerTwice      // with the same answer
	deny             // answered with an error, see refusal
	throttle         // not carried out, because the server has too much to do
)

type fakeNode struct {
	data  []byte
	stat  wire.Stat
	seq   int32
	watch map[*peer]bool // data watches
	child map[*peer]bool // child watches
}

type fakeSession struct {
	id      wire.SessionID
	timeout time.Duration
	timer   *time.Timer
}

type peer struct {
	s       *fakeServer
	conn    net.Conn
	session wire.SessionID
	exists  map[string]bool // exists watches on missing znodes
	streams map[string]wire.AddWatchMode

	out   sync.Mutex // guards queue
	queue [][]byte
	wake  chan struct{}
}

func newFakeServer(t *testing.T) *fakeServer {
	return &fakeServer{t: t, nodes: map[string]*fakeNode{"/": {}}, sessions: map[wire.SessionID]*fakeSession{}, peers: map[*peer]bool{},
		zxid: 0x100000000, requests: map[wire.OpCode]int{}}
}

// bubble runs a test with a fake clock.
func bubble(t *testing.T, test func(t *testing.T, s *fakeServer)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := newFakeServer(t)
		t.Cleanup(s.stop)
		test(t, s)
	})
}

func (s *fakeServer) stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.away = true
	for _, x := range s.sessions {
		x.timer.Stop()
	}
	for p := range s.peers {
		p.conn.Close()
	}
}

// connect opens a client that is closed with the test. Its session has a timeout of 10 s; the server may
// be wrong about a session for a second.
func (s *fakeServer) connect(o zk.Options) *zk.Client {
	s.t.Helper()
	return s.connectAt("", o)
}

// connectAt is connect with a chroot, which is empty or a path.
func (s *fakeServer) connectAt(chroot string, o zk.Options) *zk.Client {
	s.t.Helper()
	o.Dial = s.dial
	if o.SessionTimeout == 0 {
		o.SessionTimeout = 10 * time.Second
	}
	if o.LeaseDelay == 0 {
		o.LeaseDelay = time.Second
	}
	c, err := zk.Connect(s.t.Context(), "10.0.0.1"+chroot, &o)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = c.Close(ctx) // the server may have been told not to answer
	})
	return c
}

func (s *fakeServer) dial(context.Context, string, string) (net.Conn, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.away {
		return nil, errors.New("connection refused")
	}
	near, far := net.Pipe()
	p := &peer{s: s, conn: far, exists: map[string]bool{}, streams: map[string]wire.AddWatchMode{}, wake: make(chan struct{}, 1)}
	s.peers[p] = true
	go p.run()
	return near, nil
}

func (p *peer) run() {
	defer p.s.forget(p)
	defer p.conn.Close()
	r := bufio.NewReader(p.conn)
	frame, err := wire.ReadFrame(r, nil, 1<<20)
	var req wire.ConnectRequest
	if err != nil || wire.Decode(frame, &req) != nil {
		return
	}
	resp := p.s.attach(p, req)
	if p.conn.Write(wire.AppendFrame(nil, resp)); resp.TimeoutMS == 0 {
		return
	}
	ended := make(chan struct{})
	go p.write(ended)
	defer close(ended)
	for {
		frame, err := wire.ReadFrame(r, nil, 1<<20)
		if err != nil || !p.s.serve(p, frame) {
			return
		}
	}
}

// write sends the queued replies and events. A pipe blocks its writer.
func (p *peer) write(ended chan struct{}) {
	for {
		p.out.Lock()
		queue := p.queue
		p.queue = nil
		p.out.Unlock()
		for _, frame := range queue {
			if _, err := p.conn.Write(frame); err != nil {
				return
			}
		}
		select {
		case <-p.wake:
		case <-ended:
			return
		}
	}
}

func (p *peer) send(recs ...wire.Record) {
	p.out.Lock()
	p.queue = append(p.queue, wire.AppendFrame(nil, recs...))
	p.out.Unlock()
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

func (s *fakeServer) forget(p *peer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.peers, p)
	for _, n := range s.nodes {
		delete(n.watch, p)
		delete(n.child, p)
	}
}

func (s *fakeServer) attach(p *peer, req wire.ConnectRequest) *wire.ConnectResponse {
	s.mu.Lock()
	defer s.mu.Unlock()
	id := req.Session
	if id == 0 {
		s.lastID++
		id = s.lastID
		x := &fakeSession{id: id, timeout: time.Duration(req.TimeoutMS) * time.Millisecond}
		x.timer = time.AfterFunc(x.timeout, func() { s.expire(id) })
		s.sessions[id] = x
	}
	x := s.sessions[id]
	if x == nil {
		return &wire.ConnectResponse{Password: make([]byte, wire.PasswordLen), HasReadOnly: true}
	}
	for other := range s.peers {
		if other != p && other.session == id {
			other.conn.Close()
		}
	}
	p.session = id
	x.timer.Reset(x.timeout)
	pw := id.Password()
	return &wire.ConnectResponse{TimeoutMS: int32(x.timeout.Milliseconds()), Session: id, Password: pw[:], ReadOnly: s.poor, HasReadOnly: true}
}

// expire ends a session and closes its connection.
func (s *fakeServer) expire(id wire.SessionID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.endSession(id)
	for p := range s.peers {
		if p.session == id {
			p.conn.Close()
		}
	}
}

func (s *fakeServer) endSession(id wire.SessionID) {
	if s.sessions[id] == nil {
		return
	}
	s.sessions[id].timer.Stop()
	delete(s.sessions, id)
	s.zxid++
	for _, name := range slices.Sorted(maps.Keys(s.nodes)) {
		if s.nodes[name].stat.EphemeralOwner == id {
			s.remove(name)
		}
	}
}

func (s *fakeServer) remove(name string) {
	n := s.nodes[name]
	delete(s.nodes, name)
	s.parentChanged(name, -1)
	s.fire(wire.EventNodeDeleted, name, n.watch, n.child)
	s.childrenChanged(name)
}

func (s *fakeServer) event(p *peer, typ wire.EventType, name string) {
	s.events++
	p.send(&wire.ReplyHeader{Xid: wire.XidEvent, Zxid: -1}, &wire.WatcherEvent{Type: typ, State: wire.StateSyncConnected, Path: name})
}

// serve carries out one request. It returns false to end the connection.
func (s *fakeServer) serve(p *peer, frame []byte) bool {
	c := wire.Decoder(frame)
	var h wire.RequestHeader
	h.Code(&c)
	if c.Err() != nil {
		return false
	}
	body := frame[8:]
	s.mu.Lock()
	hook := s.before
	s.mu.Unlock()
	f := normal
	if hook != nil {
		f = hook(p, h.Op, pathOf(h.Op, body))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	x := s.sessions[p.session]
	if f == dropAll || x == nil || s.old && newer[h.Op] {
		return false
	}
	s.requests[h.Op]++
	if f == swallow {
		return true
	}
	x.timer.Reset(x.timeout)
	code, resp := cmp.Or(s.refusal, wire.ErrNoAuth), wire.Record(nil)
	switch {
	case s.poor && (h.Op.IsWrite() || h.Op == wire.OpSync):
		code = wire.ErrNotReadOnly
	case f == throttle:
		code = wire.ErrThrottledOp
	case f != deny:
		code, resp = s.do(p, h.Op, body)
	}
	if f == dropReply {
		return false
	}
	recs := []wire.Record{&wire.ReplyHeader{Xid: h.Xid, Zxid: s.zxid, Err: code}}
	if code == wire.OK && resp != nil {
		recs = append(recs, resp)
	}
	p.send(recs...)
	if f == answerTwice {
		p.send(recs...)
	}
	return true
}

// pathOf returns the path of a request, for a multi that of its second operation.
func pathOf(op wire.OpCode, body []byte) string {
	switch op {
	case wire.OpPing, wire.OpCloseSession, wire.OpMultiRead, wire.OpSetWatches, wire.OpSetWatches2:
		return ""
	case wire.OpMulti:
		var m wire.MultiRequest
		if wire.Decode(body, &m) == nil && len(m.Ops) > 1 {
			return multiPath(m.Ops[1])
		}
		return ""
	}
	var r wire.NullPathRequest
	c := wire.Decoder(body)
	r.Code(&c)
	return r.Path.String
}

func multiPath(op wire.Op) string {
	switch r := op.Request.(type) {
	case *wire.CreateRequest:
		return r.Path
	case *wire.PathVersionRequest:
		return r.Path
	case *wire.SetDataRequest:
		return r.Path
	}
	return ""
}

// cut ends the connections of a client's session.
func (s *fakeServer) cut(c *zk.Client) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for p := range s.peers {
		if p.session == c.Session().ID {
			p.conn.Close()
		}
	}
}

// setAway makes the server unreachable, or reachable again.
func (s *fakeServer) setAway(away bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.away = away
}

func (s *fakeServer) hook(f func(p *peer, op wire.OpCode, path string) fate) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.before = f
}

// silence keeps connections open, but answers nothing.
func (s *fakeServer) silence() {
	s.setAway(true)
	s.hook(func(*peer, wire.OpCode, string) fate { return swallow })
}

// bids returns the children of a parent without LEADER.
func (s *fakeServer) bids(parent string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	names := slices.DeleteFunc(s.children(parent), func(n string) bool { return strings.HasSuffix(n, "LEADER") })
	slices.Sort(names)
	return names
}

// node returns the data and the owner of a znode, or false.
func (s *fakeServer) node(name string) (string, wire.SessionID, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.nodes[name]
	if n == nil {
		return "", 0, false
	}
	return string(n.data), n.stat.EphemeralOwner, true
}

func (s *fakeServer) eventCount() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.events
}

// delete removes a znode as an operator would.
func (s *fakeServer) delete(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.zxid++
	s.remove(name)
}

// put creates a persistent znode as an operator would.
func (s *fakeServer) put(name, data string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.zxid++
	if _, code := s.create(&peer{}, &wire.CreateRequest{Path: name, Data: []byte(data)}); code != wire.OK {
		s.t.Error(code)
	}
}
