package clientconfig

import (
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/netip"
	"path"
	"strings"
	"sync"

	"bellwether/internal/secure"
	"bellwether/zk"
)

// encryption holds what connections with TLS share.
type encryption struct {
	store      *secure.Store
	serverName string            // verified in place of each server's own name; empty: none
	words      *strings.Replacer // replaces names of properties in messages by those of flags

	mu       sync.Mutex
	sessions tls.ClientSessionCache // only of sessions that began with the certificates in the store
}

// sessionsMax bounds how many TLS sessions are remembered: one for each server.
const sessionsMax = 64

// loadTLS sets c.tls if the connections are to use TLS.
func (c *Config) loadTLS(g gathered) error {
	if on, err := c.wantsTLS(g); err != nil || !on {
		return err
	}
	if err := c.storesFromFlags(g); err != nil {
		return err
	}
	values := map[string]secure.Value{}
	for name, v := range g {
		if strings.HasPrefix(name, string(secure.Programs)) {
			values[name] = secure.Value{Text: v.text, From: v.from}
		}
	}
	e := &encryption{serverName: g[flagServerName].text, words: wordsOf(g)}
	s, err := secure.Parse(secure.Programs, values)
	if err != nil {
		return e.reword(err)
	}
	s.KeyStore.KeyFile = g[flagKey].text
	c.warnReadable(cmp.Or(s.KeyStore.KeyFile, s.KeyStore.Location), "a private key")
	if s.KeyStore.KeyFile != "" && s.KeyStore.Location == "" {
		return fmt.Errorf("%s has no effect without the certificate of the key: give --%s", g[flagKey].from, flagCert)
	}
	for _, n := range s.Notices {
		c.notice("%s", e.words.Replace(n))
	}
	if e.store, err = secure.Open(s); err != nil {
		return e.reword(err)
	}
	e.sessions = tls.NewLRUClientSessionCache(sessionsMax)
	c.tls = e
	return nil
}

// wantsTLS reports whether the connections use TLS: if the property or the flag for it says
// so, or if the user gives one of the other flags or variables for TLS.
func (c *Config) wantsTLS(g gathered) (bool, error) {
	on, given := g[secureClient]
	for _, s := range Settings {
		v, ok := g[s.id()]
		if strings.HasPrefix(s.Flag, flagTLS+"-") && ok && v.rank >= fromEnv && on.rank < fromEnv {
			return true, nil
		}
	}
	if given && on.rank == fromFile && !on.isTrue() && !strings.EqualFold(on.text, "false") {
		c.notice("%s: %s=%s means false, as in ZooKeeper: only true means true", on.from, secureClient, on.text)
	}
	if on.isTrue() || on.rank >= fromEnv {
		return on.isTrue(), nil
	}
	for _, store := range []string{keyStore, trustStore} {
		if v, ok := g[store+location]; ok && v.rank == fromFile {
			c.notice("%s: %s%s has no effect, and the connection is not encrypted: set %s=true", v.from, store, location, secureClient)
		}
	}
	return false, nil
}

// storesFromFlags sets the type and the password of each store that a flag or a variable
// names. It drops the type and the password that the configuration file gives, because they
// belong to the store that the file names.
func (c *Config) storesFromFlags(g gathered) error {
	secret, hasSecret := g[envTLSPassword]
	if file, ok := g[flagTLSPassword]; ok && file.rank >= secret.rank {
		text, err := c.readPassword(file)
		if err != nil {
			return err
		}
		secret, hasSecret = value{text, file.rank, file.from}, true
	}
	for _, store := range []string{keyStore, trustStore} {
		v := g[store+location]
		if v.rank < fromEnv {
			continue
		}
		for _, part := range []string{"type", "password", "passwordPath"} {
			delete(g, store+part)
		}
		g[store+"type"] = value{storeType(v.text), v.rank, v.from}
		if hasSecret {
			g[store+"password"] = secret
		}
	}
	return nil
}

