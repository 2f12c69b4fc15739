package replica

import (
	"bellwether/internal/tree"
	"bellwether/wire"
)

// Options fix the behaviour of a replica.
type Options struct {
	// ServerID is the high byte of the session ids; 1 on a standalone server.
	ServerID wire.ServerID
	// TickMS is tickTime. Sessions expire in buckets of it.
	TickMS int64
	// SessionMinMS and SessionMaxMS bound what a client may ask for;
	// 0: 2 and 20 ticks.
	SessionMinMS, SessionMaxMS int32
	// ContainerCheckMS is how often containers and TTL znodes are looked
	// through (0: 60 s), ContainersPerMinute how many of them are removed in a
	// minute at most (0: 10,000).
	ContainerCheckMS    int64
	ContainersPerMinute int64
}

// defaults fills in what was left 0.
func (o *Options) defaults() {
	set := func(v *int64, d int64) {
		if *v == 0 {
			*v = d
		}
	}
	set(&o.TickMS, 3000)
	set(&o.ContainerCheckMS, 60_000)
	set(&o.ContainersPerMinute, 10_000)
	if o.SessionMinMS == 0 {
		o.SessionMinMS = int32(2 * o.TickMS)
	}
	if o.SessionMaxMS == 0 {
		o.SessionMaxMS = int32(20 * o.TickMS)
	}
	if o.ServerID == 0 {
		o.ServerID = 1
	}
}

// Replica is the mind of one server. See the package comment.
type Replica struct {
	opt  Options
	tree *tree.Tree

	conns  map[ConnID]*conn
	owners map[wire.SessionID]*conn
	expiry *tree.Expiry
	// ending are the sessions whose closeSession is proposed.
	ending map[wire.SessionID]bool
	nextID wire.SessionID

	now        Time
	lastTick   int64
	grace      int64     // Mono before which nothing expires
	proposed   wire.Zxid // the last zxid given out
	durable    wire.Zxid // the last one that is committed
	generation uint64
	full       bool // the log has no room: writes are refused
	room       bool // there is room again, but committed ones are still to be applied
	inflight   queue[proposal]
	sweep      sweep

	asked      tree.Request // memory for propose
	append     []*wire.Txn
	happenings []Happening
	outputs    queue[Output]
}

// proposal is a transaction on its way through the log.
type proposal struct {
	txn *wire.Txn
	// conn and request are who waits for it; nil: nobody.
	conn    *conn
	request *Request
}

// conn is a client connection of this server.
type conn struct {
	id      ConnID
	session wire.SessionID // 0 until it is attached
	timeout int32          // ms, negotiated
	closing bool           // its closeSession is proposed: nothing more is taken
	gone    bool           // Close was put out or Disconnected came in
	waiting queue[*Request]
}

// New returns the replica over a loaded tree. Every session of the tree
// starts with its full timeout.
func New(t *tree.Tree, o Options, now Time) *Replica {
	o.defaults()
	r := &Replica{
		opt: o, tree: t, now: now, lastTick: now.Mono,
		conns: map[ConnID]*conn{}, owners: map[wire.SessionID]*conn{},
		ending: map[wire.SessionID]bool{},
		expiry: tree.NewExpiry(o.TickMS),
		nextID: wire.FirstSessionID(o.ServerID, now.Wall),
	}
	r.generation = 1
	r.proposed = t.LastZxid()
	r.durable = r.proposed
	r.sweep.next = now.Mono + o.ContainerCheckMS
	t.Sessions(func(id wire.SessionID, timeoutMS int32) { r.expiry.Add(id, timeoutMS, now.Mono) })
	return r
}

// Step takes one event. Times must not go backwards.
func (r *Replica) Step(now Time, e Event) {
	r.now = now
	switch e := e.(type) {
	case *Request:
		r.request(e)
	case Connect:
		r.connect(e)
	case Disconnected:
		r.disconnected(e.Conn)
	case Touched:
		for _, t := range e.Sessions {
			r.expiry.Touch(t.Session, t.Mono)
		}
	case Synced:
		r.synced(e)
	case LogFull:
		r.logFull(e)
	case LogFree:
		r.logFree()
	case Tick:
		r.tick()
	}
}

