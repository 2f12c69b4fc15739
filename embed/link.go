package embed

import (
	"net"
	"time"
)

// link is a connection inside the process.
type link struct {
	n           *network
	from, to    party // the end that dialled, and the end that accepted; the latter is a server
	there, back *stream
	trip        time.Duration // the round-trip time when the connection was opened
	dialog      *dialog       // parses a client's link; nil between servers
}

// party identifies an end of a link: a server by its number, or a client (0) by its session, once the session is
// known.
type party struct {
	server  int
	session Session
}

// end is one end of a link.
type end struct {
	link          *link
	host          *host
	in, out       *stream
	local, remote net.Addr
	served        bool // this is the end that accepted the connection
}

var _ net.Conn = (*end)(nil)

func (e *end) Read(p []byte) (int, error) {
	n, err := e.in.Read(p)
	if !e.host.await() {
		return 0, net.ErrClosed
	}
	return n, err
}

func (e *end) Write(p []byte) (int, error) {
	if !e.host.await() {
		return 0, net.ErrClosed
	}
	d := e.link.dialog
	var err error
	switch {
	case d == nil:
		err = e.send(p, 0)
	case e.served:
		err = d.reply(p, e.send)
	default:
		err = d.request(p, e.send)
	}
	if err != nil {
		return 0, err
	}
	return len(p), nil
}

// send puts bytes into the stream. As long as the opposite direction is cut, this side cannot know that the
// other side has closed the connection, and send does not fail.
func (e *end) send(p []byte, late time.Duration) error { return e.out.Write(p, late, e.in.cut.Load) }

func (e *end) Close() error {
	e.out.finish(false)
	e.in.abandon()
	e.link.n.ended(e.link)
	return nil
}

// CloseWrite ends the outgoing direction: the other side reads EOF after the last byte.
func (e *end) CloseWrite() error {
	e.out.finish(false)
	return nil
}

func (e *end) LocalAddr() net.Addr  { return e.local }
func (e *end) RemoteAddr() net.Addr { return e.remote }

// RoundTrip returns the round-trip time of the link when it was opened. Package peer uses it.
func (e *end) RoundTrip() time.Duration { return e.link.trip }

func (e *end) SetDeadline(t time.Time) error {
	e.SetReadDeadline(t)
	e.SetWriteDeadline(t)
	return nil
}

func (e *end) SetReadDeadline(t time.Time) error {
	e.in.setDeadline(&e.in.read, t)
	return nil
}

func (e *end) SetWriteDeadline(t time.Time) error {
	e.out.setDeadline(&e.out.write, t)
	return nil
}

// reset ends a link for both sides, as the crash of one end does.
func (l *link) reset() {
	l.there.finish(true)
	l.back.finish(true)
}
