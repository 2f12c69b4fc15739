package server

import (
	"errors"
	"fmt"
	"time"

	"bellwether/internal/tree"
	"bellwether/wire"
)

// farewell logs why a connection ends.
func (c *conn) farewell(err error) {
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

// endSoon is finish for the loop: it does not block.
func (c *conn) endSoon() {
	c.release()
	c.out.mu.Lock()
	c.out.ending, c.out.dirty = true, true
	c.out.mu.Unlock()
	c.net.SetWriteDeadline(time.Now().Add(c.srv.linger()))
	c.srv.dirty.add(c)
}

// finish ends the connection once everything queued so far is written, or the
// client has not taken it within lingerMax.
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

// flush writes what is ready to the socket, unless somebody is at it already,
// who will see it. It blocks while the client does not read.
func (c *conn) flush() {
	o := &c.out
	o.mu.Lock()
	defer o.mu.Unlock()
	o.dirty = false
	if o.writing {
		if o.closed {
			c.close() // whoever is at the socket waits for a client that does not read
		}
		return
	}
	if c.ended() {
		return
	}
	o.writing = true
	defer func() {
		o.writing = false
		o.drained.Broadcast()
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
	switch {
	case o.closed:
		c.close()
	case o.ending:
		c.shut()
	}
}

// write writes a buffer. While the server stops a client gets little time for it.
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

// stopReading is called when the server stops: the reader wakes up, and a write
// that waits for the client gets little time.
func (c *conn) stopReading() {
	c.net.SetReadDeadline(time.Unix(1, 0))
	c.out.mu.Lock()
	defer c.out.mu.Unlock()
	if c.out.writing {
		c.net.SetWriteDeadline(time.Now().Add(lingerStopping))
	}
}

// linger is how long a connection that is to be closed may take.
func (s *Server) linger() time.Duration {
	if s.stopping.Load() {
		return lingerStopping
	}
	return lingerMax
}

// ended reports whether the connection is closed or half closed by us.
func (c *conn) ended() bool {
	select {
	case <-c.done:
		return true
	default:
		return false
	}
}

// close ends the connection at once. The output's lock is held.
func (c *conn) close() {
	c.out.discard()
	if !c.ended() {
		c.closedForClient()
	}
	c.net.Close()
}

// shut tells the client that nothing more comes; its reader drains and closes
// the socket. The output's lock is held.
func (c *conn) shut() {
	half, ok := c.net.(interface{ CloseWrite() error })
	if !ok || half.CloseWrite() != nil {
		c.close()
		return
	}
	c.out.discard()
	limit := drainTime
	if c.srv.stopping.Load() {
		limit = drainTimeEnding
	}
	c.net.SetReadDeadline(time.Now().Add(limit))
	c.closedForClient()
}

// closedForClient makes it known that the client gets nothing more. The output's
// lock is held.
func (c *conn) closedForClient() {
	c.srv.crowd.close(c)
	close(c.done)
}

// How long and how much a closed connection is still read: a socket that is
// closed with unread input makes the system throw away the last replies.
const (
	drainTime       = time.Second
	drainTimeEnding = 50 * time.Millisecond // when the server ends
	drainMax        = 4 << 20
)

// drain reads until the client has closed its side as well.
func (c *conn) drain() {
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
