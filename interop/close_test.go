package interop

import (
	"context"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"bellwether/interop/target"
	"bellwether/recipe"
	"bellwether/zk"
)

// closeSlowly is how late the replies to a closing client arrive in the slow cases.
const closeSlowly = 400 * time.Millisecond

// holding describes what a client holds: a lock or leadership.
type holding struct {
	name  string
	n     int // number of clients that are closed
	begin func(ctx context.Context, c *zk.Client, path string) (context.Context, error)
}

var holdings = []holding{
	{"lock", 100, func(ctx context.Context, c *zk.Client, path string) (context.Context, error) {
		l, err := recipe.NewLock(c, path, nil)
		if err != nil {
			return nil, err
		}
		h, err := l.Lock(ctx)
		if err != nil {
			return nil, err
		}
		return h.Context(), nil
	}},
	{"leader", 60, func(ctx context.Context, c *zk.Client, path string) (context.Context, error) {
		e, err := recipe.NewElection(c, path, "contender", nil)
		if err != nil {
			return nil, err
		}
		h, err := e.Campaign(ctx)
		if err != nil {
			return nil, err
		}
		return h.Context(), nil
	}},
}

// TestCloseEndsTheContextFirst closes clients that hold a lock or lead while another
// contender's client waits. When that contender holds, the context of the previous holder
// must have ended, in every round and also if the server's replies are late. The test prints
// how many times both held, and for how long.
func TestCloseEndsTheContextFirst(t *testing.T) {
	eachTarget(t, func(t *testing.T, kind target.Kind) {
		s := target.StartFor(t, kind, target.Options{})
		for _, held := range holdings {
			slow := holding{held.name + " with slow answers", held.n / 5, held.begin}
			t.Run(held.name, func(t *testing.T) { closeHolders(t, s, held, 0) })
			t.Run(slow.name, func(t *testing.T) { closeHolders(t, s, slow, closeSlowly) })
		}
	})
}

func closeHolders(t *testing.T, s *target.Server, held holding, delay time.Duration) {
	overlaps, longest := 0, time.Duration(0)
	ctx, cancel := context.WithTimeout(t.Context(), behaviourTimeout)
	defer cancel()
	path := fresh("close")
	now := newCloser(t, ctx, s.Addr, path, held)
	for range held.n {
		now.wait(t)
		next := newCloser(t, ctx, s.Addr, path, held)
		next.awaitBid(t, ctx, path)
		now.slow.Store(int64(delay))
		closed := make(chan error, 1)
		go func() { closed <- now.c.Close(ctx) }()
		next.wait(t)
		if now.ctx.Err() == nil {
			began := time.Now()
			<-now.ctx.Done()
			overlaps, longest = overlaps+1, max(longest, time.Since(began))
		}
		if err := <-closed; err != nil {
			t.Fatal(err)
		}
		now = next
	}
	t.Logf("%s, %s: both held in %d of %d closes, for up to %v", s.Kind, held.name, overlaps, held.n, longest)
	if overlaps > 0 {
		t.Error("a contender holds while the context of the previous holder, which closes, has not ended")
	}
}

// closer is a contender with its own client.
type closer struct {
	c    *zk.Client
	slow atomic.Int64 // the delay of the replies to this client
	held chan error
	ctx  context.Context // set before a value is sent to held
}

func newCloser(t *testing.T, ctx context.Context, addr, path string, held holding) *closer {
	t.Helper()
	k := &closer{held: make(chan error, 1)}
	c, err := zk.Connect(ctx, addr, &zk.Options{Dial: k.dial})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close(context.Background()) })
	k.c = c
	go func() {
		var err error
		k.ctx, err = held.begin(ctx, c, path)
		k.held <- err
	}()
	return k
}

// wait returns when the contender holds.
func (k *closer) wait(t *testing.T) {
	t.Helper()
	if err := <-k.held; err != nil {
		t.Fatal(err)
	}
	k.held <- nil // lets the next call of wait return too
}

// awaitBid returns when the contender waits in line.
func (k *closer) awaitBid(t *testing.T, ctx context.Context, path string) {
	t.Helper()
	for {
		_, _, w, err := k.c.ChildrenW(ctx, path)
		if err != nil {
			t.Fatal(err)
		}
		if mine, err := k.c.Ephemerals(ctx, path); err != nil || len(mine) > 0 {
			if err != nil {
				t.Fatal(err)
			}
			return
		}
		if _, err := w.Wait(ctx); err != nil {
			t.Fatal(err)
		}
	}
}

// dial opens connections whose replies the test can delay.
func (k *closer) dial(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := new(net.Dialer).DialContext(ctx, network, address)
	return &lateConn{conn, &k.slow}, err
}

type lateConn struct {
	net.Conn
	late *atomic.Int64
}

func (c *lateConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if late := time.Duration(c.late.Load()); late > 0 && n > 0 {
		<-time.After(late)
	}
	return n, err
}
