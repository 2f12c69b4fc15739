package check

import (
	"fmt"

	"bellwether/internal/ensemble"
	"bellwether/internal/peerwire"
	"bellwether/internal/record"
	"bellwether/internal/replica"
	"bellwether/internal/tree"
	"bellwether/wire"
)

// localSessions checks local sessions: those that no transaction has made. Only one server gives
// such a session to connections, in one life of its process and only while it hears from the
// session. No tree contains the session. A session that a transaction makes is made once. After
// the end of a session no request of it is carried out, and no connection that begins later gets
// it. A server that is behind may still give it to a connection that began before the end. So may a server in the
// epoch of a leader of ZooKeeper, to any connection, if the session ended in a later epoch: such a leader gives sessions
// without asking whether it still leads.
type localSessions struct {
	present Present
	reached SessionsReached
	lives   map[ensemble.ServerID]int        // how often a server was started
	last    replica.ConnID                   // the last connection that a server has accepted
	homes   map[wire.SessionID]home          // the server process that gave a session which no transaction had made
	made    map[wire.SessionID]bool          // sessions made by a transaction
	ended   map[wire.SessionID]sessionEnd    // sessions that have ended
	asked   map[wire.SessionID]bool          // the session has asked for an ephemeral, so it may have become global
	closing map[wire.SessionID]bool          // the session has asked to be closed
	proven  map[wire.SessionID]int64         // µs at which the last answered request of the session was sent
	jumps   []Jumped                         // of the clocks of servers
	began   map[ensemble.ServerID]bool       // the server has begun to serve and its tree was not checked since
	leaders map[wire.Epoch]ensemble.ServerID // who leads an epoch
}

// sessionEnd is the end of a session.
type sessionEnd struct {
	last replica.ConnID // the last connection that existed then
	zxid wire.Zxid      // the transaction that ended the session; 0: none did
}

// SessionsReached counts what a run has reached.
type SessionsReached interface {
	LocalResumed()  // a local session is resumed
	LocalUpgraded() // a local session becomes global
}

// home identifies one life of a server's process.
type home struct {
	server ensemble.ServerID
	life   int
}

func newLocalSessions(p Present, reached SessionsReached) *localSessions {
	return &localSessions{p, reached, map[ensemble.ServerID]int{}, 0, map[wire.SessionID]home{}, map[wire.SessionID]bool{}, map[wire.SessionID]sessionEnd{},
		map[wire.SessionID]bool{}, map[wire.SessionID]bool{}, map[wire.SessionID]int64{}, nil, map[ensemble.ServerID]bool{}, map[wire.Epoch]ensemble.ServerID{}}
}

func (*localSessions) Name() string { return "LocalSessions" }

func (c *localSessions) See(o any) string {
	switch e := o.(type) {
	case Connected:
		c.last = e.Conn
	case Restarted:
		c.lives[e.Server]++
	case Jumped:
		c.jumps = append(c.jumps, e)
	case Attached:
		return c.given(e)
	case Committed:
		return c.done(e.Txn)
	case Established:
		c.began[e.Server] = true
		if e.Role == peerwire.Leading {
			c.leaders[e.Epoch] = e.Server
		}
	case Stands:
		if c.began[e.Server] {
			c.began[e.Server] = false
			return c.table(e.Server)
		}
	case Issued:
		switch {
		case e.Op == wire.OpCloseSession:
			c.closing[e.Session] = true
		case tree.CreatesEphemeral(e.Op, e.Body):
			c.asked[e.Session] = true
		}
	case Answered:
		c.proven[e.Session] = e.Issued
		if e.Op == wire.OpCloseSession && e.Header.Err == wire.OK {
			c.ends(e.Session, 0)
		}
	case TurnedAway:
		return c.early(e)
	}
	return ""
}

// home returns the present life of a server's process.
func (c *localSessions) home(id ensemble.ServerID) home { return home{id, c.lives[id]} }

// given checks that a connection may get its session.
func (c *localSessions) given(e Attached) string {
	id, here := e.Session, c.home(e.Server)
	switch before, local := c.homes[id]; {
	case e.ReadOnly || id == 0:
		return "" // the session is one of a server without a quorum (see onlyCommitted), or it was refused
	case c.over(id) && e.Conn > c.ended[id].last && !c.deposed(&e):
		return fmt.Sprintf("server %d gives session %v, which has ended", e.Server, id)
	case c.made[id]:
		return ""
	case !c.present.Recipe().LocalSessions:
		return fmt.Sprintf("server %d gives session %v, which no transaction has made", e.Server, id)
	case !local:
		c.homes[id] = here
	case before != here:
		return fmt.Sprintf("server %d gives session %v, which is a local session of an earlier process or of another server (%d)", e.Server, id, before.server)
	default:
		c.reached.LocalResumed()
	}
	return ""
}

// deposed reports whether a server gives a session under a leader of ZooKeeper, which was deposed before the session
// ended.
func (c *localSessions) deposed(e *Attached) bool {
	leader := find(c.present.Servers(), c.leaders[e.Epoch])
	return leader != nil && leader.Compatible && e.Epoch < c.ended[e.Session].zxid.Epoch()
}

func (c *localSessions) ends(id wire.SessionID, z wire.Zxid) {
	if !c.over(id) {
		c.ended[id] = sessionEnd{c.last, z}
	}
}

func (c *localSessions) over(id wire.SessionID) bool {
	_, yes := c.ended[id]
	return yes
}

// done checks a transaction against the session that it belongs to.
func (c *localSessions) done(t *record.Txn) string {
	switch {
	case t.Type == wire.OpError || t.Session == 0:
		return ""
	case c.over(t.Session):
		return fmt.Sprintf("%v, a %v, belongs to session %v, which has ended", t.Zxid, t.Type, t.Session)
	case t.Type == wire.OpCloseSession:
		c.ends(t.Session, t.Zxid)
	case t.Type == wire.OpCreateSession && c.made[t.Session]:
		return fmt.Sprintf("session %v is created a second time by %v", t.Session, t.Zxid)
	case t.Type == wire.OpCreateSession:
		c.made[t.Session] = true
		if _, local := c.homes[t.Session]; local {
			c.reached.LocalUpgraded()
		}
	}
	return ""
}

// table checks that a tree contains no local sessions.
func (c *localSessions) table(server ensemble.ServerID) (wrong string) {
	for _, id := range c.present.Sessions(server) {
		if !c.made[id] {
			wrong = fmt.Sprintf("the tree of server %d has session %v, which no transaction has made", server, id)
		}
	}
	return wrong
}

// since returns how long ago by the clock of a server the last answered request of a session was sent, in µs.
func (c *localSessions) since(e TurnedAway) int64 {
	since := e.At - c.proven[e.Session]
	for _, j := range c.jumps {
		if j.Server == e.Server && j.At >= c.proven[e.Session] {
			since += j.By
		}
	}
	return since
}

// early checks that the server on which a local session lives does not tell its client too
// soon that the session has expired, unless the client has asked to close it. Half of the timeout is a wide margin for the
// difference of the clocks.
func (c *localSessions) early(e TurnedAway) string {
	at, local := c.homes[e.Session]
	if !local || c.made[e.Session] || c.asked[e.Session] || c.closing[e.Session] || c.over(e.Session) || at != c.home(e.Server) {
		return ""
	}
	if since := c.since(e); since < int64(e.TimeoutMS)*1000/2 {
		return fmt.Sprintf("server %d reports that session %v has expired, but has answered it %d µs ago", e.Server, e.Session, since)
	}
	return ""
}
