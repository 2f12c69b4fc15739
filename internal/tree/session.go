package tree

import (
	"slices"
	"strings"

	"bellwether/internal/record"
	"bellwether/wire"
)

// session is an entry of the session table. An entry that is not live exists only because
// ephemerals name the session as owner. While a log is replayed over a fuzzy snapshot,
// there may be such entries.
//
// Invariants: an entry is live or owns an ephemeral; owned holds exactly the znodes of
// the tree whose owner is this session; Tree.live is the number of live entries.
type session struct {
	owned     nodeList
	timeoutMS int32
	live      bool
}

// owner returns a session's entry, and makes it if there is none.
func (t *Tree) owner(id wire.SessionID) *session {
	s := t.sessions[id]
	if s == nil {
		s = new(session)
		t.sessions[id] = s
	}
	return s
}

// disown removes an ephemeral from its session's list.
func (t *Tree) disown(n *node) {
	id := wire.SessionID(n.owner)
	s := t.sessions[id]
	if s.owned.remove(n); len(s.owned) == 0 && !s.live {
		delete(t.sessions, id)
	}
}

// located is a znode with its path.
type located struct {
	path string
	node *node
}

// locate fills in the path of each znode. The paths share one piece of memory. Siblings
// mostly follow each other in the list, so that few parent paths have to be built.
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

