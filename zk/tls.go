package zk

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"os"
)

// TLSFiles names PEM files for TLS. The client reads them at each connection, so renewed
// files are used without a restart.
type TLSFiles struct {
	CA   string // the authorities that sign the servers' certificates; empty: the system's
	Cert string // the client's own certificate and chain; empty: none
	Key  string // its private key
}

// dial opens the connection, with TLS if the options ask for it.
func (c *Client) dial(ctx context.Context, a address) (net.Conn, error) {
	config, err := c.tlsConfig(a)
	if err != nil {
		return nil, err
	}
	conn, err := c.opt.Dial(ctx, "tcp", a.String())
	if err != nil || config == nil {
		return conn, err
	}
	secure := tls.Client(conn, config)
	if err := secure.HandshakeContext(ctx); err != nil {
		conn.Close()
		return nil, err
	}
	return secure, nil
}

// tlsConfig returns nil if the options do not ask for TLS.
func (c *Client) tlsConfig(a address) (*tls.Config, error) {
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
	return config, c.opt.TLSFiles.load(config)
}

func (f *TLSFiles) load(config *tls.Config) error {
	if f.CA != "" {
		text, err := os.ReadFile(f.CA)
		if err != nil {
			return err
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(text) {
			return fmt.Errorf("%s holds no certificate in PEM form", f.CA)
		}
	}
	if f.Cert == "" {
		return nil
	}
	pair, err := tls.LoadX509KeyPair(f.Cert, f.Key)
	if err != nil {
		return fmt.Errorf("certificate %s with key %s: %w", f.Cert, f.Key, err)
	}
	config.Certificates = []tls.Certificate{pair}
	return nil
}
