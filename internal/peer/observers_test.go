package peer

import (
	"net"
	"strconv"
	"strings"
	"testing"

	"bellwether/internal/peerwire"
)

// TestObserverMasterPort: an observer links to the observer master port of a server, whose quorum port is closed. The queue of such
// a link is shorter than that of other links, and a link that exceeds it ends with the reason.
func TestObserverMasterPort(t *testing.T) {
	l := newLAN(t, 2, 0)
	port := l.port()
	address := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	set := func(o *Options) { o.ObserverPort, o.ObserverQueueMax = port, 1<<20 }
	master, at := l.links(2, set)
	if err := master.Try(); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second call does nothing
		if err := master.ListenObservers(); err != nil {
			t.Fatal(err)
		}
	}
	o, to := l.links(1, set)
	o.Dial(2) // the quorum port is closed
	o.DialMaster(2)
	linked := await[Linked](t, to, nil)
	if linked.Server != 2 || linked.Address != address {
		t.Errorf("%+v", linked)
	}
	o.Send(linked.Link, packet(peerwire.PacketObserverInfo, 0, []byte("hello")))
	opened := await[Opened](t, at, nil)
	for range 64 {
		master.Send(opened.Link, packet(peerwire.PacketInform, 1, make([]byte, 1<<18)))
	}
	if closed := await[Closed](t, at, nil); !strings.Contains(closed.Why, "it does not keep up") {
		t.Errorf("%+v", closed)
	}
	master.UnlistenObservers()
	if c, err := net.Dial("tcp", address); err == nil {
		c.Close()
		t.Error("the port is still open")
	}
}

// TestObserverMasterPortInUse: a port that another process uses is reported before it is needed.
func TestObserverMasterPortInUse(t *testing.T) {
	l := newLAN(t, 1, 0)
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	k, _ := l.links(1, func(o *Options) { o.ObserverPort = taken.Addr().(*net.TCPAddr).Port })
	if err := k.Try(); err == nil || !strings.Contains(err.Error(), "observer master port") {
		t.Error(err)
	}
}
