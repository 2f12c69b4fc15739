package zk

import (
	"bufio"
	"cmp"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"slices"
	"sync/atomic"
	"time"

	"bellwether/wire"
)

const (
	// readBufferSize is the size of the read buffer of one connection, in bytes.
	readBufferSize = 4 << 10
	// frameHardMax is the length, in bytes, from which a frame counts as garbage and is
	// not skipped.
	frameHardMax = 1 << 30
	// smallFrameMax is the longest frame, in bytes, that answers no call: an event or an
	// acknowledgement.
	smallFrameMax = 1 << 20
	// drainTime is how long the client still reads answers after a write to the
	// connection has failed.
	drainTime = 200 * time.Millisecond
)

// link is one connection with an attached session. The reader goroutine owns r and
// scratch; Client.mu guards the lists and the fields that follow them.
type link struct {
	conn     net.Conn
	r        *bufio.Reader
	server   server  // entry of the server in the server list
	address  address // the address that was dialled
	session  SessionID
	timeout  time.Duration
	readOnly bool
	scratch  []byte
	first    []byte // what the client's goroutine writes first

	began time.Time
	heard atomic.Int64  // time from began to the last bytes of the server, a time.Duration
	down  chan struct{} // closed by the reader, after err is set
	err   error

	// The following fields are guarded by Client.mu.
	sent      callList    // calls without an answer, in the order in which the server answers them
	auths     callList    // auth requests without an answer, in order
	sets      callList    // setWatches requests without an answer, in order
	pings     []time.Time // when each unanswered ping was sent
	pinged    time.Time   // when the last ping was sent
	confirmed time.Time   // as Lease.Confirmed
	delay     time.Duration
	asked     bool          // the server was asked for its lease delay
	told      chan struct{} // closed when the server has answered that
	leaving   bool          // nothing more is sent; the link ends when everything is answered
	adding    int           // number of addWatch requests in sent
	support   *support
}

// protocolError says that the server has sent what no server may send.
type protocolError struct{ what string }

func (e *protocolError) Error() string { return "protocol error of the server: " + e.what }

func protocolErrorf(format string, args ...any) error {
	return &protocolError{fmt.Sprintf(format, args...)}
}

func newLink(conn net.Conn, s server, a address) *link {
	l := &link{conn: conn, server: s, address: a, began: time.Now(), down: make(chan struct{}), told: make(chan struct{})}
	l.r = bufio.NewReaderSize(l, readBufferSize)
	return l
}

// Read reads from the connection and notes when bytes came, so that a long answer on a
// slow line does not count as silence.
func (l *link) Read(b []byte) (n int, err error) {
	if n, err = l.conn.Read(b); n > 0 {
		l.heard.Store(int64(time.Since(l.began)))
	}
	return n, err
}

// silence returns for how long nothing has come from the server.
func (l *link) silence() time.Duration {
	return time.Since(l.began) - time.Duration(l.heard.Load())
}

// receive gives every frame of the server to the client until the connection ends, and
// then closes the connection so that no write waits on it.
func (l *link) receive(c *Client) {
	for l.err == nil {
		l.err = l.readOne(c)
	}
	l.conn.Close()
	close(l.down)
}

func (l *link) readOne(c *Client) error {
	h, n, err := l.peekHeader()
	if err != nil {
		return err
	}
	over := c.checkSession(l.session, h.Err)
	switch h.Xid {
	case wire.XidEvent:
		err = l.readEvent(c, h, n)
	case wire.XidPing:
		err = l.skip(n, func() error { return c.pong(l, h) })
	case wire.XidAuth:
		err = l.skip(n, func() error { return c.acknowledged(l, &l.auths, h) })
	case wire.XidSetWatches:
		err = l.skip(n, func() error { return c.acknowledged(l, &l.sets, h) })
	default:
		err = l.readAnswer(c, h, n)
	}
	return cmp.Or(err, over)
}

