package replica

import (
	"bellwether/internal/ensemble"
	"bellwether/internal/fifo"
	"bellwether/internal/record"
	"bellwether/internal/tree"
	"bellwether/internal/zab"
	"bellwether/wire"
)

// Options are the parameters of a replica.
type Options struct {
	// ServerID is the server's number in its ensemble; 0 is a valid number. Its low byte
	// is the high byte of the ids of the sessions that this server makes.
	ServerID ensemble.ServerID
	// TickMS is tickTime. The deadlines of sessions are rounded up to a multiple of it.
	TickMS int64
	// SessionMinMS and SessionMaxMS bound the session timeout that a client gets; 0: 2
	// and 20 ticks.
	SessionMinMS, SessionMaxMS int32
	// ContainerCheckMS is the interval between two searches for containers and TTL znodes
	// to remove (0: 60 s). ContainersPerMinute is the most that are removed in a minute
	// (0: 10,000).
	ContainerCheckMS    int64
	ContainersPerMinute int64
	// ExpireMax is how many sessions end at a time if more have expired in a tick (0: 256). The next ones follow when the ends
	// of these are applied, or 10 ms later, so that the writes of clients wait for few other transactions.
	ExpireMax int
	// Yield is called at least every few milliseconds while a Step, a Ready or a Next
	// takes long, so that the driver can call Heartbeat. It must not call any other method. It
	// may be nil.
	Yield func()
	// Secrets make and check the passwords of sessions; nil: ZooKeeper's checksum of the
	// session id. With a secret of its own first, a server of an ensemble refuses ZooKeeper
	// servers as leader and as learners, because they could not check the passwords.
	Secrets Secrets
	// ReportAbandoned makes a Reply of every applied request of a client of this server,
	// even if its connection has ended since: an audit log needs them all.
	ReportAbandoned bool
	// Member makes the server a member of an ensemble; nil: the server is standalone.
	Member *Member
}

// defaults replaces zero values by their defaults.
func (o *Options) defaults() {
	set := func(v *int64, d int64) {
		if *v == 0 {
			*v = d
		}
	}
	set(&o.TickMS, 3000)
	set(&o.ContainerCheckMS, 60_000)
	set(&o.ContainersPerMinute, 10_000)
	if o.ExpireMax == 0 {
		o.ExpireMax = 256
	}
	if o.SessionMinMS == 0 {
		o.SessionMinMS = int32(2 * o.TickMS)
	}
	if o.SessionMaxMS == 0 {
		o.SessionMaxMS = int32(20 * o.TickMS)
	}
}

// Replica is the core of one server; the package comment says how a driver uses it.
// Invariants: exactly one of alone and member is set. conns holds the open connections.
// owners holds, by session, the open connection that is attached to it.
type Replica struct {
	opt  Options
	tree *tree.Tree

	conns  map[ConnID]*conn
	owners map[wire.SessionID]*conn
	// creating holds, by session, the connections whose createSession is proposed or
	// forwarded and not applied.
	creating map[wire.SessionID]*conn
	expiry   *tree.Expiry
	locals   locals
	// ending holds the sessions whose closeSession is proposed and not applied.
	ending map[wire.SessionID]bool
	nextID wire.SessionID

	now      Time
	lastTick int64
	grace    int64 // Mono time before which nothing expires
	// doomed holds the sessions that have expired and whose ends are not proposed yet, and turns has them in the order in which
	// they end, beside some that were heard from since.
	doomed   map[wire.SessionID]tree.Overdue
	turns    fifo.Queue[wire.SessionID]
	expired  wire.Zxid // the last transaction that ends an expired session
	expireAt int64     // Mono time at which the next ones end even if that transaction is not applied
	sweep    sweep

	alone   *standalone // proposes and commits on a standalone server, else nil
	member  *member     // the state of a server in an ensemble, else nil
	stall   stall       // the duty that the disk has not answered in time
	health  health      // whether another server should lead
	differs differs     // what is known about a difference between this tree and its leader's

	asked        tree.Request         // reused by propose, to avoid an allocation
	resent       bool                 // if leadership is transferred now, the next leader gets the request that propose prepares
	awaits       *ensemble.Membership // the reconfiguration that propose has prepared waits for a quorum of it; nil: it does not
	observations []Observation
	abandoned    abandoned
	outputs      fifo.Queue[Output]
}

