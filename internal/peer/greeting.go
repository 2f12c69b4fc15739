package peer

import (
	"bufio"
	"net"
	"sync"
	"time"
)

// greetingsMax is how many connections may wait for their first message at a time. A
// correct peer needs milliseconds for it, so beyond the limit the connection that has
// waited longest is closed.
const greetingsMax = 256

// greetings are the accepted connections before their first message. Each is handled on a
// goroutine of its own, so that a silent one delays no other.
type greetings struct {
	timeout time.Duration
	done    sync.WaitGroup

	mu     sync.Mutex
	open   []net.Conn // in the order in which they came
	closed bool
}

// add handles a connection, for which it sets a deadline. treat must return when the
// connection is closed, and keeps it by returning true.
func (g *greetings) add(c net.Conn, treat func(net.Conn) bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		c.Close()
		return
	}
	if len(g.open) == greetingsMax {
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

func (g *greetings) remove(c net.Conn) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for i, o := range g.open {
		if o == c {
			g.open = append(g.open[:i:i], g.open[i+1:]...)
			return
		}
	}
}

// close closes all of them.
func (g *greetings) close() {
	g.mu.Lock()
	g.closed = true
	for _, c := range g.open {
		c.Close()
	}
	g.mu.Unlock()
	g.done.Wait()
}

// buffered is a connection of which a reader has read more than it needed.
type buffered struct {
	net.Conn
	r *bufio.Reader
}

func (b buffered) Read(p []byte) (int, error) { return b.r.Read(p) }
