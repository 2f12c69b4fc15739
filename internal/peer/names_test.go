package peer

import (
	"context"
	"net"
	"sync/atomic"
	"testing"

	"bellwether/internal/ensemble"
)

// TestNamesAreResolvedAnew: a server whose host name resolves to another address is found there, on
// the election port and on the quorum port, because names are resolved at each attempt.
func TestNamesAreResolvedAnew(t *testing.T) {
	l := newLAN(t, 2, 0)
	one, _ := l.ms.Server(1)
	two, _ := l.ms.Server(2)
	named := one
	named.Addresses = []ensemble.Address{one.Addresses[0]}
	named.Addresses[0].Host = "one.test"
	l.ms = l.membership(ensemble.Definition{Servers: []ensemble.Server{named, two}})

	var machine atomic.Value // the address that the name resolves to
	var vain atomic.Int64
	machine.Store("127.0.0.3") // no server listens there
	o := func(o *Options) {
		o.Dial = func(ctx context.Context, address string) (net.Conn, error) {
			host, port, err := net.SplitHostPort(address)
			if err != nil || host != "one.test" {
				t.Errorf("%q is dialled", address)
			}
			c, err := new(net.Dialer).DialContext(ctx, "tcp", net.JoinHostPort(machine.Load().(string), port))
			if err != nil {
				vain.Add(1)
			}
			return c, err
		}
	}
	_, s := l.mesh(2, o)
	links, _ := l.links(2, o)
	links.Dial(1)
	eventually(t, "the name leads to nobody", func() bool { return vain.Load() > 4 })

	machine.Store("127.0.0.2")
	var moved []net.Listener
	for _, address := range []string{one.Addresses[0].Election(), one.Addresses[0].Quorum()} {
		_, port, _ := net.SplitHostPort(address)
		ln, err := net.Listen("tcp", "127.0.0.2:"+port)
		if err != nil {
			t.Fatal(err)
		}
		defer ln.Close()
		moved = append(moved, ln)
	}
	for _, ln := range moved {
		c, err := ln.Accept()
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
	}
	await(t, s, up(1))
}
