package server

import (
	"errors"
	"net"
	"net/netip"
	"os"
	"sync/atomic"
	"syscall"
	"time"

	"bellwether/internal/driver"
	"bellwether/internal/fifo"
	"bellwether/internal/replica"
	"bellwether/internal/sasl"
	"bellwether/internal/tree"
	"bellwether/wire"
)

// conn is one client connection. Its reader goroutine reads requests and carries out
// reads. The loop queues events and the replies to writes. Both may flush the output. The
// package comment lists the steps by which a connection ends.
//
// Invariants: outstanding, held and large are not negative; attached and done are each
// closed once; after done is closed, nothing more is written to the client. A field
// marked "reader" or "loop" is used by that goroutine only.
type conn struct {
	id   replica.ConnID
	srv  *Server
	net  net.Conn
	raw  syscall.RawConn // raw form of net; nil: net is not a socket of the operating system
	addr netip.AddrPort

	operator    bool         // the connection belongs to an operator of the admin port; set before the reader runs
	mutual      bool         // the client has shown a certificate; set before Connect
	hasReadOnly bool         // the client sent the flag byte; set before Connect
	seen        wire.Zxid    // the client's last zxid if it is the start of an epoch; set before Connect
	readOnly    bool         // the session belongs to read-only service; set before attached is closed
	session     atomic.Int64 // set by the loop before attached is closed
	timeout     atomic.Int32 // ms
	ids         atomic.Pointer[[]wire.ID]
	guesses     atomic.Int32 // digest identities offered since the last reply NoAuth (attempts.go)
	// heard is the Mono time in ms at which a request was last read, or driver.Sealed.
	heard atomic.Int64
	// outstanding counts the requests that the loop has not answered yet.
	outstanding atomic.Int32
	held        atomic.Int64 // bytes of the bodies of outstanding requests
	large       atomic.Int64 // bytes of the large requests among them
	heardState  driver.Heard // loop: what it last saw in heard
	heavy       int64        // loop: bytes of heavy requests at the replica (heavyqueue.go)
	// heldBack (loop) holds the requests that wait for their turn, oldest first
	// (heavyqueue.go).
	heldBack fifo.Queue[*replica.Request]
	known    bool          // reader: the Connect was passed to the loop
	closing  bool          // reader: a closeSession was passed to the loop
	paused   int64         // reader: the clock when it last ended a pause that a limit demanded
	claimed  int           // reader: bytes that the budget counts for the reply being built
	login    sasl.Acceptor // reader: the exchange of a login by SASL; nil: none has begun
	// idleBelow asks the loop to signal gate when outstanding is at most this number;
	// negative: the reader does not wait.
	idleBelow atomic.Int32
	gate      chan struct{} // capacity 1

	asked    int64         // the clock when a new session was requested; 0: none was
	attached chan struct{} // closed by the loop when the handshake is answered
	done     chan struct{} // closed when the connection is closed for its client
	overflow atomic.Bool   // the client set too many watches
	unread   atomic.Bool   // the client does not read, and the memory for replies is used up

	in      input
	out     output
	pending []*replica.Request // reader: requests not passed to the loop yet
	scratch *scratch           // reader: borrowed for reads while requests are taken; nil: none
	inTurn  bool               // reader: it holds one of the places of Server.turns
}

var _ tree.Client = (*conn)(nil)

func newConn(s *Server, id replica.ConnID, nc net.Conn) *conn {
	c := &conn{id: id, srv: s, net: nc, raw: rawConn(nc), addr: addrPort(nc.RemoteAddr()),
		gate: make(chan struct{}, 1), attached: make(chan struct{}), done: make(chan struct{})}
	c.in.src, c.in.max, c.in.budget, c.in.claim, c.in.clock = nc, s.config().Limits.FrameBytes, &s.budget, c.claim, s.clock
	c.out.writeEnded.L, c.out.budget = &c.out.mu, &s.budget
	c.idleBelow.Store(-1)
	c.heardState.LastHeard = &c.heard
	ids := []wire.ID{{Scheme: "ip", ID: c.addr.Addr().String()}}
	c.ids.Store(&ids)
	c.out.traffic.made = s.clock()
	c.out.traffic.reset()
	return c
}

