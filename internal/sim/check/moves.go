package check

import (
	"cmp"
	"fmt"
	"math"

	"bellwether/internal/ensemble"
	"bellwether/internal/replica"
	"bellwether/wire"
)

// moves checks what a session keeps when its client connects anew. A transaction in the history says to which
// server the session has moved.
//
//   - A session whose end is in the history does not move any more.
//   - Behind a move, a write of the session that another server has received is turned away.
//   - A server gives a session back to its client only when it shows everything that any server had applied when
//     the client asked for the session.
//   - Once a server has given a session to a connection, a write that was received on an earlier connection is turned
//     away. The server has applied those that were not.
//
// The second rule does not hold with servers of ZooKeeper, because sessions move to their leader without a
// transaction. The last two hold for Bellwether's servers. If the history had reached another epoch than that of the
// server's leader, what the server shows is not compared: a leader of ZooKeeper may not know that it is deposed. The
// second and the last rule do not hold for local sessions.
type moves struct {
	present  Present
	history  *History
	ended    map[wire.SessionID]bool
	homes    map[wire.SessionID]ensemble.ServerID // where the sessions are that have moved
	received map[attempt]Received
	given    map[wire.SessionID]handedTo
	written  map[wire.SessionID]handedTo  // the last write of each session, and the connection on which it was received
	asked    map[replica.ConnID]wire.Zxid // the end of the history when the connection asked for its session
	met      [moveRules]int
}

// handedTo says to which connection a session was given last, and what the server of the connection had applied then.
type handedTo struct {
	conn   replica.ConnID
	epoch  wire.Epoch
	zxid   wire.Zxid
	native bool
}

// later reports whether it was given later than another one. Under a leader of ZooKeeper a server shows the zxid with counter 0 of the
// epoch before its first transaction, and in the next epoch again an earlier zxid.
func (h *handedTo) later(o *handedTo) bool {
	return cmp.Or(cmp.Compare(h.epoch, o.epoch), cmp.Compare(h.zxid, o.zxid), cmp.Compare(h.conn, o.conn)) > 0
}

// The premises of moves.
const (
	sessionMoves = iota
	writeBehindMove
	givenAgain
	givenBack
	moveRules
)

func newMoves(p Present, h *History) *moves {
	return &moves{present: p, history: h, ended: map[wire.SessionID]bool{}, homes: map[wire.SessionID]ensemble.ServerID{},
		received: map[attempt]Received{}, given: map[wire.SessionID]handedTo{}, written: map[wire.SessionID]handedTo{}, asked: map[replica.ConnID]wire.Zxid{}}
}

func (*moves) Name() string { return "Moves" }

// Met returns the counts of the rules.
func (c *moves) Met() []Count {
	return []Count{{"a session moves", c.met[sessionMoves]}, {"a write behind a move", c.met[writeBehindMove]},
		{"a session is given to another connection", c.met[givenAgain]}, {"a session is given back", c.met[givenBack]}}
}

func (c *moves) See(o any) string {
	switch e := o.(type) {
	case Received:
		c.received[attempt{e.Session, e.Xid}] = e
	case Resumes:
		c.asked[e.Conn] = c.history.Last().Zxid
	case Attached:
		return c.attached(&e)
	case Committed:
		return c.committed(&e)
	}
	return ""
}

// committed takes a transaction: a move, an end, or a write.
func (c *moves) committed(e *Committed) string {
	t := e.Txn
	id := t.Session
	switch {
	case t.Type == wire.OpError && t.Cxid < 0 && codeOf(t) == wire.ErrSessionMoved:
		c.met[sessionMoves]++
		if c.ended[id] {
			return fmt.Sprintf("%v moves session %v, which has ended before", t.Zxid, id)
		}
		c.homes[id] = ensemble.ServerID(t.Cxid & math.MaxInt32)
		return ""
	case t.Type == wire.OpCloseSession:
		c.ended[id] = true
	case t.Type == wire.OpCreateSession:
		delete(c.ended, id)
		delete(c.homes, id)
		return ""
	}
	from, known := c.received[attempt{id, t.Cxid}]
	if !known || turnsAway(t) || c.present.Recipe().LocalSessions {
		return ""
	}
	c.written[id] = handedTo{conn: from.Conn, zxid: t.Zxid}
	if g := c.given[id]; g.native && from.Conn < g.conn {
		if t.Zxid > g.zxid {
			return fmt.Sprintf("%v is request %d of session %v, which was received on connection %d, but the session was given to connection %d before, at %v",
				t.Zxid, t.Cxid, id, from.Conn, g.conn, g.zxid)
		}
	}
	if home, moved := c.homes[id]; moved && !mixed(c.present) {
		if c.met[writeBehindMove]++; from.Server != home {
			return fmt.Sprintf("%v is request %d of session %v, which server %d has received, but the session has moved to server %d before", t.Zxid, t.Cxid, id, from.Server, home)
		}
	}
	return ""
}

// attached compares a session that is given back with what its client may expect.
func (c *moves) attached(e *Attached) string {
	floor, asked := c.asked[e.Conn]
	delete(c.asked, e.Conn)
	v := find(c.present.Servers(), e.Server)
	now := handedTo{e.Conn, e.Epoch, e.Zxid, v != nil && !v.Compatible}
	if g := c.given[e.Session]; e.Session != 0 && !e.ReadOnly && now.later(&g) {
		if g.conn != 0 {
			c.met[givenAgain]++
		}
		c.given[e.Session] = now
	}
	w := c.written[e.Session]
	if !asked || e.Session == 0 || e.ReadOnly || v == nil || v.Compatible {
		return ""
	}
	if w.conn < e.Conn && w.zxid > e.Zxid && w.zxid.Epoch() <= e.Epoch {
		return fmt.Sprintf("server %d at %v gives session %v back, but has not applied %v, which was received on an earlier connection", e.Server, e.Zxid, e.Session, w.zxid)
	}
	if floor.Epoch() != e.Epoch {
		return ""
	}
	if c.met[givenBack]++; e.Zxid < floor {
		return fmt.Sprintf("server %d at %v gives session %v back, but %v was committed when the client asked for it", e.Server, e.Zxid, e.Session, floor)
	}
	return ""
}
