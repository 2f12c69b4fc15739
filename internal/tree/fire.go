package tree

import (
	"strings"

	"bellwether/wire"
)

// fire queues an event on the connections that watch for it; Tree.mu is held for writing.
// A connection gets the event once, even if several of its watches match. A connection
// that may not read the znode, according to acl, gets nothing, but its one-shot watch is
// removed.
//
// A one-shot or persistent watch for data gets created, changed and deleted events of its
// path; one for children gets children-changed and deleted events. A recursive watch gets
// all events of its path and of the paths below it, except children-changed.
func (t *Tree) fire(typ wire.EventType, path string, acl []wire.ACL, z wire.Zxid) {
	w := &t.watches
	if w.total.Load() == 0 {
		return
	}
	if typ == wire.EventNodeChildrenChanged && path == w.unwatched {
		return
	}
	w.event++
	meets := dataTable
	switch typ {
	case wire.EventNodeChildrenChanged:
		meets = childTable
	case wire.EventNodeDeleted:
		meets |= childTable
	}
	e := Event{Type: typ, Path: path, Zxid: z}
	n, watched := t.fireAt(path, e, meets, acl)
	if !watched && typ == wire.EventNodeChildrenChanged {
		w.unwatched = path
	}
	if meets&recursive != 0 && w.recursive.Load() > 0 {
		for at := path; at != "/"; {
			at = canonical(at[:strings.LastIndexByte(at, '/')])
			above, _ := t.fireAt(at, e, recursive, acl)
			n += above
		}
	}
	if n > 0 && t.o.Fired != nil {
		t.o.Fired(e, n)
	}
}

// fireAt queues an event for the watches at one path. It returns the number of
// connections that got the event, and whether there was any watch. It goes through the
// watchers backwards, because removing a used watch moves the last watcher into its
// place.
func (t *Tree) fireAt(at string, e Event, meets modes, acl []wire.ACL) (n int, watched bool) {
	w := &t.watches
	s := w.shard(at)
	s.mu.Lock() // for the listings of watches, which do not hold the tree's lock
	defer s.mu.Unlock()
	p := s.paths[at]
	if p == nil {
		return 0, false
	}
	for i := len(p.watchers) - 1; i >= 0; i-- {
		mine := p.watchers[i]
		m := mine.modes & meets
		if m == 0 {
			continue
		}
		if o := mine.watcher; o.seen != w.event {
			o.seen = w.event
			if t.permitsList(acl, wire.PermRead, o.client.Identities()) {
				if n == 0 {
					// The paths of a session's ephemerals share memory, and the event may
					// be kept long.
					e.Path = strings.Clone(e.Path)
				}
				o.client.Notify(e)
				n++
			}
		}
		if once := m & (dataOnce | childOnce); once != 0 {
			w.take(s, mine, once)
		}
	}
	return n, true
}
