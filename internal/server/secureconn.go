package server

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"bellwether/internal/secure"
)

// secureConn is a client connection that speaks TLS, or either TLS or not on a port that
// takes both. The first Read finds out which, and carries out the handshake. Until then
// nothing is written. Deadlines are those of the socket; the read deadline and Close also end
// the check of the client's certificate, which may wait for other machines.
type secureConn struct {
	net.Conn
	config  *tls.Config
	unified bool           // connections without TLS are taken too
	aside   func(f func()) // runs f on a goroutine that the server waits for
	stream  atomic.Pointer[stream]
	budget  *budget
	source  *tlsSource // reader: nil without TLS
	failed  error      // reader: why the first Read failed, so that no later one begins again; nil: it did not

	mu     sync.Mutex
	end    time.Time          // the read deadline; zero: none
	closed bool               // Close was called
	cancel context.CancelFunc // ends the handshake; nil: there is none under way
	expiry *time.Timer        // calls cancel at the read deadline
}

// stream is the connection from which the client's bytes are read and to which they are
// written: the TLS connection, or the socket. The first Read sets it.
type stream struct {
	net.Conn
	tls *tls.Conn // nil: without TLS
}

// Read reads what the client has sent. Only one goroutine calls it.
func (c *secureConn) Read(b []byte) (int, error) {
	if c.failed != nil {
		return 0, c.failed
	}
	s := c.stream.Load()
	if s == nil {
		if s, c.failed = c.begin(); c.failed != nil {
			return 0, c.failed
		}
		c.stream.Store(s)
	}
	return s.Read(b)
}

// begin finds out whether the client speaks TLS.
func (c *secureConn) begin() (*stream, error) {
	if !c.unified {
		return c.handshake(secure.OnlyTLS(c.Conn))
	}
	// A frame cannot begin as TLS does, because it would be longer than any limit, nor can a
	// four-letter word.
	first := make([]byte, 1)
	if _, err := c.Conn.Read(first); err != nil {
		return nil, err
	}
	whole := secure.Begun(c.Conn, first)
	if !secure.IsTLS(first) {
		return &stream{whole, nil}, nil
	}
	return c.handshake(whole)
}

// handshake carries out the handshake of TLS until the read deadline or Close.
func (c *secureConn) handshake(from net.Conn) (*stream, error) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	c.mu.Lock()
	c.cancel = cancel
	c.limitLocked()
	c.mu.Unlock()
	c.source = &tlsSource{Conn: from, budget: c.budget}
	t := tls.Server(c.source, c.config)
	err := t.HandshakeContext(ctx)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cancel = nil
	if c.expiry != nil {
		c.expiry.Stop()
	}
	switch {
	case errors.Is(err, context.Canceled) && c.closed:
		return nil, &handshakeError{net.ErrClosed}
	case errors.Is(err, context.Canceled):
		return nil, &handshakeError{os.ErrDeadlineExceeded}
	case err != nil:
		return nil, &handshakeError{err}
	}
	return &stream{t, t}, nil
}

// limitLocked makes the handshake end at the read deadline. The caller holds the lock.
func (c *secureConn) limitLocked() {
	if c.cancel == nil {
		return
	}
	if c.expiry != nil {
		c.expiry.Stop()
	}
	switch {
	case c.closed:
		c.cancel()
	case !c.end.IsZero():
		c.expiry = time.AfterFunc(time.Until(c.end), c.cancel)
	}
}

// setEnd records the read deadline.
func (c *secureConn) setEnd(end time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.end = end
	c.limitLocked()
}

// SetDeadline sets the deadlines of the socket, and of the handshake.
func (c *secureConn) SetDeadline(end time.Time) error {
	c.setEnd(end)
	return c.Conn.SetDeadline(end)
}

// SetReadDeadline sets the read deadline of the socket, and the deadline of the handshake.
func (c *secureConn) SetReadDeadline(end time.Time) error {
	c.setEnd(end)
	return c.Conn.SetReadDeadline(end)
}

// Write writes to the client. Before the first bytes are read, it is unknown whether the client
// uses TLS. Write then drops the bytes, which could only be a refusal, and returns an error.
func (c *secureConn) Write(b []byte) (int, error) {
	if s := c.stream.Load(); s != nil {
		return s.Write(b)
	}
	return 0, net.ErrClosed
}

// Close closes the socket at once. It does not tell the client by TLS, because that could wait for a
// client that does not read.
func (c *secureConn) Close() error {
	c.mu.Lock()
	c.closed = true
	c.limitLocked()
	c.mu.Unlock()
	return c.Conn.Close()
}

// CloseWrite tells the client that nothing follows, without waiting for it.
func (c *secureConn) CloseWrite() error {
	s := c.stream.Load()
	if s == nil {
		return net.ErrClosed
	}
	if s.tls == nil {
		return closeWrite(c.Conn)
	}
	c.aside(func() {
		if s.tls.CloseWrite() != nil || closeWrite(c.Conn) != nil {
			c.Conn.Close()
		}
	})
	return nil
}

// closeWrite half-closes a socket.
func closeWrite(c net.Conn) error {
	if half, ok := c.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return net.ErrClosed
}

// encrypted reports whether the client speaks TLS.
func (c *conn) encrypted() bool {
	sc, ok := c.net.(*secureConn)
	if !ok {
		return false
	}
	s := sc.stream.Load()
	return s != nil && s.tls != nil
}

// certificate returns the certificate that the client has shown; nil: none.
func (c *secureConn) certificate() *x509.Certificate {
	s := c.stream.Load()
	if s == nil || s.tls == nil {
		return nil
	}
	if shown := s.tls.ConnectionState().PeerCertificates; len(shown) > 0 {
		return shown[0]
	}
	return nil
}

// handshakeError says why the handshake of TLS failed.
type handshakeError struct{ err error }

func (e *handshakeError) Error() string { return "TLS handshake: " + e.err.Error() }

// Unwrap returns the cause, such as a timeout.
func (e *handshakeError) Unwrap() error { return e.err }
