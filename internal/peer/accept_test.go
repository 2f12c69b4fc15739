package peer

import (
	"net"
	"strings"
	"syscall"
	"testing"
)

// exhausted is a listener for which there is no descriptor n times.
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

// TestNoDescriptorIsLoggedOnce: at the quorum port as at the client port.
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
	const what = "no connection of a server can be accepted; is the limit of open files high enough?"
	if n := strings.Count(lines(), `msg="`+what); n != 1 {
		t.Errorf("logged %d times:\n%s", n, lines())
	}
	if !strings.Contains(lines(), `msg="repeated: `+what+`" times=3 `) {
		t.Errorf("not counted:\n%s", lines())
	}
}
