package sim

import (
	"maps"
	"slices"
	"strings"

	"bellwether/internal/claim"
	"bellwether/internal/claim/cache"
	"bellwether/internal/tree"
	"bellwether/wire"
)

// stream is a watch of a tree. On a server that knows such watches, it stays registered on
// the server. Otherwise it consists of the one-shot watches of this client.
type stream struct {
	root  string
	local bool // it consists of one-shot watches
	tell  func(claim.Event)
	asks  *recheck             // the Since request under way; nil: there is none
	since wire.Zxid            // zxid at which it was registered on this connection; 0: not yet
	told  map[string]wire.Zxid // zxid of the last event of each path
}

// recheck gathers the events that answer a Since.
type recheck struct {
	data, children map[string]bool
	events         []claim.TreeEvent
}

// covers reports whether a path is in the tree.
func (w *stream) covers(path string) bool {
	return path == w.root || strings.HasPrefix(path, strings.TrimSuffix(w.root, "/")+"/")
}

// means reports whether the server sends such an event for this watch.
func (w *stream) means(e tree.Event) bool {
	return w != nil && !w.local && w.covers(e.Path) && e.Type != wire.EventNodeChildrenChanged
}

// hear takes an event of the connection.
func (w *stream) hear(e tree.Event) {
	if w == nil || !w.covers(e.Path) {
		return
	}
	if w.since > 0 {
		w.told[e.Path] = max(w.told[e.Path], e.Zxid)
	}
	event := claim.TreeEvent{Type: e.Type, Path: e.Path, Zxid: e.Zxid}
	if w.local {
		event.Zxid = -1 // servers without watches of trees do not send the zxid
	}
	if r := w.asks; r != nil && r.asked(e) {
		r.events = append(r.events, event)
	} else if w.local || w.means(e) {
		w.tell(claim.Told{Events: []claim.TreeEvent{event}})
	}
}

func (r *recheck) asked(e tree.Event) bool {
	switch e.Type {
	case wire.EventNodeDataChanged:
		return r.data[e.Path]
	case wire.EventNodeChildrenChanged:
		return r.children[e.Path]
	case wire.EventNodeDeleted:
		return r.data[e.Path] || r.children[e.Path]
	}
	return false
}

// streamAgain sets the watches of trees again on another connection. They may have missed
// events.
func (c *client) streamAgain() {
	for _, w := range c.streams {
		c.setStreamAgain(w)
	}
}

func (c *client) setStreamAgain(w *stream) {
	if !w.local {
		w.since = 0
		c.sim.reach(situationTreeAgain)
		q := wire.SetWatches2Request{SetWatchesRequest: wire.SetWatchesRequest{RelativeZxid: c.seen, Data: []string{}, Exist: []string{}, Child: []string{}},
			Persistent: []string{}, PersistentRecursive: []string{w.root}}
		c.send(&call{op: wire.OpSetWatches2, body: wire.Append(nil, &q), then: w.stands})
	}
	w.tell(claim.Told{Events: []claim.TreeEvent{{Type: wire.EventNone, Path: w.root, Zxid: c.seen}}})
}

// stands records that the server has the watch.
func (w *stream) stands(r *response) {
	if r != nil {
		w.since, w.told = r.header.Zxid, map[string]wire.Zxid{}
	}
}

// streamOver ends the watches of trees together with the session.
func (c *client) streamOver() {
	over := c.streams
	c.streams = nil
	for _, w := range over {
		w.tell(claim.WatchOver{Zxid: c.seen})
	}
}

// streamAt returns the watch of a tree; nil: there is none.
func (c *client) streamAt(root string) *stream {
	for _, w := range c.streams {
		if w.root == root {
			return w
		}
	}
	return nil
}

// addStream adds a watch. It replaces an earlier one of the same tree.
func (c *client) addStream(w *stream) {
	c.dropStream(c.streamAt(w.root))
	c.streams = append(c.streams, w)
}

func (c *client) dropStream(w *stream) {
	c.streams = slices.DeleteFunc(c.streams, func(o *stream) bool { return o == w })
}

// forgetPassing removes the watches that end with a connection.
func (c *client) forgetPassing() {
	c.watches = slices.DeleteFunc(c.watches, func(w watch) bool { return w.passing })
}

// forgetAt removes all watches of a znode, because servers remove them together, whatever
// their type.
func (c *client) forgetAt(path string) {
	c.watches = slices.DeleteFunc(c.watches, func(w watch) bool { return w.path == path })
}

// carryTree carries out an operation on the watch of a tree.
func (h *runner) carryTree(op *claim.Op, next func(claim.Result)) {
	switch op.Kind {
	case claim.OpWatchTree:
		h.watchTree(op.Path, next)
	case claim.OpListen:
		h.c.addStream(h.stream(op.Path, true))
		next(claim.Result{})
	case claim.OpUnwatch:
		h.unwatchTree(op.Path, next)
	case claim.OpSince:
		h.since(op, next)
	}
}

func (h *runner) stream(root string, local bool) *stream {
	life := h.life
	return &stream{root: root, local: local, tell: func(ev claim.Event) {
		if h.life == life && !h.c.silent {
			h.step(ev)
		}
	}}
}

