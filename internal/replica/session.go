package replica

import (
	"fmt"

	"bellwether/internal/fifo"
	"bellwether/internal/record"
	"bellwether/internal/tree"
	"bellwether/wire"
)

// SessionExpired says that a session was not heard from for its timeout.
type SessionExpired struct {
	Session   wire.SessionID
	TimeoutMS int32
}

func (h SessionExpired) String() string {
	return fmt.Sprintf("Expiring session %v, timeout of %dms exceeded", h.Session, h.TimeoutMS)
}

// SessionRefused says that a client asked for a session that does not exist, or gave a
// wrong password.
type SessionRefused struct {
	Conn    ConnID
	Session wire.SessionID
	Reason  string
}

func (h SessionRefused) String() string {
	return fmt.Sprintf("Invalid session %v, %s", h.Session, h.Reason)
}

// SessionMoved says that a session's older connection is closed because there is a newer
// one.
type SessionMoved struct{ Session wire.SessionID }

func (h SessionMoved) String() string {
	return fmt.Sprintf("session %v: the older connection is closed, a newer one has taken it over", h.Session)
}

// Behind says that a client was refused because it has seen a later state than this
// server has.
type Behind struct {
	Conn       ConnID
	Seen, Zxid wire.Zxid
}

func (h Behind) String() string {
	return fmt.Sprintf("Refusing session request: the client has seen %v, this server is at %v; it must try another server", h.Seen, h.Zxid)
}

// connect starts a new session or resumes one, as soon as there is a leader.
func (r *Replica) connect(e Connect) {
	c := &conn{id: e.Conn, ask: e, timeout: min(max(e.TimeoutMS, r.opt.SessionMinMS), r.opt.SessionMaxMS)}
	r.conns[c.id] = c
	if r.member != nil && r.hold(c) {
		return
	}
	r.admit(c)
}

// admit carries out the request with which a connection began.
func (r *Replica) admit(c *conn) {
	e := &c.ask
	if r.behind(c) {
		return
	}
	if e.Session == 0 {
		r.create(c)
		return
	}
	if reason := r.refusal(e); reason != "" {
		r.refuse(c, reason)
		return
	}
	switch {
	case r.member == nil:
		r.resumeAlone(c)
	case r.locals.knows(e.Session):
		r.askLocal(c)
	default:
		r.ask(c)
	}
}

// behind closes a connection whose client has seen a later state than this server has,
// and reports that. A server that serves in an epoch has everything up to the start of
// that epoch, even if the last transaction of its tree is of an earlier one: the zxid of
// an epoch's start appears only in snapshots of ZooKeeper's leaders.
func (r *Replica) behind(c *conn) bool {
	last := r.tree.LastZxid()
	if m := r.member; m != nil && m.serving {
		last = max(last, wire.MakeZxid(m.epoch, 0))
	}
	if c.ask.Seen <= last {
		return false
	}
	r.observe(Behind{c.id, c.ask.Seen, last})
	r.end(c)
	return true
}

// refuse tells a client that its session does not exist.
func (r *Replica) refuse(c *conn, reason string) {
	r.observe(SessionRefused{c.id, c.ask.Session, reason})
	r.outputs.Push(Output{Kind: Attached, Conn: c.id, ReadOnly: r.member != nil && r.member.readers.serves})
	r.end(c)
}

// refusal returns the reason why a session cannot be resumed, or "". The password is
// checked first, so that a client that only knows a session's id cannot disturb the
// session. Only a server that decides knows whether a session lives.
func (r *Replica) refusal(e *Connect) string {
	if !r.opt.Secrets.Accepts(e.Session, e.Password) {
		return "wrong password"
	}
	if r.decides() {
		if r.hear(e.Session); !r.isOpen(e.Session) && !r.locals.knows(e.Session) {
			return "probably expired"
		}
	}
	return ""
}

// isOpen reports whether a session is open and no end is proposed. Only a server that
// decides may call it.
func (r *Replica) isOpen(id wire.SessionID) bool {
	_, ok := r.tree.Session(id)
	return ok && !r.ending[id]
}

