package tree

import (
	"cmp"
	"slices"

	"bellwether/wire"
)

// LastZxid returns the last applied transaction.
func (t *Tree) LastZxid() wire.Zxid {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.last
}

// Counts are the figures for four-letter words and metrics.
type Counts struct {
	Nodes      int64 // number of znodes as ZooKeeper counts them: the root twice
	Ephemerals int64
	Containers int64
	TTLs       int64
	DataBytes  int64 // bytes of paths and data, as ZooKeeper estimates them
	Sessions   int64
	Watches    int64
	WatchPaths int64 // paths with a watch
	Watchers   int64 // connections with a watch
}

// Counts returns the current figures.
func (t *Tree) Counts() Counts {
	t.mu.RLock()
	defer t.mu.RUnlock()
	c := Counts{
		Nodes: t.nodes + 2, Ephemerals: t.ephemerals, Containers: int64(len(t.containers)), TTLs: int64(len(t.ttls)),
		DataBytes: t.bytes, Sessions: int64(t.live), Watches: t.watches.total.Load(),
	}
	w := &t.watches
	c.WatchPaths = w.count()
	w.clientsMu.Lock()
	defer w.clientsMu.Unlock()
	for _, o := range w.clients {
		o.mu.Lock()
		if len(o.own) > 0 {
			c.Watchers++
		}
		o.mu.Unlock()
	}
	return c
}

// PathWatchers are the sessions that watch a path.
type PathWatchers struct {
	Path     string
	Sessions []wire.SessionID
}

// dataWatches calls yield for each path that has a data watch, with the sessions that
// watch it, in no order. Like ZooKeeper's lists it leaves out paths that have only child
// watches. It copies one shard of the table at a time, under that shard's lock, so the
// result does not show one moment. The slice is valid only until yield returns.
func (t *Tree) dataWatches(yield func(path string, sessions []wire.SessionID)) {
	var paths []*watchedPath
	var ends []int // index in watchers behind the last watcher of each path
	var watchers []*watcher
	var sessions []wire.SessionID
	for i := range t.watches.shards {
		s := &t.watches.shards[i]
		paths, ends, watchers = paths[:0], ends[:0], watchers[:0]
		s.mu.Lock()
		for _, p := range s.paths {
			for i := range p.watchers {
				if p.watchers[i].modes&dataTable != 0 {
					watchers = append(watchers, p.watchers[i].watcher)
				}
			}
			paths, ends = append(paths, p), append(ends, len(watchers))
		}
		s.mu.Unlock()
		begin := 0
		for i, p := range paths {
			sessions = sessions[:0]
			for _, o := range watchers[begin:ends[i]] {
				sessions = append(sessions, o.client.Session())
			}
			if begin = ends[i]; len(sessions) > 0 {
				yield(p.path, sessions)
			}
		}
	}
}

// WatchesByPath lists the paths that have a data watch, sorted.
//
// It allocates its memory at once, because moving a million entries to a larger place is
// one step of the runtime, and all goroutines may have to wait for it.
func (t *Tree) WatchesByPath() []PathWatchers {
	out := make([]PathWatchers, 0, t.watches.count())
	all := make([]wire.SessionID, 0, t.watches.total.Load()) // the memory of the lists, most of which are short
	t.dataWatches(func(path string, sessions []wire.SessionID) {
		begin := len(all)
		all = append(all, sessions...)
		list := all[begin:len(all):len(all)]
		slices.Sort(list)
		out = append(out, PathWatchers{path, list})
	})
	slices.SortFunc(out, func(a, b PathWatchers) int { return cmp.Compare(a.Path, b.Path) })
	return out
}

// DataWatches counts the data watches, the paths that have one, and the sessions that set
// them.
func (t *Tree) DataWatches() (watches, paths, sessions int) {
	seen := map[wire.SessionID]bool{}
	t.dataWatches(func(_ string, ids []wire.SessionID) {
		watches += len(ids)
		paths++
		for _, id := range ids {
			seen[id] = true
		}
	})
	return watches, paths, len(seen)
}

// SessionPaths are paths that belong to a session, sorted.
type SessionPaths struct {
	Session wire.SessionID
	Paths   []string
}

// WatchesBySession lists the same watches as WatchesByPath, sorted by session id.
func (t *Tree) WatchesBySession() []SessionPaths {
	bySession := map[wire.SessionID][]string{}
	t.dataWatches(func(path string, sessions []wire.SessionID) {
		for _, id := range sessions {
			bySession[id] = append(bySession[id], path)
		}
	})
	out := make([]SessionPaths, 0, len(bySession))
	for id, paths := range bySession {
		slices.Sort(paths)
		out = append(out, SessionPaths{id, paths})
	}
	slices.SortFunc(out, func(a, b SessionPaths) int { return cmp.Compare(a.Session, b.Session) })
	return out
}
