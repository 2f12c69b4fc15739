package tree

import (
	"bellwether/internal/fifo"
	"bellwether/internal/record"
	"bellwether/wire"
)

// pending holds what has been prepared and not applied yet: an overlay of the committed
// state, by path.
//
// Invariants: touched and closings ascend by zxid; each view, session and list of
// ephemerals has an entry in touched that removes it.
type pending struct {
	views    map[string]*view
	sessions map[wire.SessionID]pendingSession
	// ephemerals are the pending creates of each session, oldest first.
	ephemerals map[wire.SessionID][]touch
	// closings are the pending ends of sessions, oldest first. losses are the znodes
	// without a view that lose children because of them. Both exist to save memory: a
	// session may own an ephemeral in each of very many directories, and a view of each
	// directory would take several times as much.
	losses   map[*node]pendingLoss
	closings fifo.Queue[closing]
	// touched lists every change of views, sessions and ephemerals, oldest first, so that
	// each is removed when its transaction is applied.
	touched fifo.Queue[touch]
	// digest is the digest that the tree will have once everything pending is applied.
	digest uint64
}

// view is a znode as the next request will find it. Only the transaction that added the
// view to the overlay changes it.
type view struct {
	stat       record.StatPersisted
	acl        []wire.ACL
	zxid       wire.Zxid // zxid of the transaction that changed it last; 0: committed
	childCount int32
	dataLen    int32
	crc        uint32
	outside    bool
	gone       bool
}

// pendingSession is a session that a pending transaction has opened or ended.
type pendingSession struct {
	zxid wire.Zxid // zxid of the last transaction that opened or closed the session
	live bool      // the last such transaction has opened the session
	// ended is the zxid of the last transaction that ended the session; 0: none did.
	// Ephemerals that the session owned before that transaction are deleted.
	ended wire.Zxid
}

// pendingLoss is the number of children that a znode loses because ends of sessions are
// pending.
type pendingLoss struct {
	count int32
	zxid  wire.Zxid // zxid of the last of these ends, which becomes the znode's pzxid
}

// closing is a pending end of a session, with the children that it removes from znodes
// that have no view.
type closing struct {
	zxid wire.Zxid
	from []childLoss
}

// childLoss is how many children a znode loses. A znode may occur more than once.
type childLoss struct {
	parent *node
	count  int32
}

// touch is one change by a pending transaction, of a path or of a session.
type touch struct {
	zxid    wire.Zxid
	path    string
	session wire.SessionID
}

func (p *pending) clear() {
	*p = pending{
		views:      map[string]*view{},
		sessions:   map[wire.SessionID]pendingSession{},
		ephemerals: map[wire.SessionID][]touch{},
	}
}

// applied removes from the overlay everything that the transactions up to z have added.
func (p *pending) applied(z wire.Zxid) {
	p.left(z)
	for f := p.touched.First(); f != nil && f.zxid <= z; f = p.touched.First() {
		c := p.touched.Pop()
		if c.path != "" {
			if v := p.views[c.path]; v != nil && v.zxid <= z {
				delete(p.views, c.path)
			}
			continue
		}
		if s, ok := p.sessions[c.session]; ok && s.zxid <= z {
			delete(p.sessions, c.session)
		}
		p.trim(c.session, z)
	}
}

// left removes from losses the children that ends of sessions up to z have removed.
func (p *pending) left(z wire.Zxid) {
	for c := p.closings.First(); c != nil && c.zxid <= z; c = p.closings.First() {
		for _, d := range c.from {
			if p.closings.Len() == 1 {
				break
			}
			if l := p.losses[d.parent]; l.count > d.count {
				l.count -= d.count
				p.losses[d.parent] = l
			} else {
				delete(p.losses, d.parent)
			}
		}
		p.closings.Pop()
	}
	if p.closings.Len() == 0 {
		p.losses = nil
	}
}

// trim removes a session's creates up to z from ephemerals.
func (p *pending) trim(id wire.SessionID, z wire.Zxid) {
	list := p.ephemerals[id]
	n := 0
	for n < len(list) && list[n].zxid <= z {
		n++
	}
	if n == len(list) {
		delete(p.ephemerals, id)
	} else if n > 0 {
		p.ephemerals[id] = list[n:]
	}
}

// Discard drops everything that is prepared and not applied.
func (t *Tree) Discard() { t.pend.clear() }

// look fills in v for the znode at a path, as the next request will find it. The path is
// looked up verbatim. It returns false if there is no such znode.
func (t *Tree) look(path string, v *view) bool {
	if p := t.pend.views[canonical(path)]; p != nil {
		*v = *p
		return !p.gone && !t.ended(v)
	}
	n := t.find(path)
	if n == nil {
		return false
	}
	t.view(n, v)
	return !t.ended(v)
}

