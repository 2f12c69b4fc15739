package peer

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/netip"
	"slices"
	"sync"
	"syscall"
	"time"

	"bellwether/internal/notice"
)

// The pauses before a port is opened again.
const (
	reopenMin   = 50 * time.Millisecond
	reopenMax   = time.Second
	acceptPause = 50 * time.Millisecond // when there are no file descriptors
)

// ports are the addresses on which connections of one kind are accepted. Each stays open
// until close; one that breaks is opened again, as often as necessary (ZOOKEEPER-3320).
type ports struct {
	o       *Options
	notices *notice.Log
	name    string // the name of the port in zoo.cfg
	handle  func(net.Conn)
	cancel  context.CancelFunc
	done    sync.WaitGroup

	mu     sync.Mutex
	open   []net.Listener
	failed map[string]error // why an address is not open, by address
}

// openPorts listens on all addresses. The goroutine that accepts calls handle for each
// connection, so handle must not block. openPorts returns an error only if waiting does
// not help: the port is in use or forbidden. After other errors it tries again in the
// background.
func openPorts(o *Options, n *notice.Log, name string, addresses []string, handle func(net.Conn)) (*ports, error) {
	ctx, cancel := context.WithCancel(context.Background())
	p := &ports{o: o, notices: n, name: name, handle: handle, cancel: cancel}
	opened := make([]net.Listener, len(addresses))
	for i, address := range addresses {
		ln, err := p.listen(address)
		if needsOperator(err) {
			p.close()
			return nil, err
		}
		opened[i] = ln
		p.complain(err)
	}
	p.start(ctx, addresses, opened)
	return p, nil
}

// openPortsLater is openPorts, except that it tries again in the background after every
// error.
func openPortsLater(o *Options, n *notice.Log, name string, addresses []string, handle func(net.Conn)) *ports {
	ctx, cancel := context.WithCancel(context.Background())
	p := &ports{o: o, notices: n, name: name, handle: handle, cancel: cancel}
	opened := make([]net.Listener, len(addresses))
	for i, address := range addresses {
		var err error
		opened[i], err = p.listen(address)
		p.complain(err)
	}
	p.start(ctx, addresses, opened)
	return p
}

// tryPorts opens all addresses and closes them again. Its errors are those of openPorts.
func tryPorts(o *Options, name string, addresses []string) error {
	p := &ports{o: o, name: name}
	for _, address := range addresses {
		switch ln, err := p.listen(address); {
		case err == nil:
			p.forget(ln)
		case needsOperator(err):
			return err
		}
	}
	return nil
}

func (p *ports) start(ctx context.Context, addresses []string, opened []net.Listener) {
	for i, address := range addresses {
		p.done.Go(func() { p.serve(ctx, address, opened[i]) })
	}
}

// close closes all ports and waits until no connection is passed on any more.
func (p *ports) close() {
	p.cancel()
	p.mu.Lock()
	for _, ln := range p.open {
		ln.Close()
	}
	p.open = nil
	p.mu.Unlock()
	p.done.Wait()
}

// failure returns why one of the addresses is not open; nil: all are.
func (p *ports) failure() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, address := range slices.Sorted(maps.Keys(p.failed)) {
		return p.failed[address]
	}
	return nil
}

// listen opens one address. The error says what to do.
func (p *ports) listen(address string) (net.Listener, error) {
	ln, err := p.tryListen(address)
	p.mu.Lock()
	defer p.mu.Unlock()
	if err != nil {
		if p.failed == nil {
			p.failed = map[string]error{}
		}
		p.failed[address] = err
		return nil, err
	}
	delete(p.failed, address)
	p.open = append(p.open, ln)
	return ln, nil
}

func (p *ports) tryListen(address string) (net.Listener, error) {
	ln, err := p.o.Listen(address)
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, fmt.Errorf("%s port %s is in use by another process: stop that one, or change this server's line in the configuration of all servers: %w", p.name, address, err)
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return nil, fmt.Errorf("%s port %s cannot be opened because this machine does not have that address: correct this server's line, or set quorumListenOnAllIPs=true: %w", p.name, address, err)
	case err != nil:
		return nil, fmt.Errorf("%s port %s cannot be opened: %w", p.name, address, err)
	}
	return ln, nil
}

// needsOperator reports whether an operator must act on an error of listen.
func needsOperator(err error) bool {
	return errors.Is(err, syscall.EADDRINUSE) || errors.Is(err, syscall.EACCES)
}

func (p *ports) complain(err error) {
	if err != nil {
		p.o.Log.Error("a port cannot be opened; the server keeps trying", "err", err)
	}
}

// serve accepts connections on one address until close. ln may be nil: not open yet.
func (p *ports) serve(ctx context.Context, address string, ln net.Listener) {
	defer func() {
		if ln != nil {
			p.forget(ln)
		}
	}()
	wait := reopenMin
	for ctx.Err() == nil {
		if ln == nil {
			if !pause(ctx, wait) {
				return
			}
			wait = min(2*wait, reopenMax)
			ln, _ = p.listen(address) // the error was logged when the listener broke
			continue
		}
		served, err := p.accept(ctx, ln)
		p.forget(ln)
		ln = nil
		if ctx.Err() == nil {
			p.complain(err)
		}
		if served {
			wait = reopenMin
		}
	}
}

// accept passes on connections until the listener breaks, and reports whether there were
// any.
func (p *ports) accept(ctx context.Context, ln net.Listener) (served bool, err error) {
	for ; ; served = true {
		c, err := ln.Accept()
		switch {
		case err == nil:
			p.handle(c)
		case ctx.Err() != nil:
			return served, nil
		case stillAccepts(err):
			p.notices.Say(slog.LevelError, "cannot accept connections from other servers: check the limit of open files", "", "err", err)
			if !pause(ctx, acceptPause) {
				return served, nil
			}
		default:
			return served, fmt.Errorf("listening on %s port %s failed: %w", p.name, ln.Addr(), err)
		}
	}
}

// stillAccepts reports whether the listener still works after an error of Accept.
func stillAccepts(err error) bool {
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) || errors.Is(err, syscall.ECONNABORTED)
}

// forget closes a listener that is not used any more, including one that was opened while
// the ports were being closed.
func (p *ports) forget(ln net.Listener) {
	ln.Close()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.open = slices.DeleteFunc(p.open, func(o net.Listener) bool { return o == ln })
}

// local returns where to listen: the addresses as they are, or all addresses of the
// machine at their ports.
func local(addresses []string, all bool) []string {
	var out []string
	for _, address := range addresses {
		host, port, err := net.SplitHostPort(address)
		if err == nil && (all || wildcard(host)) {
			address = net.JoinHostPort("", port)
		}
		if !slices.Contains(out, address) {
			out = append(out, address)
		}
	}
	return out
}

// wildcard reports whether a host stands for all addresses of a machine, so that it
// cannot be dialled.
func wildcard(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "" || err == nil && ip.IsUnspecified()
}
