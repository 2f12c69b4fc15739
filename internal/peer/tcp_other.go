//go:build !linux

package peer

import (
	"net"
	"time"
)

// setUserTimeout does nothing on this system; keep-alive and write deadlines remain.
func setUserTimeout(*net.TCPConn, time.Duration) {}

// roundTrip returns false for a TCP connection: the kernel's round-trip time is not read on
// this system. The caller then uses the duration of the dial.
func roundTrip(c net.Conn) (time.Duration, bool) {
	if m, ok := c.(measured); ok {
		return m.RoundTrip(), true
	}
	return 0, false
}
