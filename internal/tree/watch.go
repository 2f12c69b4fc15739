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
	// unwatched is a parent at which nobody has a watch, as the transaction that is
	// being applied has found: none can come meanwhile. Empty: none is known.
	unwatched string
}

const watchShards = 64

type watchShard struct {
	mu    sync.Mutex
	paths map[string]*watchedPath
}

// watchedPath is a path with at least one watcher.
type watchedPath struct {
	path     string
	watchers []*watch
	index    map[*watcher]int32 // places in watchers, where these were once more than indexMin
	// first and one are the memory of the only watch, as most paths have one, and
	// of its place in watchers.
	first watch
	one   [1]*watch
}

// indexMin is up to how many watchers of a path are found by looking at each.
const indexMin = 16

// watch is what one client watches at a path. The shard guards it, the watcher's
// mutex slot.
type watch struct {
	watcher *watcher
	path    *watchedPath
	modes   modes
	place   int32 // among the watchers of the path
	slot    int32 // among the watcher's own
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
	own   []*watch
	bytes int // that they take, about
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
		o = &watcher{client: c}
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
		p.watchers = p.one[:0]
		s.paths[p.path] = p
	}
	mine := p.of(o)
	if mine == nil {
		mine = p.admit(o)
		o.take(mine)
	}
	w.change(mine, mine.modes|m)
}

// of returns a client's watch at the path, nil if there is none; the shard is
// locked, as it is for the next three.
func (p *watchedPath) of(o *watcher) *watch {
	if p.index != nil {
		if place, ok := p.index[o]; ok {
			return p.watchers[place]
		}
		return nil
	}
	for _, mine := range p.watchers {
		if mine.watcher == o {
			return mine
		}
	}
	return nil
}

// admit makes a watch of a client that has none at the path.
func (p *watchedPath) admit(o *watcher) *watch {
	mine := &p.first
	if mine.watcher != nil {
		mine = new(watch)
	}
	*mine = watch{watcher: o, path: p, place: int32(len(p.watchers))}
	p.watchers = append(p.watchers, mine)
	switch {
	case p.index != nil:
		p.index[o] = mine.place
	case len(p.watchers) > indexMin:
		p.index = make(map[*watcher]int32, 2*indexMin)
		for i, each := range p.watchers {
			p.index[each.watcher] = int32(i)
		}
	}
	return mine
}

// dismiss takes a watch off the path; the last one takes its place.
func (p *watchedPath) dismiss(mine *watch) {
	end := len(p.watchers) - 1
	moved := p.watchers[end]
	p.watchers[mine.place], moved.place = moved, mine.place
	p.watchers[end] = nil
	p.watchers = p.watchers[:end]
	if p.index != nil {
		p.index[moved.watcher] = moved.place
		delete(p.index, mine.watcher)
	}
	mine.watcher = nil
}

// take puts a watch among a client's own.
func (o *watcher) take(mine *watch) {
	o.mu.Lock()
	defer o.mu.Unlock()
	mine.slot = int32(len(o.own))
	o.own = append(o.own, mine)
	o.bytes += watchCost + len(mine.path.path)
}

// lose takes a watch off a client's own; the last one takes its slot.
func (o *watcher) lose(mine *watch) {
	o.mu.Lock()
	defer o.mu.Unlock()
	end := len(o.own) - 1
	moved := o.own[end]
	o.own[mine.slot], moved.slot = moved, mine.slot
	o.own[end] = nil
	if o.own = o.own[:end]; end == 0 {
		o.own = nil
	}
	o.bytes -= watchCost + len(mine.path.path)
}

// full reports whether a client has no room for a watch on a path of n bytes.
func (o *watcher) full(n int) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.bytes+watchCost+n > WatchBytesMax
}

// change sets the modes of a watch and keeps the counters true.
func (w *watches) change(mine *watch, m modes) {
	w.total.Add(m.count() - mine.modes.count())
	if d := int64(m&recursive) - int64(mine.modes&recursive); d != 0 {
		w.recursive.Add(d / int64(recursive))
	}
	mine.modes = m
}

// count is how many paths are watched.
func (w *watches) count() (n int64) {
	for i := range w.shards {
		s := &w.shards[i]
		s.mu.Lock()
		n += int64(len(s.paths))
		s.mu.Unlock()
	}
	return n
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
	if p := s.paths[path]; p != nil {
		if mine := p.of(o); mine != nil {
			return mine.modes
		}
	}
	return 0
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
		w.takeOf(s, p, o, m)
	}
}

// takeOf removes modes from a client's watch, if there is one; the shard is locked.
func (w *watches) takeOf(s *watchShard, p *watchedPath, o *watcher, m modes) {
	if mine := p.of(o); mine != nil {
		w.take(s, mine, m)
	}
}

// take removes modes from a watch; the shard is locked.
func (w *watches) take(s *watchShard, mine *watch, m modes) {
	if w.change(mine, mine.modes&^m); mine.modes != 0 {
		return
	}
	p := mine.path
	mine.watcher.lose(mine)
	if p.dismiss(mine); len(p.watchers) == 0 {
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
	for _, mine := range o.own {
		paths = append(paths, mine.path)
	}
	return o, paths
}

// drop takes all of a client's watches off a path.
func (w *watches) drop(p *watchedPath, o *watcher) {
	s := w.shard(p.path)
	s.mu.Lock()
	defer s.mu.Unlock()
	w.takeOf(s, p, o, ^modes(0))
}
