package client

import (
	"bellwether/internal/claim"
	"bellwether/internal/ensemble"
	"bellwether/internal/sim/check"
	"bellwether/internal/sim/machine"
	"bellwether/internal/tree"
	"bellwether/wire"
)

// Client is a machine with a client on it. The client keeps a session, and reads and writes
// at a rate that its options set. The order of its calls is that in which it sent them.
type Client struct {
	machine.Host
	group  *Group
	ID     int
	random *machine.Random

	Session   wire.SessionID
	TimeoutMS int32
	leastMS   int32 // the smallest timeout that the session ever had
	Seen      wire.Zxid
	Xid       int32
	Answered  int64 // number of requests that were answered

	Connections    int               // number of connections so far; events of an earlier one are ignored
	conn           Connection        // nil: there is none
	At, lastServer ensemble.ServerID // the server to which the client is connected; the server on which its session was last; 0: none
	Attached       bool
	helloAt        claim.Moment // when it sent the hello of this connection, by both clocks
	leaderless     bool         // there was no leader when it connected
	napping        bool         // it sends nothing, not even pings, for about as long as its session lives
	forged         bool         // it has sent a wrong password for its session
	lastReceived   int64        // Mono ms of the last message from the server
	lastSent       int64        // Mono ms of the last message to the server
	Calls          []*Call      // under way, in the order in which they were sent
	watches        []watch
	treeWatches    []*treeWatch      // watches of trees, for caches
	lastEvent      wire.Zxid         // zxid of the newest event; the next server must have applied that zxid
	busy           bool              // it has callsMax calls under way
	candidate      *Candidate        // the candidate that the checkers watch; nil: there is none
	Player         player            // the state machine of the client's recipe; it may be the same as candidate; nil: the client only reads and writes
	Hung           bool              // it hangs: it neither reads nor sends
	stopped        bool              // the process is stopped, or the machine is suspended
	backlog        []func()          // events that arrived while it was stopped
	slept          bool              // its machine was suspended at least once
	setBack        bool              // its wall clock was set back at least once
	Steps          int               // steps of its recipe so far at which it could crash
	CrashAt        int               // the number of the step at which it crashes; 0: at none
	HangsInstead   bool              // at the step CrashAt the client hangs instead of crashing
	Scripted       bool              // a scenario decides what it requests and where it connects
	Only           ensemble.ServerID // a scenario lets it connect only to this server; 0: to any
	Reader         bool              // it accepts a server without a quorum, and keeps no session
	NoQuorum       bool              // it is connected to a server without a quorum
	shown          check.Watching    // memory that watching reuses
	odd            *machine.Random   // draws what a careless client does; nil: the client is not careless
	again          ensemble.ServerID // the server to which a careless client connects next; 0: any
	leaving        func()            // called when it asks for its session on its next connection; nil: nothing
	moved          func()            // called when the session is on its next connection; nil: nothing
	napUntil       int64             // until when a careless client sends nothing, in µs
	readsUntil     int64             // until when the client only reads, in µs
	awayUntil      int64             // until when a careless client does not connect, in µs
	resumes        bool              // a careless reader asks for its session again
	hops           bool              // a careless client goes to servers that lack what it has just seen
	hopsFrom       int64             // when it may do so next, in µs
	rests          wire.SessionID    // the session that the client has kept alive by reads since all faults have ended; 0: none
}

// Call is a request under way.
type Call struct {
	client  *Client
	n       int64 // number among all calls of a run
	session wire.SessionID
	xid     int32
	Op      wire.OpCode
	Path    string
	value   string // the value that the call writes
	Body    []byte
	watch   *watch // the watch that the call sets
	Issued  int64  // µs
	Done    int64  // µs, 0: not yet
	Synced  bool   // the call is a read behind a sync that was issued at the same time
	Then    func(r *Response)
	record  wire.Record // the answer
	Err     wire.Code
	Zxid    wire.Zxid
}

