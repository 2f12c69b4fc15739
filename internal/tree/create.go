package tree

import (
	"slices"

	"bellwether/internal/record"
	"bellwether/wire"
)

// isSequential, isTTL and isEphemeral decode the flags of a create.
func isSequential(flags int32) bool {
	return flags == wire.FlagPersistentSequential || flags == wire.FlagEphemeralSequential ||
		flags == wire.FlagPersistentSequentialTTL
}

func isTTL(flags int32) bool {
	return flags == wire.FlagPersistentTTL || flags == wire.FlagPersistentSequentialTTL
}

func isEphemeral(op wire.OpCode, flags int32) bool {
	return (op == wire.OpCreate || op == wire.OpCreate2) && (flags == wire.FlagEphemeral || flags == wire.FlagEphemeralSequential)
}

// CreatesEphemeral reports whether a request creates an ephemeral, by itself or within a
// multi. It returns false if the request cannot be decoded.
func CreatesEphemeral(op wire.OpCode, body []byte) bool {
	switch op {
	case wire.OpCreate, wire.OpCreate2:
		r := new(wire.CreateRequest)
		return decode(op, body, r) == wire.OK && isEphemeral(op, r.Flags)
	case wire.OpMulti:
		return MultiCreatesEphemeral(DecodeMulti(body))
	}
	return false
}

// MultiCreatesEphemeral reports whether an operation of a multi creates an ephemeral. m may be nil.
func MultiCreatesEphemeral(m *wire.MultiRequest) bool {
	return m != nil && slices.ContainsFunc(m.Ops, func(o wire.Op) bool {
		r, ok := o.Request.(*wire.CreateRequest)
		return ok && isEphemeral(o.Type, r.Flags)
	})
}

// checkFlags makes the checks that come before the check of the session. A createTTL must
// have a mode with a TTL. ZooKeeper accepts other modes and logs the transaction;
// applying it then fails, at once and at every later start.
func (t *Tree) checkFlags(op wire.OpCode, flags int32, ttl int64) wire.Code {
	switch {
	case flags < wire.FlagPersistent || flags > wire.FlagPersistentSequentialTTL:
		return wire.ErrBadArguments
	case isTTL(flags) && !t.o.ExtendedTypes:
		return wire.ErrUnimplemented
	case isTTL(flags) && (ttl <= 0 || ttl > record.TTLMax):
		return wire.ErrBadArguments
	case isTTL(flags) != (op == wire.OpCreateTTL):
		return wire.ErrBadArguments
	}
	return wire.OK
}

// prepareCreate checks in the order that clients rely on: flags, session, form of the
// path, ACL, parent, permission, full path, existence, kind of parent, quota.
func (p *proposal) prepareCreate(op wire.OpCode, r *wire.CreateRequest, ttl int64) (wire.OpCode, record.TxnBody, wire.Code) {
	t := p.t
	if code := t.checkFlags(op, r.Flags, ttl); code != wire.OK {
		return op, nil, code
	}
	if code := p.checkSession(); code != wire.OK {
		return op, nil, code
	}
	if p.local && isEphemeral(op, r.Flags) {
		return op, nil, wire.ErrEphemeralOnLocalSession
	}
	if r.NullPath {
		return op, nil, wire.ErrMarshalling
	}
	up, _, ok := splitPath(r.Path)
	if !ok {
		return op, nil, wire.ErrBadArguments
	}
	acl, ok := p.resolveACL(r.ACL)
	if !ok {
		return op, nil, wire.ErrInvalidACL
	}
	var parent, v view
	if !t.look(up, &parent) {
		return op, nil, wire.ErrNoNode
	}
	if !p.permits(parent.acl, wire.PermCreate) {
		return op, nil, wire.ErrNoAuth
	}
	path := r.Path
	if isSequential(r.Flags) {
		// The counter stops at its maximum. From then on, sequential creates with a
		// prefix fail with NodeExists once the name is taken.
		path += record.SequenceSuffix(parent.stat.Cversion)
	}
	if code := p.checkPlace(path, &parent, &v, len(r.Data)); code != wire.OK {
		return op, nil, code
	}
	v = view{acl: acl, dataLen: int32(len(r.Data)), outside: parent.outside || outsideDigest(path)}
	v.stat = p.newStat(op, r.Flags, ttl)
	if !t.o.DigestOff {
		v.crc = t.crcOf(path, r.Data)
	}
	counter := parent.stat.Cversion + 1
	after := parent
	after.childCount++
	raiseCounter(&after.stat.Cversion, &after.stat.Pzxid, counter, p.zxid)
	p.put(up, &parent, &after)
	p.put(path, nil, &v)
	if k, _ := t.o.kindOf(v.stat.Owner); k == kindEphemeral {
		p.own(path)
	}
	return op, createTxn(op, path, r.Data, acl, counter, ttl, v.stat.Owner), wire.OK
}

