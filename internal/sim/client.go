package sim

import (
	"fmt"
	"strings"

	"bellwether/internal/tree"
	"bellwether/wire"
)

// client is a machine with a client on it. The client keeps a session, and reads and writes
// at a rate that its options set. The order of its calls is that in which it sent them.
type client struct {
	host
	sim    *Sim
	id     int
	random *random

	session   wire.SessionID
	timeoutMS int32
	seen      wire.Zxid
	xid       int32
	answered  int64 // number of requests that were answered

	tries      int // number of connections so far; events of an earlier one are ignored
	cord       *cord
	at, home   *server // the server it is connected to; the server where its session was last
	attached   bool
	helloAt    int64   // Mono ms at which it sent the hello of this connection
	leaderless bool    // there was no leader when it connected
	heard      int64   // Mono ms of the last message from the server
	sent       int64   // Mono ms of the last message to the server
	calls      []*call // under way, in the order in which they were sent
	watches    []watch
	streams    []*stream  // watches of trees, for caches
	told       wire.Zxid  // zxid of the newest event; its next server must have that too
	busy       bool       // it has callsMax calls under way
	candidate  *candidate // the candidate that the checkers watch; nil: there is none
	player     player     // the state machine of its recipe, which may be candidate; nil: it only reads and writes
	silent     bool       // it hangs: it neither reads nor sends
	stopped    bool       // the process is stopped, or the machine is suspended
	backlog    []func()   // events that arrived while it was stopped
	slept      bool       // its machine was suspended at least once
	setBack    bool       // its wall clock was set back at least once
	script     bool       // a scenario decides what it requests and where it connects
	only       *server
	reader     bool // it accepts a server without a quorum, and keeps no session
	lonely     bool // it is connected to a server without a quorum
}

// call is a request under way.
type call struct {
	client  *client
	n       int64 // number among all calls of a run
	session wire.SessionID
	xid     int32
	op      wire.OpCode
	path    string
	value   string // the value that the call writes
	body    []byte
	watch   *watch // the watch that the call sets
	issued  int64  // µs
	done    int64  // µs, 0: not yet
	floor   wire.Zxid
	synced  bool // the call is a read behind a sync that was issued at the same time
	then    func(r *response)
	record  wire.Record // the answer
	err     wire.Code
	zxid    wire.Zxid
}

// watch is a one-shot watch of a client that has not fired yet.
type watch struct {
	path string
	kids bool // a watch on the list of children
	none bool // the znode did not exist when the watch was set
	zxid wire.Zxid
	tell func(wire.EventType) // nil: no state machine is told
	// passing says that the watch ends with its connection and is not set again.
	passing bool
}

// retryAfter is the pause, in µs, before the client tries another server.
const retryAfter = 30 * millisecond

func (c *client) mono() int64 { return c.clock.mono(c.sim.now) / millisecond }

// later runs do after d µs, unless the present connection has ended by then.
func (c *client) later(d int64, do func()) {
	tries := c.tries
	c.after(d, func() {
		if c.tries == tries && !c.silent {
			do()
		}
	})
}

// connect tries to connect to a server that is drawn at random.
func (c *client) connect() {
	c.tries++
	c.attached, c.cord = false, nil
	s := c.sim
	v := s.servers[c.random.below(int64(len(s.servers)))]
	for v = c.prefers(v); s.calm && v.absent; { // an absent server is in nobody's list any more
		v = s.servers[int(v.id)%len(s.servers)]
	}
	if c.only != nil {
		v = c.only
	}
	again := func() { c.later(retryAfter, c.connect) }
	if !s.net.through(&c.host, &v.host) || !v.on {
		c.later(int64(c.timeout())*millisecond/6, c.connect)
		return
	}
	c.later(s.net.latency(&c.host, &v.host)*2, func() {
		if !v.up {
			again()
			return
		}
		if v.paused {
			s.reach(situationStoppedAccepts)
		}
		c.at = v
		k := s.net.newCord(&c.host, &v.host)
		c.cord = k
		k.ends[0].take = func(load any) {
			c.arrive(func() {
				if c.cord == k && !c.silent {
					c.take(load)
				}
			})
		}
		k.ends[0].gone = func(string) {
			c.arrive(func() {
				if c.cord == k && !c.silent {
					c.drop()
				}
			})
		}
		v.accept(k)
		c.hello()
	})
}

