package tree

import (
	"slices"
	"strings"

	"bellwether/wire"
)

// session is an entry of the session table. One that is not live stands only
// for the ephemerals that name it, as a log replayed over a fuzzy snapshot
// may have them for a while.
type session struct {
	owned     nodeList
	timeoutMS int32
	live      bool
}

// owner returns a session's entry, made where there is none.
func (t *Tree) owner(id wire.SessionID) *session {
	s := t.sessions[id]
	if s == nil {
		s = new(session)
		t.sessions[id] = s
	}
	return s
}

// disown takes an ephemeral off its session's list.
func (t *Tree) disown(n *node) {
	id := wire.SessionID(n.owner)
	s := t.sessions[id]
	if s.owned.remove(n); len(s.owned) == 0 && !s.live {
		delete(t.sessions, id)
	}
}

// located is a znode and where it is.
type located struct {
	path string
	node *node
}

// owned are a session's ephemerals, in no order. Their paths share one piece
// of memory.
func (t *Tree) owned(id wire.SessionID) []located {
	s := t.sessions[id]
	if s == nil || len(s.owned) == 0 {
		return nil
	}
	list := make([]located, len(s.owned))
	t.locate(list, s.owned)
	return list
}

// locate fills in a place for each znode. Siblings mostly stand behind each
// other, so that few parents have to be spelled out.
func (t *Tree) locate(list []located, nodes []*node) {
	const guess = 32 // bytes of a path
	var text strings.Builder
	text.Grow(guess * len(nodes))
	var parent *node
	var up string
	ends := make([]int, len(nodes))
	for i, n := range nodes {
		if n.parent != parent {
			parent = n.parent
			if up = t.path(parent); parent == t.root {
				up = ""
			}
		}
		text.WriteString(up)
		text.WriteByte('/')
		text.Write(n.name())
		ends[i] = text.Len()
	}
	all, begin := text.String(), 0
	for i, n := range nodes {
		list[i] = located{all[begin:ends[i]], n}
		begin = ends[i]
	}
}

func sortLocated(list []located) {
	slices.SortFunc(list, func(a, b located) int { return strings.Compare(a.path, b.path) })
}

// ownedPaths are the paths of a session's ephemerals, in no order.
func (t *Tree) ownedPaths(id wire.SessionID) []string {
	var paths []string
	for _, e := range t.owned(id) {
		paths = append(paths, e.path)
	}
	return paths
}

func (t *Tree) openSession(id wire.SessionID, timeoutMS int32) {
	s := t.owner(id)
	if !s.live {
		s.live = true
		t.live++
	}
	s.timeoutMS = timeoutMS
}

// endSession forgets a session; its ephemerals must be gone already.
func (t *Tree) endSession(id wire.SessionID) {
	s := t.sessions[id]
	if s == nil {
		return
	}
	if s.live {
		s.live = false
		t.live--
	}
	if len(s.owned) == 0 {
		delete(t.sessions, id)
	}
}

// deadOwners are the sessions that own ephemerals without being open, by id.
func (t *Tree) deadOwners() []wire.SessionID {
	var dead []wire.SessionID
	for id, s := range t.sessions {
		if !s.live {
			dead = append(dead, id)
		}
	}
	slices.Sort(dead)
	return dead
}

// Session returns a session's timeout as its transaction had it.
func (t *Tree) Session(id wire.SessionID) (timeoutMS int32, ok bool) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	s := t.sessions[id]
	if s == nil || !s.live {
		return 0, false
	}
	return s.timeoutMS, true
}

// SessionTimeout is a session and its timeout in ms.
type SessionTimeout struct {
	ID        wire.SessionID
	TimeoutMS int32
}

// Sessions calls yield for each open session, by ascending id.
func (t *Tree) Sessions(yield func(id wire.SessionID, timeoutMS int32)) {
	for _, s := range t.sessionTable() {
		yield(s.ID, s.TimeoutMS)
	}
}

