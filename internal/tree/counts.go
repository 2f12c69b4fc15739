package tree

import (
	"cmp"
	"slices"

	"bellwether/wire"
)

// LastZxid is the last applied transaction.
func (t *Tree) LastZxid() wire.Zxid {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.last
}

// Counts are the figures of four-letter words and metrics.
type Counts struct {
	Nodes      int64 // as ZooKeeper counts them: the root twice
	Ephemerals int64
	Containers int64
	TTLs       int64
	DataBytes  int64 // of paths and data, as ZooKeeper estimates them
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
	for i := range w.shards {
		s := &w.shards[i]
		s.mu.Lock()
		c.WatchPaths += int64(len(s.paths))
		s.mu.Unlock()
	}
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

// WatchesByPath lists the paths watched for data, sorted; like ZooKeeper's it
// leaves out what is watched for children alone.
func (t *Tree) WatchesByPath() []PathWatchers {
	t.mu.RLock()
	defer t.mu.RUnlock()
	var out []PathWatchers
	w := &t.watches
	for i := range w.shards {
		s := &w.shards[i]
		s.mu.Lock()
		for path, p := range s.paths {
			e := PathWatchers{Path: path}
			for _, o := range p.watchers {
				if o.at(p)&dataTable != 0 {
					e.Sessions = append(e.Sessions, o.client.Session())
				}
			}
			if len(e.Sessions) > 0 {
				slices.Sort(e.Sessions)
				out = append(out, e)
			}
		}
		s.mu.Unlock()
	}
	slices.SortFunc(out, func(a, b PathWatchers) int { return cmp.Compare(a.Path, b.Path) })
	return out
}

// SessionPaths are paths that belong to a session, sorted.
type SessionPaths struct {
	Session wire.SessionID
	Paths   []string
}

// WatchesBySession lists what WatchesByPath does, by session id.
func (t *Tree) WatchesBySession() []SessionPaths {
	paths := map[wire.SessionID][]string{}
	for _, p := range t.WatchesByPath() {
		for _, id := range p.Sessions {
			paths[id] = append(paths[id], p.Path)
		}
	}
	out := make([]SessionPaths, 0, len(paths))
	for id, list := range paths {
		out = append(out, SessionPaths{id, list})
	}
	slices.SortFunc(out, func(a, b SessionPaths) int { return cmp.Compare(a.Session, b.Session) })
	return out
}
