package server

import (
	"errors"
	"fmt"
	"time"

	"bellwether/internal/tree"
	"bellwether/wire"
)

// logEnd logs why a connection ends.
func (c *conn) logEnd(err error) {
	var frame *wire.FrameError
	if errors.As(err, &frame) {
		c.srv.warn("Len error", c.net.RemoteAddr(), fmt.Sprintf("Len error. A message from /%s with advertised length of %d is either a malformed message or too large to process "+
			"(length is greater than jute.maxbuffer=%d)", c.addr, frame.Len, frame.Max))
		return
	}
	if c.overflow.Load() {
		const what = "connection is closed: its watches take more memory than one connection may"
		c.srv.warn(what, c.net.RemoteAddr(), what,
			"addr", c.addr, "session", c.Session(), "limit", tree.WatchBytesMax)
	}
	if c.unread.Load() {
		const what = "connection is closed: its client does not read, and the memory for replies is used up"
		c.srv.warn(what, c.net.RemoteAddr(), what, "addr", c.addr, "session", c.Session(), "limit", c.srv.budget.limit.Load())
	}
	c.srv.log.Debug("connection ends", "addr", c.addr, "session", c.Session(), "err", err)
}

// finishLater is like finish, but for the loop: it does not block, and a flusher does the rest.
func (c *conn) finishLater() {
	c.release()
	c.out.mu.Lock()
	c.out.ending, c.out.listed = true, true
	c.out.mu.Unlock()
	c.net.SetWriteDeadline(time.Now().Add(c.srv.linger()))
	c.srv.pendingFlush.add(c)
}

// finish accepts no more output and writes what is queued. The connection is half-closed
// when that is written, or aborted when the client has not read it within lingerMax.
func (c *conn) finish() {
	o := &c.out
	o.mu.Lock()
	o.ending = true
	closed := o.closed
	o.mu.Unlock()
	if !closed {
		c.net.SetWriteDeadline(time.Now().Add(c.srv.linger()))
	}
	c.flush()
}

// flush writes the output to the socket. If another goroutine is writing, that one writes
// the new output too, and flush returns. It blocks while the client does not read.
func (c *conn) flush() {
	o := &c.out
	var traced []*Trace
	defer func() { c.srv.tracer.add(traced...) }() // after the lock is released
	o.mu.Lock()
	defer o.mu.Unlock()
	o.listed = false
	if o.writing {
		if o.closed {
			c.abort() // the writer waits for a client that does not read
		}
		return
	}
	if c.ended() {
		return
	}
	o.writing = true
	defer func() {
		o.writing = false
		o.writeEnded.Broadcast()
	}()
	for !o.closed {
		b := o.take()
		if b == nil {
			break
		}
		o.since = c.srv.clock()
		o.mu.Unlock()
		err := c.write(b)
		c.srv.stats.wrote(b)
		o.mu.Lock()
		o.written(b)
		if err != nil {
			o.discard()
		}
	}
	traced = o.takeTraced(c.srv)
	switch {
	case o.closed:
		c.abort()
	case o.ending:
		c.halfClose()
	}
}

// write writes a buffer. While the server stops, the client gets little time to read it.
func (c *conn) write(b *buffer) (err error) {
	if c.srv.stopping.Load() {
		c.net.SetWriteDeadline(time.Now().Add(lingerStopping))
	}
	if b.isLong() {
		err = c.writeLong(b)
	} else {
		_, err = c.net.Write(b.b)
	}
	return err
}

// stopReading ends the reader when the server stops: its next read fails, and a write
// that waits for the client gets little time.
func (c *conn) stopReading() {
	c.net.SetReadDeadline(time.Unix(1, 0))
	c.out.mu.Lock()
	defer c.out.mu.Unlock()
	_, secured := c.net.(*secureConn) // reads of a connection with TLS may write, and wait for the client
	if c.out.writing || secured {
		c.net.SetWriteDeadline(time.Now().Add(lingerStopping))
	}
}

// linger returns how long the client may take to read the last replies.
func (s *Server) linger() time.Duration {
	if s.stopping.Load() {
		return lingerStopping
	}
	return lingerMax
}

// ended reports whether the connection is closed or half-closed by this server.
func (c *conn) ended() bool {
	select {
	case <-c.done:
		return true
	default:
		return false
	}
}

// abort drops the output and closes the socket at once. The output's lock must be held.
func (c *conn) abort() {
	c.out.discard()
	if !c.ended() {
		c.unlist()
	}
	c.net.Close()
}

// halfClose tells the client that nothing more comes. The reader then drains the input
// and closes the socket. The output's lock must be held.
func (c *conn) halfClose() {
	half, ok := c.net.(interface{ CloseWrite() error })
	if !ok || half.CloseWrite() != nil {
		c.abort()
		return
	}
	c.out.discard()
	limit := drainTime
	if c.srv.stopping.Load() {
		limit = drainTimeEnding
	}
	c.net.SetReadDeadline(time.Now().Add(limit))
	c.unlist()
}

// unlist records that the client gets nothing more: operators no longer see the
// connection, and done is closed. The output's lock must be held.
func (c *conn) unlist() {
	c.srv.conns.unlist(c)
	close(c.done)
}

// Limits for draining the input of a half-closed connection. If a socket is closed with
// unread input, the operating system drops the last replies.
const (
	drainTime       = time.Second
	drainTimeEnding = 50 * time.Millisecond // when the server ends
	drainMax        = 4 << 20
)

// drainInput reads and drops input until the client has closed its side too, then closes
// the socket.
func (c *conn) drainInput() {
	b := takeBuffer()
	defer giveBuffer(b)
	for n := 0; n < drainMax; {
		k, err := c.net.Read(b.b[:cap(b.b)])
		if n += k; err != nil {
			break
		}
	}
	c.net.Close()
}
