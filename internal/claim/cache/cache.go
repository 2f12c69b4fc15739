package cache

import (
	"errors"
	"path"
	"slices"
	"strings"

	"bellwether/internal/claim"
	"bellwether/wire"
)

// ErrCacheFull: there is more than a Cache may hold.
var ErrCacheFull = errors.New("more than the cache may hold")

// ErrTooLarge: the answer is larger than the client takes. Where it was one to
// several reads, each by itself may do.
var ErrTooLarge = errors.New("the answer is too large")

// CacheConfig is what a Cache is about.
type CacheConfig struct {
	Root               string
	ChildrenOnly       bool // the root and its children, not what is below them
	NodesMax, BytesMax int  // what it may hold; bytes are those of data
}

// Node is a znode as it was read. It is never changed: another takes its place.
type Node struct {
	Path string
	Data []byte
	Stat wire.Stat
}

// CacheEventType says what a CacheEvent tells.
type CacheEventType uint8

// The types.
const (
	NodeAdded    CacheEventType = iota // its parent is there
	NodeChanged                        // its data was set
	NodeRemoved                        // nothing is left below it
	CacheCurrent                       // everything was read, or a gap is closed
)

var cacheEventNames = [...]string{"added", "changed", "removed", "current"}

func (t CacheEventType) String() string { return cacheEventNames[t] }

// CacheEvent is a change of a Cache.
type CacheEvent struct {
	Type CacheEventType
	Node *Node // as it is now; as it was, for NodeRemoved; nil for CacheCurrent
	Old  *Node // as it was, for NodeChanged
}

// Cache is a copy of a tree of znodes that follows it, and never goes back.
//
//	watch the tree ▸ read root, list it ▸ read and list what is found ▸ … ▸ current
//	               ▸ events: read what they are about; what is deleted goes at once
//	               ▸ a gap: what has changed since? read that, and no more ▸ current
//	               ▸ the watch is over: another, then as behind a gap
//	               ▸ refused as unknown: one-shot watches with each read
//
// What a server shows, and tells, may be older in another session, so a Cache
// begins that with a sync.
//
// An event comes before every answer that knows of what it tells. So a znode of
// which a deletion is told is gone, unless it is being read at that moment: then
// the answer does not count, for it may be older than the event, or newer.
type Cache struct {
	claim.Requester
	cfg    CacheConfig
	nodes  map[string]*cached
	bytes  int
	events []CacheEvent

	watched bool // the tree is, or listened to
	oneShot bool // its watches are set with each read
	renewed bool // the session is another than that of what was read
	apart   bool // what is read next is read one by one
	missing bool // one-shot: there is no root to watch, await it
	awaited bool // and that is watched
	lapses  int  // watches that are over, so far

	stale  bool
	behind bool      // what came after since may not be known
	since  wire.Zxid // of behind
	gaps   int       // so far
	todo   worklist
	doing  []chore // of the request under way, or of one that was lost
}

// cached is a znode and the names of its children; nil: none.
type cached struct {
	*Node
	children map[string]bool
}

// NewCache makes the state machine, which waits for Attached.
func NewCache(cfg CacheConfig) *Cache {
	c := &Cache{cfg: cfg, nodes: map[string]*cached{}, stale: true}
	c.Forget = func() { c.renewed = true }
	c.todo.add(cfg.Root, readData|readChildren|owed)
	return c
}

// Step takes one event, which happened at now.
func (c *Cache) Step(now claim.Moment, ev claim.Event) {
	if c.Over() {
		return
	}
	switch ev := ev.(type) {
	case claim.Told:
		for _, e := range ev.Events {
			c.note(e)
		}
	case claim.WatchOver:
		c.watched, c.awaited = false, false
		c.lapses++
		c.gap(ev.Zxid)
	}
	c.Advance(now, ev, c.plan)
	if c.Leaving && !c.Over() && c.Asked == 0 && !(c.watched && c.Connected) {
		c.End(claim.Withdrawn, nil)
	}
}

// Ready hands out what has come of the steps since the last call.
func (c *Cache) Ready() claim.Ready { return c.Collect() }

