package server

import (
	"net"
	"testing"

	"bellwether/internal/config"
	"bellwether/internal/ensemble"
	"bellwether/internal/secure"
	"bellwether/wire"
)

// TestMemoryOfTLSConnections: the memory limit counts more for a connection with TLS than
// for others, more after a large request, and nothing after its end. A handshake that does
// not end counts too.
func TestMemoryOfTLSConnections(t *testing.T) {
	k := newCerts(t)
	cfg := testConfig()
	cfg.TLS = config.TLS{Client: ensemble.HostPort{Host: "127.0.0.1"}, ClientUnified: true, Clients: k.settings(secure.Clients)}
	r := start(t, Options{Config: cfg})
	total := r.budget.total()
	plain := r.connect()
	if n := r.budget.tls.Load(); n != 0 {
		t.Errorf("%d bytes without TLS", n)
	}
	plain.must(wire.OpCloseSession, nil, nil)
	plain.nc.Close()
	eventually(t, "the connection is gone", func() bool { return r.budget.conns.Load() == 0 })

	c := r.dialTLS(r.Addr(), k.client("client.pem"))
	idle := r.budget.tls.Load()
	if idle < tlsCost || idle > 2*tlsCost {
		t.Errorf("%d bytes for an idle connection", idle)
	}
	if got, want := r.budget.total(), total-(connCost+idle)*useParts/limitParts; got < want-1 || got > want+1 {
		t.Errorf("%d bytes may be in use, want %d", got, want)
	}
	c.call(wire.OpSetData, &wire.SetDataRequest{Path: "/", Data: make([]byte, 100_000), Version: -1}, nil)
	if n := r.budget.tls.Load(); n < idle+tlsBufferCost*10_000 {
		t.Errorf("%d bytes after a large request", n)
	}
	c.nc.Close()
	half, err := net.Dial("tcp", r.SecureAddr().String())
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "the half connection counts", func() bool { n := r.budget.tls.Load(); return n >= tlsCost && n < idle+tlsCost })
	half.Close()
	eventually(t, "all connections are gone", func() bool { return r.budget.tls.Load() == 0 && r.budget.conns.Load() == 0 })
}
