package sim

import (
	"math"
	"slices"
	"sync/atomic"

	"bellwether/internal/driver"
	"bellwether/internal/replica"
	"bellwether/internal/sim/check"
	"bellwether/internal/sim/client"
	"bellwether/internal/sim/machine"
	"bellwether/internal/tree"
	"bellwether/wire"
)

// conn is a client's connection, as its server sees it. It treats requests as
// internal/server does: the tree answers reads at once unless an earlier request is
// unanswered, and all other requests go to the loop.
type conn struct {
	id          replica.ConnID
	v           *server
	tcp         *tcpConn // the server has end 1
	session     wire.SessionID
	identities  []wire.ID
	readOnly    bool // the session is that of a server without a quorum
	ended       bool // nothing is answered any more
	timeoutMS   int32
	heard       atomic.Int64 // Mono of the last message, or driver.Sealed
	hearing     driver.Heard // decides which values heard gets
	closing     bool         // a closeSession request was passed to the loop
	outstanding int
	syncs       int        // how many syncs are unanswered
	epoch       wire.Epoch // the epoch in which its server last began to serve
	from        wire.Epoch // the epoch in which its server served before, if it has just begun to serve again; 0: it has not
	zxid        wire.Zxid  // zxid of the reply that is being built
	hello       wire.Zxid  // what the client had seen when it connected
	seen        wire.Zxid  // the beginning of an epoch, if that is what the client has seen last: replies show no smaller zxid
}

// Session and the next four methods make a conn a tree.Client.
func (c *conn) Session() wire.SessionID { return c.session }

// Identities returns what the client has proven.
func (c *conn) Identities() []wire.ID { return c.identities }

// Notify sends an event to the client.
func (c *conn) Notify(e tree.Event) { c.tcp.send(1, e) }

// Overflow fails the run: simulated clients are too small to have too many watches.
func (c *conn) Overflow() { c.v.sim.fail("Watches", "a client has too many watches") }

// Reserve records the zxid for the header of the reply.
func (c *conn) Reserve(z wire.Zxid) { c.zxid = z }

// accept takes a client's connection.
func (v *server) accept(k *tcpConn) {
	v.sim.lastConn++
	c := &conn{id: v.sim.lastConn, v: v, tcp: k}
	c.hearing.LastHeard = &c.heard
	v.conns = append(v.conns, c)
	v.sim.see(check.Connected{Conn: c.id})
	life := v.life
	k.ends[1].take = func(load any) {
		if v.life == life {
			v.arrive(func() { c.take(load) })
		}
	}
	k.ends[1].gone = func(string) {
		if v.life == life {
			v.arrive(func() { v.push(replica.Disconnected{Conn: c.id}) })
		}
	}
}

func (c *conn) now() int64 { return c.v.Clock.Mono(c.v.sim.now) / machine.Millisecond }

// take reads a message of the client.
func (c *conn) take(load any) {
	noted := c.touch(c.now())
	switch q := load.(type) {
	case client.Hello:
		c.v.sim.see(check.Heard{Session: q.Session})
		c.identities = []wire.ID{q.Identity}
		if q.Session != 0 {
			c.v.sim.see(check.Resumes{Conn: c.id})
		}
		if c.hello = q.Seen; q.Seen.Counter() == 0 {
			c.seen = q.Seen
		}
		c.v.push(replica.Connect{Conn: c.id, Session: q.Session, Password: q.Password, TimeoutMS: q.TimeoutMS, Seen: q.Seen, ReadOnly: q.ReadOnly})
	case client.Request:
		heard := check.Heard{Session: c.session}
		if noted && !c.ended && !c.readOnly {
			heard.Server, heard.Mono = c.v.id, c.now()
		}
		c.v.sim.see(heard)
		if c.ended {
			return
		}
		if q.Op == wire.OpPing || q.Op == wire.OpSync {
			c.v.sim.see(check.Asked{Server: c.v.id, Conn: c.id, Op: q.Op, At: c.v.sim.now})
		}
		if c.direct(q.Op, noted) {
			c.read(q.Xid, q.Op, q.Body)
			return
		}
		c.outstanding++
		c.closing = c.closing || q.Op == wire.OpCloseSession
		if q.Op == wire.OpSync {
			c.syncs++
		}
		if q.Op.IsWrite() || q.Op == wire.OpCloseSession {
			c.v.sim.see(check.Received{Server: c.v.id, Conn: c.id, Session: c.session, Xid: q.Xid})
		}
		r := &replica.Request{Conn: c.id, Xid: q.Xid, Op: q.Op, Body: q.Body, Identities: c.identities, Started: c.now()}
		if q.Op == wire.OpReconfig {
			r.Identities = []wire.ID{{Scheme: "super"}}
		}
		c.v.push(r)
		if q.Op == wire.OpCloseSession && c.syncs > 0 {
			c.expel()
		}
	}
}

