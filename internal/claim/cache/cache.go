package cache

import (
	"errors"
	"path"
	"slices"
	"strings"

	"bellwether/internal/claim"
	"bellwether/wire"
)

// ErrFull means that the tree exceeds the limits of the Cache.
var ErrFull = errors.New("more than the cache may hold")

// ErrTooLarge means that an answer is larger than the client accepts. If it answered several reads, each
// of them may succeed by itself.
var ErrTooLarge = errors.New("the answer is too large")

// Config describes a Cache.
type Config struct {
	Root               string
	ChildrenOnly       bool // keep only the root and its children
	NodesMax, BytesMax int  // limits: the number of znodes, and the total size of their data
}

// Node is a znode as it was read. It is immutable: a change replaces the Node.
type Node struct {
	Path string
	Data []byte
	Stat wire.Stat
}

// EventType is the type of an Event.
type EventType uint8

// The types. A NodeAdded comes after the event of the parent, and a NodeRemoved after those of the
// children.
const (
	NodeAdded   EventType = iota // a znode was added; its parent is in the Cache
	NodeChanged                  // the data was set
	NodeRemoved                  // a znode was removed; the Cache holds nothing below it
	Current                      // everything has been read, or a gap has been closed
)

var eventTypeNames = [...]string{"added", "changed", "removed", "current"}

func (t EventType) String() string { return eventTypeNames[t] }

// Event is a change of a Cache.
type Event struct {
	Type EventType
	Node *Node // new state of the znode; NodeRemoved: the last state; Current: nil
	Old  *Node // NodeChanged: the state before
}

// Cache is a copy of a tree of znodes. It follows the changes of the tree, and never returns to an older
// state.
//
//	watch the tree ▸ read and list the root ▸ read and list its children ▸ … ▸ current
//	               ▸ events: read the znodes concerned; remove deleted ones at once
//	               ▸ a gap in the events: what changed since then? read only that ▸ current
//	               ▸ the watch is over: set another, then treat it as a gap
//	               ▸ server without tree watches: a one-shot watch with each read
//
// In a new session the server may show an older state than before, so the Cache begins with a sync.
//
// The client receives an event before any answer that reflects the change. So when a deletion is reported,
// the Cache removes the znode. If a read of this znode is outstanding, its result is ignored, because it
// may be older or newer than the deletion.
//
// Every znode in nodes except the root has its parent in nodes, and bytes is the total size of their data.
type Cache struct {
	claim.Requester
	cfg    Config
	nodes  map[string]*cached
	bytes  int
	events []Event

	watched     bool // the tree is watched, or OpListen is active
	oneShot     bool // each read sets its own one-shot watch
	newSession  bool // the session has changed since the last reads
	separately  bool // send the next reads one by one
	missing     bool // one-shot: the root does not exist, so wait for it
	awaited     bool // the creation of the root is watched
	watchesOver int  // number of watches that have ended

	stale    bool
	behind   bool      // changes after since may be unknown
	since    wire.Zxid // valid if behind is set
	gaps     int       // number of gaps
	todo     worklist
	inFlight []pendingRead // reads of the outstanding request, or of one whose answer was lost
}

// cached is a znode and the names of its children; nil means no children.
type cached struct {
	*Node
	children map[string]bool
}

// NewCache returns the state machine. It does nothing until Attached is stepped.
func NewCache(cfg Config) *Cache {
	c := &Cache{cfg: cfg, nodes: map[string]*cached{}, stale: true}
	c.Forget = func() { c.newSession = true }
	c.todo.add(cfg.Root, readData|readChildren|required)
	return c
}

// Step processes one event, which happened at now.
func (c *Cache) Step(now claim.Moment, ev claim.Event) {
	if c.Over() {
		return
	}
	switch ev := ev.(type) {
	case claim.TreeEvents:
		for _, e := range ev.Events {
			c.noteEvent(e)
		}
	case claim.TreeWatchOver:
		c.watched, c.awaited = false, false
		c.watchesOver++
		c.gap(ev.Zxid)
	}
	c.Advance(now, ev, c.plan)
	if c.Leaving && !c.Over() && c.Asked == 0 && !(c.watched && c.Connected) {
		c.End(claim.Withdrawn, nil)
	}
}

// Events returns the changes since the last call, in order.
func (c *Cache) Events() []Event {
	events := c.events
	c.events = nil
	return events
}

// Stale reports whether the Cache may lack changes other than those that are being read.
func (c *Cache) Stale() bool { return c.stale }

// Len returns the number of znodes held.
func (c *Cache) Len() int { return len(c.nodes) }

// Get returns a znode, or nil if the Cache does not hold it.
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

// All returns the znodes held, parents before children, in the order of their names.
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

// Covers reports whether path is part of the tree that the Cache holds. path must be the root or below it.
func (c *Cache) Covers(path string) bool {
	if path == c.cfg.Root {
		return true
	}
	rest, ok := strings.CutPrefix(path, strings.TrimSuffix(c.cfg.Root, "/")+"/")
	return ok && (!c.cfg.ChildrenOnly || !strings.Contains(rest, "/"))
}

// lists reports whether the Cache keeps the children of the znode at path.
func (c *Cache) lists(path string) bool { return path == c.cfg.Root || !c.cfg.ChildrenOnly }

// plan makes the next request, if there is one. If the Cache has become current, plan adds a Current event.
func (c *Cache) plan() {
	switch {
	case c.Leaving && c.watched:
		c.Ask(func([]claim.Result) { c.watched = false }, claim.Unwatch(c.cfg.Root))
	case c.Leaving:
	case c.newSession:
		c.Ask(c.tookSync, claim.Sync(c.cfg.Root))
	case !c.watched:
		c.planWatch()
	case c.behind:
		c.planSince()
	case c.missing:
		c.Ask(c.tookMissing, claim.Op{Kind: claim.OpExists, Path: c.cfg.Root})
	default:
		c.planRead()
	}
	if c.stale && !c.Over() && c.watched && !c.newSession && !c.behind && !c.missing && !c.incomplete() {
		c.stale = false
		c.emit(Event{Type: Current})
	}
}

// incomplete reports whether reads remain that the Cache needs in order to be current.
func (c *Cache) incomplete() bool {
	return c.todo.required > 0 || slices.ContainsFunc(c.inFlight, func(d pendingRead) bool { return d.flags&required != 0 && !d.void })
}

// planWatch sets a watch on the tree, of the kind that the server supports. The watch may end before the
// answer to its request arrives; watchesOver detects this.
func (c *Cache) planWatch() {
	before := c.watchesOver
	c.Ask(func(res []claim.Result) {
		switch err := res[0].Err; {
		case err == nil:
			c.watched, c.oneShot = c.watchesOver == before, false
		case errors.Is(err, wire.ErrUnimplemented):
			c.Ask(func([]claim.Result) { c.watched, c.oneShot = c.watchesOver == before, true }, claim.Op{Kind: claim.OpListen, Path: c.cfg.Root})
		default:
			c.End(claim.Failed, err)
		}
	}, claim.Op{Kind: claim.OpWatchTree, Path: c.cfg.Root})
}

func (c *Cache) tookSync(res []claim.Result) {
	if c.newSession = false; res[0].Err != nil {
		c.End(claim.Failed, res[0].Err)
	}
}

func (c *Cache) emit(e Event) { c.events = append(c.events, e) }

// split returns the path of the parent and the name of the znode.
func split(p string) (above, name string) { return path.Dir(p), path.Base(p) }
