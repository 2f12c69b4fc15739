package bench

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"sync/atomic"
	"time"

	"bellwether/wire"
	"bellwether/zk"
)

// Raw opens connections for a [Load] that sends its requests without package zk, because that
// costs less processor time. The connections log in with Auth, but not with SASL.
type Raw struct {
	Dial    func(ctx context.Context, server string) (net.Conn, error)
	Servers []string      // host:port; the connections are shared out evenly
	Chroot  string        // the path before Root; empty: none
	Timeout time.Duration // session timeout
	Auth    []zk.Auth     // added to each session
}

// greetTimeout is how long a server may take to open a session.
const greetTimeout = 10 * time.Second

// openAll opens n connections, each with a session. The caller must close the result even after an error.
func (r *Raw) openAll(ctx context.Context, n int) ([]*line, error) {
	lines := make([]*line, n)
	if err := checkFiles(n); err != nil {
		return lines, err
	}
	var opened atomic.Int64
	err := inFlight(n, dialWidth, func(i int) (err error) {
		if lines[i], err = r.open(ctx, r.Servers[i%len(r.Servers)]); err == nil {
			opened.Add(1)
		}
		return err
	})
	return lines, explainOpened(ctx, err, int(opened.Load()), n)
}

// open opens a connection and a session.
func (r *Raw) open(ctx context.Context, server string) (*line, error) {
	conn, err := r.Dial(ctx, server)
	if err != nil {
		return nil, err
	}
	l := &line{stream: conn, conn: conn, server: server}
	if err := r.greet(l); err != nil {
		conn.Close()
		return nil, fmt.Errorf("server %s: opening a session: %w", server, err)
	}
	return l, nil
}

// greet opens the session and logs in.
func (r *Raw) greet(l *line) error {
	_ = l.conn.SetDeadline(time.Now().Add(greetTimeout)) // an error shows at the next call
	hello := wire.ConnectRequest{TimeoutMS: int32(r.Timeout.Milliseconds()), Password: make([]byte, wire.PasswordLen), HasReadOnly: true}
	if _, err := l.conn.Write(wire.AppendFrame(nil, &hello)); err != nil {
		return err
	}
	replies := bufio.NewReader(l.conn)
	frame, err := wire.ReadFrame(replies, nil, FrameMax)
	if err != nil {
		return err
	}
	var welcome wire.ConnectResponse
	if err := wire.Decode(frame, &welcome); err != nil {
		return err
	}
	if welcome.TimeoutMS <= 0 {
		return errors.New("the server refuses the session")
	}
	l.timeout = time.Duration(welcome.TimeoutMS) * time.Millisecond
	for _, a := range r.Auth {
		if err := authenticate(l.conn, replies, a); err != nil {
			return err
		}
	}
	if replies.Buffered() > 0 {
		return errors.New("the server sends replies that were not requested")
	}
	return l.conn.SetDeadline(time.Time{})
}

// authenticate adds credentials to a session.
func authenticate(conn net.Conn, replies *bufio.Reader, a zk.Auth) error {
	request := wire.AppendFrame(nil, &wire.RequestHeader{Xid: wire.XidAuth, Op: wire.OpAuth}, &wire.AuthRequest{Scheme: wire.Text(a.Scheme), Auth: a.Data})
	if _, err := conn.Write(request); err != nil {
		return err
	}
	frame, err := wire.ReadFrame(replies, nil, FrameMax)
	if err != nil {
		return err
	}
	var h wire.ReplyHeader
	if err := wire.Decode(frame, &h); err != nil {
		return err
	}
	if h.Err != 0 {
		return h.Err
	}
	return nil
}

func closeLines(lines []*line) {
	for _, l := range lines {
		if l != nil {
			l.close()
		}
	}
}
