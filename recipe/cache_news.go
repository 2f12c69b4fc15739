package recipe

import (
	"cmp"
	"slices"

	"bellwether/internal/claim/cache"
)

// cacheNews is the difference between what a reader was told and what there is. Each
// znode that differs is in it once, so it is bounded by the two.
type cacheNews struct {
	changes map[string]*cacheChange // by path
	n       int                     // of events so far
	current bool                    // everything was read meanwhile
}

// cacheChange is how one znode differs.
type cacheChange struct {
	told, now  *cache.Node // as the reader knows it, and as it is; nil: none
	gone, came int         // the events that took away what was told, and brought what is
}

// add takes an event.
func (w *cacheNews) add(e cache.CacheEvent) {
	w.n++
	if e.Type == cache.CacheCurrent {
		w.current = true
		return
	}
	c := w.changes[e.Node.Path]
	if c == nil {
		if w.changes == nil {
			w.changes = map[string]*cacheChange{}
		}
		c = &cacheChange{told: e.Old}
		w.changes[e.Node.Path] = c
		if e.Type == cache.NodeRemoved {
			c.told = e.Node
		}
	}
	switch e.Type {
	case cache.NodeAdded:
		c.now, c.came = e.Node, w.n
	case cache.NodeChanged:
		if c.now = e.Node; c.told != nil && c.gone == 0 {
			c.came = w.n
		} // else it is to be added where it was, before what is below it
	case cache.NodeRemoved:
		if c.now = nil; c.told == nil {
			delete(w.changes, e.Node.Path)
		} else if c.gone == 0 {
			c.gone = w.n
		}
	}
}

// take empties it into events. What went goes in the order in which it did first, and
// what came in that in which it did last: children before their parents, and behind
// them. Where the Cache is stale again CacheCurrent is still to come.
func (w *cacheNews) take(stale bool) []CacheEvent {
	type ranked struct {
		n int
		CacheEvent
	}
	var all []ranked
	for _, c := range w.changes {
		if c.gone > 0 {
			all = append(all, ranked{c.gone, CacheEvent{Type: NodeRemoved, Node: nodeOf(c.told)}})
		}
		switch {
		case c.now == nil:
		case c.told == nil || c.gone > 0:
			all = append(all, ranked{c.came, CacheEvent{Type: NodeAdded, Node: nodeOf(c.now)}})
		default:
			all = append(all, ranked{c.came, CacheEvent{Type: NodeChanged, Node: nodeOf(c.now), Old: nodeOf(c.told)}})
		}
	}
	slices.SortFunc(all, func(a, b ranked) int { return cmp.Compare(a.n, b.n) })
	events := make([]CacheEvent, 0, len(all)+1)
	for _, e := range all {
		events = append(events, e.CacheEvent)
	}
	if w.current && !stale {
		events = append(events, CacheEvent{Type: CacheCurrent})
	}
	w.changes, w.current = nil, false
	return events
}
