package cache

import (
	"errors"
	"slices"

	"bellwether/internal/claim"
	"bellwether/wire"
)

// what is to be done about a znode.
type what uint8

const (
	readData what = 1 << iota
	readChildren
	owed // the Cache is not current before
)

// chore is a znode and what is to be done about it.
type chore struct {
	path string
	what what
	void bool // the znode has been deleted since it was asked for
}

// orderSlack is how many paths that are done stay in the order of few chores.
const orderSlack = 1024

// worklist is the chores in the order in which they came up.
type worklist struct {
	what  map[string]what
	order []string // may name a path that is done, or twice
	owed  int
}

func (w *worklist) add(path string, c what) {
	if w.what == nil {
		w.what = map[string]what{}
	}
	before := w.what[path]
	if before == 0 {
		if len(w.order) > 2*len(w.what)+orderSlack {
			w.tidy()
		}
		w.order = append(w.order, path)
	}
	if c&^before&owed != 0 {
		w.owed++
	}
	w.what[path] = before | c
}

// tidy leaves the paths that have something to be done, each once.
func (w *worklist) tidy() {
	seen := make(map[string]bool, len(w.what))
	w.order = slices.DeleteFunc(w.order, func(path string) bool {
		done := w.what[path] == 0 || seen[path]
		seen[path] = true
		return done
	})
}

// drop forgets what was to be done about a znode.
func (w *worklist) drop(path string) {
	if w.what[path]&owed != 0 {
		w.owed--
	}
	delete(w.what, path)
}

// take takes the first n chores.
func (w *worklist) take(n int) []chore {
	out := make([]chore, 0, min(n, len(w.what)))
	for len(out) < n && len(w.order) > 0 {
		path := w.order[0]
		w.order = w.order[1:]
		if what := w.what[path]; what != 0 {
			out = append(out, chore{path: path, what: what})
			w.drop(path)
		}
	}
	return out
}

// back takes chores back that were not done.
func (w *worklist) back(chores []chore) {
	for _, d := range chores {
		if !d.void {
			w.add(d.path, d.what)
		}
	}
}

// sort puts parents before their children. Behind a gap both may be others than
// those that are held, and what is below another goes with it.
func (w *worklist) sort() {
	slices.Sort(w.order)
	w.order = slices.Compact(w.order)
}

// gap notes that changes after zxid may be unknown.
func (c *Cache) gap(zxid wire.Zxid) {
	c.gaps++
	if !c.behind {
		c.behind, c.since, c.stale = true, zxid, true
	}
}

// note makes an event a chore.
func (c *Cache) note(e claim.TreeEvent) {
	if e.Type != wire.EventNone && !c.Covers(e.Path) {
		return
	}
	c.awaited = c.awaited && e.Type == wire.EventNone // else it is of the root
	switch e.Type {
	case wire.EventNone:
		c.gap(e.Zxid)
	case wire.EventNodeCreated:
		c.todo.add(e.Path, readData|readChildren)
	case wire.EventNodeDataChanged:
		c.todo.add(e.Path, readData)
	case wire.EventNodeChildrenChanged:
		c.todo.add(e.Path, readChildren)
	case wire.EventNodeDeleted:
		c.deleted(e.Path)
	}
}

// deleted: what is held of a znode is gone.
func (c *Cache) deleted(path string) {
	c.todo.drop(path)
	for i := range c.doing {
		if c.doing[i].path == path {
			c.doing[i].void = true
		}
	}
	c.drop(path)
	if c.oneShot && path == c.cfg.Root {
		c.todo.add(path, readData|readChildren) // sets the watch for its return
	}
}

// planSince asks what a gap has hidden. The root is looked at where a watch
// that stays stands there, as servers before 3.9 would end it otherwise.
func (c *Cache) planSince() {
	since, look := &claim.Since{Zxid: c.since}, false
	for path := range c.nodes {
		if !c.oneShot && path == c.cfg.Root {
			look = true
			continue
		}
		since.Paths = append(since.Paths, path)
		if c.lists(path) {
			since.Parents = append(since.Parents, path)
		}
	}
	var ops []claim.Op
	if len(since.Paths) > 0 {
		ops = append(ops, claim.Op{Kind: claim.OpSince, Path: c.cfg.Root, Since: since})
	}
	if look {
		ops = append(ops, claim.Op{Kind: claim.OpStat, Path: c.cfg.Root})
	}
	gaps, empty := c.gaps, len(c.nodes) == 0
	took := func(res []claim.Result) {
		if c.behind = c.gaps != gaps; len(since.Paths) > 0 {
			c.tookSince(res[0])
			res = res[1:]
		}
		if look && !c.Over() {
			c.tookRoot(res[0])
		}
		if empty && !c.awaited {
			c.todo.add(c.cfg.Root, readData|readChildren|owed)
		}
		c.todo.back(c.doing)
		c.doing = nil
		c.todo.sort()
	}
	if len(ops) == 0 {
		took(nil)
		c.planRead()
		return
	}
	c.Ask(took, ops...)
}

// tookSince takes what has changed. What came up meanwhile stays to be done: it
// may be later.
func (c *Cache) tookSince(r claim.Result) {
	if r.Err != nil {
		c.End(claim.Failed, r.Err)
		return
	}
	for _, e := range r.Told {
		switch {
		case !c.Covers(e.Path):
		case e.Type == wire.EventNodeDataChanged:
			c.todo.add(e.Path, readData|owed)
		case e.Type == wire.EventNodeChildrenChanged:
			c.todo.add(e.Path, readChildren|owed)
		case e.Type == wire.EventNodeDeleted:
			if c.drop(e.Path); c.oneShot && e.Path == c.cfg.Root {
				c.todo.add(e.Path, readData|readChildren|owed)
			}
		}
	}
}

// tookRoot finds out by its stat whether the root has changed.
func (c *Cache) tookRoot(r claim.Result) {
	root, s := c.Get(c.cfg.Root), r.Stat
	switch {
	case root == nil:
	case errors.Is(r.Err, wire.ErrNoNode):
		c.drop(c.cfg.Root)
	case r.Err != nil:
		c.End(claim.Failed, r.Err)
	case s.Czxid != root.Stat.Czxid:
		c.todo.add(c.cfg.Root, readData|readChildren|owed)
	default:
		if s.Mzxid != root.Stat.Mzxid {
			c.todo.add(c.cfg.Root, readData|owed)
		}
		if s.Pzxid > c.since {
			c.todo.add(c.cfg.Root, readChildren|owed)
		}
	}
}