// conn is a client connection of this server. Invariants: waiting holds the requests that
// are not answered, in the order in which they came, and no request of the connection is
// answered before an earlier one. An ended connection is in neither Replica.conns nor
// Replica.owners, and waiting is empty.
type conn struct {
	id          ConnID
	ask         Connect
	requestedID wire.SessionID // the id with which a new session was requested; 0: none
	session     wire.SessionID // 0 until the connection is attached to its session
	timeout     int32          // negotiated, in ms
	closing     bool           // a closeSession of the session is proposed: later requests are ignored
	ended       bool           // the connection has ended
	waiting     fifo.Queue[*Request]
	attach      attaching
	since       int64 // Mono time since which it is without a leader
	// readOnly: its session belongs to read-only service (readonly.go).
	readOnly bool
}

// New returns a replica over a loaded tree. Every session of the tree starts with its
// full timeout.
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
		r.alone = newStandalone(t.LastZxid())
	}
	return r
}

// track starts the expiry of all sessions of the tree, each with its full timeout. A standalone server
// goes on with the timeouts that it knows.
func (r *Replica) track() {
	before := r.expiry
	r.expiry, r.ending = tree.NewExpiry(r.opt.TickMS), map[wire.SessionID]bool{}
	r.doomed, r.turns, r.expired = map[wire.SessionID]tree.Overdue{}, fifo.Queue[wire.SessionID]{}, 0
	r.tree.Sessions(func(id wire.SessionID, createdMS int32) {
		d := tree.Overdue{Session: id, TimeoutMS: createdMS, Assumed: true}
		if r.alone != nil && before != nil {
			if timeout, assumed := before.Timeout(id); timeout > 0 {
				d.TimeoutMS, d.Assumed = timeout, assumed
			}
		}
		r.restart(d)
	})
}

// Step takes one event. now.Mono must not be smaller than in the calls before.
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

// Ready returns the duties of all steps since the last call.
func (r *Replica) Ready() Ready {
	if r.stoodStill() {
		r.spare()
	}
	if r.overdue() {
		r.expire()
	}
	var rd Ready
	if r.member != nil {
		rd = r.readyMember()
	} else {
		rd = r.alone.ready()
	}
	rd.Wake = min(rd.Wake, r.expiryWake())
	rd.Observations = append(rd.Observations, r.observations...)
	r.observations = nil
	return rd
}

// Next returns the next output for a client. It applies committed transactions until
// there is an output, and returns false when there is none.
func (r *Replica) Next() (Output, bool) {
	for r.outputs.Len() == 0 {
		if r.member != nil && !r.nextMember() || r.member == nil && !r.nextAlone() {
			return Output{}, false
		}
	}
	return r.outputs.Pop(), true
}

// Unsettled reports whether Next has caused duties, so that Ready must be called again.
func (r *Replica) Unsettled() bool { return r.member != nil && r.member.unsettled || r.overdue() }

// Applied returns the zxid of the last transaction that is applied to the tree.
func (r *Replica) Applied() wire.Zxid { return r.tree.LastZxid() }

// Ending reports whether the end of a session is proposed, or a Tick has expired it and its client was not heard from since.
func (r *Replica) Ending(id wire.SessionID) bool {
	return r.ending[id] || r.isDoomed(id) || r.locals.ended[id]
}

// Expiring returns the sessions grouped by the Mono time at which they expire. It returns
// nil on a server that does not lead.
func (r *Replica) Expiring() []tree.ExpiryBucket {
	if !r.decides() {
		return nil
	}
	return r.expiry.Buckets()
}

// decides reports whether this server turns requests into transactions: it is standalone
// or an established leader.
func (r *Replica) decides() bool {
	return r.alone != nil || r.member.leads()
}

