package cache

import (
	"errors"
	"slices"

	"bellwether/internal/claim"
	"bellwether/wire"
)

// readFlags is the set of things to do for a znode.
type readFlags uint8

const (
	readData readFlags = 1 << iota
	readChildren
	required // the Cache is not current until this is done
)

// pendingRead is a path and what to do for it.
type pendingRead struct {
	path  string
	flags readFlags
	void  bool // the znode was deleted after the read was requested
}

// orderSlack is the number of finished paths that the order may contain before tidy removes them.
const orderSlack = 1024

// worklist holds the reads in the order in which they were added. required is the number of entries of flags
// that have the flag required set.
type worklist struct {
	flags    map[string]readFlags
	order    []string // may contain a path twice, or one that is done
	required int
}

func (w *worklist) add(path string, c readFlags) {
	if w.flags == nil {
		w.flags = map[string]readFlags{}
	}
	before := w.flags[path]
	if before == 0 {
		if len(w.order) > 2*len(w.flags)+orderSlack {
			w.tidy()
		}
		w.order = append(w.order, path)
	}
	if c&^before&required != 0 {
		w.required++
	}
	w.flags[path] = before | c
}

// tidy removes from the order all paths that are done, and repeated ones.
func (w *worklist) tidy() {
	seen := make(map[string]bool, len(w.flags))
	w.order = slices.DeleteFunc(w.order, func(path string) bool {
		done := w.flags[path] == 0 || seen[path]
		seen[path] = true
		return done
	})
}

// drop removes the read of a znode.
func (w *worklist) drop(path string) {
	if w.flags[path]&required != 0 {
		w.required--
	}
	delete(w.flags, path)
}

// take removes and returns the first n reads.
func (w *worklist) take(n int) []pendingRead {
	out := make([]pendingRead, 0, min(n, len(w.flags)))
	for len(out) < n && len(w.order) > 0 {
		path := w.order[0]
		w.order = w.order[1:]
		if what := w.flags[path]; what != 0 {
			out = append(out, pendingRead{path: path, flags: what})
			w.drop(path)
		}
	}
	return out
}

// back adds reads again that were not carried out.
func (w *worklist) back(reads []pendingRead) {
	for _, d := range reads {
		if !d.void {
			w.add(d.path, d.flags)
		}
	}
}

// sort orders the reads so that parents come before their children. After a gap a parent may have been
// created anew, and adding it removes everything below it.
func (w *worklist) sort() {
	slices.Sort(w.order)
	w.order = slices.Compact(w.order)
}

// gap records that changes after zxid may be unknown.
func (c *Cache) gap(zxid wire.Zxid) {
	c.gaps++
	if !c.behind {
		c.behind, c.since, c.stale = true, zxid, true
	}
}

// noteEvent turns an event into a read.
func (c *Cache) noteEvent(e claim.TreeEvent) {
	if e.Type != wire.EventNone && !c.Covers(e.Path) {
		return
	}
	c.awaited = c.awaited && e.Type == wire.EventNone // while the root is awaited, no other znode has a watch, so the event is one of the root
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

// deleted removes a znode whose deletion was reported.
func (c *Cache) deleted(path string) {
	c.todo.drop(path)
	for i := range c.inFlight {
		if c.inFlight[i].path == path {
			c.inFlight[i].void = true
		}
	}
	c.drop(path)
	if c.oneShot && path == c.cfg.Root {
		c.todo.add(path, readData|readChildren) // the read sets a watch for the next creation of the root
	}
}

// planSince asks what changed during a gap. The root is read separately if it has a persistent watch,
// because servers before 3.9 would end that watch otherwise.
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
			c.todo.add(c.cfg.Root, readData|readChildren|required)
		}
		c.todo.back(c.inFlight)
		c.inFlight = nil
		c.todo.sort()
	}
	if len(ops) == 0 {
		took(nil)
		c.planRead()
		return
	}
	c.Ask(took, ops...)
}

// tookSince adds reads for what has changed. Reads from newer events remain, because they may concern
// later changes.
func (c *Cache) tookSince(r claim.Result) {
	if r.Err != nil {
		c.End(claim.Failed, r.Err)
		return
	}
	for _, e := range r.Changes {
		switch {
		case !c.Covers(e.Path):
		case e.Type == wire.EventNodeDataChanged:
			c.todo.add(e.Path, readData|required)
		case e.Type == wire.EventNodeChildrenChanged:
			c.todo.add(e.Path, readChildren|required)
		case e.Type == wire.EventNodeDeleted:
			if c.drop(e.Path); c.oneShot && e.Path == c.cfg.Root {
				c.todo.add(e.Path, readData|readChildren|required)
			}
		}
	}
}

// tookRoot uses the stat of the root to find out whether it has changed.
func (c *Cache) tookRoot(r claim.Result) {
	root, s := c.Get(c.cfg.Root), r.Stat
	switch {
	case root == nil:
	case errors.Is(r.Err, wire.ErrNoNode):
		c.drop(c.cfg.Root)
	case r.Err != nil:
		c.End(claim.Failed, r.Err)
	case s.Czxid != root.Stat.Czxid:
		c.todo.add(c.cfg.Root, readData|readChildren|required)
	default:
		if s.Mzxid != root.Stat.Mzxid {
			c.todo.add(c.cfg.Root, readData|required)
		}
		if s.Pzxid > c.since {
			c.todo.add(c.cfg.Root, readChildren|required)
		}
	}
}
