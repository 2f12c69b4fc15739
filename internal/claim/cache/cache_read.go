package cache

import (
	"errors"
	"fmt"
	"slices"

	"bellwether/internal/claim"
	"bellwether/wire"
)

// cacheReadsMax is the largest number of znodes that one request reads.
const cacheReadsMax = 64

// planRead sends as many reads as fit into one request. It repeats those whose answer was lost or too
// large.
func (c *Cache) planRead() {
	c.inFlight = slices.DeleteFunc(c.inFlight, func(d pendingRead) bool { return d.void })
	for len(c.inFlight) > 0 || len(c.todo.order) > 0 {
		if len(c.inFlight) == 0 {
			c.inFlight = c.todo.take(cacheReadsMax)
		}
		if ops := c.reads(); len(ops) > 0 {
			c.Ask(c.tookReads, ops...)
			return
		}
		c.inFlight = nil
	}
}

// reads returns the operations for the reads in inFlight.
func (c *Cache) reads() (ops []claim.Op) {
	data, children := claim.OpGet, claim.OpList
	if c.oneShot {
		data, children = claim.OpWatch, claim.OpWatchAll
	}
	ops = make([]claim.Op, 0, 2*len(c.inFlight))
	for i := range c.inFlight {
		d := &c.inFlight[i]
		if !c.lists(d.path) {
			d.flags &^= readChildren
		}
		if d.path == c.cfg.Root && d.flags&readChildren != 0 && c.nodes[d.path] == nil {
			d.flags |= readData
		}
		if d.flags&readData != 0 {
			ops = append(ops, claim.Op{Kind: data, Path: d.path, Strict: true, Alone: c.separately})
		}
		if d.flags&readChildren != 0 {
			ops = append(ops, claim.Op{Kind: children, Path: d.path, Alone: c.separately})
		}
	}
	return ops
}

// tookReads processes the results of the reads.
func (c *Cache) tookReads(res []claim.Result) {
	large := func(r claim.Result) bool { return errors.Is(r.Err, ErrTooLarge) }
	if !c.separately && len(res) > 1 && slices.ContainsFunc(res, large) {
		c.separately = true
		return
	}
	inFlight := c.inFlight
	c.inFlight, c.separately = nil, false
	c.dropFormer(inFlight, res)
	for _, d := range inFlight {
		var data, names *claim.Result
		if data, names, res = d.results(res); !d.void && !c.Over() {
			c.took(d, data, names)
		}
	}
}

// results returns the results of one read, and the rest of res. data or names is nil if it was not
// requested.
func (d *pendingRead) results(res []claim.Result) (data, names *claim.Result, rest []claim.Result) {
	if d.flags&readData != 0 {
		data, res = &res[0], res[1:]
	}
	if d.flags&readChildren != 0 {
		names, res = &res[0], res[1:]
	}
	return data, names, res
}

// dropFormer removes each znode that is gone, or that was created again, as its new czxid shows. It does so
// before the other results of the request are processed, because one of them may be a child of the new
// znode. If only the children of the new znode were listed, its data must be read too.
func (c *Cache) dropFormer(inFlight []pendingRead, res []claim.Result) {
	for i := range inFlight {
		d := &inFlight[i]
		var data, names *claim.Result
		data, names, res = d.results(res)
		n := c.nodes[d.path]
		if d.void || n == nil || !n.former(data) && !n.former(names) {
			continue
		}
		c.drop(d.path)
		if data == nil && names.Err == nil {
			d.void = true
			c.todo.add(d.path, readData|readChildren|d.flags&required)
		}
	}
}

// former reports whether the result of a read shows that n no longer exists. r may be nil.
func (n *cached) former(r *claim.Result) bool {
	return r != nil && (errors.Is(r.Err, wire.ErrNoNode) || r.Err == nil && r.Stat.Czxid > 0 && r.Stat.Czxid != n.Stat.Czxid)
}

// took processes what was read of one znode.
func (c *Cache) took(d pendingRead, data, names *claim.Result) {
	for _, r := range []*claim.Result{data, names} {
		switch {
		case r == nil || r.Err == nil:
		case !errors.Is(r.Err, wire.ErrNoNode) && !errors.Is(r.Err, wire.ErrNoAuth):
			c.End(claim.Failed, fmt.Errorf("%s: %w", d.path, r.Err))
			return
		case c.oneShot && d.path == c.cfg.Root && errors.Is(r.Err, wire.ErrNoNode):
			c.missing = true // plan then looks for the root again, with a watch
			return
		default: // deleted, or not readable by this client
			c.drop(d.path)
			return
		}
	}
	if data != nil && !c.put(d, &Node{Path: d.path, Data: data.Data, Stat: data.Stat}) {
		return
	}
	if names != nil {
		c.listed(d, names)
	}
}

