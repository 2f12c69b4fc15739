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

// localSessions: a session that no transaction has made is given by one server
// alone, in one life of its process, and by that as long as it is heard from;
// no tree has it. One that a transaction has made is made once. Behind the end
// of a session nothing is done for it, and it is given to nobody who asks then; a
// server that is behind may give it to who asked before, and has gone since.
type localSessions struct {
	sim    *Sim
	homes  map[wire.SessionID]home           // of those that were given without a transaction
	made   map[wire.SessionID]bool           // by a transaction
	ended  map[wire.SessionID]replica.ConnID // the last connection there was by then
	asked  map[wire.SessionID]bool           // for an ephemeral: it may be everybody's
	proven map[wire.SessionID]int64          // µs, when the last of its requests that were answered was sent
	began  map[ensemble.ServerID]bool        // to serve, and its tree was not looked at since
}

// home is one life of a server.
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

// given: a connection got a session.
func (c *localSessions) given(e attached) string {
	id, here := e.session, home{e.v.id, e.v.life}
	switch before, local := c.homes[id]; {
	case e.c.readOnly || id == 0:
		return "" // of a server without a quorum (onlyCommitted), or refused
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

// done looks at a transaction and its session.
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

// table looks for local sessions in a tree.
func (c *localSessions) table(v *server) (wrong string) {
	v.tree.Sessions(func(id wire.SessionID, _ int32) {
		if !c.made[id] {
			wrong = fmt.Sprintf("the tree of server %d has session %v, which no transaction has made", v.id, id)
		}
	})
	return wrong
}

// early: a client is told that its session has expired, by the server where it
// lives alone. Half of its timeout is far enough from what clocks differ by.
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

// drawLocalSessions lets the seed decide, beside the random source of everything else.
func (o *Options) drawLocalSessions() {
	if yes := (&random{o.Seed ^ 0x10ca1}).chance(30); o.LocalSessions == 0 {
		o.LocalSessions = -1
		if yes {
			o.LocalSessions = 1
		}
	}
}

// prefers is the server that a client tries next, where its session may live
// on one alone: mostly that.
func (c *client) prefers(any *server) *server {
	if c.sim.opt.LocalSessions > 0 && c.session != 0 && c.home != nil && c.random.chance(70) {
		return c.home
	}
	return any
}
