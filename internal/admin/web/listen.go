package web

import (
	"crypto/tls"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"bellwether/internal/config"
	"bellwether/internal/secure"
)

// listener accepts the connections of the port, with TLS where the configuration says so. It
// keeps their number, in total and from one address, below its limits.
type listener struct {
	net.Listener
	tls     *tls.Config   // nil: no connection uses TLS
	unified bool          // connections without TLS are accepted too
	detect  time.Duration // how long the first byte of a connection may take
	room    chan struct{} // has an element for each open connection
	ready   chan net.Conn // connections whose kind is known
	closed  chan struct{}
	once    sync.Once
	running sync.WaitGroup

	mu     sync.Mutex
	byAddr map[netip.Prefix]int
	most   int                    // connections of one address
	idle   map[net.Conn]time.Time // idle connections, and since when; a request that has arrived in part does not count
}

const (
	// shareOfOne limits one address: it may have one fourth of all connections open. Clients at a
	// loopback address may have all of them open.
	shareOfOne = 4
	// networkBits is the length of a prefix: IPv6 addresses with the same prefix count as one
	// address, because one machine can use all addresses of such a network.
	networkBits = 64
)

func newListener(ln net.Listener, certs *secure.Store, c *config.Admin) (*listener, error) {
	l := &listener{Listener: ln, unified: !c.ForceHTTPS, room: make(chan struct{}, c.Connections), ready: make(chan net.Conn),
		closed: make(chan struct{}), byAddr: map[netip.Prefix]int{}, most: max(c.Connections/shareOfOne, 1), idle: map[net.Conn]time.Time{}}
	if certs != nil {
		base, err := certs.Server()
		if err != nil {
			return nil, err
		}
		l.detect = certs.Settings().DetectionTimeout
		l.tls = withProtocols(base, c.HTTPVersion)
	}
	l.running.Go(l.accept)
	return l, nil
}

// http2 is the value of admin.httpVersion that allows HTTP/2.
const http2 = 20

// withProtocols returns a configuration that offers versions of HTTP.
func withProtocols(base *tls.Config, version int) *tls.Config {
	protocols := []string{"http/1.1"}
	if version == http2 {
		protocols = []string{"h2", "http/1.1"}
	}
	c := base.Clone()
	c.NextProtos = protocols
	choose := base.GetConfigForClient
	c.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
		chosen, err := choose(hello)
		if chosen != nil {
			chosen.NextProtos = protocols
		}
		return chosen, err
	}
	return c
}

// accept accepts connections until the listener is closed.
func (l *listener) accept() {
	defer close(l.ready)
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			if !l.pause() {
				return
			}
			continue
		}
		k := &conn{Conn: c, from: networkOf(c), listener: l}
		if !l.enter(k.from) {
			c.Close()
			continue
		}
		if !l.makeRoom() {
			c.Close()
			return
		}
		if l.tls == nil {
			l.pass(k)
			continue
		}
		l.running.Go(func() { l.begin(k) })
	}
}

// makeRoom adds an element to room for a new connection, and returns false if the listener is
// closed. If room is full, it closes the connection that has been idle for longest, so that
// connections that send nothing, or slowly, do not keep health checks out. If none is idle, it waits.
func (l *listener) makeRoom() bool {
	poll := time.NewTicker(retry)
	defer poll.Stop()
	for {
		select {
		case l.room <- struct{}{}:
			return true
		default:
			l.endIdle()
		}
		select {
		case l.room <- struct{}{}:
			return true
		case <-l.closed:
			return false
		case <-poll.C:
		}
	}
}

// endIdle closes the connection that has been idle for longest, if any is idle.
func (l *listener) endIdle() {
	l.mu.Lock()
	var oldest net.Conn
	for c, since := range l.idle {
		if oldest == nil || since.Before(l.idle[oldest]) {
			oldest = c
		}
	}
	delete(l.idle, oldest)
	l.mu.Unlock()
	if oldest != nil {
		if t, ok := oldest.(*tls.Conn); ok {
			oldest = t.NetConn() // Close of a TLS connection could wait to send an alert
		}
		oldest.Close()
	}
}

// changed records whether a connection has a request in process, for http.Server.ConnState.
func (l *listener) changed(c net.Conn, state http.ConnState) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if state == http.StateNew || state == http.StateIdle {
		l.idle[c] = time.Now()
		return
	}
	delete(l.idle, c)
}

// retry is the pause after an accept that failed, for example because there are too many open
// files.
const retry = 100 * time.Millisecond

// pause waits after a failed accept, and returns false if the listener is closed.
func (l *listener) pause() bool {
	t := time.NewTimer(retry)
	defer t.Stop()
	select {
	case <-l.closed:
		return false
	case <-t.C:
		return true
	}
}

// begin passes a connection on with TLS. If the port accepts both kinds and the first byte is not one of
// TLS, it passes the connection on without TLS.
func (l *listener) begin(k *conn) {
	if !l.unified {
		l.pass(tls.Server(k, l.tls))
		return
	}
	l.changed(k, http.StateNew)
	c, isTLS, err := secure.Detect(k, l.detect)
	l.changed(k, http.StateActive) // the http.Server reports what follows
	switch {
	case err != nil:
		k.Close()
	case isTLS:
		l.pass(tls.Server(c, l.tls))
	default:
		l.pass(c)
	}
}

// pass lets Accept return a connection.
func (l *listener) pass(c net.Conn) {
	select {
	case l.ready <- c:
	case <-l.closed:
		c.Close()
	}
}

// Accept returns the next connection.
func (l *listener) Accept() (net.Conn, error) {
	select {
	case c, ok := <-l.ready:
		if ok {
			return c, nil
		}
	case <-l.closed:
	}
	return nil, net.ErrClosed
}

// Close closes the port. Connections stay open.
func (l *listener) Close() error {
	err := net.ErrClosed
	l.once.Do(func() {
		close(l.closed)
		err = l.Listener.Close()
	})
	if err == net.ErrClosed {
		return nil
	}
	return err
}

// Wait waits until the listener's goroutines have ended, after Close.
func (l *listener) Wait() { l.running.Wait() }

// enter counts a new connection of an address; false: the address has too many.
func (l *listener) enter(from netip.Prefix) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.byAddr[from] >= l.most && !from.Addr().IsLoopback() {
		return false
	}
	l.byAddr[from]++
	return true
}

func (l *listener) leave(from netip.Prefix) {
	l.mu.Lock()
	if l.byAddr[from]--; l.byAddr[from] == 0 {
		delete(l.byAddr, from)
	}
	l.mu.Unlock()
	<-l.room
}

// conn is a connection that is counted until it is closed.
type conn struct {
	net.Conn
	from     netip.Prefix
	listener *listener
	once     sync.Once
}

// Close closes the connection.
func (c *conn) Close() error {
	c.once.Do(func() { c.listener.leave(c.from) })
	return c.Conn.Close()
}

// networkOf returns the prefix whose connections are counted together: the IPv4 address of the client, its loopback
// address, or the network of its IPv6 address.
func networkOf(c net.Conn) netip.Prefix {
	a, ok := c.RemoteAddr().(*net.TCPAddr)
	if !ok {
		return netip.Prefix{}
	}
	from := a.AddrPort().Addr().Unmap().WithZone("")
	bits := from.BitLen()
	if from.Is6() && !from.IsLoopback() {
		bits = networkBits
	}
	network, _ := from.Prefix(bits) // no error: an address has at least this many bits
	return network
}
