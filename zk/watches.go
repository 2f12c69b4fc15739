package zk

import (
	"slices"

	"bellwether/wire"
)

// setWatchesMax is about how many bytes of paths one setWatches carries.
const setWatchesMax = 128 << 10

// watchKind says in which of the server's tables a one-shot watch is. An exists watch on a
// missing znode has a kind of its own, because a setWatches lists it separately.
type watchKind int

const (
	dataWatch watchKind = iota
	existWatch
	childWatch
	watchKinds
)

// watches holds the watches that are set on the server, by the server's paths. Client.mu
// guards it.
type watches struct {
	once    [watchKinds]map[string][]*Watch
	streams map[string][]*Stream
}

func (t *watches) init() {
	for i := range t.once {
		t.once[i] = make(map[string][]*Watch)
	}
	t.streams = make(map[string][]*Stream)
}

// registerAnswered registers the watch of an answered read, if the server has registered
// it.
func (t *watches) registerAnswered(k *call, code Code) {
	switch {
	case code == wire.OK:
	case code == wire.ErrNoNode && k.op == wire.OpExists:
		k.watch.kind = existWatch
	default:
		return
	}
	m := t.once[k.watch.kind]
	m[k.path] = append(m[k.path], k.watch)
}

func (t *watches) addStream(s *Stream) {
	t.streams[s.path] = append(t.streams[s.path], s)
}

// covered reports whether a stream on the same path receives all that the watch of k
// waits for. The watch is then not set on the server, because servers before 3.9 would
// turn the persistent watch into a one-shot one.
func (t *watches) covered(k *call) bool {
	for _, s := range t.streams[k.path] {
		if s.local {
			continue
		}
		if s.mode == wire.WatchPersistent || k.watch.kind != childWatch {
			return true
		}
	}
	return false
}

