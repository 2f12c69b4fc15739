package peer

import (
	"bufio"
	"errors"
	"io"
	"log/slog"
	"net"
	"sync"
	"syscall"
	"time"

	"bellwether/internal/peerwire"
	"bellwether/wire"
)

// conn is the election connection to a server. Two goroutines serve it.
type conn struct {
	net.Conn
	m      *Mesh
	to     *remote
	toSend chan struct{} // has capacity one: there is something to send
	since  time.Time
	// doubtful says that this connection was dialled because the other side had ended the
	// previous one. So the other server may have ended, and only its operating system may
	// have accepted this connection.
	doubtful bool

	once    sync.Once
	closing chan struct{} // closed when the connection is to end
	why     error         // the first error; set before gone is closed
}

// wakeWriter tells the writer that there is something to send.
func (c *conn) wakeWriter() {
	select {
	case c.toSend <- struct{}{}:
	default:
	}
}

// fail ends the connection; the first reason counts. It does not block, as closing a TLS
// connection may. The reader, which stops at once, closes it.
func (c *conn) fail(why error) {
	c.once.Do(func() {
		c.why = why
		close(c.closing)
		c.SetDeadline(past)
	})
}

// Close ends the connection from this side.
func (c *conn) Close() error {
	c.fail(errClosed)
	return nil
}

// write sends what is in the slot. If the slot is empty at first it resends the last
// notification, which may have been lost with an older connection.
func (c *conn) write() {
	for first := true; ; first = false {
		if frame := c.next(first); frame != nil {
			c.SetWriteDeadline(time.Now().Add(electionDead))
			if _, err := c.Conn.Write(frame); err != nil {
				c.fail(err)
				return
			}
			c.m.figures.Sent.Add(1)
			c.m.figures.BytesSent.Add(int64(len(frame)))
		}
		select {
		case <-c.toSend:
		case <-c.closing:
			return
		}
	}
}

// next takes the frame out of the slot; nil if there is none, or if another connection is
// in use.
func (c *conn) next(first bool) []byte {
	c.m.mu.Lock()
	defer c.m.mu.Unlock()
	r := c.to
	switch {
	case r.conn != c:
		return nil
	case r.slot != nil:
		r.last, r.slot = r.slot, nil
		return r.last
	case first:
		return r.last
	}
	return nil
}

// read passes on notifications until the connection ends.
func (c *conn) read(r *bufio.Reader) {
	var buf []byte
	heard, address := false, c.RemoteAddr().String()
	for {
		frame, err := peerwire.ReadElectionFrame(r, buf)
		if err != nil {
			c.fail(err)
			break
		}
		buf = frame
		c.m.figures.BytesReceived.Add(int64(len(frame)))
		var n peerwire.Notification
		if err := wire.Decode(frame, &n); err != nil {
			// As ZooKeeper does, drop the message and keep the connection
			// (ZOOKEEPER-3769).
			c.m.figures.Dropped.Add(1)
			c.m.notices.Say(slog.LevelWarn, "a notification cannot be decoded", c.RemoteAddr().String(), "sid", c.to.id, "err", err)
			continue
		}
		c.m.figures.Received.Add(1)
		c.m.o.Handle(Heard{From: c.to.id, Address: address, First: !heard, Notification: n})
		heard = true
	}
	c.Conn.Close()
	refused := !heard && refusedByAlert(c.why)
	var bad *wire.FrameError
	switch {
	case refused:
		c.to.refusedBy(address, c.why)
	case errors.As(c.why, &bad):
		c.m.notices.Say(slog.LevelWarn, "a server sent bytes that are not a notification", address, "sid", c.to.id, "err", c.why)
	case errors.Is(c.why, io.ErrUnexpectedEOF):
		c.m.notices.Say(slog.LevelWarn, "a notification was cut off", address, "sid", c.to.id)
	}
	good := heard || !refused && time.Since(c.since) > settledAfter
	if c.to.disconnected(c, good, c.why) {
		c.m.o.Handle(Down{c.to.id})
	}
}

// connectionReset reports whether the other side, or its kernel, has ended the
// connection.
func connectionReset(err error) bool {
	return errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}
