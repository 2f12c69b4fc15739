package embed

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"bellwether/zk"
)

// TestTLS shows that clients and servers of an ensemble with TLS use it, that a client without TLS or without a
// certificate is not served, and that the files are gone after Close.
func TestTLS(t *testing.T) {
	for _, o := range []Options{{TLS: true}, {TLS: true, InMemory: true}, {TLS: true, Servers: 3}, {TLS: true, Servers: 3, InMemory: true}} {
		t.Run(fmt.Sprintf("%d,%v", o.Servers, o.InMemory), func(t *testing.T) {
			e := started(t, o)
			c := connected(t, e, nil)
			create(t, c, "/x", "one")
			holds(t, c, "/x", "one")
			who, err := c.WhoAmI(patient(t))
			if err != nil || !slices.ContainsFunc(who, func(i zk.ClientInfo) bool { return i.Scheme == "x509" && i.User == "CN=client" }) {
				t.Errorf("the client is %v: %v", who, err)
			}
			files := e.TLSFiles()
			holds(t, connected(t, e, &zk.Options{TLSFiles: &files}), "/x", "one")

			strange := e.TLSConfig()
			strange.Certificates = nil
			for what, o := range map[string]*zk.Options{"without TLS": {Dial: e.Dial}, "without a certificate": {Dial: e.Dial, TLS: strange}} {
				ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
				if c, err := zk.Connect(ctx, e.Servers(), o); err == nil {
					c.Detach()
					t.Errorf("a client %s is served", what)
				}
				cancel()
			}
			if o.Servers > 1 {
				speaksTLS(t, e, net.JoinHostPort(machineAddr(2).String(), fmt.Sprint(electionPort)))
			}
			if err := e.Close(); err != nil {
				t.Error(err)
			}
			if _, err := os.Stat(filepath.Dir(files.CA)); !os.IsNotExist(err) {
				t.Errorf("the files are still there: %v", err)
			}
		})
	}
}

// speaksTLS fails the test unless a handshake succeeds on a port between servers.
func speaksTLS(t *testing.T, e *Ensemble, address string) {
	t.Helper()
	raw, err := e.net.dial(patient(t), nil, address)
	if err != nil {
		t.Fatal(err)
	}
	defer raw.Close()
	config := e.TLSConfig()
	config.ServerName = "localhost"
	if err := tls.Client(raw, config).HandshakeContext(patient(t)); err != nil {
		t.Errorf("%s: %v", address, err)
	}
}

// TestTLSAfterFaults shows that clients and servers connect again with TLS after a crash and a partition.
func TestTLSAfterFaults(t *testing.T) {
	e := started(t, Options{Servers: 3, TLS: true})
	c := connected(t, e, nil)
	create(t, c, "/x", "one")
	leader, err := e.Leader(patient(t))
	if err != nil {
		t.Fatal(err)
	}
	if err := leader.Crash(); err != nil {
		t.Fatal(err)
	}
	holds(t, c, "/x", "one")
	if err := leader.Start(); err != nil {
		t.Fatal(err)
	}
	if err := leader.AwaitServing(patient(t)); err != nil {
		t.Fatal(err)
	}
	holds(t, connectedTo(t, e, leader, nil), "/x", "one")
	e.Cut(Clients, Everyone)
	e.Heal()
	holds(t, c, "/x", "one")
}

// TestTLSInABubble shows that TLS works in a bubble of testing/synctest.
func TestTLSInABubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, err := Start(t.Context(), Options{Servers: 3, InMemory: true, TLS: true})
		if err != nil {
			t.Fatal(err)
		}
		defer e.Close()
		c, err := e.Client(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Detach()
		create(t, c, "/x", "one")
		e.Cut(Clients, Everyone)
		synctest.Wait()
		e.Heal()
		holds(t, c, "/x", "one")
	})
}

// TestWithoutTLS shows that an ensemble without TLS offers no configuration for it.
func TestWithoutTLS(t *testing.T) {
	e := started(t, Options{InMemory: true})
	if e.TLSConfig() != nil || strings.Trim(fmt.Sprint(e.TLSFiles()), "{} ") != "" {
		t.Error(e.TLSConfig(), e.TLSFiles())
	}
}
