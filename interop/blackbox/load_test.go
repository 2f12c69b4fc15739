package blackbox

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"bellwether/zk"

	"github.com/anishathalye/porcupine"
)

const (
	registers = 4 // znodes that are written and read
	kept      = "/kept"
	// forever is the return time of an operation whose reply was lost.
	forever = int64(1) << 62
	// pause is the longest time between two operations of one client.
	pause = 8 * time.Millisecond
	// waitMax bounds every wait of a scene.
	waitMax = 2 * time.Minute
)

// load is a set of clients of different servers, and the record of their replies.
type load struct {
	t     testing.TB
	began time.Time
	group sync.WaitGroup
	stop  chan struct{}
	acl   zk.ACLs

	mu      sync.Mutex
	clients []*worker
	history []porcupine.Operation
	kept    map[string]string // znodes whose create was acknowledged
	unsure  map[string]string // znodes whose create had no reply
	facts   facts
	writes  int            // acknowledged writes of all clients
	errors  map[string]int // how often a request ended with each error
}

// worker is one client of the load.
type worker struct {
	*load
	id   int
	c    *zk.Client
	rng  *rand.Rand
	last [registers]int32 // the last version of each register that was seen, for conditional sets

	writes int // acknowledged writes
	reads  int
	seen   []sight
}

// newLoad creates the znodes through c, with this access-control list. The caller keeps c.
func newLoad(t testing.TB, c *zk.Client, acl zk.ACLs) *load {
	t.Helper()
	if acl == nil {
		acl = zk.OpenACL()
	}
	l := &load{t: t, acl: acl, began: time.Now(), stop: make(chan struct{}), kept: map[string]string{}, unsure: map[string]string{}, facts: facts{}, errors: map[string]int{}}
	paths := []string{kept}
	for key := range registers {
		paths = append(paths, regPath(key))
	}
	ctx, cancel := context.WithTimeout(t.Context(), waitMax)
	defer cancel()
	for _, path := range paths {
		if _, _, err := c.Create(ctx, path, nil, acl); err != nil {
			t.Fatal(err)
		}
	}
	return l
}

func regPath(key int) string { return fmt.Sprintf("/r%d", key) }

// add starts a client of the load.
func (l *load) add(c *zk.Client) *worker {
	l.mu.Lock()
	defer l.mu.Unlock()
	w := &worker{load: l, id: len(l.clients), c: c, rng: rand.New(rand.NewPCG(1, uint64(len(l.clients))))}
	l.clients = append(l.clients, w)
	l.group.Go(w.run)
	return w
}

// end stops all clients after their current operations.
func (l *load) end() {
	close(l.stop)
	l.group.Wait()
}

// run works until the load ends. Calls wait while there is no server; a scene whose servers never
// return must cancel them.
func (w *worker) run() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	defer context.AfterFunc(w.t.Context(), cancel)()
	for i := 0; ; i++ {
		select {
		case <-w.stop:
			return
		case <-ctx.Done():
			return
		case <-time.After(time.Duration(w.rng.Int64N(int64(pause)))):
		}
		value := fmt.Sprintf("%d.%d", w.id, i)
		switch key := w.rng.IntN(registers); w.rng.IntN(8) {
		case 0, 1, 2:
			w.set(ctx, regIn{key: key, set: true, value: value, version: -1})
		case 3:
			w.set(ctx, regIn{key: key, set: true, value: value, version: w.last[key]})
		case 4:
			w.keep(ctx, value)
		case 5:
			w.get(ctx, key)
		default:
			w.syncedGet(ctx, key)
		}
	}
}

func (w *worker) now() int64 { return int64(time.Since(w.began)) }

// record records one operation for porcupine.
func (w *worker) record(in regIn, out regOut, call int64) {
	back := w.now()
	if out.unknown {
		back = forever
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.history = append(w.history, porcupine.Operation{ClientId: w.id, Input: in, Output: out, Call: call, Return: back})
	if in.set && !out.unknown && !out.bad {
		w.writes++
		w.load.writes++
	}
}

// saw records what a session has seen.
func (w *worker) saw(g sight) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.last[g.key] = g.stat.Version
	w.seen = append(w.seen, g)
	w.facts.add(g.key, g.stat)
}

