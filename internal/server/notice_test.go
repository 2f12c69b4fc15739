package server

import (
	"bytes"
	"io"
	"log/slog"
	"net"
	"strings"
	"syscall"
	"testing"
	"time"

	"bellwether/wire"
)

// TestNoiseAtTheClientPortIsCounted shows that each kind of bad input from one address is
// logged once, and that further ones are counted in a summary.
func TestNoiseAtTheClientPortIsCounted(t *testing.T) {
	const times = 50
	var book logBook
	o := Options{Config: testConfig(), Log: slog.New(slog.NewTextHandler(&book, nil))}
	o.Config.Limits.ClientCnxns = 1
	o.FourLetterWords = func(*Server, FourLetterWord) (string, bool) { return "words\n", true }
	s := start(t, o)
	bad := wire.AppendFrame(nil, &wire.ConnectRequest{TimeoutMS: 5000, Session: 1, Password: make([]byte, 16)})
	ahead := wire.AppendFrame(nil, &wire.ConnectRequest{TimeoutMS: 5000, LastZxidSeen: 1 << 40, Password: make([]byte, 16)})
	short := frameOf([]byte{1, 2, 3})
	alone := func() {
		eventually(t, "the connection before is gone", func() bool { return len(s.conns.sockets()) == 0 })
	}
	knock := func(b []byte) {
		for range times {
			alone()
			c := s.dial()
			c.write(b)
			c.untilEnd()
		}
	}
	for _, b := range [][]byte{bytes.Repeat([]byte{0xa5}, 600), short, bad, ahead, []byte("srvr")} {
		knock(b)
	}
	alone()
	held := s.connect()
	for range times {
		s.dial().untilEnd()
	}
	held.nc.Close()
	if err := s.end(); err != nil {
		t.Fatal(err)
	}
	for _, what := range []string{"Len error", "connection request is malformed", "Invalid session", "Refusing session request", "Processing srvr command", "Too many connections"} {
		once, again := 0, 0
		for line := range strings.Lines(book.String()) {
			switch {
			case !strings.Contains(line, what):
			case strings.Contains(line, "repeated: "):
				again++
				if !strings.Contains(line, " times=49 ") || !strings.Contains(line, " last=127.0.0.1:") {
					t.Errorf("summary: %s", line)
				}
			default:
				once++
			}
		}
		if once != 1 || again != 1 {
			t.Errorf("%q is logged %d times and counted %d times", what, once, again)
		}
	}
}

// untilEnd reads until the server closes the connection.
func (c *client) untilEnd() {
	c.nc.SetReadDeadline(time.Now().Add(eventTimeout))
	io.Copy(io.Discard, c.nc)
	c.nc.Close()
}

// exhausted is a listener that fails n times because no descriptor is free.
type exhausted struct {
	net.Listener
	n int
}

func (l *exhausted) Accept() (net.Conn, error) {
	if l.n--; l.n < 0 {
		return nil, net.ErrClosed
	}
	return nil, &net.OpError{Op: "accept", Err: syscall.EMFILE}
}

// TestNoDescriptorIsLoggedOnce shows that reaching the limit of open files does not fill
// the log.
func TestNoDescriptorIsLoggedOnce(t *testing.T) {
	var book logBook
	s := start(t, Options{Log: slog.New(slog.NewTextHandler(&book, nil))})
	s.accept(&exhausted{n: 4}, false, true)
	if err := s.end(); err != nil {
		t.Fatal(err)
	}
	const what = `level=ERROR msg="cannot accept connections:`
	if n := strings.Count(book.String(), what); n != 1 {
		t.Errorf("logged %d times:\n%s", n, book.String())
	}
	if !strings.Contains(book.String(), `msg="repeated: cannot accept connections: check the limit of open files" times=3 `) {
		t.Errorf("not counted:\n%s", book.String())
	}
}
