package peer

import (
	"bufio"
	"context"
	"log/slog"
	"net"
	"time"

	"bellwether/internal/ensemble"
	"bellwether/internal/peerwire"
)

// Options are those of a [Mesh] and of [Links]. ID, Membership and Handle
// must be set; of the others the zero value means the default.
type Options struct {
	// ID is this server; Membership must name it, for it says where to listen.
	ID         ensemble.ServerID
	Membership *ensemble.Membership
	// Handle takes every event. It is called by several goroutines at a time
	// and must not block; the events of one connection come in their order.
	Handle func(Event)
	// Log takes what operators must know; slog's default if nil.
	Log *slog.Logger

	// ListenOnAll listens on all addresses of the machine (quorumListenOnAllIPs).
	ListenOnAll bool
	// ManyAddresses tells other servers all own election addresses instead of
	// the first (multiAddress.enabled); servers before 3.6 refuse that form.
	ManyAddresses bool

	// ConnectTimeout bounds one dial on the election port (cnxTimeout); 5 s.
	ConnectTimeout time.Duration
	// HandshakeTimeout bounds what comes before the first message of a
	// connection, TLS and SASL included; 10 s.
	HandshakeTimeout time.Duration
	// WriteTimeout is how long a link may take nothing of what is written; 30 s.
	WriteTimeout time.Duration
	// FlushTimeout bounds the orderly end of a link; 1 s.
	FlushTimeout time.Duration
	// RetryMax bounds the pause between dials of a server that is not there; 5 s.
	RetryMax time.Duration

	// PacketMax bounds a received packet in bytes; peerwire.PacketMax and a little.
	PacketMax int
	// QueueMax bounds what waits to be sent on one link, in bytes; 256 MiB.
	QueueMax int
	// ReadSnapshot consumes exactly the snapshot behind the packet p (SNAP). It
	// runs on the link's reader. Without it a SNAP ends the link.
	ReadSnapshot func(link peerwire.LinkID, p *peerwire.QuorumPacket, r *bufio.Reader) error

	// Secure wraps connections; nothing where its functions are nil.
	Secure Secure
	// Dial and Listen replace TCP, for tests and networks within a process.
	Dial   func(ctx context.Context, address string) (net.Conn, error)
	Listen func(address string) (net.Listener, error)
}

// Purpose is what a connection is to be wrapped for.
type Purpose uint8

// The purposes, by the moments at which a [Wrap] is called.
const (
	// ForElection is an election connection before its first byte: TLS.
	ForElection Purpose = iota
	// ForVotes is the same connection behind the initial message: SASL.
	ForVotes
	// ForLearner is a connection to the quorum port before its first byte:
	// TLS, then SASL.
	ForLearner
)

// Wrap makes a connection secure, or refuses it. The connection has a
// deadline. server is who was dialled or claims to be there, peerwire.NoServer
// where that is not known; address is what was dialled, or where the other
// end is.
type Wrap func(c net.Conn, p Purpose, server ensemble.ServerID, address string) (net.Conn, error)

// Secure is where TLS and SASL come in: one function for each end.
type Secure struct{ Client, Server Wrap }

func (s Secure) client(c net.Conn, p Purpose, server ensemble.ServerID, address string) (net.Conn, error) {
	if s.Client == nil {
		return c, nil
	}
	return s.Client(c, p, server, address)
}

func (s Secure) server(c net.Conn, p Purpose, server ensemble.ServerID) (net.Conn, error) {
	if s.Server == nil {
		return c, nil
	}
	return s.Server(c, p, server, c.RemoteAddr().String())
}

// The defaults of Options.
const (
	connectTimeout   = 5 * time.Second
	handshakeTimeout = 10 * time.Second
	writeTimeout     = 30 * time.Second
	flushTimeout     = time.Second
	retryMax         = 5 * time.Second
	packetSlack      = 4 << 10 // for what stands around data and identities
	queueMax         = 256 << 20
)

// filled returns the options with the defaults in place.
func (o Options) filled() *Options {
	if o.Log == nil {
		o.Log = slog.Default()
	}
	o.ConnectTimeout = orDefault(o.ConnectTimeout, connectTimeout)
	o.HandshakeTimeout = orDefault(o.HandshakeTimeout, handshakeTimeout)
	o.WriteTimeout = orDefault(o.WriteTimeout, writeTimeout)
	o.FlushTimeout = orDefault(o.FlushTimeout, flushTimeout)
	o.RetryMax = orDefault(o.RetryMax, retryMax)
	o.PacketMax = orDefault(o.PacketMax, peerwire.PacketMax+packetSlack)
	o.QueueMax = orDefault(o.QueueMax, queueMax)
	if o.Dial == nil {
		o.Dial = func(ctx context.Context, address string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "tcp", address)
		}
	}
	if o.Listen == nil {
		o.Listen = func(address string) (net.Listener, error) { return net.Listen("tcp", address) }
	}
	return &o
}

func orDefault[T time.Duration | int](v, otherwise T) T {
	if v <= 0 {
		return otherwise
	}
	return v
}
