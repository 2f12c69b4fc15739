package replica

import (
	"bellwether/internal/tree"
	"bellwether/wire"
)

// locals are the sessions that live on this server alone: made without a
// transaction, known to nobody else, expired here. They outlive a change of
// leaders and of this server's role, not the process. Whatever is heard of
// one counts at once, so its pings are answered here: the promise is this
// server's own, as that of a standalone one is.
type locals struct {
	open   map[wire.SessionID]*local
	expiry *tree.Expiry            // without those on their way
	ended  map[wire.SessionID]bool // by the last Tick
}

// local is a session that lives here alone.
type local struct {
	timeoutMS int32
	// leaving: it is on its way to become everybody's (upgrade.go). Whether
	// it has, the history says.
	leaving bool
	// readOnly: it was made without a quorum, or on a full disk, and ends when
	// there is a quorum or room (readonly.go).
	readOnly bool
}

func newLocals(tickMS int64) locals {
	return locals{open: map[wire.SessionID]*local{}, expiry: tree.NewExpiry(tickMS)}
}

// has reports whether a session lives here alone.
func (l *locals) has(id wire.SessionID) bool {
	s := l.open[id]
	return s != nil && !s.leaving
}

// knows reports whether a session lives here, alone or on its way from that.
func (l *locals) knows(id wire.SessionID) bool { return l.open[id] != nil }

// touch notes that a session was heard from; false if it is none of these.
func (l *locals) touch(id wire.SessionID, mono int64) bool { return l.expiry.Touch(id, mono) }

// put takes in a session, or gives a known one another timeout, from now on.
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

// openLocal gives a connection a new session that lives here alone.
func (r *Replica) openLocal(c *conn) {
	id := r.newID()
	r.locals.put(id, c.timeout, r.now.Mono)
	r.attach(c, id)
}

// closeLocal ends a session that lives here alone, and its connection.
func (r *Replica) closeLocal(id wire.SessionID) {
	r.locals.remove(id)
	if c := r.owners[id]; c != nil {
		r.end(c)
	}
}

// askLocal takes up a session that lives here alone, once everything that its
// earlier connections had asked for is applied here: a sync comes behind it.
func (r *Replica) askLocal(c *conn) {
	id := c.ask.Session
	r.outdate(id)
	c.attach.local = true
	r.member.syncs[r.syncToken(id)] = c
}

// attachLocal: the sync is answered. Meanwhile the session may have become
// everybody's, or have ended.
func (r *Replica) attachLocal(c *conn) {
	if id := c.ask.Session; r.locals.has(id) {
		r.attach(c, id)
		return
	}
	c.attach = attaching{}
	r.admit(c)
}

// expireLocals ends the sessions that live here alone and were not heard from.
func (r *Replica) expireLocals() {
	r.locals.ended = nil
	due := r.locals.expiry.Due(r.now.Mono)
	if len(due) > 0 {
		r.locals.ended = make(map[wire.SessionID]bool, len(due))
	}
	for _, id := range due {
		r.locals.ended[id] = true
		r.happened(SessionExpired{id, r.locals.open[id].timeoutMS})
		r.closeLocal(id)
	}
}

// Locals is the number of sessions that live on this server alone.
func (r *Replica) Locals() int { return len(r.locals.open) }

// ExpiringLocals is Expiring for the sessions that live on this server alone.
func (r *Replica) ExpiringLocals() []tree.ExpiryBucket { return r.locals.expiry.Buckets() }
