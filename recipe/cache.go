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

// CacheOptions are the settings of a Cache. A nil pointer means all defaults.
type CacheOptions struct {
	// ChildrenOnly limits the copy to the root and its children.
	ChildrenOnly bool
	// NodesMax and BytesMax limit the number of znodes and the bytes of their data. A Cache that
	// would exceed one of them ends with a *CacheFullError. The defaults are 100,000 and 256 MiB.
	NodesMax int
	BytesMax int

	// Logger and Observer receive reports as described at ElectionOptions.
	Logger   *slog.Logger
	Observer func(Observation)
}

// Node is a znode as it was last read. The data is shared and must not be changed.
type Node struct {
	Path string
	Data []byte
	// Stat is the stat that was read with the data. Its counts of children may therefore be older
	// than the result of Cache.Children.
	Stat zk.Stat
}

// CacheFullError ends a Cache that would exceed NodesMax or BytesMax.
type CacheFullError struct {
	Root               string
	NodesMax, BytesMax int
}

func (e *CacheFullError) Error() string {
	return fmt.Sprintf("more than %d znodes or %d bytes at %s (CacheOptions.NodesMax, BytesMax)", e.NodesMax, e.BytesMax, e.Root)
}

// Cache is a copy of a subtree. It follows the changes on the servers with a persistent
// watch. Like any read it may lag behind the leader, but it never goes back to an older
// state. After the loss of a connection or a session the Cache asks the server which
// znodes have changed, and reads only those. On servers before 3.6 it uses one-shot
// watches on each znode. Its methods may be called from any goroutine.
//
// Invariant: once err is set it does not change, and each feed gets it.
type Cache struct {
	agent
	*driver // its mu guards tree, n, err, began and feeds
	opt     CacheOptions
	cancel  context.CancelFunc
	ready   chan struct{} // closed when everything has been read once
	gone    chan struct{} // closed when run has returned

	tree  *cache.Cache // holds the znodes
	n     int          // the number of events so far
	err   error        // why it has ended
	began time.Time    // when OpenCache was called; once the Cache is loaded, when loading ended
	feeds map[*cacheFeed]bool

	// oneShot holds the one-shot watches at each znode, for servers without a watch for a whole subtree. The
	// request under way owns the map. After the loop has ended, run owns it.
	oneShot map[watchAt]*zk.Watch
}

// OpenCache makes a Cache of the subtree at root. The root need not exist. OpenCache returns when
// the whole subtree has been read. The caller still owns the client.
func OpenCache(ctx context.Context, c *zk.Client, root string, o *CacheOptions) (*Cache, error) {
	if err := checkClient("cache", c, root); err != nil {
		return nil, err
	}
	k := &Cache{ready: make(chan struct{}), gone: make(chan struct{}), feeds: map[*cacheFeed]bool{}, oneShot: map[watchAt]*zk.Watch{}, began: time.Now()}
	k.opt = optionsOr(o)
	k.agent = newAgent(c, "cache", root, nil, k.opt.Logger, k.opt.Observer)
	k.opt.NodesMax = orDefault(k.opt.NodesMax, cacheNodesMax)
	k.opt.BytesMax = orDefault(k.opt.BytesMax, cacheBytesMax)
	k.tree = cache.NewCache(cache.Config{
		Root: root, ChildrenOnly: k.opt.ChildrenOnly, NodesMax: k.opt.NodesMax, BytesMax: k.opt.BytesMax,
	})
	run, cancel := context.WithCancel(context.WithoutCancel(ctx))
	k.cancel = cancel
	k.driver = k.newDriver(k.tree)
	k.readOnly, k.resigns, k.afterStepLocked = true, true, k.publish
	k.carry = func(_ context.Context, req claim.Request) answer { return k.carryOut(run, req) } // run is cancelled by Close
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

// Close ends the Cache and removes its watches. The copy stays readable.
func (k *Cache) Close() {
	k.cancel()
	<-k.gone
}

// Done returns a channel that is closed when the Cache has ended; Err says why it ended.
func (k *Cache) Done() <-chan struct{} { return k.gone }

// Err returns nil until the Cache has ended, and then the reason: zk.ErrClosed, a
// *CacheFullError or the error of a server that refused a request.
func (k *Cache) Err() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.err
}

// Stale reports whether the Cache may lag by more than usual: the client is not connected, or the
// Cache has not caught up since the client connected.
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

// revision returns a number that grows with each change.
func (k *Cache) revision() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.n
}

// Get returns the znode at path, or false if there is none.
func (k *Cache) Get(path string) (Node, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	n := k.tree.Get(path)
	return nodeOf(n), n != nil
}

// nodeOf converts a znode of the state machine; nil becomes the zero Node.
func nodeOf(n *cache.Node) Node {
	if n == nil {
		return Node{}
	}
	return Node(*n)
}

// Children returns the sorted names of the children of the znode at path.
func (k *Cache) Children(path string) []string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.tree.Children(path)
}

// All yields a copy of all znodes, taken when All is called. Parents come before children, in the order of their names.
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
