package interleave

import (
	"io"
	"net"
	"os"
	"time"

	"bellwether/internal/interleave/schedule"
)

// listener accepts connections within the process.
type listener struct {
	waiting []*end
	closed  bool
}

func (l *listener) Accept() (net.Conn, error) {
	schedule.Wait("accept", func() bool { return l.closed || len(l.waiting) > 0 })
	if l.closed {
		return nil, net.ErrClosed
	}
	e := l.waiting[0]
	l.waiting = l.waiting[1:]
	return e, nil
}

func (l *listener) Close() error {
	l.closed = true
	return nil
}

func (l *listener) Addr() net.Addr { return loopback(1) }

// dial returns the client's end of a new connection. Each direction holds at most space
// bytes; then the writer waits.
func (l *listener) dial(space int) *end {
	up, down := &stream{space: space}, &stream{space: space}
	l.waiting = append(l.waiting, &end{in: up, out: down, addr: loopback(2)})
	return &end{in: down, out: up, addr: loopback(1)}
}

func loopback(port int) net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: port} }

// stream is one direction of a connection.
type stream struct {
	bytes  []byte
	space  int
	closed bool // by its writer
	broken bool // by its reader
}

// end is one end of a connection. Each read and write stops the goroutine.
type end struct {
	in, out       *stream
	addr          net.Addr
	closed        bool
	reads, writes time.Time // deadlines; zero: none
}

func passed(deadline time.Time) bool { return !deadline.IsZero() && !time.Now().Before(deadline) }

func (e *end) Read(b []byte) (int, error) {
	schedule.Wait("read", func() bool { return len(e.in.bytes) > 0 || e.in.closed || e.closed || passed(e.reads) })
	switch {
	case e.closed:
		return 0, net.ErrClosed
	case passed(e.reads):
		return 0, os.ErrDeadlineExceeded
	case len(e.in.bytes) == 0:
		return 0, io.EOF
	}
	n := copy(b, e.in.bytes)
	e.in.bytes = e.in.bytes[n:]
	return n, nil
}

func (e *end) Write(b []byte) (n int, err error) {
	for n < len(b) {
		schedule.Wait("write", func() bool {
			return len(e.out.bytes) < e.out.space || e.out.broken || e.closed || passed(e.writes)
		})
		switch {
		case e.closed, e.out.closed:
			return n, net.ErrClosed
		case passed(e.writes):
			return n, os.ErrDeadlineExceeded
		case e.out.broken:
			return n, io.ErrClosedPipe
		}
		k := min(len(b)-n, e.out.space-len(e.out.bytes))
		e.out.bytes = append(e.out.bytes, b[n:n+k]...)
		n += k
	}
	return n, nil
}

// CloseWrite ends the direction in which this end writes.
func (e *end) CloseWrite() error {
	e.out.closed = true
	return nil
}

func (e *end) Close() error {
	e.closed, e.out.closed, e.in.broken = true, true, true
	return nil
}

func (e *end) LocalAddr() net.Addr                { return e.addr }
func (e *end) RemoteAddr() net.Addr               { return e.addr }
func (e *end) SetDeadline(t time.Time) error      { e.reads, e.writes = t, t; return nil }
func (e *end) SetReadDeadline(t time.Time) error  { e.reads = t; return nil }
func (e *end) SetWriteDeadline(t time.Time) error { e.writes = t; return nil }
