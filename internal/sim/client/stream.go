package client

import (
	"maps"
	"slices"

	"bellwether/internal/claim"
	"bellwether/internal/claim/cache"
	"bellwether/internal/sim/check"
	"bellwether/internal/tree"
	"bellwether/wire"
)

// treeWatch is a watch of a tree, or a persistent watch of one znode. On a server that knows such watches, it stays registered on
// the server. Otherwise it consists of the one-shot watches of this client.
type treeWatch struct {
	check.TreeWatch
	tell func(claim.Event)
	asks *recheck // the Since request under way; nil: there is none
}

// recheck gathers the events that answer a Since.
type recheck struct {
	data, children map[string]bool
	events         []claim.TreeEvent
}

// take takes an event of the connection.
func (w *treeWatch) take(e tree.Event) {
	if w == nil || !w.Covers(e.Path) {
		return
	}
	if w.Since > 0 {
		w.Told[e.Path] = max(w.Told[e.Path], e.Zxid)
	}
	event := claim.TreeEvent{Type: e.Type, Path: e.Path, Zxid: e.Zxid}
	if w.Local {
		event.Zxid = -1 // servers without watches of trees do not send the zxid
	}
	if r := w.asks; r != nil && r.asked(e) {
		r.events = append(r.events, event)
	} else if w.Local || w.Means(e) {
		w.tell(claim.TreeEvents{Events: []claim.TreeEvent{event}})
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

// setTreeWatchesAgain sets the watches of trees again on another connection. They may have missed
// events.
func (c *Client) setTreeWatchesAgain() {
	for _, w := range c.treeWatches {
		c.setTreeWatchAgain(w)
	}
}

func (c *Client) setTreeWatchAgain(w *treeWatch) {
	if !w.Local {
		w.Since = 0
		c.group.Reach(TreeAgain)
		q := wire.SetWatches2Request{SetWatchesRequest: wire.SetWatchesRequest{RelativeZxid: c.Seen, Data: []string{}, Exist: []string{}, Child: []string{}},
			Persistent: []string{}, PersistentRecursive: []string{w.Root}}
		if w.One {
			q.Persistent, q.PersistentRecursive = q.PersistentRecursive, q.Persistent
		}
		c.Send(&Call{Op: wire.OpSetWatches2, Body: wire.Append(nil, &q), Then: w.stands})
	}
	w.tell(claim.TreeEvents{Events: []claim.TreeEvent{{Type: wire.EventNone, Path: w.Root, Zxid: c.Seen}}})
}

// stands records that the server has the watch.
func (w *treeWatch) stands(r *Response) {
	if r != nil {
		w.Since, w.Told = r.Header.Zxid, map[string]wire.Zxid{}
	}
}

// endTreeWatches ends the watches of trees together with the session.
func (c *Client) endTreeWatches() {
	over := c.treeWatches
	c.treeWatches = nil
	for _, w := range over {
		w.tell(claim.TreeWatchOver{Zxid: c.Seen})
	}
}

// treeWatchAt returns the watch of a tree; nil: there is none.
func (c *Client) treeWatchAt(root string) *treeWatch {
	for _, w := range c.treeWatches {
		if w.Root == root {
			return w
		}
	}
	return nil
}

// addTreeWatch adds a watch. It replaces an earlier one of the same tree.
func (c *Client) addTreeWatch(w *treeWatch) {
	c.dropTreeWatch(c.treeWatchAt(w.Root))
	c.treeWatches = append(c.treeWatches, w)
}

func (c *Client) dropTreeWatch(w *treeWatch) {
	c.treeWatches = slices.DeleteFunc(c.treeWatches, func(o *treeWatch) bool { return o == w })
}

// forgetUnregistered removes the watches that end with a connection.
func (c *Client) forgetUnregistered() {
	c.watches = slices.DeleteFunc(c.watches, func(w watch) bool { return w.connectionOnly })
}

// forgetAt removes all watches of a znode, because servers remove them together, whatever
// their type.
func (c *Client) forgetAt(path string) {
	c.watches = slices.DeleteFunc(c.watches, func(w watch) bool { return w.Path == path })
}

// CarryTree carries out one operation on the watch of a tree, which belongs to no recipe.
func (c *Client) CarryTree(op claim.Op, next func(claim.Result)) {
	h := &Runner{c: c, step: func(claim.Event) {}}
	h.carryTree(&op, next)
}

// carryTree carries out an operation on the watch of a tree.
func (h *Runner) carryTree(op *claim.Op, next func(claim.Result)) {
	switch op.Kind {
	case claim.OpWatchTree:
		h.watchTree(op.Path, next)
	case claim.OpListen:
		h.c.addTreeWatch(h.treeWatch(op.Path, true))
		next(claim.Result{})
	case claim.OpUnwatch:
		h.unwatchTree(op.Path, next)
	case claim.OpSince:
		h.since(op, next)
	}
}

func (h *Runner) treeWatch(root string, local bool) *treeWatch {
	life := h.life
	return &treeWatch{TreeWatch: check.TreeWatch{Root: root, Local: local}, tell: func(ev claim.Event) {
		if h.life == life && !h.c.Hung {
			h.step(ev)
		}
	}}
}

func (h *Runner) watchTree(root string, next func(claim.Result)) {
	if h.oneShot {
		next(claim.Result{Err: wire.ErrUnimplemented})
		return
	}
	w := h.treeWatch(root, false)
	h.c.Send(&Call{Op: wire.OpAddWatch, Path: root, Body: wire.Append(nil, &wire.AddWatchRequest{Path: root, Mode: wire.WatchPersistentRecursive}),
		Then: func(r *Response) {
			if r == nil {
				next(claim.Result{Err: wire.ErrConnectionLoss})
				return
			}
			w.stands(r)
			h.c.addTreeWatch(w)
			next(claim.Result{})
		}})
}

// unwatchTree removes the watch. Events may still arrive until the server answers.
func (h *Runner) unwatchTree(root string, next func(claim.Result)) {
	w := h.c.treeWatchAt(root)
	gone := func(*Response) {
		h.c.dropTreeWatch(w)
		next(claim.Result{})
	}
	if w == nil || w.Local {
		gone(nil)
		return
	}
	h.c.Send(&Call{Op: wire.OpRemoveWatches, Path: root, Body: wire.Append(nil, &wire.WatchesRequest{Path: root, Type: wire.WatcherAny}),
		Then: func(r *Response) {
			if r != nil && r.Header.Err == wire.OK {
				h.c.forgetAt(root)
			}
			gone(r)
		}})
}

// since asks what has changed. The server reports changes as events.
func (h *Runner) since(op *claim.Op, next func(claim.Result)) {
	w := h.c.treeWatchAt(op.Path)
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
	h.c.group.Reach(Since)
	h.c.Send(&Call{Op: wire.OpSetWatches, Body: wire.Append(nil, &q), Then: func(a *Response) {
		w.asks = nil
		if a == nil {
			next(claim.Result{Err: wire.ErrConnectionLoss})
			return
		}
		h.c.assume(w, r, a.Header.Zxid)
		next(claim.Result{Changes: r.events})
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
func (c *Client) assume(w *treeWatch, r *recheck, z wire.Zxid) {
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
			stood := slices.ContainsFunc(c.watches, func(o watch) bool { return o.Path == path && o.Children == kids })
			if !stood {
				c.watches = append(c.watches, watch{Watch: check.Watch{Path: path, Children: kids, Zxid: z}, connectionOnly: !w.Local})
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
func (h *Runner) readTogether(ops []claim.Op, next func(...claim.Result)) {
	all := func(err error) {
		res := make([]claim.Result, len(ops))
		for i := range res {
			res[i].Err = err
		}
		next(res...)
	}
	if len(ops) > 1 && h.c.random.Chance(3) {
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
	h.c.Send(&Call{Op: wire.OpMultiRead, Body: wire.Append(nil, q), Then: func(r *Response) {
		switch {
		case r == nil:
			all(wire.ErrConnectionLoss)
		case r.Header.Err != wire.OK:
			all(r.Header.Err)
		default:
			next(resultsOf(r.Record.(*wire.MultiResponse))...)
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