// checkPlace checks the complete path of a create below an existing parent.
func (p *proposal) checkPlace(path string, parent, v *view, size int) wire.Code {
	t := p.t
	if !wire.ValidPath(path) {
		return wire.ErrBadArguments
	}
	if t.look(path, v) {
		return wire.ErrNodeExists
	}
	if k, _ := t.o.kindOf(parent.stat.Owner); k == kindEphemeral {
		return wire.ErrNoChildrenForEphemerals
	}
	return t.checkQuota(path, 1, int64(size))
}

func (p *proposal) newStat(op wire.OpCode, flags int32, ttl int64) record.StatPersisted {
	s := record.StatPersisted{Czxid: p.zxid, Mzxid: p.zxid, Pzxid: p.zxid, Ctime: p.now, Mtime: p.now}
	switch {
	case op == wire.OpCreateContainer:
		s.Owner = record.OwnerContainer
	case op == wire.OpCreateTTL:
		s.Owner = record.TTLOwner(ttl)
	case isEphemeral(op, flags):
		s.Owner = int64(p.session)
	}
	return s
}

func createTxn(op wire.OpCode, path string, data []byte, acl []wire.ACL, counter int32, ttl, owner int64) record.TxnBody {
	switch op {
	case wire.OpCreateContainer:
		return &record.CreateContainerTxn{Path: path, Data: data, ACL: acl, ParentCversion: counter}
	case wire.OpCreateTTL:
		return &record.CreateTTLTxn{Path: path, Data: data, ACL: acl, ParentCversion: counter, TTL: ttl}
	}
	return &record.CreateTxn{Path: path, Data: data, ACL: acl, Ephemeral: owner != 0, ParentCversion: counter}
}

// raiseCounter sets a parent's count of creates to that of a transaction, unless the
// count is higher already: a fuzzy snapshot may contain later children. So the counter
// never decreases, not even at the end of its range.
func raiseCounter(cversion *int32, pzxid *wire.Zxid, counter int32, z wire.Zxid) {
	if counter > *cversion {
		*cversion, *pzxid = counter, z
	}
}

// created is a create transaction of any type.
type created struct {
	path    string
	data    []byte
	acl     []wire.ACL
	counter int32
	owner   int64
}

// above finds the parent of the znode that a transaction creates or deletes. It returns
// nil if the parent does not exist or the path is not that of a child.
func (t *Tree) above(path string) (parent *node, up, name string) {
	up, name, ok := splitPath(path)
	if !ok || name == "" || up == "/" {
		return nil, "", ""
	}
	return t.find(up), up, name
}

func (t *Tree) applyCreate(c *created, h *record.TxnHeader) (*node, wire.Code) {
	parent, up, name := t.above(c.path)
	if parent == nil {
		return nil, wire.ErrNoNode
	}
	hash := t.key.name(name)
	n := parent.children.get(name, hash)
	exists := n != nil
	place := t.acls.place(c.acl)
	t.acls.use(place)
	if exists {
		// The snapshot may name an ACL that was dropped later (ZOOKEEPER-4846).
		t.acls.release(n.acl)
		n.acl = place
	}
	t.digest -= t.sum(parent)
	counter := c.counter
	if counter == -1 {
		counter = parent.cversion + 1
	}
	raiseCounter(&parent.cversion, &parent.pzxid, counter, h.Zxid)
	t.digest += t.sum(parent)
	if exists {
		return n, wire.ErrNodeExists
	}
	n = newNode(name, hash, c.data)
	n.czxid, n.mzxid, n.pzxid = h.Zxid, h.Zxid, h.Zxid
	n.ctime, n.mtime = h.Time, h.Time
	n.owner, n.acl = c.owner, place
	t.attach(parent, n, c.path)
	t.quotaCreated(c.path, n)
	t.fire(wire.EventNodeCreated, c.path, t.acls.entries[n.acl].list, h.Zxid)
	t.fire(wire.EventNodeChildrenChanged, canonical(up), t.acls.entries[parent.acl].list, h.Zxid)
	return n, wire.OK
}
