package zk

import (
	"cmp"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"os"
	"sync"
)

// TLSFiles names PEM files for TLS. The client reads them at each connection, so renewed
// files are used without a restart.
type TLSFiles struct {
	CA   string // the authorities that sign the servers' certificates; empty: the system's
	Cert string // the client's own certificate and chain; empty: none
	Key  string // the client's private key; empty: in the file Cert
}

// Server is a server to which the client is connecting.
type Server struct {
	Host    string // name or address of the server in the server list, or the name that an SRV record gives
	Address string // IP:port of the connection
}

func (a address) server() Server { return Server{a.name, a.String()} }

// dial opens the connection, with TLS if the options ask for it.
func (c *Client) dial(ctx context.Context, a address) (net.Conn, error) {
	config, err := c.tlsConfig(ctx, a)
	if err != nil {
		return nil, fmt.Errorf("TLS: %w", err)
	}
	conn, err := c.opt.Dial(ctx, "tcp", a.String())
	if err == nil && conn == nil {
		err = errNoConn
	}
	if err != nil || config == nil {
		return conn, err
	}
	secure := secureClient(conn, config)
	if err := secure.HandshakeContext(ctx); err != nil {
		conn.Close()
		return nil, explainTLS(err, secure.shown)
	}
	return secure, nil
}

// tlsConfig returns nil if the options do not ask for TLS.
func (c *Client) tlsConfig(ctx context.Context, a address) (*tls.Config, error) {
	if c.opt.TLSConfig != nil {
		return c.opt.TLSConfig(ctx, a.server())
	}
	if c.opt.TLS == nil && c.opt.TLSFiles == nil {
		return nil, nil
	}
	config := &tls.Config{}
	if c.opt.TLS != nil {
		config = c.opt.TLS.Clone()
	}
	if config.ServerName == "" {
		config.ServerName = a.name
	}
	if c.opt.TLSFiles == nil {
		return config, nil
	}
	return config, c.tlsFiles.load(c.opt.TLSFiles, config)
}

// tlsFiles remembers the TLS sessions that were begun with the present contents of
// TLSFiles. A later connection resumes one of them, which saves time and work at both
// ends. A session keeps the certificates with which it began, so after a change of the
// files the sessions are forgotten.
type tlsFiles struct {
	mu       sync.Mutex
	sum      [sha256.Size]byte // of the files
	sessions tls.ClientSessionCache
}

// tlsSessionsMax bounds how many TLS sessions a client remembers: one for each server.
const tlsSessionsMax = 64

// load adds the contents of the files to a configuration.
func (t *tlsFiles) load(f *TLSFiles, config *tls.Config) error {
	sum := sha256.New()
	read := func(name string) (text []byte, err error) {
		if name == "" {
			return nil, nil
		}
		text, err = os.ReadFile(name)
		one := sha256.Sum256(text)
		sum.Write(one[:])
		return text, err
	}
	ca, err := read(f.CA)
	if err != nil {
		return err
	}
	cert, err := read(f.Cert)
	if err != nil {
		return err
	}
	key, err := read(f.Key)
	if err != nil {
		return err
	}
	if err := f.use(config, ca, cert, key); err != nil {
		return err
	}
	config.ClientSessionCache = t.cache([sha256.Size]byte(sum.Sum(nil)))
	return nil
}

// cache returns the sessions that belong to files with this checksum.
func (t *tlsFiles) cache(sum [sha256.Size]byte) tls.ClientSessionCache {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.sessions == nil || t.sum != sum {
		t.sum, t.sessions = sum, tls.NewLRUClientSessionCache(tlsSessionsMax)
	}
	return t.sessions
}

// use puts the contents of the files into a configuration.
func (f *TLSFiles) use(config *tls.Config, ca, cert, key []byte) error {
	if f.CA != "" {
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(ca) {
			return fmt.Errorf("%s holds no certificate in PEM form", f.CA)
		}
	}
	if f.Cert == "" {
		return nil
	}
	if f.Key == "" {
		key = cert
	}
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return fmt.Errorf("certificate %s with key %s: %w", f.Cert, cmp.Or(f.Key, f.Cert), err)
	}
	config.Certificates = []tls.Certificate{pair}
	return nil
}
