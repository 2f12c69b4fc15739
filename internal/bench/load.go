package bench

import (
	"context"
	"errors"
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
	Read       Kind = "read"       // getData
	Write      Kind = "write"      // setData
	Create     Kind = "create"     // create of persistent znodes: the tree grows
	Mixed      Kind = "mixed"      // getData and setData
	Ephemerals Kind = "ephemerals" // create of a sequential ephemeral znode, and its delete
	List       Kind = "list"       // getChildren of the root, whose children are the keys; only with Raw
)

// Load describes a load of one kind.
type Load struct {
	Setting
	Kind        Kind
	Connections int // sessions, each with its own connection
	Outstanding int // requests in flight per connection
	Keys        int // number of znodes that are read and written
	Size        int // bytes of data per znode
	Reads       int // with Mixed, how many of 100 operations are reads
	Rate        int // operations due each second over all connections; 0: a closed loop
	Operations  int // a closed loop ends after so many, and not after Duration; 0: after Duration
	// Filled says that [Fill] or [FillFlat] has created the root and the keys. Run then creates and deletes
	// neither. It spreads its operations over all keys, as if it chose them at random.
	Filled bool
	// Beside, if it is set, runs during the measurement, which ends when it has returned and not after
	// Duration. Only with Raw.
	Beside func(context.Context) error
}

// Check returns an error if a field is out of range.
func (l Load) Check() error {
	for _, err := range []error{
		between("connections", l.Connections, 1, connectionsMax),
		between("outstanding", l.Outstanding, 1, connectionsMax),
		between("keys", l.Keys, 1, keysMax),
		between("size", l.Size, 0, sizeMax),
		between("reads", l.Reads, 0, 100),
		between("rate", l.Rate, 0, rateMax),
		between("operations", l.Operations, 0, keysMax),
		l.check(),
	} {
		if err != nil {
			return err
		}
	}
	if l.Operations > 0 && l.Rate > 0 {
		return fmt.Errorf("operations: %d with rate %d, want one of the two", l.Operations, l.Rate)
	}
	if flying := l.Connections * l.Outstanding; l.Operations > 0 && l.Operations < flying {
		return fmt.Errorf("operations: %d, want at least one for each request in flight, which are %d", l.Operations, flying)
	}
	if l.Raw == nil && (l.Filled || l.Beside != nil || l.Kind == List) {
		return errors.New("lists, filled trees and work beside the load need connections without the client library")
	}
	if l.Operations > 0 && l.Beside != nil {
		return errors.New("operations: want none with work beside the load, which ends it")
	}
	return nil
}

// warmingUp returns the load before the measurement.
func (l Load) warmingUp() Load {
	l.Operations, l.Beside = 0, nil
	return l
}

// Run puts the load on the servers and reports the result. The znodes that it created are
// deleted, even after an error. With Mixed and Ephemerals, further reports show the two
// requests separately.
func (l Load) Run(ctx context.Context) ([]*Report, error) {
	if err := l.Check(); err != nil {
		return nil, err
	}
	if l.Filled {
		return l.raw(ctx)
	}
	sessions := l.Connections
	if l.Raw != nil {
		sessions = 1 // for the znodes
	}
	return l.use(ctx, sessions, func(clients []*zk.Client) ([]*Report, error) {
		if err := l.prepare(ctx, clients[0]); err != nil {
			return nil, fmt.Errorf("preparing %d znodes: %w", l.Keys, err)
		}
		if l.Raw != nil {
			return l.raw(ctx)
		}
		workers := l.workers(clients)
		if l.Warmup > 0 {
			if _, err := l.warmingUp().drive(ctx, workers, l.Warmup); err != nil {
				return nil, err
			}
		}
		return l.drive(ctx, workers, l.Duration)
	})
}

// prepareBatch is the number of requests in flight while znodes are prepared.
const prepareBatch = 500

// shards is the number of znodes below the root that contain the keys and the created
// znodes. No list of children is then too long for a reply.
const shards = 1000

// prepare creates the shards that are needed, and the keys if the load uses them.
func (l Load) prepare(ctx context.Context, c *zk.Client) error {
	switch l.Kind {
	case Ephemerals:
		return nil
	case Create:
		return makeShards(ctx, c, l.Root, shards)
	case List:
		return makeChildren(ctx, c, l.Root, l.Keys, l.Size)
	}
	return makeKeys(ctx, c, l.Root, l.Keys, l.Size)
}

// makeShards creates the first n shards.
func makeShards(ctx context.Context, c *zk.Client, root string, n int) error {
	return inFlight(min(n, shards), prepareBatch, func(i int) error {
		_, _, err := c.Create(ctx, root+"/"+strconv.Itoa(i), nil)
		return err
	})
}

// makeKeys creates n keys of some size, and the shards that contain them.
func makeKeys(ctx context.Context, c *zk.Client, root string, n, size int) error {
	if err := makeShards(ctx, c, root, n); err != nil {
		return err
	}
	data := make([]byte, size)
	return inFlight(n, prepareBatch, func(i int) error {
		_, _, err := c.Create(ctx, key(root, i), data)
		return err
	})
}

func key(root string, i int) string {
	return root + "/" + strconv.Itoa(i%shards) + "/" + strconv.Itoa(i)
}

// workers returns the workers of all connections.
func (l Load) workers(clients []*zk.Client) []*worker {
	all := make([]*worker, l.Connections*l.Outstanding)
	for i := range all {
		all[i] = &worker{load: l, id: i, client: clients[i%len(clients)], next: i * keyStride, data: make([]byte, l.Size)}
	}
	return all
}