// touch records that the session was heard from. It returns false if the session is sealed.
func (c *conn) touch(now int64) bool {
	at, ok := driver.Later(c.heard.Load(), now)
	if ok {
		c.heard.Store(at)
	}
	return ok
}

// direct reports whether a request may be answered without the loop. If noted is true, the
// arrival of the request already counts for the decision whether the session expires.
func (c *conn) direct(op wire.OpCode, noted bool) bool {
	v := c.v
	a := driver.Access{
		Unanswered: c.outstanding > 0, Closing: c.closing, Sealed: !noted || c.heard.Load() == driver.Sealed,
		ReadOnly: c.readOnly, Serving: v.led,
	}
	switch {
	case c.session == 0 || a.Waits(op):
		return false
	case op != wire.OpPing || c.readOnly:
		return true
	case v.compatible:
		return v.standing.Serving && !v.stepped
	}
	return v.lease.Holds(v.Clock.Time(v.sim.now))
}

// read carries out a request that changes nothing.
func (c *conn) read(xid int32, op wire.OpCode, body []byte) {
	t := c.v.tree
	var q wire.PathWatchRequest
	var code wire.Code
	var record wire.Record
	if op != wire.OpPing && !isRare(op) && wire.Decode(body, &q) != nil {
		panic("sim: a client sent " + op.String())
	}
	switch op {
	default:
		code, record = c.readRare(op, body)
	case wire.OpPing:
		t.Reserve(c)
		xid = wire.XidPing
	case wire.OpGetData:
		r := new(wire.DataResponse)
		code, record = t.GetData(c, q.Path, q.Watch, r), r
	case wire.OpExists:
		r := new(wire.StatResponse)
		code, record = t.Exists(c, q.Path, q.Watch, r), r
	case wire.OpGetChildren2:
		var l tree.Listing
		code = t.Children(c, q.Path, q.Watch, &l)
		record = &wire.ChildrenStatResponse{Children: l.All(), Stat: l.Stat}
	}
	if op == wire.OpSetWatches || op == wire.OpSetWatches2 {
		xid = wire.XidSetWatches
	}
	if c.readOnly {
		_, digest := t.Digest()
		c.v.sim.see(check.ReadAlone{Server: c.v.id, Standing: *c.v.replica.Status(), Zxid: c.zxid, Digest: digest})
	}
	c.reply(wire.ReplyHeader{Xid: xid, Zxid: c.zxid, Err: code}, record)
}

// isRare reports whether the request is not about a single znode, or about its ACL.
func isRare(op wire.OpCode) bool {
	return op == wire.OpSetWatches || op == wire.OpSetWatches2 || op == wire.OpAddWatch || op == wire.OpRemoveWatches || op == wire.OpMultiRead || op == wire.OpGetACL
}

// readRare carries out a request about watches or an ACL, or one that consists of many reads.
func (c *conn) readRare(op wire.OpCode, body []byte) (wire.Code, wire.Record) {
	decode := func(r wire.Record) {
		if wire.Decode(body, r) != nil {
			panic("sim: a client sent a bad " + op.String())
		}
	}
	switch t := c.v.tree; op {
	case wire.OpSetWatches:
		var q wire.SetWatchesRequest
		decode(&q)
		return t.SetWatches(c, &q), nil
	case wire.OpSetWatches2:
		var q wire.SetWatches2Request
		decode(&q)
		return t.SetWatches2(c, &q), nil
	case wire.OpAddWatch:
		var q wire.AddWatchRequest
		decode(&q)
		return t.AddWatch(c, q.Path, q.Mode), nil
	case wire.OpRemoveWatches:
		var q wire.WatchesRequest
		decode(&q)
		return t.RemoveWatches(c, q.Path, q.Type), nil
	case wire.OpGetACL:
		var q wire.PathRequest
		decode(&q)
		r := new(wire.ACLResponse)
		return t.GetACL(c, q.Path, r), r
	}
	var q wire.MultiRequest
	decode(&q)
	read, r := new(wire.MultiResponse), new(wire.MultiResponse)
	code := c.v.tree.MultiRead(c, q.Ops, math.MaxInt, read)
	if err := wire.Decode(wire.Append(nil, read), r); err != nil { // the names of many children are encoded already
		panic("sim: a multiRead has a bad answer: " + err.Error())
	}
	return code, r
}

