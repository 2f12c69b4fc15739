package replica

import (
	"maps"
	"math"
	"slices"

	"bellwether/internal/election"
	"bellwether/internal/ensemble"
	"bellwether/internal/peerwire"
	"bellwether/internal/record"
	"bellwether/internal/zab"
	"bellwether/wire"
)

// attaching holds what a connection that resumes a session in an ensemble still waits
// for. There are three cases:
//
//   - A native leader answers with a session-move transaction (see proposeMove). When
//     this server applies it, a quorum has confirmed the leader, this server is up to
//     date, and it has applied all requests of the session's earlier connections. Every
//     other server closes such a connection when it applies the transaction. The
//     transaction sets lives, and synced is set from the start. But if this server has
//     joined the leader before, the transaction may answer a question that it asked then.
//     So it also sends a sync, whose answer sets synced.
//   - A compatible leader only answers whether the session lives. A sync that this server
//     sends after the question does the rest. The two answers set lives and synced.
//   - A local session needs only a sync (local.go).
type attaching struct {
	local  bool // the session was local when the connection asked for it
	lives  bool
	synced bool // the sync was answered, or none was needed
}

// hold keeps a new connection waiting while there is no leader. It returns false if this
// server serves clients, and then does nothing. A leader that accepts no clients closes
// the connection.
func (r *Replica) hold(c *conn) bool {
	m := r.member
	c.since = r.now.Mono
	switch {
	case m.refusesClients():
		r.end(c)
		return true
	case m.serving:
		return false
	case m.readers.serves:
		r.admitReader(c)
		return true
	}
	if m.held = append(m.held, c); len(m.held) > 2*len(r.conns) {
		m.dropHeld() // most of them may be closed by now
	}
	m.holdBy = min(m.holdBy, r.holdBy(c))
	if r.refusal(&c.ask) == "" {
		r.locals.touch(c.ask.Session, r.now.Mono)
	}
	return true
}

// stalledHoldMS is how long connections wait for a leader at a server whose disk does not
// answer, in ms. Such a server cannot join a leader before its disk answers. That may
// take long, and other servers may serve meanwhile.
const stalledHoldMS = 500

// joinHoldMS is how long connections wait at a server that has begun to join a leader which others
// follow already, in ms. Those probably serve, and this server may never get the history.
const joinHoldMS = 3000

// holdBy returns the Mono time until which a connection waits for a leader: a third of
// its timeout, so that its client still has time to try another server, but at most
// stalledHoldMS while the disk of this server does not answer, and at most joinHoldMS while it
// joins a leader that others follow.
func (r *Replica) holdBy(c *conn) int64 {
	wait := int64(c.timeout / 3)
	if r.stall.active() {
		wait = min(wait, stalledHoldMS)
	}
	by := c.since + wait
	if began := r.member.joining; began != Never {
		by = min(by, max(c.since, began)+joinHoldMS)
	}
	return by
}

// noteJoining records since when this server tries to join a leader that others follow. It is called when an election is decided.
func (r *Replica) noteJoining() {
	m := r.member
	switch {
	case m.role == peerwire.Leading || m.decision.Ending != election.Follows:
		m.joining = Never
	case m.joining == Never:
		m.joining = r.now.Mono
		m.holdBy = min(m.holdBy, m.joining+joinHoldMS)
	}
}

// holdUntil returns the Mono time at which releaseHeld is due, or Never.
func (r *Replica) holdUntil() int64 {
	if r.member.serving {
		return Never
	}
	return r.member.holdBy
}

// releaseHeld closes connections that have waited too long for a leader.
func (r *Replica) releaseHeld() {
	m := r.member
	if m.serving || r.now.Mono < m.holdBy {
		return
	}
	m.holdBy = Never
	for _, c := range r.connections() {
		switch {
		case c.readOnly:
		case r.now.Mono >= r.holdBy(c):
			r.end(c)
		default:
			m.holdBy = min(m.holdBy, r.holdBy(c))
		}
	}
	m.dropHeld()
}

