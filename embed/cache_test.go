package embed

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"bellwether/recipe"
	"bellwether/wire"
	"bellwether/zk"
)

// TestFailoverReadsOnlyWhatChanged shows that 1,000 clients with caches read again only what has changed while
// the leader was replaced: first no znode, then two of fifty. Each client that reconnects also reads the stat of
// the root. The test counts the requests in the connections. On a busy machine, clients also lose connections that are
// not those of the leader: such a client may read a change once more.
func TestFailoverReadsOnlyWhatChanged(t *testing.T) {
	const (
		clients = 1000
		znodes  = 50
	)
	e := started(t, Options{Servers: 3})
	admin := connected(t, e, nil)
	create(t, admin, "/tree", "")
	for i := range znodes {
		create(t, admin, leaf(i), "old")
	}
	m := &readMeter{}
	caches := openCaches(t, e, m, clients)
	if n := m.reads.Load(); n < clients*(znodes+1) {
		t.Fatalf("%d reads counted to fill %d caches of %d znodes", n, clients, znodes+1)
	}

	for _, changed := range []int{0, 2} {
		before, looks, dials, again := m.reads.Load(), m.looks.Load(), m.dials.Load(), m.again.Load()
		m.round.Add(1)
		m.away.Store(true)
		killLeader(t, e)
		eventually(t, "the clients of the leader are cut off", func() bool { return m.refused.Swap(0) > 0 })
		must(t, admin.Sync(patient(t), "/"))
		for i := range changed {
			_, err := admin.Set(patient(t), leaf(i), []byte("new"), -1)
			must(t, err)
		}
		m.away.Store(false)
		for n, k := range caches {
			eventually(t, fmt.Sprintf("cache %d is up to date", n), func() bool { return upToDate(k, znodes, changed) })
		}
		came, again := m.dials.Load()-dials, m.again.Load()-again
		reads, looks := m.reads.Load()-before, m.looks.Load()-looks
		least, most := int64(changed*clients), int64(changed)*(int64(clients)+again)
		t.Logf("%d connections came back, %d of them for no death of the leader, %d reads for %d changes", came, again, reads, changed)
		if came < clients/10 || reads < least || reads > most || looks > came {
			t.Errorf("%d reads, %d looks at a stat by %d clients after %d changes and %d new connections", reads, looks, clients, changed, came)
		}
		for _, s := range e.servers {
			if !s.Running() {
				must(t, s.Start())
			}
		}
		must(t, e.AwaitServing(patient(t)))
	}
}

func leaf(i int) string { return fmt.Sprintf("/tree/n%02d", i) }

// upToDate reports whether a cache shows the new data in the first changed znodes and the old data in the
// others.
func upToDate(k *recipe.Cache, znodes, changed int) bool {
	if k.Stale() {
		return false
	}
	for i := range znodes {
		want := "old"
		if i < changed {
			want = "new"
		}
		if n, ok := k.Get(leaf(i)); !ok || string(n.Data) != want {
			return false
		}
	}
	return true
}

// openCaches opens the given number of clients, each with a cache.
func openCaches(t *testing.T, e *Ensemble, m *readMeter, clients int) []*recipe.Cache {
	t.Helper()
	caches := make([]*recipe.Cache, clients)
	errs := make([]error, clients)
	next := atomic.Int64{}
	var workers sync.WaitGroup
	for range 16 {
		workers.Go(func() {
			for i := next.Add(1) - 1; i < int64(clients); i = next.Add(1) - 1 {
				c, err := zk.Connect(patient(t), e.Servers(), &zk.Options{Dial: m.dialer(), SessionTimeout: time.Minute})
				if errs[i] = err; err != nil {
					continue
				}
				k, err := recipe.OpenCache(patient(t), c, "/tree", nil)
				caches[i], errs[i] = k, err
				t.Cleanup(func() { c.Detach() })
			}
		})
	}
	workers.Wait()
	must(t, errors.Join(errs...))
	return caches
}

// killLeader kills the leader and waits until all running servers serve again.
func killLeader(t *testing.T, e *Ensemble) {
	t.Helper()
	s, err := e.Leader(patient(t))
	must(t, err)
	must(t, s.Kill())
	_, err = e.Leader(patient(t))
	must(t, err)
	must(t, e.AwaitServing(patient(t)))
}

// readMeter counts the requests that read data, list children or read a stat. It parses what its clients send.
type readMeter struct {
	reads, looks, dials, refused atomic.Int64
	round                        atomic.Int64 // counts the changes of the leader
	again                        atomic.Int64 // connections of clients that had connected in the same round before, or that no server has refused in it
	away                         atomic.Bool  // new connections are refused
}

// dialer returns the dial function of one client.
func (m *readMeter) dialer() func(ctx context.Context, network, address string) (net.Conn, error) {
	var last, refused atomic.Int64 // the rounds in which the client has connected, and was refused
	last.Store(-1)
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		if m.away.Load() {
			m.refused.Add(1)
			refused.Store(m.round.Load())
			return nil, errors.New("connection refused")
		}
		c, err := new(net.Dialer).DialContext(ctx, network, address)
		if err != nil {
			return nil, err
		}
		m.dials.Add(1)
		if now := m.round.Load(); last.Swap(now) == now || refused.Load() != now {
			m.again.Add(1)
		}
		return &metered{Conn: c, meter: m}, nil
	}
}

// metered is a client's connection whose requests are counted.
type metered struct {
	net.Conn
	meter       *readMeter
	mu          sync.Mutex
	sent        frames
	requestSeen bool // the first frame was seen; it opens the session and is not a request
}

func (c *metered) Write(b []byte) (int, error) {
	c.mu.Lock()
	err := c.sent.each(b, func(frame []byte) error {
		if c.requestSeen {
			c.meter.count(frame[4:])
		}
		c.requestSeen = true
		return nil
	})
	c.mu.Unlock()
	if err != nil {
		return 0, err
	}
	return c.Conn.Write(b)
}

func (m *readMeter) count(request []byte) {
	switch op := wire.OpCode(int32(binary.BigEndian.Uint32(request[4:]))); op {
	case wire.OpExists:
		m.looks.Add(1)
	case wire.OpGetData, wire.OpGetChildren, wire.OpGetChildren2:
		m.reads.Add(1)
	case wire.OpMultiRead:
		var q wire.MultiRequest
		if err := wire.Decode(request[8:], &q); err != nil {
			panic(err)
		}
		m.reads.Add(int64(len(q.Ops)))
	}
}
