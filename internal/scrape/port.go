package scrape

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync/atomic"
	"syscall"
	"time"
)

// The limits of the port.
const (
	connectionsMax = 64              // open connections; a further one is closed at once
	headerMax      = 16 << 10        // bytes of a request's headers
	headerTime     = 5 * time.Second // for the headers of a request to arrive
	bodyTime       = 5 * time.Second // for the rest of a request, after its headers
	idleTime       = 3 * time.Minute // between two scrapes on one connection
	endMax         = time.Second     // how long Run waits for scrapes under way
)

// Port is an open port for metrics.
type Port struct {
	listener *limited
	server   *http.Server
}

// Open opens a port at host:port that answers /metrics with a handler. Clients wait in the
// backlog until Run serves them.
func Open(address string, metrics http.Handler, log *slog.Logger) (*Port, error) {
	ln, err := net.Listen("tcp", address)
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, &inUseError{address}
	}
	if err != nil {
		return nil, fmt.Errorf("metrics port %s cannot be opened: %w; correct metricsProvider.httpHost or metricsProvider.httpPort", address, err)
	}
	mux := http.NewServeMux()
	mux.Handle("/metrics", metrics)
	return &Port{
		listener: &limited{Listener: ln},
		server: &http.Server{
			Handler: mux, MaxHeaderBytes: headerMax, ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug),
			ReadHeaderTimeout: headerTime, ReadTimeout: headerTime + bodyTime, WriteTimeout: scrapeMax + headerTime, IdleTimeout: idleTime,
		},
	}, nil
}

// inUseError says that another process uses the port. It is a syscall.EADDRINUSE.
type inUseError struct{ address string }

func (e *inUseError) Error() string {
	return fmt.Sprintf("metrics port %s is in use by another process: stop that one, or choose another metricsProvider.httpPort", e.address)
}

func (e *inUseError) Unwrap() error { return syscall.EADDRINUSE }

// Addr returns the address of the port.
func (p *Port) Addr() net.Addr { return p.listener.Addr() }

// Close closes a port that was never run.
func (p *Port) Close() error { return p.listener.Close() }

// Run answers requests until ctx ends. It returns when its goroutines have ended.
func (p *Port) Run(ctx context.Context) error {
	ended := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(ended)
		limit, cancel := context.WithTimeout(context.WithoutCancel(ctx), endMax)
		defer cancel()
		if err := p.server.Shutdown(limit); err != nil {
			p.server.Close()
		}
	})
	err := p.server.Serve(p.listener)
	if !stop() {
		<-ended
	}
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return fmt.Errorf("metrics port: %w", err)
}

// limited closes connections above connectionsMax at once.
type limited struct {
	net.Listener
	open atomic.Int64
}

func (l *limited) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if l.open.Add(1) <= connectionsMax {
			return &counted{Conn: c, open: &l.open}, nil
		}
		l.open.Add(-1)
		c.Close()
	}
}

// counted is a connection of a limited listener, which counts it until it is closed.
type counted struct {
	net.Conn
	open   *atomic.Int64
	closed atomic.Bool
}

func (c *counted) Close() error {
	if !c.closed.Swap(true) {
		c.open.Add(-1)
	}
	return c.Conn.Close()
}