// propose prepares a request on the tree and logs its transaction. Only a server that
// decides may call it. If it returns a nil transaction, nothing is proposed and the code
// is the answer, except that code OK means that the term is about to end.
func (r *Replica) propose(req tree.Request) (*record.Txn, wire.Code) {
	r.asked, r.awaits = req, nil
	z, ok := r.nextZxid()
	if !ok {
		return nil, wire.OK
	}
	if r.member != nil && r.member.opt.Reconfig && req.Op == wire.OpReconfig {
		r.asked.Reconfigure = r.reconfigure
	}
	txn, code := r.tree.Prepare(&r.asked, z, r.now.Wall)
	r.asked = tree.Request{WithoutStat: r.asked.WithoutStat}
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

// log starts to make a transaction durable, on this server or on a quorum.
func (r *Replica) log(txn *record.Txn) {
	if r.alone != nil {
		r.alone.propose(txn)
	} else {
		r.member.leader.Step(r.now.Mono, zab.Propose{Txn: txn})
	}
}

// nextZxid returns the zxid after z. When the counter of an epoch is used up, the next
// epoch begins: if the counter overflowed into the epoch's bits it would start at 0,
// which is not a valid transaction (ZOOKEEPER-1277).
func nextZxid(z wire.Zxid) wire.Zxid {
	if z.Counter() == 1<<32-1 {
		return wire.MakeZxid(z.Epoch()+1, 1)
	}
	return z + 1
}

// apply applies one committed transaction and answers the request that waits for it.
func (r *Replica) apply(txn *record.Txn) {
	apply := r.tree.Apply
	if r.owners[txn.Session] == nil && r.abandoned.requests[txn.Session] == nil {
		apply = r.tree.Replay
	}
	res := apply(txn)
	for _, h := range r.tree.Observations() {
		r.observe(h)
	}
	r.answerTree()
	if r.abandoned.count > 0 {
		r.reportAbandoned(txn, res)
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

// answer replies to a connection's oldest request if txn is its transaction. Then it
// answers the later requests that wait for nothing.
func (r *Replica) answer(c *conn, txn *record.Txn, res tree.Result) {
	if c == nil || c.waiting.Len() == 0 {
		return
	}
	if q := *c.waiting.First(); q.awaits(txn) {
		c.waiting.Pop()
		if m, ok := res.Response.(*wire.MultiResponse); ok {
			if q.zxid == forwarded {
				q.withoutStat = tree.CreatesWithoutStat(q.decodedMulti())
			}
			tree.RestoreCreateTypes(m, q.withoutStat)
		}
		r.outputs.Push(Output{Kind: Reply, Conn: c.id, Request: q, Response: res.Response,
			Header: wire.ReplyHeader{Xid: q.Xid, Zxid: res.Zxid, Err: res.Err}})
		r.answerOldest(c)
	}
}

// Special values of Request.zxid: the request was sent to the leader, whose zxid is not
// known yet; or the request is held, because there is no leader or an earlier request
// must be answered first.
const (
	forwarded wire.Zxid = -1
	held      wire.Zxid = -2
)

// awaits reports whether a transaction of the same session answers a request. A forwarded
// request is answered by the next transaction with its xid: the transactions of earlier
// connections were all applied before this connection was attached (attach.go). Under a
// ZooKeeper leader that is not certain, and some clients use the same xids again on each
// connection; then the transaction of another request is passed over, if it shows.
func (q *Request) awaits(txn *record.Txn) bool {
	return q.matches(txn) && !(q.doubtful && q.foreign(txn))
}

// matches reports whether a transaction of the same session has the zxid or the xid of a request. The
// closeSession of a session that expires has cxid 0 and matches no other request.
func (q *Request) matches(txn *record.Txn) bool {
	if txn.Type == wire.OpCloseSession && q.Op != txn.Type {
		return false
	}
	return q.zxid == txn.Zxid || q.zxid == forwarded && q.Xid == txn.Cxid
}

// pending reports whether a request still waits for a transaction or a sync.
func (q *Request) pending() bool { return q.zxid != 0 || q.token != 0 }

// answerOldest answers the oldest requests of a connection, up to the first one that is
// pending.
func (r *Replica) answerOldest(c *conn) {
	for f := c.waiting.First(); f != nil && !(*f).pending(); f = c.waiting.First() {
		r.answerNow(c, c.waiting.Pop())
	}
}
