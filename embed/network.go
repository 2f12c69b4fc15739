package embed

import (
	"context"
	"maps"
	"net"
	"net/netip"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"
)

// backlogMax is the largest number of connections that wait at a listener to be accepted.
const backlogMax = 1024

// network is the network inside the process, with the faults of its links.
type network struct {
	mu        sync.Mutex
	change    sync.Cond // uses mu; signals that a rule has changed or the network was closed
	closed    bool
	listeners map[string]*listener
	links     map[*link]struct{}
	rules     map[route]rule
	lastPort  uint16 // the port given to the last end that dialled

	watches time.Duration // the delay of watch events
	losses  []*loss       // replies that must be lost, in the order of the calls
}

// route is one direction between two endpoints.
type route struct{ from, to Endpoint }

// rule is the fault of a route.
type rule struct {
	cut   bool
	delay time.Duration
}

func newNetwork() *network {
	n := &network{listeners: map[string]*listener{}, links: map[*link]struct{}{}, rules: map[route]rule{}, lastPort: portsBelow}
	n.change.L = &n.mu
	return n
}

// portsBelow is one less than the first port that is given to an end that dials.
const portsBelow = 32767

// way returns the fault of one direction between two parties. The caller holds n.mu.
func (n *network) way(from, to party) (r rule) {
	for at, found := range n.rules {
		if at.from.covers(from) && at.to.covers(to) {
			r.cut = r.cut || found.cut
			r.delay = max(r.delay, found.delay)
		}
	}
	return r
}

// apply sets the faults of a link. The caller holds n.mu.
func (n *network) apply(l *link) {
	there, back := n.way(l.from, l.to), n.way(l.to, l.from)
	l.there.set(there.cut, there.delay)
	l.back.set(back.cut, back.delay)
}

// edit changes the rules and applies them to all links.
func (n *network) edit(change func(rules map[route]rule)) {
	n.mu.Lock()
	defer n.mu.Unlock()
	change(n.rules)
	maps.DeleteFunc(n.rules, func(_ route, r rule) bool { return r == rule{} })
	for l := range n.links {
		n.apply(l)
	}
	n.change.Broadcast()
}

// belongs records the session of the client of a link.
func (n *network) belongs(l *link, session Session) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if l.from.session != session {
		l.from.session = session
		n.apply(l)
	}
}

// ended removes a link that both sides have closed.
func (n *network) ended(l *link) {
	if l.there.over() && l.back.over() {
		if l.dialog != nil {
			l.dialog.ended()
		}
		n.mu.Lock()
		defer n.mu.Unlock()
		delete(n.links, l)
	}
}

// dial connects to an address. from is the host of the server that dials, or nil for a client.
func (n *network) dial(ctx context.Context, from *host, address string) (net.Conn, error) {
	if !from.await() {
		return nil, net.ErrClosed
	}
	who, at := party{}, netip.AddrFrom4([4]byte{127, 0, 0, 1})
	if from != nil {
		who.server, at = from.server, machineAddr(from.server)
	}
	ln, err := n.reach(ctx, who, address)
	if err != nil {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: err}
	}
	n.mu.Lock()
	if n.lastPort++; n.lastPort <= portsBelow {
		n.lastPort = portsBelow + 1
	}
	own := &net.TCPAddr{IP: at.AsSlice(), Port: int(n.lastPort)}
	n.mu.Unlock()
	return n.connect(ln, from, who, own)
}

// errRefused means that there is no listener at the address.
var errRefused = os.NewSyscallError("connect", syscall.ECONNREFUSED)

// reach finds the listener of an address. It takes as long as a round trip. While one direction is cut, it
// waits.
func (n *network) reach(ctx context.Context, who party, address string) (*listener, error) {
	stop := context.AfterFunc(ctx, func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		n.change.Broadcast()
	})
	defer stop()
	for waited := time.Duration(0); ; {
		ln, wait, err := n.lookUp(ctx, who, address)
		if err != nil || wait <= waited {
			return ln, err
		}
		if err := sleep(ctx, wait-waited); err != nil {
			return nil, err
		}
		waited = wait
	}
}

// lookUp waits until no direction is cut, and returns the listener and the round-trip time.
func (n *network) lookUp(ctx context.Context, who party, address string) (*listener, time.Duration, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for {
		ln := n.listeners[address]
		switch {
		case ctx.Err() != nil:
			return nil, 0, ctx.Err()
		case n.closed:
			return nil, 0, errRefused
		}
		to := party{server: serverAt(address)}
		if ln != nil {
			to.server = ln.host.server
		}
		there, back := n.way(who, to), n.way(to, who)
		switch {
		case there.cut || back.cut:
			n.change.Wait()
		case ln == nil:
			return nil, 0, errRefused
		default:
			return ln, there.delay + back.delay, nil
		}
	}
}

