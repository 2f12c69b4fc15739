package peer

import (
	"net"
	"time"
)

// How a silent connection is probed: first after keepAliveIdle, then every
// keepAliveInterval, keepAliveCount times.
const (
	keepAliveIdle     = 10 * time.Second
	keepAliveInterval = 5 * time.Second
	keepAliveCount    = 3
)

// past is a deadline that ends all calls that wait for a connection.
var past = time.Unix(1, 0)

// tune sets the options of a new connection. Small packets are sent at once. If the other
// machine no longer answers, the connection ends: within dead if sent data is
// unacknowledged, otherwise after some keep-alive probes. A connection that is not TCP
// stays as it is.
func tune(c net.Conn, dead time.Duration) {
	if d, ok := c.(*dialled); ok {
		c = d.Conn
	}
	t, ok := c.(*net.TCPConn)
	if !ok {
		return
	}
	// If an option does not exist the connection works without it.
	t.SetNoDelay(true)
	t.SetKeepAliveConfig(net.KeepAliveConfig{
		Enable: true, Idle: keepAliveIdle, Interval: keepAliveInterval, Count: keepAliveCount,
	})
	setUserTimeout(t, dead)
}

// measured is a connection of a network within the process that knows its round-trip
// time.
type measured interface{ RoundTrip() time.Duration }

// closeWrite tells the other end that nothing follows, if that is possible.
func closeWrite(c net.Conn) {
	if d, ok := c.(*dialled); ok {
		c = d.Conn
	}
	if h, ok := c.(interface{ CloseWrite() error }); ok {
		h.CloseWrite()
	}
}