// checkSession returns an error if a server has answered in a session with the code that the session is over. Nothing more is sent in it
// then, the link ends, and connectAny ends the session.
//
// The session can live on: a server may give this answer while the session's end is not committed, and that end is lost if the leader
// fails. The client must not use the session then, because callers believe that the ephemeral znodes of the session are deleted.
// Unused, the session expires, and they are.
func (c *Client) checkSession(id SessionID, code Code) error {
	if code != wire.ErrSessionExpired {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if id == c.sess.ID {
		c.sess.over, c.lease = true, Lease{}
	}
	return code
}

// peekHeader returns the next frame's header and length without consuming anything.
func (l *link) peekHeader() (h wire.ReplyHeader, n int, err error) {
	b, err := l.r.Peek(4)
	if err != nil {
		return h, 0, err
	}
	n = int(int32(binary.BigEndian.Uint32(b)))
	if n < wire.ReplyHeaderLen || n > frameHardMax {
		return h, 0, protocolErrorf("frame of %d bytes", n)
	}
	if b, err = l.r.Peek(4 + wire.ReplyHeaderLen); err != nil {
		return h, 0, err
	}
	d := wire.Decoder(b[4:])
	h.Code(&d)
	return h, n, d.Err()
}

// skip drops the frame and then calls f.
func (l *link) skip(n int, f func() error) error {
	if n > smallFrameMax {
		return protocolErrorf("acknowledgement of %d bytes", n)
	}
	if _, err := l.r.Discard(4 + n); err != nil {
		return err
	}
	return f()
}

// fill consumes the frame into buf, enlarged as needed, and returns it.
func (l *link) fill(buf []byte, n int) ([]byte, error) {
	if _, err := l.r.Discard(4); err != nil {
		return buf, err
	}
	if cap(buf) < n {
		buf = make([]byte, n)
	}
	buf = buf[:n]
	_, err := io.ReadFull(l.r, buf)
	return buf, err
}

func (l *link) readEvent(c *Client, h wire.ReplyHeader, n int) (err error) {
	if n > smallFrameMax {
		return protocolErrorf("event of %d bytes", n)
	}
	if l.scratch, err = l.fill(l.scratch, n); err != nil {
		return err
	}
	var e wire.WatcherEvent
	if err := wire.Decode(l.scratch[wire.ReplyHeaderLen:], &e); err != nil {
		return protocolErrorf("event: %v", err)
	}
	c.notify(h.Zxid, e)
	return nil
}

// readAnswer reads the answer to the oldest unanswered request. An answer that is too
// large is skipped, and the connection continues.
func (l *link) readAnswer(c *Client, h wire.ReplyHeader, n int) (err error) {
	k := c.oldest(l)
	if k == nil {
		return protocolErrorf("answer to xid %d, but no request is outstanding", h.Xid)
	}
	if k.xid != h.Xid {
		return protocolErrorf("answer to xid %d, want %d", h.Xid, k.xid)
	}
	var tooLarge error
	if n > c.opt.ReplyMax {
		tooLarge = k.fate(&TooLargeError{Size: n, Max: c.opt.ReplyMax, Answer: true})
		_, err = l.r.Discard(4 + n)
	} else {
		k.reply, err = l.fill(k.reply, n)
	}
	if err != nil {
		return err
	}
	c.answer(l, k, h, tooLarge)
	return nil
}

// oldest returns the next call to be answered. Only the reader takes it away.
func (c *Client) oldest(l *link) *call {
	c.mu.Lock()
	defer c.mu.Unlock()
	return l.sent.head
}

// answer gives a call its answer, and registers the watch that came with it.
func (c *Client) answer(l *link, k *call, h wire.ReplyHeader, err error) {
	c.mu.Lock()
	k.header = h
	if h.Zxid > 0 {
		c.zxidAnswered = max(c.zxidAnswered, h.Zxid)
		c.zxidSeen = max(c.zxidSeen, h.Zxid)
	}
	l.support.learn(k.op, h)
	l.leaving = l.leaving || l.support.denies(k.op) // the server will close the connection
	if k.watch != nil && err == nil {
		c.watchAnswered(l, k, h.Err)
	}
	if k.assumes != nil && err == nil && h.Err == wire.OK {
		c.watches.assume(k.assumes)
	}
	added := k.stream != nil
	if added {
		l.adding--
	}
	switch {
	case !added || err != nil || h.Err != wire.OK:
	case k.left: // the caller has no stream to close, so the client removes the watch
		c.queue.push(c.removal(k.path, wire.WatcherAny))
	default:
		c.watches.addStream(k.stream)
	}
	if h.Err == wire.ErrSessionClosedRequireAuth {
		c.fatal = h.Err
	}
	c.finish(k, err)
	awaited := added || c.ended || l.leaving && l.sent.head == nil
	c.mu.Unlock()
	if awaited {
		c.wakeWriter()
	}
}

// watchAnswered registers the watch of an answered read. If nobody waits for the
// watch any more, it queues a request that removes the watch from the server. That request
// is dropped if another call or stream of this client relies on the watch when it would be
// sent; see isOverUnsent. Client.mu is held.
func (c *Client) watchAnswered(l *link, k *call, code Code) {
	if !k.left {
		c.watches.registerAnswered(k, code)
		return
	}
	set := code == wire.OK || code == wire.ErrNoNode && k.op == wire.OpExists
	if !set || l.support.denies(wire.OpRemoveWatches) {
		return
	}
	c.queue.push(c.removal(k.path, k.watch.removedAs()))
	c.wakeWriter()
}

// awaits reports whether an unanswered request is about the path. Only requests for which
// the function is returns true count.
func (l *link) awaits(path string, is func(*call) bool) bool {
	for k := l.sent.head; k != nil; k = k.next {
		if k.path == path && is(k) {
			return true
		}
	}
	return false
}

// acknowledged finishes the oldest request in the list: an auth or a setWatches.
func (c *Client) acknowledged(l *link, list *callList, h wire.ReplyHeader) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	k := list.head
	if k == nil {
		return protocolErrorf("acknowledgement of xid %d, which was not sent", h.Xid)
	}
	k.header = h
	l.support.learn(k.op, h)
	if k.cred != nil && h.Err == wire.OK && !slices.ContainsFunc(c.creds, k.cred.equal) {
		c.creds = append(c.creds, *k.cred)
	}
	c.finish(k, nil)
	if list == &l.sets && h.Err != wire.OK && c.fatal == nil {
		return h.Err // without its watches the connection is useless
	}
	return c.fatal
}

// pong counts an answered ping as proof that the session lives.
func (c *Client) pong(l *link, h wire.ReplyHeader) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(l.pings) == 0 {
		return nil
	}
	sent := l.pings[0]
	l.pings = l.pings[:copy(l.pings, l.pings[1:])]
	if h.Err == wire.ErrSessionClosedRequireAuth {
		c.fatal = h.Err
		return h.Err
	}
	if h.Err == wire.OK {
		c.failures = 0
		c.confirm(l, sent)
	}
	return nil
}
