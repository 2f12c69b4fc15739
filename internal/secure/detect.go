package secure

import (
	"crypto/tls"
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

// OnlyTLS returns a connection whose first read fails at once if the other end does not begin with TLS. A
// tls.Server on c itself would wait for the header of a record, which is longer than a four-letter word.
func OnlyTLS(c net.Conn) net.Conn { return &onlyTLS{Conn: c} }

// onlyTLS is a connection that must begin with TLS.
type onlyTLS struct {
	net.Conn
	begun bool // something was read
}

// Read returns what the other end has sent.
func (c *onlyTLS) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if c.begun || n == 0 {
		return n, err
	}
	c.begun = true
	if !IsTLS(p[:n]) {
		fault := tls.RecordHeaderError{Msg: "the connection does not begin with TLS", Conn: c.Conn}
		copy(fault.RecordHeader[:], p[:n])
		return 0, fault
	}
	return n, err
}

// NetConn returns the connection itself, as the method of a tls.Conn does.
func (c *onlyTLS) NetConn() net.Conn { return c.Conn }

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
