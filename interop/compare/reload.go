package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"bellwether/interop/target"
	"bellwether/zk"
)

// reloadClients is the number of clients that read while certificates are replaced.
const reloadClients = 64

// reloads measures how long a server takes after SIGHUP to serve a new certificate. ZooKeeper
// 3.8.0 reads the certificates of its client port only at its start.
func (m *tlsMeter) reloads() error {
	const took, lost = "SIGHUP: time until a new certificate is served", "SIGHUP: connections lost among 64 that read"
	if m.kind == target.Apache {
		m.say("reads certificates only at its start", took)
		m.say("-", lost)
		return nil
	}
	if err := m.certify(); err != nil {
		return err
	}
	s, _, err := m.start("")
	if err != nil {
		return err
	}
	defer s.Kill()
	ctx, stop := context.WithCancel(m.ctx)
	open := &idleClients{stop: stop}
	defer open.end()
	for range reloadClients {
		c, err := zk.Connect(ctx, m.secure, &zk.Options{TLS: m.config})
		if err != nil {
			return err
		}
		open.clients = append(open.clients, c)
		go open.watch(ctx, c)
		go readOn(ctx, c)
	}
	var all []time.Duration
	for n := range m.plan.rounds {
		d, err := m.reload(s, n)
		if err != nil {
			return err
		}
		all = append(all, d)
	}
	m.say(spread(all), took)
	m.say(fmt.Sprint(open.dropped.Load()), lost)
	return nil
}

// readOn reads until the end of ctx.
func readOn(ctx context.Context, c *zk.Client) {
	for ctx.Err() == nil {
		_, _, _ = c.Get(ctx, "/") // a lost connection is counted by idleClients.watch
	}
}

// reload replaces the server's certificate and returns how long the server took to serve the
// new one.
func (m *tlsMeter) reload(s *target.Server, n int) (time.Duration, error) {
	old, err := m.served()
	if err != nil {
		return 0, err
	}
	file := fmt.Sprintf("next%d.pem", n)
	if err := issue(m.dir, file); err != nil {
		return 0, err
	}
	if err := os.Rename(filepath.Join(m.dir, file), filepath.Join(m.dir, serverFile)); err != nil {
		return 0, err
	}
	began := time.Now()
	if err := s.Signal(syscall.SIGHUP); err != nil {
		return 0, err
	}
	for time.Since(began) < waitMax {
		now, err := m.served()
		if err != nil {
			return 0, err
		}
		if !bytes.Equal(now, old) {
			return time.Since(began), nil
		}
	}
	return 0, errors.New("the new certificate is not served")
}

// served returns the certificate that the server shows. It makes a complete handshake.
func (m *tlsMeter) served() ([]byte, error) {
	config := m.config.Clone()
	config.ClientSessionCache = nil
	conn, err := tls.Dial("tcp", m.secure, config)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	return conn.ConnectionState().PeerCertificates[0].Raw, nil
}
