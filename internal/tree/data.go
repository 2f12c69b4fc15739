package tree

import (
	"bellwether/internal/record"
	"bellwether/wire"
)

// prepareSetData checks in the order that clients rely on: session, path, existence,
// permission, quota, version.
func (p *proposal) prepareSetData(r *wire.SetDataRequest) (wire.OpCode, record.TxnBody, wire.Code) {
	op := wire.OpSetData
	t := p.t
	if code := p.checkSession(); code != wire.OK {
		return op, nil, code
	}
	if !wire.ValidPath(r.Path) {
		return op, nil, wire.ErrBadArguments
	}
	var v view
	if !t.look(r.Path, &v) {
		return op, nil, wire.ErrNoNode
	}
	if !p.permits(v.acl, wire.PermWrite) {
		return op, nil, wire.ErrNoAuth
	}
	if code := t.checkQuota(r.Path, 0, int64(len(r.Data))-int64(v.dataLen)); code != wire.OK {
		return op, nil, code
	}
	if !versionFits(r.Version, v.stat.Version) {
		return op, nil, wire.ErrBadVersion
	}
	after := v
	after.stat.Version = nextVersion(v.stat.Version)
	after.stat.Mzxid, after.stat.Mtime = p.zxid, p.now
	after.dataLen = int32(len(r.Data))
	if !t.o.DigestOff && !v.outside {
		after.crc = t.crcOf(r.Path, r.Data)
	}
	p.put(r.Path, &v, &after)
	return op, &record.SetDataTxn{Path: r.Path, Data: r.Data, Version: after.stat.Version}, wire.OK
}

// applySetData replaces a znode's data. The new version comes from the transaction, so
// applying the transaction twice has the same effect as applying it once.
func (t *Tree) applySetData(s *record.SetDataTxn, h *record.TxnHeader) (*node, wire.Code) {
	n := t.find(s.Path)
	if n == nil {
		return nil, wire.ErrNoNode
	}
	grown := int64(len(s.Data) - n.dataLen())
	t.digest -= t.sum(n)
	n.rewrite(s.Data)
	n.version, n.mzxid, n.mtime = s.Version, h.Zxid, h.Time
	if n.meta&flagOutside == 0 {
		n.crc = t.crcOf(s.Path, s.Data)
	}
	t.digest += t.sum(n)
	t.bytes += grown
	t.account(s.Path, 0, grown)
	t.fire(wire.EventNodeDataChanged, canonical(s.Path), t.acls.entries[n.acl].list, h.Zxid)
	return n, wire.OK
}

// prepareCheck checks in this order: path, existence, permission, version. A check occurs
// only within a multi.
func (p *proposal) prepareCheck(r *wire.PathVersionRequest) (wire.OpCode, record.TxnBody, wire.Code) {
	op := wire.OpCheck
	var v view
	switch {
	case !wire.ValidPath(r.Path):
		return op, nil, wire.ErrBadArguments
	case !p.t.look(r.Path, &v):
		return op, nil, wire.ErrNoNode
	case !p.permits(v.acl, wire.PermRead):
		return op, nil, wire.ErrNoAuth
	case !versionFits(r.Version, v.stat.Version):
		return op, nil, wire.ErrBadVersion
	}
	txn := &record.CheckTxn{Path: r.Path, Version: -1}
	if r.Version != -1 {
		txn.Version = nextVersion(r.Version)
	}
	return op, txn, wire.OK
}
