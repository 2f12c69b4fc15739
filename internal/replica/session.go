package replica

import (
	"crypto/subtle"
	"fmt"

	"bellwether/internal/tree"
	"bellwether/wire"
)

// SessionExpired: nothing was heard of a session for its timeout.
type SessionExpired struct {
	Session   wire.SessionID
	TimeoutMS int32
}

func (h SessionExpired) String() string {
	return fmt.Sprintf("Expiring session %v, timeout of %dms exceeded", h.Session, h.TimeoutMS)
}

// SessionRefused: a client asked for a session that does not exist (any
// more), or with a wrong password.
type SessionRefused struct {
	Conn    ConnID
	Session wire.SessionID
	Reason  string
}

func (h SessionRefused) String() string {
	return fmt.Sprintf("Invalid session %v, %s", h.Session, h.Reason)
}

// SessionMoved: a session's older connection is closed in favour of a newer.
type SessionMoved struct{ Session wire.SessionID }

func (h SessionMoved) String() string {
	return fmt.Sprintf("session %v: the older connection is closed, a newer one has taken it over", h.Session)
}

// connect begins a session or takes one up again.
func (r *Replica) connect(e Connect) {
	c := &conn{id: e.Conn, timeout: min(max(e.TimeoutMS, r.opt.SessionMinMS), r.opt.SessionMaxMS)}
	r.conns[c.id] = c
	if e.Session == 0 {
		r.create(c)
		return
	}
	if reason := r.refusal(e); reason != "" {
		r.happened(SessionRefused{e.Conn, e.Session, reason})
		r.outputs.push(Output{Kind: Attached, Conn: c.id})
		r.end(c)
		return
	}
	if old := r.owners[e.Session]; old != nil {
		r.happened(SessionMoved{e.Session})
		r.end(old)
	}
	r.attach(c, e.Session)
}

// refusal says why a session cannot be resumed. The password is looked at
// before anything is done to the session: who knows an id alone disturbs nobody.
func (r *Replica) refusal(e Connect) string {
	want := e.Session.Password()
	if subtle.ConstantTimeCompare(want[:], e.Password) != 1 {
		return "wrong password"
	}
	if _, ok := r.tree.Session(e.Session); !ok || r.ending[e.Session] {
		return "probably expired"
	}
	return ""
}

// create proposes a new session; the answer follows when it is committed.
func (r *Replica) create(c *conn) {
	if r.full {
		r.end(c)
		return
	}
	id := r.newID()
	timeout := wire.CreateSessionTxn{TimeoutMS: c.timeout}
	req := tree.Request{Session: id, Op: wire.OpCreateSession, Body: wire.Append(nil, &timeout)}
	if txn, _ := r.propose(req, c, nil); txn == nil || txn.Type != wire.OpCreateSession {
		r.end(c)
	}
}

// newID returns an id that no session of this server has.
func (r *Replica) newID() wire.SessionID {
	const container = wire.SessionID(-1 << 63) // marks containers on disk
	for {
		id := r.nextID
		r.nextID++
		if _, taken := r.tree.Session(id); !taken && id != 0 && id != container {
			return id
		}
	}
}

// created: the session of a createSession exists from here on.
func (r *Replica) created(p proposal) {
	id, timeout := p.txn.Session, int32(0)
	if b, ok := p.txn.Body.(*wire.CreateSessionTxn); ok {
		timeout = b.TimeoutMS
	}
	r.expiry.Add(id, timeout, r.now.Mono)
	if p.conn != nil && !p.conn.gone {
		r.attach(p.conn, id)
	}
}

// attach makes c the connection of a session and tells the client.
func (r *Replica) attach(c *conn, id wire.SessionID) {
	c.session = id
	r.owners[id] = c
	r.expiry.Add(id, c.timeout, r.now.Mono)
	r.outputs.push(Output{Kind: Attached, Conn: c.id, Session: id, TimeoutMS: c.timeout, Password: id.Password()})
}

// closed: a session has ended, at its client's wish or because it expired.
func (r *Replica) closed(p proposal, res tree.Result) {
	id := p.txn.Session
	delete(r.ending, id)
	r.expiry.Remove(id)
	if p.conn != nil && !p.conn.gone {
		r.answer(p.conn, res)
	}
	if owner := r.owners[id]; owner != nil {
		r.end(owner)
	}
}

// end closes a connection from our side.
func (r *Replica) end(c *conn) {
	if !c.gone {
		r.outputs.push(Output{Kind: Close, Conn: c.id})
		r.drop(c)
	}
}

// disconnected: the connection has ended; its session waits for another.
func (r *Replica) disconnected(id ConnID) {
	if c := r.conns[id]; c != nil {
		r.drop(c)
	}
}

// drop forgets a connection and what it waits for. Its proposals go on.
func (r *Replica) drop(c *conn) {
	c.gone = true
	c.waiting = queue[*Request]{}
	delete(r.conns, c.id)
	if c.session != 0 && r.owners[c.session] == c {
		delete(r.owners, c.session)
	}
}

// happened notes something for the log.
func (r *Replica) happened(h Happening) { r.happenings = append(r.happenings, h) }
