package interop

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"bellwether/interop/target"
	"bellwether/wire"
)

// unreadLoad is a load of clients that send requests and never read a reply.
type unreadLoad struct {
	name     string
	clients  int
	requests func() []byte            // what each client sends after its handshake
	again    bool                     // each client closes its connection and reconnects
	write    func(o *reader, i int32) // what the reader writes meanwhile
}

// replyMemoryMB is the setting of the tested server. To measure with another value, run
// REPLY_MEMORY_MB=64 go test -run ReplyMemory -v .
var replyMemoryMB = cmp.Or(os.Getenv("REPLY_MEMORY_MB"), "128")

const (
	fewNames   = 900  // children of /few
	manyNames  = 3000 // children of /many
	bigBytes   = 1_000_000
	smallBytes = 100
	// The minimum duration of a load, and how often the reader writes and reads meanwhile.
	loadTime     = 1500 * time.Millisecond
	readerRounds = 100
	// readerWait bounds how long a request of the reader may take. The test measures memory,
	// not time: on a busy machine a write waits seconds behind the session creations of a
	// thousand clients. The test prints the longest wait.
	readerWait = time.Minute
)

func unreadLoads() []unreadLoad {
	few := func() []byte { return pipelined(60, wire.OpGetChildren, &wire.PathWatchRequest{Path: "/few"}) }
	set := func(path string, size int) func(*reader, int32) {
		return func(o *reader, i int32) {
			data := make([]byte, size)
			data[0] = byte(i)
			o.call(wire.OpSetData, &wire.SetDataRequest{Path: path, Data: data, Version: -1})
		}
	}
	multi := &wire.MultiRequest{}
	for range 20 {
		multi.Ops = append(multi.Ops, wire.Op{Type: wire.OpGetChildren, Request: &wire.PathWatchRequest{Path: "/few"}})
	}
	return []unreadLoad{
		{name: "lists", clients: 1500, requests: few, write: set("/small", smallBytes)},
		{name: "lists of many clients", clients: 5000, requests: few, write: set("/small", smallBytes)},
		{name: "lists that change", clients: 1500, requests: func() []byte {
			return pipelined(20, wire.OpGetChildren2, &wire.PathWatchRequest{Path: "/many"})
		}, write: func(o *reader, i int32) {
			o.call(wire.OpCreate, &wire.CreateRequest{Path: fmt.Sprintf("/many/%060d", i), ACL: wire.OpenACL()})
		}},
		{name: "values that change", clients: 1500, requests: func() []byte {
			return pipelined(30, wire.OpGetData, &wire.PathWatchRequest{Path: "/big"})
		}, write: set("/big", bigBytes)},
		{name: "multiReads", clients: 1500, requests: func() []byte { return pipelined(20, wire.OpMultiRead, multi) }, write: set("/small", smallBytes)},
		{name: "small replies", clients: 3000, requests: func() []byte {
			return append(pipelined(1500, wire.OpGetData, &wire.PathWatchRequest{Path: "/small"}),
				pipelined(1500, wire.OpExists, &wire.PathWatchRequest{Path: "/small"})...)
		}, write: set("/small", smallBytes)},
		{name: "replies behind a write", clients: 1500, requests: func() []byte {
			return append(request(1, wire.OpSetData, &wire.SetDataRequest{Path: "/small", Version: -1}), few()...)
		}, write: set("/small", smallBytes)},
		{name: "events", clients: 1500, requests: func() []byte {
			return request(1, wire.OpAddWatch, &wire.AddWatchRequest{Path: "/small", Mode: wire.WatchPersistent})
		}, write: set("/small", smallBytes)},
		{name: "halves of requests", clients: 1000, requests: func() []byte {
			whole := request(1, wire.OpSetData, &wire.SetDataRequest{Path: "/big", Data: make([]byte, bigBytes), Version: 7})
			return whole[:len(whole)/2]
		}, write: set("/small", smallBytes)},
		{name: "come and go", clients: 1000, requests: few, again: true, write: set("/small", smallBytes)},
	}
}

// TestReplyMemory shows that clients that do not read their replies cannot make the server use
// more memory than replyMemoryMB, whatever they request. Meanwhile a client that reads gets
// every reply, and when the others have disconnected, nothing of them is left. To measure
// another build: INTEROP_BINARY=path go test -run ReplyMemory -v .
func TestReplyMemory(t *testing.T) {
	mb, err := strconv.Atoi(replyMemoryMB)
	if err != nil {
		t.Fatal(err)
	}
	for _, load := range unreadLoads() {
		t.Run(load.name, func(t *testing.T) {
			s := target.StartFor(t, target.Bellwether, target.Options{Extra: map[string]string{"replyMemoryMB": replyMemoryMB}})
			o := newReader(t, s.Addr)
			o.fill()
			before := memoryKB(t, s.PID(), "VmHWM")
			waiting := load.start(t, s.Addr)
			begin := time.Now()
			for i := int32(0); i < readerRounds || time.Since(begin) < loadTime || !waiting.complete(); i++ {
				load.write(o, i)
				o.call(wire.OpGetData, &wire.PathWatchRequest{Path: "/small"})
				o.call(wire.OpExists, &wire.PathWatchRequest{Path: "/few"})
			}
			waiting.end()
			grown := (memoryKB(t, s.PID(), "VmHWM") - before) >> 10
			t.Logf("%s: the memory grew by %d MiB of %d, from %d MiB; the longest request of another client took %v", load.name, grown, mb, before>>10, o.longest)
			if grown > mb {
				t.Errorf("the memory grew by %d MiB, replyMemoryMB is %d", grown, mb)
			}
			o.call(wire.OpGetChildren, &wire.PathWatchRequest{Path: "/few"})
			awaitAlone(t, s)
		})
	}
}

