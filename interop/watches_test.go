package interop

import (
	"context"
	"errors"
	"fmt"
	"net"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"bellwether/interop/target"
	"bellwether/recipe"
	"bellwether/zk"
)

const (
	cancelledReads     = 300 // calls of ExistsW whose context ends
	cancelledObservers = 100 // calls of Observe whose context ends
)

// TestCancelledReadsLeaveNoWatches cancels 300 calls of ExistsW and 100 of Observe when the
// server has set their watches but no reply has reached the client. No watch may be left on the
// server, also if the connection is cut before the replies arrive.
func TestCancelledReadsLeaveNoWatches(t *testing.T) {
	eachTarget(t, func(t *testing.T, kind target.Kind) {
		for _, cut := range []bool{false, true} {
			t.Run(fmt.Sprint("cut ", cut), func(t *testing.T) { cancelReads(t, kind, cut) })
		}
	})
}

func cancelReads(t *testing.T, kind target.Kind, cut bool) {
	s := target.StartFor(t, kind, target.Options{})
	proxy := target.NewProxy(t, s.Addr)
	ctx, cancel := context.WithTimeout(t.Context(), behaviourTimeout)
	defer cancel()
	hold := &held{open: make(chan struct{})}
	close(hold.open)
	c, err := zk.Connect(ctx, proxy.Addr, &zk.Options{Dial: hold.dial})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close(context.Background())
	answer := sync.OnceFunc(hold.hold())
	defer answer()
	reading, stop := context.WithCancel(ctx)
	var all sync.WaitGroup
	for i := range cancelledReads {
		all.Go(func() {
			if _, _, _, err := c.ExistsW(reading, fmt.Sprintf("/none-%d", i)); !errors.Is(err, context.Canceled) {
				t.Errorf("read %d: %v", i, err)
			}
		})
	}
	for i := range cancelledObservers {
		e, err := recipe.NewElection(c, fmt.Sprintf("/job-%d", i), "a", nil)
		if err != nil {
			t.Fatal(err)
		}
		all.Go(func() {
			for _, err := range e.Observe(reading) {
				if !errors.Is(err, context.Canceled) {
					t.Errorf("observer %d: %v", i, err)
				}
			}
		})
	}
	awaitWatches(t, s, func(n int) bool { return n >= cancelledReads })
	stop()
	all.Wait()
	if cut {
		proxy.Cut()
	}
	answer()
	if err := c.Sync(ctx, "/"); err != nil && !cut {
		t.Error(err)
	}
	awaitWatches(t, s, func(n int) bool { return n == 0 })
}

// held opens connections that are not read while it is held.
type held struct {
	mu   sync.Mutex
	open chan struct{}
}

// hold stops all reading until release is called, once.
func (h *held) hold() (release func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	open := make(chan struct{})
	h.open = open
	return func() { close(open) }
}

func (h *held) dial(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := new(net.Dialer).DialContext(ctx, network, address)
	return &heldConn{conn, h}, err
}

type heldConn struct {
	net.Conn
	h *held
}

func (c *heldConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.h.mu.Lock()
	open := c.h.open
	c.h.mu.Unlock()
	<-open
	return n, err
}

// awaitWatches waits until the server's number of watches is as wanted.
func awaitWatches(t *testing.T, s *target.Server, want func(n int) bool) {
	t.Helper()
	for until := time.Now().Add(electionWait); ; <-time.After(10 * time.Millisecond) {
		n := watches(t, s)
		if want(n) {
			return
		}
		if time.Now().After(until) {
			word, _ := s.Word("wchp")
			t.Fatalf("the server has %d watches: %.300s", n, word)
		}
	}
}

var watchTotal = regexp.MustCompile(`Total watches:(\d+)`)

// watches returns the server's number of watches.
func watches(t *testing.T, s *target.Server) int {
	t.Helper()
	text, err := s.Word("wchs")
	if err != nil {
		t.Fatal(err)
	}
	m := watchTotal.FindStringSubmatch(strings.TrimSpace(text))
	if m == nil {
		t.Fatalf("wchs says %q", text)
	}
	n, err := strconv.Atoi(m[1])
	if err != nil {
		t.Fatal(err)
	}
	return n
}
