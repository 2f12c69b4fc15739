package relay

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"bellwether/internal/shadow"
	"bellwether/wire"
)

const (
	// askTimeout is how long the observer may take to answer.
	askTimeout = 10 * time.Second
	// sessionMS is the session timeout that is asked for. A session is closed when it is not used for a third of
	// what the observer grants.
	sessionMS = 30_000
	// answerMax is the longest answer that is read.
	answerMax = 64 << 20
)

// errIdentity says that the observer has refused an auth packet.
var errIdentity = errors.New("auth packet refused")

// observer is a session at the observer. It is used by one goroutine.
type observer struct {
	conn net.Conn
	r    *bufio.Reader
	xid  int32
	idle time.Duration // after which the session should be closed
	ctx  func() bool   // stops watching the context
}

// openObserver opens a session with an identity. When ctx ends, the connection is closed.
func openObserver(ctx context.Context, addr string, credentials []shadow.Credential) (*observer, error) {
	d := net.Dialer{Timeout: dialTimeout}
	conn, err := d.DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	o := &observer{conn: conn, r: bufio.NewReader(conn)}
	o.ctx = context.AfterFunc(ctx, func() { conn.Close() })
	if err = o.handshake(); err == nil {
		err = o.identify(credentials)
	}
	if err != nil {
		o.drop()
		return nil, err
	}
	return o, nil
}

func (o *observer) handshake() error {
	q := &wire.ConnectRequest{TimeoutMS: sessionMS, Password: make([]byte, wire.PasswordLen), HasReadOnly: true}
	b, err := o.exchange(q)
	if err != nil {
		return err
	}
	var r wire.ConnectResponse
	if err := wire.Decode(b, &r); err != nil {
		return err
	}
	if r.TimeoutMS <= 0 {
		return errors.New("session refused")
	}
	o.idle = time.Duration(r.TimeoutMS) * time.Millisecond / 3
	return nil
}

// identify sends the auth packets of a client.
func (o *observer) identify(credentials []shadow.Credential) error {
	for _, c := range credentials {
		b, err := o.exchange(&wire.RequestHeader{Xid: wire.XidAuth, Op: wire.OpAuth}, &wire.AuthRequest{Scheme: wire.Text(c.Scheme), Auth: c.Auth})
		if err != nil {
			return err
		}
		var h wire.ReplyHeader
		if err := wire.Decode(b, &h); err != nil {
			return err
		}
		if h.Err != wire.OK {
			return fmt.Errorf("scheme %q: %w: %w", c.Scheme, errIdentity, h.Err)
		}
	}
	return nil
}

// ask sends a read and returns its answer. The caller must only ask what changes nothing.
func (o *observer) ask(op wire.OpCode, body wire.Record) (wire.ReplyHeader, []byte, error) {
	o.xid++
	records := []wire.Record{&wire.RequestHeader{Xid: o.xid, Op: op}}
	if body != nil {
		records = append(records, body)
	}
	var h wire.ReplyHeader
	b, err := o.exchange(records...)
	if err != nil {
		return h, nil, err
	}
	c := wire.Decoder(b)
	h.Code(&c)
	if c.Err() == nil && h.Xid != o.xid {
		return h, nil, fmt.Errorf("answer with xid %d, want %d", h.Xid, o.xid)
	}
	return h, c.Rest(), c.Err()
}

// exchange sends a frame and returns the next one. No watch event can come between, because no read sets a watch.
func (o *observer) exchange(records ...wire.Record) ([]byte, error) {
	if err := o.conn.SetDeadline(time.Now().Add(askTimeout)); err != nil {
		return nil, err
	}
	if _, err := o.conn.Write(wire.AppendFrame(nil, records...)); err != nil {
		return nil, err
	}
	return wire.ReadFrame(o.r, nil, answerMax)
}

// close ends the session, so that the servers need not wait until it expires.
func (o *observer) close() {
	o.ask(wire.OpCloseSession, nil) // without an answer the session expires
	o.drop()
}

// drop ends the connection.
func (o *observer) drop() {
	o.ctx()
	o.conn.Close()
}