func (c *Cache) tookMissing(res []claim.Result) {
	switch c.missing = false; {
	case res[0].Err == nil:
		c.todo.add(c.cfg.Root, readData|readChildren|required)
	case errors.Is(res[0].Err, wire.ErrNoNode):
		c.drop(c.cfg.Root)
		c.awaited = true
	default:
		c.End(claim.Failed, res[0].Err)
	}
}

// listed compares a list of children with the Cache. It reads new children and removes those that are
// gone. A child in the Cache that was created after the list stays.
func (c *Cache) listed(d pendingRead, r *claim.Result) {
	n := c.nodes[d.path]
	if n == nil || len(r.Names)+len(n.children) == 0 {
		return
	}
	there := make(map[string]bool, len(r.Names))
	for _, name := range r.Names {
		if there[name] = true; !n.children[name] {
			c.todo.add(claim.Join(d.path, name), readData|readChildren|d.flags&required)
		}
	}
	for _, name := range c.Children(d.path) {
		path := claim.Join(d.path, name)
		if later := r.Stat.Pzxid > 0 && c.nodes[path].Stat.Czxid > r.Stat.Pzxid; !there[name] && !later {
			c.drop(path)
		}
	}
}

// put adds or replaces a znode. It reports whether the Cache holds the znode afterwards; the parent may be
// gone by now. A znode with another czxid was deleted and created again, so it is removed first.
func (c *Cache) put(d pendingRead, n *Node) bool {
	old := c.nodes[n.Path]
	switch {
	case old != nil && old.Stat.Czxid == n.Stat.Czxid:
		c.bytes += len(n.Data) - len(old.Data)
		if n.Stat.Mzxid != old.Stat.Mzxid {
			c.emit(Event{Type: NodeChanged, Node: n, Old: old.Node})
		}
		old.Node = n
	default:
		c.drop(n.Path)
		if above, _ := split(n.Path); c.mayBeGone(above) {
			c.todo.add(n.Path, d.flags) // after the parent, whose read comes first
			return false
		}
		if !c.join(n.Path) {
			return false
		}
		if d.flags&readChildren == 0 && c.lists(n.Path) {
			c.todo.add(n.Path, readChildren|d.flags&required)
		}
		c.nodes[n.Path] = &cached{Node: n}
		c.bytes += len(n.Data)
		c.emit(Event{Type: NodeAdded, Node: n})
	}
	if len(c.nodes) > c.cfg.NodesMax || c.bytes > c.cfg.BytesMax {
		c.End(claim.Failed, ErrFull)
		return false
	}
	return true
}

// mayBeGone reports whether the znode at path, which the Cache holds, may have been deleted without an event.
// With one-shot watches this is possible after both watches of the znode have fired and before the next
// reads set them again. A child that is read meanwhile may belong to a znode that was created after it.
func (c *Cache) mayBeGone(path string) bool {
	const both = readData | readChildren
	return c.oneShot && c.nodes[path] != nil && c.todo.flags[path]&both == both
}

// join adds a name to the children of its parent. It returns false if the Cache does not hold the parent.
func (c *Cache) join(path string) bool {
	if path == c.cfg.Root {
		return true
	}
	above, name := split(path)
	parent := c.nodes[above]
	if parent == nil {
		return false
	}
	if parent.children == nil {
		parent.children = map[string]bool{}
	}
	parent.children[name] = true
	return true
}

// drop removes a znode and everything below it, children first.
func (c *Cache) drop(path string) {
	n := c.nodes[path]
	if n == nil {
		return
	}
	for _, name := range c.Children(path) {
		c.drop(claim.Join(path, name))
	}
	delete(c.nodes, path)
	c.bytes -= len(n.Data)
	if above, name := split(path); path != c.cfg.Root && c.nodes[above] != nil {
		delete(c.nodes[above].children, name)
	}
	c.emit(Event{Type: NodeRemoved, Node: n.Node})
}
