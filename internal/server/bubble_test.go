package server

import (
	"net"
	"net/netip"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"bellwether/wire"
)

// pipes is a listener whose connections are pipes within the process, so that a server
// can run in a bubble, where waiting takes no time and times are exact.
type pipes struct {
	conns chan net.Conn
	done  chan struct{}
	once  sync.Once
}

func newPipes() *pipes { return &pipes{conns: make(chan net.Conn), done: make(chan struct{})} }

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case nc := <-p.conns:
		return nc, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error {
	p.once.Do(func() { close(p.done) })
	return nil
}

func (p *pipes) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1} }

// from is a connection from a chosen address.
type from struct {
	net.Conn
	addr net.Addr
}

func (c from) RemoteAddr() net.Addr { return c.addr }

// bubble is a server in a bubble.
type bubble struct {
	*running
	at *pipes
}

// inBubble runs f with a server in a bubble.
func inBubble(t *testing.T, o Options, f func(t *testing.T, b *bubble)) {
	synctest.Test(t, func(t *testing.T) {
		at := newPipes()
		o.Hooks.Clients = at
		r := start(t, o)
		f(t, &bubble{r, at})
		if err := r.end(); err != nil {
			t.Error(err)
		}
	})
}

// dialFrom opens a connection from an address, without a handshake.
func (b *bubble) dialFrom(addr string) *client {
	near, far := net.Pipe()
	b.at.conns <- from{far, net.TCPAddrFromAddrPort(netip.AddrPortFrom(netip.MustParseAddr(addr), 1))}
	b.t.Cleanup(func() { near.Close() })
	return &client{t: b.t, nc: near}
}

// connectFrom opens a connection from an address, with a new session.
func (b *bubble) connectFrom(addr string) *client {
	b.t.Helper()
	c := b.dialFrom(addr)
	c.handshake(wire.ConnectRequest{TimeoutMS: lastingMS, Password: make([]byte, 16)})
	if c.session.Session == 0 {
		b.t.Fatal("session was refused")
	}
	return c
}

// took returns how long f takes.
func took(f func()) time.Duration {
	start := time.Now()
	f()
	return time.Since(start)
}
