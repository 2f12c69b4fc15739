package zk

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"bellwether/internal/inorder"
	"bellwether/wire"
)

// closeTimeMin is how long Close tries to end the session even if its context has ended.
const closeTimeMin = time.Second

// functionTime is how long Close waits for functions of the options that still run, once
// all else has ended. It must not wait for ever, because one of these functions may have
// called Close.
const functionTime = 100 * time.Millisecond

// Client is a session with an ensemble. All its methods may be called from any
// goroutine.
type Client struct {
	opt     Options
	chroot  string                      // empty, or a path without a slash at its end
	kill    context.CancelFunc          // ends run and the clean-ups at once
	done    chan struct{}               // closed when run has returned
	retired chan struct{}               // closed when the functions given to OnClose have returned
	wake    chan struct{}               // capacity 1: the writer has something to do
	clean   func(func(context.Context)) // runs a clean-up in the background
	tidying sync.WaitGroup              // waits for clean-ups and for attempts to connect
	logs    inorder.Queue               // calls of the Logger and of Hooks.StateChanged
	ending  chan struct{}               // closed when Close or Detach is called
	calls   sync.Pool                   // reusable values of type *call

	tlsFiles tlsFiles

	mu       sync.Mutex
	status   Status
	sess     session
	lease    Lease
	link     *link // nil while there is no connection
	queue    callList
	waiting  int // number of calls in all lists
	xid      int32
	watches  watches
	creds    []Auth
	paces    []*time.Duration // intervals of KeepAlive
	paced    bool             // paces has changed since the writer last used it
	supports map[address]*support

	servers  []server
	turn     int
	prefer   *server   // the server to try next
	failures int       // attempts since the session was last confirmed
	lastErr  error     // error of the last attempt
	lastLink time.Time // when the client last had a link; before the first link, when Open was called

	zxidSeen     Zxid // largest zxid in answers and events
	zxidAnswered Zxid // largest zxid in answers: all events up to it have arrived

	onClose  []*func() // functions given to OnClose, in order
	closing  bool
	killed   bool
	ended    bool  // the session has ended, or the server has confirmed closeSession
	fatal    error // set when the server refuses the credentials
	expiries int   // how many sessions in a row an answer has called over soon after they were attached
	over     error // the error of all calls once run is ending
}

// session holds what the client knows about its session, except the Zxid, which is
// Client.zxidSeen.
type session struct {
	Session
	granted  time.Duration // the timeout at the last attachment; 0 before the first one
	writable bool          // attached at least once to a server with a quorum
	over     bool          // an answer has said that the session is over
}

// Connect opens a client and waits until it has a session. servers is a list of
// host:port pairs, separated by commas. The default port is 2181; IPv6 addresses are in
// brackets; a name that begins with an underscore is looked up as an SRV record. A path
// behind the last pair is the root (chroot) of all the client's paths; Connect does not
// create it. If ctx ends before there is a session, Connect closes the client and returns
// an error. Client.Lease says how long the session is sure to live.
func Connect(ctx context.Context, servers string, o *Options) (*Client, error) {
	c, err := Open(servers, o)
	if err != nil {
		return nil, err
	}
	for s := range c.States(ctx) {
		switch s.State {
		case Connected, ReadOnly:
			if c.awaitDelay(ctx, s) {
				return c, nil
			}
		case AuthFailed:
			err = s.Err
		case Expired:
			if c.opt.OneSession {
				err = ErrSessionExpired
			}
		}
		if err != nil {
			break
		}
	}
	if err == nil {
		err = c.whyNot(ctx)
	}
	c.stop()
	return nil, fmt.Errorf("connect to %s: %w", servers, err)
}

// whyNot returns the reason why there is no session, as far as the client knows it.
func (c *Client) whyNot(ctx context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.lastErr != nil {
		return fmt.Errorf("%w (last attempt: %w)", ctx.Err(), c.lastErr)
	}
	return ctx.Err()
}

// Open is Connect without the wait: the client's calls wait for the session instead. It
// returns an error only for arguments that are wrong.
func Open(servers string, o *Options) (*Client, error) {
	list, chroot, err := parseServers(servers)
	if err != nil {
		return nil, err
	}
	if o != nil && o.FollowMembers && (o.TLS != nil || o.TLSFiles != nil || o.TLSConfig != nil) {
		return nil, errNoTLSPorts
	}
	shuffle(list)
	c := &Client{
		opt: o.withDefaults(), chroot: chroot, servers: list, lastLink: time.Now(),
		done: make(chan struct{}), retired: make(chan struct{}), ending: make(chan struct{}), wake: make(chan struct{}, 1),
		supports: make(map[address]*support),
	}
	if o != nil && o.Logger != nil {
		c.logs.Missed = tellMissed(o.Logger.Handler())
		c.opt.Logger = slog.New(queuedHandler{o.Logger.Handler(), &c.logs})
	}
	c.creds = slices.Clone(c.opt.Auth)
	c.sess = session{Session: c.opt.Resume, writable: c.opt.Resume.ID != 0}
	c.zxidSeen = c.opt.Resume.Zxid
	c.watches.init()
	c.setStatus(Status{State: Connecting})
	ctx, kill := context.WithCancel(context.Background())
	c.kill = kill
	c.clean = func(f func(context.Context)) {
		c.tidying.Go(func() { f(ctx) })
	}
	go c.run(ctx)
	if c.opt.FollowMembers {
		c.clean(c.followMembers)
	}
	return c, nil
}

