package bench

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"
	"time"

	"bellwether/internal/fifo"
	"bellwether/wire"
	"bellwether/zk"
)

// line is a connection with a session, which sends requests without package zk. Only its loop
// uses it.
type line struct {
	stream  io.ReadWriter // conn, or the same connection with calls that do not block
	conn    net.Conn      // nil: stream is not blocking
	server  string
	timeout time.Duration // of the session

	id     int   // number of the line
	xid    int32 // of the last request
	next   int   // counts the operations, from keyStride times the number of the line on
	flight fifo.Queue[call]
	out    []byte // requests that are not sent yet
	in     []byte // the beginning of a reply that has not arrived completely
	queued bool   // the loop will send out
	full   bool   // the system takes no more bytes for now

	wrote, heard time.Time // when something was last sent and received
}

// call is a request in flight.
type call struct {
	xid       int32
	part      int8      // its number among the parts of the book; -1: it has none
	first     bool      // another request of the same operation follows
	due, sent time.Time // from when on the latencies of the operation and of this request count
}

// start appends the first request of an operation that was due at a time.
func (l *line) start(r *requests, due time.Time) {
	l.xid++
	c := call{xid: l.xid, part: -1, due: due, sent: due}
	l.out, c.part, c.first = r.begin(l.out, l.xid, l.id, l.next)
	l.next++
	l.flight.Push(c)
}

// ping appends a ping.
func (l *line) ping() {
	l.out = wire.AppendFrame(l.out, &wire.RequestHeader{Xid: wire.XidPing, Op: wire.OpPing})
}

// flush sends what the system takes. Afterwards full says whether something is left.
func (l *line) flush(now time.Time) error {
	if len(l.out) == 0 {
		return nil
	}
	n, err := l.stream.Write(l.out)
	l.out = l.out[:copy(l.out, l.out[max(n, 0):])]
	l.full = len(l.out) > 0
	l.wrote = now
	if err != nil && !isBlocked(err) {
		return l.lost(err)
	}
	return nil
}

// isBlocked reports whether an error only says that nothing can be received or sent now.
func isBlocked(err error) bool {
	return errors.Is(err, syscall.EAGAIN) || errors.Is(err, syscall.EINTR) || errors.Is(err, os.ErrDeadlineExceeded)
}

func (l *line) lost(err error) error {
	return fmt.Errorf("server %s: %w: %w", l.server, zk.ErrConnectionLoss, err)
}

// Lengths in bytes at the beginning of a reply.
const (
	lengthSize = 4
	headerSize = 16
)

// receive reads once, and calls f for each complete reply. buf is memory for the read.
func (l *line) receive(buf []byte, f func(c call, body []byte, now time.Time) error) error {
	n, err := l.stream.Read(buf)
	if n <= 0 {
		switch {
		case err == nil:
			return l.lost(io.EOF)
		case isBlocked(err):
			return nil
		}
		return l.lost(err)
	}
	now := time.Now()
	l.heard = now
	rest := buf[:n]
	if len(l.in) > 0 {
		l.in = append(l.in, rest...)
		rest = l.in
	}
	for {
		frame, err := cutFrame(&rest)
		if err != nil {
			return fmt.Errorf("server %s: %w", l.server, err)
		}
		if frame == nil {
			l.in = append(l.in[:0], rest...)
			return nil
		}
		if err := l.reply(frame, now, f); err != nil {
			return fmt.Errorf("server %s: %w", l.server, err)
		}
	}
}

// replyMax is the largest reply in bytes: a list of a few million children.
const replyMax = 64 << 20

// cutFrame takes the payload of a complete frame from the beginning of b; nil: there is none.
func cutFrame(b *[]byte) ([]byte, error) {
	if len(*b) < lengthSize {
		return nil, nil
	}
	n := int(int32(binary.BigEndian.Uint32(*b)))
	if n < headerSize || n > replyMax {
		return nil, fmt.Errorf("a reply of %d bytes", n)
	}
	if len(*b) < lengthSize+n {
		return nil, nil
	}
	frame := (*b)[lengthSize : lengthSize+n]
	*b = (*b)[lengthSize+n:]
	return frame, nil
}

// reply handles a reply. It must be that to the oldest request in flight, or to a ping.
func (l *line) reply(frame []byte, now time.Time, f func(call, []byte, time.Time) error) error {
	d := wire.Decoder(frame)
	var h wire.ReplyHeader
	h.Code(&d)
	switch oldest := l.flight.First(); {
	case h.Xid == wire.XidPing:
		return nil
	case oldest == nil:
		return fmt.Errorf("reply %d without a request", h.Xid)
	case h.Xid != oldest.xid:
		return fmt.Errorf("reply %d instead of %d", h.Xid, oldest.xid)
	case h.Err != 0:
		return h.Err
	}
	return f(l.flight.Pop(), frame[headerSize:], now)
}

// close ends the session. If that fails, the session expires.
func (l *line) close() {
	if l.conn != nil {
		_ = l.conn.SetWriteDeadline(time.Now().Add(time.Second)) // an error shows at the next call
	}
	_, _ = l.stream.Write(wire.AppendFrame(nil, &wire.RequestHeader{Xid: l.xid + 1, Op: wire.OpCloseSession}))
	if c, ok := l.stream.(io.Closer); ok {
		c.Close()
	}
}
