package embed

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
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

// ServersMax is how many servers an Ensemble may have.
const ServersMax = 99

// The defaults of Options.
const (
	tickDefault       = 500 * time.Millisecond
	sessionMaxDefault = time.Minute
)

// Options describe an ensemble. The zero value of each field means its default.
type Options struct {
	// Servers is the number of servers, all of them voters. Default 1: a standalone
	// server.
	Servers int
	// InMemory limits the network to clients inside the process, so that no port is
	// opened. Only clients of Ensemble.Client reach the servers, and those whose Dial is
	// Ensemble.Dial. It works in a synctest bubble.
	InMemory bool
	// Dir is where the servers keep their data, server 1 in Dir/1. Data that exists
	// there is used. By default the data is on a disk in memory.
	Dir string
	// Listen is the host:port of the first server; the others have the ports after it.
	// Default 127.0.0.1:0: ports that the system chooses. 0.0.0.0 opens them to the
	// network. In memory it is not used.
	Listen string
	// TickTime is the unit of the servers' timeouts for each other. No session is
	// shorter than two ticks. Default 500 ms.
	TickTime time.Duration
	// SessionMax is the longest session timeout that is granted. Default one minute.
	SessionMax time.Duration
	// NoSync acknowledges writes before they are fsynced (forceSync=no), so that a crash
	// loses some of them; with Dir, those among the last 4 MiB written. It is for tests
	// of what a program does then. A client that has seen a lost write connects to no
	// server that does not have it, as with ZooKeeper: if all servers have lost it, the
	// program needs another client.
	NoSync bool
	// Logger gets the log of all servers, each record with the server's number as sid;
	// nil means none.
	Logger *slog.Logger
}

// withDefaults returns a copy of o with every default filled in.
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
	case o.TickTime < time.Millisecond:
		return o, fmt.Errorf("a tick of %v: want at least 1ms", o.TickTime)
	case o.Dir == "":
		return o, nil
	}
	// Servers that are left out would miss what the others decide, and might
	// lead again one day.
	if _, err := os.Stat(filepath.Join(o.Dir, strconv.Itoa(o.Servers+1))); err == nil {
		return o, fmt.Errorf("%s holds more servers than %d", o.Dir, o.Servers)
	}
	return o, nil
}

// Ensemble is a number of servers inside the process, and the network between them and
// their clients. Its methods may be called from any goroutine.
type Ensemble struct {
	opt     Options
	net     *network
	servers []*Server
	members *ensemble.Membership // nil: one server, alone

	life    context.Context // ends with Close, for who waits
	end     context.CancelFunc
	closing sync.Once
	err     error
}

// ErrClosed says that the ensemble was closed.
var ErrClosed = errors.New("the ensemble is closed")

// Start makes an ensemble and waits until all its servers serve. Close ends it.
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

// open finds the ports, and starts all servers.
func (e *Ensemble) open() error {
	opened, err := e.ports()
	if err == nil && len(e.servers) > 1 {
		e.members, err = e.membership()
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

// clientPort is the client port of every server in memory: each is a machine of its own.
const clientPort = 2181

// ports gives each server its address for clients, with an open port if it has one.
func (e *Ensemble) ports() (opened []net.Listener, err error) {
	if e.opt.InMemory {
		for _, s := range e.servers {
			s.address = net.JoinHostPort(machine(s.id).String(), strconv.Itoa(clientPort))
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

// reachable returns where clients on this machine find what listens at an address: for a
// wildcard, the loopback address.
func reachable(address string) string {
	at, err := netip.ParseAddrPort(address)
	if err != nil || !at.Addr().IsUnspecified() {
		return address
	}
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), at.Port()).String()
}

// The ports of the servers for each other, on the network within the process.
const (
	quorumPort   = 2888
	electionPort = 3888
)

func (e *Ensemble) membership() (*ensemble.Membership, error) {
	var lines strings.Builder
	for _, s := range e.servers {
		fmt.Fprintf(&lines, "server.%d=%v:%d:%d:participant;%s\n", s.id, machine(s.id), quorumPort, electionPort, s.address)
	}
	return ensemble.Parse(lines.String())
}

// config returns a server's configuration.
func (e *Ensemble) config(s *Server) *config.Config {
	c := config.Default()
	at, _ := net.ResolveTCPAddr("tcp", s.address) // it is a literal
	c.Client = ensemble.HostPort{Host: at.IP.String(), Port: at.Port}
	c.TickTime, c.MinSessionTimeout, c.MaxSessionTimeout = e.opt.TickTime, 2*e.opt.TickTime, e.opt.SessionMax
	c.DataDir, c.DataLogDir = s.dir, s.dir
	c.FourLetterWords = []string{"*"}
	c.Limits.ClientCnxns = 0 // all clients are of this machine
	c.Storage.PreAllocBytes, c.Storage.ForceSync = preAllocated, !e.opt.NoSync
	c.Autopurge.Interval = time.Hour
	c.Ensemble.Members, c.Ensemble.ID, c.Ensemble.HasID = e.members, ensemble.ServerID(s.id), true
	return c
}

// preAllocated is by how much logs grow. It is small, for a quick start.
const preAllocated = 64 << 10

// Servers returns the connect string of all servers, for zk.Connect and for clients in
// other languages.
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

// Dial opens a connection to a server's address, for zk.Options.Dial. If the ensemble is
// in memory, the connection is on the network inside the process.
func (e *Ensemble) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	if e.opt.InMemory {
		return e.net.dial(ctx, nil, address)
	}
	return new(net.Dialer).DialContext(ctx, network, address)
}

// Client connects a client to all servers, and waits until it has a session. The options
// may be nil. Their Dial is set to the ensemble's if it is nil.
func (e *Ensemble) Client(ctx context.Context, o *zk.Options) (*zk.Client, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(e.life, cancel)()
	c, err := zk.Connect(ctx, e.Servers(), e.wired(o))
	if err != nil && e.life.Err() != nil {
		err = ErrClosed
	}
	return c, err
}

// wired returns options with the way to the servers.
func (e *Ensemble) wired(o *zk.Options) *zk.Options {
	var out zk.Options
	if o != nil {
		out = *o
	}
	if out.Dial == nil {
		out.Dial = e.Dial
	}
	return &out
}

// lookAgain is the pause between two looks at something that sends no notice.
const lookAgain = time.Millisecond

// Leader waits until a server leads and serves; a standalone server leads as soon as it
// serves. If two servers say that they lead, because one was cut off, it returns the one
// of the later epoch.
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
		if err := sleep(ctx, lookAgain); err != nil {
			return nil, fmt.Errorf("no server leads: %w", err)
		}
	}
}

// AwaitServing waits until all servers that run and are not paused serve clients. It
// returns an error if one of them has failed.
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

// Close ends all servers at once, whatever faults there are, and everything else that
// Start began. With Options.Dir, nothing that was acknowledged is lost. Close the
// clients before: what waits for a server ends with ErrClosed.
func (e *Ensemble) Close() error {
	e.closing.Do(func() {
		e.end()
		ended := make(chan error, len(e.servers)) // one each
		for _, s := range e.servers {
			s.ResumeDisk() // else its end would take longer
			go func() { ended <- s.Kill() }()
		}
		for range e.servers {
			if err := <-ended; err != nil && !errors.Is(err, ErrNotRunning) {
				e.err = errors.Join(e.err, err)
			}
		}
		e.net.close()
	})
	return e.err
}
