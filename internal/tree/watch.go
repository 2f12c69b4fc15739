package tree

import (
	"strings"
	"sync"
	"sync/atomic"
)

// modes are the kinds of watches of one client at one path. ZooKeeper keeps two tables,
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

// count returns how many entries the modes would have in ZooKeeper's two tables.
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

// watches is the table of watches, divided into shards by the hash of the path. Readers
// change the table while they hold Tree.mu for reading; a shard's mutex guards the shard,
// and a watcher's mutex the watcher. The mutexes are taken in this order. Events are
// fired while Tree.mu is held for writing, with the shard's mutex. So a listing of the
// watches needs only the mutexes of shards and watchers, not Tree.mu.
type watches struct {
	key       hashKey
	shards    [watchShards]watchShard
	total     atomic.Int64 // number of watches, as modes.count counts them
	recursive atomic.Int64

	clientsMu sync.Mutex
	clients   map[Client]*watcher

	event uint64 // the number of the last event that was fired
	// unwatched is the path of a parent that has no watches, as the transaction being
	// applied has found out; no watch can be set meanwhile. Empty: no such parent is
	// known.
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
	index    map[*watcher]int32 // index of each watcher in watchers; nil until there were more than indexMin
	// first and one avoid allocations for a path with a single watch, as most paths have:
	// first is the watch, and one the memory of watchers.
	first watch
	one   [1]*watch
}

// indexMin is the number of watchers of a path up to which a watcher is found by a linear
// search.
const indexMin = 16

// watch holds what one client watches at a path. The shard's mutex guards it, except slot,
// which the watcher's mutex guards.
type watch struct {
	watcher *watcher
	path    *watchedPath
	modes   modes
	place   int32 // index in the watchers of the path
	slot    int32 // index in the watcher's own watches
}

// WatchBytesMax limits the memory of the watches of one connection, in bytes: it allows
// more than a million watches on paths of usual length.
const WatchBytesMax = 256 << 20

// watchCost is about how much memory a watch takes without its path, in bytes.
const watchCost = 140

// watcher is a client with at least one watch.
type watcher struct {
	client Client
	seen   uint64 // the number of the last event that the client got

	mu    sync.Mutex
	own   []*watch
	bytes int // memory of the client's watches, estimated
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

// watcher returns a client's entry; it creates the entry if there is none.
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

// add adds modes to a client's watch at a path.
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

// of returns a client's watch at the path; nil if there is none. The caller of this
// function and of the next three holds the shard's mutex.
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

// admit makes a watch for a client that has none at the path.
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

// dismiss removes a watch from the path; the path's last watch moves to the free index.
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

// take adds a watch to the list of the client's own watches.
func (o *watcher) take(mine *watch) {
	o.mu.Lock()
	defer o.mu.Unlock()
	mine.slot = int32(len(o.own))
	o.own = append(o.own, mine)
	o.bytes += watchCost + len(mine.path.path)
}

// lose removes a watch from the list of the client's own watches; the last watch moves to
// the free index.
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

// full reports whether another watch, on a path of n bytes, would exceed WatchBytesMax.
func (o *watcher) full(n int) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.bytes+watchCost+n > WatchBytesMax
}

// change sets the modes of a watch and updates the counters.
func (w *watches) change(mine *watch, m modes) {
	w.total.Add(m.count() - mine.modes.count())
	if d := int64(m&recursive) - int64(mine.modes&recursive); d != 0 {
		w.recursive.Add(d / int64(recursive))
	}
	mine.modes = m
}

// count returns how many paths are watched.
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

// remove removes modes from a client's watch.
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

// takeOf removes modes from a client's watch, if there is one. The caller holds the
// shard's mutex.
func (w *watches) takeOf(s *watchShard, p *watchedPath, o *watcher, m modes) {
	if mine := p.of(o); mine != nil {
		w.take(s, mine, m)
	}
}

// take removes modes from a watch. The caller holds the shard's mutex.
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

// removeWatcher removes a client and returns its watches, which the caller then passes to
// drop. The caller need not hold the tree's lock.
func (w *watches) removeWatcher(c Client) (o *watcher, paths []*watchedPath) {
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

// drop removes all of a client's watches from a path.
func (w *watches) drop(p *watchedPath, o *watcher) {
	s := w.shard(p.path)
	s.mu.Lock()
	defer s.mu.Unlock()
	w.takeOf(s, p, o, ^modes(0))
}
