package server

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net"
	"net/netip"
	"slices"
	"sync"
	"syscall"
	"time"

	"bellwether/internal/config"
	"bellwether/internal/ensemble"
	"bellwether/internal/peer"
	"bellwether/internal/peerwire"
	"bellwether/internal/secure"
	"bellwether/internal/zab"
	"bellwether/wire"
)

// certificates are the stores of a server; nil: no port of that kind uses TLS.
type certificates struct {
	clients, servers *secure.Store
	accept           *tls.Config // for clients; one for all, so that they can resume their TLS sessions
}

// openCertificates reads the key stores and trust stores of a configuration.
func openCertificates(c *config.TLS) (k certificates, err error) {
	if c.ForClients() {
		if k.clients, err = secure.Open(c.Clients); err != nil {
			return k, err
		}
		if k.accept, err = k.clients.Server(); err != nil {
			return k, err
		}
	}
	if c.ForServers() {
		k.servers, err = secure.Open(c.Servers)
	}
	return k, err
}

// TryFiles reads the files with secrets and certificates that New would read, tries whether the
// audit log can be written, and returns the error of New. The warnings name the certificates that
// have expired or soon will.
func TryFiles(c *config.Config) (warnings []string, err error) {
	_, err = readSecrets(c)
	_, noLogins := openLogins(c)
	peers, noPeers := openPeerAuth(c, func() *ensemble.Membership { return c.Ensemble.Members }, slog.New(slog.DiscardHandler), nil)
	peers.end()
	k, failed := openCertificates(&c.TLS)
	for _, store := range []*secure.Store{k.clients, k.servers} {
		if store == nil {
			continue
		}
		for _, cert := range store.Certificates() {
			if _, text := cert.Expiry(time.Now()); text != "" && !slices.Contains(warnings, text) {
				warnings = append(warnings, text)
			}
		}
	}
	return warnings, errors.Join(err, tryAudit(c), noLogins, noPeers, failed)
}

// eachStore calls f for each store. watch says whether the configuration asks that its files are
// read again when they change.
func (s *Server) eachStore(f func(store *secure.Store, watch bool)) {
	c := &s.config().TLS
	if s.certs.clients != nil {
		f(s.certs.clients, c.ClientReload)
	}
	if s.certs.servers != nil {
		f(s.certs.servers, c.QuorumReload)
	}
}

// watchCertificates reads the files of certificates again when they change, where the
// configuration asks for that, and warns before they expire, until ctx ends.
func (s *Server) watchCertificates(ctx context.Context) {
	s.eachStore(func(store *secure.Store, watch bool) {
		if watch {
			s.writers.Go(func() {
				store.Watch(ctx, func(err error) { s.tellRenewed(store, err) })
			})
		}
	})
	if s.certs != (certificates{}) {
		s.writers.Go(func() { s.warnOfExpiry(ctx) })
	}
}

// reloadCertificates reads all files with certificates again, and adds the outcome to changes.
// It always logs the outcome, because an operator has asked for it.
func (s *Server) reloadCertificates(changes *config.Changes) {
	s.eachStore(func(store *secure.Store, _ bool) {
		keys := keysOf(store)
		changed, err := store.ReloadNow()
		switch {
		case err != nil:
			changes.Refused = append(changes.Refused, keys)
		case changed:
			changes.Renewed = append(changes.Renewed, keys)
		default:
			s.log.Info("certificates were read again; their files have not changed", "keys", keys)
			return
		}
		s.tellRenewed(store, err)
	})
}

// keysOf returns the keys of a store's settings for messages, such as ssl.*.
func keysOf(store *secure.Store) string { return string(store.Settings().Family) + "*" }

// tellRenewed logs that certificates were replaced, or why they were not.
func (s *Server) tellRenewed(store *secure.Store, err error) {
	keys := keysOf(store)
	if err != nil {
		s.log.Error("the certificates are not replaced; the old ones stay in use", "keys", keys, "err", err)
		return
	}
	s.log.Info("certificates were read again; new connections use them", "keys", keys)
	s.logExpiry(store)
}

// expiryEvery is how often the certificates' dates are looked at.
const expiryEvery = 12 * time.Hour

