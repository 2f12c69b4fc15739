package tree

import (
	"bellwether/internal/record"
	"bellwether/wire"
)

// prepareSetACL checks in the order that clients rely on: session, path, form of the ACL,
// existence, permission, version of the ACL.
func (p *proposal) prepareSetACL(r *wire.SetACLRequest) (wire.OpCode, record.TxnBody, wire.Code) {
	op := wire.OpSetACL
	t := p.t
	if code := p.checkSession(); code != wire.OK {
		return op, nil, code
	}
	if !wire.ValidPath(r.Path) {
		return op, nil, wire.ErrBadArguments
	}
	acl, ok := p.resolveACL(r.ACL)
	if !ok {
		return op, nil, wire.ErrInvalidACL
	}
	var v view
	switch {
	case !t.look(r.Path, &v):
		return op, nil, wire.ErrNoNode
	case !p.permits(v.acl, wire.PermAdmin):
		return op, nil, wire.ErrNoAuth
	case !versionFits(r.Version, v.stat.Aversion):
		return op, nil, wire.ErrBadVersion
	}
	after := v
	after.stat.Aversion = nextVersion(v.stat.Aversion)
	after.acl = acl
	p.put(r.Path, &v, &after)
	return op, &record.SetACLTxn{Path: r.Path, ACL: acl, Version: after.stat.Aversion}, wire.OK
}

func (t *Tree) applySetACL(s *record.SetACLTxn) (*node, wire.Code) {
	n := t.find(s.Path)
	if n == nil {
		return nil, wire.ErrNoNode
	}
	place := t.acls.place(s.ACL)
	t.acls.use(place)
	t.acls.release(n.acl)
	t.digest -= t.sum(n)
	n.acl, n.aversion = place, s.Version
	t.digest += t.sum(n)
	return n, wire.OK
}