// storeType returns the type of a file by its name: PEM unless the name says otherwise.
func storeType(name string) string {
	switch strings.ToLower(path.Ext(name)) {
	case ".p12", ".pkcs12", ".pfx":
		return string(secure.PKCS12)
	case ".jks":
		return string(secure.JKS)
	}
	return string(secure.PEM)
}

// wordsOf replaces the names of properties that the user did not use by those of flags.
func wordsOf(g gathered) *strings.Replacer {
	pairs := []string{"the server's user", "this user", "set keyStore.location", "give --" + flagCert}
	for _, s := range Settings {
		if v := g[s.property]; strings.HasPrefix(s.property, string(secure.Programs)) && v.rank != fromFile && v.rank != fromJVMFlags {
			name := "--" + s.Flag
			if v.rank == fromEnv {
				name = "$" + s.Env
			}
			pairs = append(pairs, s.property, name)
		}
	}
	if g[trustStore+location].rank != fromFile {
		pairs = append(pairs, "set zookeeper.ssl.hostnameVerification=false", "give one of its names with --"+flagServerName)
	}
	if both := "use a file with the private key and its certificate"; g[keyStore+location].rank >= fromEnv {
		pairs = append(pairs, both, both+", or name the key with --"+flagKey)
	}
	for _, store := range []string{keyStore, trustStore} {
		if g[store+location].rank >= fromEnv {
			pairs = append(pairs, store+"password", cmp.Or(g[store+"password"].from, "--"+flagTLSPassword))
		}
	}
	return strings.NewReplacer(pairs...)
}

// reworded is an error with a text in the user's words.
type reworded struct {
	text string
	err  error
}

func (r *reworded) Error() string { return r.text }
func (r *reworded) Unwrap() error { return r.err }

func (e *encryption) reword(err error) error {
	if err == nil {
		return nil
	}
	return &reworded{e.words.Replace(err.Error()), err}
}

// configFor returns the configuration of TLS for one connection. It reads the files again, if
// they have changed. If they cannot be used, those that were read before stay in use.
func (c *Config) configFor(ctx context.Context, server zk.Server) (*tls.Config, error) {
	e := c.tls
	changed, err := e.store.Reload()
	if err != nil && c.Warn != nil {
		c.Warn(e.reword(err).Error() + "; the certificates that were read before stay in use")
	}
	// A resumed TLS session keeps the certificates with which it began, so sessions with old
	// certificates are forgotten.
	e.mu.Lock()
	if changed {
		e.sessions = tls.NewLRUClientSessionCache(sessionsMax)
	}
	sessions := e.sessions
	e.mu.Unlock()

	host, address := server.Host, netip.Addr{}
	if e.serverName != "" {
		host = e.serverName
	} else if at, err := netip.ParseAddrPort(server.Address); err == nil {
		address = at.Addr().Unmap()
	}
	config := e.store.Client(ctx, host, address)
	config.ClientSessionCache = sessions
	verify := config.VerifyConnection
	config.VerifyConnection = func(s tls.ConnectionState) error { return e.reword(verify(s)) }
	return config, nil
}

// Dial opens a connection for a four-letter word, with TLS if clients use it. server is
// host:port.
func (c *Config) Dial(ctx context.Context, server string) (net.Conn, error) {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", server)
	if err != nil || c == nil || c.tls == nil {
		return conn, err
	}
	host, _, err := net.SplitHostPort(server)
	if err != nil {
		conn.Close()
		return nil, err
	}
	config, err := c.configFor(ctx, zk.Server{Host: host, Address: conn.RemoteAddr().String()})
	if err != nil {
		conn.Close()
		return nil, err
	}
	with := tls.Client(conn, config)
	if err := with.HandshakeContext(ctx); err != nil {
		conn.Close()
		return nil, fmt.Errorf("TLS: %w", c.tls.reword(secure.Explain(err, "")))
	}
	return with, nil
}
