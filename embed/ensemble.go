package embed

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"bellwether/internal/config"
	"bellwether/internal/ensemble"
	"bellwether/zk"
)

// ServersMax is the largest number of servers of an Ensemble.
const ServersMax = 99

// The defaults of the fields of Options.
const (
	tickDefault       = 500 * time.Millisecond
	sessionMaxDefault = time.Minute
)

// sessionMaxMax is the longest session timeout that fits into the messages.
const sessionMaxMax = math.MaxInt32 * time.Millisecond

// Options describe an ensemble. The zero value of each field means its default.
type Options struct {
	// Servers is the number of servers, all of them voters. Default 1: a standalone
	// server.
	Servers int
	// InMemory makes all clients connect inside the process, so that no port is opened. Only the clients of
	// Ensemble.Client, and clients whose Dial is Ensemble.Dial, reach the servers. This works in a bubble of
	// testing/synctest.
	InMemory bool
	// Dir is the directory of the servers' data: server 1 uses Dir/1. Existing data is used. By default the data
	// is on a disk in memory.
	Dir string
	// Listen is the host:port of the first server; the others use the following ports. The default 127.0.0.1:0
	// means ports that the system chooses. With 0.0.0.0 other machines can connect. With InMemory the field is
	// not used.
	Listen string
	// TickTime is the unit of the timeouts between servers. No session timeout is shorter than two ticks. The
	// default is 500 ms.
	TickTime time.Duration
	// SessionMax is the longest session timeout that a client gets: two ticks at least, and what fits into an int32 of
	// ms at most, about 24 days. The default is one minute.
	SessionMax time.Duration
	// NoSync acknowledges writes before they are fsynced (forceSync=no), so that a crash loses some of them;
	// with Dir, some of the last 4 MiB written. It is for tests of programs that must survive this. As with
	// ZooKeeper, a client that has seen a write connects only to servers that have this write. If all servers
	// have lost it, the program needs a new client.
	NoSync bool
	// TLS makes clients and servers connect with TLS only, with certificates of a new private authority, which
	// Start makes in a temporary directory and Close removes. A client must show a certificate, which is its
	// identity: x509:CN=client. Ensemble.Client does so; other clients use Ensemble.TLSConfig or
	// Ensemble.TLSFiles. The network cannot see what is encrypted: LoseNextReply, DelayWatches, and faults for
	// a Session have no effect then.
	TLS bool
	// Admin gives each server an admin port on a free port of 127.0.0.1, with ZooKeeper's commands and health
	// checks: see Server.AdminURL. It cannot be combined with InMemory.
	Admin bool
	// Logger receives the log of all servers. Each record has the server's number as sid. With nil, nothing is
	// logged.
	Logger *slog.Logger
}

// withDefaults returns a copy of o in which each default is filled in.
func (o Options) withDefaults() (Options, error) {
	o.Servers = cmp.Or(o.Servers, 1)
	o.Listen = cmp.Or(o.Listen, "127.0.0.1:0")
	o.TickTime = cmp.Or(o.TickTime, tickDefault)
	o.SessionMax = max(cmp.Or(o.SessionMax, sessionMaxDefault), 2*o.TickTime)
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	switch {
	case o.Servers < 1 || o.Servers > ServersMax:
		return o, fmt.Errorf("%d servers: want from 1 to %d", o.Servers, ServersMax)
	case o.Admin && o.InMemory:
		return o, errors.New("the options Admin and InMemory: want one of them, because an admin port is a real port")
	case o.TickTime < time.Millisecond:
		return o, fmt.Errorf("a tick of %v: want at least 1ms", o.TickTime)
	case o.SessionMax > sessionMaxMax:
		return o, fmt.Errorf("a session timeout of %v, from SessionMax or two ticks: want at most %v", o.SessionMax, sessionMaxMax)
	case o.Dir == "":
		return o, nil
	}
	// If Dir has data of more servers than the ensemble, the missing servers would miss all decisions,
	// and might lead with an old history later.
	if _, err := os.Stat(filepath.Join(o.Dir, strconv.Itoa(o.Servers+1))); err == nil {
		return o, fmt.Errorf("%s contains data of more servers than %d: start at least as many servers, or use another directory", o.Dir, o.Servers)
	}
	return o, nil
}

