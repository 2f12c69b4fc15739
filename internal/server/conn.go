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
	"bellwether/internal/replica"
	"bellwether/internal/tree"
	"bellwether/wire"
)

// conn is one client connection. Its reader goroutine takes requests and
// carries out the reads; the loop queues events and the replies of writes.
// Either may flush.
type conn struct {
	id   replica.ConnID
	srv  *Server
	net  net.Conn
	raw  syscall.RawConn // of net; nil: it is no socket of the system
	addr netip.AddrPort

	hasReadOnly bool         // the client sent the flag byte; set before Connect
	seen        wire.Zxid    // the beginning of an epoch, if the client has seen that last; set before Connect
	readOnly    bool         // its session is one of a server without a quorum; set before attached is closed
	session     atomic.Int64 // set by the loop before attached is closed
	timeout     atomic.Int32 // ms
	ids         atomic.Pointer[[]wire.ID]
	// heard is the Mono ms at which a request was read last, or driver.Sealed.
	heard atomic.Int64
	// outstanding counts requests handed to the loop and not answered yet.
	outstanding atomic.Int32
	held        atomic.Int64 // bytes of their bodies
	large       atomic.Int64 // of the large ones among them
	hearing     driver.Heard // the loop's: of heard
	heavy       int64        // the loop's: bytes of heavy requests that the replica has (pace.go)
	// heldBack are the loop's: requests that wait for their turn, the oldest first (pace.go).
	heldBack []*replica.Request
	known    bool // the reader's: the loop knows the connection
	closing  bool // the reader's: closeSession was handed to the loop
	claimed  int  // the reader's: bytes that the budget counts for the reply being built
	// idleBelow asks the loop to ring gate once outstanding is not above it;
	// negative: nobody waits.
	idleBelow atomic.Int32
	gate      chan struct{} // of one

	asked    int64         // the clock when a new session was asked for, 0: none was
	attached chan struct{} // closed by the loop: the handshake is answered
	done     chan struct{} // closed when the socket is
	overflow atomic.Bool   // it asked for too many watches
	unread   atomic.Bool   // it does not read, and the memory for replies is used up

	in      input
	out     output
	pending []*replica.Request // the reader's: not handed to the loop yet
	scratch scratch            // of reads on the reader's goroutine
	inTurn  bool               // the reader's: it has a place among the turns
}

var _ tree.Client = (*conn)(nil)

func newConn(s *Server, id replica.ConnID, nc net.Conn) *conn {
	c := &conn{id: id, srv: s, net: nc, raw: rawConn(nc), addr: addrPort(nc.RemoteAddr()),
		gate: make(chan struct{}, 1), attached: make(chan struct{}), done: make(chan struct{})}
	c.in.src, c.in.max, c.in.budget, c.in.claim, c.in.clock = nc, s.config().Limits.FrameBytes, &s.budget, c.claim, s.clock
	c.out.drained.L, c.out.budget = &c.out.mu, &s.budget
	c.idleBelow.Store(-1)
	c.hearing.Cell = &c.heard
	ids := []wire.ID{{Scheme: "ip", ID: c.addr.Addr().String()}}
	c.ids.Store(&ids)
	c.out.traffic.made = s.clock()
	c.out.traffic.reset()
	return c
}

// addrPort is a socket's address without IPv4 in the clothes of IPv6.
func addrPort(a net.Addr) netip.AddrPort {
	if t, ok := a.(*net.TCPAddr); ok {
		ap := t.AddrPort()
		return netip.AddrPortFrom(ap.Addr().Unmap(), ap.Port())
	}
	return netip.AddrPort{}
}

// Session is the session the connection is attached to, 0 before.
func (c *conn) Session() wire.SessionID { return wire.SessionID(c.session.Load()) }

// Identities are those proved so far.
func (c *conn) Identities() []wire.ID { return *c.ids.Load() }

// eventLen is the length of an event without its path.
const eventLen = wire.ReplyHeaderLen + 12

