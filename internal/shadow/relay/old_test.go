package relay_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"bellwether/internal/shadow"
	"bellwether/internal/shadow/relay"
)

// logText is the log of a relay.
type logText struct {
	mu  sync.Mutex
	all bytes.Buffer
}

func (l *logText) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all.Write(p)
}

func (l *logText) logger() *slog.Logger { return slog.New(slog.NewTextHandler(l, nil)) }

// lines returns how many lines contain a text.
func (l *logText) lines(text string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.all.String(), text)
}

// TestUnreachableServerIsLoggedOnce has an old server that is down while another one answers, and that comes back.
func TestUnreachableServerIsLoggedOnce(t *testing.T) {
	var log logText
	down := listen(t)
	down.Close()
	addr := down.Addr().String()
	r := runWith(t, relay.Options{Old: []string{addr, serve(t, holds(1, "")).Addr().String()}, Observer: "127.0.0.1:1", Logger: log.logger()})
	for range 6 {
		dial(t, r.addr)
	}
	if n := log.lines("an old server cannot be reached\" old=" + addr); n != 1 {
		t.Errorf("%d lines", n)
	}
	back, err := net.Listen("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { back.Close() })
	start(&fake{Listener: back, answer: holds(1, "")})
	for range 6 {
		dial(t, r.addr)
	}
	if n := log.lines("an old server can be reached again\" old=" + addr); n != 1 {
		t.Errorf("%d lines after it came back", n)
	}
}

// TestRelayDoesNotConnectToItself: the address of an old server, or of the observer, is that of the relay, by a number or by a name. It is
// refused at the start, and also when clients connect.
func TestRelayDoesNotConnectToItself(t *testing.T) {
	there := serve(t, holds(1, "")).Addr().String()
	for _, at := range []string{"127.0.0.1:0", ":0"} {
		for _, host := range []string{"127.0.0.1", "localhost"} {
			l, err := net.Listen("tcp", at)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { l.Close() })
			_, port, _ := net.SplitHostPort(l.Addr().String())
			own := net.JoinHostPort(host, port)
			var log logText
			opt := relay.Options{Listen: l, Old: []string{there, own}, Observer: there, Logger: log.logger(), Found: func(shadow.Found) {}}
			for _, old := range [][]string{{there, own}, {there}, {own}} {
				if opt.Old = old; len(old) == 1 && old[0] == there {
					opt.Observer = own
				}
				r, err := relay.New(opt)
				if err != nil {
					t.Fatal(err)
				}
				if err := r.Check(t.Context()); !errors.Is(err, relay.ErrOwnAddress) {
					t.Errorf("%s, old %v, observer %s: %v", at, opt.Old, opt.Observer, err)
				}
			}
			refusesClients(t, opt)
		}
	}
}

// refusesClients runs a relay whose only old server is itself. A client's connection ends, and makes no other one.
func refusesClients(t *testing.T, opt relay.Options) {
	t.Helper()
	counted := &countedListener{Listener: opt.Listen}
	opt.Listen = counted
	r, err := relay.New(opt)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- r.Run(ctx) }()
	_, port, _ := net.SplitHostPort(opt.Listen.Addr().String())
	conn, err := net.Dial("tcp", "127.0.0.1:"+port)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(waitMax))
	if n, err := conn.Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("%d bytes, %v", n, err)
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if counted.accepted != 1 {
		t.Errorf("%d connections were accepted", counted.accepted)
	}
}

// countedListener counts the connections that it accepts.
type countedListener struct {
	net.Listener
	accepted int
}

func (l *countedListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err == nil {
		l.accepted++
	}
	return conn, err
}

// withoutDescriptors is a listener of a process that has no free descriptor.
type withoutDescriptors struct{ closed chan struct{} }

func (l withoutDescriptors) Addr() net.Addr { return &net.TCPAddr{} }
func (l withoutDescriptors) Close() error   { close(l.closed); return nil }
func (l withoutDescriptors) Accept() (net.Conn, error) {
	select {
	case <-l.closed:
		return nil, net.ErrClosed
	default:
		return nil, syscall.EMFILE
	}
}

// TestFailedAcceptsAreSummedUp: the first failed accept is logged at once, and the others once a minute, and then less often.
func TestFailedAcceptsAreSummedUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log logText
		r, err := relay.New(relay.Options{Listen: withoutDescriptors{make(chan struct{})}, Logger: log.logger()})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- r.Run(ctx) }()
		time.Sleep(10 * time.Second)
		if n := log.lines("cannot accept clients"); n != 1 {
			t.Errorf("%d lines after 10 s", n)
		}
		time.Sleep(time.Minute)
		if n := log.lines("repeated: cannot accept clients"); n != 1 {
			t.Errorf("%d summaries after a minute", n)
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}