// Ensemble is a set of servers inside the process, with the network between them and their clients. Its methods
// may be called from any goroutine.
type Ensemble struct {
	opt     Options
	net     *network
	servers []*Server
	members *ensemble.Membership // nil: a single standalone server
	certs   *certificates        // nil: without TLS

	life    context.Context // ends with Close; calls that wait use it
	end     context.CancelFunc
	closing sync.Once
	err     error
}

// ErrClosed means that the ensemble was closed.
var ErrClosed = errors.New("the ensemble is closed")

// Start creates an ensemble and waits until all its servers serve. The caller must call Close.
func Start(ctx context.Context, o Options) (*Ensemble, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	e := &Ensemble{opt: o, net: newNetwork()}
	e.life, e.end = context.WithCancel(context.Background())
	for id := 1; id <= o.Servers; id++ {
		e.servers = append(e.servers, newServer(e, id))
	}
	if err = e.open(); err == nil {
		err = e.AwaitServing(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, e.Close())
	}
	return e, nil
}

// open chooses the ports and starts all servers.
func (e *Ensemble) open() error {
	opened, err := e.ports()
	if err == nil && len(e.servers) > 1 {
		e.members, err = e.membership()
	}
	if err == nil && e.opt.TLS {
		e.certs, err = newCertificates(e)
	}
	if err != nil {
		for _, ln := range opened {
			ln.Close()
		}
		return err
	}
	for i, s := range e.servers {
		var ln net.Listener
		if opened != nil {
			ln = opened[i]
		}
		err = errors.Join(err, s.start(ln))
	}
	return err
}

// clientPort is the client port of every server in memory. They can share it, because each has its own address.
const clientPort = 2181

// ports sets the client address of each server. Unless InMemory is set, it returns the open ports.
func (e *Ensemble) ports() (opened []net.Listener, err error) {
	if e.opt.InMemory {
		for _, s := range e.servers {
			s.address = net.JoinHostPort(machineAddr(s.id).String(), strconv.Itoa(clientPort))
		}
		return nil, nil
	}
	host, text, err := net.SplitHostPort(e.opt.Listen)
	first, perr := strconv.Atoi(text)
	if err != nil || perr != nil || host == "" {
		return nil, fmt.Errorf("listen at %q: want host:port", e.opt.Listen)
	}
	for i, s := range e.servers {
		port := 0
		if first > 0 {
			port = first + i
		}
		ln, err := net.Listen("tcp", net.JoinHostPort(host, strconv.Itoa(port)))
		if err != nil {
			return opened, err
		}
		opened = append(opened, ln)
		s.bound = ln.Addr().String()
		s.address = reachable(s.bound)
	}
	return opened, nil
}

// reachable returns the address under which clients on this machine reach a listener: for a wildcard address,
// the loopback address.
func reachable(address string) string {
	at, err := netip.ParseAddrPort(address)
	if err != nil || !at.Addr().IsUnspecified() {
		return address
	}
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), at.Port()).String()
}

// The quorum and election ports, on the network inside the process.
const (
	quorumPort   = 2888
	electionPort = 3888
)

func (e *Ensemble) membership() (*ensemble.Membership, error) {
	var lines strings.Builder
	for _, s := range e.servers {
		fmt.Fprintf(&lines, "server.%d=%v:%d:%d:participant;%s\n", s.id, machineAddr(s.id), quorumPort, electionPort, s.address)
	}
	return ensemble.Parse(lines.String())
}

// config returns the configuration of a server.
func (e *Ensemble) config(s *Server) *config.Config {
	c := config.Default()
	at, _ := net.ResolveTCPAddr("tcp", s.address) // no error: the address is a literal
	c.Client = ensemble.HostPort{Host: at.IP.String(), Port: at.Port}
	c.TickTime, c.MinSessionTimeout, c.MaxSessionTimeout = e.opt.TickTime, 2*e.opt.TickTime, e.opt.SessionMax
	c.DataDir, c.DataLogDir = s.dir, s.dir
	c.FourLetterWords = []string{"*"}
	c.Limits.ClientCnxns = 0 // no limit, because all clients are on this machine
	c.Storage.PreAllocBytes, c.Storage.ForceSync = preAllocated, !e.opt.NoSync
	c.Autopurge.Interval = time.Hour
	c.Admin.Enabled, c.Admin.Address.Port = e.opt.Admin, 0
	c.Ensemble.Members, c.Ensemble.ID, c.Ensemble.HasID = e.members, ensemble.ServerID(s.id), true
	if e.certs != nil {
		c.Client, c.TLS = ensemble.HostPort{}, e.certs.settings(s.id, c.Client, len(e.servers) > 1)
	}
	return c
}

