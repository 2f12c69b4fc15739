package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net"
	"net/netip"
	"strconv"
	"sync"
	"syscall"
	"time"

	"bellwether/internal/config"
	"bellwether/internal/ensemble"
	"bellwether/internal/replica"
)

// TryClientPorts opens the client ports of a configuration and closes them at once. It
// returns the error that New would return, but nil for a port that is in use, because the
// server that is about to be restarted may use it.
func TryClientPorts(c *config.Config) error {
	if err := checkClientPorts(c); err != nil {
		return err
	}
	for _, port := range []struct {
		key string
		at  ensemble.HostPort
	}{{"clientPort", c.Client}, {"secureClientPort", c.TLS.Client}} {
		if port.at.IsZero() {
			continue
		}
		ln, addr, err := listenRaw(port.at, false)
		if err == nil {
			err = ln.Close()
		}
		if err != nil && !errors.Is(err, syscall.EADDRINUSE) {
			return portError(addr, port.key, err)
		}
	}
	return nil
}

// checkClientPorts returns an error if the client port with TLS and the one without have
// the same address, however it is written: the second one could never be opened.
func checkClientPorts(c *config.Config) error {
	plain, secured := c.Client, c.TLS.Client
	if plain.IsZero() || secured.IsZero() || plain.Port != secured.Port || plain.Port == 0 {
		return nil
	}
	if !plain.IsWildcard() && !secured.IsWildcard() {
		// Only the first address of a name is compared, because a listener opens only that one.
		a, errA := net.ResolveTCPAddr("tcp", plain.String())
		b, errB := net.ResolveTCPAddr("tcp", secured.String())
		if errA != nil || errB != nil || !a.IP.Equal(b.IP) {
			return nil // a name that cannot be resolved is reported when its port is opened
		}
	}
	return fmt.Errorf("secureClientPort and clientPort have the same address, %v and %v: choose another port, or remove secureClientPort and set client.portUnification=true to use one port for both",
		secured, plain)
}

// listen opens the client port of a key. The error for a port that is in use says what to
// do.
func listen(at ensemble.HostPort, keepAlive bool, key string) (net.Listener, error) {
	ln, addr, err := listenRaw(at, keepAlive)
	if err != nil {
		return nil, portError(addr, key, err)
	}
	return ln, nil
}

// portError returns the error for a client port that cannot be opened.
func portError(addr, key string, err error) error {
	if errors.Is(err, syscall.EADDRINUSE) {
		return fmt.Errorf("client port %s is in use by another process: stop that one, or choose another %s", addr, key)
	}
	return fmt.Errorf("client port %s cannot be opened: %w", addr, err)
}

// listenRaw opens the client port. It also returns the address that it tried.
func listenRaw(at ensemble.HostPort, keepAlive bool) (net.Listener, string, error) {
	lc := net.ListenConfig{KeepAlive: -1}
	if keepAlive {
		lc.KeepAlive = 0
	}
	if at.IsWildcard() {
		at.Host = "" // IPv4 and IPv6
	}
	addr := net.JoinHostPort(at.Host, strconv.Itoa(at.Port))
	ln, err := lc.Listen(context.Background(), "tcp", addr)
	return ln, addr, err
}

// connTable holds the client connections. The limits on connections apply to all sockets.
// The figures for operators leave out connections that the server has ended and from which
// it only reads the rest of the input. Invariants: a connection is in at most one of conns and
// closed; from counts both.
type connTable struct {
	mu     sync.Mutex
	conns  map[replica.ConnID]*conn
	closed map[replica.ConnID]*conn // their input is being drained
	from   map[netip.Addr]int       // sockets by source address
	last   replica.ConnID
	max    int // how many sockets the limit of open files leaves for clients
}

// newConnTable returns an empty table. files is how many descriptors the process may have open; -1: unknown.
func newConnTable(files int64) *connTable {
	w := &connTable{conns: map[replica.ConnID]*conn{}, closed: map[replica.ConnID]*conn{}, from: map[netip.Addr]int{}, max: math.MaxInt}
	if files >= 0 {
		w.max = int(min(max(1, files-DescriptorsBeside(files)), math.MaxInt))
	}
	return w
}

// DescriptorsBeside returns how many of this number of descriptors are kept for files and for connections with other
// servers and with operators. Clients do not get them, because a server that cannot open its next log serves nobody.
func DescriptorsBeside(files int64) int64 { return max(min(512, files/2), files/16) }

