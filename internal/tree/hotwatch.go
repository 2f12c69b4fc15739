package tree

import (
	"slices"
	"strings"
)

// HotWatch is a path with many watches. Each number counts connections.
type HotWatch struct {
	Path       string
	Watchers   int // number of watchers of the path, with any kind of watch
	Data       int // with a one-shot watch of exists or getData
	Children   int // with a one-shot watch of getChildren
	Persistent int // with a persistent watch
	Recursive  int // with a persistent recursive watch at the path
	Above      int // with a persistent recursive watch at a path above
	// DataEvent and ChildEvent are how many watches fire if the data changes, and if a child is
	// created or deleted. At most so many connections get an event: a connection gets one event
	// even if several of its watches fire, and none if it may not read the znode.
	DataEvent, ChildEvent int
}

// HotWatches returns the n paths with the most watchers, those with most watchers first. It
// takes the locks of the watch table one after the other, so it does not show one moment.
func (t *Tree) HotWatches(n int) []HotWatch {
	top := t.watches.top(n)
	out := make([]HotWatch, 0, len(top))
	for _, p := range top {
		if h := t.watches.describe(p.path); h.Watchers > 0 {
			out = append(out, h)
		}
	}
	slices.SortStableFunc(out, func(a, b HotWatch) int {
		if a.Watchers != b.Watchers {
			return b.Watchers - a.Watchers
		}
		return strings.Compare(a.Path, b.Path)
	})
	return out
}

// watchedCount is a path and how many clients watch it.
type watchedCount struct {
	path  string
	count int
}

// top returns the n paths with the most watchers.
func (w *watches) top(n int) []watchedCount {
	var top []watchedCount
	for i := range w.shards {
		s := &w.shards[i]
		s.mu.Lock()
		for _, p := range s.paths {
			count := len(p.watchers)
			if len(top) >= n && (n == 0 || count <= top[len(top)-1].count) {
				continue
			}
			at, _ := slices.BinarySearchFunc(top, count, func(e watchedCount, c int) int { return c - e.count })
			top = slices.Insert(top, at, watchedCount{p.path, count})
			top = top[:min(len(top), n)]
		}
		s.mu.Unlock()
	}
	return top
}

// describe counts the watches at a path by kind.
func (w *watches) describe(path string) HotWatch {
	h := HotWatch{Path: path}
	w.at(path, func(p *watchedPath) {
		h.Watchers = len(p.watchers)
		for _, each := range p.watchers {
			h.add(each.modes)
		}
	})
	for at := path; at != "/" && w.recursive.Load() > 0; {
		at = canonical(at[:max(strings.LastIndexByte(at, '/'), 0)])
		w.at(at, func(p *watchedPath) {
			for _, each := range p.watchers {
				if each.modes&recursive != 0 {
					h.Above++
				}
			}
		})
	}
	h.DataEvent += h.Above
	return h
}

// at calls f with the watches at a path, if there are any, under the shard's lock.
func (w *watches) at(path string, f func(*watchedPath)) {
	s := w.shard(path)
	s.mu.Lock()
	defer s.mu.Unlock()
	if p := s.paths[path]; p != nil {
		f(p)
	}
}

// add counts the watch of one client.
func (h *HotWatch) add(m modes) {
	count := func(n *int, of modes) {
		if m&of != 0 {
			*n++
		}
	}
	count(&h.Data, dataOnce)
	count(&h.Children, childOnce)
	count(&h.Persistent, stays)
	count(&h.Recursive, recursive)
	count(&h.DataEvent, dataTable)
	count(&h.ChildEvent, childTable)
}

// WatchCost returns how many paths a client watches, and about how many bytes of memory these
// watches use.
func (t *Tree) WatchCost(c Client) (paths, bytes int) {
	o := t.watches.known(c)
	if o == nil {
		return 0, 0
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.own), o.bytes
}
