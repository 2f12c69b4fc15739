package zk

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"time"

	"bellwether/wire"
)

// connectTimeMin is the least time that one attempt to connect gets, unless the session
// timeout is shorter.
const connectTimeMin = time.Second

// errNoConn says that the function Options.Dial is wrong.
var errNoConn = errors.New("Options.Dial returned neither a connection nor an error")

// errBehind says that the server closed the connection instead of answering.
var errBehind = errors.New("the server closed the connection during the handshake: it has no quorum, is read-only, takes no more connections from this address, is behind what this client has seen, or its port is for TLS")

// errReadOnly says that the server is read-only and the options do not accept such a server.
var errReadOnly = errors.New("the server is read-only, because it has no quorum or its disk is full: set Options.ReadOnly to read from it")

// errNoSession says that the server opens no new session. No existing session has ended.
var errNoSession = errors.New("the server refuses to open a session")

// errInterrupted ends an attempt to connect when Close or Detach is called. Close then
// makes a new attempt, to end the session.
var errInterrupted = errors.New("interrupted by Close")

// refusedError says that a server has reported the session as over.
type refusedError struct{ reason string }

func (e *refusedError) Error() string { return e.reason }

// credentialError says that the server does not accept the client's credentials.
type credentialError struct {
	scheme string
	err    error
}

func (e *credentialError) Error() string { return "credentials of " + e.scheme + ": " + e.err.Error() }
func (e *credentialError) Unwrap() error { return e.err }

// isFinal reports whether every other server would give the same answer.
func isFinal(err error) bool {
	var refused *refusedError
	var failed *credentialError
	return errors.As(err, &refused) || errors.As(err, &failed)
}