// retryAfter is the pause, in µs, before the client tries another server.
const retryAfter = 30 * machine.Millisecond

func (c *Client) mono() int64 { return c.Clock.Mono(c.group.Now()) / machine.Millisecond }

// later runs do after d µs, unless the present connection has ended by then.
func (c *Client) later(d int64, do func()) {
	tries := c.Connections
	c.after(d, func() {
		if c.Connections == tries && !c.Hung {
			do()
		}
	})
}

// Connect tries to connect to a server that is drawn at random.
func (c *Client) Connect() {
	c.Connections++
	c.Attached, c.conn = false, nil
	if left := c.awayUntil - c.group.Now(); left > 0 && !c.group.Phase().Calm {
		c.later(left, c.Connect)
		return
	}
	w, n := c.group.World, c.group.Servers()
	id := c.prefers(ensemble.ServerID(1 + c.random.Below(int64(n))))
	for w.Phase().Calm && !w.Listed(id) { // a retired server is in no list any more
		id = id%ensemble.ServerID(n) + 1
	}
	if c.again != 0 {
		id, c.again = c.again, 0
	}
	if c.Only != 0 {
		id = c.Only
	}
	if !w.Reaches(&c.Host, id) {
		c.later(int64(c.timeout())*machine.Millisecond/6, c.Connect)
		return
	}
	c.later(w.RoundTrip(&c.Host, id), func() {
		var k Connection
		k = w.Connect(&c.Host, id, func(message any) {
			c.arrive(func() {
				if c.conn == k && !c.Hung {
					c.receive(message)
				}
			})
		}, func() {
			c.arrive(func() {
				if c.conn == k && !c.Hung {
					c.Drop()
				}
			})
		})
		if k == nil {
			c.later(retryAfter, c.Connect)
			return
		}
		c.At, c.conn = id, k
		c.sendHello()
	})
}

// timeout returns the timeout of the session or, without a session, the one to request.
func (c *Client) timeout() int32 {
	if c.TimeoutMS == 0 {
		return c.group.Settings().SessionMS
	}
	return c.TimeoutMS
}

func (c *Client) sendHello() {
	if c.Reader && !c.resumes {
		c.renew()
	}
	c.resumes = false
	h := Hello{Identity: check.IdentityOf(c.ID), ReadOnly: c.Reader, Session: c.Session, TimeoutMS: c.group.Settings().SessionMS, Seen: max(c.Seen, c.lastEvent)}
	if c.forged = c.Session != 0 && c.random.Below(32) == 0; c.Session != 0 {
		p := c.Session.Password()
		if c.forged {
			p[c.random.Below(int64(len(p)))]++
		}
		h.Password = p[:]
		if c.forged && c.odd != nil && c.odd.Below(2) == 0 {
			h.Password = nil
		}
	}
	c.leaderless, c.napping = !c.group.HasLeader(), false
	c.helloAt = c.Clock.Moment(c.group.Now())
	c.lastReceived, c.lastSent = c.mono(), c.mono()
	c.conn.Send(h)
	if do := c.leaving; do != nil {
		c.leaving = nil
		do()
	}
	c.watchdog()
}

// watchdog ends a silent connection, and sends a ping on an idle one.
func (c *Client) watchdog() {
	t := int64(c.timeout())
	pingEvery := t / 3
	if c.Player != nil && c.Player.pingsOften() {
		pingEvery = t / 10
	}
	c.later(min(t*machine.Millisecond/20, 100*machine.Millisecond), func() {
		now := c.mono()
		limit := t * 2 / 3
		if !c.Attached {
			limit = t / 3
		}
		switch {
		case c.napping && c.Attached:
		case now-c.lastReceived > limit:
			c.Drop()
			return
		case c.Attached && now-c.lastSent >= pingEvery:
			c.ping()
		}
		c.watchdog()
	})
}