func (t *Tree) sessionTable() []SessionTimeout {
	t.mu.RLock()
	table := make([]SessionTimeout, 0, t.live)
	for id, s := range t.sessions {
		if s.live {
			table = append(table, SessionTimeout{id, s.timeoutMS})
		}
	}
	t.mu.RUnlock()
	slices.SortFunc(table, func(a, b SessionTimeout) int {
		if a.ID < b.ID {
			return -1
		}
		return 1
	})
	return table
}

// prepareCreateSession: the body is the timeout.
func (t *Tree) prepareCreateSession(p *proposal, body []byte) (wire.TxnBody, wire.Code) {
	txn := new(wire.CreateSessionTxn)
	if err := wire.Decode(body, txn); err != nil {
		return nil, wire.ErrMarshalling
	}
	p.setSession(true)
	return txn, wire.OK
}

// prepareCloseSession lists what is to be deleted: the committed ephemerals
// and those of pending creates, less those of pending deletes. A session
// that is closing already gets no second transaction.
//
// A session may own very many, so the overlay gets no view of each: look takes
// them for gone because their session's end is pending.
func (t *Tree) prepareCloseSession(p *proposal) (wire.TxnBody, wire.Code) {
	if !t.open(p.session) {
		return nil, wire.ErrSessionExpired
	}
	going := p.going()
	p.removeAll(going)
	p.setSession(false)
	return &wire.CloseSessionTxn{Paths: listed(going)}, wire.OK
}

// going are the ephemerals that the session owns once everything pending is
// applied, sorted. One that a pending transaction has created or changed stands
// without its node.
func (p *proposal) going() []located {
	t := p.t
	list, ended := t.owned(p.session), t.pend.sessions[p.session].ended
	var changed []string
	if len(t.pend.views) > 0 || ended != 0 {
		list = slices.DeleteFunc(list, func(e located) bool {
			if t.pend.views[e.path] != nil {
				changed = append(changed, e.path)
				return true
			}
			return e.node.czxid < ended
		})
	}
	for _, e := range t.pend.ephemerals[p.session] {
		changed = append(changed, strings.Clone(e.path))
	}
	for _, path := range changed {
		var v view
		if t.look(path, &v) && v.stat.Owner == int64(p.session) {
			list = append(list, located{path: path})
		}
	}
	sortLocated(list)
	return slices.CompactFunc(list, func(a, b located) bool { return a.path == b.path })
}

// removeAll takes ephemerals of the session out of the pending digest, and
// tells their parents: once, or a few times where others' children stand
// between theirs.
func (p *proposal) removeAll(going []located) {
	t := p.t
	for i := 0; i < len(going); {
		up, _, _ := splitPath(going[i].path)
		siblings := int32(0)
		for ; i < len(going); i++ {
			if other, _, _ := splitPath(going[i].path); other != up {
				break
			}
			t.pend.digest -= t.sumGoing(&going[i])
			siblings++
		}
		var parent view
		if t.look(up, &parent) {
			after := parent
			after.kids -= siblings
			after.stat.Pzxid = max(after.stat.Pzxid, p.zxid)
			p.put(up, &parent, &after)
		}
	}
}

// sumGoing is the digest of an ephemeral that is to be removed.
func (t *Tree) sumGoing(e *located) uint64 {
	if e.node != nil {
		return t.sum(e.node)
	}
	var v view
	t.look(e.path, &v)
	return t.sumView(&v)
}

// closeListMax bounds the bytes of a closeSession's list. A record beyond
// jute.maxbuffer could not be read back. What is left out is deleted all the
// same, as everything is that the session owns.
const closeListMax = wire.FrameMax / 2

// listed is as many of the paths as the transaction names; never null, which
// on disk is something else. They are copied into one piece of memory of their
// own, as the transaction is kept for long.
func listed(going []located) []string {
	n, size := 0, 0
	for ; n < len(going); n++ {
		if size+4+len(going[n].path) > closeListMax {
			break
		}
		size += 4 + len(going[n].path)
	}
	var text strings.Builder
	text.Grow(size)
	for _, e := range going[:n] {
		text.WriteString(e.path)
	}
	paths, all := make([]string, n), text.String()
	for i, e := range going[:n] {
		paths[i], all = all[:len(e.path)], all[len(e.path):]
	}
	return paths
}