// preAllocated is the number of bytes by which logs are extended. It is small, so that servers start fast.
const preAllocated = 64 << 10

// Servers returns the connect string with all servers, for zk.Connect and for clients in other languages.
func (e *Ensemble) Servers() string {
	var all []string
	for _, s := range e.servers {
		all = append(all, s.address)
	}
	return strings.Join(all, ",")
}

// Len returns the number of servers.
func (e *Ensemble) Len() int { return len(e.servers) }

// Server returns a server by its number, from 1 to Len.
func (e *Ensemble) Server(id int) *Server { return e.servers[id-1] }

// Dial connects to the address of a server, for zk.Options.Dial. If the ensemble is in memory, the connection
// uses the network inside the process.
func (e *Ensemble) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	if e.opt.InMemory {
		return e.net.dial(ctx, nil, address)
	}
	return new(net.Dialer).DialContext(ctx, network, address)
}

// Client connects a client to all servers and waits until it has a session. The options may be nil. If their
// Dial is nil, the client uses Ensemble.Dial. If the ensemble uses TLS and the options do not mention it, the
// client uses Ensemble.TLSConfig.
func (e *Ensemble) Client(ctx context.Context, o *zk.Options) (*zk.Client, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(e.life, cancel)()
	c, err := zk.Connect(ctx, e.Servers(), e.reaching(o))
	if err != nil && e.life.Err() != nil {
		err = ErrClosed
	}
	return c, err
}

// reaching returns options with which a client reaches the servers.
func (e *Ensemble) reaching(o *zk.Options) *zk.Options {
	var out zk.Options
	if o != nil {
		out = *o
	}
	if out.Dial == nil {
		out.Dial = e.Dial
	}
	if e.certs != nil && out.TLS == nil && out.TLSFiles == nil && out.TLSConfig == nil {
		out.TLS = e.TLSConfig()
	}
	return &out
}

// checkInterval is the pause between two checks of a state that cannot be waited for.
const checkInterval = time.Millisecond

// Leader waits until a server leads and serves, and returns it. A standalone server leads as soon as it serves.
// If two servers report that they lead, because one was cut off, Leader returns the one with the later epoch.
func (e *Ensemble) Leader(ctx context.Context) (*Server, error) {
	for {
		var leader *Server
		for _, s := range e.servers {
			if s.Leads() && (leader == nil || s.epoch() > leader.epoch()) {
				leader = s
			}
		}
		switch {
		case leader != nil:
			return leader, nil
		case e.life.Err() != nil:
			return nil, ErrClosed
		}
		if err := sleep(ctx, checkInterval); err != nil {
			return nil, fmt.Errorf("no server leads: %w", err)
		}
	}
}

// AwaitServing waits until all servers that run and are not paused serve clients. It returns an error if one of
// them has failed.
func (e *Ensemble) AwaitServing(ctx context.Context) error {
	if e.life.Err() != nil {
		return ErrClosed
	}
	for _, s := range e.servers {
		if !s.Running() || s.Paused() {
			if err := s.Err(); err != nil {
				return err
			}
			continue
		}
		if err := s.AwaitServing(ctx); err != nil {
			return err
		}
	}
	return nil
}

// Close ends all servers at once, whatever faults there are, and everything else that Start began. With
// Options.Dir, no acknowledged write is lost. Close the clients before: calls that wait for a server return
// ErrClosed.
func (e *Ensemble) Close() error {
	e.closing.Do(func() {
		e.end()
		ended := make(chan error, len(e.servers)) // one error for each server
		for _, s := range e.servers {
			s.ResumeDisk() // the end of a server whose disk hangs would take longer
			go func() { ended <- s.Kill() }()
		}
		for range e.servers {
			if err := <-ended; err != nil && !errors.Is(err, ErrNotRunning) {
				e.err = errors.Join(e.err, err)
			}
		}
		e.net.close()
		e.err = errors.Join(e.err, e.certs.remove())
	})
	return e.err
}
