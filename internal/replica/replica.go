package replica

import (
	"bellwether/internal/ensemble"
	"bellwether/internal/fifo"
	"bellwether/internal/record"
	"bellwether/internal/tree"
	"bellwether/internal/zab"
	"bellwether/wire"
)

// Options fix the behaviour of a replica.
type Options struct {
	// ServerID is the server's number in its ensemble, 0 being one like any
	// other. Its low byte is the high byte of the session ids.
	ServerID ensemble.ServerID
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
	// Yield is called at least every few milliseconds in the middle of a Step, a
	// Ready or a Next that takes long, so that the driver can call Beat; nothing else
	// may be called. nil: nothing is called.
	Yield func()
	// Member makes it a server of an ensemble; nil: it is alone.
	Member *Member
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
}

// Replica is the mind of one server. See the package comment.
type Replica struct {
	opt  Options
	tree *tree.Tree

	conns  map[ConnID]*conn
	owners map[wire.SessionID]*conn
	// creating are the connections whose createSession is on its way.
	creating map[wire.SessionID]*conn
	expiry   *tree.Expiry
	locals   locals
	// ending are the sessions whose closeSession is proposed.
	ending map[wire.SessionID]bool
	nextID wire.SessionID

	now      Time
	lastTick int64
	grace    int64 // Mono before which nothing expires
	sweep    sweep

	alone  *alone  // what proposes and commits on a standalone server
	member *member // the same in an ensemble
	stall  stall   // of the disk

	asked      tree.Request // memory for prepare
	happenings []Happening
	outputs    fifo.Queue[Output]
}

// conn is a client connection of this server.
type conn struct {
	id      ConnID
	ask     Connect
	made    wire.SessionID // that was asked for, 0: none
	session wire.SessionID // 0 until it is attached
	timeout int32          // ms, negotiated
	closing bool           // its closeSession is proposed: nothing more is taken
	gone    bool           // Close was put out or Disconnected came in
	waiting fifo.Queue[*Request]
	attach  attaching
	since   int64 // Mono since which it is without a leader
	// readOnly: its session is of this server alone (readonly.go).
	readOnly bool
}

// New returns the replica over a loaded tree. Every session of the tree
// starts with its full timeout.
func New(t *tree.Tree, o Options, now Time) *Replica {
	o.defaults()
	r := &Replica{
		opt: o, tree: t, now: now, lastTick: now.Mono,
		conns: map[ConnID]*conn{}, owners: map[wire.SessionID]*conn{}, creating: map[wire.SessionID]*conn{},
		nextID: record.FirstSessionID(o.ServerID, now.Wall), locals: newLocals(o.TickMS),
	}
	t.OnYield(o.Yield)
	r.track()
	r.sweep.next = now.Mono + o.ContainerCheckMS
	if o.Member != nil {
		r.join()
	} else {
		r.alone = newAlone(t.LastZxid())
	}
	return r
}

// track begins to watch over the sessions of the tree, each with its full
// timeout.
func (r *Replica) track() {
	r.expiry, r.ending = tree.NewExpiry(r.opt.TickMS), map[wire.SessionID]bool{}
	r.tree.Sessions(func(id wire.SessionID, timeoutMS int32) {
		if c := r.owners[id]; c != nil {
			timeoutMS = c.timeout
		}
		r.expiry.Add(id, timeoutMS, r.now.Mono)
	})
}

// Step takes one event. Times must not go backwards.
func (r *Replica) Step(now Time, e Event) {
	r.wakesUp(now)
	r.now = now
	switch e := e.(type) {
	case *Request:
		r.request(e)
	case Connect:
		r.connect(e)
	case Disconnected:
		r.disconnected(e.Conn)
	case Touched:
		r.touched(e.Sessions)
	case Tick:
		r.tick()
	case Expire:
		r.expireNow(e.Session)
	case DiskStalled:
		r.diskStalled(e)
	case DiskAnswered:
		r.diskAnswered()
	default:
		if r.member != nil {
			r.stepMember(e)
		} else {
			r.stepAlone(e)
		}
	}
}

// Ready returns the duties that came of the steps since the last call.
func (r *Replica) Ready() Ready {
	var rd Ready
	if r.member != nil {
		rd = r.readyMember()
	} else {
		rd = r.alone.ready()
	}
	rd.Happenings = append(rd.Happenings, r.happenings...)
	r.happenings = nil
	return rd
}

// Next returns the next effect for a client, applying committed transactions
// as far as it must; false when there is none.
func (r *Replica) Next() (Output, bool) {
	for r.outputs.Len() == 0 {
		if r.member != nil && !r.nextMember() || r.member == nil && !r.nextAlone() {
			return Output{}, false
		}
	}
	return r.outputs.Pop(), true
}

