package replica

import (
	"maps"
	"math"
	"slices"

	"bellwether/internal/ensemble"
	"bellwether/internal/peerwire"
	"bellwether/internal/record"
	"bellwether/internal/zab"
	"bellwether/wire"
)

// attaching is how far a connection has come that takes a session up again in
// an ensemble. A leader of our kind answers the question with a mark in the
// history (mark): when that is applied the leader was one, this server is up
// to date, everything which an earlier connection of the session had asked for
// is applied here, and every server knows that earlier ones are out of date.
// Another leader says that the session lives, and a sync behind that question
// does for the rest.
type attaching struct {
	local  bool // it lived here alone when that was asked: a sync does for all (local.go)
	lives  bool
	synced bool
}

// hold keeps a new connection until there is a leader; false if there is one. A
// leader that serves no clients ends it.
func (r *Replica) hold(c *conn) bool {
	m := r.member
	c.since = r.now.Mono
	switch {
	case m.aloof():
		r.end(c)
		return true
	case m.serving:
		return false
	case m.readers.serves:
		r.admitReader(c)
		return true
	}
	if m.held = append(m.held, c); len(m.held) > 2*len(r.conns) {
		m.dropHeld() // many have come and gone
	}
	m.holdBy = min(m.holdBy, r.holdBy(c))
	if r.refusal(&c.ask) == "" {
		r.locals.touch(c.ask.Session, r.now.Mono)
	}
	return true
}

// stalledHoldMS is how long connections wait at a server whose disk does not
// answer, in ms. It cannot join a leader before its disk answers, which may take
// long, and other servers may serve meanwhile.
const stalledHoldMS = 500

// holdBy is until when a connection waits for a leader: a third of its timeout,
// so that its client can still try another server, and at most stalledHoldMS
// while the disk of this one does not answer.
func (r *Replica) holdBy(c *conn) int64 {
	wait := int64(c.timeout / 3)
	if r.stall.active() {
		wait = min(wait, stalledHoldMS)
	}
	return c.since + wait
}

// holdUntil is when releaseHeld is due.
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

// dropHeld forgets those that wait no more.
func (m *member) dropHeld() {
	m.held = slices.DeleteFunc(m.held, func(c *conn) bool { return c.gone })
}

// admitHeld lets in who has waited for a leader.
func (r *Replica) admitHeld() {
	held := r.member.held
	r.member.held = nil
	for _, c := range held {
		if !c.gone {
			r.admit(c)
		}
	}
}

// connections are those of this server, by their ids.
func (r *Replica) connections() []*conn {
	all := make([]*conn, 0, len(r.conns))
	for _, id := range slices.Sorted(maps.Keys(r.conns)) {
		all = append(all, r.conns[id])
	}
	return all
}

// suspend ends what clients have of a term that is over: a connection with a
// session is closed, if it is not kept, and what asked for one waits for the
// next term.
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

// ask asks the leader for a session that a connection wants to take up again.
func (r *Replica) ask(c *conn) {
	m, id := r.member, c.ask.Session
	r.outdate(id)
	m.asking[id] = append(m.asking[id], c)
	if m.leads() {
		r.keeps(id, r.opt.ServerID)
		r.mark(id, r.opt.ServerID)
		return
	}
	m.learner.Step(r.now.Mono, zab.Revalidate{Revalidation: peerwire.Revalidation{Session: id, TimeoutMS: c.timeout}})
	if !m.learner.Ours() {
		m.syncs[r.syncToken(id)] = c
	}
}

// outdate closes what this server has of a session that another connection
// takes up: whatever is still asked for there comes behind the mark.
func (r *Replica) outdate(id wire.SessionID) {
	if c := r.owners[id]; c != nil {
		r.happened(SessionMoved{id})
		r.end(c)
	}
	for _, c := range r.member.asking[id] {
		r.end(c) // and stays in its place, for the answer to it
	}
}

// mark has every server told, at one place of the history, that a session's
// connection is from here on the newest one of a server: an error transaction,
// which changes nothing on any server, with a cxid that no request has.
func (r *Replica) mark(id wire.SessionID, at ensemble.ServerID) {
	q := peerwire.ForwardedRequest{Session: id, Cxid: markOf(at)}
	r.proposeError(&q, wire.ErrSessionMoved)
}

// markOf is the cxid that names a server in a mark.
func markOf(at ensemble.ServerID) int32 { return math.MinInt32 | int32(at&math.MaxInt32) }

// marked: a mark is applied. The connection that it is for is attached, every
// other one of the session is a client's that has left it.
func (r *Replica) marked(txn *record.Txn) {
	id := txn.Session
	if txn.Cxid == markOf(r.opt.ServerID) {
		if c := r.firstAsking(id); c != nil {
			c.attach.lives, c.attach.synced = true, true
			r.attachWhenDue(c)
		}
		return
	}
	if c := r.owners[id]; c != nil {
		r.happened(SessionMoved{id})
		r.end(c)
	}
}

// firstAsking takes the connection that has asked first for a session; nil if
// there is none.
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
	if c := waiting[0]; !c.gone {
		return c
	}
	return nil
}

// sync asks for a moment by which everything acknowledged before is applied.
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

// syncDone: the sync is answered, and everything before it applied.
func (r *Replica) syncDone(token uint64) {
	c := r.member.syncs[token]
	delete(r.member.syncs, token)
	switch {
	case c == nil || c.gone:
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
		r.proceed(c)
		r.beginHeld(c)
		r.proceed(c)
	}
}

// revalidated is the leader's word on a session.
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

// attachWhenDue attaches a connection to its session once both answers are
// there. The session may have ended between them.
func (r *Replica) attachWhenDue(c *conn) {
	if c.attach.local {
		r.attachLocal(c)
		return
	}
	if !c.attach.lives || !c.attach.synced {
		return
	}
	if id := c.ask.Session; r.lives(id) {
		r.attach(c, id)
	} else {
		r.refuse(c, "probably expired")
	}
}

// keeps notes, on the leader, on which server a session's connection is: from
// the moment on at which that is proposed.
func (r *Replica) keeps(id wire.SessionID, at ensemble.ServerID) {
	if r.member != nil {
		r.member.homes[id] = at
	}
}

// forget drops what is noted of a session that has ended.
func (r *Replica) forget(id wire.SessionID) {
	if r.member != nil {
		delete(r.member.homes, id)
		if r.member.opt.LocalSessions && r.decides() {
			r.member.gone.add(id)
		}
	}
}
