package server

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"

	"bellwether/internal/ensemble"
	"bellwether/internal/store"
)

// TestPortInUse: the error for a port in use names the port and says what to do. The lock
// on the data directory is released.
func TestPortInUse(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	o := Options{Config: testConfig(), FS: store.NewMem(1)}
	o.Config.Client.Port = taken.Addr().(*net.TCPAddr).Port
	_, err = New(o)
	if err == nil || !strings.Contains(err.Error(), taken.Addr().String()) || !strings.Contains(err.Error(), "choose another clientPort") {
		t.Fatal(err)
	}
	o.Config.Client.Port = 0
	s, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestQuorumPortInUse: a server that could not open its quorum port when elected does not
// start and says why, as with its election port. An observer does not need the port.
func TestQuorumPortInUse(t *testing.T) {
	g := newTestEnsemble(t, 3, 1, false)
	port := func(m *testServer, of func(ensemble.Address) string) net.Listener {
		s, _ := g.members.Server(m.id)
		ln, err := net.Listen("tcp", of(s.Addresses[0]))
		if err != nil {
			t.Fatal(err)
		}
		return ln
	}
	for name, of := range map[string]func(ensemble.Address) string{"quorum": ensemble.Address.Quorum, "election": ensemble.Address.Election} {
		taken := port(g.servers[0], of)
		c := testConfig()
		c.Ensemble.Members, c.Ensemble.ID, c.Ensemble.HasID = g.members, g.servers[0].id, true
		s, err := New(Options{Config: c, FS: store.NewMem(1)})
		if err != nil {
			t.Fatal(err)
		}
		want := fmt.Sprintf("%s port %s is in use by another process", name, taken.Addr())
		ctx, cancel := context.WithTimeout(t.Context(), eventTimeout)
		defer cancel()
		if err := s.Run(ctx); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
		taken.Close()
	}
	taken := port(g.servers[3], ensemble.Address.Quorum)
	defer taken.Close()
	for _, m := range g.servers {
		g.start(m)
	}
	g.settled()
}

// TestDirectoryInUse: a second server on the same directory is refused. A server that starts
// while another one is about to end waits for it.
func TestDirectoryInUse(t *testing.T) {
	o := Options{Config: testConfig(), FS: store.NewMem(1)}
	first, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	var busy *store.BusyError
	if _, err := New(o); !errors.As(err, &busy) {
		t.Errorf("second server: %v", err)
	}
	ended := make(chan *Server)
	go func() {
		s, err := New(o)
		if err != nil {
			t.Error(err)
		}
		ended <- s
	}()
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	if s := <-ended; s != nil {
		s.Close()
	}
}

// TestEmptyHistoryNotAllowed: a server whose history is empty does not start if it may
// not begin a history.
func TestEmptyHistoryNotAllowed(t *testing.T) {
	o := Options{Config: testConfig(), FS: store.NewMem(1)}
	o.Config.Storage.AutocreateDB = false
	s, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Run(t.Context()); !errors.Is(err, errEmptyNotAllowed) {
		t.Error(err)
	}
}

// TestLogsWithoutSnapshot: with snapshot.trust.empty, logs without a snapshot are
// replayed, and the server writes a snapshot before it accepts the first new transaction.
func TestLogsWithoutSnapshot(t *testing.T) {
	disk := store.NewMem(1)
	first := start(t, Options{FS: disk})
	first.connect().create("/kept", "k")
	if err := first.end(); err != nil {
		t.Fatal(err)
	}
	if err := disk.Remove("data/version-2/snapshot.0"); err != nil {
		t.Fatal(err)
	}
	o := Options{Config: testConfig(), FS: disk}
	o.Config.Storage.TrustEmpty = true
	c := start(t, o).connect()
	if got := c.data("/kept"); got != "k" {
		t.Errorf("data is %q", got)
	}
	c.create("/more", "m")
}

// TestNoClientPort: a server without a client port runs, and ends when asked to.
func TestNoClientPort(t *testing.T) {
	o := Options{Config: testConfig()}
	o.Config.Client = ensemble.HostPort{}
	s := start(t, o)
	if s.Addr() != nil {
		t.Error(s.Addr())
	}
	if err := s.end(); err != nil {
		t.Error(err)
	}
}

// TestBothFamilies: servers listen on IPv6, and on both families at the wildcard address.
func TestBothFamilies(t *testing.T) {
	for listen, dial := range map[string]string{"::1": "::1", "0.0.0.0": "::1", "::": "127.0.0.1"} {
		o := Options{Config: testConfig()}
		o.Config.Client.Host = listen
		s, err := New(Options{Config: o.Config, FS: store.NewMem(1)})
		if err != nil {
			t.Errorf("listening on %s: %v", listen, err)
			continue
		}
		s.Close()
		r := start(t, o)
		_, port, _ := net.SplitHostPort(r.Addr().String())
		nc, err := net.Dial("tcp", net.JoinHostPort(dial, port))
		if err != nil {
			t.Errorf("listening on %s, dialling %s: %v", listen, dial, err)
			continue
		}
		nc.Close()
	}
}
