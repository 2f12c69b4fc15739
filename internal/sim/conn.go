package sim

import (
	"math"
	"slices"

	"bellwether/internal/replica"
	"bellwether/internal/tree"
	"bellwether/wire"
)

// conn is a client's connection as its server has it. It does what
// internal/server does with one: reads go to the tree at once, unless an
// earlier request is unanswered; all else goes to the loop.
type conn struct {
	id          replica.ConnID
	v           *server
	cord        *cord // end 1 is the server's
	session     wire.SessionID
	readOnly    bool  // the session is one of a server without a quorum
	ended       bool  // nothing is answered any more
	heard       int64 // Mono
	reported    int64
	outstanding int
	epoch       wire.Epoch // in which its server last began to serve
	zxid        wire.Zxid  // of the reply being built
	seen        wire.Zxid  // the beginning of an epoch, if its client has seen that last: nothing earlier is shown
}

// What a client sends.
type (
	hello struct { // a ConnectRequest
		session   wire.SessionID
		password  []byte
		timeoutMS int32
		seen      wire.Zxid
		readOnly  bool // a server without a quorum will do
	}
	request struct {
		xid  int32
		op   wire.OpCode
		body []byte
	}
)

// What a server sends.
type (
	welcome struct { // a ConnectResponse
		session   wire.SessionID
		timeoutMS int32
		password  [wire.PasswordLen]byte
		readOnly  bool
	}
	response struct {
		header wire.ReplyHeader
		record wire.Record
	}
)

// Session and the next three make a conn a tree.Client.
func (c *conn) Session() wire.SessionID { return c.session }

// Identities of a simulated client are none.
func (c *conn) Identities() []wire.ID { return nil }

// Notify sends an event.
func (c *conn) Notify(e tree.Event) { c.cord.send(1, e) }

// Overflow does not happen to clients this small.
func (c *conn) Overflow() { c.v.sim.fail("Watches", "a client has too many watches") }

// Reserve takes the zxid for the reply's header.
func (c *conn) Reserve(z wire.Zxid) { c.zxid = z }

// accept takes a client's connection.
func (v *server) accept(k *cord) {
	v.sim.lastConn++
	c := &conn{id: v.sim.lastConn, v: v, cord: k, reported: -1}
	v.conns = append(v.conns, c)
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

func (c *conn) now() int64 { return c.v.clock.mono(c.v.sim.now) / millisecond }

// take reads what a client has sent.
func (c *conn) take(load any) {
	c.heard = c.now()
	switch q := load.(type) {
	case hello:
		if q.seen.Counter() == 0 {
			c.seen = q.seen
		}
		c.v.push(replica.Connect{Conn: c.id, Session: q.session, Password: q.password, TimeoutMS: q.timeoutMS, Seen: q.seen, ReadOnly: q.readOnly})
	case request:
		if c.ended {
			return
		}
		if c.direct(q) {
			c.read(q.xid, q.op, q.body)
			return
		}
		if q.op != wire.OpPing {
			c.outstanding++
		}
		c.v.push(&replica.Request{Conn: c.id, Xid: q.xid, Op: q.op, Body: q.body})
	}
}

// direct reports whether a request may be answered without the loop. A ping
// may under the lease, of a session that is not about to end.
func (c *conn) direct(q request) bool {
	switch {
	case c.session == 0 || c.outstanding > 0 || q.op.IsWrite() || q.op == wire.OpSync || q.op == wire.OpCloseSession:
		return false
	case c.readOnly:
		return !replica.ReadOnlyRefuses(q.op) && !c.v.stepped
	case q.op == wire.OpPing && c.v.plain:
		return c.v.standing.Serving && !c.v.replica.Ending(c.session) && !c.v.stepped
	case q.op == wire.OpPing:
		return c.leased() && !c.v.replica.Ending(c.session)
	}
	return true
}

// leased reports whether it is certain, by both clocks, that the server leads.
func (c *conn) leased() bool {
	v := c.v
	now := v.clock.time(v.sim.now)
	return now.Mono <= v.lease && (v.lease == replica.Never || now.Wall <= v.leaseWall)
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
		c.v.sim.see(readAlone{c.v, c.zxid, digest})
	}
	c.reply(wire.ReplyHeader{Xid: xid, Zxid: c.zxid, Err: code}, record)
}

// isRare: the request is not about one znode.
func isRare(op wire.OpCode) bool {
	return op == wire.OpSetWatches || op == wire.OpSetWatches2 || op == wire.OpAddWatch || op == wire.OpRemoveWatches || op == wire.OpMultiRead
}

// readRare carries out a request about watches, or one of many reads.
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
	}
	var q wire.MultiRequest
	decode(&q)
	r := new(wire.MultiResponse)
	return c.v.tree.MultiRead(c, q.Ops, math.MaxInt, r), r
}

func (c *conn) reply(h wire.ReplyHeader, record wire.Record) {
	if h.Err != wire.OK {
		record = nil
	}
	h.Zxid = max(h.Zxid, c.seen)
	c.cord.send(1, response{h, record})
}

// effect carries out what a client may see.
func (v *server) effect(o *replica.Output) {
	c := v.conn(o.Conn)
	if c == nil {
		return
	}
	switch o.Kind {
	case replica.Attached:
		c.session, c.readOnly = o.Session, o.ReadOnly
		c.epoch = v.standing.Epoch
		v.sim.see(attached{v, c, o.Session})
		v.sim.left(o.Session, c)
		c.cord.send(1, welcome{o.Session, o.TimeoutMS, o.Password, o.ReadOnly})
	case replica.Reply:
		if o.Request.Op != wire.OpPing {
			c.outstanding--
		}
		c.reply(o.Header, o.Response)
	case replica.Turn:
		if o.Request.Op != wire.OpPing {
			c.outstanding--
		}
		c.read(o.Request.Xid, o.Request.Op, o.Request.Body)
	case replica.Close:
		c.ended = true
		if v.plain && !v.standing.Serving {
			v.sim.reach(situationPlainCloses)
		}
		c.cord.close(1)
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

// forget drops a connection; that its session was heard of is told first.
func (v *server) forget(now replica.Time, id replica.ConnID) {
	c := v.conn(id)
	if c == nil {
		return
	}
	if c.session != 0 && c.heard != c.reported {
		v.replica.Step(now, replica.Touched{Sessions: []replica.Touch{{Session: c.session, Mono: c.heard}}})
	}
	v.tree.Forget(c)
	v.conns = slices.DeleteFunc(v.conns, func(o *conn) bool { return o == c })
}

// touches are the sessions heard from since the last tick.
func (v *server) touches() (out []replica.Touch) {
	for _, c := range v.conns {
		if c.session != 0 && c.heard != c.reported && !v.replica.Ending(c.session) {
			c.reported = c.heard
			out = append(out, replica.Touch{Session: c.session, Mono: c.heard})
		}
	}
	return out
}
