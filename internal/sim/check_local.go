package sim

import (
	"fmt"

	"bellwether/internal/ensemble"
	"bellwether/internal/record"
	"bellwether/internal/replica"
	"bellwether/internal/sim/check"
	"bellwether/internal/tree"
	"bellwether/wire"
)

// localSessions checks local sessions. If no transaction has made a session, only one
// server gives it, in one life of its process and only while it hears from the session, and
// no tree contains it. A session that a transaction makes is made once. After the end of a
// session no request of it is carried out, and no connection that begins later gets it. A
// server that is behind may still give it to a connection that began before the end.
type localSessions struct {
	sim    *Sim
	homes  map[wire.SessionID]home           // which server process gave a session that no transaction had made
	made   map[wire.SessionID]bool           // sessions made by a transaction
	ended  map[wire.SessionID]replica.ConnID // sessions that have ended, with the last connection that existed then
	asked  map[wire.SessionID]bool           // the session has asked for an ephemeral, so it may have become global
	proven map[wire.SessionID]int64          // µs at which the last answered request of the session was sent
	began  map[ensemble.ServerID]bool        // the server has begun to serve and its tree was not checked since
}

// home identifies one life of a server's process.
type home struct {
	server ensemble.ServerID
	life   int
}

func newLocalSessions(s *Sim) *localSessions {
	return &localSessions{s, map[wire.SessionID]home{}, map[wire.SessionID]bool{}, map[wire.SessionID]replica.ConnID{},
		map[wire.SessionID]bool{}, map[wire.SessionID]int64{}, map[ensemble.ServerID]bool{}}
}

func (*localSessions) Name() string { return "LocalSessions" }

func (c *localSessions) See(o any) string {
	switch e := o.(type) {
	case attached:
		return c.given(e)
	case check.Committed:
		return c.done(e.Txn)
	case check.Established:
		c.began[e.Server] = true
	case check.Stands:
		if c.began[e.Server] {
			c.began[e.Server] = false
			return c.table(c.sim.server(e.Server))
		}
	case issued:
		if tree.CreatesEphemeral(e.call.op, e.call.body) {
			c.asked[e.call.session] = true
		}
	case answered:
		k := e.call
		c.proven[k.session] = k.issued
		if k.op == wire.OpCloseSession && e.response.header.Err == wire.OK {
			c.ends(k.session)
		}
	case turnedAway:
		return c.early(e)
	}
	return ""
}

// given checks that a connection may get its session.
func (c *localSessions) given(e attached) string {
	id, here := e.session, home{e.v.id, e.v.life}
	switch before, local := c.homes[id]; {
	case e.c.readOnly || id == 0:
		return "" // the session is one of a server without a quorum (see onlyCommitted), or it was refused
	case c.over(id) && e.c.id > c.ended[id]:
		return fmt.Sprintf("server %d gives session %v, which has ended", e.v.id, id)
	case c.made[id]:
		return ""
	case c.sim.opt.LocalSessions <= 0:
		return fmt.Sprintf("server %d gives session %v, which no transaction has made", e.v.id, id)
	case !local:
		c.homes[id] = here
	case before != here:
		return fmt.Sprintf("server %d gives session %v, which lives on server %d alone, or did before a start", e.v.id, id, before.server)
	default:
		c.sim.reach(situationLocalResumed)
	}
	return ""
}

func (c *localSessions) ends(id wire.SessionID) {
	if !c.over(id) {
		c.ended[id] = c.sim.lastConn
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
		return fmt.Sprintf("%v, a %v, is of session %v, which has ended", t.Zxid, t.Type, t.Session)
	case t.Type == wire.OpCloseSession:
		c.ends(t.Session)
	case t.Type == wire.OpCreateSession && c.made[t.Session]:
		return fmt.Sprintf("session %v is made again by %v", t.Session, t.Zxid)
	case t.Type == wire.OpCreateSession:
		c.made[t.Session] = true
		if _, local := c.homes[t.Session]; local {
			c.sim.reach(situationLocalUpgraded)
		}
	}
	return ""
}

// table checks that a tree contains no local sessions.
func (c *localSessions) table(v *server) (wrong string) {
	v.tree.Sessions(func(id wire.SessionID, _ int32) {
		if !c.made[id] {
			wrong = fmt.Sprintf("the tree of server %d has session %v, which no transaction has made", v.id, id)
		}
	})
	return wrong
}

// early checks that the server on which a local session lives does not tell its client too
// soon that the session has expired. Half of the timeout is a wide margin for the
// difference of the clocks.
func (c *localSessions) early(e turnedAway) string {
	at, local := c.homes[e.session]
	switch {
	case !local || c.made[e.session] || c.asked[e.session] || c.over(e.session), at != home{e.v.id, e.v.life}:
		return ""
	case c.sim.now-c.proven[e.session] < int64(e.timeoutMS)*millisecond/2:
		return fmt.Sprintf("server %d says that session %v has expired, which it has answered %d µs ago",
			e.v.id, e.session, c.sim.now-c.proven[e.session])
	}
	return ""
}

// drawLocalSessions draws Options.LocalSessions from the seed, unless it is set. It uses a
// random source of its own, so that other draws do not change.
func (o *Options) drawLocalSessions() {
	if yes := (&random{o.Seed ^ 0x10ca1}).chance(30); o.LocalSessions == 0 {
		o.LocalSessions = -1
		if yes {
			o.LocalSessions = 1
		}
	}
}

// prefers returns the server that a client tries next. If its session may be local, that is
// mostly the server on which the session lives.
func (c *client) prefers(any *server) *server {
	if c.sim.opt.LocalSessions > 0 && c.session != 0 && c.home != nil && c.random.chance(70) {
		return c.home
	}
	return any
}
