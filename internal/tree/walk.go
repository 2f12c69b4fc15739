package tree

import (
	"strings"

	"bellwether/wire"
)

// Walked is a znode that Walk has found.
type Walked struct {
	Path string
	Stat wire.Stat
}

// Walk calls visit with the znodes below a path, level by level, a part of them at a time. It
// leaves out what is below znodes that c may not read; hidden reports whether there are any.
// It takes the lock for one part at a time and not while visit is called, so what it shows is
// not the tree of one moment. It ends when visit returns false.
func (t *Tree) Walk(c Client, path string, visit func(part []Walked) bool) (hidden bool, code wire.Code) {
	t.mu.RLock()
	n, code := t.readable(c, path, wire.PermRead)
	t.mu.RUnlock()
	if code != wire.OK {
		return false, code
	}
	w := levels{queue: []walkCursor{{cursor{node: n}, strings.TrimSuffix(path, "/")}}}
	for len(w.queue) > 0 {
		if part := w.step(t, c); len(part) > 0 && !visit(part) {
			break
		}
	}
	return w.hidden, wire.OK
}

// levels is the state of Walk: the znodes whose children are still to be visited.
type levels struct {
	queue    []walkCursor
	memory   rulings
	hidden   bool
	children []*node
}

type walkCursor struct {
	cursor
	path string // without a slash at its end
}

// step visits up to about yieldEvery znodes under one hold of the lock. A znode that was
// deleted meanwhile has no children.
func (w *levels) step(t *Tree, c Client) (out []Walked) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	for left := yieldEvery; left > 0 && len(w.queue) > 0; left-- {
		at := &w.queue[0]
		if at.next == 0 && !w.mayList(t, c, at.node) {
			w.queue = w.queue[1:]
			continue
		}
		w.children, at.next = at.node.children.scan(w.children[:0], at.next, left)
		path := at.path
		if at.next == hashEnd {
			w.queue = w.queue[1:]
		}
		left -= len(w.children)
		for _, kid := range w.children {
			v := Walked{Path: path + "/" + string(kid.name())}
			t.stat(kid, &v.Stat)
			out = append(out, v)
			if kid.children.len() > 0 {
				w.queue = append(w.queue, walkCursor{cursor{node: kid}, v.Path})
			}
		}
	}
	return out
}

// mayList reports whether the client may list the children of a znode.
func (w *levels) mayList(t *Tree, c Client, n *node) bool {
	if n.parent == nil && n != t.root {
		return false // deleted meanwhile
	}
	e := &t.acls.entries[n.acl]
	if e.world&wire.PermRead != 0 || w.memory.permits(t, e.list, wire.PermRead, c.Identities()) {
		return true
	}
	w.hidden = true
	return false
}

// Kind says what kind of znode is at a path.
type Kind struct {
	Name  string // persistent, ephemeral, container or ttl
	TTLMS int64  // of a ttl znode
}

// KindOf returns the kind of a znode; ok is false if there is none. The caller must have
// checked that its client may see the znode.
func (t *Tree) KindOf(path string) (k Kind, ok bool) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	n := t.find(path)
	if n == nil {
		return Kind{}, false
	}
	names := [...]string{kindPersistent: "persistent", kindEphemeral: "ephemeral", kindContainer: "container", kindTTL: "ttl"}
	of, ttl := t.o.kindOf(n.owner)
	return Kind{Name: names[of], TTLMS: ttl}, true
}
