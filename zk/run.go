package zk

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"time"

	"bellwether/wire"
)

const (
	// batchMax is about how many bytes of requests one write contains.
	batchMax = 64 << 10
	// pauseFirst and pauseMax bound the pause between two attempts to connect.
	// pauseLateMax replaces pauseMax when the session has probably expired, because the
	// client has had no connection for longer than the session timeout.
	pauseFirst   = 5 * time.Millisecond
	pauseMax     = time.Second
	pauseLateMax = 10 * time.Second
	// pingMax is the longest time between two pings.
	pingMax = 10 * time.Second
	// pingMin is the shortest interval that KeepAlive can set.
	pingMin = 5 * time.Millisecond
)

// Reasons why a link or the client ends, besides failures of the connection.
var (
	errSilent  = errors.New("the server was silent for two thirds of the session timeout")
	errLeaving = errors.New("moving to another server")
	errEnded   = errors.New("session closed")
	// errSessionOver is why a session ends of which no server has been asked again.
	errSessionOver = errors.New("the answer to a request says that the session is over")
)

// run is the client's own goroutine: it connects, writes while the link lives, and
// begins again, until the client is over.
func (c *Client) run(ctx context.Context) {
	defer close(c.done)
	for {
		l, err := c.connectAny(ctx)
		if err != nil {
			c.end(err)
			return
		}
		c.unlink(l, c.serve(ctx, l))
	}
}

// serve writes what is queued until the link ends, and returns why it did.
func (c *Client) serve(ctx context.Context, l *link) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stop := context.AfterFunc(ctx, func() { l.conn.Close() })
	defer stop()
	go l.receive(c)
	seeking := c.seekWritable(ctx, l)
	err := c.write(l)
	if isPlanned(err) {
		l.conn.Close()
	}
	// Read what the server sent before it closed the connection.
	l.conn.SetReadDeadline(time.Now().Add(drainTime))
	<-l.down
	cancel()
	l.conn.Close()
	<-seeking
	if isPlanned(err) || errors.Is(l.err, os.ErrDeadlineExceeded) {
		return err
	}
	return l.err
}

func isPlanned(err error) bool { return err == errLeaving || err == errEnded || err == errSilent }

// write is the writer's loop: one write for all that is queued.
func (c *Client) write(l *link) error {
	if err := l.conn.SetWriteDeadline(time.Now().Add(l.timeout)); err != nil {
		return err
	}
	out := l.first
	l.first = nil
	timer := time.NewTimer(0)
	defer timer.Stop()
	var more bool
	var err error
	for {
		if out, more, err = c.gather(l, out); err != nil {
			return err
		}
		if len(out) > 0 {
			if _, err = l.conn.Write(out); err != nil {
				return err
			}
			out = kept(out)
		}
		due, err := c.rest(l, timer, more)
		if err != nil {
			return err
		}
		if due {
			next, err := c.tick(l, &out)
			if err != nil {
				return err
			}
			timer.Reset(next)
		}
	}
}

// rest waits until there is something to write. It does not wait if there is something
// already. due says that a deadline may have passed. rest checks that first, so that a
// busy writer also sends its pings in time.
func (c *Client) rest(l *link, timer *time.Timer, more bool) (due bool, err error) {
	select {
	case <-timer.C:
		return true, nil
	default:
	}
	if more {
		return false, nil
	}
	select {
	case <-timer.C:
		return true, nil
	case <-c.wake:
		return c.paceChanged(), nil
	case <-l.down:
		return false, l.err
	}
}

// gather moves queued calls to the link, as many as fit into one write.
func (c *Client) gather(l *link, out []byte) (_ []byte, more bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.ended:
		return out, false, errEnded
	case c.sess.over:
		return out, false, ErrSessionExpired
	case l.leaving:
		if l.sent.head == nil && len(out) == 0 {
			err = errLeaving
		}
		return out, false, err
	}
	if k := c.askDelay(l); k != nil {
		c.queue.pushFront(k)
	}
	for k := c.queue.head; k != nil; k = c.queue.head {
		if len(out) >= batchMax {
			return out, true, nil
		}
		if k.watch != nil && l.adding > 0 && l.awaits(k.path, (*call).addsStream) {
			return out, false, nil // the answer decides whether the server must also watch for k
		}
		if over, err := c.isOverUnsent(l, k); over {
			c.finish(k, err)
			continue
		}
		c.queue.remove(k)
		c.dispatch(l, k)
		out = append(out, k.frame...)
	}
	return out, false, nil
}

