package tree

import (
	"slices"

	"bellwether/internal/record"
	"bellwether/wire"
)

// prepareDelete checks in the order that clients rely on: session, form of the path,
// parent, permission, existence, version, children.
func (p *proposal) prepareDelete(r *wire.PathVersionRequest) (wire.OpCode, record.TxnBody, wire.Code) {
	return wire.OpDelete, &record.DeleteTxn{Path: r.Path}, p.checkDelete(r)
}

func (p *proposal) checkDelete(r *wire.PathVersionRequest) wire.Code {
	t := p.t
	if code := p.checkSession(); code != wire.OK {
		return code
	}
	up, _, ok := splitPath(r.Path)
	if !ok || reserved(r.Path) {
		return wire.ErrBadArguments
	}
	var parent, v view
	switch {
	case !t.look(up, &parent):
		return wire.ErrNoNode
	case !p.permits(parent.acl, wire.PermDelete):
		return wire.ErrNoAuth
	case !t.look(r.Path, &v):
		return wire.ErrNoNode
	case !versionFits(r.Version, v.stat.Version):
		return wire.ErrBadVersion
	case v.childCount > 0:
		return wire.ErrNotEmpty
	}
	p.remove(r.Path)
	return wire.OK
}

// prepareDeleteContainer checks again whether a container or TTL znode is due. If it is
// not, nothing is proposed.
func (p *proposal) prepareDeleteContainer(r *wire.PathRequest) (wire.OpCode, record.TxnBody, wire.Code) {
	op := wire.OpDeleteContainer
	var v view
	switch {
	case p.session != 0:
		return wire.OpError, nil, wire.ErrUnimplemented
	case !p.t.look(r.Path, &v) || reserved(r.Path):
		return op, nil, wire.ErrNoNode
	case v.childCount > 0:
		return op, nil, wire.ErrNotEmpty
	case !p.t.due(&v.stat, p.now):
		return op, nil, wire.ErrBadVersion
	}
	p.remove(r.Path)
	return op, &record.DeleteTxn{Path: r.Path}, wire.OK
}

// due reports whether a znode without children is to be removed: either a container that
// once had a child or has never had one for too long, or a znode whose TTL has passed.
func (t *Tree) due(s *record.StatPersisted, nowMS int64) bool {
	switch k, ttl := t.o.kindOf(s.Owner); k {
	case kindContainer:
		never := t.o.ContainerMaxNeverUsedMS
		return s.Cversion > 0 || never > 0 && nowMS-s.Mtime > never
	case kindTTL:
		return nowMS-s.Mtime > ttl
	}
	return false
}

// DueContainers lists the containers and TTL znodes that are to be removed at nowMS (ms
// since 1970) by deleteContainer requests, sorted.
func (t *Tree) DueContainers(nowMS int64) []string {
	t.mu.RLock()
	defer t.mu.RUnlock()
	var paths []string
	for _, list := range []nodeList{t.containers, t.ttls} {
		for _, n := range list {
			if s := n.persisted(); n.children.len() == 0 && t.due(&s, nowMS) {
				paths = append(paths, t.path(n))
			}
		}
	}
	slices.Sort(paths)
	return paths
}

// applyDelete removes a znode. It updates the parent even if the znode does not exist any
// more, which happens over a fuzzy snapshot.
func (t *Tree) applyDelete(path string, z wire.Zxid) wire.Code {
	parent, up, name := t.above(path)
	if parent == nil {
		return wire.ErrNoNode
	}
	n := parent.children.get(name, t.key.name(name))
	if n == nil {
		t.raisePzxid(parent, z)
		return wire.ErrNoNode
	}
	t.deleteNode(n, up, path, z)
	return wire.OK
}

// deleteNode removes an existing znode, updates its parent, and queues the events. up is
// the path of the parent.
func (t *Tree) deleteNode(n *node, up, path string, z wire.Zxid) {
	parent, list := n.parent, t.acls.entries[n.acl].list
	t.raisePzxid(parent, z)
	t.detach(n, path)
	t.fire(wire.EventNodeDeleted, path, list, z)
	t.fire(wire.EventNodeChildrenChanged, canonical(up), t.acls.entries[parent.acl].list, z)
}

// raisePzxid records a change of a znode's children.
func (t *Tree) raisePzxid(n *node, z wire.Zxid) {
	if z > n.pzxid {
		t.digest -= t.sum(n)
		n.pzxid = z
		t.digest += t.sum(n)
	}
}
