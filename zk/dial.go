package zk

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"bellwether/wire"
)

// connectTimeMin is the least time one attempt to connect gets.
const connectTimeMin = time.Second

// errBehind: the server closed the connection in place of an answer.
var errBehind = errors.New("the server closed the connection during the handshake: it has no quorum, is read-only, or is behind what this client has seen")

// refusedError: the server says that the session is over.
type refusedError struct{ reason string }

func (e *refusedError) Error() string { return e.reason }

// credentialError: the server does not accept who we are.
type credentialError struct {
	scheme string
	err    error
}

func (e *credentialError) Error() string { return "credentials of " + e.scheme + ": " + e.err.Error() }
func (e *credentialError) Unwrap() error { return e.err }

// isFinal: no other server would answer otherwise.
func isFinal(err error) bool {
	var refused *refusedError
	var failed *credentialError
	return errors.As(err, &refused) || errors.As(err, &failed)
}

// connectAny tries the servers in turn until a session is attached. An error
// is the end of the client.
func (c *Client) connectAny(ctx context.Context) (*link, error) {
	for {
		if err := c.verdict(); err != nil {
			return nil, err
		}
		if err := c.pause(ctx); err != nil {
			return nil, err
		}
		l, err := c.connectOnce(ctx, c.nextServer())
		if err == nil {
			return l, nil
		}
		if refused := (*refusedError)(nil); errors.As(err, &refused) {
			if err := c.expire(err); err != nil {
				return nil, err
			}
			continue
		}
		if isFinal(err) {
			return nil, err
		}
		c.noteFailure(err)
	}
}

// verdict is why the client shall not connect again, if it shall not.
func (c *Client) verdict() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended {
		return errEnded
	}
	return c.fatal
}

// nextServer is the preferred server if there is one, else the next in turn.
func (c *Client) nextServer() server {
	c.mu.Lock()
	defer c.mu.Unlock()
	if p := c.prefer; p != nil {
		c.prefer = nil
		return *p
	}
	c.turn++
	return c.servers[c.turn%len(c.servers)]
}

func (c *Client) noteFailure(err error) {
	c.mu.Lock()
	c.failures++
	c.lastErr = err
	c.mu.Unlock()
	c.opt.Logger.Info("cannot connect", "err", err)
}

// connectOnce tries all addresses of one server.
func (c *Client) connectOnce(ctx context.Context, s server) (*link, error) {
	limit := c.connectTime()
	lookup, cancel := context.WithTimeout(ctx, limit)
	addresses, err := c.resolve(lookup, s)
	cancel()
	if err != nil {
		return nil, fmt.Errorf("server %s: %w", s, err)
	}
	err = fmt.Errorf("server %s: no addresses", s)
	for _, a := range addresses {
		var l *link
		if l, err = c.attach(ctx, s, a, limit); err == nil {
			return l, nil
		}
		if isFinal(err) || ctx.Err() != nil {
			break
		}
	}
	return nil, err
}

// connectTime is how long one attempt may take: the servers share the
// session's timeout.
func (c *Client) connectTime() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := c.timeout()
	return max(t/time.Duration(len(c.servers)), min(t, connectTimeMin))
}

// attach dials one address and resumes or opens the session there.
func (c *Client) attach(ctx context.Context, s server, a address, limit time.Duration) (*link, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	conn, err := c.dial(ctx, a)
	if err != nil {
		return nil, fmt.Errorf("server %s: %w", a, err)
	}
	stop := context.AfterFunc(ctx, func() { conn.SetDeadline(time.Unix(1, 0)) })
	l := &link{conn: conn, r: bufio.NewReaderSize(conn, readBufferSize), server: s, address: a, down: make(chan struct{})}
	if err = c.handshake(ctx, l); err == nil && !stop() {
		err = ctx.Err()
	}
	if err == nil {
		return l, nil
	}
	stop()
	conn.Close()
	return nil, fmt.Errorf("server %s: %w", a, err)
}

// handshake exchanges the first frames and makes l the client's link.
func (c *Client) handshake(ctx context.Context, l *link) error {
	req := c.connectRequest()
	sent := time.Now()
	resp, err := greet(l.conn, l.r, &req)
	if err != nil {
		return err
	}
	if resp.TimeoutMS <= 0 {
		return &refusedError{fmt.Sprintf("the server refuses session %s", req.Session)}
	}
	if req.Session != 0 && resp.Session != req.Session {
		hangUp(l.conn)
		return &refusedError{fmt.Sprintf("the server gave session %s in place of %s", resp.Session, req.Session)}
	}
	if resp.ReadOnly && !c.opt.ReadOnly {
		return errBehind
	}
	if err := c.exchangeSASL(ctx, l); err != nil {
		return err
	}
	if err := c.showCredentials(l); err != nil {
		return err
	}
	c.attached(l, resp, sent)
	c.opt.Logger.Info("connected", "server", l.address.String(), "session", resp.Session.String(),
		"timeout", time.Duration(resp.TimeoutMS)*time.Millisecond, "readonly", resp.ReadOnly)
	return nil
}

