package recipe

import (
	"cmp"
	"slices"

	"bellwether/internal/claim/cache"
)

// cacheNews is the difference between what a reader was told and the current state. It has one entry for each
// znode that differs, so its size is bounded by the sizes of the two states.
type cacheNews struct {
	changes map[string]*cacheChange // by path
	n       int                     // the number of events so far
	current bool                    // a CacheCurrent event has come since the last take
}

// cacheChange is the difference for one znode.
type cacheChange struct {
	told, now  *cache.Node // what the reader was told, and the current state; nil: the znode does not exist
	gone, came int         // the numbers of the events that removed told, and that led to now
}

// add merges an event into the difference.
func (w *cacheNews) add(e cache.Event) {
	w.n++
	if e.Type == cache.Current {
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
		} // otherwise the znode keeps its number: its NodeAdded must come before the events of its children
	case cache.NodeRemoved:
		if c.now = nil; c.told == nil {
			delete(w.changes, e.Node.Path)
		} else if c.gone == 0 {
			c.gone = w.n
		}
	}
}

// take returns the difference as events, and empties it. Removals come in the order of the first removal of each
// znode, and additions in the order of the last addition. So children are removed before their parents, and added
// after them. If the Cache is stale again, CacheCurrent is left out, because another one follows later.
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