// setSession notes that the session is opened or ended.
func (p *proposal) setSession(live bool) {
	s := p.t.pend.sessions[p.session]
	if s.zxid, s.live = p.zxid, live; !live {
		s.ended = p.zxid
	}
	p.t.pend.sessions[p.session] = s
	p.t.pend.touched.push(touch{zxid: p.zxid, session: p.session})
}

// open reports whether a session is open once everything pending is applied.
func (t *Tree) open(id wire.SessionID) bool {
	if s, ok := t.pend.sessions[id]; ok {
		return s.live
	}
	s := t.sessions[id]
	return s != nil && s.live
}

// applyCloseSession deletes the listed paths in their order, whoever owns
// them, then what else the session is found to own, sorted.
func (t *Tree) applyCloseSession(id wire.SessionID, z wire.Zxid, listed []string) {
	for _, path := range listed {
		t.applyDelete(path, z)
	}
	t.deleteOwned(id, z)
	t.endSession(id)
}

// deleteOwned deletes the ephemerals that a session owns. Their order matters
// only to those who watch: where nobody does, they are deleted a part at a time,
// so that their paths are not all in memory at once.
func (t *Tree) deleteOwned(id wire.SessionID, z wire.Zxid) {
	s := t.sessions[id]
	switch {
	case s == nil:
	case t.watches.total.Load() > 0:
		list := t.owned(id)
		sortLocated(list)
		t.deleteLocated(list, z)
	default:
		for part := range slices.Chunk(slices.Clone(s.owned), snapshotSlice) {
			t.deleteLocated(t.located(part), z)
		}
	}
}

// deleteLocated deletes znodes, except those that an earlier one had below it,
// as a fuzzy snapshot may have them: these are gone with it.
func (t *Tree) deleteLocated(list []located, z wire.Zxid) {
	for _, e := range list {
		if e.node.parent != nil {
			up, _, _ := splitPath(e.path)
			t.deleteNode(e.node, up, e.path, z)
		}
	}
}

// located finds the places of those of the nodes that are still in the tree.
// It changes nodes.
func (t *Tree) located(nodes []*node) []located {
	nodes = slices.DeleteFunc(nodes, func(n *node) bool { return n.parent == nil })
	list := make([]located, len(nodes))
	t.locate(list, nodes)
	return list
}

// EphemeralsBySession lists the sessions with ephemerals, by session id. It
// holds the lock for a part at a time, so the list is not that of one moment.
func (t *Tree) EphemeralsBySession() []SessionPaths {
	var out []SessionPaths
	for _, id := range t.owners() {
		if paths := t.ephemeralsOf(id); len(paths) > 0 {
			out = append(out, SessionPaths{id, paths})
		}
	}
	return out
}

// owners are the sessions with ephemerals, sorted.
func (t *Tree) owners() []wire.SessionID {
	t.mu.RLock()
	var ids []wire.SessionID
	for id, s := range t.sessions {
		if len(s.owned) > 0 {
			ids = append(ids, id)
		}
	}
	t.mu.RUnlock()
	slices.Sort(ids)
	return ids
}

// ephemeralsOf are the paths of a session's ephemerals, sorted, without those
// that are deleted meanwhile.
func (t *Tree) ephemeralsOf(id wire.SessionID) []string {
	t.mu.RLock()
	var nodes []*node
	if s := t.sessions[id]; s != nil {
		nodes = slices.Clone(s.owned)
	}
	t.mu.RUnlock()
	paths := make([]string, 0, len(nodes))
	for part := range slices.Chunk(nodes, snapshotSlice) {
		t.mu.RLock()
		list := t.located(part)
		t.mu.RUnlock()
		for _, e := range list {
			paths = append(paths, e.path)
		}
	}
	slices.Sort(paths)
	return paths
}
