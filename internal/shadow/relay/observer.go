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
	conn   net.Conn
	r      *bufio.Reader
	xid    int32
	idle   time.Duration     // after which the session should be used or closed
	ctx    func() bool       // stops watching the context
	proved int               // how many auth packets were sent
	zxid   wire.Zxid         // of the last answer
	events []shadow.Observed // which nobody has taken
}

// openObserver opens a session with an identity. When ctx ends, the connection is closed.
func (r *Relay) openObserver(ctx context.Context, who shadow.Identity) (*observer, error) {
	store, err := storeFor(r.opt.ObserverTLS, who.Subject)
	if err != nil {
		return nil, err
	}
	conn, err := r.dial(ctx, r.opt.Observer, store)
	if err != nil {
		return nil, err
	}
	o := &observer{conn: conn, r: bufio.NewReader(conn)}
	o.ctx = context.AfterFunc(ctx, func() { conn.Close() })
	if err = o.handshake(); err == nil {
		err = o.identify(who.Credentials)
	}
	if err != nil {
		o.drop()
		return nil, err
	}
	return o, nil
}

func (o *observer) handshake() error {
	if err := o.send(&wire.ConnectRequest{TimeoutMS: sessionMS, Password: make([]byte, wire.PasswordLen), HasReadOnly: true}); err != nil {
		return err
	}
	b, err := wire.ReadFrame(o.r, nil, answerMax)
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

// identify sends those auth packets of a client that it has not sent before.
func (o *observer) identify(credentials []shadow.Credential) error {
	for _, c := range credentials[o.proved:] {
		err := o.send(&wire.RequestHeader{Xid: wire.XidAuth, Op: wire.OpAuth}, &wire.AuthRequest{Scheme: wire.Text(c.Scheme), Auth: c.Auth})
		if err != nil {
			return err
		}
		h, _, err := o.receive(wire.XidAuth)
		if err != nil {
			return err
		}
		if h.Err != wire.OK {
			return fmt.Errorf("scheme %q: %w: %w", c.Scheme, errIdentity, h.Err)
		}
		o.proved++
	}
	return nil
}

// ask sends a request and returns its answer. The caller must only ask what changes nothing.
func (o *observer) ask(op wire.OpCode, body wire.Record) (wire.ReplyHeader, []byte, error) {
	o.xid++
	records := []wire.Record{&wire.RequestHeader{Xid: o.xid, Op: op}}
	if body != nil {
		records = append(records, body)
	}
	if err := o.send(records...); err != nil {
		return wire.ReplyHeader{}, nil, err
	}
	return o.receive(o.xid)
}

// send sends a frame. The answer must come within askTimeout.
func (o *observer) send(records ...wire.Record) error {
	if err := o.conn.SetDeadline(time.Now().Add(askTimeout)); err != nil {
		return err
	}
	_, err := o.conn.Write(wire.AppendFrame(nil, records...))
	return err
}

// receive returns the next answer, and keeps the watch events before it.
func (o *observer) receive(xid int32) (wire.ReplyHeader, []byte, error) {
	for {
		var h wire.ReplyHeader
		b, err := wire.ReadFrame(o.r, nil, answerMax)
		if err != nil {
			return h, nil, err
		}
		c := wire.Decoder(b)
		h.Code(&c)
		switch {
		case c.Err() != nil:
			return h, nil, c.Err()
		case h.Xid == wire.XidEvent:
			if err := o.event(h.Zxid, c.Rest()); err != nil {
				return h, nil, err
			}
		case h.Xid != xid:
			return h, nil, fmt.Errorf("answer with xid %d, want %d", h.Xid, xid)
		default:
			o.zxid = max(o.zxid, h.Zxid)
			return h, c.Rest(), nil
		}
	}
}

// eventsMax is how many events of the observer wait until they are compared.
const eventsMax = 1 << 17

func (o *observer) event(z wire.Zxid, body []byte) error {
	e := shadow.Observed{Zxid: z}
	if err := wire.Decode(body, &e.WatcherEvent); err != nil {
		return err
	}
	if len(o.events) == eventsMax {
		return errors.New("too many watch events")
	}
	o.events = append(o.events, e)
	return nil
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
