package tree

import (
	"slices"
	"strings"

	"bellwether/wire"
)

// A read takes the read lock once, looks up the znode, sets the watch, and reserves the
// reply's position. Paths are looked up verbatim; "" is the root. What a read puts into
// its response is never changed afterwards. If a read sets a watch, it copies the path.

// readable finds a znode and checks a permission.
func (t *Tree) readable(c Client, path string, perm int32) (*node, wire.Code) {
	n := t.find(path)
	if n == nil {
		return nil, wire.ErrNoNode
	}
	if !t.permits(n.acl, perm, c.Identities()) {
		return nil, wire.ErrNoAuth
	}
	return n, wire.OK
}

// GetData answers getData.
func (t *Tree) GetData(c Client, path string, watch bool, out *wire.DataResponse) wire.Code {
	t.mu.RLock()
	defer t.mu.RUnlock()
	n, code := t.readable(c, path, wire.PermRead)
	if code == wire.OK {
		out.Data = n.data()
		t.stat(n, &out.Stat)
		if watch {
			t.watches.add(c, path, dataOnce)
		}
	}
	c.Reserve(t.last)
	return code
}

// Exists answers exists. It sets the watch even if the znode does not exist.
func (t *Tree) Exists(c Client, path string, watch bool, out *wire.StatResponse) wire.Code {
	t.mu.RLock()
	defer t.mu.RUnlock()
	code := wire.ErrBadArguments
	if strings.IndexByte(path, 0) < 0 {
		var n *node
		if n, code = t.readable(c, path, wire.PermRead); code == wire.OK {
			t.stat(n, &out.Stat)
		}
		if watch && (code == wire.OK || code == wire.ErrNoNode) {
			t.watches.add(c, path, dataOnce)
		}
	}
	c.Reserve(t.last)
	return code
}

// GetACL answers getACL. It hides hashes from clients that may not change the ACL.
func (t *Tree) GetACL(c Client, path string, out *wire.ACLResponse) wire.Code {
	t.mu.RLock()
	defer t.mu.RUnlock()
	n, code := t.readable(c, path, wire.PermRead|wire.PermAdmin)
	if code == wire.OK {
		out.ACL = t.acls.entries[n.acl].list
		t.stat(n, &out.Stat)
		if !t.permits(n.acl, wire.PermAdmin, c.Identities()) {
			out.ACL = maskACL(out.ACL)
		}
	}
	c.Reserve(t.last)
	return code
}

// Children answers getChildren and getChildren2.
func (t *Tree) Children(c Client, path string, watch bool, out *Listing) wire.Code {
	code, _ := t.children(c, path, watch, false, out)
	return code
}

// ChildrenReady is Children, unless the names of many children would have to be encoded
// first. Then it does nothing and returns false, and the caller may wait for its turn,
// call EncodeNames, and then Children.
func (t *Tree) ChildrenReady(c Client, path string, watch bool, out *Listing) (code wire.Code, ok bool) {
	return t.children(c, path, watch, true, out)
}

func (t *Tree) children(c Client, path string, watch, ready bool, out *Listing) (wire.Code, bool) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	n, code := t.readable(c, path, wire.PermRead)
	out.Children, out.Many = nil, nil
	if code == wire.OK {
		switch many := n.children.len() >= manyChildren; {
		case many && ready && n.children.encoded.get() == nil:
			return code, false
		case many:
			out.Many = n.children.encode()
		default:
			out.Children = names(n)
		}
		t.stat(n, &out.Stat)
		if watch {
			t.watches.add(c, path, childOnce)
		}
	}
	c.Reserve(t.last)
	return code, true
}

// names lists the children. The names share one piece of memory, and each child is read
// once, because a million of them are far apart in memory.
func names(n *node) []string {
	var text strings.Builder
	text.Grow(namesBytes(n))
	n.children.each(func(kid *node) {
		text.Write(kid.name())
		text.WriteByte('/')
	})
	list := make([]string, 0, n.children.len())
	for rest := text.String(); rest != ""; {
		name, more, _ := strings.Cut(rest, "/")
		list, rest = append(list, name), more
	}
	return list
}

// namesBytes returns how many bytes the names of the children take, with a byte after
// each.
func namesBytes(n *node) (bytes int) {
	n.children.each(func(kid *node) { bytes += kid.nameLen() + 1 })
	return bytes
}

// CountAll answers getAllChildrenNumber: it counts all descendants. ZooKeeper stores the
// root under two names, "" and /, and counts / as a child of "". Very many znodes are
// counted in steps, so that a writer waits for one step only. Then the count does not
// show one moment; ZooKeeper's does not either. Between two steps CountAll calls goOn. If
// goOn returns false, nobody needs the answer any more, and CountAll returns ErrSystem.
func (t *Tree) CountAll(c Client, path string, goOn func() bool, out *wire.CountResponse) wire.Code {
	t.mu.RLock()
	defer t.mu.RUnlock()
	n, code := t.readable(c, path, wire.PermRead)
	switch {
	case code != wire.OK:
	case n == t.root:
		out.Count = int32(t.nodes)
		if path == "" {
			out.Count++
		}
	default:
		for count := (counter{stack: []cursor{{node: n}}}); !count.step(&out.Count); {
			t.mu.RUnlock()
			wanted := goOn()
			t.mu.RLock()
			if !wanted {
				code = wire.ErrSystem
				break
			}
		}
	}
	c.Reserve(t.last)
	return code
}

// counter counts the descendants of a znode while the tree changes.
type counter struct {
	stack    []cursor
	children []*node
}