// add adds a connection, or returns the reason why there are too many already.
func (w *connTable) add(s *Server, nc net.Conn) (*conn, string) {
	limits := &s.config().Limits
	from := addrPort(nc.RemoteAddr()).Addr()
	w.mu.Lock()
	defer w.mu.Unlock()
	if limits.Cnxns > 0 && len(w.conns)+len(w.closed) >= limits.Cnxns {
		return nil, fmt.Sprintf("Too many connections - max is %d (maxCnxns)", limits.Cnxns)
	}
	if len(w.conns)+len(w.closed) >= w.max {
		return nil, fmt.Sprintf("Too many connections - max is %d: raise the limit of open files (ulimit -n, LimitNOFILE=)", w.max)
	}
	if limits.ClientCnxns > 0 && w.from[from] >= limits.ClientCnxns {
		return nil, fmt.Sprintf("Too many connections from /%s - max is %d (maxClientCnxns)", from, limits.ClientCnxns)
	}
	w.last++
	c := newConn(s, w.last, nc)
	w.conns[c.id] = c
	w.from[from]++
	s.budget.conns.Add(1)
	return c, ""
}

// unlist records that a connection is closed for its client. Its socket still counts.
func (w *connTable) unlist(c *conn) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.conns, c.id)
	w.closed[c.id] = c
}

// remove removes a connection whose socket is closed.
func (w *connTable) remove(c *conn) {
	w.mu.Lock()
	defer w.mu.Unlock()
	c.srv.budget.conns.Add(-1)
	if sc, ok := c.net.(*secureConn); ok {
		sc.uncount()
	}
	delete(w.closed, c.id)
	from := c.addr.Addr()
	if w.from[from]--; w.from[from] == 0 {
		delete(w.from, from)
	}
}

// all returns the open connections.
func (w *connTable) all() []*conn {
	w.mu.Lock()
	defer w.mu.Unlock()
	out := make([]*conn, 0, len(w.conns))
	for _, c := range w.conns {
		out = append(out, c)
	}
	return out
}

// sockets returns the open connections and those whose input is being drained.
func (w *connTable) sockets() []*conn {
	out := w.all()
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range w.closed {
		out = append(out, c)
	}
	return out
}

func (w *connTable) len() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.conns)
}

// acceptPause is how long the listener waits when the process has no free descriptor.
// turnsPause is how long it waits when too many goroutines wait for their turns.
const (
	acceptPause = 50 * time.Millisecond
	turnsPause  = 5 * time.Millisecond
)

// accept accepts clients until the listener is closed. withTLS and without say whether it takes
// clients with TLS and clients without.
func (s *Server) accept(ln net.Listener, withTLS, without bool) {
	for {
		for s.turns.tooManyWait() && !s.stopping.Load() {
			s.pause(turnsPause)
		}
		nc, err := ln.Accept()
		switch {
		case errors.Is(err, net.ErrClosed):
			return
		case err != nil:
			s.notices.Say(slog.LevelError, "cannot accept connections: check the limit of open files", "", "err", err)
			s.pause(acceptPause)
			continue
		}
		if withTLS {
			nc = s.secured(nc, without)
		}
		c, reason := s.conns.add(s, nc)
		if c == nil {
			s.stats.rejected.Add(1)
			s.warn("Too many connections", nc.RemoteAddr(), reason)
			nc.Close()
			continue
		}
		s.readers.Go(c.run)
	}
}

// warn logs a message about a client. After the first of a kind it only counts them.
func (s *Server) warn(kind string, from net.Addr, msg string, args ...any) {
	s.log.Log(context.Background(), s.notices.Level(slog.LevelWarn, kind, from.String()), msg, args...)
}

// pause waits for d, or until the server ends.
func (s *Server) pause(d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-s.dead:
	}
}

// sessionless counts and logs a connection that ended before its handshake.
func (s *Server) sessionless(c *conn, err error) {
	if timedOut(err) && !s.stopping.Load() {
		s.stats.sessionlessGone.Add(1)
	}
	if failed := (*handshakeError)(nil); errors.As(err, &failed) && !s.stopping.Load() {
		s.warnHandshake(c, failed.err)
	}
	c.logEnd(err)
}

// count returns the number of connections with a session whose clients have shown no
// certificate: those from this machine if local is true, else those from other machines.
func (w *connTable) count(local bool) int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := int64(0)
	for _, c := range w.conns {
		if c.Session() != 0 && !c.mutual && c.addr.Addr().IsLoopback() == local {
			n++
		}
	}
	return n
}
