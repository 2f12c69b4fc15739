package interleave

import (
	"fmt"
	"maps"
	"math"
	"path"
	"slices"
	"strings"

	"bellwether/internal/store"
	"bellwether/wire"
)

// event is what a watch delivers.
type event struct {
	kind wire.EventType
	path string
}

func (e event) String() string { return fmt.Sprintf("%v of %s", e.kind, e.path) }

// node is a znode of the model.
type node struct {
	data    string
	version int32
	owner   *client // of an ephemeral
}

// change is one transaction that has changed the tree.
type change struct {
	zxid   wire.Zxid
	by     *client
	q      *request
	events []event         // that watches deliver, if they are set
	after  map[string]node // the tree after the change
}

// history is what the clients have done, in the order of the zxids. The model of the tree
// follows from it.
type history struct {
	clients []*client
	changes []change
	faults  []fault
	line    int // of the trace, for faults
}

func (h *history) fault(format string, args ...any) {
	h.faults = append(h.faults, fault{fmt.Sprintf(format, args...), h.line})
}

// historyOf builds the history of the clients' successful writes.
func historyOf(clients []*client) *history {
	h := &history{clients: clients}
	for _, c := range clients {
		for _, q := range c.requests {
			if q.answered > 0 && q.reply.Err == wire.OK && changes(q.op) {
				h.changes = append(h.changes, change{zxid: q.reply.Zxid, by: c, q: q})
			}
		}
	}
	slices.SortStableFunc(h.changes, func(a, b change) int { return int(a.zxid - b.zxid) })
	tree := map[string]node{}
	for i := range h.changes {
		x := &h.changes[i]
		if i > 0 && x.zxid == h.changes[i-1].zxid {
			h.line = math.MaxInt
			h.fault("OneZxid: %v of %v and %v of %v have the same zxid %v", x.q, x.by, h.changes[i-1].q, h.changes[i-1].by, x.zxid)
		}
		tree = maps.Clone(tree)
		x.apply(tree)
		x.after = tree
	}
	return h
}

func changes(op wire.OpCode) bool {
	return op == wire.OpCreate || op == wire.OpSetData || op == wire.OpDelete || op == wire.OpCloseSession
}

// apply carries out a change in the model.
func (x *change) apply(tree map[string]node) {
	p := x.q.path
	switch x.q.op {
	case wire.OpCreate:
		n := node{data: x.q.data}
		if x.q.ephemeral {
			n.owner = x.by
		}
		tree[p] = n
		x.events = []event{{wire.EventNodeCreated, p}, {wire.EventNodeChildrenChanged, path.Dir(p)}}
	case wire.OpSetData:
		tree[p] = node{x.q.data, tree[p].version + 1, tree[p].owner}
		x.events = []event{{wire.EventNodeDataChanged, p}}
	case wire.OpDelete:
		x.remove(tree, p)
	case wire.OpCloseSession:
		for _, p := range slices.Sorted(maps.Keys(tree)) {
			if tree[p].owner == x.by {
				x.remove(tree, p)
			}
		}
	}
}

func (x *change) remove(tree map[string]node, p string) {
	delete(tree, p)
	x.events = append(x.events, event{wire.EventNodeDeleted, p}, event{wire.EventNodeChildrenChanged, path.Dir(p)})
}

// at returns the number of changes up to a zxid.
func (h *history) at(z wire.Zxid) int {
	n, _ := slices.BinarySearchFunc(h.changes, z+1, func(x change, z wire.Zxid) int { return int(x.zxid - z) })
	return n
}

// tree returns the model of the tree at a zxid.
func (h *history) tree(z wire.Zxid) map[string]node {
	if n := h.at(z); n > 0 {
		return h.changes[n-1].after
	}
	return nil
}

// last returns the zxid of the last change.
func (h *history) last() wire.Zxid {
	if n := len(h.changes); n > 0 {
		return h.changes[n-1].zxid
	}
	return 0
}

