package tree

import (
	"strings"

	"bellwether/wire"
)

// fire queues an event on the connections that watch for it; Tree.mu is held
// for writing. A connection gets it once, however many of its watches it
// meets. One that may not read the znode, as acl says, gets nothing; its
// one-shot watch is gone all the same.
//
// What each event meets: created and changed the data table, children changed
// the child table, deleted both. A recursive watch hears of all that happens
// at its path and below, except children changed.
func (t *Tree) fire(typ wire.EventType, path string, acl []wire.ACL, z wire.Zxid) {
	w := &t.watches
	if w.total.Load() == 0 {
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
	n := t.fireAt(path, e, meets, acl)
	if meets&recursive != 0 && w.recursive.Load() > 0 {
		for at := path; at != "/"; {
			at = canonical(at[:strings.LastIndexByte(at, '/')])
			n += t.fireAt(at, e, recursive, acl)
		}
	}
	if n > 0 && t.o.Fired != nil {
		t.o.Fired(typ, n)
	}
}

// fireAt queues an event for the watches at one path, and returns for how many
// connections. It goes backwards, as a watch that is used up makes room for the
// last.
func (t *Tree) fireAt(at string, e Event, meets modes, acl []wire.ACL) (n int) {
	w := &t.watches
	s := w.shard(at)
	s.mu.Lock() // for the lists of watches, which do not hold the tree
	defer s.mu.Unlock()
	p := s.paths[at]
	if p == nil {
		return 0
	}
	for i := len(p.watchers) - 1; i >= 0; i-- {
		o := p.watchers[i]
		m := o.own[p].modes & meets
		if m == 0 {
			continue
		}
		if o.seen != w.event {
			o.seen = w.event
			if t.permitsList(acl, wire.PermRead, o.client.Identities()) {
				o.client.Notify(e)
				n++
			}
		}
		if once := m & (dataOnce | childOnce); once != 0 {
			w.take(s, p, o, once)
		}
	}
	return n
}