// notify gives an event to all watches and streams that wait for it.
func (c *Client) notify(z Zxid, e wire.WatcherEvent) {
	event := Event{Type: e.Type, Path: c.rel(e.Path), Zxid: max(z, -1)}
	if z == 0 {
		event.Zxid = -1
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.zxidSeen = max(c.zxidSeen, z)
	t := &c.watches
	switch e.Type {
	case wire.EventNodeCreated, wire.EventNodeDataChanged:
		t.fire(dataWatch, e.Path, event)
		t.fire(existWatch, e.Path, event)
	case wire.EventNodeDeleted:
		t.fire(dataWatch, e.Path, event)
		t.fire(existWatch, e.Path, event)
		t.fire(childWatch, e.Path, event)
	case wire.EventNodeChildrenChanged:
		t.fire(childWatch, e.Path, event)
	default:
		return
	}
	for _, s := range t.feed(e, event) {
		if s.local {
			continue
		}
		c.queue.push(c.removal(s.path, wire.WatcherAny))
		c.wakeWriter()
	}
}

// fire ends the one-shot watches of a kind at a path.
func (t *watches) fire(kind watchKind, path string, e Event) {
	for _, w := range t.once[kind][path] {
		w.end(e, nil)
	}
	delete(t.once[kind], path)
}

// feed gives an event to the streams at its path and to recursive streams above it. It
// drops and returns those that overflow.
func (t *watches) feed(e wire.WatcherEvent, event Event) (full []*Stream) {
	if len(t.streams) == 0 {
		return nil
	}
	for at := e.Path; at != ""; at = parentOf(at) {
		for _, s := range t.streams[at] {
			if s.recheck != nil && s.recheck.take(e, event) {
				continue
			}
			if s.wants(e, at) && !s.push(event) {
				full = append(full, s)
			}
		}
	}
	for _, s := range full {
		t.forsake(s)
	}
	return full
}

// forsake drops a stream that has overflowed, and the one-shot watches that its Since has
// set.
func (t *watches) forsake(s *Stream) {
	t.dropStream(s)
	for _, w := range t.assumed(s) {
		t.dropWatch(w)
		w.end(Event{}, wire.ErrNoWatcher)
	}
}

// dropStream takes a stream out of the table. It reports whether it was there.
func (t *watches) dropStream(s *Stream) bool {
	list := t.streams[s.path]
	i := slices.Index(list, s)
	if i < 0 {
		return false
	}
	t.streams[s.path] = slices.Delete(list, i, i+1)
	if len(list) == 1 {
		delete(t.streams, s.path)
	}
	return true
}

// dropWatch takes a one-shot watch out of the table. It reports whether it was there.
func (t *watches) dropWatch(w *Watch) bool {
	m := t.once[w.kind]
	i := slices.Index(m[w.path], w)
	if i < 0 {
		return false
	}
	m[w.path] = slices.Delete(m[w.path], i, i+1)
	if len(m[w.path]) == 0 {
		delete(m, w.path)
	}
	return true
}

// needed reports whether something of this client relies on the server's watches of this
// type at the path. Streams rely on every type.
func (t *watches) needed(path string, typ wire.WatcherType) bool {
	child := typ != wire.WatcherData && len(t.once[childWatch][path]) > 0
	data := typ != wire.WatcherChildren && len(t.once[dataWatch][path])+len(t.once[existWatch][path]) > 0
	return child || data || slices.ContainsFunc(t.streams[path], func(s *Stream) bool { return !s.local })
}

// endAll ends every watch and stream.
func (t *watches) endAll(err error) {
	for kind := range t.once {
		for _, list := range t.once[kind] {
			for _, w := range list {
				w.end(Event{}, err)
			}
		}
		clear(t.once[kind])
	}
	for _, list := range t.streams {
		for _, s := range list {
			s.end(err)
		}
	}
	clear(t.streams)
}

// endStreams ends the streams that need a persistent watch.
func (t *watches) endStreams(err error) {
	for path, list := range t.streams {
		list = slices.DeleteFunc(list, func(s *Stream) bool {
			if !s.local {
				s.end(err)
			}
			return !s.local
		})
		if t.streams[path] = list; len(list) == 0 {
			delete(t.streams, path)
		}
	}
}

// again sets all watches on a new link, in batches; every stream is told that it may have
// missed events. zxid is the largest zxid in an answer so far.
func (t *watches) again(l *link, zxid Zxid, send func(OpCode, wire.Record)) {
	if l.support.denies(wire.OpSetWatches2) {
		t.endStreams(ErrUnsupported)
	}
	b := watchBatch{send: send}
	b.req.RelativeZxid = zxid
	for kind, list := range b.oneShot() {
		for path := range t.once[kind] {
			b.add(list, path)
		}
	}
	for path, streams := range t.streams {
		var plain, recursive bool
		for _, s := range slices.Clone(streams) {
			if !s.push(Event{Type: wire.EventNone, Path: s.shown, Zxid: zxid}) {
				t.forsake(s)
				continue
			}
			plain = plain || s.mode == wire.WatchPersistent && !s.local
			recursive = recursive || s.mode == wire.WatchPersistentRecursive
		}
		if recursive {
			b.add(&b.req.PersistentRecursive, path)
		}
		if plain {
			b.add(&b.req.Persistent, path)
		}
	}
	b.flush()
}

// watchBatch collects paths until one setWatches is full.
type watchBatch struct {
	send func(OpCode, wire.Record)
	req  wire.SetWatches2Request
	size int
}

// oneShot returns the lists of the request in the order of watchKind.
func (b *watchBatch) oneShot() [watchKinds]*[]string {
	return [watchKinds]*[]string{&b.req.Data, &b.req.Exist, &b.req.Child}
}

func (b *watchBatch) add(list *[]string, path string) {
	if b.size += 4 + len(path); b.size > setWatchesMax {
		b.flush()
		b.size = 4 + len(path)
	}
	*list = append(*list, path)
}

func (b *watchBatch) flush() {
	r := &b.req
	switch {
	case len(r.Persistent)+len(r.PersistentRecursive) > 0:
		b.send(wire.OpSetWatches2, r)
	case len(r.Data)+len(r.Exist)+len(r.Child) > 0:
		b.send(wire.OpSetWatches, &r.SetWatchesRequest)
	}
	b.req = wire.SetWatches2Request{SetWatchesRequest: wire.SetWatchesRequest{RelativeZxid: r.RelativeZxid}}
	b.size = 0
}