// isOverUnsent reports whether a queued call need not or must not be sent on this link,
// and with which error it ends then.
func (c *Client) isOverUnsent(l *link, k *call) (bool, error) {
	switch {
	case l.support.denies(k.op):
		return true, ErrUnsupported
	case k.pin != 0 && k.pin != l.session:
		return true, ErrSessionExpired
	case k.op == wire.OpRemoveWatches: // requests after it set their watches again
		return c.watches.needed(k.path, k.removes) || l.awaits(k.path, (*call).setsWatch), nil
	}
	return false, nil
}

// dispatch numbers a call and puts it into the list in which the reader looks for it.
func (c *Client) dispatch(l *link, k *call) {
	k.session = l.session
	if k.op == wire.OpAuth {
		k.setXid(wire.XidAuth)
		l.auths.push(k)
		return
	}
	if k.watch != nil {
		k.setWatchFlag(!c.watches.covered(k))
	}
	if k.stream != nil {
		l.adding++
	}
	k.setXid(c.nextXid())
	l.sent.push(k)
}

// nextXid counts from 1, and from 1 again after the largest number.
func (c *Client) nextXid() int32 {
	if c.xid++; c.xid <= 0 {
		c.xid = 1
	}
	return c.xid
}

var pingHeader = wire.RequestHeader{Xid: wire.XidPing, Op: wire.OpPing}

// tick returns errSilent if the server has been silent for too long. If a ping is due, it
// appends one to out. It returns the time until the next call.
func (c *Client) tick(l *link, out *[]byte) (time.Duration, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	every, limit := c.pingEvery(), c.timeout()*2/3
	silence := l.silence()
	if silence >= limit {
		return 0, errSilent
	}
	now := time.Now()
	if err := l.conn.SetWriteDeadline(now.Add(every + limit)); err != nil {
		return 0, err
	}
	due := every - now.Sub(l.pinged)
	if due <= 0 {
		*out = wire.AppendFrame(*out, &pingHeader)
		l.pings = append(l.pings, now)
		l.pinged = now
		due = every
	}
	return min(due, limit-silence), nil
}

// unlink takes the calls of a dead link back. Calls that can be sent again are queued in
// their old order, before everything else.
func (c *Client) unlink(l *link, cause error) {
	if cause != errLeaving && !c.isOver() {
		c.opt.Logger.Warn("connection lost", "server", l.address.String(), "session", l.session.String(), "err", cause)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.link = nil
	c.lastLink = time.Now()
	if time.Since(l.began) > l.timeout {
		c.expiries = 0
	}
	if c.fatal == nil && !c.ended && !c.sess.over {
		l.support.suspectOldest(l.sent.head)
	}
	for k := l.sets.head; k != nil; k = l.sets.head {
		c.drop(k)
	}
	c.takeBack(&l.sent, l, cause)
	c.takeBack(&l.auths, l, cause)
	if cause == errLeaving {
		cause = nil
	}
	c.setStatus(Status{State: Connecting, Err: cause})
}

// isOver reports whether the client is over, so that the end of a connection is
// expected.
func (c *Client) isOver() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ended || c.killed
}

// takeBack empties a list of unanswered calls. It begins at the end, so that the calls
// that it puts at the front of the queue keep their order.
func (c *Client) takeBack(list *callList, l *link, cause error) {
	for k := list.tail; k != nil; k = list.tail {
		k.tries++
		switch {
		case k.then != nil && k.op != wire.OpCloseSession:
			c.drop(k)
		case k.write, k.left:
			c.finish(k, k.fate(cause))
		case k.op != wire.OpCloseSession && (k.tries >= readTriesMax || l.support.doubts(k.op)):
			c.finish(k, &readLostError{cause})
		default:
			list.remove(k)
			c.queue.pushFront(k)
		}
	}
}

