package peer

import (
	"bufio"
	"context"
	"log/slog"
	"net"
	"time"

	"bellwether/internal/ensemble"
	"bellwether/internal/metrics"
	"bellwether/internal/peerwire"
)

// Options are those of a [Mesh] and of [Links]. ID, Membership and Handle must be set;
// the zero value of the others means the default.
type Options struct {
	// ID is this server. Membership must contain it, because it gives the addresses to
	// listen on.
	ID         ensemble.ServerID
	Membership *ensemble.Membership
	// Handle takes every event. Several goroutines call it at a time, and it must not
	// block. The events of one connection come in order.
	Handle func(Event)
	// Log is for what operators must know; slog's default if nil.
	Log *slog.Logger

	// ListenOnAll listens on all addresses of the machine (quorumListenOnAllIPs).
	ListenOnAll bool
	// ManyAddresses sends other servers all own election addresses instead of the first
	// (multiAddress.enabled). Servers before 3.6 refuse that form.
	ManyAddresses bool

	// ConnectTimeout is the timeout of one dial on the election port (cnxTimeout); 5 s.
	ConnectTimeout time.Duration
	// HandshakeTimeout is the timeout for what comes before the first message of a
	// connection, TLS and SASL included; 10 s.
	HandshakeTimeout time.Duration
	// WriteTimeout is how long a write to a link may make no progress; 30 s.
	WriteTimeout time.Duration
	// FlushTimeout is how long Close may take to send what is queued; 1 s.
	FlushTimeout time.Duration
	// RetryMax is the longest pause between dials of a server that cannot be reached; 5
	// s.
	RetryMax time.Duration

	// PacketMax is the largest packet that is received, in bytes; a little more than
	// peerwire.PacketMax.
	PacketMax int
	// QueueMax is how many bytes may wait to be sent on one link; 256 MiB.
	QueueMax int
	// ObserverPort is the observer master port of all servers; 0: there is none.
	// ObserverQueueMax is how many bytes may wait to be sent on a link that was accepted there; 32 MiB.
	ObserverPort     int
	ObserverQueueMax int
	// ReadSnapshot reads exactly the snapshot behind the packet p (SNAP). It runs on the
	// link's reader. If it is nil a SNAP ends the link.
	ReadSnapshot func(link peerwire.LinkID, p *peerwire.QuorumPacket, r *bufio.Reader) error
	// WithoutDigest returns what is sent in place of a packet behind a snapshot, see Links.SendSnapshot. It must
	// not change the packet. If it is nil packets are sent as they are.
	WithoutDigest func(p *peerwire.QuorumPacket) *peerwire.QuorumPacket

	// Refused counts the refused connections. A mesh and links may share it, so that it counts
	// those of both ports; nil: only Figures count them.
	Refused *metrics.Counter
	// Secure wraps connections. A nil function leaves them as they are.
	Secure Secure
	// Dial and Listen replace TCP, for tests and networks within a process.
	Dial   func(ctx context.Context, address string) (net.Conn, error)
	Listen func(address string) (net.Listener, error)
}

// Purpose is the use of a connection that is to be wrapped.
type Purpose uint8

// The purposes, by the moments at which a [Wrap] is called.
const (
	// ForElection is an election connection before its first byte: TLS.
	ForElection Purpose = iota
	// ForVotes is the same connection after the initial message: SASL.
	ForVotes
	// ForLearner is a connection to the quorum port before its first byte:
	// TLS, then SASL.
	ForLearner
)

// Wrap makes a connection secure, or refuses it. An error may have a method Kind, which
// returns one of a few texts: errors of different kinds are logged separately. The
// connection has a deadline. server is the server that was dialled or that the other side
// claims to be, peerwire.NoServer if that is not known. address is the dialled address, or
// the other end's.
type Wrap func(c net.Conn, p Purpose, server ensemble.ServerID, address string) (net.Conn, error)

// Secure adds TLS and SASL: one function for each end.
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

// HandshakeDefault is the default of Options.HandshakeTimeout.
const HandshakeDefault = 10 * time.Second

// The other defaults of Options.
const (
	connectTimeout = 5 * time.Second
	writeTimeout   = 30 * time.Second
	flushTimeout   = time.Second
	retryMax       = 5 * time.Second
	packetSlack    = 4 << 10 // for a packet without its data and identities
	queueMax       = 256 << 20
	// observerQueueMax is the default of observerMaster.sizeLimit.
	observerQueueMax = 32 << 20
)

// refused counts a refused connection.
func (o *Options) refused(f *Figures) {
	f.Refused.Add(1)
	o.Refused.Add(1)
}

// filled returns the options with the defaults filled in.
func (o Options) filled() *Options {
	if o.Log == nil {
		o.Log = slog.Default()
	}
	if o.Refused == nil {
		o.Refused = new(metrics.Counter)
	}
	o.ConnectTimeout = orDefault(o.ConnectTimeout, connectTimeout)
	o.HandshakeTimeout = orDefault(o.HandshakeTimeout, HandshakeDefault)
	o.WriteTimeout = orDefault(o.WriteTimeout, writeTimeout)
	o.FlushTimeout = orDefault(o.FlushTimeout, flushTimeout)
	o.RetryMax = orDefault(o.RetryMax, retryMax)
	o.PacketMax = orDefault(o.PacketMax, peerwire.PacketMax+packetSlack)
	o.QueueMax = orDefault(o.QueueMax, queueMax)
	o.ObserverQueueMax = orDefault(o.ObserverQueueMax, observerQueueMax)
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
