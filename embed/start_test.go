package embed

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestStartServes shows that a server or an ensemble serves as soon as Start returns, and that another client
// reads at another server what was written.
func TestStartServes(t *testing.T) {
	for _, o := range []Options{
		{},
		{InMemory: true},
		{Dir: "disk"},
		{Servers: 3},
		{Servers: 3, InMemory: true},
		{Servers: 3, Dir: "disk"},
	} {
		t.Run(fmt.Sprintf("%d,%v,%s", o.Servers, o.InMemory, o.Dir), func(t *testing.T) {
			if o.Dir != "" {
				o.Dir = t.TempDir()
			}
			e := started(t, o)
			a := connectedTo(t, e, e.Server(1), nil)
			create(t, a, "/x", "one")
			b := connectedTo(t, e, e.Server(e.Len()), nil)
			holds(t, b, "/x", "one")
			leader, err := e.Leader(patient(t))
			if err != nil || !leader.Leads() || !leader.Running() {
				t.Errorf("leader %v, %v", leader, err)
			}
		})
	}
}

// BenchmarkStart measures the time from the call of Start until all servers serve. docs/faults.md has the
// figures.
func BenchmarkStart(b *testing.B) {
	for _, c := range []struct {
		name    string
		memory  bool
		servers int
		disk    bool
	}{
		{"one/memory", true, 1, false}, {"one/sockets", false, 1, false}, {"one/disk", false, 1, true},
		{"three/memory", true, 3, false}, {"three/sockets", false, 3, false}, {"three/disk", false, 3, true},
	} {
		b.Run(c.name, func(b *testing.B) {
			for b.Loop() {
				o := Options{InMemory: c.memory, Servers: c.servers}
				if c.disk {
					b.StopTimer()
					o.Dir = b.TempDir()
					b.StartTimer()
				}
				e, err := Start(context.Background(), o)
				if err != nil {
					b.Fatal(err)
				}
				b.StopTimer()
				if err := e.Close(); err != nil {
					b.Fatal(err)
				}
				b.StartTimer()
			}
		})
	}
}

// TestFourLetterWords shows that four-letter words work although they are not frames, whether they arrive in one
// piece or in several.
func TestFourLetterWords(t *testing.T) {
	everyMode(t, func(t *testing.T, o Options) {
		e := started(t, o)
		for _, parts := range [][]string{{"ruok"}, {"r", "uo", "k"}} {
			c, err := e.Dial(patient(t), "tcp", e.Servers())
			must(t, err)
			for _, part := range parts {
				_, err = io.WriteString(c, part)
				must(t, err)
			}
			must(t, c.SetReadDeadline(time.Now().Add(waitMax)))
			answer, err := io.ReadAll(c)
			if string(answer) != "imok" || err != nil {
				t.Errorf("%q, %v", answer, err)
			}
			must(t, c.Close())
		}
	})
}

// TestLargeZnode shows that the data of a large znode arrives complete, however the stream is divided.
func TestLargeZnode(t *testing.T) {
	everyMode(t, func(t *testing.T, o Options) {
		e := started(t, o)
		c := connected(t, e, nil)
		data := strings.Repeat("0123456789", 100_000)
		create(t, c, "/large", data)
		holds(t, c, "/large", data)
	})
}

// TestBadOptions shows that impossible options are refused before anything is opened.
func TestBadOptions(t *testing.T) {
	dir := t.TempDir()
	e, err := Start(patient(t), Options{Servers: 3, Dir: dir})
	must(t, err)
	must(t, e.Close())
	for _, o := range []Options{
		{Servers: -1}, {Servers: ServersMax + 1}, {TickTime: time.Microsecond}, {Servers: 2, Dir: dir},
		{SessionMax: 1 << 31 * time.Millisecond}, {TickTime: 1 << 30 * time.Millisecond},
		{Listen: "nonsense"}, {Listen: ":0"}, {Listen: "127.0.0.1:x"},
	} {
		if e, err := Start(patient(t), o); err == nil {
			t.Errorf("%+v is accepted", o)
			e.Close()
		}
	}
}

// TestPortIsTaken shows that Start fails if a port is in use, and leaves nothing behind.
func TestPortIsTaken(t *testing.T) {
	e := started(t, Options{})
	if _, err := Start(patient(t), Options{Listen: e.Servers()}); !errors.Is(err, syscall.EADDRINUSE) {
		t.Errorf("error %v", err)
	}
}

// TestDialIsRefused shows that a client that reaches no server gets an error at once, with sockets and in
// memory.
func TestDialIsRefused(t *testing.T) {
	everyMode(t, func(t *testing.T, o Options) {
		e := started(t, o)
		must(t, e.Server(1).Kill())
		_, err := e.Dial(patient(t), "tcp", e.Servers())
		wants(t, err, syscall.ECONNREFUSED)
	})
}

// TestReachable shows that the address of a listener on all addresses is a loopback address.
func TestReachable(t *testing.T) {
	for address, want := range map[string]string{
		"127.0.0.1:2181": "127.0.0.1:2181", "[::1]:2181": "[::1]:2181",
		"0.0.0.0:2181": "127.0.0.1:2181", "[::]:2181": "127.0.0.1:2181",
	} {
		if got := reachable(address); got != want {
			t.Errorf("%s is reached at %s, want %s", address, got, want)
		}
	}
}
