package web

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"time"

	"bellwether/internal/admin/access"
	"bellwether/internal/server"
)

// Options are the parameters of an admin port.
type Options struct {
	Server  *server.Server // required
	Version string         // ZooKeeper's version and ours, as in srvr
	Log     *slog.Logger   // nil: nothing is logged
	Address string         // host:port; port 0: any free one
	// Metrics answers /metrics, API what is below /v1/, Page everything else. nil: 404.
	Metrics, API, Page http.Handler
}

// Port is an open admin port.
type Port struct {
	opt    Options
	ln     net.Listener
	access *access.Access
}

// Open opens the port. Clients wait in the backlog until Run serves them.
func Open(o Options) (*Port, error) {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	a, err := access.New(access.Options{})
	if err != nil {
		return nil, err
	}
	ln, err := net.Listen("tcp", o.Address)
	if err != nil {
		return nil, err
	}
	return &Port{opt: o, ln: ln, access: a}, nil
}

// Addr returns the address of the port.
func (p *Port) Addr() net.Addr { return p.ln.Addr() }

// URL returns the address of the page.
func (p *Port) URL() string { return "http://" + p.ln.Addr().String() + "/" }

// Close closes a port that was never run.
func (p *Port) Close() error { return p.ln.Close() }

// endMax is how long Run waits for requests in process.
const endMax = 2 * time.Second

// Run answers requests until ctx ends. It returns when its goroutines have ended.
func (p *Port) Run(ctx context.Context) error {
	s := &http.Server{Handler: p.routes(), ReadHeaderTimeout: 10 * time.Second, BaseContext: func(net.Listener) context.Context { return ctx }}
	ended := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(ended)
		limit, cancel := context.WithTimeout(context.WithoutCancel(ctx), endMax)
		defer cancel()
		if err := s.Shutdown(limit); err != nil {
			s.Close()
		}
	})
	err := s.Serve(p.ln)
	if !stop() {
		<-ended
	}
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

// routes returns the handler of all requests.
func (p *Port) routes() http.Handler {
	mux := http.NewServeMux()
	plug := func(pattern string, h http.Handler) {
		if h != nil {
			mux.Handle(pattern, h)
		}
	}
	plug("/metrics", p.opt.Metrics)
	plug("/v1/", p.guarded(p.opt.API))
	plug("/", p.guarded(p.opt.Page))
	return mux
}

// guarded lets access decide about the requests for a handler.
func (p *Port) guarded(h http.Handler) http.Handler {
	if h == nil {
		return nil
	}
	return p.access.Guard(h)
}