// view fills in v for a znode that has no view in the overlay.
func (t *Tree) view(n *node, v *view) {
	*v = view{
		stat: n.persisted(), acl: t.acls.entries[n.acl].list, childCount: int32(n.children.len()),
		dataLen: int32(n.dataLen()), crc: n.crc, outside: n.meta&flagOutside != 0,
	}
	if len(t.pend.losses) > 0 {
		l := t.pend.losses[n]
		v.childCount -= l.count
		v.stat.Pzxid = max(v.stat.Pzxid, l.zxid)
	}
}

// ended reports whether a znode is removed by the pending end of its session.
func (t *Tree) ended(v *view) bool {
	if len(t.pend.sessions) == 0 || v.stat.Owner == 0 {
		return false
	}
	kind, _ := t.o.kindOf(v.stat.Owner)
	return kind == kindEphemeral && v.stat.Czxid < t.pend.sessions[wire.SessionID(v.stat.Owner)].ended
}

// sumView returns the digest that a znode will have.
func (t *Tree) sumView(v *view) uint64 {
	if t.o.DigestOff || v.outside || v.gone {
		return 0
	}
	return t.finish(v.crc, &v.stat)
}

// proposal is a transaction that is being prepared. Its changes of the overlay can be
// rolled back, which is needed when a multi fails.
type proposal struct {
	t       *Tree
	zxid    wire.Zxid
	now     int64
	session wire.SessionID
	ids     []wire.ID
	multi   bool
	local   bool // the session exists on one server only
	undo    []undoStep
	// reconfigure is Request.Reconfigure.
	reconfigure func(r *wire.ReconfigRequest, permitted bool, z wire.Zxid) (string, wire.Code)
	// expanded is the total size of the ids by which entries of the scheme auth were
	// replaced, in bytes.
	expanded int
	rulings  rulings
}

// permits reports whether a list gives the client a permission.
func (p *proposal) permits(list []wire.ACL, perm int32) bool {
	return p.rulings.permits(p.t, list, perm, p.ids)
}

// undoStep holds what the overlay held for a path before a change.
type undoStep struct {
	path string
	view *view
}

// put makes v the view that the next request finds at path, in place of old (nil: there
// was no znode), and updates the digest.
func (p *proposal) put(path string, old, v *view) {
	t := p.t
	path = canonical(path)
	if old != nil {
		t.pend.digest -= t.sumView(old)
	}
	t.pend.digest += t.sumView(v)
	if before := t.pend.views[path]; before != nil && before.zxid == p.zxid {
		// An earlier operation of this multi has added the view, and recorded what was
		// there before.
		*before = *v
		before.zxid = p.zxid
		return
	}
	if p.multi {
		p.undo = append(p.undo, undoStep{path, t.pend.views[path]})
	}
	kept := new(view)
	*kept = *v
	kept.zxid = p.zxid
	t.pend.views[path] = kept
	t.pend.touched.Push(touch{zxid: p.zxid, path: path})
}

// own records the create of an ephemeral.
func (p *proposal) own(path string) {
	c := touch{zxid: p.zxid, path: path}
	pend := &p.t.pend
	pend.ephemerals[p.session] = append(pend.ephemerals[p.session], c)
	pend.touched.Push(touch{zxid: p.zxid, session: p.session})
}

// remove removes an existing znode, and updates its parent.
func (p *proposal) remove(path string) {
	var v, parent view
	if !p.t.look(path, &v) {
		return
	}
	gone := v
	gone.gone = true
	p.put(path, &v, &gone)
	up, _, _ := splitPath(path)
	if !p.t.look(up, &parent) {
		return
	}
	after := parent
	after.childCount--
	after.stat.Pzxid = max(after.stat.Pzxid, p.zxid)
	p.put(up, &parent, &after)
}

// mark is a state of the overlay, to which rollback returns.
type mark struct {
	digest  uint64
	touched int
}

func (p *proposal) mark() mark {
	return mark{p.t.pend.digest, p.t.pend.touched.Len()}
}

func (p *proposal) rollback(m mark) {
	pend := &p.t.pend
	pend.digest = m.digest
	for i := len(p.undo) - 1; i >= 0; i-- {
		if u := p.undo[i]; u.view != nil {
			pend.views[u.path] = u.view
		} else {
			delete(pend.views, u.path)
		}
	}
	p.undo = p.undo[:0]
	pend.touched.Truncate(m.touched)
	pend.untrim(p.session, p.zxid)
}

// untrim removes from ephemerals the newest creates of a session, those of transaction z.
func (p *pending) untrim(id wire.SessionID, z wire.Zxid) {
	list := p.ephemerals[id]
	for len(list) > 0 && list[len(list)-1].zxid == z {
		list = list[:len(list)-1]
	}
	if len(list) == 0 {
		delete(p.ephemerals, id)
	} else {
		p.ephemerals[id] = list
	}
}