// warnOfExpiry logs certificates that expire soon, at the start and twice a day.
func (s *Server) warnOfExpiry(ctx context.Context) {
	tick := time.NewTicker(expiryEvery)
	defer tick.Stop()
	for {
		s.eachStore(func(store *secure.Store, _ bool) { s.logExpiry(store) })
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// logExpiry logs the certificates of a store that have expired or soon will.
func (s *Server) logExpiry(store *secure.Store) {
	for _, c := range store.Certificates() {
		if days, text := c.Expiry(time.Now()); text != "" {
			s.log.Warn(text, "days", days)
		}
	}
}

// expires returns when the first of the certificates expires that a server shows with a store:
// its own and those of its issuers. It returns zero if the store is nil or has none to show.
func expires(store *secure.Store) time.Time {
	if store == nil {
		return time.Time{}
	}
	return store.Expires()
}

// certificateGauges registers the figures about certificates. They are not shown without TLS.
func (s *Server) certificateGauges() {
	seconds := func(at time.Time) float64 {
		if at.IsZero() {
			return math.NaN()
		}
		return math.Floor(time.Until(at).Seconds())
	}
	r := s.stats.registry
	r.Gauge("tls_client_certificate_expiry_seconds", func() float64 { return seconds(expires(s.certs.clients)) })
	r.Gauge("tls_quorum_certificate_expiry_seconds", func() float64 { return seconds(expires(s.certs.servers)) })
}

// secured wraps a client connection of a port that takes TLS. plain says whether it takes
// connections without TLS too.
func (s *Server) secured(nc net.Conn, plain bool) net.Conn {
	return &secureConn{Conn: nc, config: s.certs.accept, unified: plain, aside: s.writers.Go, budget: &s.budget}
}

// identify adds the id of the client's certificate to the identities of its connection.
func (c *conn) identify() {
	sc, ok := c.net.(*secureConn)
	if !ok {
		return
	}
	cert := sc.certificate()
	if cert == nil {
		return // without TLS, or the settings do not ask for a certificate
	}
	id, err := c.srv.config().TLS.Clients.Identity.Of(cert)
	if err != nil { // id is the subject in this case
		const what = "no id of a client's certificate fits ssl.x509.clientCertId*: its subject is the id"
		c.srv.warn(what, c.net.RemoteAddr(), what, "addr", c.addr, "id", id, "err", err)
	}
	ids := append(slices.Clone(*c.ids.Load()), wire.ID{Scheme: "x509", ID: id})
	if super := c.srv.config().Access.X509Super; super != "" && id == super {
		ids = append(ids, wire.ID{Scheme: "super"})
	}
	c.mutual = true
	c.ids.Store(&ids)
}

// DialTLS returns the configuration for a connection to the client port of another server of
// the ensemble, with the certificates of this server's client port; nil: it has none. host is
// the name that was dialled, and address the address of the connection.
func (s *Server) DialTLS(ctx context.Context, host string, address netip.Addr) *tls.Config {
	if s.certs.clients == nil {
		return nil
	}
	if _, err := netip.ParseAddr(host); err == nil {
		host = ""
	}
	return s.certs.clients.Client(ctx, host, address)
}

// faultMax bounds the logged reason of a failed handshake, in bytes.
const faultMax = 500

// warnHandshake logs why a client's TLS handshake failed. If the client ended the connection
// during the handshake, that may be a port scan or a health check, and is not logged.
func (s *Server) warnHandshake(c *conn, err error) {
	s.stats.handshakesFailed.Add(1)
	if errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) {
		return
	}
	r := secure.Explain(err, "")
	text := r.Error()
	if len(text) > faultMax {
		text = text[:faultMax] + "…"
	}
	s.warn("a client was refused: "+r.Kind(), c.net.RemoteAddr(), "a client was refused: "+text, "addr", c.addr)
}

// secureLinks returns the functions that secure connections between servers.
func (s *Server) secureLinks() peer.Secure {
	if s.peerAuth == nil {
		return s.tlsLinks()
	}
	return s.peerAuth.inside(s.tlsLinks())
}

// tlsLinks returns the functions that add TLS to connections between servers.
func (s *Server) tlsLinks() peer.Secure {
	store := s.certs.servers
	if store == nil {
		return peer.Secure{}
	}
	t := &s.config().TLS
	limit := peerHandshakeMax(s.config())
	p := peer.Secure{Server: func(c net.Conn, purpose peer.Purpose, id ensemble.ServerID, _ string) (net.Conn, error) {
		if purpose == peer.ForVotes {
			return c, s.checkMember(certificateOf(c), id)
		}
		if !t.QuorumUnified {
			return s.acceptPeer(c)
		}
		begun, isTLS, err := secure.Detect(c, min(limit, store.Settings().DetectionTimeout))
		if err != nil {
			return nil, err
		}
		if err := c.SetReadDeadline(time.Now().Add(limit)); err != nil || !isTLS {
			return begun, err
		}
		return s.acceptPeer(begun)
	}}
	if t.Quorum {
		p.Client = func(c net.Conn, purpose peer.Purpose, id ensemble.ServerID, address string) (net.Conn, error) {
			if purpose == peer.ForVotes {
				return c, nil
			}
			c, err := s.dialPeer(c, address)
			if err == nil {
				err = s.checkMember(certificateOf(c), id) // the member may have been dialled at an address that it has sent
			}
			return c, err
		}
	}
	return p
}

// certificateOf returns the certificate that the other end of a connection has shown; nil:
// none, or the connection is without TLS.
func certificateOf(c net.Conn) *x509.Certificate {
	for {
		if t, ok := c.(*tls.Conn); ok {
			if shown := t.ConnectionState().PeerCertificates; len(shown) > 0 {
				return shown[0]
			}
			return nil
		}
		inner, ok := c.(interface{ NetConn() net.Conn })
		if !ok {
			return nil
		}
		c = inner.NetConn()
	}
}

// resolveMax is how long the names of a member may take to be resolved.
const resolveMax = 2 * time.Second

// checkMember returns an error if a certificate does not belong to the member of the ensemble
// whose id its owner claims. The certificate must hold a name or an address of that member's
// server line, unless ssl.quorum.hostnameVerification is off or the certificate has the name of
// ssl.quorum.sharedName. checkMember returns nil if there is nothing to compare: there is no
// certificate, the id is not that of a member, or the member's line has a wildcard address.
func (s *Server) checkMember(cert *x509.Certificate, id ensemble.ServerID) error {
	member, ok := s.config().Ensemble.Members.Server(id)
	if cert == nil || !ok {
		return nil
	}
	var hosts []string
	for _, a := range member.Addresses {
		if (ensemble.HostPort{Host: a.Host}).IsWildcard() {
			return nil
		}
		hosts = append(hosts, a.Host)
	}
	ctx, cancel := context.WithTimeout(s.member.securing, resolveMax)
	defer cancel()
	if err := s.certs.servers.CheckMember(ctx, cert, hosts...); err != nil {
		return fmt.Errorf("it claims to be server.%d: %w", id, err)
	}
	return nil
}

// claims checks that learners are the servers that they say they are. Only the links'
// readers call it.
type claims struct {
	srv *Server

	mu sync.Mutex
	// unproved holds the certificates of learners that have not said yet who they are.
	unproved map[zab.LinkID]*x509.Certificate
}

// opened notes the certificate of a new link.
func (k *claims) opened(link zab.LinkID, c net.Conn) {
	if cert := certificateOf(c); cert != nil {
		k.mu.Lock()
		defer k.mu.Unlock()
		k.unproved[link] = cert
	}
}

// closed forgets a link.
func (k *claims) closed(link zab.LinkID) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.unproved, link)
}

