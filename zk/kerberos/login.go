package kerberos

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"

	"bellwether/internal/sasl/kerberos"
	"bellwether/zk"
)

// The defaults of Options.
const (
	confDefault    = "/etc/krb5.conf"
	serviceDefault = "zookeeper/_HOST"
)

// Options say who logs in, with which credentials, and to which service. Either KeyTab or
// TicketCache is set.
type Options struct {
	// Conf is the path of krb5.conf, which names the KDCs. Default /etc/krb5.conf.
	Conf string
	// Principal is the name of the client. Without a realm it is of the default realm. With
	// a TicketCache it may be empty; the cache names the client.
	Principal   string
	KeyTab      string // a file with the client's keys
	TicketCache string // a file with the client's tickets, made by kinit
	// Service is the principal of the servers. _HOST stands for the name of the server to
	// which the client connects. Without a realm it is of the client's realm. Default
	// zookeeper/_HOST.
	Service string
	// HostAsGiven makes _HOST the server's name in the server list. Otherwise it is the
	// name to which the address of the server resolves, if there is one, as in ZooKeeper.
	HostAsGiven bool
}

// Login is a client that can log in to servers. It is safe for concurrent use.
type Login struct {
	opt    Options
	lookup resolver
	login  *kerberos.Login
	asking chan struct{} // holds a value while a goroutine waits for the KDC

	mu     sync.Mutex
	closed bool
}

// resolver is the part of *net.Resolver that finds the name of an address.
type resolver interface {
	LookupAddr(ctx context.Context, address string) ([]string, error)
	LookupHost(ctx context.Context, host string) ([]string, error)
}

// New reads the configuration and the credentials. It does not ask the KDC. The caller must
// close the Login after the last client that uses it.
func New(o Options) (*Login, error) {
	if o.Conf == "" {
		o.Conf = confDefault
	}
	if o.Service == "" {
		o.Service = serviceDefault
	}
	login, err := kerberos.NewLogin(kerberos.Config{Conf: o.Conf, Principal: o.Principal, KeyTab: o.KeyTab, TicketCache: o.TicketCache})
	if err != nil {
		return nil, err
	}
	return &Login{opt: o, lookup: net.DefaultResolver, login: login, asking: make(chan struct{}, 1)}, nil
}

// Begin gets a ticket for a server and begins a login there: it is a zk.Mechanism. If the
// KDC does not answer before the context ends, Begin returns, and the ticket that comes later
// is used by a later call.
func (l *Login) Begin(ctx context.Context, server zk.Server) (zk.Exchange, error) {
	service := l.service(ctx, server)
	type outcome struct {
		x   zk.Exchange
		err error
	}
	came := make(chan outcome, 1)
	late := func() error {
		return fmt.Errorf("no ticket for %s: the KDC of Kerberos has not answered: %w", service, context.Cause(ctx))
	}
	select {
	case l.asking <- struct{}{}:
	case <-ctx.Done():
		return nil, late()
	}
	go func() {
		x, err := l.login.Begin(service)
		came <- outcome{x, err}
		l.answered()
	}()
	select {
	case o := <-came:
		if o.err != nil {
			return nil, fmt.Errorf("logging in with Kerberos: %w", o.err)
		}
		return o.x, nil
	case <-ctx.Done():
		return nil, late()
	}
}

// answered ends the wait for the KDC. If Close was called meanwhile, answered ends the
// renewal of the ticket, which Close could not do.
func (l *Login) answered() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		l.login.Close()
	}
	<-l.asking
}

// Close ends the renewal of the ticket. It does not wait for a KDC that is being asked.
func (l *Login) Close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	select {
	case l.asking <- struct{}{}:
		l.login.Close()
		<-l.asking
	default: // a request to a KDC is under way; the method answered closes the login after it
	}
}

// service returns the principal of a server.
func (l *Login) service(ctx context.Context, server zk.Server) string {
	name, realm, hasRealm := strings.Cut(l.opt.Service, "@")
	service, host, _ := strings.Cut(name, "/")
	if host != "_HOST" {
		return l.opt.Service
	}
	service += "/" + strings.ToLower(l.hostOf(ctx, server))
	if hasRealm {
		service += "@" + realm
	}
	return service
}

// hostOf returns the name of a server in its principal.
func (l *Login) hostOf(ctx context.Context, server zk.Server) string {
	ip, _, err := net.SplitHostPort(server.Address)
	if l.opt.HostAsGiven || err != nil {
		return server.Host
	}
	names, err := l.lookup.LookupAddr(ctx, ip)
	if err != nil || len(names) == 0 {
		return server.Host
	}
	// The owner of an address chooses the name to which it resolves, so the name must
	// resolve to the address too.
	name := strings.TrimSuffix(names[0], ".")
	if back, err := l.lookup.LookupHost(ctx, name); err != nil || !slices.Contains(back, ip) {
		return server.Host
	}
	return name
}
