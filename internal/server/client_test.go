package server

import (
	"context"
	"io"
	"log/slog"
	"net"
	"sync"
	"testing"
	"time"

	"bellwether/internal/config"
	"bellwether/internal/ensemble"
	"bellwether/internal/store"
	"bellwether/wire"
)

// eventTimeout is how long a test waits for an expected event.
const eventTimeout = 3 * time.Minute

// lastingMS is the timeout of a session that must not expire, in ms.
const lastingMS = 40_000

// testConfig returns the configuration of a server on a free loopback port.
func testConfig() *config.Config {
	c := config.Default()
	c.Client = ensemble.HostPort{Host: "127.0.0.1", Port: 0}
	c.DataDir, c.DataLogDir = "data", "data"
	c.Limits.ClientCnxns = 0
	c.Storage.PreAllocBytes = 0
	return c
}

// running is a server under test.
type running struct {
	*Server
	t    testing.TB
	stop context.CancelFunc
	done chan error
}

// testLog returns a logger that writes to the test's output.
func testLog(t testing.TB) *slog.Logger {
	return slog.New(slog.NewTextHandler(newTestOutput(t), &slog.HandlerOptions{Level: slog.LevelDebug}))
}

// testOutput is the output of a test until the test ends. What comes later is dropped: a server that
// ends while its disk hangs leaves goroutines behind, and they log when the disk answers.
type testOutput struct {
	mu sync.Mutex
	to io.Writer // nil: the test has ended
}

func newTestOutput(t testing.TB) *testOutput {
	o := &testOutput{to: t.Output()}
	t.Cleanup(func() {
		o.mu.Lock()
		defer o.mu.Unlock()
		o.to = nil
	})
	return o
}

func (o *testOutput) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.to == nil {
		return len(p), nil
	}
	return o.to.Write(p)
}

// start runs a server until the test ends or end is called. It waits until the server
// serves.
func start(t testing.TB, o Options) *running {
	t.Helper()
	r := launch(t, o)
	select {
	case <-r.Ready():
	case err := <-r.done:
		r.done <- err
		t.Fatal("server ended at its start: ", err)
	case <-time.After(eventTimeout):
		t.Fatal("server is not ready")
	}
	return r
}

// launch runs a server until the test ends or end is called.
func launch(t testing.TB, o Options) *running {
	t.Helper()
	if o.Config == nil {
		o.Config = testConfig()
	}
	if o.FS == nil {
		o.FS = store.NewMem(1)
	}
	if o.Log == nil {
		o.Log = testLog(t)
	}
	s, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return run(t, s)
}

// run is like launch, but for a server that exists already.
func run(t testing.TB, s *Server) *running {
	ctx, cancel := context.WithCancel(context.Background())
	r := &running{Server: s, t: t, stop: cancel, done: make(chan error, 1)}
	go func() { r.done <- s.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		err := <-r.done
		r.done <- err
	})
	return r
}

// end stops the server and returns what Run returned.
func (r *running) end() error {
	r.stop()
	err := <-r.done
	r.done <- err
	return err
}

// client is a raw connection to a server.
type client struct {
	t       testing.TB
	nc      net.Conn
	xid     int32
	session wire.ConnectResponse
}

// dial opens a connection without a handshake.
func (r *running) dial() *client {
	r.t.Helper()
	nc, err := net.Dial("tcp", r.Addr().String())
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { nc.Close() })
	return &client{t: r.t, nc: nc}
}

// connect opens a connection with a new session.
func (r *running) connect() *client {
	r.t.Helper()
	c := r.dial()
	c.handshake(wire.ConnectRequest{TimeoutMS: lastingMS, Password: make([]byte, 16), HasReadOnly: true})
	if c.session.Session == 0 {
		r.t.Fatal("session was refused")
	}
	return c
}

// handshake sends a connect request and reads its answer.
func (c *client) handshake(q wire.ConnectRequest) {
	c.t.Helper()
	c.write(wire.AppendFrame(nil, &q))
	if err := wire.Decode(c.frame(), &c.session); err != nil {
		c.t.Fatal(err)
	}
}

func (c *client) write(b []byte) {
	c.t.Helper()
	c.nc.SetWriteDeadline(time.Now().Add(eventTimeout))
	if _, err := c.nc.Write(b); err != nil {
		c.t.Fatal(err)
	}
}

// frame reads one frame.
func (c *client) frame() []byte {
	c.t.Helper()
	c.nc.SetReadDeadline(time.Now().Add(eventTimeout))
	b, err := wire.ReadFrame(c.nc, nil, 1<<30)
	if err != nil {
		c.t.Fatalf("read: %v", err)
	}
	return b
}

