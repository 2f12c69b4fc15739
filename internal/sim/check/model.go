package check

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"bellwether/internal/record"
	"bellwether/wire"
)

// model is a second implementation of the tree, by ZooKeeper's rules: what each write does to znodes, or with which
// code it must fail. It is slow and simple, and shares no code with package tree, so that a fault there shows.
//
// The znodes are values: a write replaces them, so that past keeps all states of a znode.
type model struct {
	znodes map[string]modelNode
	who    wire.ID            // the client whose request is being carried out
	past   map[string][]state // for reads: ascending by zxid
	made   []made             // changes of the transaction that is being carried out
}

// modelNode is a znode as clients see it.
type modelNode struct {
	data                []byte
	acl                 []wire.ACL
	owner               int64 // 0, the id of a session, or what package record says of containers and TTLs
	version, aversion   int32
	creates, children   int32 // children created so far, and children now
	czxid, mzxid, pzxid wire.Zxid
	mtime               int64
	there               bool
}

// state is what a znode is since a zxid.
type state struct {
	since wire.Zxid
	modelNode
}

// made is a change of a path, with what was there before.
type made struct {
	path   string
	before modelNode
}

func newModel() *model {
	m := &model{znodes: map[string]modelNode{}, past: map[string][]state{}}
	for path, children := range map[string]int32{"/": 1, "/zookeeper": 2, "/zookeeper/quota": 0, "/zookeeper/config": 0} {
		m.znodes[path] = modelNode{acl: wire.OpenACL(), children: children, there: true}
	}
	return m
}

// put changes a znode.
func (m *model) put(path string, n modelNode) {
	m.made = append(m.made, made{path, m.znodes[path]})
	m.znodes[path] = n
}

// undo takes back the changes since mark.
func (m *model) undo(mark int) {
	for i := len(m.made) - 1; i >= mark; i-- {
		m.znodes[m.made[i].path] = m.made[i].before
	}
	m.made = m.made[:mark]
}

// settle ends a transaction. Reads at zxid z and later show its changes.
func (m *model) settle(z wire.Zxid) {
	for _, d := range m.made {
		past := m.past[d.path]
		if n := len(past); n > 0 && past[n-1].since == z {
			past = past[:n-1]
		}
		m.past[d.path] = append(past, state{z, m.znodes[d.path]})
	}
	m.made = m.made[:0]
}

// at returns a znode as of zxid z. It returns false if nothing has changed it yet.
func (m *model) at(path string, z wire.Zxid) (modelNode, bool) {
	past := m.past[path]
	for i := len(past) - 1; i >= 0; i-- {
		if past[i].since <= z {
			return past[i].modelNode, true
		}
	}
	return modelNode{}, false
}

// anyone is the identity that everybody has.
var anyone = wire.ID{Scheme: wire.SchemeWorld, ID: "anyone"}

// permits reports whether a client has one of the permissions in perm.
func (n *modelNode) permits(perm int32, who wire.ID) bool {
	for _, a := range n.acl {
		if (a.ID == anyone || a.ID == who) && a.Perms&perm != 0 {
			return true
		}
	}
	return false
}

// fits reports whether a request is for the version that a znode has.
func fits(asked, version int32) bool { return asked == -1 || asked == version }

// write carries out one operation of a session. If the operation must fail, write returns the code and changes nothing.
func (m *model) write(h *record.TxnHeader, op wire.OpCode, q wire.Record) wire.Code {
	switch q := q.(type) {
	case *wire.CreateRequest:
		return m.create(h, op, q, 0)
	case *wire.CreateTTLRequest:
		return m.create(h, op, &q.CreateRequest, q.TTL)
	case *wire.PathVersionRequest:
		if op == wire.OpCheck {
			return m.check(q)
		}
		return m.delete(h, q)
	case *wire.SetDataRequest:
		return m.setData(h, q)
	case *wire.SetACLRequest:
		return m.setACL(q)
	}
	panic(fmt.Sprintf("check: a simulated client sends %v", op))
}

func (m *model) create(h *record.TxnHeader, op wire.OpCode, q *wire.CreateRequest, ttl int64) wire.Code {
	up := ParentOf(q.Path)
	parent := m.znodes[up]
	path := q.Path
	if q.Flags == wire.FlagPersistentSequential || q.Flags == wire.FlagEphemeralSequential || q.Flags == wire.FlagPersistentSequentialTTL {
		path += fmt.Sprintf("%010d", parent.creates)
	}
	switch {
	case !parent.there:
		return wire.ErrNoNode
	case !parent.permits(wire.PermCreate, m.who):
		return wire.ErrNoAuth
	case m.znodes[path].there:
		return wire.ErrNodeExists
	case parent.owner > 0 && ttlOf(parent.owner) == 0:
		return wire.ErrNoChildrenForEphemerals
	}
	n := modelNode{data: q.Data, acl: resolved(q.ACL, m.who), czxid: h.Zxid, mzxid: h.Zxid, pzxid: h.Zxid, mtime: h.Time, there: true}
	switch {
	case op == wire.OpCreateContainer:
		n.owner = record.OwnerContainer
	case ttl > 0:
		n.owner = record.TTLOwner(ttl)
	case q.Flags == wire.FlagEphemeral || q.Flags == wire.FlagEphemeralSequential:
		n.owner = int64(h.Session)
	}
	parent.creates++
	parent.children++
	parent.pzxid = h.Zxid
	m.put(up, parent)
	m.put(path, n)
	return wire.OK
}

