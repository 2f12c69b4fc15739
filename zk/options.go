package zk

import (
	"bytes"
	"context"
	"crypto/tls"
	"log/slog"
	"net"
	"time"

	"bellwether/wire"
)

// The defaults of Options.
const (
	sessionTimeoutDefault = 20 * time.Second
	replyMaxDefault       = 16 << 20
	queueMaxDefault       = 100_000
	streamMaxDefault      = 65_536
)

// Options are the settings of a client. The zero value of each field means its default;
// a nil *Options means all defaults. Open and Connect copy them.
type Options struct {
	// SessionTimeout is the timeout that the client asks for, at least 1 ms; the server
	// decides (see Status.Timeout). Default 20 s: longer than the 14 s after which a
	// ZooKeeper ensemble with default settings may learn of a ping, see Lease.
	SessionTimeout time.Duration
	// ReadOnly accepts servers that have lost their quorum; the state is then
	// ReadOnly, and the client keeps looking for a better server.
	ReadOnly bool
	// FollowMembers makes the server list follow the ensemble's configuration: whenever it
	// changes (see Client.Reconfig), the client uses the addresses of its members for
	// clients, as if SetServers was called. A configuration in which one member has no client
	// port changes nothing. After a failed read of the configuration the client tries again, at
	// most 2 s later, unless the servers have no configuration or do not let it be read
	// (ErrNoNode, ErrNoAuth, ErrUnsupported). It cannot be used with TLS.
	FollowMembers bool
	// OneSession ends the client when its session expires; otherwise it opens a new
	// session.
	OneSession bool
	// Resume continues this session, of a Client.Detach or of an earlier process.
	Resume Session

	// TLS is used for every connection if it is not nil. If it has no ServerName, the
	// host name from the server list is verified.
	// A client resumes TLS sessions if the configuration has a ClientSessionCache.
	TLS *tls.Config
	// TLSFiles also switches TLS on, and adds certificates from PEM files. TLS sessions
	// are resumed until the files change.
	TLSFiles *TLSFiles
	// TLSConfig, if it is not nil, replaces TLS and TLSFiles: it returns the configuration
	// for a new connection to a server, or nil for a connection without TLS. The
	// configuration must have a ServerName.
	TLSConfig func(ctx context.Context, server Server) (*tls.Config, error)
	// Auth are credentials that every server gets before anything else. If one is
	// refused, the client ends with ErrAuthFailed.
	Auth []Auth
	// SASL logs the client in at each server to which it connects, before any request is
	// sent: see DigestMD5 and package zk/kerberos. If it is nil, there is no login. If a
	// server refuses the login, the client ends with ErrAuthFailed.
	SASL Mechanism

	// Dial opens connections; nil means a net.Dialer. The address is IP:port. If Dial returns
	// neither a connection nor an error, the attempt has failed. Dial, Resolver, TLSConfig and
	// SASL may close the client; Close and Detach then wait at most 100 ms for the function
	// that called them.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// Resolver looks up names before every dial; nil means net.DefaultResolver.
	Resolver Resolver

	// LeaseDelay is how long it may take until the server that expires sessions learns
	// of an answered ping: Delay of Lease. If it is 0, the client asks the server, and
	// assumes 14 s if the server does not say.
	LeaseDelay time.Duration
	// Probe makes the client ask each server, on a separate connection and before the
	// first use, whether it knows an operation that is newer than ZooKeeper 3.4. Without
	// Probe the client learns it from the first use: a server that does not know the
	// operation closes the client's connection once.
	Probe bool

	// FrameMax is the largest request in bytes (the servers' jute.maxbuffer).
	// Default 1048575. Requests of more than half of it are logged.
	FrameMax int
	// ReplyMax is the largest answer in bytes. Default 16 MiB.
	ReplyMax int
	// QueueMax is how many calls may wait for an answer. Default 100000.
	QueueMax int
	// StreamMax is how many events a Stream may hold unread. Default 65536.
	StreamMax int

	// Logger gets records of connections, sessions and large requests; nil means none.
	// One goroutine of its own calls it, in order. If the Logger blocks, only later
	// records are delayed; a record that finds 1024 others waiting is dropped. The
	// Logger may close the client.
	Logger *slog.Logger
	// Hooks are told about calls and changes of the state, for metrics and spans; nil means none.
	Hooks Hooks
}

// Auth is a credential. For the scheme "digest", Data is "user:password".
type Auth struct {
	Scheme string
	Data   []byte
}

func (a *Auth) equal(b Auth) bool { return a.Scheme == b.Scheme && bytes.Equal(a.Data, b.Data) }

// Mechanism is a way to log in, such as a user name with a password or a Kerberos ticket.
// The client calls it for each new connection, and sends and receives the tokens of the
// exchange that it returns; a nil Exchange means no login. Calls wait until the login is
// done. An error means that the login could not begin, for example because there is no
// ticket yet; the client then tries again. A Mechanism must return when its context ends.
type Mechanism func(ctx context.Context, server Server) (Exchange, error)

// Exchange is one login over one connection. Step gets the server's token, nil at first,
// and returns the next one to send. The client calls it until it returns done or the
// server ends the exchange. A token returned with done is sent if it is not nil. An error
// of Step ends the client with ErrAuthFailed.
type Exchange interface {
	Step(challenge []byte) (token []byte, done bool, err error)
}

// Resolver is the part of *net.Resolver that a client needs.
type Resolver interface {
	LookupHost(ctx context.Context, host string) ([]string, error)
	LookupSRV(ctx context.Context, service, proto, name string) (string, []*net.SRV, error)
}

// Session holds what a client must know to continue a session.
type Session struct {
	ID       SessionID // 0: none
	Password []byte
	// Timeout is the smallest timeout that the session ever had, from which a Lease is
	// computed. 0 means that it is not known; then the timeout that the next server
	// grants is used.
	Timeout time.Duration
	// Zxid is the largest zxid seen; the client does not connect to a server that is
	// behind it.
	Zxid Zxid
}

// withDefaults returns a copy of o with every default filled in.
func (o *Options) withDefaults() Options {
	var out Options
	if o != nil {
		out = *o
	}
	orDefault(&out.SessionTimeout, sessionTimeoutDefault)
	orDefault(&out.FrameMax, wire.FrameMax)
	orDefault(&out.ReplyMax, replyMaxDefault)
	orDefault(&out.QueueMax, queueMaxDefault)
	orDefault(&out.StreamMax, streamMaxDefault)
	if out.Dial == nil {
		out.Dial = new(net.Dialer).DialContext
	}
	if out.Resolver == nil {
		out.Resolver = net.DefaultResolver
	}
	if out.Logger == nil {
		out.Logger = slog.New(slog.DiscardHandler)
	}
	return out
}

func orDefault[T int | time.Duration](v *T, d T) {
	if *v <= 0 {
		*v = d
	}
}