// timeout returns the timeout of the session or, without a session, the one to request.
func (c *client) timeout() int32 {
	if c.timeoutMS == 0 {
		return int32(c.sim.opt.TickMS * 8)
	}
	return c.timeoutMS
}

func (c *client) hello() {
	if c.reader {
		c.renew()
	}
	h := hello{readOnly: c.reader, session: c.session, timeoutMS: int32(c.sim.opt.TickMS * 8), seen: max(c.seen, c.told)}
	if c.session != 0 {
		p := c.session.Password()
		h.password = p[:]
	}
	c.leaderless = c.sim.leader() == nil
	c.helloAt, c.heard, c.sent = c.mono(), c.mono(), c.mono()
	c.cord.send(0, h)
	c.watchdog()
}

// watchdog ends a silent connection, and sends a ping on an idle one.
func (c *client) watchdog() {
	t := int64(c.timeout())
	pingEvery := t / 3
	if c.player != nil && c.player.eager() {
		pingEvery = t / 10
	}
	c.later(min(t*millisecond/20, 100*millisecond), func() {
		now := c.mono()
		limit := t * 2 / 3
		if !c.attached {
			limit = t / 3
		}
		switch {
		case now-c.heard > limit:
			c.drop()
			return
		case c.attached && now-c.sent >= pingEvery:
			c.ping()
		}
		c.watchdog()
	})
}

// drop ends the connection. The outcome of the requests under way is unknown.
func (c *client) drop() {
	if c.cord != nil {
		c.cord.close(0)
	}
	calls := c.calls
	c.calls = nil
	c.cord, c.attached = nil, false
	c.tries++
	c.forgetPassing()
	for _, k := range calls {
		if k.op != wire.OpPing {
			c.sim.see(lost{k})
			c.sim.lost(k)
		}
		if k.then != nil {
			k.then(nil)
		}
	}
	if c.player != nil {
		c.player.disconnected()
	}
	c.later(retryAfter, c.connect)
}

// take reads a message of the server.
func (c *client) take(load any) {
	c.heard = c.mono()
	switch r := load.(type) {
	case welcome:
		c.welcomed(r)
	case response:
		c.replied(r)
	case tree.Event:
		c.event(r)
	}
}

func (c *client) welcomed(w welcome) {
	switch {
	case w.session == 0:
		if c.session == 0 {
			c.sim.fail("Sessions", "client %d asked for a new session and was told that it has expired", c.id)
		}
		c.sim.tell("client %d: session %v has expired", c.id, c.session)
		c.sim.see(turnedAway{c.at, c.session, c.timeout()})
		c.streamOver()
		if c.player != nil {
			c.player.expired()
		}
		c.session, c.timeoutMS, c.seen, c.told, c.watches = 0, 0, 0, 0, nil
		c.drop()
		return
	case c.session != 0 && w.session != c.session:
		c.sim.fail("Sessions", "client %d asked for session %v and got %v", c.id, c.session, w.session)
		return
	}
	fresh := c.session == 0
	c.session, c.timeoutMS, c.attached, c.lonely = w.session, w.timeoutMS, true, w.readOnly
	if c.lonely {
		c.sim.reach(situationReadOnly)
	}
	if fresh {
		c.sim.tell("client %d has session %v", c.id, c.session)
	} else {
		c.sim.reach(situationResumed)
		if c.home != c.at {
			c.sim.reach(situationMoved)
			if c.leaderless {
				c.sim.reach(situationMovedLeaderless)
			}
		}
	}
	c.home = c.at
	c.setAgain()
	c.streamAgain()
	if c.player != nil {
		c.player.attached()
	}
	c.work()
}

// send issues a request.
func (c *client) send(k *call) {
	c.sim.calls++
	c.xid++
	k.client, k.n, k.session, k.xid, k.issued = c, c.sim.calls, c.session, c.xid, c.sim.now
	switch k.op {
	case wire.OpPing:
		k.xid = wire.XidPing
	case wire.OpSetWatches, wire.OpSetWatches2:
		k.xid = wire.XidSetWatches
	}
	c.calls = append(c.calls, k)
	c.sent = c.mono()
	c.sim.see(issued{k})
	if c.sim.detailed {
		c.sim.detail("client %d asks server %d for %v %s, xid %d", c.id, c.at.id, k.op, k.path, k.xid)
	}
	c.cord.send(0, request{k.xid, k.op, k.body})
}

