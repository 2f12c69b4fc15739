package tree

import (
	"slices"
	"strings"

	"bellwether/wire"
)

// AddWatch answers addWatch. The znode need not exist, and no permission is needed.
func (t *Tree) AddWatch(c Client, path string, mode wire.AddWatchMode) wire.Code {
	t.mu.RLock()
	defer t.mu.RUnlock()
	m := stays
	if mode == wire.WatchPersistentRecursive {
		m = recursive
	}
	t.watches.add(c, path, m)
	c.Reserve(t.last)
	return wire.OK
}

// due queues the event of a change that happened before this setWatches. The event has zxid -1.
func due(c Client, typ wire.EventType, path string) {
	c.Notify(Event{Type: typ, Path: strings.Clone(path), Zxid: -1})
}

// SetWatches answers setWatches. It queues the events that happened since the client's
// last zxid, and sets a watch on all other paths. A client may have very many watches, so
// the paths are handled in parts, and transactions are applied between two parts. The
// client sees no difference: each path is looked up and watched under one lock, and every
// later change of it causes an event that comes before the reply.
func (t *Tree) SetWatches(c Client, r *wire.SetWatchesRequest) wire.Code {
	t.setOnce(c, r)
	t.Reserve(c)
	return wire.OK
}

// SetWatches2 answers setWatches2. It sets persistent watches again; the events that they
// have missed are lost.
func (t *Tree) SetWatches2(c Client, r *wire.SetWatches2Request) wire.Code {
	t.setOnce(c, &r.SetWatchesRequest)
	t.forEach(r.Persistent, func(path string) { t.watches.add(c, path, stays) })
	t.forEach(r.PersistentRecursive, func(path string) { t.watches.add(c, path, recursive) })
	t.Reserve(c)
	return wire.OK
}

// watchSlice is the number of paths that are handled under one hold of the lock.
const watchSlice = 256

// forEach calls f for each path, under the read lock.
func (t *Tree) forEach(paths []string, f func(path string)) {
	for part := range slices.Chunk(paths, watchSlice) {
		t.mu.RLock()
		for _, path := range part {
			f(path)
		}
		t.mu.RUnlock()
	}
}

func (t *Tree) setOnce(c Client, r *wire.SetWatchesRequest) {
	t.forEach(r.Data, func(path string) {
		switch n := t.find(path); {
		case n == nil:
			due(c, wire.EventNodeDeleted, path)
		case n.mzxid > r.RelativeZxid:
			due(c, wire.EventNodeDataChanged, path)
		default:
			t.watches.add(c, path, dataOnce)
		}
	})
	t.forEach(r.Exist, func(path string) {
		if t.find(path) != nil {
			due(c, wire.EventNodeCreated, path)
		} else {
			t.watches.add(c, path, dataOnce)
		}
	})
	t.forEach(r.Child, func(path string) {
		switch n := t.find(path); {
		case n == nil:
			due(c, wire.EventNodeDeleted, path)
		case n.pzxid > r.RelativeZxid:
			due(c, wire.EventNodeChildrenChanged, path)
		default:
			t.watches.add(c, path, childOnce)
		}
	})
}

// selected returns the modes that a request of checkWatches or removeWatches names.
func selected(w wire.WatcherType) modes {
	switch w {
	case wire.WatcherChildren:
		return childOnce
	case wire.WatcherData:
		return dataOnce
	case wire.WatcherPersistent:
		return stays
	case wire.WatcherPersistentRecursive:
		return recursive
	}
	return dataTable | childTable
}

// CheckWatches answers checkWatches: ErrNoWatcher if no watch matches.
func (t *Tree) CheckWatches(c Client, path string, w wire.WatcherType) wire.Code {
	t.mu.RLock()
	defer t.mu.RUnlock()
	c.Reserve(t.last)
	if t.watches.modes(c, path)&selected(w) == 0 {
		return wire.ErrNoWatcher
	}
	return wire.OK
}

// RemoveWatches answers removeWatches: ErrNoWatcher if no watch matches.
func (t *Tree) RemoveWatches(c Client, path string, w wire.WatcherType) wire.Code {
	t.mu.RLock()
	defer t.mu.RUnlock()
	c.Reserve(t.last)
	if t.watches.modes(c, path)&selected(w) == 0 {
		return wire.ErrNoWatcher
	}
	t.watches.remove(c, path, selected(w))
	return wire.OK
}

// Forget removes all watches of a client whose connection has ended, a part of them under
// each hold of the lock. The client must not read or set watches any more. Forget may
// still call the client's Notify until it returns.
func (t *Tree) Forget(c Client) {
	o, paths := t.watches.removeWatcher(c)
	for part := range slices.Chunk(paths, watchSlice) {
		t.mu.RLock()
		for _, p := range part {
			t.watches.drop(p, o)
		}
		t.mu.RUnlock()
	}
}
