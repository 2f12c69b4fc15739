package target

import (
	"io"
	"net"
	"sync"
	"testing"
)

// Proxy forwards connections to a server and can cut them. While it is down, it closes new
// connections at once. It is safe for concurrent use.
type Proxy struct {
	Addr string // host:port for the clients

	to       string
	listener net.Listener
	wait     sync.WaitGroup

	mu    sync.Mutex
	down  bool
	conns map[net.Conn]struct{} // both ends of every open pair
}

// NewProxy starts a proxy to addr. It ends with the test.
func NewProxy(t testing.TB, addr string) *Proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &Proxy{Addr: l.Addr().String(), to: addr, listener: l, conns: map[net.Conn]struct{}{}}
	p.wait.Go(p.accept)
	t.Cleanup(p.close)
	return p
}

// Cut closes all connections; new ones are accepted.
func (p *Proxy) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cutLocked()
}

// Down closes all connections and refuses new ones until Up.
func (p *Proxy) Down() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.down = true
	p.cutLocked()
}

// Up lets connections through again.
func (p *Proxy) Up() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.down = false
}

func (p *Proxy) cutLocked() {
	for conn := range p.conns {
		_ = conn.Close() // a second close of the same pair changes nothing
	}
}

func (p *Proxy) close() {
	_ = p.listener.Close() // ends accept
	p.Down()
	p.wait.Wait()
}

func (p *Proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		p.wait.Go(func() { p.serve(client) })
	}
}

// serve connects one client and copies both ways until either end closes.
func (p *Proxy) serve(client net.Conn) {
	defer client.Close()
	server, err := net.Dial("tcp", p.to)
	if err != nil {
		return
	}
	defer server.Close()
	if !p.register(client, server) {
		return
	}
	defer p.forget(client, server)
	var back sync.WaitGroup
	back.Go(func() {
		_, _ = io.Copy(client, server) // when one side ends, both are closed
		client.Close()
	})
	_, _ = io.Copy(server, client)
	server.Close()
	back.Wait()
}

func (p *Proxy) register(conns ...net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.down {
		return false
	}
	for _, conn := range conns {
		p.conns[conn] = struct{}{}
	}
	return true
}

func (p *Proxy) forget(conns ...net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, conn := range conns {
		delete(p.conns, conn)
	}
}