func (c *client) ping() {
	for _, k := range c.calls {
		if k.op == wire.OpPing {
			return // at most one ping is under way
		}
	}
	at := c.clock.moment(c.sim.now)
	c.send(&call{op: wire.OpPing, then: func(r *response) {
		if r != nil && c.player != nil {
			c.player.proven(at)
		}
	}})
}

// replied takes an answer. The answer to a ping may come before those to earlier writes.
// All other answers come in order.
func (c *client) replied(r response) {
	i := 0
	for i < len(c.calls) && (c.calls[i].op == wire.OpPing) != (r.header.Xid == wire.XidPing) {
		i++
	}
	if i == len(c.calls) {
		c.sim.fail("SessionOrder", "client %d got an answer with xid %d and waits for none", c.id, r.header.Xid)
		return
	}
	k := c.calls[i]
	c.calls = append(c.calls[:i:i], c.calls[i+1:]...)
	k.done, k.err, k.zxid, k.record = c.sim.now, r.header.Err, r.header.Zxid, r.record
	for i := range c.watches {
		if w := &c.watches[i]; k.op == wire.OpSetWatches && w.none {
			w.zxid = k.zxid // the server does not report a znode that was created and deleted in the meantime
		}
	}
	if c.sim.detailed {
		c.sim.detail("client %d is answered %v %s, xid %d: %v at %v", c.id, k.op, k.path, k.xid, k.err, k.zxid)
	}
	c.sim.see(answered{k, r})
	c.seen = max(c.seen, r.header.Zxid)
	if k.op != wire.OpPing {
		c.answered++
		c.sim.done(k)
	}
	if k.watch != nil {
		c.setWatch(k)
	}
	if k.then != nil {
		k.then(&r)
	}
	if k.err == wire.ErrSessionExpired || k.err == wire.ErrSessionMoved {
		c.drop()
		return
	}
	if k.op != wire.OpPing && c.busy {
		c.busy = false
		c.work()
	}
}

// setAgain sets the watches of the session again on a new connection.
func (c *client) setAgain() {
	if len(c.watches) == 0 {
		return
	}
	q := wire.SetWatchesRequest{RelativeZxid: c.seen, Data: []string{}, Exist: []string{}, Child: []string{}}
	for _, w := range c.watches {
		switch {
		case w.kids:
			q.Child = append(q.Child, w.path)
		case w.none:
			q.Exist = append(q.Exist, w.path)
		default:
			q.Data = append(q.Data, w.path)
		}
	}
	c.sim.reach(situationWatchesAgain)
	c.send(&call{op: wire.OpSetWatches, body: wire.Append(nil, &q)})
}

// setWatch records a watch that the server has set with a read.
func (c *client) setWatch(k *call) {
	w := *k.watch
	w.zxid = k.zxid
	switch {
	case k.err == wire.OK:
	case k.err == wire.ErrNoNode && k.op == wire.OpExists:
		w.none = true
	default:
		return
	}
	for _, o := range c.watches {
		if o.path == w.path && o.kids == w.kids && o.tell == nil && w.tell == nil {
			return // the server keeps only one watch for both
		}
	}
	c.watches = append(c.watches, w)
}

// event takes an event and removes the watches that it ends.
func (c *client) event(e tree.Event) {
	if c.sim.detailed {
		c.sim.detail("client %d is told %v of %s at %v", c.id, e.Type, e.Path, e.Zxid)
	}
	c.sim.see(notified{c, e})
	var tells []func(wire.EventType)
	kept := c.watches[:0]
	for _, w := range c.watches {
		if !w.meets(e) {
			kept = append(kept, w)
		} else if w.tell != nil {
			tells = append(tells, w.tell)
		}
	}
	c.watches, c.told = kept, max(c.told, e.Zxid)
	for _, tell := range tells {
		tell(e.Type)
	}
	for _, w := range c.streams {
		w.hear(e)
	}
}

// meets reports whether an event ends the watch.
func (w *watch) meets(e tree.Event) bool {
	switch {
	case w.path != e.Path:
		return false
	case e.Type == wire.EventNodeDeleted:
		return true
	}
	return w.kids == (e.Type == wire.EventNodeChildrenChanged)
}

// callsMax is the largest number of requests that a client has under way.
const callsMax = 4

