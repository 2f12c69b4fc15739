package zk

import (
	"context"
	"slices"

	"bellwether/wire"
)

// sinceCost is how many bytes a path takes in a setWatches in addition to its own bytes: the int
// that holds its length.
const sinceCost = 4

// recheck collects the events that answer a Stream.Since. Client.mu guards it.
type recheck struct {
	data, children map[string]bool // the paths in the request, in the server's form
	events         []Event
}

// take reports whether the event answers the Since. If so, it keeps the event.
func (r *recheck) take(e wire.WatcherEvent, event Event) bool {
	var asked bool
	switch e.Type {
	case wire.EventNodeDataChanged:
		asked = r.data[e.Path]
	case wire.EventNodeChildrenChanged:
		asked = r.children[e.Path]
	case wire.EventNodeDeleted:
		asked = r.data[e.Path] || r.children[e.Path]
	}
	if asked {
		r.events = append(r.events, event)
	}
	return asked
}

// Listen returns a Stream that sets no watch of its own. It delivers every event about
// the path, and about what is below it, that the server sends for one-shot watches of
// this client. It replaces AddWatch on servers before 3.6.
func (c *Client) Listen(path string) (*Stream, error) {
	full, err := c.abs(path, false)
	if err != nil {
		return nil, opError(wire.OpAddWatch, path, err)
	}
	s := c.newStream(full, path, 0)
	s.local = true
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over != nil {
		return nil, opError(wire.OpAddWatch, path, c.over)
	}
	c.watches.addStream(s)
	return s, nil
}

func (c *Client) newStream(full, path string, mode WatchMode) *Stream {
	return &Stream{c: c, path: full, shown: path, mode: mode, max: c.opt.StreamMax, more: make(chan struct{}, 1)}
}

// Since returns which of these znodes have changed after the transaction zxid, without
// reading any of them. A path in data is returned if the data was set, or if the znode was
// created again or deleted; a path in children if a child was created or deleted, or if the
// znode was deleted. So after a gap, or in another session, a program knows what it must
// read again.
//
// Since also returns the changes that happen during the call. The stream does not deliver the
// events that Since has returned. The server keeps a one-shot watch at each path that has not
// changed; if the stream was made by Listen, the client sets this watch again after a
// reconnect. If this client has a persistent watch at a path, Since does not ask the server
// about the path, because servers before 3.9 would end that watch; it returns the path as
// changed. Only one goroutine at a time may call Since or Next.
func (s *Stream) Since(ctx context.Context, zxid Zxid, data, children []string) ([]Event, error) {
	c := s.c
	batches, covered, err := s.sinceBatches(zxid, data, children)
	if err != nil {
		return nil, opError(wire.OpSetWatches, s.shown, err)
	}
	events := covered
	for _, b := range batches {
		r := &recheck{data: pathSet(b.Data), children: pathSet(b.Child)}
		c.mu.Lock()
		s.recheck = r
		c.mu.Unlock()
		k := c.newCall(wire.OpSetWatches)
		if s.local {
			k.assumes = &assumption{b, s}
		}
		err := c.do(ctx, k, s.shown, b, nil)
		c.mu.Lock()
		s.recheck = nil
		events = append(events, r.events...)
		stands := slices.Contains(c.watches.streams[s.path], s)
		c.mu.Unlock()
		if err != nil {
			return events, err
		}
		k.free()
		if !stands { // no stream collected the events
			return events, opError(wire.OpSetWatches, s.shown, s.ending())
		}
	}
	return events, nil
}

// ending returns why the stream is over.
func (s *Stream) ending() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// sinceBatches returns requests of no more than setWatchesMax bytes each. For the paths that
// have a persistent watch, and so must not be in a request, it returns events instead.
func (s *Stream) sinceBatches(zxid Zxid, data, children []string) (out []*wire.SetWatchesRequest, covered []Event, err error) {
	b, size := &wire.SetWatchesRequest{RelativeZxid: zxid}, 0
	add := func(paths []string, typ EventType, list func(*wire.SetWatchesRequest) *[]string) error {
		for _, path := range paths {
			full, err := s.c.abs(path, false)
			if err != nil {
				return err
			}
			if s.c.isStreamed(full) {
				covered = append(covered, Event{Type: typ, Path: path, Zxid: -1})
				continue
			}
			if size += sinceCost + len(full); size > setWatchesMax {
				out = append(out, b)
				b, size = &wire.SetWatchesRequest{RelativeZxid: zxid}, sinceCost+len(full)
			}
			*list(b) = append(*list(b), full)
		}
		return nil
	}
	if err = add(data, wire.EventNodeDataChanged, func(r *wire.SetWatchesRequest) *[]string { return &r.Data }); err == nil {
		err = add(children, wire.EventNodeChildrenChanged, func(r *wire.SetWatchesRequest) *[]string { return &r.Child })
	}
	if size > 0 {
		out = append(out, b)
	}
	return out, covered, err
}

// isStreamed reports whether this client has a persistent watch at the path.
func (c *Client) isStreamed(path string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range c.watches.streams[path] {
		if !s.local {
			return true
		}
	}
	return false
}

func pathSet(paths []string) map[string]bool {
	set := make(map[string]bool, len(paths))
	for _, p := range paths {
		set[p] = true
	}
	return set
}

// assumption is the set of one-shot watches that one request of Since has set for a stream
// made by Listen.
type assumption struct {
	*wire.SetWatchesRequest
	by *Stream
}

// assume notes the one-shot watches that a request has set, so that they are set again
// after a reconnect, until the stream is over. A watch that has already fired does no
// harm. Each stream has its own watches, so the end of another stream does not remove
// them.
func (t *watches) assume(a *assumption) {
	if !slices.Contains(t.streams[a.by.path], a.by) {
		return // the stream is over; the server keeps the watches until they fire or the connection ends
	}
	for kind, paths := range map[watchKind][]string{dataWatch: a.Data, childWatch: a.Child} {
		for _, path := range paths {
			if slices.ContainsFunc(t.once[kind][path], func(w *Watch) bool { return w.by == a.by }) {
				continue
			}
			w := a.by.c.newWatch(kind)
			w.path, w.by = path, a.by
			t.once[kind][path] = append(t.once[kind][path], w)
		}
	}
}

// assumed returns the one-shot watches that the method Since of a stream has set.
func (t *watches) assumed(s *Stream) (out []*Watch) {
	if !s.local {
		return nil
	}
	for kind := range t.once {
		for _, all := range t.once[kind] {
			for _, w := range all {
				if w.by == s {
					out = append(out, w)
				}
			}
		}
	}
	return out
}

// Zxid returns, once Next has returned a final error, the transaction up to which all
// events were delivered. With Since, another stream can continue from there.
func (s *Stream) Zxid() Zxid {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.last
}
