package web

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"

	"bellwether/internal/admin"
	"bellwether/internal/admin/access"
	"bellwether/internal/config"
	"bellwether/internal/secure"
	"bellwether/internal/server"
)

// Options are the parameters of an admin port.
type Options struct {
	Server *server.Server // required; its configuration says where the port is
	// Admin answers ZooKeeper's commands. It must be the one that answers the server's four-letter words.
	Admin *admin.Admin
	Log   *slog.Logger // nil: nothing is logged
	// Metrics answers /metrics, API what is below /v1/, Page everything else. nil: 404. What Page answers below /assets/
	// and at /theme does not need a sign-in, because the page of the sign-in needs it.
	Metrics, API, Page http.Handler
	// SignIn writes the page of the sign-in; nil: a plain one.
	SignIn access.FormWriter
	// Collect keeps figures for the page while the port runs, until its context ends. nil: none are kept.
	Collect func(ctx context.Context)

	headerTime time.Duration // only tests change it; 0: headerTime
}

// Port is an open admin port.
type Port struct {
	opt      Options
	cfg      config.Admin
	listen   *listener
	access   *access.Access
	loopback bool          // the port is on a loopback address
	certs    *secure.Store // nil: no TLS
	watch    bool          // the files of certs are read again when they change
	handlers sync.WaitGroup
}

// InUseError says that the port cannot be opened.
type InUseError struct {
	Address string
	Err     error
}

func (e *InUseError) Error() string {
	return fmt.Sprintf("the admin server cannot listen on %s (admin.serverAddress, admin.serverPort): %v", e.Address, e.Err)
}

func (e *InUseError) Unwrap() error { return e.Err }

// Open opens the port. Clients wait in the backlog until Run serves them. An [*InUseError] says
// that the port cannot be opened; every other error is one of the configuration.
func Open(o Options) (*Port, error) {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	c := o.Server.Config()
	p := &Port{opt: o, cfg: c.Admin, watch: c.TLS.QuorumReload}
	var err error
	if p.access, err = newAccess(o, c); err != nil {
		return nil, err
	}
	if p.certs, err = openCertificates(c); err != nil {
		return nil, err
	}
	at := c.Admin.Address
	if at.IsWildcard() {
		at.Host = "" // IPv4 and IPv6, as in Java
	}
	address := net.JoinHostPort(at.Host, strconv.Itoa(at.Port))
	ln, err := net.Listen("tcp", address)
	if err != nil {
		return nil, &InUseError{address, err}
	}
	p.loopback = access.IsLoopbackHost(ln.Addr().String())
	if p.listen, err = newListener(ln, p.certs, &c.Admin); err != nil {
		return nil, errors.Join(err, ln.Close())
	}
	return p, nil
}

// Check returns the error of the configuration that Open would return. It does not open the port.
func Check(c *config.Config) error {
	if !c.Admin.Enabled {
		return nil
	}
	_, err := access.New(access.Options{TokenFile: c.Admin.TokenFile, CertificateFile: c.Admin.CertificateFile})
	_, failed := openCertificates(c)
	return errors.Join(err, failed)
}

func newAccess(o Options, c *config.Config) (*access.Access, error) {
	return access.New(access.Options{Log: o.Log, TokenFile: c.Admin.TokenFile, CertificateFile: c.Admin.CertificateFile, TLS: c.Admin.TLS(),
		Delay: o.Server.LoginDelay, Failed: o.Server.LoginFailed})
}

// openCertificates reads the key store and the trust store of the port; nil: it does not use TLS.
// As in ZooKeeper, they are the stores of the connections between servers, and the names in the
// certificates of clients are not compared.
func openCertificates(c *config.Config) (*secure.Store, error) {
	if !c.Admin.TLS() {
		return nil, nil
	}
	settings := c.TLS.Servers
	settings.VerifyClientNames, settings.AcceptsClients = false, true
	switch {
	case c.Admin.NeedClientAuth:
		settings.ClientAuth = secure.Need
	case c.Admin.CertificateFile != "":
		settings.ClientAuth = secure.Want
	default:
		settings.ClientAuth = secure.None
	}
	return secure.Open(settings)
}