// drive keeps all workers busy for the duration d. It ends at the first error.
func (l Load) drive(ctx context.Context, workers []*worker, d time.Duration) ([]*Report, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	books := make([]*book, min(len(workers), booksMax))
	for i := range books {
		books[i] = newBook(len(parts[l.Kind]))
	}
	m := l.begin()
	pace := newPace(l.Rate, d, m.began).limit(l.Operations)
	var wg sync.WaitGroup
	for i, w := range workers {
		w.book = books[i%len(books)]
		wg.Go(func() {
			if err := w.run(ctx, pace); err != nil {
				cancel(err)
			}
		})
	}
	wg.Wait()
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	sum := mergeBooks(books)
	pace.settle(sum)
	return l.reports(m, sum, pace), nil
}

// ErrDone says that nothing is left to do: see [Setting.Repeat].
var ErrDone = errors.New("nothing is left to do")

// Repeat measures calls of f by n goroutines, as a closed loop. It ends at the first error, or when f
// returns ErrDone, which is no error and is not counted.
func (s Setting) Repeat(ctx context.Context, kind string, n int, f func(ctx context.Context, worker int) error) (*Report, error) {
	if err := s.check(); err != nil {
		return nil, err
	}
	var m *meter
	took := newLatencies()
	for _, phase := range []struct {
		d    time.Duration
		book *latencies
	}{{s.Warmup, newLatencies()}, {s.Duration, took}} {
		m = s.begin()
		end := m.began.Add(phase.d)
		err := inFlight(n, n, func(worker int) error {
			for begin := time.Now(); begin.Before(end); begin = time.Now() {
				if err := f(ctx, worker); errors.Is(err, ErrDone) {
					return nil
				} else if err != nil {
					return err
				}
				phase.book.record(time.Since(begin))
			}
			return ctx.Err()
		})
		if err != nil {
			return nil, err
		}
	}
	return m.report(kind, took), nil
}

// parts names the requests of the kinds whose operations have more than one.
var parts = map[Kind][]string{
	Mixed:      {"mixed: reads", "mixed: writes"},
	Ephemerals: {"ephemerals: creates", "ephemerals: deletes"},
}

func (l Load) reports(m *meter, sum *book, pace *pace) []*Report {
	r := m.report(string(l.Kind), sum.whole)
	r.Rate, r.Unsent, r.TimerLate = l.Rate, pace.unsent, pace.lateness()
	r.Operations -= r.Unsent
	if l.Beside == nil {
		r.lasted(l.Duration)
	}
	all := []*Report{r}
	for i, name := range parts[l.Kind] {
		part := reportOf(name, r.Elapsed, sum.parts[i])
		part.Warmup = r.Warmup
		all = append(all, part)
	}
	return all
}

// keyStride is the distance between the first keys of two workers: a prime, so that they
// do not use the same keys at the same time.
const keyStride = 7919

// worker sends requests one after the other.
type worker struct {
	load   Load
	id     int
	client *zk.Client
	next   int // counts the operations, from keyStride*id on
	data   []byte
	book   *book
}

// run carries out operations until the pace gives no more.
func (w *worker) run(ctx context.Context, pace *pace) error {
	for {
		due, ok := pace.take(ctx)
		if !ok {
			return ctx.Err()
		}
		if err := w.operate(ctx, due); err != nil {
			return err
		}
		w.book.whole.record(time.Since(due))
		w.next++
	}
}

// operate carries out one operation, which was due at a time.
func (w *worker) operate(ctx context.Context, due time.Time) error {
	switch l := w.load; l.Kind {
	case Write:
		_, err := w.client.Set(ctx, w.key(), w.data, zk.AnyVersion)
		return err
	case Create:
		_, _, err := w.client.Create(ctx, l.Root+createdPath(w.id, w.next), w.data)
		return err
	case Mixed:
		return w.mix(ctx, due)
	case Ephemerals:
		return w.comeAndGo(ctx, due)
	}
	_, _, err := w.client.Get(ctx, w.key())
	return err
}

func (w *worker) key() string { return key(w.load.Root, w.next%w.load.Keys) }

func (w *worker) mix(ctx context.Context, due time.Time) error {
	if readsAt(w.next, w.load.Reads) {
		_, _, err := w.client.Get(ctx, w.key())
		w.book.parts[0].record(time.Since(due))
		return err
	}
	_, err := w.client.Set(ctx, w.key(), w.data, zk.AnyVersion)
	w.book.parts[1].record(time.Since(due))
	return err
}

func (w *worker) comeAndGo(ctx context.Context, due time.Time) error {
	path, _, err := w.client.Create(ctx, w.load.Root+bidPath, w.data, zk.Ephemeral|zk.Sequential)
	if err != nil {
		return err
	}
	created := time.Now()
	w.book.parts[0].record(created.Sub(due))
	err = w.client.Delete(ctx, path, zk.AnyVersion)
	w.book.parts[1].record(time.Since(created))
	return err
}

// Latency measures reads and then writes with one session and one request at a time.
type Latency struct {
	Setting
	Keys, Size int
}

func (l Latency) load(kind Kind) Load {
	return Load{Setting: l.Setting, Kind: kind, Connections: 1, Outstanding: 1, Keys: l.Keys, Size: l.Size}
}

// Check returns an error if a field is out of range.
func (l Latency) Check() error { return l.load(Read).Check() }

// Run measures both.
func (l Latency) Run(ctx context.Context) (all []*Report, err error) {
	for _, kind := range []Kind{Read, Write} {
		reports, failed := l.load(kind).Run(ctx)
		if reports == nil || failed != nil && kind == Read { // reports and an error: only the clean-up has failed
			return nil, failed
		}
		reports[0].Kind = "latency: " + string(kind)
		all, err = append(all, reports...), failed
	}
	return all, err
}
