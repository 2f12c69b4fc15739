package secure

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/netip"
)

// Server returns the configuration for accepting connections. Each connection uses the certificates that
// are loaded when it begins. It is an error if there is no key.
func (s *Store) Server() (*tls.Config, error) {
	if s.settings.KeyStore.Location == "" {
		key := string(s.settings.Family) + "keyStore.location"
		return nil, &SettingError{key, "", "", "a port with TLS needs a key and its certificate", "set " + key}
	}
	return &tls.Config{
		// crypto/tls keeps the keys of session tickets in this configuration, so sessions outlive a
		// reload.
		MinVersion: s.settings.MinVersion,
		GetConfigForClient: func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
			return s.accepting(hello.Context(), addressOf(hello.Conn)), nil
		},
	}, nil
}

// accepting returns the configuration of one accepted connection. ctx is that of its handshake.
func (s *Store) accepting(ctx context.Context, address netip.Addr) *tls.Config {
	l := s.loaded.Load()
	c := s.base(l)
	c.Certificates = l.certificates
	c.ClientCAs = l.announced
	// This package checks the certificate itself, so that the refusal names a reason and a remedy.
	switch s.settings.ClientAuth {
	case Need:
		c.ClientAuth = tls.RequireAnyClientCert
	case Want:
		c.ClientAuth = tls.RequestClientCert
	}
	c.VerifyConnection = func(state tls.ConnectionState) error {
		return l.verifier.check(ctx, state, end{address: address}, false)
	}
	return c
}

// CheckClient returns an error if the certificates that the other end of an accepted connection has shown
// would not be accepted here. The connection may have been accepted by another Store.
func (s *Store) CheckClient(ctx context.Context, state tls.ConnectionState, address netip.Addr) error {
	return s.loaded.Load().verifier.check(ctx, state, end{address: address}, false)
}

// Client returns the configuration for a connection to a server. host is the name that was dialled, or
// empty if an address was dialled. address is the address of the connection. When ctx ends, the check of
// the server's certificate ends, so ctx must be the one of the handshake. With TLS 1.3 a server that
// refuses this end's certificate says so only after the handshake: the first read fails, and Explain
// explains that error too.
func (s *Store) Client(ctx context.Context, host string, address netip.Addr) *tls.Config {
	l := s.loaded.Load()
	c := s.base(l)
	if _, err := netip.ParseAddr(host); err == nil {
		host = ""
	}
	c.ServerName = host
	c.GetClientCertificate = func(request *tls.CertificateRequestInfo) (*tls.Certificate, error) {
		for i := range l.certificates {
			if request.SupportsCertificate(&l.certificates[i]) == nil {
				return &l.certificates[i], nil
			}
		}
		// As in Java, if the server accepts none of the certificates, the client shows none, and the
		// server reports that.
		return new(tls.Certificate), nil
	}
	// VerifyConnection checks everything that this setting skips, and more.
	c.InsecureSkipVerify = true
	c.VerifyConnection = func(state tls.ConnectionState) error {
		return l.verifier.check(ctx, state, end{address: address, host: host}, true)
	}
	return c
}

// base returns the part of the configuration that both ends have in common.
func (s *Store) base(l *loaded) *tls.Config {
	return &tls.Config{
		MinVersion:   s.settings.MinVersion,
		MaxVersion:   s.settings.MaxVersion,
		CipherSuites: s.settings.CipherSuites,
		Time:         s.now,
	}
}

// addressOf returns the address of the other end of a connection. It is not valid if the connection has
// none.
func addressOf(c net.Conn) netip.Addr {
	if c == nil {
		return netip.Addr{}
	}
	if a, ok := c.RemoteAddr().(*net.TCPAddr); ok {
		return a.AddrPort().Addr().Unmap()
	}
	p, err := netip.ParseAddrPort(c.RemoteAddr().String())
	if err != nil {
		return netip.Addr{}
	}
	return p.Addr().Unmap()
}

// pool returns certificates as crypto/x509 takes them.
func pool(certs []*x509.Certificate) *x509.CertPool {
	p := x509.NewCertPool()
	for _, c := range certs {
		p.AddCert(c)
	}
	return p
}