// request returns the frame of a request.
func request(xid int32, op wire.OpCode, r wire.Record) []byte {
	h := wire.RequestHeader{Xid: xid, Op: op}
	if r == nil {
		return wire.AppendFrame(nil, &h)
	}
	return wire.AppendFrame(nil, &h, r)
}

// send sends a request and returns its xid.
func (c *client) send(op wire.OpCode, r wire.Record) int32 {
	c.t.Helper()
	c.xid++
	c.write(request(c.xid, op, r))
	return c.xid
}

// reply reads a reply or event into r, which may be nil.
func (c *client) reply(r wire.Record) wire.ReplyHeader {
	c.t.Helper()
	in := wire.Decoder(c.frame())
	var h wire.ReplyHeader
	h.Code(&in)
	if r != nil && h.Err == wire.OK {
		r.Code(&in)
	}
	if in.Err() != nil {
		c.t.Fatalf("reply %+v: %v", h, in.Err())
	}
	return h
}

// call sends a request and reads its reply.
func (c *client) call(op wire.OpCode, q, r wire.Record) wire.ReplyHeader {
	c.t.Helper()
	xid := c.send(op, q)
	h := c.reply(r)
	if h.Xid != xid && op != wire.OpPing {
		c.t.Fatalf("reply to xid %d, sent was %d", h.Xid, xid)
	}
	return h
}

// try is like call, but for a session that may have expired: if the machine stands still for longer
// than the session timeout, the session expires, whatever the server does.
func (c *client) try(op wire.OpCode, q, r wire.Record) error {
	c.xid++
	c.nc.SetDeadline(time.Now().Add(eventTimeout))
	if _, err := c.nc.Write(request(c.xid, op, q)); err != nil {
		return err
	}
	b, err := wire.ReadFrame(c.nc, nil, 1<<30)
	if err != nil {
		return err
	}
	in := wire.Decoder(b)
	var h wire.ReplyHeader
	if h.Code(&in); h.Err != wire.OK {
		return h.Err
	}
	if r != nil {
		r.Code(&in)
	}
	return in.Err()
}

// withTimeouts runs a test that needs a short session to stay alive, with ever longer
// timeouts until it succeeds. The last ones are longer than any machine stands still.
func withTimeouts(t *testing.T, first time.Duration, try func(timeout time.Duration) error) {
	t.Helper()
	for timeout := first; ; timeout *= 2 {
		err := try(timeout)
		if err == nil {
			return
		}
		if timeout > 10*time.Second {
			t.Fatalf("with a timeout of %v: %v", timeout, err)
		}
		t.Logf("with a timeout of %v: %v; again", timeout, err)
	}
}

// connectFor opens a connection with a new session that has this timeout.
func (r *running) connectFor(timeout time.Duration) *client {
	r.t.Helper()
	c := r.dial()
	c.handshake(wire.ConnectRequest{TimeoutMS: int32(timeout.Milliseconds()), Password: make([]byte, 16)})
	return c
}

// must is like call, but for a request that must succeed.
func (c *client) must(op wire.OpCode, q, r wire.Record) wire.ReplyHeader {
	c.t.Helper()
	h := c.call(op, q, r)
	if h.Err != wire.OK {
		c.t.Fatalf("%v %+v: %v", op, q, h.Err)
	}
	return h
}

// create makes a persistent znode.
func (c *client) create(path, data string) {
	c.t.Helper()
	c.must(wire.OpCreate, create(path, data), &wire.PathResponse{})
}

func create(path, data string) *wire.CreateRequest {
	return &wire.CreateRequest{Path: path, Data: []byte(data), ACL: wire.OpenACL()}
}

// data reads a znode.
func (c *client) data(path string) string {
	c.t.Helper()
	var r wire.DataResponse
	c.must(wire.OpGetData, &wire.PathWatchRequest{Path: path}, &r)
	return string(r.Data)
}

// closed fails unless the server closes the connection without another byte.
func (c *client) closed() {
	c.t.Helper()
	c.nc.SetReadDeadline(time.Now().Add(eventTimeout))
	b, err := io.ReadAll(c.nc)
	if len(b) > 0 {
		c.t.Fatalf("%d bytes before the end: %x", len(b), b)
	}
	if e, ok := err.(net.Error); ok && e.Timeout() {
		c.t.Fatal("connection was not closed")
	}
}