// Addr returns the address of the port.
func (p *Port) Addr() net.Addr { return p.listen.Addr() }

// URL returns the address of the page for a browser on this machine.
func (p *Port) URL() string {
	scheme := "http"
	if p.cfg.ForceHTTPS {
		scheme = "https"
	}
	host, port, err := net.SplitHostPort(p.Addr().String())
	if err != nil {
		return scheme + "://" + p.Addr().String() + "/"
	}
	if ip := net.ParseIP(host); ip != nil && ip.IsUnspecified() {
		host = "localhost"
	}
	return scheme + "://" + net.JoinHostPort(host, port) + "/"
}

// String describes the port as ZooKeeper does in its log.
func (p *Port) String() string {
	host, port, _ := net.SplitHostPort(p.Addr().String()) // a TCP address has both
	return fmt.Sprintf("Started AdminServer on address %s, port %s and command URL %s", host, port, p.cfg.CommandURL)
}

// Close closes a port that was never run.
func (p *Port) Close() error { return p.listen.Close() }

// Reload reads the operators and the certificates again, as SIGHUP requests. It logs the outcome.
// If the operators or the certificates cannot be read, the old ones stay in use.
func (p *Port) Reload() {
	if p.cfg.TokenFile != "" || p.cfg.CertificateFile != "" {
		if err := p.access.Reload(); err != nil {
			p.opt.Log.Error("the operators of the admin server cannot be read again; the old ones stay in use", "err", err)
		} else {
			p.opt.Log.Info("the operators of the admin server were read again")
		}
	}
	if p.certs != nil {
		changed, err := p.certs.ReloadNow()
		if changed || err != nil {
			p.tellRenewed(err)
		}
	}
}

func (p *Port) tellRenewed(err error) {
	if err != nil {
		p.opt.Log.Error("the certificates of the admin server are not replaced; the old ones stay in use", "err", err)
		return
	}
	p.opt.Log.Info("the certificates of the admin server were read again; new connections use them")
}

const (
	// endMax is how long Run waits for requests in process before it closes their connections.
	endMax = 2 * time.Second
	// headerTime is how long a client may take to send the header of a request.
	headerTime = 10 * time.Second
	// headerMax bounds the header of a request, in bytes.
	headerMax = 16 << 10
)

// Run answers requests until ctx ends. It returns when its goroutines have ended. Some of them
// may wait for the server, so the server must end before Run or at the same time.
func (p *Port) Run(ctx context.Context) error {
	idle := p.cfg.IdleTimeout
	s := &http.Server{
		Handler: p.count(p.routes()), ReadHeaderTimeout: cmp.Or(p.opt.headerTime, headerTime), IdleTimeout: cmp.Or(max(idle, -1), -1), MaxHeaderBytes: headerMax,
		BaseContext: func(net.Listener) context.Context { return ctx },
		ErrorLog:    slog.NewLogLogger(p.opt.Log.Handler(), slog.LevelDebug),
		ConnState:   p.listen.changed,
		ConnContext: withConn,
		TLSConfig:   p.listen.tls,
	}
	var others sync.WaitGroup
	collecting, endCollect := context.WithCancel(ctx)
	defer endCollect()
	if p.opt.Collect != nil {
		others.Go(func() { p.opt.Collect(collecting) })
	}
	if p.certs != nil && p.watch {
		others.Go(func() { p.certs.Watch(ctx, p.tellRenewed) })
	}
	ended := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(ended)
		limit, cancel := context.WithTimeout(context.WithoutCancel(ctx), endMax)
		defer cancel()
		if err := s.Shutdown(limit); err != nil {
			_ = s.Close() // the port is closed already
		}
	})
	err := s.Serve(p.listen)
	if !stop() {
		<-ended
	}
	p.listen.Wait()
	p.handlers.Wait()
	endCollect()
	others.Wait()
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

// count counts the handlers that run, so that Run can wait for them. Close of an http.Server does
// not wait for them.
func (p *Port) count(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.handlers.Add(1)
		defer p.handlers.Done()
		next.ServeHTTP(w, r)
	})
}