// check returns which rules are broken:
//
//   - OneZxid: no two writes have the same zxid.
//   - Answered: every request is answered. That replies come in the order of the requests is
//     checked while they arrive.
//   - Forward: no packet shows a zxid below one that the connection has shown before.
//   - Shown: a read shows the tree as it was at the zxid of its reply.
//   - Fresh: a reply shows every write that was answered, to any client, before its request
//     was sent.
//   - EventFirst and OwnEvents: see watcher.
//   - Durable: see checkImage.
func (h *history) check() []fault {
	for _, c := range h.clients {
		zxid := wire.Zxid(0)
		watcher := &watcher{h: h, c: c, once: map[event]bool{}}
		for _, r := range c.log {
			h.line = r.line + 1
			if r.zxid < zxid {
				h.fault("Forward: %v was shown zxid %v, and then %v", c, zxid, r.zxid)
			}
			zxid = max(zxid, r.zxid)
			if r.reply == nil {
				watcher.event(r.event, r.zxid)
				continue
			}
			watcher.reply(r.reply)
			h.shown(c, r.reply)
			h.fresh(c, r.reply)
		}
		for _, q := range c.waiting {
			h.fault("Answered: %v of %v is never answered", q, c)
		}
	}
	return h.faults
}

// shown checks the rule Shown.
func (h *history) shown(c *client, q *request) {
	tree := h.tree(q.reply.Zxid)
	n, ok := tree[q.path]
	ok = ok || q.path == "/"
	switch q.op {
	case wire.OpGetData, wire.OpExists, wire.OpGetChildren:
	default:
		return
	}
	want := node{}
	switch {
	case !ok && q.reply.Err == wire.ErrNoNode:
		return
	case q.op == wire.OpGetChildren:
		want.data = strings.Join(childrenOf(tree, q.path), " ")
	case q.op == wire.OpGetData:
		want = node{data: n.data, version: n.version}
	case q.op == wire.OpExists:
		want.version = n.version
	}
	if got := (node{data: q.got, version: q.version}); !ok || q.reply.Err != wire.OK || got != want {
		h.fault("Shown: the reply to %v of %v shows %q (version %d, %v), but at its zxid %v it is %q (version %d, exists: %v)",
			q, c, got.data, got.version, q.reply.Err, q.reply.Zxid, want.data, want.version, ok)
	}
}

func childrenOf(tree map[string]node, parent string) (names []string) {
	for p := range tree {
		if path.Dir(p) == parent {
			names = append(names, path.Base(p))
		}
	}
	slices.Sort(names)
	return names
}

// fresh checks the rule Fresh.
func (h *history) fresh(c *client, q *request) {
	for _, x := range h.changes {
		if x.q.answered < q.sent && x.zxid > q.reply.Zxid {
			h.fault("Fresh: the reply to %v of %v shows zxid %v, although %v of %v, zxid %v, was answered before the request was sent",
				q, c, q.reply.Zxid, x.q, x.by, x.zxid)
			return
		}
	}
}

// watcher follows what one client may know of its watches:
//
//   - EventFirst: if a watch was set, the event of a change comes before every packet that
//     shows the change, or a later one, by its zxid. So no change is missed.
//   - OwnEvents: an event comes only for a watch whose reply has come, and for a change that
//     no earlier packet has shown. So an event overtakes no reply, and comes once.
type watcher struct {
	h    *history
	c    *client
	once map[event]bool // one-shot watches: NodeDataChanged stands for data, NodeChildrenChanged for children
	// stays and recursive are the paths of persistent watches.
	stays, recursive []string

	zxid wire.Zxid // what the client has been shown
	due  []event   // events of the change at zxid that are still to come
}

