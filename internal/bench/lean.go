package bench

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"bellwether/wire"
	"bellwether/zk"
)

// Lean makes a [Load] send its reads or writes without package zk: one goroutine per connection
// writes all requests that may be in flight with one call, and reads all replies that have arrived
// with one call. That costs less processor time. The connections do not log in.
type Lean struct {
	Dial    func(ctx context.Context, server string) (net.Conn, error)
	Servers []string      // host:port; the connections are shared out evenly
	Chroot  string        // the path before Root; empty: none
	Timeout time.Duration // session timeout
}

// lean puts the load on the servers over connections of its own.
func (l Load) lean(ctx context.Context) ([]*Report, error) {
	if err := checkFiles(l.Connections); err != nil {
		return nil, err
	}
	conns := make([]*leanConn, l.Connections)
	defer func() {
		for _, c := range conns {
			c.close()
		}
	}()
	err := inFlight(l.Connections, dialWidth, func(i int) (err error) {
		conns[i], err = l.leanConn(ctx, i)
		return err
	})
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() {
		for _, c := range conns {
			c.conn.Close()
		}
	})
	defer stop()
	if l.Warmup > 0 {
		if _, err := l.driveLean(ctx, conns, l.Warmup); err != nil {
			return nil, err
		}
	}
	return l.driveLean(ctx, conns, l.Duration)
}

func (l Load) driveLean(ctx context.Context, conns []*leanConn, d time.Duration) ([]*Report, error) {
	books := make([]*book, min(len(conns), booksMax))
	for i := range books {
		books[i] = newBook(0)
	}
	errs := make([]error, len(conns))
	m := l.begin()
	end := m.began.Add(d)
	var wg sync.WaitGroup
	for i, c := range conns {
		wg.Go(func() { errs[i] = c.run(end, books[i%len(books)].whole) })
	}
	wg.Wait()
	if err := firstOf(append([]error{ctx.Err()}, errs...)...); err != nil {
		return nil, err
	}
	return []*Report{m.report(string(l.Kind), mergeBooks(books).whole)}, nil
}

// leanConn is a connection with a session.
type leanConn struct {
	load    Load
	conn    net.Conn
	replies *bufio.Reader
	xid     int32       // of the last request that was sent
	done    int32       // of the last request that was answered
	next    int         // the next key
	sent    []time.Time // when the requests in flight were sent, in order
	batch   []byte
	data    []byte
}

// greetTimeout is how long a server may take to answer the first frame.
const greetTimeout = 10 * time.Second

// leanConn opens the i-th connection and its session.
func (l Load) leanConn(ctx context.Context, i int) (*leanConn, error) {
	server := l.Lean.Servers[i%len(l.Lean.Servers)]
	conn, err := l.Lean.Dial(ctx, server)
	if err != nil {
		return nil, err
	}
	c := &leanConn{load: l, conn: conn, replies: bufio.NewReaderSize(conn, ioSize), next: i * keyStride, data: make([]byte, l.Size)}
	if err := c.greet(); err != nil {
		conn.Close()
		return nil, fmt.Errorf("server %s: opening a session: %w", server, err)
	}
	return c, nil
}

func (c *leanConn) greet() error {
	_ = c.conn.SetDeadline(time.Now().Add(greetTimeout)) // an error shows at the next call
	hello := wire.ConnectRequest{TimeoutMS: int32(c.load.Lean.Timeout.Milliseconds()), Password: make([]byte, wire.PasswordLen), HasReadOnly: true}
	if _, err := c.conn.Write(wire.AppendFrame(nil, &hello)); err != nil {
		return err
	}
	frame, err := wire.ReadFrame(c.replies, nil, FrameMax)
	if err != nil {
		return err
	}
	var welcome wire.ConnectResponse
	if err := wire.Decode(frame, &welcome); err != nil {
		return err
	}
	if welcome.TimeoutMS <= 0 {
		return errors.New("the server refuses the session")
	}
	return c.conn.SetDeadline(time.Time{})
}

func lostConnection(err error) error { return fmt.Errorf("%w: %w", zk.ErrConnectionLoss, err) }

// close ends the session. If that fails, the session expires.
func (c *leanConn) close() {
	if c != nil {
		_, _ = c.conn.Write(wire.AppendFrame(nil, &wire.RequestHeader{Xid: c.xid + 1, Op: wire.OpCloseSession}))
		c.conn.Close()
	}
}

// run keeps requests in flight until the end, and then reads the remaining replies.
func (c *leanConn) run(end time.Time, took *latencies) error {
	for {
		c.batch = c.batch[:0]
		for now := time.Now(); now.Before(end) && len(c.sent) < c.load.Outstanding; {
			c.sent = append(c.sent, now)
			c.request()
		}
		if len(c.sent) == 0 {
			return nil
		}
		if len(c.batch) > 0 {
			if _, err := c.conn.Write(c.batch); err != nil {
				return lostConnection(err)
			}
		}
		for first := true; len(c.sent) > 0 && (first || c.arrived()); first = false {
			if err := c.reply(took); err != nil {
				return err
			}
		}
	}
}

// request appends a request to the batch.
func (c *leanConn) request() {
	c.xid++
	path := c.load.Lean.Chroot + key(c.load.Root, c.next%c.load.Keys)
	c.next++
	if c.load.Kind == Write {
		c.batch = wire.AppendFrame(c.batch, &wire.RequestHeader{Xid: c.xid, Op: wire.OpSetData}, &wire.SetDataRequest{Path: path, Data: c.data, Version: -1})
		return
	}
	c.batch = wire.AppendFrame(c.batch, &wire.RequestHeader{Xid: c.xid, Op: wire.OpGetData}, &wire.PathWatchRequest{Path: path})
}

// Lengths in bytes at the beginning of a reply.
const (
	lengthSize = 4
	headerSize = 16
)

// arrived reports whether a whole reply has been read from the connection.
func (c *leanConn) arrived() bool {
	n := c.replies.Buffered()
	if n < lengthSize {
		return false
	}
	length, err := c.replies.Peek(lengthSize)
	return err == nil && n >= lengthSize+int(binary.BigEndian.Uint32(length))
}

// reply reads a reply, which must be that to the oldest request in flight.
func (c *leanConn) reply(took *latencies) error {
	start, err := c.replies.Peek(lengthSize + headerSize)
	if err != nil {
		return lostConnection(err)
	}
	var h wire.ReplyHeader
	if err := wire.Decode(start[lengthSize:], &h); err != nil {
		return err
	}
	length := int(binary.BigEndian.Uint32(start))
	switch {
	case length < headerSize || length > FrameMax:
		return fmt.Errorf("a reply of %d bytes", length)
	case h.Xid != c.done+1:
		return fmt.Errorf("reply %d instead of %d", h.Xid, c.done+1)
	case h.Err != 0:
		return h.Err
	}
	if _, err := c.replies.Discard(lengthSize + length); err != nil {
		return lostConnection(err)
	}
	c.done++
	took.record(time.Since(c.sent[0]))
	c.sent = c.sent[:copy(c.sent, c.sent[1:])]
	return nil
}
