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
	// SessionTimeout is what the client asks for, at least 1 ms; the server
	// decides (see Status.Timeout). Default 20 s: longer than the 14 s after which
	// a ZooKeeper with default settings may learn of a ping, see Lease.
	SessionTimeout time.Duration
	// ReadOnly accepts servers that have lost their quorum; the state is then
	// ReadOnly, and the client keeps looking for a better server.
	ReadOnly bool
	// OneSession finishes the client when its session expires; otherwise it
	// opens a new one.
	OneSession bool
	// Resume continues this session, of a Client.Detach or a process before.
	Resume Session

	// TLS is used for every connection when not nil. Without ServerName the
	// host's name from the server list is verified.
	TLS *tls.Config
	// TLSFiles switches TLS on too and adds certificates from PEM files.
	TLSFiles *TLSFiles
	// Auth are credentials given to every server before anything else. A
	// refused one finishes the client with ErrAuthFailed.
	Auth []Auth
	// SASL starts an exchange for a new connection to the server named
	// host:port; nil means none. Its error costs that attempt to connect; one of
	// Step, or a refusal, finishes the client with ErrAuthFailed. See DigestMD5.
	SASL func(ctx context.Context, server string) (SASL, error)

	// Dial opens connections; nil is a net.Dialer. Address is IP:port. It, Resolver and SASL
	// may close the client; Close and Detach then wait 100 ms for what called them.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// Resolver looks up names at every dial; nil is net.DefaultResolver.
	Resolver Resolver

	// LeaseDelay is how long an answered ping may take to reach whoever
	// expires sessions: D of Lease. Zero: as the server says, else 14 s.
	LeaseDelay time.Duration
	// Probe asks each server on a connection of its own whether it knows an
	// operation that ZooKeeper 3.4 does not, before the first use. Otherwise
	// the first use tells: a server that does not know it cuts the connection once.
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

	// Logger is told of connections, sessions and large requests; nil is none. It is called in
	// order, by one goroutine beside the client: one that blocks delays nothing but later records, of
	// which those that find 1024 waiting are left out. It may close the client.
	Logger *slog.Logger
	// Trace is called at the start of each call; what it returns is called with
	// the call's error at its end, on the same goroutine. For metrics and spans.
	Trace func(ctx context.Context, op OpCode, path string) func(error)
}

// Auth is a credential. For the scheme "digest", Data is "user:password".
type Auth struct {
	Scheme string
	Data   []byte
}

func (a *Auth) equal(b Auth) bool { return a.Scheme == b.Scheme && bytes.Equal(a.Data, b.Data) }

// SASL is one exchange of tokens over one connection. Step gets the server's token, nil
// at first, and returns the next one to send. The client calls it until it returns done
// or the server ends the exchange. A token returned with done is sent if it is not nil.
type SASL interface {
	Step(challenge []byte) (token []byte, done bool, err error)
}

// Resolver is the part of *net.Resolver that a client needs.
type Resolver interface {
	LookupHost(ctx context.Context, host string) ([]string, error)
	LookupSRV(ctx context.Context, service, proto, name string) (string, []*net.SRV, error)
}

// Session is what a client must know to continue a session.
type Session struct {
	ID       SessionID // 0: none
	Password []byte
	// Timeout is the smallest the session ever had, by which a Lease counts;
	// 0: not known, and what the next server grants is taken for it.
	Timeout time.Duration
	// Zxid is the largest seen; no server that is behind it is connected to.
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