// ownedPaths returns the paths of a session's ephemerals, in no order.
func (t *Tree) ownedPaths(id wire.SessionID) []string {
	nodes := t.ownedNodes(id)
	list, paths := make([]located, len(nodes)), make([]string, len(nodes))
	t.locate(list, nodes)
	for i, e := range list {
		paths[i] = e.path
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

// endSession removes a session. The caller has deleted its ephemerals.
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

// deadOwners returns the sessions that own ephemerals without being open, by id.
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

// Session returns the timeout that the session's createSession transaction set.
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

// prepareCreateSession decodes the timeout, which is the body.
func (t *Tree) prepareCreateSession(p *proposal, body []byte) (record.TxnBody, wire.Code) {
	txn := new(record.CreateSessionTxn)
	if err := wire.Decode(body, txn); err != nil {
		return nil, wire.ErrMarshalling
	}
	p.setSession(true)
	return txn, wire.OK
}

// prepareCloseSession lists the ephemerals to be deleted: the committed ones and those of
// pending creates, without those that a pending transaction deletes. A session that is
// closing already gets no second transaction.
//
// A session may own very many ephemerals, so the overlay gets no view of each. Instead,
// look treats an ephemeral as deleted if the end of its session is pending.
func (t *Tree) prepareCloseSession(p *proposal) (record.TxnBody, wire.Code) {
	if !t.open(p.session) {
		return nil, wire.ErrSessionExpired
	}
	going, changed := p.going()
	p.removeUntouched(going)
	p.removeTouched(changed)
	p.setSession(false)
	return &record.CloseSessionTxn{Paths: t.listed(going.nodes, changed)}, wire.OK
}

// untouched holds the ephemerals that the end of a session deletes and that no pending
// transaction has changed. overlaid holds the paths of their parents that have a view in the
// overlay; it may also contain other znodes with a view.
type untouched struct {
	nodes    []*node
	overlaid map[*node]string
}

// going returns the ephemerals that the session owns once everything pending is applied,
// in two groups: those that no pending transaction has changed, and the sorted paths of
// those that a pending transaction has created or changed.
func (p *proposal) going() (untouched, []string) {
	t := p.t
	g := untouched{nodes: t.ownedNodes(p.session)}
	g.overlaid = t.overlaid(g.nodes)
	var changed []string
	if ended := t.pend.sessions[p.session].ended; len(g.overlaid) > 0 || ended != 0 {
		g.nodes = slices.DeleteFunc(slices.Clone(g.nodes), func(n *node) bool {
			path, has := g.overlaid[n]
			if has {
				changed = append(changed, path)
			}
			return has || n.czxid < ended
		})
	}
	for _, e := range t.pend.ephemerals[p.session] {
		changed = append(changed, strings.Clone(e.path))
	}
	changed = slices.DeleteFunc(changed, func(path string) bool {
		var v view
		return !t.look(path, &v) || v.stat.Owner != int64(p.session)
	})
	slices.Sort(changed)
	return g, slices.Compact(changed)
}

// ownedNodes returns a session's ephemerals, in no order. The slice belongs to the tree.
func (t *Tree) ownedNodes(id wire.SessionID) []*node {
	if s := t.sessions[id]; s != nil {
		return s.owned
	}
	return nil
}

// overlaid returns the paths of those znodes and parents of znodes that have a view in
// the overlay; the map may contain other znodes too. It goes through all views or through
// all nodes, whichever are fewer.
func (t *Tree) overlaid(nodes []*node) map[*node]string {
	views := t.pend.views
	if len(views) == 0 || len(nodes) == 0 {
		return nil
	}
	found := map[*node]string{}
	if len(views) < len(nodes) {
		for path := range views {
			if n := t.find(path); n != nil {
				found[n] = path
			}
		}
		return found
	}
	for _, n := range nodes {
		for _, m := range []*node{n, n.parent} {
			if path := t.path(m); views[path] != nil {
				found[m] = path
			}
		}
	}
	return found
}

// removeUntouched removes the session's untouched ephemerals from the pending digest and
// from the pending children counts of their parents.
func (p *proposal) removeUntouched(g untouched) {
	t, pend := p.t, &p.t.pend
	c := closing{zxid: p.zxid}
	for i, n := range g.nodes {
		t.mayYield(i)
		pend.digest -= t.sum(n)
		if _, has := g.overlaid[n.parent]; has {
			p.removeChildren(g.overlaid[n.parent], 1)
		} else if last := len(c.from) - 1; last >= 0 && c.from[last].parent == n.parent {
			c.from[last].count++
		} else {
			c.from = append(c.from, childLoss{n.parent, 1})
		}
	}
	if len(c.from) == 0 {
		return
	}
	if pend.losses == nil {
		pend.losses = make(map[*node]pendingLoss, len(c.from))
	}
	for i, d := range c.from {
		t.mayYield(i)
		l := pend.losses[d.parent]
		if l.zxid != p.zxid {
			pend.digest += t.sumAt(d.parent, p.zxid) - t.sumAt(d.parent, l.zxid)
		}
		pend.losses[d.parent] = pendingLoss{l.count + d.count, p.zxid}
	}
	pend.closings.Push(c)
}

// removeTouched removes the session's ephemerals that have a view from the pending
// digest, and updates their parents. Each parent is updated once, or a few times if paths
// of other parents' children are sorted between those of its own.
func (p *proposal) removeTouched(paths []string) {
	t := p.t
	for i := 0; i < len(paths); {
		up, _, _ := splitPath(paths[i])
		siblings := int32(0)
		for ; i < len(paths); i++ {
			if other, _, _ := splitPath(paths[i]); other != up {
				break
			}
			var v view
			t.look(paths[i], &v)
			t.pend.digest -= t.sumView(&v)
			siblings++
		}
		p.removeChildren(up, siblings)
	}
}

// removeChildren removes children from a znode in the overlay.
func (p *proposal) removeChildren(path string, kids int32) {
	var v view
	if !p.t.look(path, &v) {
		return
	}
	after := v
	after.childCount -= kids
	after.stat.Pzxid = max(after.stat.Pzxid, p.zxid)
	p.put(path, &v, &after)
}

// closeListMax limits the bytes of a closeSession's list, because a record larger than
// jute.maxbuffer could not be read back. Ephemerals that are left out are deleted too,
// because the session owns them.
const closeListMax = wire.FrameMax / 2

// sortedMax is the largest number of ephemerals of one session that are deleted in the
// order of their paths. If there are more, the order is arbitrary, because sorting would
// take as long as all other work.
const sortedMax = 10_000

// listed returns the paths that the transaction names, as many as closeListMax allows.
// The result is never null, because null is encoded differently.
func (t *Tree) listed(nodes []*node, changed []string) []string {
	n, size := 0, 0
	for n < len(nodes) && (size <= closeListMax || len(nodes) <= sortedMax) {
		size += 4 + t.pathLen(nodes[n])
		n++
	}
	list := make([]located, n, n+len(changed))
	t.locate(list, nodes[:n])
	for _, path := range changed {
		list = append(list, located{path: path})
	}
	if len(list) <= sortedMax {
		sortLocated(list)
	}
	return copied(list)
}

// copied copies the paths that a transaction names into one piece of memory, because the
// transaction is kept for a long time.
func copied(list []located) []string {
	n, size := 0, 0
	for ; n < len(list); n++ {
		if size+4+len(list[n].path) > closeListMax {
			break
		}
		size += 4 + len(list[n].path)
	}
	var text strings.Builder
	text.Grow(size)
	for _, e := range list[:n] {
		text.WriteString(e.path)
	}
	paths, all := make([]string, n), text.String()
	for i, e := range list[:n] {
		paths[i], all = all[:len(e.path)], all[len(e.path):]
	}
	return paths
}

// setSession records that the session is opened or ended.
func (p *proposal) setSession(live bool) {
	s := p.t.pend.sessions[p.session]
	if s.zxid, s.live = p.zxid, live; !live {
		s.ended = p.zxid
	}
	p.t.pend.sessions[p.session] = s
	p.t.pend.touched.Push(touch{zxid: p.zxid, session: p.session})
}

// open reports whether a session is open once everything pending is applied.
func (t *Tree) open(id wire.SessionID) bool {
	if s, ok := t.pend.sessions[id]; ok {
		return s.live
	}
	s := t.sessions[id]
	return s != nil && s.live
}

// applyCloseSession deletes the listed paths in their order, whoever owns them. Then it
// deletes all other znodes that the session owns, sorted unless they are too many.
func (t *Tree) applyCloseSession(id wire.SessionID, z wire.Zxid, listed []string) {
	for i, path := range listed {
		t.mayYield(i)
		if t.applyDelete(path, z) == wire.OK && t.o.SessionDeleted != nil {
			t.o.SessionDeleted(id, path)
		}
	}
	t.deleteOwned(id, z)
	t.endSession(id)
}

// deleteOwned deletes the ephemerals that a session owns. If clients may watch them and
// they are not too many, it deletes them in order; otherwise part by part, so that not
// all paths are in memory at once.
func (t *Tree) deleteOwned(id wire.SessionID, z wire.Zxid) {
	nodes := slices.Clone(t.ownedNodes(id))
	if len(nodes) <= sortedMax && t.watches.total.Load() > 0 {
		list := t.located(nodes)
		sortLocated(list)
		t.deleteLocated(id, list, z)
		return
	}
	for part := range slices.Chunk(nodes, snapshotSlice) {
		t.yield()
		t.deleteLocated(id, t.located(part), z)
	}
}

// deleteLocated deletes znodes of a session. It skips those that were deleted together
// with an earlier one of the list, because they were below it. That happens only over a
// fuzzy snapshot.
func (t *Tree) deleteLocated(id wire.SessionID, list []located, z wire.Zxid) {
	for i, e := range list {
		t.mayYield(i)
		if e.node.parent != nil {
			up, _, _ := splitPath(e.path)
			t.deleteNode(e.node, up, e.path, z)
			if t.o.SessionDeleted != nil {
				t.o.SessionDeleted(id, e.path)
			}
		}
	}
}

// located returns those of the nodes that are still in the tree, with their paths. It
// overwrites the slice nodes.
func (t *Tree) located(nodes []*node) []located {
	nodes = slices.DeleteFunc(nodes, func(n *node) bool { return n.parent == nil })
	list := make([]located, len(nodes))
	t.locate(list, nodes)
	return list
}

// EphemeralsBySession lists the sessions with ephemerals, by session id. It takes the
// lock for one part at a time, so the list does not show one moment.
func (t *Tree) EphemeralsBySession() []SessionPaths {
	var out []SessionPaths
	for _, id := range t.owners() {
		if paths := t.ephemeralsOf(id); len(paths) > 0 {
			out = append(out, SessionPaths{id, paths})
		}
	}
	return out
}

// EphemeralCounts returns how many ephemerals each session has that has any.
func (t *Tree) EphemeralCounts() map[wire.SessionID]int {
	t.mu.RLock()
	defer t.mu.RUnlock()
	counts := map[wire.SessionID]int{}
	for id, s := range t.sessions {
		if len(s.owned) > 0 {
			counts[id] = len(s.owned)
		}
	}
	return counts
}

// owners returns the sessions with ephemerals, sorted.
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

// ephemeralsOf returns the paths of a session's ephemerals, sorted. Ephemerals that are
// deleted meanwhile are left out.
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
