package peer

import (
	"net"
	"time"

	"golang.org/x/sys/unix"
)

// setUserTimeout makes the kernel end the connection when sent data stays unacknowledged.
func setUserTimeout(t *net.TCPConn, d time.Duration) {
	control(t, func(fd int) {
		unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(d.Milliseconds()))
	})
}

// roundTrip returns the round-trip time that the kernel has measured on a connection so far.
func roundTrip(c net.Conn) (took time.Duration, ok bool) {
	if m, ok := c.(measured); ok {
		return m.RoundTrip(), true
	}
	t, isTCP := c.(*net.TCPConn)
	if !isTCP {
		return 0, false
	}
	control(t, func(fd int) {
		info, err := unix.GetsockoptTCPInfo(fd, unix.IPPROTO_TCP, unix.TCP_INFO)
		if err == nil && info.Rtt > 0 {
			took, ok = time.Duration(info.Rtt)*time.Microsecond, true
		}
	})
	return took, ok
}

func control(t *net.TCPConn, f func(fd int)) {
	raw, err := t.SyscallConn()
	if err == nil {
		raw.Control(func(fd uintptr) { f(int(fd)) })
	}
}