// cursor is a znode with the hash at which counting its children continues.
type cursor struct {
	node *node
	next uint64
}

// step counts up to about a fixed number of znodes under one hold of the lock. It reports
// whether all are counted. A znode that was deleted meanwhile has no children.
func (w *counter) step(count *int32) (done bool) {
	for left := yieldEvery; left > 0 && len(w.stack) > 0; left-- {
		top := len(w.stack) - 1
		at := w.stack[top]
		w.children, at.next = at.node.children.scan(w.children[:0], at.next, left)
		if w.stack[top] = at; at.next == hashEnd {
			w.stack = w.stack[:top]
		}
		left -= len(w.children)
		*count += int32(len(w.children))
		for _, kid := range w.children {
			if kid.children.len() > 0 {
				w.stack = append(w.stack, cursor{node: kid})
			}
		}
	}
	return len(w.stack) == 0
}

// Ephemerals answers getEphemerals with the ephemerals of the client's own session whose
// path begins with the prefix, sorted. A null or blank prefix, or /, selects all.
func (t *Tree) Ephemerals(c Client, prefix wire.NullString, out *wire.EphemeralsResponse) wire.Code {
	t.mu.RLock()
	out.Paths = t.ownedPaths(c.Session())
	c.Reserve(t.last)
	t.mu.RUnlock()
	slices.Sort(out.Paths)
	if strings.TrimSpace(prefix.String) != "" {
		out.Paths = slices.DeleteFunc(out.Paths, func(path string) bool {
			return !strings.HasPrefix(path, prefix.String)
		})
	}
	if out.Paths == nil {
		out.Paths = []string{}
	}
	return wire.OK
}

// EphemeralsBytes returns about how many bytes the answer of Ephemerals takes.
func (t *Tree) EphemeralsBytes(c Client) int {
	const each = 64 // bytes of a path and its slice entry
	t.mu.RLock()
	defer t.mu.RUnlock()
	return resultBytes + each*len(t.ownedNodes(c.Session()))
}

// MultiRead answers multiRead. It carries out each operation by itself, without watches.
// If an operation is not a read, it returns ErrMarshalling, and out holds the results so
// far, which ZooKeeper sends after the header. The parameter most is the largest number of
// bytes that the results may take; if they would take more, MultiRead stops with ErrSystem.
func (t *Tree) MultiRead(c Client, ops []wire.Op, most int, out *wire.MultiResponse) wire.Code {
	t.mu.RLock()
	defer t.mu.RUnlock()
	c.Reserve(t.last)
	out.Results = make([]wire.OpResult, 0, len(ops))
	var memory rulings
	for _, op := range ops {
		r, ok := op.Request.(*wire.PathWatchRequest)
		if !ok {
			return wire.ErrMarshalling
		}
		if most -= t.readBytes(op.Type, r.Path); most < 0 {
			return wire.ErrSystem
		}
		out.Results = append(out.Results, t.readOne(c, &memory, op.Type, r.Path))
	}
	return wire.OK
}

// MultiReadBytes returns about how many bytes the results of a multiRead take.
func (t *Tree) MultiReadBytes(ops []wire.Op) (bytes int) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	for _, op := range ops {
		if r, ok := op.Request.(*wire.PathWatchRequest); ok {
			bytes += t.readBytes(op.Type, r.Path)
		}
	}
	return bytes
}

// ReadBytes returns about how many bytes the answer of one read takes.
func (t *Tree) ReadBytes(op wire.OpCode, path string) int {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.readBytes(op, path)
}

// The bytes of a result without its data or names, and of each name in a listing without
// its text.
const (
	resultBytes = 200
	nameBytes   = 20
)

// readBytes is like ReadBytes, but the caller holds the lock.
func (t *Tree) readBytes(op wire.OpCode, path string) int {
	n := t.find(path)
	switch {
	case n == nil:
		return resultBytes
	case op == wire.OpExists:
		return resultBytes
	case op != wire.OpGetChildren && op != wire.OpGetChildren2:
		return resultBytes + len(n.data())
	}
	if n.children.len() < manyChildren {
		return resultBytes + nameBytes*n.children.len() + namesBytes(n)
	}
	if names := n.children.encoded.get(); names != nil {
		return resultBytes + names.Bytes
	}
	return resultBytes + nameBytes*n.children.len() // reading each name would take too long
}

// readOne carries out one part of a multiRead.
func (t *Tree) readOne(c Client, memory *rulings, op wire.OpCode, path string) wire.OpResult {
	n := t.find(path)
	if n == nil {
		return wire.OpResult{Type: wire.OpError, Err: wire.ErrNoNode}
	}
	if e := &t.acls.entries[n.acl]; e.world&wire.PermRead == 0 && !memory.permits(t, e.list, wire.PermRead, c.Identities()) {
		return wire.OpResult{Type: wire.OpError, Err: wire.ErrNoAuth}
	}
	if op == wire.OpGetChildren && n.children.len() >= manyChildren {
		return wire.OpResult{Type: op, Response: n.children.encode()}
	}
	if op == wire.OpGetChildren {
		return wire.OpResult{Type: op, Response: &wire.ChildrenResponse{Children: names(n)}}
	}
	r := &wire.DataResponse{Data: n.data()}
	t.stat(n, &r.Stat)
	return wire.OpResult{Type: op, Response: r}
}

// Reserve reserves the position of a reply that reads nothing: ping, sync, whoAmI, and
// errors.
func (t *Tree) Reserve(c Client) {
	t.mu.RLock()
	c.Reserve(t.last)
	t.mu.RUnlock()
}