// connect creates a link to a listener.
func (n *network) connect(ln *listener, from *host, who party, own net.Addr) (*end, error) {
	l := &link{n: n, from: who, to: party{server: ln.host.server}, there: newStream(), back: newStream()}
	if who.server == 0 {
		l.dialog = &dialog{link: l}
	}
	near := &end{link: l, host: from, in: l.back, out: l.there, local: own, remote: ln.address}
	far := &end{link: l, host: ln.host, in: l.there, out: l.back, local: ln.address, remote: own, served: true}
	n.mu.Lock()
	if n.closed {
		n.mu.Unlock()
		return nil, errRefused
	}
	n.links[l] = struct{}{}
	n.apply(l)
	l.trip = max(n.way(l.from, l.to).delay+n.way(l.to, l.from).delay, tripMin)
	n.mu.Unlock()
	if !ln.offer(far) || !from.alive() {
		near.Close()
		far.Close()
		return nil, &net.OpError{Op: "dial", Net: "tcp", Addr: ln.address, Err: errRefused}
	}
	return near, nil
}

// tripMin is the approximate round-trip time inside a process.
const tripMin = 100 * time.Microsecond

// listen opens an address for a server.
func (n *network) listen(h *host, address string) (*listener, error) {
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return nil, err
	}
	ln := &listener{n: n, host: h, address: net.TCPAddrFromAddrPort(at)}
	ln.change.L = &ln.mu
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed || n.listeners[address] != nil {
		return nil, &net.OpError{Op: "listen", Net: "tcp", Addr: ln.address, Err: os.NewSyscallError("bind", syscall.EADDRINUSE)}
	}
	n.listeners[address] = ln
	return ln, nil
}

// kill ends the listeners and links of a host. The other ends of the links see a reset.
func (n *network) kill(h *host) {
	h.kill()
	n.mu.Lock()
	var links []*link
	for l := range n.links {
		if h.server == l.from.server || h.server == l.to.server {
			links = append(links, l)
		}
	}
	listeners := slices.Collect(maps.Values(n.listeners))
	n.mu.Unlock()
	for _, ln := range listeners {
		if ln.host == h {
			ln.Close()
		}
	}
	for _, l := range links {
		l.reset()
	}
}

// close ends all listeners and links, and refuses new ones.
func (n *network) close() {
	n.mu.Lock()
	n.closed = true
	links := slices.Collect(maps.Keys(n.links))
	n.change.Broadcast()
	n.mu.Unlock()
	for _, l := range links {
		l.there.set(false, 0)
		l.back.set(false, 0)
		l.reset()
	}
}

// listener is an open port inside the process.
type listener struct {
	n       *network
	host    *host
	address *net.TCPAddr
	onClose func()

	mu      sync.Mutex
	change  sync.Cond // uses mu; signals a new connection or the end
	backlog []*end
	closed  bool
}

func (ln *listener) offer(e *end) bool {
	ln.mu.Lock()
	defer ln.mu.Unlock()
	if ln.closed || len(ln.backlog) >= backlogMax {
		return false
	}
	ln.backlog = append(ln.backlog, e)
	ln.change.Broadcast()
	return true
}

// Accept waits for the next connection and returns it.
func (ln *listener) Accept() (net.Conn, error) {
	e := ln.next()
	switch {
	case e == nil:
		return nil, net.ErrClosed
	case !ln.host.await():
		e.Close()
		return nil, net.ErrClosed
	}
	return e, nil
}

func (ln *listener) next() *end {
	ln.mu.Lock()
	defer ln.mu.Unlock()
	for len(ln.backlog) == 0 && !ln.closed {
		ln.change.Wait()
	}
	if ln.closed {
		return nil
	}
	e := ln.backlog[0]
	ln.backlog = ln.backlog[1:]
	return e
}

// Close refuses further connections and ends those that were not accepted yet.
func (ln *listener) Close() error {
	ln.mu.Lock()
	left, before := ln.backlog, ln.closed
	ln.backlog, ln.closed = nil, true
	ln.change.Broadcast()
	ln.mu.Unlock()
	if before {
		return net.ErrClosed
	}
	ln.n.mu.Lock()
	if address := ln.address.String(); ln.n.listeners[address] == ln {
		delete(ln.n.listeners, address)
	}
	ln.n.mu.Unlock()
	for _, e := range left {
		e.link.reset()
		e.Close()
	}
	if ln.onClose != nil {
		ln.onClose()
	}
	return nil
}

// Addr returns the address of the listener.
func (ln *listener) Addr() net.Addr { return ln.address }

// machineAddr returns the IP address of a server inside the process.
func machineAddr(server int) netip.Addr { return netip.AddrFrom4([4]byte{127, 0, 0, byte(server)}) }

// serverAt returns the number of the server with this address, or 0 if there is none.
func serverAt(address string) int {
	at, err := netip.ParseAddrPort(address)
	if err != nil || !at.Addr().Is4() {
		return 0
	}
	return int(at.Addr().As4()[3])
}

// sleep waits for a duration. It returns an error if ctx ends first.
func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
