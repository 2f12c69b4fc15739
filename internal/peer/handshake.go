package peer

import (
	"bufio"
	"errors"
	"net"
	"sync"
	"time"
)

// handshakesMax is how many connections may wait for their first message at a time. A
// correct peer needs milliseconds for it, so beyond the limit the connection that has
// waited longest is closed.
const handshakesMax = 256

// handshakes are the accepted connections before their first message. Each is handled on a
// goroutine of its own, so that a silent one delays no other.
type handshakes struct {
	timeout time.Duration
	done    sync.WaitGroup

	mu     sync.Mutex
	open   []net.Conn // in the order in which they came
	closed bool
}

// add handles a connection, for which it sets a deadline. The function treat must return
// when the connection is closed. If treat returns true, the connection stays open.
func (g *handshakes) add(c net.Conn, treat func(net.Conn) bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		c.Close()
		return
	}
	if len(g.open) == handshakesMax {
		g.open[0].Close()
		g.open = g.open[1:]
	}
	g.open = append(g.open, c)
	g.done.Go(func() {
		c.SetDeadline(time.Now().Add(g.timeout))
		kept := treat(c)
		g.remove(c)
		if !kept {
			c.Close()
		}
	})
}

func (g *handshakes) remove(c net.Conn) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for i, o := range g.open {
		if o == c {
			g.open = append(g.open[:i:i], g.open[i+1:]...)
			return
		}
	}
}

// close closes all connections that are still in the handshake.
func (g *handshakes) close() {
	g.mu.Lock()
	g.closed = true
	for _, c := range g.open {
		c.Close()
	}
	g.mu.Unlock()
	g.done.Wait()
}

// refusal returns the text with which a refused connection is logged. It has the kind of the
// error, if the error has one, so that each kind is logged for itself.
func refusal(what string, err error) string {
	var e interface{ Kind() string }
	if errors.As(err, &e) {
		return what + ": " + e.Kind()
	}
	return what
}

// buffered is a connection from which r has already read more bytes than were needed. Read
// returns these bytes first.
type buffered struct {
	net.Conn
	r *bufio.Reader
}

func (b buffered) Read(p []byte) (int, error) { return b.r.Read(p) }

// NetConn returns the connection without the buffer, as the method of a tls.Conn does.
func (b buffered) NetConn() net.Conn { return b.Conn }