// create makes a new session for a connection. The client is answered when the session is
// committed.
func (r *Replica) create(c *conn) {
	if r.alone != nil && r.alone.full {
		r.admitReader(c)
		return
	}
	if r.member != nil && r.member.opt.LocalSessions {
		r.openLocal(c)
		return
	}
	if _, ok := r.tree.Session(c.requestedID); ok && c.requestedID != 0 {
		pw := r.opt.Secrets.Password(c.requestedID) // the session was made under an earlier leader
		c.ask.Session, c.ask.Password = c.requestedID, pw[:]
		r.ask(c)
		return
	}
	// A session that was requested in an earlier term may still be made if the epoch is
	// the same. No client knows its id.
	id := r.newID()
	c.requestedID = id
	r.creating[id] = c
	if r.proposeSession(id, c.timeout) != wire.OK {
		r.end(c)
	}
}

// proposeSession proposes a global session, or asks the leader to do so.
func (r *Replica) proposeSession(id wire.SessionID, timeoutMS int32) wire.Code {
	body := wire.Append(nil, &record.CreateSessionTxn{TimeoutMS: timeoutMS})
	if !r.decides() {
		r.forwardCreate(id, body)
		return wire.OK
	}
	r.setServerOf(id, r.opt.ServerID)
	_, code := r.propose(tree.Request{Session: id, Op: wire.OpCreateSession, Body: body})
	return code
}

// newID returns an unused session id.
func (r *Replica) newID() wire.SessionID {
	const container = wire.SessionID(-1 << 63) // marks containers on disk
	for {
		id := r.nextID
		r.nextID++
		if _, taken := r.tree.Session(id); !taken && !r.locals.knows(id) && id != 0 && id != container {
			return id
		}
	}
}

// created records a new session when its createSession is applied.
func (r *Replica) created(txn *record.Txn) {
	id, timeout := txn.Session, int32(0)
	if b, ok := txn.Body.(*record.CreateSessionTxn); ok {
		timeout = b.TimeoutMS
	}
	r.locals.remove(id)
	if r.decides() {
		r.expiry.Add(id, timeout, r.now.Mono)
	}
	c := r.creating[id]
	delete(r.creating, id)
	if c != nil && !c.ended {
		r.attach(c, id)
	}
}

// attach makes c the connection of a session and tells the client. An older connection of
// the session is closed.
func (r *Replica) attach(c *conn, id wire.SessionID) {
	if old := r.owners[id]; old != nil {
		r.observe(SessionMoved{id})
		r.end(old)
	}
	c.session = id
	r.owners[id] = c
	r.settleForwarded(id)
	switch {
	case r.locals.has(id):
		r.locals.put(id, c.timeout, r.now.Mono)
	case r.decides():
		delete(r.doomed, id)
		r.expiry.Add(id, c.timeout, r.now.Mono)
	}
	r.outputs.Push(Output{Kind: Attached, Conn: c.id, Session: id, TimeoutMS: c.timeout, Password: r.opt.Secrets.Password(id), ReadOnly: c.readOnly})
}

// closed records the end of a session when its closeSession is applied. The client asked
// for it, or the session expired.
func (r *Replica) closed(txn *record.Txn, res tree.Result) {
	id := txn.Session
	delete(r.ending, id)
	r.expiry.Remove(id)
	r.forget(id)
	owner := r.owners[id]
	r.answer(owner, txn, res)
	if owner != nil {
		r.end(owner)
	}
}

// end closes a connection.
func (r *Replica) end(c *conn) {
	if !c.ended {
		r.outputs.Push(Output{Kind: Close, Conn: c.id})
		r.drop(c)
	}
}

// disconnected forgets a connection that has ended. Its session lives on.
func (r *Replica) disconnected(id ConnID) {
	if c := r.conns[id]; c != nil {
		r.drop(c)
	}
}

// drop forgets a connection and its waiting requests. Its proposals are still applied.
func (r *Replica) drop(c *conn) {
	c.ended = true
	r.abandon(c)
	c.waiting = fifo.Queue[*Request]{}
	delete(r.conns, c.id)
	if c.session != 0 && r.owners[c.session] == c {
		delete(r.owners, c.session)
	}
}

// observe adds an observation for the log.
func (r *Replica) observe(h Observation) { r.observations = append(r.observations, h) }
