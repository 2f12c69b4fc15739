package cache

import (
	"errors"
	"fmt"
	"slices"

	"bellwether/internal/claim"
	"bellwether/wire"
)

// cacheReadsMax is how many znodes a Cache reads in one request.
const cacheReadsMax = 64

// planRead does as many chores as fit into one request, or again those whose
// answer was lost or too large.
func (c *Cache) planRead() {
	c.doing = slices.DeleteFunc(c.doing, func(d chore) bool { return d.void })
	for len(c.doing) > 0 || len(c.todo.order) > 0 {
		if len(c.doing) == 0 {
			c.doing = c.todo.take(cacheReadsMax)
		}
		if ops := c.reads(); len(ops) > 0 {
			c.Ask(c.tookReads, ops...)
			return
		}
		c.doing = nil
	}
}

// reads are the operations of what is being done.
func (c *Cache) reads() (ops []claim.Op) {
	data, children := claim.OpGet, claim.OpList
	if c.oneShot {
		data, children = claim.OpWatch, claim.OpWatchAll
	}
	ops = make([]claim.Op, 0, 2*len(c.doing))
	for i := range c.doing {
		d := &c.doing[i]
		if !c.lists(d.path) {
			d.what &^= readChildren
		}
		if d.path == c.cfg.Root && d.what&readChildren != 0 && c.nodes[d.path] == nil {
			d.what |= readData
		}
		if d.what&readData != 0 {
			ops = append(ops, claim.Op{Kind: data, Path: d.path, Strict: true, Alone: c.apart})
		}
		if d.what&readChildren != 0 {
			ops = append(ops, claim.Op{Kind: children, Path: d.path, Alone: c.apart})
		}
	}
	return ops
}

// tookReads takes over what was read.
func (c *Cache) tookReads(res []claim.Result) {
	large := func(r claim.Result) bool { return errors.Is(r.Err, ErrTooLarge) }
	if !c.apart && len(res) > 1 && slices.ContainsFunc(res, large) {
		c.apart = true
		return
	}
	doing := c.doing
	c.doing, c.apart = nil, false
	for _, d := range doing {
		var data, names *claim.Result
		if d.what&readData != 0 {
			data, res = &res[0], res[1:]
		}
		if d.what&readChildren != 0 {
			names, res = &res[0], res[1:]
		}
		if !d.void && !c.Over() {
			c.took(d, data, names)
		}
	}
}

// took takes over what was read of one znode; nil: not asked for.
func (c *Cache) took(d chore, data, names *claim.Result) {
	for _, r := range []*claim.Result{data, names} {
		switch {
		case r == nil || r.Err == nil:
		case !errors.Is(r.Err, wire.ErrNoNode) && !errors.Is(r.Err, wire.ErrNoAuth):
			c.End(claim.Failed, fmt.Errorf("%s: %w", d.path, r.Err))
			return
		case c.oneShot && d.path == c.cfg.Root && errors.Is(r.Err, wire.ErrNoNode):
			c.missing = true // whether it has come back is looked at, and watched
			return
		default: // gone, or hidden from this client
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
		c.todo.add(c.cfg.Root, readData|readChildren|owed)
	case errors.Is(res[0].Err, wire.ErrNoNode):
		c.drop(c.cfg.Root)
		c.awaited = true
	default:
		c.End(claim.Failed, res[0].Err)
	}
}

// listed: of the children those are read that are new, and those dropped that
// are gone. One that was made after the list is neither.
func (c *Cache) listed(d chore, r *claim.Result) {
	n := c.nodes[d.path]
	if n == nil || len(r.Names)+len(n.children) == 0 {
		return
	}
	there := make(map[string]bool, len(r.Names))
	for _, name := range r.Names {
		if there[name] = true; !n.children[name] {
			c.todo.add(claim.Join(d.path, name), readData|readChildren|d.what&owed)
		}
	}
	for _, name := range c.Children(d.path) {
		path := claim.Join(d.path, name)
		if later := r.Stat.Pzxid > 0 && c.nodes[path].Stat.Czxid > r.Stat.Pzxid; !there[name] && !later {
			c.drop(path)
		}
	}
}

// put adds a znode or replaces it. It reports whether it has a place: its
// parent may be gone by now. One that was made anew is another.
func (c *Cache) put(d chore, n *Node) bool {
	old := c.nodes[n.Path]
	switch {
	case old != nil && old.Stat.Czxid == n.Stat.Czxid:
		c.bytes += len(n.Data) - len(old.Data)
		if n.Stat.Mzxid != old.Stat.Mzxid {
			c.tellOf(CacheEvent{Type: NodeChanged, Node: n, Old: old.Node})
		}
		old.Node = n
	default:
		if c.drop(n.Path); !c.join(n.Path) {
			return false
		}
		if d.what&readChildren == 0 && c.lists(n.Path) {
			c.todo.add(n.Path, readChildren|d.what&owed)
		}
		c.nodes[n.Path] = &cached{Node: n}
		c.bytes += len(n.Data)
		c.tellOf(CacheEvent{Type: NodeAdded, Node: n})
	}
	if len(c.nodes) > c.cfg.NodesMax || c.bytes > c.cfg.BytesMax {
		c.End(claim.Failed, ErrCacheFull)
		return false
	}
	return true
}

// join adds a name to those of its parent's children, if that is held.
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

// drop removes a znode and what is below it, children first.
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
	c.tellOf(CacheEvent{Type: NodeRemoved, Node: n.Node})
}
