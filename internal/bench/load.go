package bench

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"time"

	"bellwether/zk"
)

// Kind is the operation that a load repeats.
type Kind string

// The kinds of load.
const (
	Read  Kind = "read"  // getData
	Write Kind = "write" // setData
)

// Load describes a load of reads or writes.
type Load struct {
	Connect     Connect
	Kind        Kind
	Connections int // sessions, each with its own connection
	Outstanding int // requests in flight per connection
	Keys        int // number of znodes
	Size        int // bytes of data per znode
	Warmup      time.Duration
	Duration    time.Duration
	Root        string // a znode that must not exist; Run deletes it at the end
}

// Limits of a load that catch typing errors.
const (
	connectionsMax = 100_000
	keysMax        = 10_000_000
)

// Check returns an error if a field is out of range.
func (l Load) Check() error {
	switch {
	case l.Connections < 1 || l.Connections > connectionsMax:
		return fmt.Errorf("connections: %d, want 1 to %d", l.Connections, connectionsMax)
	case l.Outstanding < 1:
		return fmt.Errorf("outstanding: %d, want 1 or more", l.Outstanding)
	case l.Keys < 1 || l.Keys > keysMax:
		return fmt.Errorf("keys: %d, want 1 to %d", l.Keys, keysMax)
	case l.Size < 0:
		return fmt.Errorf("size: %d, want 0 or more", l.Size)
	case l.Duration <= 0:
		return fmt.Errorf("duration: %v, want more than 0", l.Duration)
	}
	return nil
}

// Run puts the load on the servers and reports the result. It tries to delete the znodes
// that it created, even after an error.
func (l Load) Run(ctx context.Context) (Report, error) {
	if err := l.Check(); err != nil {
		return Report{}, err
	}
	s := setting{l.Connect, l.Connections, l.Root, l.clean}
	return s.use(ctx, func(clients []*zk.Client) (Report, error) {
		if err := l.prepare(ctx, clients[0]); err != nil {
			return Report{}, fmt.Errorf("preparing %d znodes: %w", l.Keys, err)
		}
		if l.Warmup > 0 {
			if _, err := l.drive(ctx, clients, l.Warmup); err != nil {
				return Report{}, err
			}
		}
		return l.drive(ctx, clients, l.Duration)
	})
}

// prepareBatch is the number of create or delete requests in flight.
const prepareBatch = 500

func (l Load) prepare(ctx context.Context, c *zk.Client) error {
	return inFlight(l.Keys, prepareBatch, func(i int) error {
		_, _, err := c.Create(ctx, l.key(i), make([]byte, l.Size))
		return err
	})
}

func (l Load) clean(ctx context.Context, c *zk.Client) error {
	return inFlight(l.Keys, prepareBatch, func(i int) error { return remove(ctx, c, l.key(i)) })
}

func (l Load) key(i int) string { return l.Root + "/" + strconv.Itoa(i) }

// drive keeps all workers busy for the duration d.
func (l Load) drive(ctx context.Context, clients []*zk.Client, d time.Duration) (Report, error) {
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	n := l.Connections * l.Outstanding
	took := make([]*latencies, min(n, histogramsMax))
	for i := range took {
		took[i] = newLatencies()
	}
	workers := make([]*worker, n)
	for i := range workers {
		workers[i] = &worker{
			load: l, client: clients[i%len(clients)], next: i * keyStride,
			data: make([]byte, l.Size), took: took[i%len(took)],
		}
	}
	begin := time.Now()
	var wg sync.WaitGroup
	for _, w := range workers {
		wg.Go(func() { w.run(ctx) })
	}
	wg.Wait()
	r := reportOf(string(l.Kind), time.Since(begin), merge(took))
	for _, w := range workers {
		if w.err != nil {
			return r, w.err
		}
	}
	return r, nil
}

// keyStride is the distance between the first keys of two workers: a prime, so that they
// do not use the same keys at the same time.
const keyStride = 7919

// worker sends requests one after the other.
type worker struct {
	load   Load
	client *zk.Client
	next   int // the key to use
	data   []byte
	took   *latencies
	err    error
}

func (w *worker) run(ctx context.Context) {
	for ctx.Err() == nil {
		path := w.load.key(w.next % w.load.Keys)
		w.next++
		begin := time.Now()
		if err := w.call(ctx, path); err != nil {
			if ctx.Err() == nil {
				w.err = err
			}
			return
		}
		w.took.record(time.Since(begin))
	}
}

func (w *worker) call(ctx context.Context, path string) (err error) {
	if w.load.Kind == Write {
		_, err = w.client.Set(ctx, path, w.data, zk.AnyVersion)
	} else {
		_, _, err = w.client.Get(ctx, path)
	}
	return err
}