// connectAny tries the servers in turn until a session is attached. An error ends the
// client.
func (c *Client) connectAny(ctx context.Context) (*link, error) {
	for {
		if err := c.verdict(); err != nil {
			return nil, err
		}
		if err := c.expireAnswered(); err != nil {
			return nil, err
		}
		if err := c.pause(ctx); err != nil {
			return nil, err
		}
		l, err := c.attempt(ctx, c.nextServer())
		switch {
		case err == nil:
			return l, nil
		case err == errInterrupted:
			continue
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

// verdict returns why the client must not connect again, nil if it may.
func (c *Client) verdict() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended {
		return errEnded
	}
	return c.fatal
}

// nextServer returns the preferred server if there is one, otherwise the next in turn.
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

// attachment is a link whose server has answered the handshake.
type attachment struct {
	*link
	resp  wire.ConnectResponse
	sent  time.Time // when the handshake was sent
	fresh bool      // the handshake opened a new session
}

// drop closes an attachment that came too late.
func (a *attachment) drop() {
	if a.fresh {
		hangUp(a.conn)
	}
	a.conn.Close()
}

// attempt runs connectOnce on a goroutine of its own, because a function of the options
// that it calls may close the client, or ignore its context. A connection that is
// attached only after the end of the context is closed. Close and Detach interrupt an
// attempt, so that Close can make another one to end the session.
func (c *Client) attempt(ctx context.Context, s server) (*link, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var ending <-chan struct{}
	c.mu.Lock()
	if !c.closing {
		ending = c.ending
	}
	c.mu.Unlock()
	type outcome struct {
		*attachment
		err error
	}
	came := make(chan outcome)
	c.tidying.Go(func() {
		a, err := c.connectOnce(ctx, s)
		select {
		case came <- outcome{a, err}:
		case <-ctx.Done():
			if a != nil {
				a.drop()
			}
		}
	})
	select {
	case o := <-came:
		if o.err != nil {
			return nil, o.err
		}
		c.attached(o.link, o.resp, o.sent)
		return o.link, nil
	case <-ending:
		return nil, errInterrupted
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// connectOnce tries all addresses of one server.
func (c *Client) connectOnce(ctx context.Context, s server) (*attachment, error) {
	lookup, cancel := context.WithTimeout(ctx, c.connectTime(1))
	addresses, err := c.resolve(lookup, s)
	cancel()
	if err == nil && len(addresses) == 0 {
		err = errors.New("no addresses")
	}
	if err != nil {
		return nil, fmt.Errorf("server %s: %w", s, err)
	}
	limit := c.connectTime(len(addresses))
	for _, a := range addresses {
		var got *attachment
		if got, err = c.attach(ctx, s, a, limit); err == nil {
			return got, nil
		}
		if isFinal(err) || ctx.Err() != nil {
			break
		}
	}
	return nil, err
}

// connectTime returns how long one attempt may take if the server has this many
// addresses. The addresses of all servers share the session timeout. An attempt to
// continue a session gets at most a third of the timeout: that much is left when the
// client notices that a server is silent, and one server that accepts the connection but
// never answers, as a starting server may do, must not use up all of it. Each attempt
// gets at least connectTimeMin.
func (c *Client) connectTime(addresses int) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	t, n := c.timeout(), len(c.servers)*addresses
	if c.sess.ID != 0 {
		n = max(n, 3)
	}
	return max(t/time.Duration(n), min(t, connectTimeMin))
}

// dialUntil dials as dial does. Until stop is called, the end of the context also ends
// every read and write of the connection. stop returns false if the context had ended
// first.
func (c *Client) dialUntil(ctx context.Context, a address) (conn net.Conn, stop func() bool, err error) {
	if conn, err = c.dial(ctx, a); err != nil {
		return nil, nil, err
	}
	if err = ctx.Err(); err != nil { // Options.Dial may ignore its context
		conn.Close()
		return nil, nil, err
	}
	return conn, context.AfterFunc(ctx, func() { conn.SetDeadline(time.Unix(1, 0)) }), nil
}

// attach dials one address and resumes or opens the session there.
func (c *Client) attach(ctx context.Context, s server, a address, limit time.Duration) (*attachment, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	conn, stop, err := c.dialUntil(ctx, a)
	if err != nil {
		return nil, fmt.Errorf("server %s: %w", a, err)
	}
	l := newLink(conn, s, a)
	sent := time.Now()
	resp, fresh, err := c.handshake(ctx, l)
	if !stop() && err == nil {
		err = ctx.Err()
	}
	if err != nil {
		conn.Close()
		return nil, fmt.Errorf("server %s: %w", a, err)
	}
	return &attachment{l, resp, sent, fresh}, nil
}

// handshake exchanges the first frames.
func (c *Client) handshake(ctx context.Context, l *link) (resp wire.ConnectResponse, fresh bool, err error) {
	login, err := c.beginSASL(ctx, l)
	if err != nil {
		return resp, false, err
	}
	req := c.connectRequest()
	resp, err = greet(l.conn, l.r, &req)
	switch {
	case err != nil:
	case resp.TimeoutMS <= 0 && req.Session == 0:
		err = errNoSession
	case resp.TimeoutMS <= 0:
		err = &refusedError{fmt.Sprintf("the server refuses session %s", req.Session)}
	case req.Session != 0 && resp.Session != req.Session:
		hangUp(l.conn)
		err = &refusedError{fmt.Sprintf("the server gave session %s in place of %s", resp.Session, req.Session)}
	case resp.ReadOnly && !c.opt.ReadOnly:
		err = errReadOnly
	}
	if err == nil {
		err = c.exchangeSASL(l, login)
	}
	if err == nil {
		err = c.showCredentials(l)
	}
	return resp, req.Session == 0, err
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
	// If the session was attached only to read-only servers, one of them has made it for
	// itself, and no other server knows it. The client then asks for a new session.
	if c.sess.writable {
		req.Session, req.Password = c.sess.ID, c.sess.Password
	}
	return req
}

// greet sends a ConnectRequest and reads the answer. If the server closes the connection
// instead of answering, the error is errBehind.
func greet(conn io.Writer, r *bufio.Reader, req *wire.ConnectRequest) (resp wire.ConnectResponse, err error) {
	if _, err = conn.Write(wire.AppendFrame(nil, req)); err != nil {
		return resp, err
	}
	if isTLS(r) {
		return resp, errSpeaksTLS
	}
	frame, err := wire.ReadFrame(r, nil, smallFrameMax)
	switch {
	case err == io.EOF:
		return resp, errBehind
	case err != nil:
		return resp, err
	}
	if err = wire.Decode(frame, &resp); err != nil {
		err = protocolErrorf("answer to the handshake: %v", err)
	}
	return resp, err
}

// isTLS reports whether the server has sent an alert of TLS, whose first bytes no frame
// has.
func isTLS(r *bufio.Reader) bool {
	const alert, version = 0x15, 0x03
	b, err := r.Peek(2)
	return err == nil && b[0] == alert && b[1] == version
}

// hangUp closes a session that was opened on an unwanted connection.
func hangUp(conn io.Writer) {
	conn.Write(wire.AppendFrame(nil, &wire.RequestHeader{Xid: 1, Op: wire.OpCloseSession}))
}

// attached makes l the client's link: there is a session now.
func (c *Client) attached(l *link, resp wire.ConnectResponse, sent time.Time) {
	defer c.opt.Logger.Info("connected", "server", l.address.String(), "session", resp.Session.String(),
		"timeout", time.Duration(resp.TimeoutMS)*time.Millisecond, "readonly", resp.ReadOnly)
	c.mu.Lock()
	defer c.mu.Unlock()
	timeout := time.Duration(resp.TimeoutMS) * time.Millisecond
	if c.sess.ID != resp.Session {
		c.sess = session{}
	}
	c.sess.ID, c.sess.Password = resp.Session, slices.Clone(resp.Password)
	c.sess.granted = timeout
	if c.sess.Timeout == 0 || timeout < c.sess.Timeout {
		c.sess.Timeout = timeout
	}
	l.session, l.timeout, l.readOnly = resp.Session, timeout, resp.ReadOnly
	l.support = c.supportOf(l.address)
	l.leaving = !slices.Contains(c.servers, l.server) // SetServers was called meanwhile
	l.delay = c.opt.LeaseDelay
	c.link, c.lastLink, c.lastErr = l, time.Now(), nil
	c.failures++ // reset when the first ping is answered
	c.prime(l)
	state := ReadOnly
	if !resp.ReadOnly {
		state = Connected
		c.sess.writable = true
		c.confirm(l, sent)
	}
	c.setStatus(Status{State: state, Session: resp.Session, Timeout: timeout, Server: l.address.String()})
}

// showCredentials sends the stored credentials to the server, and waits until it has
// accepted all of them.
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
			return protocolErrorf("got an answer with xid %d instead of the answer to AddAuth", h.Xid)
		}
		if h.Err != wire.OK {
			return &credentialError{a.Scheme, h.Err}
		}
	}
	return nil
}

// prime prepares what a new link sends first: the requests that set the watches again. The
// caller holds the lock, and only then says that the client is connected. So a stream that is
// made on this link does not hear that it may have missed events.
func (c *Client) prime(l *link) {
	c.watches.again(l, c.zxidAnswered, func(op OpCode, req wire.Record) {
		k := c.ownCall(op, req, c.watchesAnswered)
		k.setXid(wire.XidSetWatches)
		l.sets.push(k)
		l.first = append(l.first, k.frame...)
	})
}

// watchesAnswered is called with the answer to each request that set watches again.
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
