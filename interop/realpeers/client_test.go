package realpeers

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"time"

	"bellwether/internal/sim"
	"bellwether/wire"
)

// client is a session at ZooKeeper. It sends what the simulated client sends, and nothing
// else: no pings, for example.
type client struct {
	conn net.Conn
	in   *bufio.Reader
	xid  int32
}

// connect opens a session, or resumes the given one, as soon as the server serves.
func connect(ctx context.Context, addr string, session wire.SessionID) (*client, error) {
	for {
		c, err := handshake(ctx, addr, session)
		if err == nil {
			return c, nil
		}
		select {
		case <-ctx.Done():
			return nil, err
		case <-time.After(dialPause):
		}
	}
}

func handshake(ctx context.Context, addr string, session wire.SessionID) (*client, error) {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	context.AfterFunc(ctx, func() { _ = conn.Close() })
	c := &client{conn: conn, in: bufio.NewReader(conn)}
	q := &wire.ConnectRequest{TimeoutMS: sim.RecordedSessionMS, Session: session, Password: make([]byte, wire.PasswordLen), HasReadOnly: true}
	if session != 0 {
		p := session.Password()
		q.Password = p[:]
	}
	var r wire.ConnectResponse
	if err := c.exchange(wire.AppendFrame(nil, q), &r); err != nil {
		_ = conn.Close()
		return nil, err
	}
	if r.TimeoutMS <= 0 {
		return nil, fmt.Errorf("the server refuses session %v", session)
	}
	return c, nil
}

// exchange sends a frame, and decodes the beginning of the next one.
func (c *client) exchange(frame []byte, answer wire.Record) error {
	if _, err := c.conn.Write(frame); err != nil {
		return err
	}
	b, err := wire.ReadFrame(c.in, nil, wire.FrameMax)
	if err != nil {
		return err
	}
	d := wire.Decoder(b)
	answer.Code(&d)
	return d.Err()
}

// call sends a request and waits for its answer.
func (c *client) call(op wire.OpCode, records ...wire.Record) error {
	c.xid++
	var r wire.ReplyHeader
	err := c.exchange(wire.AppendFrame(nil, append([]wire.Record{&wire.RequestHeader{Xid: c.xid, Op: op}}, records...)...), &r)
	switch {
	case err != nil:
		return fmt.Errorf("%v: %w", op, err)
	case r.Err != wire.OK:
		return fmt.Errorf("%v: %w", op, r.Err)
	}
	return nil
}

func (c *client) create(path string) error {
	return c.call(wire.OpCreate2, &wire.CreateRequest{Path: path, Data: []byte("value"), ACL: wire.OpenACL()})
}

func (c *client) set(path string) error {
	return c.call(wire.OpSetData, &wire.SetDataRequest{Path: path, Data: []byte("value"), Version: -1})
}

// end closes the session.
func (c *client) end() error {
	defer c.conn.Close()
	return c.call(wire.OpCloseSession)
}