// work issues the next request after a while.
func (c *client) work() {
	if c.player != nil || c.script || c.sim.calm && (c.sim.quiet || c.sim.idle) {
		return
	}
	c.later(c.random.below(2*c.sim.opt.ThinkMS*millisecond), func() {
		switch {
		case !c.attached || c.sim.calm && (c.sim.quiet || c.sim.idle):
			return
		case len(c.calls) >= callsMax:
			c.busy = true
			return
		}
		c.act()
		c.work()
	})
}

// act issues one or two requests.
func (c *client) act() {
	d := c.random
	reg := fmt.Sprintf("/r%d", d.below(registerCount))
	node := fmt.Sprintf("/n%d", d.below(6))
	switch d.below(16) {
	case 0, 1, 2, 3:
		c.set(reg)
	case 4, 5:
		c.send(get(reg, false))
	case 6, 7:
		c.sync(reg)
	case 8:
		c.send(get(reg, true))
	case 9:
		c.send(&call{op: wire.OpExists, path: node, body: pathWatch(node, true), watch: &watch{path: node}})
	case 10:
		c.send(&call{op: wire.OpGetChildren2, path: "/n0", body: pathWatch("/n0", true), watch: &watch{path: "/n0", kids: true}})
	case 11:
		c.create(node, wire.FlagPersistent)
	case 12:
		c.send(&call{op: wire.OpDelete, path: node, body: wire.Append(nil, &wire.PathVersionRequest{Path: node, Version: -1})})
	case 13:
		c.create(fmt.Sprintf("/n%d/e%d-%d", d.below(3), c.id, d.below(3)), wire.FlagEphemeral)
	case 14:
		c.multi(fmt.Sprintf("/r%d", 1+d.below(registerCount-1)), node)
	default:
		if d.below(40) == 0 {
			if c.xid%2 == 0 { // together with a request of its own that waits behind the sync
				c.sync(reg)
				c.create(fmt.Sprintf("/n0/e%d-0", c.id), wire.FlagEphemeral)
			}
			c.send(&call{op: wire.OpCloseSession})
			return
		}
		c.set(reg)
	}
}

// registerCount is the number of znodes that serve only for reading and writing.
const registerCount = 3

func pathWatch(path string, watch bool) []byte {
	return wire.Append(nil, &wire.PathWatchRequest{Path: path, Watch: watch})
}

func get(path string, watched bool) *call {
	k := &call{op: wire.OpGetData, path: path, body: pathWatch(path, watched)}
	if watched {
		k.watch = &watch{path: path}
	}
	return k
}

// mark returns a value that nobody else writes.
func (c *client) mark() string {
	v := fmt.Sprintf("%d.%d", c.id, c.xid+1)
	if c.xid%32 == 0 {
		v += longTail
	}
	return v
}

// longTail makes some values longer than the largest write that a disk does as a whole.
var longTail = strings.Repeat(" ", 3000)

func (c *client) set(path string) {
	v := c.mark()
	c.send(&call{op: wire.OpSetData, path: path, value: v, body: wire.Append(nil, &wire.SetDataRequest{Path: path, Data: []byte(v), Version: -1}),
		then: func(r *response) {
			if r != nil && r.header.Err == wire.ErrNoNode && c.attached {
				c.create(path, wire.FlagPersistent)
			}
		}})
}

// sync sends a sync and a read behind it.
func (c *client) sync(path string) {
	c.send(&call{op: wire.OpSync, path: path, body: wire.Append(nil, &wire.PathRequest{Path: path})})
	k := get(path, false)
	k.synced = !c.lonely
	c.send(k)
}

func (c *client) create(path string, flags int32) {
	v := c.mark()
	c.send(&call{op: wire.OpCreate, path: path, value: v, body: wire.Append(nil, &wire.CreateRequest{
		Path: path, Data: []byte(v), ACL: wire.OpenACL(), Flags: flags,
	})})
}

// multi sets one znode if another one can be created.
func (c *client) multi(reg, node string) {
	v := c.mark()
	c.send(&call{op: wire.OpMulti, path: reg, value: v, body: wire.Append(nil, &wire.MultiRequest{Ops: []wire.Op{
		{Type: wire.OpSetData, Request: &wire.SetDataRequest{Path: reg, Data: []byte(v), Version: -1}},
		{Type: wire.OpCreate, Request: &wire.CreateRequest{Path: node, Data: []byte(v), ACL: wire.OpenACL()}},
	}})})
}