// readLostError says that a read was not answered and is not sent again: it was sent
// readTriesMax times, or the server may not know the operation.
type readLostError struct{ cause error }

func (e *readLostError) Error() string {
	return wire.ErrConnectionLoss.Error() + " while waiting for the answer: " + e.cause.Error()
}

func (e *readLostError) Unwrap() []error { return []error{ErrConnectionLoss, e.cause} }

// drop discards a call that the client itself has made.
func (c *Client) drop(k *call) {
	k.in.remove(k)
	c.waiting--
	k.free()
}

// expire ends the session on this side, after a server has said that it is over. All
// waiting calls, watches and streams belong to the session and end with it. expire
// returns an error if the client must not open another session.
func (c *Client) expire(reason error) error {
	if c.endIfClosing() {
		return errEnded
	}
	c.opt.Logger.Warn("session expired", "session", c.Session().ID.String(), "err", reason)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.failQueue(ErrSessionExpired)
	c.watches.endAll(ErrSessionExpired)
	c.setStatus(Status{State: Expired, Err: reason})
	c.sess = session{}
	c.lease = Lease{}
	c.zxidSeen, c.zxidAnswered = 0, 0
	c.failures = 0
	if c.opt.OneSession {
		c.over = ErrSessionExpired
		return ErrSessionExpired
	}
	c.setStatus(Status{State: Connecting})
	return nil
}

// expireAnswered ends the session if an answer has said that it is over. It returns an error if the client must not open another one.
func (c *Client) expireAnswered() error {
	c.mu.Lock()
	over := c.sess.over
	if over {
		c.expiries++
	}
	c.mu.Unlock()
	if !over {
		return nil
	}
	return c.expire(errSessionOver)
}

// endIfClosing ends a client that is closing and whose session is over: a closing client
// waits only for the end of its session. It reports whether the client is closing.
func (c *Client) endIfClosing() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ended = c.ended || c.closing
	return c.closing
}

// failQueue ends all calls that were not sent.
func (c *Client) failQueue(err error) {
	for k := c.queue.head; k != nil; k = c.queue.head {
		c.finish(k, err)
	}
}

// end is the last step of a client; err says why it ends.
func (c *Client) end(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	state := Closed
	switch {
	case c.closing:
		err = ErrClosed
	case errors.Is(err, ErrSessionExpired):
		state = Expired
	default:
		state, err = AuthFailed, &authError{err}
	}
	c.over = err
	c.failQueue(err)
	c.watches.endAll(err)
	c.lease = Lease{}
	if state != Closed && c.status.State != state {
		c.setStatus(Status{State: state, Err: err})
	}
}

// authError is an ErrAuthFailed with its reason.
type authError struct{ reason error }

func (e *authError) Error() string   { return ErrAuthFailed.Error() + ": " + e.reason.Error() }
func (e *authError) Unwrap() []error { return []error{ErrAuthFailed, e.reason} }

// pause waits before an attempt to connect. The more attempts have failed since the
// session was last confirmed, or for a new session the more of them have ended soon, the
// longer it waits. The time is random, so that many clients do not connect at the same moment.
func (c *Client) pause(ctx context.Context) error {
	c.mu.Lock()
	expiries := c.expiries
	if c.sess.ID != 0 {
		expiries = 0 // the session lives
	}
	limit := pauseMax
	if expiries > 0 || time.Since(c.lastLink) > c.timeout() {
		limit = pauseLateMax
	}
	passes := min(c.failures/len(c.servers)+expiries, 10)
	first := c.failures == 0 && expiries == 0 && c.sess.ID == 0
	spread := min(pauseFirst<<passes, limit, max(c.timeout()/20<<passes, time.Millisecond))
	c.mu.Unlock()
	if first {
		return ctx.Err()
	}
	timer := time.NewTimer(rand.N(spread))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