func (c *Client) connectRequest() wire.ConnectRequest {
	c.mu.Lock()
	defer c.mu.Unlock()
	req := wire.ConnectRequest{
		LastZxidSeen: c.zxidSeen,
		TimeoutMS:    int32(min(c.opt.SessionTimeout.Milliseconds(), 1<<31-1)),
		Password:     make([]byte, wire.PasswordLen),
		ReadOnly:     c.opt.ReadOnly,
		HasReadOnly:  true,
	}
	// A session that only read-only servers know is local to one of them.
	if c.sess.writable {
		req.Session, req.Password = c.sess.ID, c.sess.Password
	}
	return req
}

// greet sends a ConnectRequest and reads its answer. A connection that is
// closed in its place is errBehind.
func greet(conn io.Writer, r *bufio.Reader, req *wire.ConnectRequest) (resp wire.ConnectResponse, err error) {
	if _, err = conn.Write(wire.AppendFrame(nil, req)); err != nil {
		return resp, err
	}
	frame, err := wire.ReadFrame(r, nil, smallFrameMax)
	if err == io.EOF {
		err = errBehind
	}
	if err != nil {
		return resp, err
	}
	if err = wire.Decode(frame, &resp); err != nil {
		err = protocolErrorf("answer to the handshake: %v", err)
	}
	return resp, err
}

// hangUp closes the session that stands on a connection nobody wants.
func hangUp(conn io.Writer) {
	conn.Write(wire.AppendFrame(nil, &wire.RequestHeader{Xid: 1, Op: wire.OpCloseSession}))
}

// attached makes l the client's link: the session stands.
func (c *Client) attached(l *link, resp wire.ConnectResponse, sent time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	timeout := time.Duration(resp.TimeoutMS) * time.Millisecond
	if c.sess.ID != resp.Session {
		c.sess = session{smallest: timeout}
	}
	c.sess.ID, c.sess.Password = resp.Session, append([]byte(nil), resp.Password...)
	c.sess.timeout = timeout
	c.sess.smallest = min(c.sess.smallest, timeout)
	if c.sess.smallest == 0 {
		c.sess.smallest = timeout // resumed: what it had before is not known
	}
	l.session, l.timeout, l.readOnly = resp.Session, timeout, resp.ReadOnly
	l.support = c.supportOf(l.address)
	l.delay = c.opt.LeaseDelay
	l.heard.Store(int64(c.elapsed()))
	c.link, c.lastLink, c.lastErr = l, c.elapsed(), nil
	c.failures++ // until the first ping is answered
	state := ReadOnly
	if !resp.ReadOnly {
		state = Connected
		c.sess.writable = true
		c.confirm(l, sent)
	}
	c.setStatus(Status{State: state, Session: resp.Session, Timeout: timeout, Server: l.address.String()})
}

// showCredentials gives the stored credentials to the server, and waits until
// it has accepted all of them.
func (c *Client) showCredentials(l *link) error {
	c.mu.Lock()
	creds := slices.Clone(c.creds)
	c.mu.Unlock()
	if len(creds) == 0 {
		return nil
	}
	var out []byte
	h := wire.RequestHeader{Xid: wire.XidAuth, Op: wire.OpAuth}
	for _, a := range creds {
		out = wire.AppendFrame(out, &h, &wire.AuthRequest{Scheme: wire.Text(a.Scheme), Auth: a.Data})
	}
	if _, err := l.conn.Write(out); err != nil {
		return err
	}
	for _, a := range creds {
		frame, err := wire.ReadFrame(l.r, nil, smallFrameMax)
		if err != nil {
			return err
		}
		var h wire.ReplyHeader
		if err := wire.Decode(frame, &h); err != nil || h.Xid != wire.XidAuth {
			return protocolErrorf("xid %d in place of an answer to a credential", h.Xid)
		}
		if h.Err != wire.OK {
			return &credentialError{a.Scheme, h.Err}
		}
	}
	return nil
}

// prime is what a new link sends first: its watches.
func (c *Client) prime(l *link) []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out []byte
	c.watches.again(l, c.zxidAnswered, func(op wire.OpCode, req wire.Record) {
		k := c.newCall(op)
		k.then = c.watchesAnswered
		if err := k.encode(req); err != nil {
			panic(fmt.Sprintf("zk: own request %v cannot be encoded: %v", op, err))
		}
		k.setXid(wire.XidSetWatches)
		c.waiting++
		l.sets.push(k)
		out = append(out, k.frame...)
	})
	return out
}

// watchesAnswered is called for each batch of watches that was set again.
func (c *Client) watchesAnswered(k *call) {
	if k.err != nil || k.header.Err == wire.OK {
		return
	}
	if k.op == wire.OpSetWatches2 && k.header.Err == wire.ErrUnimplemented {
		c.watches.endStreams(ErrUnsupported)
		return
	}
	if k.header.Err == wire.ErrSessionClosedRequireAuth {
		c.fatal = k.header.Err
	}
}