// setStatus makes a transition to the next status. Nothing follows Closed, although a
// closing client may connect once more to end its session. Client.mu is held.
func (c *Client) setStatus(s Status) {
	if c.status.State == Closed {
		return
	}
	s.Since = time.Now()
	if s.Session == 0 {
		s.Session, s.Timeout = c.sess.ID, c.sess.granted
	}
	s.link = &transition{changed: make(chan struct{})}
	before := c.status.link
	c.status = s
	if before != nil {
		before.next = s
		close(before.changed)
	}
	if h := c.opt.Hooks; h != nil {
		c.logs.Add(func() { h.StateChanged(s) })
	}
}

// timeout returns the negotiated session timeout, or the requested one before there is a
// session.
func (c *Client) timeout() time.Duration {
	if c.sess.granted > 0 {
		return c.sess.granted
	}
	return c.opt.SessionTimeout
}

func (c *Client) wakeWriter() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// Close ends the session, which deletes its ephemeral znodes, and then the client.
// Before Close tells a server, it sets the status to Closed, ends the lease and calls the
// functions given to OnClose. Calls that wait are answered while the connection lasts.
// Close waits for the server's answer until ctx or the session's timeout ends; if ctx has
// ended already it waits for one second. An error means that the session may live until
// it expires. Further calls of Close return nil. Functions of the Options may call Close
// and Detach; functions given to OnClose must not.
func (c *Client) Close(ctx context.Context) error {
	limit := c.beginClose()
	least := time.NewTimer(min(closeTimeMin, limit))
	defer least.Stop()
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	var err error
	select {
	case <-c.done:
	case <-ctx.Done():
		select {
		case <-c.done:
		case <-least.C:
			err = c.whyNot(ctx)
		}
	}
	c.stop()
	if err != nil {
		return &OpError{Op: wire.OpCloseSession.String(), Err: fmt.Errorf("it is not known whether the server has ended the session; if not, the session expires: %w", err)}
	}
	return nil
}

// beginClose queues the request that ends the session, once, and returns how long it may
// take.
func (c *Client) beginClose() time.Duration {
	usable := c.retire()
	c.mu.Lock()
	defer c.mu.Unlock()
	limit := c.timeout()
	if !usable {
		return limit
	}
	if c.sess.ID == 0 {
		c.kill() // there is no session to end
		return limit
	}
	c.queue.push(c.ownCall(wire.OpCloseSession, nil, func(k *call) { c.ended = c.ended || k.err == nil }))
	c.wakeWriter()
	return limit
}

// retire ends all use of the client before any server is told: it lets the client accept
// no more calls, ends the lease, sets the status to Closed and calls the functions given
// to OnClose. It reports whether the client was usable. A second call does nothing.
func (c *Client) retire() (usable bool) {
	c.mu.Lock()
	if c.closing {
		c.mu.Unlock()
		return false
	}
	usable = c.over == nil
	c.closing, c.over = true, ErrClosed
	close(c.ending)
	c.lease = Lease{}
	c.setStatus(Status{State: Closed})
	ending := c.onClose
	c.onClose = nil
	c.mu.Unlock()
	for _, f := range ending {
		(*f)()
	}
	close(c.retired)
	return usable
}

// OnClose registers a function that Close and Detach call before they tell a server and
// before another client can take the session over. If Close or Detach has been called
// already, OnClose calls f at once. Use it to end work that depends on the session:
// package recipe ends the contexts of leaders and lock holders with it. Close waits for
// f, so f must not block and must not call Close or Detach. stop removes f.
func (c *Client) OnClose(f func()) (stop func()) {
	c.mu.Lock()
	closing := c.closing
	if !closing {
		c.onClose = append(c.onClose, &f)
	}
	c.mu.Unlock()
	if closing {
		f()
	}
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.onClose = slices.DeleteFunc(c.onClose, func(one *func()) bool { return one == &f })
	}
}

// stop ends every goroutine of the client and waits for it. For goroutines that run
// functions of the options it waits for functionTime at most.
func (c *Client) stop() {
	c.retire()
	c.mu.Lock()
	c.killed = true
	c.mu.Unlock()
	c.kill()
	<-c.done
	tidied := make(chan struct{})
	go func() { c.tidying.Wait(); close(tidied) }()
	limit := time.NewTimer(functionTime)
	defer limit.Stop()
	for _, ended := range []<-chan struct{}{tidied, c.logs.Busy()} {
		if ended == nil {
			continue
		}
		select {
		case <-ended:
		case <-limit.C:
			return
		}
	}
}

// Detach ends the client and leaves its session alive on the servers, so that another
// client can continue it with Options.Resume. The functions given to OnClose have been
// called when it returns. If the session is over, the returned ID is 0.
func (c *Client) Detach() Session {
	c.stop()
	<-c.retired // another goroutine may already be closing the client
	c.mu.Lock()
	over := c.sess.over
	c.mu.Unlock()
	if over {
		return Session{}
	}
	return c.Session()
}

// Session returns the present session; its ID is 0 while there is none.
func (c *Client) Session() Session {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.sess.Session
	s.Zxid = c.zxidSeen
	return s
}

// SetServers replaces the server list, which has the form that Connect takes; the chroot
// must be the same as before. If the connected server is not in the list, the client
// moves with its session to another one, once all its requests are answered.
func (c *Client) SetServers(servers string) error {
	list, chroot, err := parseServers(servers)
	if err != nil {
		return err
	}
	if chroot != c.chroot {
		return errors.New("the chroot of a client cannot be changed: open another client for another chroot")
	}
	c.useServers(list)
	return nil
}

func (c *Client) useServers(list []server) {
	shuffle(list)
	c.mu.Lock()
	c.servers, c.prefer = list, nil
	if c.link != nil && !slices.Contains(list, c.link.server) {
		c.link.leaving = true
	}
	c.mu.Unlock()
	c.wakeWriter()
}