// Events are the changes since the last call, in order.
func (c *Cache) Events() []CacheEvent {
	events := c.events
	c.events = nil
	return events
}

// Stale reports whether the Cache may be behind by more than what is on its way.
func (c *Cache) Stale() bool { return c.stale }

// Len is the number of znodes held.
func (c *Cache) Len() int { return len(c.nodes) }

// Get returns a znode, nil where there is none.
func (c *Cache) Get(path string) *Node {
	if n := c.nodes[path]; n != nil {
		return n.Node
	}
	return nil
}

// Children returns the names of a znode's children in order.
func (c *Cache) Children(path string) []string {
	n := c.nodes[path]
	if n == nil {
		return nil
	}
	names := make([]string, 0, len(n.children))
	for name := range n.children {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// All are the znodes held, parents before children, in the order of names.
func (c *Cache) All() []*Node { return c.below(nil, c.cfg.Root) }

func (c *Cache) below(out []*Node, path string) []*Node {
	n := c.nodes[path]
	if n == nil {
		return out
	}
	out = append(out, n.Node)
	for _, name := range c.Children(path) {
		out = c.below(out, claim.Join(path, name))
	}
	return out
}

// Covers reports whether the Cache keeps znodes at this path, which is the root
// or below it.
func (c *Cache) Covers(path string) bool {
	if path == c.cfg.Root {
		return true
	}
	rest, ok := strings.CutPrefix(path, strings.TrimSuffix(c.cfg.Root, "/")+"/")
	return ok && (!c.cfg.ChildrenOnly || !strings.Contains(rest, "/"))
}

// lists: the Cache keeps the children of the znode at this path.
func (c *Cache) lists(path string) bool { return path == c.cfg.Root || !c.cfg.ChildrenOnly }

// plan asks for what comes next, if anything.
func (c *Cache) plan() {
	switch {
	case c.Leaving && c.watched:
		c.Ask(func([]claim.Result) { c.watched = false }, claim.Op{Kind: claim.OpUnwatch, Path: c.cfg.Root})
	case c.Leaving:
	case c.renewed:
		c.Ask(c.tookSync, claim.Op{Kind: claim.OpSync, Path: c.cfg.Root})
	case !c.watched:
		c.planWatch()
	case c.behind:
		c.planSince()
	case c.missing:
		c.Ask(c.tookMissing, claim.Op{Kind: claim.OpExists, Path: c.cfg.Root})
	default:
		c.planRead()
	}
	if c.stale && !c.Over() && c.watched && !c.renewed && !c.behind && !c.missing && !c.owes() {
		c.stale = false
		c.tellOf(CacheEvent{Type: CacheCurrent})
	}
}

// owes: something is to be read, or being read, that makes it current.
func (c *Cache) owes() bool {
	return c.todo.owed > 0 || slices.ContainsFunc(c.doing, func(d chore) bool { return d.what&owed != 0 && !d.void })
}

// planWatch watches the tree, in whatever way the server knows. A watch of which much
// is told may be over before it is known to stand.
func (c *Cache) planWatch() {
	lapses := c.lapses
	c.Ask(func(res []claim.Result) {
		switch err := res[0].Err; {
		case err == nil:
			c.watched, c.oneShot = c.lapses == lapses, false
		case errors.Is(err, wire.ErrUnimplemented):
			c.Ask(func([]claim.Result) { c.watched, c.oneShot = c.lapses == lapses, true }, claim.Op{Kind: claim.OpListen, Path: c.cfg.Root})
		default:
			c.End(claim.Failed, err)
		}
	}, claim.Op{Kind: claim.OpWatchTree, Path: c.cfg.Root})
}

func (c *Cache) tookSync(res []claim.Result) {
	if c.renewed = false; res[0].Err != nil {
		c.End(claim.Failed, res[0].Err)
	}
}

func (c *Cache) tellOf(e CacheEvent) { c.events = append(c.events, e) }

// split is the path of the parent and the name below it.
func split(p string) (above, name string) { return path.Dir(p), path.Base(p) }
