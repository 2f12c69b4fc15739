package peer

import (
	"bufio"
	"net"
	"sync"
	"time"
)

// greetingsMax is how many connections may be before their first message at a
// time. Who is served needs milliseconds for it, so beyond the bound the one
// that has taken longest gives way.
const greetingsMax = 256

// greetings are the accepted connections before their first message. Each is
// treated on a goroutine of its own, so that a silent one holds up nobody.
type greetings struct {
	timeout time.Duration
	done    sync.WaitGroup

	mu     sync.Mutex
	open   []net.Conn // in the order they came
	closed bool
}

// add treats a connection, which has a deadline then. treat must return when
// the connection is closed, and may keep it by returning true.
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

// close ends all that are under way.
func (g *greetings) close() {
	g.mu.Lock()
	g.closed = true
	for _, c := range g.open {
		c.Close()
	}
	g.mu.Unlock()
	g.done.Wait()
}

// buffered is a connection of which a reader has taken more than it needed.
type buffered struct {
	net.Conn
	r *bufio.Reader
}

func (b buffered) Read(p []byte) (int, error) { return b.r.Read(p) }