func (c *conn) reply(h wire.ReplyHeader, record wire.Record) {
	if h.Err != wire.OK {
		record = nil
	}
	h.Zxid = max(h.Zxid, c.seen)
	if h.Xid == wire.XidPing && !c.readOnly {
		c.v.sim.see(check.Replied{Server: c.v.id, Conn: c.id, Session: c.session, Op: wire.OpPing})
	}
	c.tcp.send(1, client.Response{Header: h, Record: record})
}

// effect carries out an output of the replica that a client may see.
func (v *server) effect(o *replica.Output) {
	c := v.conn(o.Conn)
	if c == nil {
		return
	}
	switch o.Kind {
	case replica.Attached:
		if _, lives := v.tree.Session(o.Session); !lives && o.Session != 0 && !o.ReadOnly && v.sim.opt.LocalSessions < 0 {
			v.sim.fail("Sessions", "server %d, which has applied everything up to %v, gives session %v, which its tree does not have", v.id, v.tree.LastZxid(), o.Session)
			return
		}
		c.session, c.readOnly, c.timeoutMS = o.Session, o.ReadOnly, o.TimeoutMS
		c.heard.Store(c.now())
		c.epoch = v.standing.Epoch
		v.sim.see(check.Attached{Server: v.id, Conn: c.id, Session: o.Session, ReadOnly: o.ReadOnly, TimeoutMS: o.TimeoutMS, Seen: c.hello, Zxid: v.tree.LastZxid(), Epoch: v.standing.Epoch})
		v.sim.left(o.Session, c)
		if z := v.tree.LastZxid(); !o.ReadOnly && o.Session != 0 && z >= v.sim.attachments[o.Session].zxid { // else this server is behind
			v.sim.attachments[o.Session] = attachment{v, c.id, z}
		}
		c.tcp.send(1, client.Welcome{Session: o.Session, TimeoutMS: o.TimeoutMS, Password: o.Password, ReadOnly: o.ReadOnly})
	case replica.Reply:
		c.outstanding--
		if o.Request != nil && o.Request.Op == wire.OpSync {
			c.syncs--
		}
		if o.Request != nil && o.Request.Op == wire.OpSync && !c.readOnly {
			c.v.sim.see(check.Replied{Server: v.id, Conn: c.id, Session: c.session, Op: wire.OpSync, Err: o.Header.Err})
		}
		c.reply(o.Header, o.Response)
	case replica.Turn:
		c.outstanding--
		c.read(o.Request.Xid, o.Request.Op, o.Request.Body)
	case replica.Close:
		c.ended = true
		if v.compatible && !v.standing.Serving {
			v.sim.reach(situationCompatibleCloses)
		}
		c.tcp.close(1)
		v.push(replica.Disconnected{Conn: c.id})
	}
}

func (v *server) conn(id replica.ConnID) *conn {
	i := slices.IndexFunc(v.conns, func(c *conn) bool { return c.id == id })
	if i < 0 {
		return nil
	}
	return v.conns[i]
}

// forget drops a connection. Before that, it tells the replica when the session was last heard
// from.
func (v *server) forget(id replica.ConnID) {
	c := v.conn(id)
	if c == nil {
		return
	}
	if heard, ok := c.hearing.Unreported(); ok && c.session != 0 {
		v.replica.Step(v.at, replica.Touched{Sessions: []replica.Touch{{Session: c.session, Mono: heard}}})
	}
	v.tree.Forget(c)
	v.conns = slices.DeleteFunc(v.conns, func(o *conn) bool { return o == c })
}
