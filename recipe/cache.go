package recipe

import (
	"context"
	"fmt"
	"iter"
	"log/slog"
	"time"

	"bellwether/internal/claim"
	"bellwether/internal/claim/cache"
	"bellwether/zk"
)

// The defaults of CacheOptions.
const (
	cacheNodesMax = 100_000
	cacheBytesMax = 256 << 20
)

// CacheOptions are the settings of a Cache; nil is all defaults.
type CacheOptions struct {
	// ChildrenOnly keeps the root and its children, not what is below them.
	ChildrenOnly bool
	// NodesMax and BytesMax, of data, are what a Cache may hold. More ends
	// it with a *CacheFullError. Default 100,000 and 256 MiB.
	NodesMax int
	BytesMax int

	// Logger and Observer are those of ElectionOptions.
	Logger   *slog.Logger
	Observer func(Observation)
}

// Node is a znode as it was last read. The data is shared and must not be changed.
type Node struct {
	Path string
	Data []byte
	// Stat is of the time the data was read: what it says of children may be older
	// than Cache.Children.
	Stat zk.Stat
}

// CacheFullError ends a Cache that would exceed NodesMax or BytesMax.
type CacheFullError struct {
	Root               string
	NodesMax, BytesMax int
}

func (e *CacheFullError) Error() string {
	return fmt.Sprintf("more than %d znodes or %d bytes at %s", e.NodesMax, e.BytesMax, e.Root)
}

// Cache is a copy of a subtree that follows the servers' with a persistent watch. It
// lags behind them as any read does, and never goes back. After a lost connection or
// session it asks which znodes have changed and reads only those. On servers before 3.6
// it uses one-shot watches on each znode. Its methods may be called from any goroutine.
type Cache struct {
	agent
	*driver // whose mu guards the fields below
	opt     CacheOptions
	cancel  context.CancelFunc
	ready   chan struct{} // closed when everything was read once
	gone    chan struct{} // closed when run has returned

	tree  *cache.Cache // which holds the znodes
	n     int          // how many events there were
	err   error        // why it has ended
	began time.Time    // of its opening, and then of its being loaded
	feeds map[*cacheFeed]bool

	// watches are the one-shot watches at each znode, where the server has none for a tree. They belong
	// to the request under way, and to the loop after its end.
	oneShot map[watchAt]*zk.Watch
}

// OpenCache makes a Cache of the subtree at root, which need not exist. It returns when
// all of the subtree was read. The caller still owns the client.
func OpenCache(ctx context.Context, c *zk.Client, root string, o *CacheOptions) (*Cache, error) {
	k := &Cache{ready: make(chan struct{}), gone: make(chan struct{}), feeds: map[*cacheFeed]bool{}, oneShot: map[watchAt]*zk.Watch{}, began: time.Now()}
	if o != nil {
		k.opt = *o
	}
	k.agent = newAgent(c, "cache", root, nil, k.opt.Logger, k.opt.Observer)
	k.opt.NodesMax = orDefault(k.opt.NodesMax, cacheNodesMax)
	k.opt.BytesMax = orDefault(k.opt.BytesMax, cacheBytesMax)
	k.tree = cache.NewCache(cache.CacheConfig{
		Root: root, ChildrenOnly: k.opt.ChildrenOnly, NodesMax: k.opt.NodesMax, BytesMax: k.opt.BytesMax,
	})
	run, cancel := context.WithCancel(context.WithoutCancel(ctx))
	k.cancel = cancel
	k.driver = k.newDriver(k.tree)
	k.readOnly, k.resigns, k.locked = true, true, k.publish
	k.carry = func(_ context.Context, req claim.Request) answer { return k.carryOut(run, req) } // Close cancels it
	go k.run(run)
	select {
	case <-k.ready:
		return k, nil
	case <-k.gone:
		return nil, k.Err()
	case <-ctx.Done():
		k.Close()
		return nil, ctx.Err()
	}
}

func orDefault(n, otherwise int) int {
	if n <= 0 {
		return otherwise
	}
	return n
}

// Close ends the Cache and removes its watch. The copy stays readable.
func (k *Cache) Close() {
	k.cancel()
	<-k.gone
}

// Done returns a channel that is closed when the Cache has ended; Err says why it ended.
func (k *Cache) Done() <-chan struct{} { return k.gone }

// Err returns nil until the Cache has ended, and then the reason: zk.ErrClosed, a
// *CacheFullError or what the servers refuse.
func (k *Cache) Err() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.err
}

// Stale reports whether the Cache may lag by more than usual: it is not connected, or
// has not caught up since it was.
func (k *Cache) Stale() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.tree.Stale() || k.err != nil || k.c.State().State != zk.Connected
}

// Len returns the number of znodes in the copy.
func (k *Cache) Len() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.tree.Len()
}

// revision grows with each change.
func (k *Cache) revision() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.n
}

// Get returns a znode, or false if there is none.
func (k *Cache) Get(path string) (Node, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	n := k.tree.Get(path)
	return nodeOf(n), n != nil
}

// nodeOf is a znode as the state machine has it; nil is none.
func nodeOf(n *cache.Node) Node {
	if n == nil {
		return Node{}
	}
	return Node(*n)
}

// Children returns the names of a znode's children in order.
func (k *Cache) Children(path string) []string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.tree.Children(path)
}

// All yields every znode as it is now, parents before children, in the order of names.
func (k *Cache) All() iter.Seq[Node] {
	k.mu.Lock()
	all := k.tree.All()
	k.mu.Unlock()
	return func(yield func(Node) bool) {
		for _, n := range all {
			if !yield(Node(*n)) {
				return
			}
		}
	}
}