// Unsettled reports whether there is more for Ready: what Next did has led to
// duties.
func (r *Replica) Unsettled() bool { return r.member != nil && r.member.unsettled }

// Applied is the last transaction applied to the tree.
func (r *Replica) Applied() wire.Zxid { return r.tree.LastZxid() }

// Ending reports whether the end of a session is proposed, or the last Tick
// has ended it.
func (r *Replica) Ending(id wire.SessionID) bool {
	return r.ending[id] || r.locals.ended[id]
}

// Expiring lists the sessions by the Mono time at which they expire; on a
// server that does not lead, none.
func (r *Replica) Expiring() []tree.ExpiryBucket {
	if !r.decides() {
		return nil
	}
	return r.expiry.Buckets()
}

// decides reports whether this server turns requests into transactions.
func (r *Replica) decides() bool {
	return r.alone != nil || r.member.leads()
}

// propose prepares a request of the tree and has it logged, where this server
// decides. A nil transaction: nothing is proposed, the code is the answer; OK
// then means that the term ends.
func (r *Replica) propose(req tree.Request) (*record.Txn, wire.Code) {
	z, ok := r.nextZxid()
	if !ok {
		return nil, wire.OK
	}
	r.asked = req
	txn, code := r.tree.Prepare(&r.asked, z, r.now.Wall)
	r.asked = tree.Request{Plain: r.asked.Plain}
	if txn != nil {
		r.log(txn)
	}
	return txn, code
}

func (r *Replica) nextZxid() (wire.Zxid, bool) {
	if r.alone != nil {
		return nextZxid(r.alone.proposed), true
	}
	return r.member.leader.NextZxid()
}

// log hands a transaction on to be made durable, here or in a quorum.
func (r *Replica) log(txn *record.Txn) {
	if r.alone != nil {
		r.alone.propose(txn)
	} else {
		r.member.leader.Step(r.now.Mono, zab.Propose{Txn: txn})
	}
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

// apply carries out one committed transaction and answers who waited for it.
func (r *Replica) apply(txn *record.Txn) {
	apply := r.tree.Apply
	if r.owners[txn.Session] == nil {
		apply = r.tree.Replay
	}
	res := apply(txn)
	for _, h := range r.tree.Happenings() {
		r.happened(h)
	}
	switch txn.Type {
	case wire.OpCreateSession:
		r.created(txn)
	case wire.OpCloseSession:
		r.closed(txn, res)
	case wire.OpError:
		r.failed(txn, res)
	default:
		r.answer(r.owners[txn.Session], txn, res)
	}
}

// answer replies to a connection's oldest request if a transaction is what it
// waits for, and gives a turn to those behind it that need none.
func (r *Replica) answer(c *conn, txn *record.Txn, res tree.Result) {
	if c == nil || c.waiting.Len() == 0 {
		return
	}
	if q := *c.waiting.First(); q.awaits(txn) {
		c.waiting.Pop()
		if m, ok := res.Response.(*wire.MultiResponse); ok {
			if q.zxid == forwarded {
				q.plain = tree.PlainCreates(q.Body)
			}
			tree.AsAsked(m, q.plain)
		}
		r.outputs.Push(Output{Kind: Reply, Conn: c.id, Request: q, Response: res.Response,
			Header: wire.ReplyHeader{Xid: q.Xid, Zxid: res.Zxid, Err: res.Err}})
		r.proceed(c)
	}
}

// In Request.zxid: the leader was asked for a transaction; or there is no
// leader and the request is held.
const (
	forwarded wire.Zxid = -1
	held      wire.Zxid = -2
)

// awaits reports whether a transaction of its session answers a request. One
// that was forwarded is the next of that session with its number: behind the
// sync that attached it nothing older can come (attach.go). The end of a
// session that expires has a number too, 0, and answers nobody.
func (q *Request) awaits(txn *record.Txn) bool {
	if txn.Type == wire.OpCloseSession && q.Op != txn.Type {
		return false
	}
	return q.zxid == txn.Zxid || q.zxid == forwarded && q.Xid == txn.Cxid
}

// pending reports whether something is still to come before a request can be
// answered.
func (q *Request) pending() bool { return q.zxid != 0 || q.token != 0 }

// proceed answers a connection's oldest requests as far as they wait for
// nothing.
func (r *Replica) proceed(c *conn) {
	for f := c.waiting.First(); f != nil && !(*f).pending(); f = c.waiting.First() {
		r.answerNow(c, c.waiting.Pop())
	}
}