// check checks the first packet of a link, in which a learner says who it is.
func (k *claims) check(link zab.LinkID, first *peerwire.QuorumPacket) error {
	k.mu.Lock()
	cert := k.unproved[link]
	delete(k.unproved, link)
	k.mu.Unlock()
	var info peerwire.LearnerInfo
	if cert == nil || wire.Decode(first.Data, &info) != nil {
		return nil // the replica refuses what is not a learner's first packet
	}
	return k.srv.checkMember(cert, info.Server)
}

// acceptPeer carries out the handshake on a connection that another server has dialled. The
// connection has a deadline.
func (s *Server) acceptPeer(c net.Conn) (net.Conn, error) {
	config, err := s.certs.servers.Server()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(s.member.securing, peerHandshakeMax(s.config()))
	defer cancel()
	return handshake(ctx, tls.Server(secure.OnlyTLS(c), config))
}

// dialPeer carries out the handshake on a connection to another server.
func (s *Server) dialPeer(c net.Conn, address string) (net.Conn, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	var at netip.Addr
	if a, ok := c.RemoteAddr().(*net.TCPAddr); ok {
		at = a.AddrPort().Addr().Unmap()
	}
	ctx, cancel := context.WithTimeout(s.member.securing, peerHandshakeMax(s.config()))
	defer cancel()
	return handshake(ctx, tls.Client(c, s.certs.servers.Client(ctx, host, at)))
}

// handshake carries out the handshake of TLS. The deadline of the connection and the end of ctx
// limit it.
func handshake(ctx context.Context, c *tls.Conn) (net.Conn, error) {
	if err := c.HandshakeContext(ctx); err != nil {
		return nil, secure.Explain(err, "")
	}
	return &peerConn{c}, nil
}

// peerConn is a connection between servers with TLS. With TLS 1.3 a server learns only by its
// first read that the other one has refused its certificate; peerConn explains that error.
type peerConn struct{ *tls.Conn }

// Read reads what the other server has sent.
func (c *peerConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if op := (*net.OpError)(nil); errors.As(err, &op) && op.Op == peer.RemoteAlert {
		err = secure.Explain(err, "")
	}
	return n, err
}

// NetConn returns the connection with TLS.
func (c *peerConn) NetConn() net.Conn { return c.Conn }
