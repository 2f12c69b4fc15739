package secure

import (
	"errors"
	"net"
	"os"
	"time"
)

// handshake is the first byte of a connection with TLS: the type of a record. A client or
// server without TLS begins with a length, the upper half of a version or a letter.
const handshake = 22

// Detect reports whether the other end of an accepted connection begins with TLS. It is for a port that
// takes connections with and without TLS. The caller uses the returned connection instead of c; it has no
// read deadline. If the other end sends nothing for the timeout, it counts as one without TLS, as in
// ZooKeeper. Detect blocks for that long, so the goroutine that accepts connections must not call it.
func Detect(c net.Conn, timeout time.Duration) (net.Conn, bool, error) {
	if err := c.SetReadDeadline(time.Now().Add(timeout)); err != nil {
		return nil, false, err
	}
	first := make([]byte, 1)
	n, err := c.Read(first)
	if e := c.SetReadDeadline(time.Time{}); err == nil {
		err = e
	}
	switch {
	case n == 0 && errors.Is(err, os.ErrDeadlineExceeded):
		return c, false, nil
	case n == 0 && err != nil:
		return nil, false, err
	}
	return Begun(c, first[:n]), IsTLS(first[:n]), nil
}

// IsTLS reports whether the first bytes of a connection begin TLS.
func IsTLS(first []byte) bool { return len(first) > 0 && first[0] == handshake }

// Begun returns a connection whose first bytes have been read already: its reads return those first.
func Begun(c net.Conn, first []byte) net.Conn { return &begun{c, first} }

// begun is a connection whose first bytes have been read already.
type begun struct {
	net.Conn
	first []byte
}

// Read returns the bytes that have been read, then those that follow.
func (b *begun) Read(p []byte) (int, error) {
	if len(b.first) > 0 {
		n := copy(p, b.first)
		b.first = b.first[n:]
		return n, nil
	}
	return b.Conn.Read(p)
}

// NetConn returns the connection behind those bytes, as the method of a tls.Conn does.
func (b *begun) NetConn() net.Conn { return b.Conn }