// Drop ends the connection. The outcome of the requests under way is unknown.
func (c *Client) Drop() {
	if c.conn != nil {
		c.conn.Close()
	}
	calls := c.Calls
	c.Calls = nil
	c.conn, c.Attached = nil, false
	c.Connections++
	c.forgetUnregistered()
	for _, k := range calls {
		if k.Op != wire.OpPing {
			c.group.See(check.Lost{Request: k.observed()})
		}
		if k.Then != nil {
			k.Then(nil)
		}
	}
	if c.Player != nil {
		c.Player.disconnected()
	}
	c.later(retryAfter, c.Connect)
}

// receive reads a message of the server.
func (c *Client) receive(load any) {
	c.lastReceived = c.mono()
	switch r := load.(type) {
	case Welcome:
		c.takeWelcome(r)
	case Response:
		c.takeReply(r)
	case tree.Event:
		c.takeEvent(r)
	}
}

// expired handles the answer that the session has expired.
func (c *Client) expired() {
	if c.Session == 0 {
		c.group.Fail("Sessions", "client %d asked for a new session and was told that it has expired", c.ID)
	}
	if c.Session == c.rests {
		c.group.Fail("Sessions", "session %v of client %d has expired although its client has read all the time and there are no faults", c.Session, c.ID)
		return
	}
	c.group.Tell("client %d: session %v has expired", c.ID, c.Session)
	c.group.See(check.TurnedAway{Server: c.At, Session: c.Session, TimeoutMS: c.timeout(), At: c.group.Now()})
	c.leaveSession()
}

// leaveSession lets a client use its session no more. The session may live on until its timeout.
func (c *Client) leaveSession() {
	c.endTreeWatches()
	if c.Player != nil {
		c.Player.expired()
	}
	c.Session, c.TimeoutMS, c.Seen, c.lastEvent, c.watches = 0, 0, 0, 0, nil
	c.Drop()
}

func (c *Client) takeWelcome(w Welcome) {
	if c.forged {
		if c.forged = false; w.Session != 0 {
			c.group.Fail("Sessions", "client %d gets session %v with a wrong password", c.ID, w.Session)
			return
		}
		c.Drop()
		return
	}
	switch {
	case w.Session == 0:
		c.expired()
		return
	case c.Session != 0 && w.Session != c.Session:
		c.group.Fail("Sessions", "client %d asked for session %v and got %v", c.ID, c.Session, w.Session)
		return
	}
	fresh := c.Session == 0
	c.Session, c.TimeoutMS, c.Attached, c.NoQuorum = w.Session, w.TimeoutMS, true, w.ReadOnly
	c.group.See(check.Welcomed{Session: c.Session, TimeoutMS: c.TimeoutMS})
	if fresh || w.TimeoutMS < c.leastMS {
		c.leastMS = w.TimeoutMS
	}
	if c.NoQuorum {
		c.group.Reach(ReadOnly)
	}
	if fresh {
		c.group.Tell("client %d has session %v", c.ID, c.Session)
	} else {
		c.group.Reach(Resumed)
		if c.lastServer != c.At {
			c.group.Reach(Moved)
			if c.leaderless {
				c.group.Reach(MovedLeaderless)
			}
		}
	}
	c.lastServer = c.At
	if do := c.moved; do != nil {
		c.moved = nil
		do()
	}
	c.setAgain()
	c.setTreeWatchesAgain()
	if c.Player != nil {
		c.Player.attached()
	}
	c.work()
}

// Send issues a request.
func (c *Client) Send(k *Call) {
	c.group.calls++
	c.Xid++
	k.client, k.n, k.session, k.xid, k.Issued = c, c.group.calls, c.Session, c.Xid, c.group.Now()
	switch k.Op {
	case wire.OpPing:
		k.xid = wire.XidPing
	case wire.OpSetWatches, wire.OpSetWatches2:
		k.xid = wire.XidSetWatches
	}
	c.Calls = append(c.Calls, k)
	c.lastSent = c.mono()
	c.group.See(check.Issued{Request: k.observed()})
	if c.group.Detailed() {
		c.group.Detail("client %d asks server %d for %v %s, xid %d", c.ID, c.At, k.Op, k.Path, k.xid)
	}
	c.conn.Send(Request{k.xid, k.Op, k.Body})
}

