package peer

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"bellwether/internal/ensemble"
)

// TestPortInUseSaysWhatToDo: the error for a port in use says what to do.
func TestPortInUseSaysWhatToDo(t *testing.T) {
	l := newLAN(t, 1, 0)
	o := l.options(1, newSink())
	o.Listen = func(a string) (net.Listener, error) { return net.Listen("tcp", a) } // the lan of the test still holds the port
	_, err := NewMesh(o)
	if err == nil || !strings.Contains(err.Error(), "in use") || !strings.Contains(err.Error(), "stop that one") {
		t.Error(err)
	}
	k := NewLinks(o)
	defer k.CloseAll()
	for _, open := range []func() error{k.Try, k.Listen} {
		if err := open(); err == nil || !strings.Contains(err.Error(), "quorum port") {
			t.Error(err)
		}
	}
}

// breakableListener is a listener that can break.
type breakableListener struct {
	net.Listener
	mu     sync.Mutex
	broken bool
}

func (f *breakableListener) Accept() (net.Conn, error) {
	c, err := f.Listener.Accept()
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.broken {
		return nil, errors.New("the network is gone")
	}
	return c, err
}

func (f *breakableListener) breakListener() {
	f.mu.Lock()
	f.broken = true
	f.mu.Unlock()
	f.Close()
}

// TestZookeeper3320ListenerComesBack: if the host name of a listener cannot be resolved, or the listener
// breaks, it is opened again, as often as necessary (ZOOKEEPER-3320).
func TestZookeeper3320ListenerComesBack(t *testing.T) {
	l := newLAN(t, 2, 0)
	var mu sync.Mutex
	var last *breakableListener
	failures := 4 // more than the three after which ZooKeeper gave up
	m, s := l.mesh(1, func(o *Options) {
		o.Listen = func(address string) (net.Listener, error) {
			mu.Lock()
			defer mu.Unlock()
			if failures--; failures >= 0 {
				return nil, &net.DNSError{Err: "no such host", Name: address, IsTemporary: true}
			}
			ln, err := l.listen(address)
			if err == nil {
				last = &breakableListener{Listener: ln}
				ln = last
			}
			return ln, err
		}
	})
	reach := func(round int) {
		t.Helper()
		var c net.Conn
		eventually(t, "the port is open", func() bool {
			mu.Lock()
			defer mu.Unlock()
			var err error
			if last != nil {
				c, err = net.Dial("tcp", l.election(1))
			}
			return c != nil && err == nil
		})
		c.Close()
		f := callAs(t, l.election(1), 2, l.election(2))
		f.send(frame(vote(round)))
		await(t, s, heard(2, round))
	}
	if err := m.Failure(); err == nil {
		t.Error("the port is not open, and Failure says nothing")
	}
	reach(1)
	if err := m.Failure(); err != nil {
		t.Error(err)
	}
	mu.Lock()
	last.breakListener()
	last, failures = nil, 4
	mu.Unlock()
	reach(2)
}

// TestWildcardOwnAddress: a server whose own address is 0.0.0.0 listens on all addresses.
// It tells each peer the address from which it dialled, so that the peer can dial back
// (ZOOKEEPER-2164).
func TestWildcardOwnAddress(t *testing.T) {
	l := newLAN(t, 2, 0)
	one, _ := l.ms.Server(1)
	two, _ := l.ms.Server(2)
	// This listener stays open. If the test closed it and opened the port again, another process could take
	// the port in between.
	everywhere, err := net.Listen("tcp", ":0")
	if err != nil {
		t.Fatal(err)
	}
	port := everywhere.Addr().(*net.TCPAddr).Port
	one.Addresses = []ensemble.Address{{Host: ensemble.Wildcard, QuorumPort: one.Addresses[0].QuorumPort, ElectionPort: port}}
	l.ms = l.membership(ensemble.Definition{Servers: []ensemble.Server{one, two}})
	m, s := l.mesh(1, func(o *Options) {
		o.Listen = func(a string) (net.Listener, error) {
			if a != fmt.Sprint(":", port) {
				return nil, fmt.Errorf("it listens at %s, not everywhere", a)
			}
			return everywhere, nil
		}
	})
	_, s2 := l.mesh(2, func(o *Options) {
		o.Dial = func(ctx context.Context, address string) (net.Conn, error) {
			if strings.HasPrefix(address, "0.0.0.0") {
				return nil, errors.New("as from another machine")
			}
			return new(net.Dialer).DialContext(ctx, "tcp", address)
		}
	})
	m.Send(2, vote(1))
	await(t, s2, heard(1, 1))
	await(t, s, up(2))
}

// TestAddressesOfBothFamilies shows, for addresses of both families, host names and wildcards, on which
// addresses the server listens, and which addresses of a peer it uses.
func TestAddressesOfBothFamilies(t *testing.T) {
	for _, c := range []struct {
		addresses, listen, all []string
	}{
		{[]string{"[fe80::1]:3888"}, []string{"[fe80::1]:3888"}, []string{":3888"}},
		{[]string{"a.example:3888", "b.example:3888"}, []string{"a.example:3888", "b.example:3888"}, []string{":3888"}},
		{[]string{"0.0.0.0:3888", "[::]:3889"}, []string{":3888", ":3889"}, []string{":3888", ":3889"}},
	} {
		if got := local(c.addresses, false); !slices.Equal(got, c.listen) {
			t.Errorf("%v: %v", c.addresses, got)
		}
		if got := local(c.addresses, true); !slices.Equal(got, c.all) {
			t.Errorf("%v on all: %v", c.addresses, got)
		}
	}
	from := &net.TCPAddr{IP: net.ParseIP("fe80::2"), Port: 50000}
	got := useful([]string{"[::]:3888", "[fe80::3]:3889", "c.example:3890", "0.0.0.0:3888"}, callerAt{addr: from})
	if want := []string{"[fe80::2]:3888", "[fe80::3]:3889", "c.example:3890"}; !slices.Equal(got, want) {
		t.Errorf("%v", got)
	}
}

// callerAt is a connection from a given address.
type callerAt struct {
	net.Conn
	addr net.Addr
}

func (c callerAt) RemoteAddr() net.Addr { return c.addr }

// TestPortMovesWithTheAddress: the listener moves when this server's address changes. A server that is
// no longer a member stays where it was.
func TestPortMovesWithTheAddress(t *testing.T) {
	l := newLAN(t, 2, 0)
	m, s := l.mesh(1)
	old := l.election(1)
	one, _ := l.ms.Server(1)
	two, _ := l.ms.Server(2)
	one.Addresses = []ensemble.Address{{Host: "127.0.0.1", QuorumPort: 1, ElectionPort: l.port()}}
	moved := l.membership(ensemble.Definition{Servers: []ensemble.Server{one, two}, Version: 5})
	m.SetMembership(moved, nil)
	f := callAs(t, one.Addresses[0].Election(), 2, l.election(2))
	f.send(frame(vote(1)))
	await(t, s, heard(2, 1))
	if c, err := net.DialTimeout("tcp", old, time.Second); err == nil {
		c.Close()
		t.Error("the old port is still open")
	}
	if err := m.Failure(); err != nil {
		t.Error(err)
	}
	m.SetMembership(l.membership(ensemble.Definition{Servers: []ensemble.Server{two}}), nil)
	callAs(t, one.Addresses[0].Election(), 2, l.election(2)).send(frame(vote(2)))
	await(t, s, heard(2, 2))
}
