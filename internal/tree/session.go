package tree

import (
	"maps"
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

// ownedPaths are the paths of a session's ephemerals, sorted.
func (t *Tree) ownedPaths(id wire.SessionID) []string {
	s := t.sessions[id]
	if s == nil {
		return nil
	}
	paths := make([]string, len(s.owned))
	for i, n := range s.owned {
		paths[i] = t.path(n)
	}
	slices.Sort(paths)
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
func (t *Tree) prepareCloseSession(p *proposal) (wire.TxnBody, wire.Code) {
	if !t.open(p.session) {
		return nil, wire.ErrSessionExpired
	}
	paths := t.ownedPaths(p.session)
	for _, e := range t.pend.ephemerals[p.session] {
		paths = append(paths, strings.Clone(e.path))
	}
	slices.Sort(paths)
	paths = slices.Compact(paths)
	paths = slices.DeleteFunc(paths, func(path string) bool {
		var v view
		return !t.look(path, &v) || v.stat.Owner != int64(p.session)
	})
	for _, path := range paths {
		p.remove(path)
	}
	p.setSession(false)
	return &wire.CloseSessionTxn{Paths: listed(paths)}, wire.OK
}

// closeListMax bounds the bytes of a closeSession's list. A record beyond
// jute.maxbuffer could not be read back. What is left out is deleted all the
// same, as everything is that the session owns.
const closeListMax = wire.FrameMax / 2

// listed is as much of the paths as the transaction names; never null, which
// on disk is something else.
func listed(paths []string) []string {
	size := 0
	for i, path := range paths {
		if size += 4 + len(path); size > closeListMax {
			return paths[:i:i]
		}
	}
	if paths == nil {
		return []string{}
	}
	return paths
}

// setSession notes that the session is opened or closed.
func (p *proposal) setSession(live bool) {
	p.t.pend.sessions[p.session] = pendingSession{zxid: p.zxid, live: live}
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
	for _, path := range t.ownedPaths(id) {
		t.applyDelete(path, z)
	}
	t.endSession(id)
}

// EphemeralsBySession lists the sessions with ephemerals, by session id.
func (t *Tree) EphemeralsBySession() []SessionPaths {
	t.mu.RLock()
	defer t.mu.RUnlock()
	var out []SessionPaths
	for _, id := range slices.Sorted(maps.Keys(t.sessions)) {
		if len(t.sessions[id].owned) > 0 {
			out = append(out, SessionPaths{id, t.ownedPaths(id)})
		}
	}
	return out
}
