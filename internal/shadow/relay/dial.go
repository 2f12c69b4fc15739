package relay

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/netip"
	"slices"
	"syscall"

	"bellwether/internal/secure"
)

// ErrOwnAddress says that the address of a server is the one where the relay itself accepts clients.
var ErrOwnAddress = errors.New("shadow itself listens there")

// dial connects to a server, with TLS if a store is given. It does not connect to the relay itself: each such connection would make
// another one, until no descriptor is left.
func (r *Relay) dial(ctx context.Context, addr string, store *secure.Store) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	conn, err := (&net.Dialer{Control: r.refuseOwn}).DialContext(ctx, "tcp", addr)
	if err != nil || store == nil {
		return conn, err
	}
	store.Reload() // after an error the certificates that were read before stay in use
	host, _, _ := net.SplitHostPort(addr)
	address := netip.Addr{}
	if at, ok := conn.RemoteAddr().(*net.TCPAddr); ok {
		address = at.AddrPort().Addr().Unmap()
	}
	with := tls.Client(conn, store.Client(ctx, host, address))
	if err := with.HandshakeContext(ctx); err != nil {
		conn.Close()
		return nil, secure.Explain(err, addr)
	}
	return with, nil
}

// refuseOwn is called with the address behind a name before a socket is connected to it.
func (r *Relay) refuseOwn(_, address string, _ syscall.RawConn) error {
	to, err := netip.ParseAddrPort(address)
	if err != nil {
		return err
	}
	if listen, ok := r.opt.Listen.Addr().(*net.TCPAddr); ok && reaches(to, listen.AddrPort()) {
		return ErrOwnAddress
	}
	return nil
}

// reaches reports whether a connection from this machine to an address arrives at a listener.
func reaches(to, listen netip.AddrPort) bool {
	a, l := to.Addr().Unmap(), listen.Addr().Unmap()
	switch {
	case to.Port() != listen.Port():
		return false
	case l.IsUnspecified():
		return isLocal(a)
	case a.IsUnspecified():
		return l.IsLoopback()
	}
	return a == l
}

// isLocal reports whether an address belongs to this machine.
func isLocal(a netip.Addr) bool {
	if a.IsLoopback() || a.IsUnspecified() {
		return true
	}
	all, _ := net.InterfaceAddrs() // without them, only loopback is known
	return slices.ContainsFunc(all, func(of net.Addr) bool {
		p, err := netip.ParsePrefix(of.String())
		return err == nil && p.Addr() == a.WithZone("")
	})
}
