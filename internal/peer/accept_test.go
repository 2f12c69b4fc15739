package peer

import (
	"net"
	"strings"
	"syscall"
	"testing"
)

// exhausted is a listener whose first n calls of Accept fail because there are no file descriptors left.
type exhausted struct {
	net.Listener
	n    int
	over chan struct{}
}

func (l *exhausted) Accept() (net.Conn, error) {
	if l.n--; l.n < 0 {
		close(l.over)
		return l.Listener.Accept()
	}
	return nil, &net.OpError{Op: "accept", Err: syscall.EMFILE}
}

// TestNoDescriptorIsLoggedOnce checks that a lack of file descriptors is logged once at the quorum port.
// The client port has the same rule.
func TestNoDescriptorIsLoggedOnce(t *testing.T) {
	l := newLAN(t, 2, 0)
	log, lines := logLines()
	over := make(chan struct{})
	l2, _ := l.links(2, func(o *Options) {
		o.Log = log
		o.Listen = func(address string) (net.Listener, error) {
			ln, err := l.listen(address)
			return &exhausted{ln, 4, over}, err
		}
	})
	if err := l2.Listen(); err != nil {
		t.Fatal(err)
	}
	<-over
	l2.CloseAll()
	const what = "cannot accept connections from other servers: check the limit of open files"
	if n := strings.Count(lines(), `msg="`+what); n != 1 {
		t.Errorf("logged %d times:\n%s", n, lines())
	}
	if !strings.Contains(lines(), `msg="repeated: `+what+`" times=3 `) {
		t.Errorf("not counted:\n%s", lines())
	}
}
