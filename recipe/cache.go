package recipe

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"

	"bellwether/internal/claim"
	"bellwether/wire"
	"bellwether/zk"
)

// The defaults of CacheOptions.
const (
	cacheNodesMax  = 100_000
	cacheBytesMax  = 256 << 20
	cacheEventsMax = 65_536
)

// CacheOptions are the settings of a Cache; nil is all defaults.
type CacheOptions struct {
	// ChildrenOnly keeps the root and its children, not what is below them.
	ChildrenOnly bool
	// NodesMax and BytesMax, of data, are what a Cache may hold. More ends
	// it with a *CacheFullError. Default 100,000 and 256 MiB.
	NodesMax int
	BytesMax int
	// EventsMax is how many events one reader of Events may leave unread.
	// Default 65,536.
	EventsMax int
}

// Node is a znode as it was last read. The data is shared: nobody changes it.
type Node struct {
	Path string
	Data []byte
	// Stat is of the time the data was read: what it says of children may be older
	// than Cache.Children.
	Stat wire.Stat
}

// CacheFullError ends a Cache that would hold more than it may.
type CacheFullError struct {
	Root               string
	NodesMax, BytesMax int
}

func (e *CacheFullError) Error() string {
	return fmt.Sprintf("more than %d znodes or %d bytes at %s", e.NodesMax, e.BytesMax, e.Root)
}

// Cache is a copy of a subtree that follows the servers' with a persistent
// watch. It lags behind them as any read does, and never goes back. After a
// lost connection, or session, it asks what has changed and reads that alone.
// On servers before 3.6 it uses one-shot watches at each znode. Its methods
// may be called from any goroutine.
type Cache struct {
	c      *zk.Client
	root   string
	opt    CacheOptions
	cancel context.CancelFunc
	ready  chan struct{} // closed when everything was read once
	done   chan struct{} // closed when run has returned

	mu    sync.Mutex
	nodes map[string]*cached
	bytes int
	told  int // how many events there were
	stale bool
	err   error // why it has ended
	feeds map[*cacheFeed]bool

	// Of run alone.
	todo   worklist
	since  wire.Zxid // all up to here is known, when behind
	behind bool      // what came after since may not be
}

// cached is a znode and the names of its children.
type cached struct {
	Node
	children map[string]bool
}

// OpenCache makes a Cache of the subtree at root, which need not exist, and
// returns when all of it was read. The client stays the caller's.
func OpenCache(ctx context.Context, c *zk.Client, root string, o *CacheOptions) (*Cache, error) {
	k := &Cache{c: c, root: root, ready: make(chan struct{}), done: make(chan struct{}),
		nodes: map[string]*cached{}, stale: true, feeds: map[*cacheFeed]bool{}}
	if o != nil {
		k.opt = *o
	}
	k.opt.NodesMax = orDefault(k.opt.NodesMax, cacheNodesMax)
	k.opt.BytesMax = orDefault(k.opt.BytesMax, cacheBytesMax)
	k.opt.EventsMax = orDefault(k.opt.EventsMax, cacheEventsMax)
	run, cancel := context.WithCancel(context.WithoutCancel(ctx))
	k.cancel = cancel
	go k.run(run)
	select {
	case <-k.ready:
		return k, nil
	case <-k.done:
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

// Close ends the Cache and gives up its watch. What it holds stays readable.
func (k *Cache) Close() {
	k.cancel()
	<-k.done
}

// Done is closed when the Cache has ended; Err says why.
func (k *Cache) Done() <-chan struct{} { return k.done }

// Err is nil until the Cache has ended: zk.ErrClosed, a *CacheFullError or
// what the servers refuse.
func (k *Cache) Err() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.err
}

// Stale reports whether the Cache may be behind by more than what is on its way: it is
// not connected, or catching up since.
func (k *Cache) Stale() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.stale || k.err != nil || k.c.State().State != zk.Connected
}

// Len is the number of znodes held.
func (k *Cache) Len() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return len(k.nodes)
}

// revision grows with each change.
func (k *Cache) revision() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.told
}

// Get returns a znode, or false where there is none.
func (k *Cache) Get(path string) (Node, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	n := k.nodes[path]
	if n == nil {
		return Node{}, false
	}
	return n.Node, true
}

// Children returns the names of a znode's children in order.
func (k *Cache) Children(path string) []string {
	k.mu.Lock()
	defer k.mu.Unlock()
	n := k.nodes[path]
	if n == nil {
		return nil
	}
	return n.names()
}

func (n *cached) names() []string {
	names := make([]string, 0, len(n.children))
	for name := range n.children {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// All yields every znode as it is now, parents before children, in the order of names.
func (k *Cache) All() iter.Seq[Node] {
	k.mu.Lock()
	all := k.below(k.root)
	k.mu.Unlock()
	return slices.Values(all)
}

// below are the znode and all below it, parents first. Cache.mu is held.
func (k *Cache) below(path string) []Node {
	n := k.nodes[path]
	if n == nil {
		return nil
	}
	out := []Node{n.Node}
	for _, name := range n.names() {
		out = append(out, k.below(claim.Join(path, name))...)
	}
	return out
}

// inScope: the Cache keeps znodes at this path, which is the root or below it.
func (k *Cache) inScope(path string) bool {
	if path == k.root {
		return true
	}
	rest, ok := strings.CutPrefix(path, strings.TrimSuffix(k.root, "/")+"/")
	return ok && (!k.opt.ChildrenOnly || !strings.Contains(rest, "/"))
}

// lists: the Cache keeps the children of the znode at this path.
func (k *Cache) lists(path string) bool { return path == k.root || !k.opt.ChildrenOnly }

// isGap: the error ends a stream, and another one can go on.
func (k *Cache) isGap(err error) bool {
	var full *zk.OverflowError
	return isPassing(k.c, err) || k.c.Err() == nil && (errors.Is(err, zk.ErrUnsupported) || errors.As(err, &full))
}