// ttlOf returns the TTL that the owner of a znode stands for; 0: none.
func ttlOf(owner int64) int64 {
	ttl, _ := record.OwnerTTL(owner)
	return ttl
}

func (m *model) delete(h *record.TxnHeader, q *wire.PathVersionRequest) wire.Code {
	parent, n := m.znodes[ParentOf(q.Path)], m.znodes[q.Path]
	switch {
	case !parent.there:
		return wire.ErrNoNode
	case !parent.permits(wire.PermDelete, m.who):
		return wire.ErrNoAuth
	case !n.there:
		return wire.ErrNoNode
	case !fits(q.Version, n.version):
		return wire.ErrBadVersion
	case n.children > 0:
		return wire.ErrNotEmpty
	}
	m.remove(h.Zxid, q.Path)
	return wire.OK
}

// remove removes a znode.
func (m *model) remove(z wire.Zxid, path string) {
	parent := m.znodes[ParentOf(path)]
	parent.children--
	parent.pzxid = z
	m.put(ParentOf(path), parent)
	m.put(path, modelNode{})
}

func (m *model) setData(h *record.TxnHeader, q *wire.SetDataRequest) wire.Code {
	n := m.znodes[q.Path]
	switch {
	case !n.there:
		return wire.ErrNoNode
	case !n.permits(wire.PermWrite, m.who):
		return wire.ErrNoAuth
	case !fits(q.Version, n.version):
		return wire.ErrBadVersion
	}
	n.data, n.mzxid, n.mtime = q.Data, h.Zxid, h.Time
	n.version++
	m.put(q.Path, n)
	return wire.OK
}

func (m *model) setACL(q *wire.SetACLRequest) wire.Code {
	n := m.znodes[q.Path]
	switch {
	case !n.there:
		return wire.ErrNoNode
	case !n.permits(wire.PermAdmin, m.who):
		return wire.ErrNoAuth
	case !fits(q.Version, n.aversion):
		return wire.ErrBadVersion
	}
	n.acl = resolved(q.ACL, m.who)
	n.aversion++
	m.put(q.Path, n)
	return wire.OK
}

func (m *model) check(q *wire.PathVersionRequest) wire.Code {
	n := m.znodes[q.Path]
	switch {
	case !n.there:
		return wire.ErrNoNode
	case !n.permits(wire.PermRead, m.who):
		return wire.ErrNoAuth
	case !fits(q.Version, n.version):
		return wire.ErrBadVersion
	}
	return wire.OK
}

// multi carries out all operations, or none. It returns the index of the operation that fails, and its code.
func (m *model) multi(h *record.TxnHeader, q *wire.MultiRequest) (int, wire.Code) {
	mark := len(m.made)
	for i, op := range q.Ops {
		kind := op.Type
		if c, ok := op.Request.(*wire.CreateRequest); ok && c.Flags == wire.FlagContainer {
			kind = wire.OpCreateContainer
		}
		if code := m.write(h, kind, op.Request); code != wire.OK {
			m.undo(mark)
			return i, code
		}
	}
	return 0, wire.OK
}

// owned returns the ephemerals of a session.
func (m *model) owned(session int64) map[string]bool {
	paths := map[string]bool{}
	for path, n := range m.znodes {
		if n.there && n.owner == session {
			paths[path] = true
		}
	}
	return paths
}

// differs says in what a stat differs from the znode's; "": in nothing. Times are not compared.
func (n *modelNode) differs(s *wire.Stat) string {
	owner := n.owner
	if owner == record.OwnerContainer || ttlOf(owner) > 0 {
		owner = int64(s.EphemeralOwner) // the form in which a client sees it is that of package tree
	}
	want := wire.Stat{
		Czxid: n.czxid, Mzxid: n.mzxid, Pzxid: n.pzxid, Ctime: s.Ctime, Mtime: s.Mtime,
		Version: n.version, Cversion: 2*n.creates - n.children, Aversion: n.aversion,
		EphemeralOwner: wire.SessionID(owner), DataLength: int32(len(n.data)), NumChildren: n.children,
	}
	if *s == want {
		return ""
	}
	return fmt.Sprintf("has stat %+v, should have %+v", *s, want)
}

// read says what is wrong with the answer to a client's read of the znode, which needs one of the permissions in perm;
// "": nothing.
func (n *modelNode) read(code wire.Code, r wire.Record, perm int32, who wire.ID) string {
	want := wire.OK
	switch {
	case !n.there:
		want = wire.ErrNoNode
	case !n.permits(perm, who):
		want = wire.ErrNoAuth
	}
	if code != want {
		return fmt.Sprintf("gets %v, should get %v", code, want)
	}
	if code != wire.OK {
		return ""
	}
	switch r := r.(type) {
	case *wire.DataResponse:
		if !bytes.Equal(r.Data, n.data) {
			return fmt.Sprintf("gets %q, should get %q", r.Data, n.data)
		}
	case *wire.ACLResponse:
		want := n.acl
		if !n.permits(wire.PermAdmin, who) {
			want = masked(want)
		}
		if !slices.Equal(r.ACL, want) {
			return fmt.Sprintf("gets the ACL %v, should get %v", r.ACL, want)
		}
	case *wire.ChildrenStatResponse:
		if int32(len(r.Children)) != n.children {
			return fmt.Sprintf("gets the children %s, there should be %d", strings.Join(r.Children, " "), n.children)
		}
	}
	if s := statOf(r); s != nil {
		return n.differs(s)
	}
	return ""
}