// Ready returns the duties that came of the steps since the last call.
func (r *Replica) Ready() Ready {
	rd := Ready{Append: r.append, Generation: r.generation, Happenings: r.happenings}
	r.append, r.happenings = nil, nil
	return rd
}

// Next returns the next effect for a client, applying committed transactions
// as far as it must; false when there is none.
func (r *Replica) Next() (Output, bool) {
	for r.outputs.len() == 0 {
		p := r.inflight.first()
		if p == nil && r.room {
			r.resume()
		}
		if p == nil || p.txn.Zxid > r.durable {
			return Output{}, false
		}
		r.apply(r.inflight.pop())
	}
	return r.outputs.pop(), true
}

// Applied is the last transaction applied to the tree.
func (r *Replica) Applied() wire.Zxid { return r.tree.LastZxid() }

// Ending reports whether the end of a session is proposed.
func (r *Replica) Ending(id wire.SessionID) bool { return r.ending[id] }

// Expiring lists the sessions by the Mono time at which they expire.
func (r *Replica) Expiring() []tree.ExpiryBucket { return r.expiry.Buckets() }

// propose prepares a request of the tree and appends what comes of it. A nil
// transaction: nothing is proposed, the code is the answer.
func (r *Replica) propose(req tree.Request, c *conn, q *Request) (*wire.Txn, wire.Code) {
	z := nextZxid(r.proposed)
	r.asked = req
	txn, code := r.tree.Prepare(&r.asked, z, r.now.Wall)
	r.asked = tree.Request{}
	if txn == nil {
		return nil, code
	}
	r.proposed = z
	if q != nil {
		q.zxid = z
	}
	r.inflight.push(proposal{txn, c, q})
	r.append = append(r.append, txn)
	return txn, wire.OK
}

// nextZxid follows z. When the counter of an epoch is used up the next epoch
// begins: a counter that ran into the epoch's bits would start at 0, which is
// no transaction (ZOOKEEPER-1277).
func nextZxid(z wire.Zxid) wire.Zxid {
	if z.Counter() == 1<<32-1 {
		return wire.MakeZxid(z.Epoch()+1, 1)
	}
	return z + 1
}

// synced commits what has become durable; Next applies it.
func (r *Replica) synced(e Synced) {
	if e.Generation == r.generation && e.Zxid > r.durable {
		r.durable = min(e.Zxid, r.proposed)
	}
}

// apply carries out one committed transaction and answers who waited for it.
func (r *Replica) apply(p proposal) {
	res := r.tree.Apply(p.txn)
	for _, h := range r.tree.Happenings() {
		r.happenings = append(r.happenings, h)
	}
	switch p.txn.Type {
	case wire.OpCreateSession:
		r.created(p)
		return
	case wire.OpCloseSession:
		r.closed(p, res)
		return
	}
	if p.conn != nil && !p.conn.gone {
		r.answer(p.conn, res)
	}
}

// answer replies to the oldest waiting request of a connection with what its
// transaction came to, and gives a turn to those behind it that need none.
func (r *Replica) answer(c *conn, res tree.Result) {
	q := c.waiting.pop()
	if q.zxid != res.Zxid {
		panic("replica: connection's oldest request waits for " + q.zxid.String() + ", applied is " + res.Zxid.String())
	}
	r.outputs.push(Output{Kind: Reply, Conn: c.id, Request: q, Response: res.Response,
		Header: wire.ReplyHeader{Xid: q.Xid, Zxid: res.Zxid, Err: res.Err}})
	for f := c.waiting.first(); f != nil && (*f).zxid == 0; f = c.waiting.first() {
		r.answerNow(c, c.waiting.pop())
	}
}