// dropHeld removes closed connections from held.
func (m *member) dropHeld() {
	m.held = slices.DeleteFunc(m.held, func(c *conn) bool { return c.ended })
}

// admitHeld admits the connections that have waited for a leader.
func (r *Replica) admitHeld() {
	held := r.member.held
	r.member.held = nil
	for _, c := range held {
		if !c.ended {
			r.admit(c)
		}
	}
}

// connections returns the client connections of this server in the order of their ids.
func (r *Replica) connections() []*conn {
	all := make([]*conn, 0, len(r.conns))
	for _, id := range slices.Sorted(maps.Keys(r.conns)) {
		all = append(all, r.conns[id])
	}
	return all
}

// suspend deals with the client connections when a term ends. A connection with a session
// is closed unless keep says that it is kept. A connection without a session waits for
// the next term.
func (r *Replica) suspend() {
	m := r.member
	m.held, m.holdBy = nil, Never
	for _, c := range r.connections() {
		switch {
		case c.session == 0:
			c.attach = attaching{}
			m.held = append(m.held, c)
		case !r.keep(c):
			r.end(c)
			continue
		}
		m.holdBy = min(m.holdBy, r.holdBy(c))
	}
}

// ask asks the leader for the session that a connection wants to resume.
func (r *Replica) ask(c *conn) {
	m, id := r.member, c.ask.Session
	r.closeOlder(id)
	if m.leads() && m.opt.CompatibleOnly { // a ZooKeeper leader proposes nothing, and attaches at once
		r.setServerOf(id, r.opt.ServerID)
		c.attach.lives, c.attach.synced = true, true
		r.attachWhenDue(c)
		return
	}
	m.asking[id] = append(m.asking[id], c)
	c.attach.synced = m.leads() || m.learner.Native() && !m.rejoined
	if m.leads() {
		r.setServerOf(id, r.opt.ServerID)
		r.proposeMove(id, r.opt.ServerID)
		return
	}
	m.learner.Step(r.now.Mono, zab.Revalidate{Revalidation: peerwire.Revalidation{Session: id, TimeoutMS: c.timeout}})
	if !c.attach.synced {
		m.syncs[r.syncToken(id)] = c
	}
}

// closeOlder closes the other connections that this server has for a session that a new
// connection resumes. A request that the client still sends on one of them comes after
// the session-move transaction and has no effect.
func (r *Replica) closeOlder(id wire.SessionID) {
	if c := r.owners[id]; c != nil {
		r.observe(SessionMoved{id})
		r.end(c)
	}
	r.closeMoved(id)
	for _, c := range r.member.asking[id] {
		r.end(c) // it stays in asking, so that the leader's answers are matched to the connections in order
	}
}

// closeMoved closes the connection of a session that has moved here, if it still waits for its sync.
func (r *Replica) closeMoved(id wire.SessionID) {
	if r.member == nil {
		return
	}
	if c := r.member.moved[id]; c != nil {
		delete(r.member.moved, id)
		r.end(c)
	}
}

// proposeMove proposes a session-move transaction. It says that from its place in the
// history on, the newest connection of the session is at the given server. It is an error
// transaction, which changes nothing in any tree, and no request has its cxid (moveCxid).
func (r *Replica) proposeMove(id wire.SessionID, at ensemble.ServerID) {
	q := peerwire.ForwardedRequest{Session: id, Cxid: moveCxid(at)}
	r.proposeError(&q, wire.ErrSessionMoved)
}

// moveCxid returns the cxid that names a server in a session-move transaction. It is
// negative, so no request has it.
func moveCxid(at ensemble.ServerID) int32 { return math.MinInt32 | int32(at&math.MaxInt32) }