// addrPort returns the address of a socket. IPv4-mapped IPv6 addresses are unmapped.
func addrPort(a net.Addr) netip.AddrPort {
	if t, ok := a.(*net.TCPAddr); ok {
		ap := t.AddrPort()
		return netip.AddrPortFrom(ap.Addr().Unmap(), ap.Port())
	}
	return netip.AddrPort{}
}

// Session returns the session of the connection; 0 before it is attached.
func (c *conn) Session() wire.SessionID { return wire.SessionID(c.session.Load()) }

// Identities returns the identities that the client has proved so far.
func (c *conn) Identities() []wire.ID { return *c.ids.Load() }

// eventLen is the length of an event without its path.
const eventLen = wire.ReplyHeaderLen + 12

// Notify queues a watch event. It is called under the tree's locks.
func (c *conn) Notify(e tree.Event) {
	ev := &wire.WatcherEvent{Type: e.Type, State: wire.StateSyncConnected, Path: e.Path}
	c.srv.stats.watchBytes.Add(int64(eventLen + len(e.Path)))
	c.push(item{header: wire.ReplyHeader{Xid: wire.XidEvent, Zxid: e.Zxid}, record: ev})
}

// Overflow closes the connection because its watches take too much memory. The reader
// logs that.
func (c *conn) Overflow() {
	c.overflow.Store(true)
	c.out.mu.Lock()
	c.out.discard()
	flush := !c.out.listed
	c.out.listed = true
	c.out.mu.Unlock()
	if flush {
		c.srv.pendingFlush.add(c)
	}
}

// Reserve keeps the place of the reply that is being built.
func (c *conn) Reserve(z wire.Zxid) { c.out.reserve(c.shown(z)) }

// shown returns the zxid of a reply. One server may show the zxid with which an epoch begins,
// and another server with the same tree the zxid of the last transaction before it. A client
// that has seen the later zxid is never shown the earlier one.
func (c *conn) shown(z wire.Zxid) wire.Zxid { return max(z, c.seen) }

// push queues an item. The loop flushes the connection at the end of its batch.
func (c *conn) push(it item) {
	if c.out.push(it) {
		c.srv.pendingFlush.add(c)
	}
}

// run is the body of the reader goroutine.
func (c *conn) run() {
	defer c.srv.conns.remove(c)
	defer c.in.release()
	c.limitHandshake(time.Now().Add(c.srv.config().Limits.Sessionless))
	if !c.srv.stopping.Load() && c.handshake() {
		c.limitHandshake(time.Time{})
		err := c.serve()
		if c.srv.stopping.Load() {
			c.waitAnswered(0)
		}
		c.logEnd(err)
	}
	c.finish()
	<-c.done
	if c.known {
		c.srv.inbox.push(replica.Disconnected{Conn: c.id}, nil)
	}
	c.drainInput()
}

// limitHandshake sets the deadline of the handshake. With TLS it limits writes too, because a
// read may write.
func (c *conn) limitHandshake(end time.Time) {
	if _, ok := c.net.(*secureConn); ok {
		c.net.SetDeadline(end)
		return
	}
	c.net.SetReadDeadline(end)
}

// errEnded: nothing more is read from the connection.
var errEnded = errors.New("connection is closed by the server")

// serve reads requests until the connection ends.
func (c *conn) serve() error {
	for {
		if err := c.requests(); err != nil {
			return err
		}
		c.flush()
		if c.srv.stopping.Load() || c.ended() {
			return errEnded
		}
		if err := c.in.read(); err != nil {
			if !c.srv.stopping.Load() && !c.ended() {
				c.srv.stats.dropped.Add(1)
			}
			return err
		}
	}
}