// Notify queues a watch event. It is called under the tree's locks.
func (c *conn) Notify(e tree.Event) {
	ev := &wire.WatcherEvent{Type: e.Type, State: wire.StateSyncConnected, Path: e.Path}
	c.srv.stats.watchBytes.Add(int64(eventLen + len(e.Path)))
	c.push(item{header: wire.ReplyHeader{Xid: wire.XidEvent, Zxid: e.Zxid}, record: ev})
}

// Overflow ends the connection: it watches too much. Its reader tells.
func (c *conn) Overflow() {
	c.overflow.Store(true)
	c.out.mu.Lock()
	c.out.discard()
	flush := !c.out.dirty
	c.out.dirty = true
	c.out.mu.Unlock()
	if flush {
		c.srv.dirty.add(c)
	}
}

// Reserve keeps the place of the reply being built.
func (c *conn) Reserve(z wire.Zxid) { c.out.reserve(c.shown(z)) }

// shown is the zxid of a reply. Who has seen the beginning of an epoch, which
// some servers are at and others, whose trees are the same, are not, is shown
// nothing earlier.
func (c *conn) shown(z wire.Zxid) wire.Zxid { return max(z, c.seen) }

// push queues an item; the loop flushes the connection at the end of its batch.
func (c *conn) push(it item) {
	if c.out.push(it) {
		c.srv.dirty.add(c)
	}
}

// run is the reader goroutine.
func (c *conn) run() {
	defer c.srv.crowd.leave(c)
	defer c.in.release()
	c.net.SetReadDeadline(time.Now().Add(c.srv.config().Limits.Sessionless))
	if !c.srv.stopping.Load() && c.handshake() {
		c.net.SetReadDeadline(time.Time{})
		err := c.serve()
		if c.srv.stopping.Load() {
			c.waitAnswered(0)
		}
		c.farewell(err)
	}
	c.finish()
	<-c.done
	if c.known {
		c.srv.inbox.push(replica.Disconnected{Conn: c.id}, nil)
	}
	c.drain()
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

// batch is what a reader notes about the requests that came in together.
type batch struct {
	start   int64 // the clock when they were read
	packets int64
	bytes   int64
	sealed  bool  // the session was not noted as heard from: the loop has to
	direct  int64 // answered by the reader itself
	xid     int32 // of the last of these
	op      wire.OpCode
}

// requests takes all requests that have come in whole, until the server stops.
func (c *conn) requests() error {
	now := batch{start: c.srv.clock()}
	defer c.note(&now)
	defer c.leaveTurn()
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

// note counts, and hands what is pending to the loop.
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
	}
	c.out.account(b.packets, b.direct, b.xid, b.op, ns, b.start+ns)
}

// touch notes that the session was heard from. False: the loop is about to let
// it expire, and what was heard has to be noted and answered by the loop, even
// if that lets it live.
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

// submit hands what is pending to the loop.
func (c *conn) submit() {
	if len(c.pending) > 0 {
		c.srv.inbox.pushRequests(c.pending)
		clear(c.pending)
		c.pending = c.pending[:0]
		if cap(c.pending) > pendingKept {
			c.pending = nil
		}
	}
}

// pendingKept is how much room for pending requests an idle connection keeps.
const pendingKept = 64

// waitAnswered waits until no more than n requests are with the loop, or the
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

// answered is called by the loop after each reply it has queued.
func (c *conn) answered() {
	left := c.outstanding.Add(-1)
	if below := c.idleBelow.Load(); below >= 0 && left <= below {
		select {
		case c.gate <- struct{}{}:
		default:
		}
	}
}

// backPressure waits while the client owes us the reading of its replies.
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
		o.drained.Wait()
	}
	flush := !o.closed && o.owed() > high
	o.mu.Unlock()
	if flush {
		c.leaveTurn()
		c.flush()
	}
}

// timedOut reports whether an error is a deadline's.
func timedOut(err error) bool { return errors.Is(err, os.ErrDeadlineExceeded) }
