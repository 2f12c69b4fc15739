package zk

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"bellwether/wire"
)

// Client is a session with an ensemble. All its methods may be called from any goroutine.
type Client struct {
	opt     Options
	chroot  string                      // empty, or a path without a slash at its end
	kill    context.CancelFunc          // ends run and the clean-ups at once
	done    chan struct{}               // closed when run has returned
	wake    chan struct{}               // one token: the writer has something to do
	clean   func(func(context.Context)) // runs a clean-up in the background
	tidying sync.WaitGroup
	calls   sync.Pool // of *call

	mu       sync.Mutex
	status   Status
	sess     session
	lease    Lease
	link     *link // nil while there is none
	queue    callList
	waiting  int // calls in any list
	xid      int32
	watches  watches
	creds    []Auth
	paces    []*time.Duration // of KeepAlive
	paced    bool             // paces changed since the writer looked
	supports map[address]*support

	servers  []server
	turn     int
	prefer   *server   // to be tried next
	failures int       // attempts since the session was last confirmed
	lastErr  error     // of the last attempt
	lastLink time.Time // when there was one, before the first when the client was opened

	zxidSeen     wire.Zxid // in answers and events
	zxidAnswered wire.Zxid // in answers alone: all events up to it were received

	closing bool
	killed  bool
	ended   bool  // the server confirmed the end, or the session is over
	fatal   error // the credentials are refused
	over    error // what calls get once run is ending
}

// session is what the client knows of its session. Its Zxid is in Client.
type session struct {
	Session
	granted  time.Duration // the timeout at the last attachment, 0 before the first
	writable bool          // attached at least once to a server with a quorum
}

// Connect opens a client and waits until its session stands. Servers are
// host:port pairs separated by commas, the port 2181 where it is left out, IPv6
// addresses in brackets; a name that begins with an underscore is looked up
// as an SRV record. A path behind the last one is the root (chroot) of all
// the client's paths; it is not created. When ctx ends first the client is closed.
func Connect(ctx context.Context, servers string, o *Options) (*Client, error) {
	c, err := Open(servers, o)
	if err != nil {
		return nil, err
	}
	for s := range c.States(ctx) {
		switch s.State {
		case Connected, ReadOnly:
			return c, nil
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

// whyNot is why no session stands, as far as it is known.
func (c *Client) whyNot(ctx context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.lastErr != nil {
		return fmt.Errorf("%w (last attempt: %w)", ctx.Err(), c.lastErr)
	}
	return ctx.Err()
}

// Open is Connect without the wait: calls wait for the session instead. Its
// errors are those of the arguments.
func Open(servers string, o *Options) (*Client, error) {
	list, chroot, err := parseServers(servers)
	if err != nil {
		return nil, err
	}
	shuffle(list)
	c := &Client{
		opt: o.withDefaults(), chroot: chroot, servers: list, lastLink: time.Now(),
		done: make(chan struct{}), wake: make(chan struct{}, 1),
		supports: make(map[address]*support),
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
	return c, nil
}

// setStatus is a transition.
func (c *Client) setStatus(s Status) {
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
}

// timeout is the negotiated session timeout, before there is one the wanted.
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

// Close ends the session, which deletes its ephemeral znodes, and then the
// client. Calls that wait are answered first while the connection stands. It
// waits for the server's answer while ctx and the session's timeout allow; an
// error means that the session was left to expire. Further calls return nil.
func (c *Client) Close(ctx context.Context) error {
	limit := c.beginClose()
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	var err error
	select {
	case <-c.done:
	case <-ctx.Done():
		err = c.whyNot(ctx)
	}
	c.stop()
	if err != nil {
		return &OpError{Op: wire.OpCloseSession.String(), Err: fmt.Errorf("session left to expire: %w", err)}
	}
	return nil
}

// beginClose queues the last request, once, and says how long it may take.
func (c *Client) beginClose() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	limit := c.timeout()
	if c.over != nil {
		return limit
	}
	c.closing, c.over = true, ErrClosed
	c.lease = Lease{} // before any server can know
	if c.sess.ID == 0 {
		c.kill() // nothing to end
		return limit
	}
	c.queue.push(c.ownCall(wire.OpCloseSession, nil, func(k *call) { c.ended = c.ended || k.err == nil }))
	c.wakeWriter()
	return limit
}

// stop ends every goroutine and waits for it.
func (c *Client) stop() {
	c.mu.Lock()
	c.closing, c.killed, c.over = true, true, ErrClosed
	c.lease = Lease{}
	c.mu.Unlock()
	c.kill()
	<-c.done
	c.tidying.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.status.State != Closed {
		c.setStatus(Status{State: Closed})
	}
}

// Detach ends the client and leaves its session alive on the servers, for
// Options.Resume of another one.
func (c *Client) Detach() Session {
	c.stop()
	return c.Session()
}

// Session is the present session; its ID is 0 while there is none.
func (c *Client) Session() Session {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.sess.Session
	s.Zxid = c.zxidSeen
	return s
}

// SetServers replaces the server list, in Connect's form; a chroot must be the same
// as before. When the connected server is not in it, the client moves, with
// its session, once all it has asked there is answered.
func (c *Client) SetServers(servers string) error {
	list, chroot, err := parseServers(servers)
	if err != nil {
		return err
	}
	if chroot != c.chroot {
		return errors.New("the chroot of a client cannot be changed")
	}
	shuffle(list)
	c.mu.Lock()
	c.servers, c.prefer = list, nil
	if c.link != nil && !slices.Contains(list, c.link.server) {
		c.link.leaving = true
	}
	c.mu.Unlock()
	c.wakeWriter()
	return nil
}