// batch holds what a reader records about requests that arrived together.
type batch struct {
	start   int64 // the clock when they were read
	packets int64
	bytes   int64
	sealed  bool  // touch was refused, so the loop must record that the session was heard from
	direct  int64 // number answered by the reader itself
	xid     int32 // xid of the last of these requests
	op      wire.OpCode
	traced  bool   // every request is traced
	path    string // if traced: the path of the last request
}

// requests takes all complete requests from the input, and carries out each or passes it to
// the loop. It returns an error when the server stops or the connection must be closed.
func (c *conn) requests() error {
	now := batch{start: c.srv.clock(), traced: c.srv.tracer.all()}
	defer c.note(&now)
	defer c.leaveTurn()
	defer c.giveScratch()
	for {
		if c.srv.stopping.Load() {
			return errEnded
		}
		frame, err := c.in.frame()
		if frame == nil || err != nil {
			return err
		}
		now.bytes += int64(frameHead + len(frame))
		if now.packets++; now.packets == 1 {
			now.sealed = !c.touch(now.start)
		}
		if err := c.request(frame, &now); err != nil {
			return err
		}
	}
}

// note updates the figures, and passes pending requests to the loop.
func (c *conn) note(b *batch) {
	defer c.submit()
	if b.packets == 0 {
		return
	}
	t := c.srv.stats
	t.received(b.packets, b.bytes)
	ns := int64(0)
	if b.direct > 0 {
		ns = c.srv.clock() - b.start
		t.reads(b.direct, ns)
		if !b.traced && ns >= c.srv.tracer.above.Load() {
			c.readTraced(b, b.direct, max(b.start, c.paused), b.start+ns)
		}
	}
	c.out.account(b, ns)
}

// touch records that the session was heard from. It returns false if the loop is about to
// expire the session: then the requests must go to the loop, which decides whether the
// session still lives.
func (c *conn) touch(now int64) bool {
	ms := now / int64(time.Millisecond)
	for {
		old := c.heard.Load()
		at, ok := driver.Later(old, ms)
		if !ok {
			return false
		}
		if at == old || c.heard.CompareAndSwap(old, at) {
			return true
		}
	}
}

// submit passes the pending requests to the loop.
func (c *conn) submit() {
	if len(c.pending) > 0 {
		if c.srv.tracer.all() {
			c.queuedNow()
		}
		c.srv.inbox.pushRequests(c.pending)
		clear(c.pending)
		c.pending = c.pending[:0]
		if cap(c.pending) > pendingKept {
			c.pending = nil
		}
	}
}

// pendingKept is for how many pending requests an idle connection keeps memory.
const pendingKept = 64

// waitAnswered waits until the loop has at most n requests of the connection, or the
// connection has ended.
func (c *conn) waitAnswered(n int32) {
	c.idleBelow.Store(n)
	defer c.idleBelow.Store(-1)
	for c.outstanding.Load() > n {
		select {
		case <-c.gate:
		case <-c.done:
			return
		case <-c.srv.dead:
			return
		}
	}
}

// answered must be called by the loop after each reply that it has queued.
func (c *conn) answered() {
	left := c.outstanding.Add(-1)
	if below := c.idleBelow.Load(); below >= 0 && left <= below {
		select {
		case c.gate <- struct{}{}:
		default:
		}
	}
}

// backPressure waits while the client has too many replies to read.
func (c *conn) backPressure() {
	o := &c.out
	high := outputHigh
	if o.budget.busy() {
		high = replyFree
	}
	o.mu.Lock()
	if o.writing && o.owed() > high {
		c.leaveTurn()
	}
	for o.writing && !o.closed && o.owed() > high {
		o.writeEnded.Wait()
	}
	flush := !o.closed && o.owed() > high
	o.mu.Unlock()
	if flush {
		c.leaveTurn()
		c.flush()
	}
}

// timedOut reports whether an error says that a deadline has passed.
func timedOut(err error) bool { return errors.Is(err, os.ErrDeadlineExceeded) }
