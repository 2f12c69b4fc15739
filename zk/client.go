package zk

import (
	"context"
	"sync"

	"bellwether/wire"
)

// Client is a session with an ensemble. All its methods may be called from any goroutine.
type Client struct {
	opt Options

	mu     sync.Mutex
	status Status
	lease  Lease
}

// Connect opens a client and waits until its session stands. Servers are
// host:port pairs separated by commas, the port 2181 where it is left out, IPv6
// addresses in brackets; a name that begins with an underscore is looked up
// as an SRV record. A path behind the last one is the root (chroot) of all
// the client's paths. When ctx ends first the client is closed.
func Connect(ctx context.Context, servers string, o *Options) (*Client, error) {
	return connect(ctx, servers, o)
}

// Open is Connect without the wait: calls wait for the session instead. Its
// errors are those of the arguments.
func Open(servers string, o *Options) (*Client, error) { return open(servers, o) }

// Close ends the session, which deletes its ephemeral znodes, and then the
// client. Calls that wait are answered ErrClosed, or a LostError. It waits for the
// server's answer while ctx and the session's timeout allow; an error means
// that the session was left to expire. Later calls return nil.
func (c *Client) Close(ctx context.Context) error { return c.close(ctx) }

// Detach ends the client and leaves its session alive on the servers, for
// Options.Resume of another one.
func (c *Client) Detach() Session { return c.detach() }

// Session identifies the present session.
func (c *Client) Session() Session { return c.session() }

// LastZxid is the largest zxid the client has seen; it never connects to a
// server that is behind it.
func (c *Client) LastZxid() wire.Zxid { return c.lastZxid() }

// SetServers replaces the server list, in Connect's form; a chroot must be the same
// as before. When the connected server is not in it, the client moves, with its session.
func (c *Client) SetServers(servers string) error { return c.setServers(servers) }