func (c *Client) ping() {
	for _, k := range c.Calls {
		if k.Op == wire.OpPing {
			return // at most one ping is under way
		}
	}
	at := c.Clock.Moment(c.group.Now())
	c.Send(&Call{Op: wire.OpPing, Then: func(r *Response) {
		if r != nil && c.Player != nil {
			c.Player.proven(at)
		}
	}})
}

// takeReply takes an answer. The answer to a ping may come before those to earlier writes.
// All other answers come in order.
func (c *Client) takeReply(r Response) {
	i := 0
	for i < len(c.Calls) && (c.Calls[i].Op == wire.OpPing) != (r.Header.Xid == wire.XidPing) {
		i++
	}
	if i == len(c.Calls) {
		c.group.Fail("SessionOrder", "client %d got an answer with xid %d and waits for none", c.ID, r.Header.Xid)
		return
	}
	k := c.Calls[i]
	c.Calls = append(c.Calls[:i:i], c.Calls[i+1:]...)
	k.Done, k.Err, k.Zxid, k.record = c.group.Now(), r.Header.Err, r.Header.Zxid, r.Record
	for i := range c.watches {
		if w := &c.watches[i]; k.Op == wire.OpSetWatches && w.Missing {
			w.Zxid = k.Zxid // the server does not report a znode that was created and deleted in the meantime
		}
	}
	if c.group.Detailed() {
		c.group.Detail("client %d is answered %v %s, xid %d: %v at %v", c.ID, k.Op, k.Path, k.xid, k.Err, k.Zxid)
	}
	c.group.See(check.Answered{Request: k.observed(), Watching: c.watching(), At: k.Done, Header: r.Header, Record: r.Record, Seen: c.Seen, NoQuorum: c.NoQuorum})
	c.Seen = max(c.Seen, r.Header.Zxid)
	if k.Op != wire.OpPing {
		c.Answered++
	}
	if k.watch != nil {
		c.setWatch(k)
	}
	if k.Then != nil {
		k.Then(&r)
	}
	switch k.Err {
	case wire.ErrSessionExpired:
		c.group.Tell("client %d: session %v is over, says the answer to a request", c.ID, c.Session)
		c.leaveSession()
		return
	case wire.ErrSessionMoved:
		c.Drop()
		return
	}
	if c.hops && k.Zxid == c.Seen {
		c.after(0, c.hop)
	}
	if k.Op != wire.OpPing && c.busy {
		c.busy = false
		c.work()
	}
}

// observed returns the request as the checkers see it.
func (k *Call) observed() check.Request {
	return check.Request{
		N: k.n, Client: k.client.ID, Session: k.session, Xid: k.xid, Op: k.Op, Path: k.Path, Value: k.value, Body: k.Body, Synced: k.Synced, Issued: k.Issued,
	}
}

// prefers returns the server that a client tries next. If its session may be local, that is
// mostly the server on which the session lives. When the faults have ended, it is any server,
// because the server of the session may be in the minority that keeps a fault.
func (c *Client) prefers(any ensemble.ServerID) ensemble.ServerID {
	if !c.group.Phase().Calm && c.group.Settings().LocalSessions && c.Session != 0 && c.lastServer != 0 && c.random.Chance(70) {
		return c.lastServer
	}
	return any
}

// renew drops the present session without closing it, so that it expires. A command that a script
// runs again and again does the same. The next session still must not see an older state than
// this one.
func (c *Client) renew() { c.Session, c.TimeoutMS, c.watches = 0, 0, nil }