// awaitAlone waits until the server has two connections: the reader's, and the one of this
// check.
func awaitAlone(t *testing.T, s *target.Server) {
	t.Helper()
	for end := time.Now().Add(readerWait); ; <-time.After(10 * time.Millisecond) {
		text, err := s.Word("srvr")
		if err == nil && strings.Contains(text, "Connections: 2\n") {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("connections are left: %v %s", err, text)
		}
	}
}

// unreadClients is the set of clients of one load.
type unreadClients struct {
	load      *unreadLoad
	out       []byte
	dialer    net.Dialer
	addr      string
	ended     atomic.Bool
	connected atomic.Int32
	conns     sync.Map
	all       sync.WaitGroup
}

// start connects all clients at once.
func (l *unreadLoad) start(t *testing.T, addr string) *unreadClients {
	c := &unreadClients{load: l, out: l.requests(), addr: addr}
	c.dialer.Control = func(_, _ string, raw syscall.RawConn) error {
		return raw.Control(func(fd uintptr) { syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVBUF, 4<<10) })
	}
	for range l.clients {
		c.all.Go(func() {
			for c.client(t.Context()) && l.again {
			}
		})
	}
	return c
}

// complete reports whether all clients are or were connected.
func (c *unreadClients) complete() bool { return int(c.connected.Load()) >= c.load.clients }

// client connects and sends its requests. It reports whether that may be repeated.
func (c *unreadClients) client(ctx context.Context) bool {
	nc, err := c.dialer.DialContext(ctx, "tcp", c.addr)
	if err != nil || c.ended.Load() {
		return false
	}
	c.connected.Add(1)
	c.conns.Store(nc, nil)
	if !c.load.again {
		nc.Write(append(handshake(40_000), c.out...)) // returns when all requests are written or the connection is closed
		return true
	}
	defer nc.Close()
	defer c.conns.Delete(nc)
	nc.SetDeadline(time.Now().Add(readerWait))
	nc.Write(handshake(1000)) // the client does not resume this session, which ends soon
	if _, err := wire.ReadFrame(nc, nil, 2*wire.FrameMax); err != nil {
		return false
	}
	nc.Write(c.out)
	return true
}

// end closes all connections and waits for the clients' goroutines.
func (c *unreadClients) end() {
	c.ended.Store(true)
	hangUp := func(nc, _ any) bool {
		nc.(net.Conn).Close()
		return true
	}
	c.conns.Range(hangUp)
	c.all.Wait()
	c.conns.Range(hangUp) // closes the clients that connected meanwhile, too
}

func handshake(timeoutMS int32) []byte {
	return wire.AppendFrame(nil, &wire.ConnectRequest{TimeoutMS: timeoutMS, Password: make([]byte, wire.PasswordLen)})
}

// reader is a client that reads its replies.
type reader struct {
	t       *testing.T
	nc      net.Conn
	in      *bufio.Reader
	xid     int32
	longest time.Duration
}

func newReader(t *testing.T, addr string) *reader {
	nc, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { nc.Close() })
	o := &reader{t: t, nc: nc, in: bufio.NewReader(nc)}
	o.exchange(handshake(60_000))
	return o
}

// fill creates the znodes that are read.
func (o *reader) fill() {
	create := func(path string, size int) {
		o.call(wire.OpCreate, &wire.CreateRequest{Path: path, Data: make([]byte, size), ACL: wire.OpenACL()})
	}
	create("/small", smallBytes)
	create("/big", bigBytes)
	for path, n := range map[string]int{"/few": fewNames, "/many": manyNames} {
		create(path, 0)
		multi := &wire.MultiRequest{}
		for i := range n {
			multi.Ops = append(multi.Ops, wire.Op{Type: wire.OpCreate,
				Request: &wire.CreateRequest{Path: fmt.Sprintf("%s/child-%060d", path, i), ACL: wire.OpenACL()}})
		}
		o.call(wire.OpMulti, multi)
	}
}

// call sends a request and waits for its reply, which must be the next one.
func (o *reader) call(op wire.OpCode, r wire.Record) {
	o.t.Helper()
	o.xid++
	begin := time.Now()
	reply := o.exchange(request(o.xid, op, r))
	o.longest = max(o.longest, time.Since(begin))
	var h wire.ReplyHeader
	if err := wire.Decode(reply, &h); err != nil || h.Xid != o.xid || h.Err != wire.OK {
		o.t.Fatalf("request %d (%v) is answered with %+v, %v", o.xid, op, h, err)
	}
}

func (o *reader) exchange(out []byte) []byte {
	o.t.Helper()
	o.nc.SetDeadline(time.Now().Add(readerWait))
	if _, err := o.nc.Write(out); err != nil {
		o.t.Fatal(err)
	}
	reply, err := wire.ReadFrame(o.in, nil, 2*wire.FrameMax)
	if err != nil {
		o.t.Fatal(err)
	}
	return reply
}

// request returns a request as it is sent.
func request(xid int32, op wire.OpCode, r wire.Record) []byte {
	return wire.AppendFrame(nil, &wire.RequestHeader{Xid: xid, Op: op}, r)
}

func pipelined(n int, op wire.OpCode, r wire.Record) (out []byte) {
	for i := range n {
		out = append(out, request(int32(i+1), op, r)...)
	}
	return out
}

// memoryKB returns a value of a process's status, in KiB.
func memoryKB(t *testing.T, pid int, name string) int {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, name+":"); ok {
			n, err := strconv.Atoi(strings.Fields(rest)[0])
			if err != nil {
				t.Fatal(err)
			}
			return n
		}
	}
	t.Fatalf("no %s in the status of process %d", name, pid)
	return 0
}