func (h *runner) watchTree(root string, next func(claim.Result)) {
	if h.oneShot {
		next(claim.Result{Err: wire.ErrUnimplemented})
		return
	}
	w := h.stream(root, false)
	h.c.send(&call{op: wire.OpAddWatch, path: root, body: wire.Append(nil, &wire.AddWatchRequest{Path: root, Mode: wire.WatchPersistentRecursive}),
		then: func(r *response) {
			if r == nil {
				next(claim.Result{Err: wire.ErrConnectionLoss})
				return
			}
			w.stands(r)
			h.c.addStream(w)
			next(claim.Result{})
		}})
}

// unwatchTree removes the watch. Events may still arrive until the server answers.
func (h *runner) unwatchTree(root string, next func(claim.Result)) {
	w := h.c.streamAt(root)
	gone := func(*response) {
		h.c.dropStream(w)
		next(claim.Result{})
	}
	if w == nil || w.local {
		gone(nil)
		return
	}
	h.c.send(&call{op: wire.OpRemoveWatches, path: root, body: wire.Append(nil, &wire.WatchesRequest{Path: root, Type: wire.WatcherAny}),
		then: func(r *response) {
			if r != nil && r.header.Err == wire.OK {
				h.c.forgetAt(root)
			}
			gone(r)
		}})
}

// since asks what has changed. The server reports changes as events.
func (h *runner) since(op *claim.Op, next func(claim.Result)) {
	w := h.c.streamAt(op.Path)
	if w == nil {
		next(claim.Result{Err: wire.ErrConnectionLoss})
		return
	}
	sorted := func(paths []string) []string { // a cache has the paths in no order, and a run must be repeatable
		return append([]string{}, slices.Sorted(slices.Values(paths))...)
	}
	q := wire.SetWatchesRequest{RelativeZxid: op.Since.Zxid, Data: sorted(op.Since.Paths), Exist: []string{}, Child: sorted(op.Since.Parents)}
	r := &recheck{data: set(op.Since.Paths), children: set(op.Since.Parents)}
	w.asks = r
	h.c.sim.reach(situationSince)
	h.c.send(&call{op: wire.OpSetWatches, body: wire.Append(nil, &q), then: func(a *response) {
		w.asks = nil
		if a == nil {
			next(claim.Result{Err: wire.ErrConnectionLoss})
			return
		}
		h.c.assume(w, r, a.header.Zxid)
		next(claim.Result{Told: r.events})
	}})
}

func set(names []string) map[string]bool {
	m := map[string]bool{}
	for _, n := range names {
		m[n] = true
	}
	return m
}

// assume records the watches that a Since has set on znodes without changes.
func (c *client) assume(w *stream, r *recheck, z wire.Zxid) {
	for _, e := range r.events {
		switch e.Type {
		case wire.EventNodeDataChanged:
			delete(r.data, e.Path)
		case wire.EventNodeChildrenChanged:
			delete(r.children, e.Path)
		case wire.EventNodeDeleted:
			delete(r.data, e.Path)
			delete(r.children, e.Path)
		}
	}
	for _, kids := range []bool{false, true} {
		paths := r.data
		if kids {
			paths = r.children
		}
		for _, path := range slices.Sorted(maps.Keys(paths)) {
			stood := slices.ContainsFunc(c.watches, func(o watch) bool { return o.path == path && o.kids == kids })
			if !stood {
				c.watches = append(c.watches, watch{path: path, kids: kids, zxid: z, passing: !w.local})
			}
		}
	}
}

// plainReads returns how many operations at the beginning can be read in one request.
func plainReads(ops []claim.Op) int {
	n := 0
	for n < len(ops) && !ops[n].Alone && (ops[n].Kind == claim.OpGet || ops[n].Kind == claim.OpList) {
		n++
	}
	return n
}

// readTogether reads many znodes in one request. Sometimes it behaves as if the answer were
// too large.
func (h *runner) readTogether(ops []claim.Op, next func(...claim.Result)) {
	all := func(err error) {
		res := make([]claim.Result, len(ops))
		for i := range res {
			res[i].Err = err
		}
		next(res...)
	}
	if len(ops) > 1 && h.c.random.chance(3) {
		all(cache.ErrTooLarge)
		return
	}
	q := new(wire.MultiRequest)
	for _, op := range ops {
		typ := wire.OpGetData
		if op.Kind == claim.OpList {
			typ = wire.OpGetChildren
		}
		q.Ops = append(q.Ops, wire.Op{Type: typ, Request: &wire.PathWatchRequest{Path: op.Path}})
	}
	h.c.send(&call{op: wire.OpMultiRead, body: wire.Append(nil, q), then: func(r *response) {
		switch {
		case r == nil:
			all(wire.ErrConnectionLoss)
		case r.header.Err != wire.OK:
			all(r.header.Err)
		default:
			next(resultsOf(r.record.(*wire.MultiResponse))...)
		}
	}})
}

func resultsOf(m *wire.MultiResponse) (res []claim.Result) {
	for _, part := range m.Results {
		r := claim.Result{Failed: -1}
		if part.Err != wire.OK {
			r.Err = part.Err
		}
		switch p := part.Response.(type) {
		case *wire.DataResponse:
			r.Data, r.Stat = p.Data, p.Stat
		case *wire.ChildrenResponse:
			r.Names = p.Children
		}
		res = append(res, r)
	}
	return res
}