// moveApplied acts on a session-move transaction that is applied. If it names this server, the
// connection that asked first for the session is attached. Otherwise the session's
// connection here, if any, is closed, because its client has left it.
func (r *Replica) moveApplied(txn *record.Txn) {
	id := txn.Session
	if txn.Cxid == moveCxid(r.opt.ServerID) {
		if c := r.firstAsking(id); c != nil {
			if c.attach.lives = true; !c.attach.synced {
				r.member.moved[id] = c
			}
			r.attachWhenDue(c)
		}
		return
	}
	r.closeMoved(id)
	if c := r.owners[id]; c != nil {
		r.observe(SessionMoved{id})
		r.end(c)
	}
}

// firstAsking removes the connection that asked first for a session, and returns it. It
// returns nil if there is none or it is closed.
func (r *Replica) firstAsking(id wire.SessionID) *conn {
	if r.member == nil {
		return nil
	}
	waiting := r.member.asking[id]
	if len(waiting) == 0 {
		return nil
	}
	if len(waiting) == 1 {
		delete(r.member.asking, id)
	} else {
		r.member.asking[id] = waiting[1:]
	}
	if c := waiting[0]; !c.ended {
		return c
	}
	return nil
}

// sync asks the leader for a client sync and returns its token. When the sync is
// answered, everything that was acknowledged before it is applied here.
func (r *Replica) sync(c *conn) uint64 {
	token := r.syncToken(c.session)
	r.member.syncs[token] = c
	return token
}

func (r *Replica) syncToken(id wire.SessionID) uint64 {
	m := r.member
	m.token++
	e := zab.Sync{Token: m.token}
	if m.learner != nil {
		e.Request.Request = peerwire.ForwardedRequest{
			Session: id, Op: wire.OpSync, Body: wire.Append(nil, &wire.PathRequest{Path: "/"}),
		}
	}
	m.step(r.now.Mono, e)
	return m.token
}

// syncDone completes a client sync: its answer has come, and everything before it is
// applied.
func (r *Replica) syncDone(token uint64) {
	c := r.member.syncs[token]
	delete(r.member.syncs, token)
	r.member.rejoined = false // everything that the leader had proposed before this server joined is applied
	switch {
	case c == nil || c.ended:
	case c.session == 0:
		c.attach.synced = true
		r.attachWhenDue(c)
	default:
		for i := range c.waiting.Len() {
			if q := *c.waiting.At(i); q.token == token {
				q.token = 0
				break
			}
		}
		r.answerOldest(c)
		r.beginHeld(c)
		r.answerOldest(c)
	}
}

// revalidated acts on the leader's answer whether a session lives.
func (r *Replica) revalidated(a peerwire.Revalidated) {
	c := r.firstAsking(a.Session)
	switch {
	case c == nil:
	case !a.Valid:
		r.refuse(c, "probably expired")
	default:
		c.attach.lives = true
		r.attachWhenDue(c)
	}
}

// attachWhenDue attaches a connection to its session when all answers that attaching
// names have come. The session may have ended between them.
func (r *Replica) attachWhenDue(c *conn) {
	if c.attach.local {
		r.attachLocal(c)
		return
	}
	if !c.attach.lives || !c.attach.synced {
		return
	}
	delete(r.member.moved, c.ask.Session)
	if id := c.ask.Session; r.isOpen(id) {
		r.attach(c, id)
	} else {
		r.refuse(c, "probably expired")
	}
}

// setServerOf records on the leader which server a session's connection is at. It must be
// called when the transaction that moves the session is proposed, not when it is applied.
func (r *Replica) setServerOf(id wire.SessionID, at ensemble.ServerID) {
	if r.member != nil {
		r.member.serverOf[id] = at
	}
}

// forget drops what this server records about a session that has ended.
func (r *Replica) forget(id wire.SessionID) {
	if r.member != nil {
		delete(r.member.serverOf, id)
		if r.member.opt.LocalSessions && r.decides() {
			r.member.endedSessions.add(id)
		}
	}
}