// reply takes a reply.
func (w *watcher) reply(q *request) {
	w.advance(q.reply.Zxid, fmt.Sprintf("the reply to %v", q))
	ok := q.reply.Err == wire.OK
	switch {
	case !q.watch:
	case q.op == wire.OpGetData && ok, q.op == wire.OpExists && (ok || q.reply.Err == wire.ErrNoNode):
		w.once[event{wire.EventNodeDataChanged, q.path}] = true
	case q.op == wire.OpGetChildren && ok:
		w.once[event{wire.EventNodeChildrenChanged, q.path}] = true
	case q.op == wire.OpAddWatch && ok && q.recursive:
		w.recursive = append(w.recursive, q.path)
	case q.op == wire.OpAddWatch && ok:
		w.stays = append(w.stays, q.path)
	}
}

// event takes an event.
func (w *watcher) event(e event, z wire.Zxid) {
	w.advance(z-1, fmt.Sprintf("the event %v", e))
	if z > w.zxid {
		w.advance(z, "")
	}
	i := slices.Index(w.due, e)
	if z != w.zxid || i < 0 {
		w.h.fault("OwnEvents: %v receives the event %v with zxid %v, but it has been shown zxid %v, and no reply has confirmed a watch for this event since an earlier one", w.c, e, z, w.zxid)
		return
	}
	w.due = slices.Delete(w.due, i, i+1)
}

// advance records that the client is shown a zxid by a packet. Without a packet, the
// events of the change at that zxid may still come.
func (w *watcher) advance(z wire.Zxid, packet string) {
	if z >= w.zxid && packet != "" {
		w.missed(packet, w.zxid)
	}
	for _, x := range w.h.changes[w.h.at(w.zxid):] {
		if x.zxid > z {
			break
		}
		for _, e := range x.events {
			if w.fires(e) {
				w.due = append(w.due, e)
			}
		}
		if packet != "" {
			w.missed(packet, x.zxid)
		}
	}
	w.zxid = max(w.zxid, z)
}

// missed reports the events that should have come before a packet.
func (w *watcher) missed(packet string, z wire.Zxid) {
	for _, e := range w.due {
		w.h.fault("EventFirst: %v receives %v before the event %v with zxid %v, or never receives that event", w.c, packet, e, z)
	}
	w.due = nil
}

// fires reports whether the client gets an event, and removes the one-shot watches that it
// uses up.
func (w *watcher) fires(e event) (fires bool) {
	data, children := event{wire.EventNodeDataChanged, e.path}, event{wire.EventNodeChildrenChanged, e.path}
	meets := []event{data}
	switch e.kind {
	case wire.EventNodeChildrenChanged:
		meets = []event{children}
	case wire.EventNodeDeleted:
		meets = []event{data, children}
	}
	for _, m := range meets {
		fires = fires || w.once[m]
		delete(w.once, m)
	}
	below := func(p string) bool { return p == e.path || strings.HasPrefix(e.path, p+"/") }
	return fires || slices.Contains(w.stays, e.path) ||
		e.kind != wire.EventNodeChildrenChanged && slices.ContainsFunc(w.recursive, below)
}

// keepSome lets a power failure keep a random part of what was not fsynced.
const keepSome = store.KeepAll + 1

// checkImage checks the rule Durable: after a power failure, the disk has everything that a
// client had been shown, and it has a beginning of the history. n decides how much the
// power failure keeps of what was not fsynced.
func (h *history) checkImage(p *image, n int) []fault {
	keeping := store.LoseAll
	if n%2 == 1 {
		keeping = keepSome
	}
	found, err := recoverFrom(p.fs, keeping)
	if err != nil {
		return []fault{{fmt.Sprintf("Durable: after a power failure the data cannot be read: %v", err), p.line}}
	}
	if found.zxid < p.acked {
		return []fault{{fmt.Sprintf("Durable: a client has been shown zxid %v, but after a power failure the disk ends at %v", p.acked, found.zxid), p.line}}
	}
	want := map[string]string{}
	for path, n := range h.tree(found.zxid) {
		want[path] = n.data
	}
	if !maps.Equal(found.data, want) {
		return []fault{{fmt.Sprintf("Durable: after a power failure the disk has %v at zxid %v, want %v", found.data, found.zxid, want), p.line}}
	}
	return nil
}
