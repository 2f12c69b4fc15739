package peer

import (
	"net"
	"time"
)

// How a silent connection is tested: first after keepAliveIdle, then at each
// keepAliveInterval, keepAliveCount times.
const (
	keepAliveIdle     = 10 * time.Second
	keepAliveInterval = 5 * time.Second
	keepAliveCount    = 3
)

// past is a deadline that ends what waits for a connection.
var past = time.Unix(1, 0)

// tune prepares a fresh connection: small packets leave at once, and a dead
// other end is noticed, after dead at the latest where something was sent.
// What is not TCP stays as it is.
func tune(c net.Conn, dead time.Duration) {
	if d, ok := c.(*dialled); ok {
		c = d.Conn
	}
	t, ok := c.(*net.TCPConn)
	if !ok {
		return
	}
	// Where an option is missing the connection is no worse than without it.
	t.SetNoDelay(true)
	t.SetKeepAliveConfig(net.KeepAliveConfig{
		Enable: true, Idle: keepAliveIdle, Interval: keepAliveInterval, Count: keepAliveCount,
	})
	setUserTimeout(t, dead)
}

// measured is a connection of a network within the process that knows how
// long a message and its answer take.
type measured interface{ RoundTrip() time.Duration }

// closeWrite tells the other end that nothing follows, where that is possible.
func closeWrite(c net.Conn) {
	if d, ok := c.(*dialled); ok {
		c = d.Conn
	}
	if h, ok := c.(interface{ CloseWrite() error }); ok {
		h.CloseWrite()
	}
}