// set writes a register.
func (w *worker) set(ctx context.Context, in regIn) {
	call, session := w.now(), w.c.Session().ID
	stat, err := w.c.Set(ctx, regPath(in.key), []byte(in.value), in.version)
	lost := (*zk.UnknownOutcomeError)(nil)
	switch {
	case err == nil:
		w.record(in, regOut{version: stat.Version}, call)
		if session == w.c.Session().ID {
			w.saw(sight{session: session, key: in.key, stat: stat})
		}
	case errors.Is(err, zk.ErrBadVersion) && in.version != -1:
		w.record(in, regOut{bad: true}, call)
	case errors.As(err, &lost):
		w.count("unknown outcome")
		w.record(in, regOut{unknown: true}, call)
	default:
		w.unexpected(ctx, err)
	}
}

// keep creates a znode that must exist in the end if its create was acknowledged.
func (w *worker) keep(ctx context.Context, value string) {
	path := kept + "/" + value
	_, _, err := w.c.Create(ctx, path, []byte(value), w.acl)
	lost := (*zk.UnknownOutcomeError)(nil)
	if err != nil && !errors.As(err, &lost) {
		w.unexpected(ctx, err)
		return
	}
	if err != nil {
		w.count("unknown outcome")
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if err != nil {
		w.unsure[path] = value
		return
	}
	w.kept[path] = value
	w.writes++
	w.load.writes++
}

// get reads a register from the server's state, which may be older than the writes of others, but
// not older than what this session knows.
func (w *worker) get(ctx context.Context, key int) (value string, version int32, ok bool) {
	session := w.c.Session().ID
	data, stat, err := w.c.Get(ctx, regPath(key))
	if err != nil {
		w.unexpected(ctx, err)
		return "", 0, false
	}
	if session == w.c.Session().ID {
		w.saw(sight{session: session, key: key, stat: stat})
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.reads++
	return string(data), stat.Version, true
}

// syncedGet reads the current value of a register. It does not record the read if the connection
// changes meanwhile, because the read may then come from another server.
func (w *worker) syncedGet(ctx context.Context, key int) {
	call, before := w.now(), w.c.State()
	if err := w.c.Sync(ctx, regPath(key)); err != nil {
		w.unexpected(ctx, err)
		return
	}
	value, version, ok := w.get(ctx, key)
	after := w.c.State()
	if !ok || after.State != before.State || after.Server != before.Server || !after.Since.Equal(before.Since) {
		return
	}
	w.record(regIn{key: key}, regOut{value: value, version: version}, call)
}

// count counts a request that ended with an error.
func (w *worker) count(what string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.errors[what]++
}

// unexpected reports an error that means that a request was not carried out. Errors of lost
// connections and of the scene's end are expected.
func (w *worker) unexpected(ctx context.Context, err error) {
	for _, known := range []error{zk.ErrConnectionLoss, zk.ErrSessionExpired, zk.ErrNotReadOnly} {
		if errors.Is(err, known) {
			w.count(known.Error())
		}
	}
	if ctx.Err() != nil || errors.Is(err, zk.ErrConnectionLoss) || errors.Is(err, zk.ErrSessionExpired) || errors.Is(err, zk.ErrNotReadOnly) {
		return
	}
	w.t.Errorf("client %d: %v", w.id, err)
}

// acknowledged returns how many writes of each client were acknowledged.
func (l *load) acknowledged() []int {
	l.mu.Lock()
	defer l.mu.Unlock()
	var all []int
	for _, w := range l.clients {
		all = append(all, w.writes)
	}
	return all
}

// awaitWrites waits until n more writes of each of these clients, or of all if none is given, have
// been acknowledged.
func (l *load) awaitWrites(n int, clients ...*worker) {
	l.t.Helper()
	if clients == nil {
		clients = l.clients
	}
	before := l.acknowledged()
	for end := time.Now().Add(waitMax); ; <-time.After(10 * time.Millisecond) {
		now, slow := l.acknowledged(), -1
		for _, w := range clients {
			if now[w.id] < before[w.id]+n {
				slow = w.id
			}
		}
		if slow < 0 {
			return
		}
		if time.Now().After(end) {
			l.t.Fatalf("client %d, %+v, had %d writes acknowledged in %v, want %d",
				slow, l.clients[slow].c.State(), now[slow]-before[slow], waitMax, n)
		}
	}
}
