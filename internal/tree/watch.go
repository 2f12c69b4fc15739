package tree

import (
	"strings"
	"sync"
	"sync/atomic"
)

// modes are what one client watches at one path. ZooKeeper keeps two tables,
// of data and of child watches; here both are in one.
type modes uint8

const (
	dataOnce modes = 1 << iota // exists and getData
	childOnce
	dataStays // addWatch, persistent: always both
	childStays
	recursive // addWatch, persistent recursive

	stays      = dataStays | childStays
	dataTable  = dataOnce | dataStays | recursive
	childTable = childOnce | childStays
)

// count is how many entries of ZooKeeper's two tables the modes are.
func (m modes) count() int64 {
	var n int64
	if m&dataTable != 0 {
		n++
	}
	if m&childTable != 0 {
		n++
	}
	return n
}

// watches is the table of watches, divided by the hash of the path. Readers
// change it under Tree.mu held for reading, each shard under its own mutex
// and each watcher under its own, taken in this order. Events are fired with
// Tree.mu held for writing and the shard's mutex. So its lists are made with
// the mutexes of shards and watchers, and without Tree.mu.
type watches struct {
	key       hashKey
	shards    [watchShards]watchShard
	total     atomic.Int64 // as modes.count counts
	recursive atomic.Int64

	clientsMu sync.Mutex
	clients   map[Client]*watcher

	event uint64 // the last one fired
}

const watchShards = 64

type watchShard struct {
	mu    sync.Mutex
	paths map[string]*watchedPath
}

// watchedPath is a path with at least one watcher.
type watchedPath struct {
	path     string
	watchers []*watcher
	first    [1]*watcher // the memory of watchers, as long as it suffices
}

// WatchBytesMax bounds the memory that the watches of one connection may
// take, in bytes: more than a million watches on paths of usual length.
const WatchBytesMax = 256 << 20

// watchCost is about what a watch takes besides its path, in bytes.
const watchCost = 140

// watcher is a client with at least one watch.
type watcher struct {
	client Client
	seen   uint64 // the last event it got

	mu    sync.Mutex
	own   map[*watchedPath]watch
	bytes int // that they take, about
}

// watch is one client's watch on one path, and its place among the others.
type watch struct {
	place int32
	modes modes
}

func (w *watches) init(key hashKey) {
	w.key = key
	w.clients = map[Client]*watcher{}
	for i := range w.shards {
		w.shards[i].paths = map[string]*watchedPath{}
	}
}

func (w *watches) shard(path string) *watchShard {
	return &w.shards[w.key.sum(path)%watchShards]
}

// watcher returns a client's entry, made if there is none.
func (w *watches) watcher(c Client) *watcher {
	w.clientsMu.Lock()
	defer w.clientsMu.Unlock()
	o := w.clients[c]
	if o == nil {
		o = &watcher{client: c, own: map[*watchedPath]watch{}}
		w.clients[c] = o
	}
	return o
}

// known returns a client's entry, nil if there is none.
func (w *watches) known(c Client) *watcher {
	w.clientsMu.Lock()
	defer w.clientsMu.Unlock()
	return w.clients[c]
}

// add sets a watch, beside those the client has there already.
func (w *watches) add(c Client, path string, m modes) {
	o := w.watcher(c)
	s := w.shard(path)
	s.mu.Lock()
	defer s.mu.Unlock()
	if o.full(len(path)) {
		c.Overflow()
		return
	}
	p := s.paths[path]
	if p == nil {
		p = &watchedPath{path: strings.Clone(path)}
		p.watchers = p.first[:0]
		s.paths[p.path] = p
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	mine, ok := o.own[p]
	if !ok {
		mine.place = int32(len(p.watchers))
		p.watchers = append(p.watchers, o)
		o.bytes += watchCost + len(path)
	}
	w.change(&mine, mine.modes|m)
	o.own[p] = mine
}

// full reports whether a client has no room for a watch on a path of n bytes.
func (o *watcher) full(n int) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.bytes+watchCost+n > WatchBytesMax
}

// at returns what a client watches at a path; the shard is locked.
func (o *watcher) at(p *watchedPath) modes {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.own[p].modes
}

// change sets the modes of a watch and keeps the counters true.
func (w *watches) change(mine *watch, m modes) {
	w.total.Add(m.count() - mine.modes.count())
	if d := int64(m&recursive) - int64(mine.modes&recursive); d != 0 {
		w.recursive.Add(d / int64(recursive))
	}
	mine.modes = m
}

// modes returns what a client watches at a path.
func (w *watches) modes(c Client, path string) modes {
	o := w.known(c)
	if o == nil {
		return 0
	}
	s := w.shard(path)
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.paths[path]
	if p == nil {
		return 0
	}
	return o.at(p)
}

// remove takes modes off a client's watch.
func (w *watches) remove(c Client, path string, m modes) {
	o := w.known(c)
	if o == nil {
		return
	}
	s := w.shard(path)
	s.mu.Lock()
	defer s.mu.Unlock()
	if p := s.paths[path]; p != nil {
		w.take(s, p, o, m)
	}
}

// take removes modes from a watch; the shard is locked.
func (w *watches) take(s *watchShard, p *watchedPath, o *watcher, m modes) {
	o.mu.Lock()
	mine, ok := o.own[p]
	if !ok {
		o.mu.Unlock()
		return
	}
	w.change(&mine, mine.modes&^m)
	if mine.modes != 0 {
		o.own[p] = mine
		o.mu.Unlock()
		return
	}
	delete(o.own, p)
	o.bytes -= watchCost + len(p.path)
	o.mu.Unlock()
	end := len(p.watchers) - 1
	if moved := p.watchers[end]; moved != o {
		p.watchers[mine.place] = moved
		moved.mu.Lock()
		its := moved.own[p]
		its.place = mine.place
		moved.own[p] = its
		moved.mu.Unlock()
	}
	p.watchers[end] = nil
	if p.watchers = p.watchers[:end]; end == 0 {
		delete(s.paths, p.path)
	}
}

// forget drops a client and returns what it watches, for drop. It needs no lock
// on the tree.
func (w *watches) forget(c Client) (o *watcher, paths []*watchedPath) {
	w.clientsMu.Lock()
	o = w.clients[c]
	delete(w.clients, c)
	w.clientsMu.Unlock()
	if o == nil {
		return nil, nil
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	paths = make([]*watchedPath, 0, len(o.own))
	for p := range o.own {
		paths = append(paths, p)
	}
	return o, paths
}

// drop takes all of a client's watches off a path.
func (w *watches) drop(p *watchedPath, o *watcher) {
	s := w.shard(p.path)
	s.mu.Lock()
	defer s.mu.Unlock()
	w.take(s, p, o, ^modes(0))
}
