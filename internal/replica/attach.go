package replica

import (
	"maps"
	"slices"

	"bellwether/internal/zab"
	"bellwether/wire"
)

// attaching is how far a connection has come that takes a session up again in
// an ensemble: the leader has to say that the session lives, and a sync behind
// that question has to be answered. The sync shows that this server is up to
// date, that the leader still was one, and that everything which an earlier
// connection of the session had asked for is applied here.
type attaching struct {
	since  int64 // Mono of Connect
	lives  bool
	synced bool
}

// local in member.homes: the session's connection is one of this server.
const local zab.LinkID = 0

// hold keeps a new connection until there is a leader; false if there is one.
func (r *Replica) hold(c *conn) bool {
	c.attach.since = r.now.Mono
	if r.member.serving {
		return false
	}
	r.member.held = append(r.member.held, c)
	return true
}

// holdMax is how long a new connection waits for a leader: a third of its
// timeout, so that its client can still try another server.
func (c *conn) holdMax() int64 { return int64(c.timeout / 3) }

// holdUntil is when the first of the connections that wait is to be closed.
func (r *Replica) holdUntil() int64 {
	at := Never
	for _, c := range r.member.held {
		if !c.gone {
			at = min(at, c.attach.since+c.holdMax())
		}
	}
	return at
}

// releaseHeld closes connections that have waited too long for a leader.
func (r *Replica) releaseHeld() {
	m := r.member
	kept := m.held[:0]
	for _, c := range m.held {
		if !c.gone && r.now.Mono-c.attach.since >= c.holdMax() {
			r.end(c)
		}
		if !c.gone {
			kept = append(kept, c)
		}
	}
	clear(m.held[len(kept):])
	m.held = kept
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

// suspend ends what clients have of a term that is over: every connection
// with a session is closed, and what asked for one waits for the next term.
func (r *Replica) suspend() {
	m := r.member
	m.held = nil
	for _, id := range slices.Sorted(maps.Keys(r.conns)) {
		c := r.conns[id]
		if c.session != 0 {
			r.end(c)
			continue
		}
		c.attach.lives, c.attach.synced = false, false
		m.held = append(m.held, c)
	}
}

// ask asks the leader for a session that a connection wants to take up again.
func (r *Replica) ask(c *conn) {
	m, id := r.member, c.ask.Session
	if m.leads() {
		c.attach.lives = true
	} else {
		m.asking[id] = append(m.asking[id], c)
		m.learner.Step(r.now.Mono, zab.Revalidate{Revalidation: wire.Revalidation{Session: id, TimeoutMS: c.timeout}})
	}
	m.syncs[r.syncToken(id)] = c
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
		e.Request.Request = wire.ForwardedRequest{
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
		for i := range c.waiting.len() {
			if q := *c.waiting.at(i); q.token == token {
				q.token = 0
				break
			}
		}
		r.proceed(c)
	}
}

// revalidated is the leader's word on a session.
func (r *Replica) revalidated(a wire.Revalidated) {
	waiting := r.member.asking[a.Session]
	if len(waiting) == 0 {
		return
	}
	c := waiting[0]
	if len(waiting) == 1 {
		delete(r.member.asking, a.Session)
	} else {
		r.member.asking[a.Session] = waiting[1:]
	}
	switch {
	case c.gone:
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
	if !c.attach.lives || !c.attach.synced {
		return
	}
	if id := c.ask.Session; r.lives(id) {
		r.attach(c, id)
	} else {
		r.refuse(c, "probably expired")
	}
}

// keeps notes, on the leader, where a session's connection is.
func (r *Replica) keeps(id wire.SessionID, at zab.LinkID) {
	if r.member != nil {
		r.member.homes[id] = at
	}
}

// forget drops what is noted of a session that has ended.
func (r *Replica) forget(id wire.SessionID) {
	if r.member != nil {
		delete(r.member.homes, id)
	}
}

// departed: the sessions of a link that ended are nobody's.
func (r *Replica) departed(at zab.LinkID) {
	m := r.member
	for id, home := range m.homes {
		if home == at {
			delete(m.homes, id)
		}
	}
}
