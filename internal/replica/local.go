package replica

import (
	"bellwether/internal/tree"
	"bellwether/wire"
)

// locals holds the local sessions: those that only this server knows. They are made
// without a transaction and expire here. They survive a change of leaders and of this
// server's role, but not the end of the process. This server answers their pings at once,
// without asking the leader, because it alone decides whether they live. Invariant:
// expiry holds exactly the sessions of open that are not upgrading.
type locals struct {
	open   map[wire.SessionID]*local
	expiry *tree.Expiry
	ended  map[wire.SessionID]bool // sessions that the last Tick expired
}

// local is a local session.
type local struct {
	timeoutMS int32
	// upgrading: its createSession is on the way to the leader, which makes it a global
	// session (upgrade.go). Only the history tells whether that has succeeded.
	upgrading bool
	// readOnly: the session was made without a quorum or on a full disk. It ends when
	// there is a quorum or space again (readonly.go).
	readOnly bool
}

func newLocals(tickMS int64) locals {
	return locals{open: map[wire.SessionID]*local{}, expiry: tree.NewExpiry(tickMS)}
}

// has reports whether a session is local and not on its way to become global.
func (l *locals) has(id wire.SessionID) bool {
	s := l.open[id]
	return s != nil && !s.upgrading
}

// knows reports whether a session is local, including one on its way to become global.
func (l *locals) knows(id wire.SessionID) bool { return l.open[id] != nil }

// touch records that a session was heard from. It returns false if the session is not
// local.
func (l *locals) touch(id wire.SessionID, mono int64) bool { return l.expiry.Touch(id, mono) }

// put adds a local session, or gives a known one a new timeout that starts now.
func (l *locals) put(id wire.SessionID, timeoutMS int32, now int64) {
	readOnly := l.open[id] != nil && l.open[id].readOnly
	l.open[id] = &local{timeoutMS: timeoutMS, readOnly: readOnly}
	l.expiry.Add(id, timeoutMS, now)
}

// remove forgets a session.
func (l *locals) remove(id wire.SessionID) {
	delete(l.open, id)
	l.expiry.Remove(id)
}

// openLocal makes a local session for a connection.
func (r *Replica) openLocal(c *conn) {
	id := r.newID()
	r.locals.put(id, c.timeout, r.now.Mono)
	r.attach(c, id)
}

// closeLocal ends a local session and closes its connection.
func (r *Replica) closeLocal(id wire.SessionID) {
	r.locals.remove(id)
	r.removeAbandoned(id, func(*Request) bool { return true })
	if c := r.owners[id]; c != nil {
		r.end(c)
	}
}

// askLocal resumes a local session. It sends a sync after everything that earlier
// connections of the session asked for, and attaches the connection when the sync is
// answered: then all of that is applied here.
func (r *Replica) askLocal(c *conn) {
	id := c.ask.Session
	r.closeOlder(id)
	c.attach.local = true
	r.member.syncs[r.syncToken(id)] = c
}

// attachLocal attaches a connection to its local session after the sync. Meanwhile the
// session may have become global or have ended.
func (r *Replica) attachLocal(c *conn) {
	if id := c.ask.Session; r.locals.has(id) {
		r.attach(c, id)
		return
	}
	c.attach = attaching{}
	r.admit(c)
}

// expireLocals ends the local sessions that were not heard from in time.
func (r *Replica) expireLocals() {
	r.locals.ended = nil
	due := r.locals.expiry.Due(r.now.Mono)
	if len(due) > 0 {
		r.locals.ended = make(map[wire.SessionID]bool, len(due))
	}
	for _, d := range due {
		r.locals.ended[d.Session] = true
		r.observe(SessionExpired{d.Session, r.locals.open[d.Session].timeoutMS})
		r.closeLocal(d.Session)
	}
}

// Locals returns the number of local sessions.
func (r *Replica) Locals() int { return len(r.locals.open) }

// ExpiringLocals is like Expiring, for the local sessions.
func (r *Replica) ExpiringLocals() []tree.ExpiryBucket { return r.locals.expiry.Buckets() }
