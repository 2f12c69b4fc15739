package replica

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"bellwether/internal/ensemble"
	"bellwether/internal/peerwire"
	"bellwether/wire"
)

// randomRun is an ensemble with clients and faults that a seed chooses.
type randomRun struct {
	*cluster
	rand    *rand.Rand
	clients []*randomClient
	kept    []string                  // persistent znodes whose create was acknowledged
	owned   map[string]wire.SessionID // the same of ephemeral ones, with their sessions
	over    map[wire.SessionID]bool   // sessions that their clients have closed
	full    map[*server]bool          // servers without room on the disk
	names   int                       // znodes named so far
	last    wire.Zxid                 // of the last change that was acknowledged to any client
}

// randomClient is a connection and what its client knows.
type randomClient struct {
	*client
	conn    ConnID
	xid     int32
	seen    wire.Zxid
	asked   []asking
	own     string // a znode that only this connection changes; "": none yet
	version int32  // that it has once everything asked for is done
	handled int    // replies that were compared
	pings   int    // pings without an answer
	left    bool   // the client has ended the connection
}

// asking is a request without an answer.
type asking struct {
	xid       int32
	op        wire.OpCode
	path      string
	ephemeral bool
	version   int32     // of a read of the client's own znode: what it must have
	refused   bool      // a change that expects another version than there is
	after     wire.Zxid // of a sync: the last change that was acknowledged to any client when it was sent
}

// TestRandomRuns: whatever servers and links fail, and however clients move, each request is answered once and in its place, a
// client reads what it has written, nothing that was acknowledged is lost, and a sync brings everything that was acknowledged before
// it. Once nothing fails any more, every server soon serves the same tree, every open connection is answered at once, every session
// with a connection is open, every other one ends, no server changes its role, and nothing is sent in vain.
func TestRandomRuns(t *testing.T) {
	for seed := range uint64(300) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			r := &randomRun{rand: rand.New(rand.NewPCG(seed, 1)), owned: map[string]wire.SessionID{}, over: map[wire.SessionID]bool{}, full: map[*server]bool{}}
			r.cluster = observed(t, 3+r.rand.IntN(3), func(h *cluster) {
				h.compatible, h.silent = map[ensemble.ServerID]bool{}, map[*server]bool{}
				for id := range ensemble.ServerID(5) {
					if r.rand.IntN(8) == 0 {
						h.compatible[id+1] = true
					}
				}
				h.local = r.rand.IntN(4) == 0
				h.priorities = map[ensemble.ServerID]int{ensemble.ServerID(1 + r.rand.IntN(3)): r.rand.IntN(2)}
			})
			for _, s := range r.servers {
				s.tickAfter = r.rand.Int64N(500)
			}
			r.answered = r.hear
			for range 400 {
				r.act()
				r.run(int64(r.rand.IntN(60)))
				r.compare()
			}
			r.heal()
			r.finish()
		})
	}
}

// act does one thing at random.
func (r *randomRun) act() {
	s := r.servers[r.rand.IntN(len(r.servers))]
	switch n := r.rand.IntN(40); {
	case n < 3:
		r.open(s, nil)
	case n < 5 && len(r.clients) > 0: // the client moves; its former connection may still be there
		if c := r.clients[r.rand.IntN(len(r.clients))]; c.session != 0 && !r.over[c.session] && !r.newer(c) {
			if r.rand.IntN(2) == 0 {
				r.leave(c)
			}
			r.open(s, c)
		}
	case n < 6 && len(r.clients) > 0:
		r.leave(r.clients[r.rand.IntN(len(r.clients))])
	case n < 7:
		r.down(s)
	case n < 8:
		if all := slices.Sorted(maps.Keys(r.links)); len(all) > 0 {
			r.breakLink(all[r.rand.IntN(len(all))])
		}
	case n < 9 && len(r.unsaid) == 0 && len(r.silent) == 0 && s.up:
		r.silent[s] = true
		if r.rand.IntN(2) == 0 {
			s.inbox = append(s.inbox, DiskStalled{Since: r.now.Mono, Duty: "fsync"})
		}
	case n < 11:
		r.mend()
	case n < 12:
		r.away = nil
		if r.rand.IntN(2) == 0 {
			r.away = s
		}
	case n < 13 && s.up:
		if to, err := s.r.Successor(peerwire.NoServer, false); err == nil {
			s.inbox = append(s.inbox, TransferLeadership{To: to})
		}
	case n < 14 && r.delay == nil:
		r.delay = r.packets(s, r.servers[r.rand.IntN(len(r.servers))])
	case n < 15 && s.up && !r.full[s] && len(r.full) == 0:
		r.full[s] = true
		s.inbox = append(s.inbox, NoRoom{})
	case n < 16 && s.id > 3: // an observer loses its disk
		r.forget(s)
		r.lose(s)
	case len(r.clients) > 0:
		if c := r.clients[r.rand.IntN(len(r.clients))]; c.session != 0 && !c.closed && !c.left && c.at.up && !r.over[c.session] {
			r.request(c)
		}
	}
}

// newer reports whether the session of a client has a later connection.
func (r *randomRun) newer(c *randomClient) bool {
	for _, o := range r.clients {
		if o.session == c.session && o.conn > c.conn {
			return true
		}
	}
	return false
}

// open opens a connection with the session of an earlier one, or a new session.
func (r *randomRun) open(s *server, from *randomClient) {
	if !s.up {
		return
	}
	e := Connect{TimeoutMS: 6000}
	c := &randomClient{}
	if from != nil {
		pw := from.session.Password()
		e.Session, e.Password, e.Seen, c.seen = from.session, pw[:], from.seen, from.seen
	}
	c.client, c.conn = r.ask(s, e)
	r.clients = append(r.clients, c)
}

// leave ends the connection of a client.
func (r *randomRun) leave(c *randomClient) {
	if c.closed || c.left {
		return
	}
	c.left = true
	delete(r.cluster.clients, c.conn)
	if c.at.up {
		c.at.inbox = append(c.at.inbox, Disconnected{c.conn})
	}
}

// down kills a server, unless a voter is down already.
func (r *randomRun) down(s *server) {
	for _, o := range r.servers {
		if !o.up {
			return
		}
	}
	r.forget(s)
	r.kill(s)
}

// forget forgets what the process of a server does not know any more when it begins anew.
func (r *randomRun) forget(s *server) {
	delete(r.silent, s)
	delete(r.full, s)
	r.unsaid = slices.DeleteFunc(r.unsaid, func(d delivery) bool { return d.to == s })
	r.delayed = slices.DeleteFunc(r.delayed, func(d delivery) bool { return d.to == s })
}

// mend starts what is down, lets silent disks answer, and delivers what is delayed.
func (r *randomRun) mend() {
	r.release()
	for _, s := range r.servers {
		if r.silent[s] {
			r.answer(s)
		}
		if r.full[s] {
			delete(r.full, s)
			s.inbox = append(s.inbox, Room{})
		}
		if !s.up {
			r.start(s)
		}
	}
}

// request sends a request, or a ping.
func (r *randomRun) request(c *randomClient) {
	if r.rand.IntN(4) == 0 {
		r.ping(c)
		return
	}
	r.names++
	c.xid++
	a := asking{xid: c.xid, path: fmt.Sprintf("/n%d", r.names)}
	q := &Request{Conn: c.conn, Xid: c.xid}
	switch n := r.rand.IntN(20); {
	case n < 8:
		a.ephemeral = n < 4
		flags := int32(0)
		if a.ephemeral {
			flags = wire.FlagEphemeral
		}
		a.op, q.Body = wire.OpCreate, wire.Append(nil, &wire.CreateRequest{Path: a.path, ACL: wire.OpenACL(), Flags: flags})
	case n < 10:
		a.after = r.last
		a.op, q.Body = wire.OpSync, wire.Append(nil, &wire.PathRequest{Path: "/"})
	case n < 12:
		a.op, q.Body = wire.OpSetData, wire.Append(nil, &wire.SetDataRequest{Path: "/zookeeper", Data: []byte(a.path), Version: -1})
	case n < 15:
		a.op, q.Body = wire.OpGetData, wire.Append(nil, &wire.PathWatchRequest{Path: "/zookeeper"})
		if c.own != "" {
			a.path, a.version = c.own, c.version
			q.Body = wire.Append(nil, &wire.PathWatchRequest{Path: a.path})
		}
	case n < 19 && c.own == "":
		c.own = a.path
		a.op, q.Body = wire.OpCreate, wire.Append(nil, &wire.CreateRequest{Path: a.path, ACL: wire.OpenACL()})
	case n < 19:
		a.path = c.own
		expects := c.version
		if r.rand.IntN(4) == 0 {
			expects++ // refused
			a.refused = true
		} else {
			c.version++
		}
		a.op, q.Body = wire.OpSetData, wire.Append(nil, &wire.SetDataRequest{Path: a.path, Data: []byte(c.own), Version: expects})
	default:
		a.op = wire.OpCloseSession
		r.over[c.session] = true
	}
	q.Op = a.op
	c.asked = append(c.asked, a)
	c.at.inbox = append(c.at.inbox, q)
}

func (r *randomRun) ping(c *randomClient) {
	c.pings++
	c.at.inbox = append(c.at.inbox, &Request{Conn: c.conn, Xid: wire.XidPing, Op: wire.OpPing})
}

// compare checks the replies that have come since the last time.
func (r *randomRun) compare() {
	r.t.Helper()
	for _, c := range r.clients {
		for ; c.handled < len(c.replies); c.handled++ {
			o := c.replies[c.handled]
			if o.Request.Op == wire.OpPing {
				if c.pings--; c.pings < 0 {
					r.t.Fatalf("connection %d: an answer to no ping", c.conn)
				}
				continue
			}
			if len(c.asked) == 0 || c.asked[0].xid != o.Request.Xid {
				r.t.Fatalf("connection %d: an answer to request %d; %+v wait", c.conn, o.Request.Xid, c.asked)
			}
			a := c.asked[0]
			c.asked = c.asked[1:]
			if o.Kind == Turn {
				if a.op != wire.OpGetData || c.at.r.Applied() < c.seen {
					r.t.Fatalf("connection %d: a turn for %v at %v, although the client has seen %v", c.conn, a.op, c.at.r.Applied(), c.seen)
				}
				continue
			}
			if o.Header.Zxid < c.seen {
				r.t.Fatalf("connection %d: zxid %v after %v", c.conn, o.Header.Zxid, c.seen)
			}
			c.seen = o.Header.Zxid
			if o.Header.Err == wire.OK && a.op != wire.OpSync {
				r.last = max(r.last, o.Header.Zxid)
			}
			r.acknowledged(c, a, o.Header.Err)
		}
	}
}

// hear checks in the moment of an answer what the server of the client has in its tree.
func (r *randomRun) hear(at *client, o Output) {
	r.t.Helper()
	i := slices.IndexFunc(r.clients, func(c *randomClient) bool { return c.client == at })
	if i < 0 {
		return // its first answer
	}
	c := r.clients[i]
	j := slices.IndexFunc(c.asked, func(a asking) bool { return a.xid == o.Request.Xid })
	if j < 0 {
		return // a ping
	}
	a := c.asked[j]
	lost := slices.ContainsFunc(at.replies, func(o Output) bool {
		return o.Header.Err == wire.ErrSessionExpired || o.Header.Err == wire.ErrSessionMoved
	})
	var stat wire.StatResponse
	switch {
	case lost:
	case o.Kind == Turn && a.path == c.own:
		if code := at.at.r.tree.Exists(anonymousReader{}, a.path, false, &stat); code != wire.OK || stat.Stat.Version != a.version {
			r.t.Fatalf("connection %d: %s at server %d has version %d (%v), want %d", c.conn, a.path, at.at.id, stat.Stat.Version, code, a.version)
		}
	case a.op == wire.OpSync && len(r.compatible) == 0:
		if at.at.r.Applied() < a.after {
			r.t.Fatalf("connection %d: a sync is answered at %v, although %v was acknowledged before it", c.conn, at.at.r.Applied(), a.after)
		}
	}
}

// acknowledged checks and remembers the result of a request.
func (r *randomRun) acknowledged(c *randomClient, a asking, code wire.Code) {
	r.t.Helper()
	switch {
	case code == wire.ErrSessionExpired || code == wire.ErrSessionMoved:
	case a.refused != (code == wire.ErrBadVersion) || code != wire.OK && !a.refused:
		r.t.Fatalf("connection %d: %v of %s: %v", c.conn, a.op, a.path, code)
	case a.op == wire.OpCreate && a.ephemeral:
		r.owned[a.path] = c.session
	case a.op == wire.OpCreate:
		r.kept = append(r.kept, a.path)
	}
}

// The time within which an ensemble must have a leader and all servers must serve once nothing fails any more, and that for which
// it must be at rest then, in ms.
const (
	healedWithin = 3_000
	restFor      = 20_000
)

// heal ends all faults. Soon all servers serve, and from then on nothing changes. Clients ping.
func (r *randomRun) heal() {
	r.t.Helper()
	r.away = nil
	r.mend()
	for began := r.now.Mono; !r.allServe(); r.run(100) {
		if r.now.Mono-began > healedWithin {
			r.t.Fatalf("no fault for %d ms, and not every server serves", r.now.Mono-began)
		}
		if r.now.Mono%1000 == 0 {
			r.pingAll()
		}
	}
	r.settle()
	leader, voted := r.leader(), r.voted
	roles := r.roles()
	for end := r.now.Mono + restFor; r.now.Mono < end; {
		r.prompt()
		sent := r.sent
		r.run(980)
		if n := r.sent - sent; n > restPackets*len(r.servers) {
			r.t.Errorf("%d servers sent %d packets in a second without requests", len(r.servers), n)
		}
	}
	r.run(3000) // pings beside a server of ZooKeeper's kind
	r.compare()
	if now := r.roles(); !slices.Equal(now, roles) || r.leader() != leader || r.voted != voted {
		r.t.Errorf("the roles were %v and are %v after %d ms without faults; %d votes were sent", roles, now, restFor, r.voted-voted)
	}
}

// settle lets pass what follows a failure: sessions without a connection expire, and leadership is transferred to a server with a
// higher priority once it has been fit for preferMS and writes.
func (r *randomRun) settle() {
	r.t.Helper()
	transfers := func() bool {
		st := r.leader().r.Status()
		return st.Prefers != peerwire.NoServer && st.PrefersMS <= preferMS
	}
	asked := 0
	for n := 0; n < 10 || asked > 0 && transfers(); n++ {
		if n > 60 {
			r.t.Fatalf("leadership is not transferred: %+v", r.leader().r.Status())
		}
		r.pingAll()
		asked = 0
		for _, c := range r.clients {
			if !c.closed && !c.left && c.session != 0 && !r.over[c.session] {
				r.request(c)
				asked++
			}
		}
		r.run(1000)
		r.compare()
	}
	r.run(1000) // a transfer may just have been done
}

// restPackets bounds the packets that a server sends and gets in a second at rest: heartbeats and their answers.
const restPackets = 25

// prompt lets each client ask for everything, and checks that it is answered at once. Beside a server of ZooKeeper's kind pings
// wait for the next heartbeats.
func (r *randomRun) prompt() {
	r.t.Helper()
	for _, c := range r.clients {
		if c.closed || c.left || c.session == 0 || r.over[c.session] {
			continue
		}
		r.ping(c)
		for range 3 {
			r.request(c)
		}
	}
	r.run(20)
	r.compare()
	for _, c := range r.clients {
		if !c.closed && !c.left && (len(c.asked) > 0 || c.pings > 0 && len(r.compatible) == 0) {
			r.t.Errorf("connection %d at server %d: %d pings and %+v wait for 20 ms although nothing fails", c.conn, c.at.id, c.pings, c.asked)
		}
	}
}

// pingAll lets every client ping.
func (r *randomRun) pingAll() {
	for _, c := range r.clients {
		if c.session != 0 && !c.closed && !c.left {
			r.ping(c)
		}
	}
}

// allServe reports whether every server serves.
func (r *randomRun) allServe() bool {
	return !slices.ContainsFunc(r.servers, func(s *server) bool { return !s.up || !s.r.Status().Serving })
}

// roles returns the role and the term of each server.
func (r *randomRun) roles() (all []string) {
	for _, s := range r.servers {
		st := s.r.Status()
		all = append(all, fmt.Sprintf("%v of %d in %v", st.Role, st.Leader, st.Epoch))
	}
	return all
}

// finish checks what must hold in the end.
func (r *randomRun) finish() {
	t, leader := r.t, r.leader()
	t.Helper()
	zxid, digest := leader.r.tree.Digest()
	for _, s := range r.servers {
		if z, d := s.r.tree.Digest(); !s.r.Status().Serving || z != zxid || d != digest {
			t.Errorf("server %d: %+v, tree %x at %v, the leader's %x at %v", s.id, s.r.Status(), d, z, digest, zxid)
		}
		if n, first := s.r.tree.DigestMismatches(); n > 0 {
			t.Errorf("server %d: %d digests differ, the first ones at %v", s.id, n, first)
		}
		if err := s.r.resting(); err != nil {
			t.Errorf("server %d: %v", s.id, err)
		}
	}
	r.learners(leader)
	connected := map[wire.SessionID]bool{}
	for _, c := range r.clients {
		if c.closed || c.left {
			continue
		}
		if len(c.asked) > 0 || c.pings > 0 || c.answer.Kind != Attached {
			t.Errorf("connection %d of session %v at server %d: %d pings and %+v have no answer", c.conn, c.session, c.at.id, c.pings, c.asked)
		}
		// A leader of ZooKeeper does not tell the other servers that a session has moved.
		if connected[c.session] && !r.compatible[leader.id] {
			t.Errorf("session %v has two connections", c.session)
		}
		connected[c.session] = true
	}
	exists := func(path string) bool {
		return leader.r.tree.Exists(anonymousReader{}, path, false, new(wire.StatResponse)) == wire.OK
	}
	for _, path := range r.kept {
		if !exists(path) {
			t.Errorf("%s is lost", path)
		}
	}
	for _, c := range r.clients {
		if _, open := leader.r.tree.Session(c.session); c.session != 0 && open != connected[c.session] && !r.local {
			t.Errorf("session %v: open %v, connected %v", c.session, open, connected[c.session])
		}
	}
	for path, session := range r.owned {
		if exists(path) != connected[session] {
			t.Errorf("%s of session %v: exists %v, connected %v", path, session, exists(path), connected[session])
		}
	}
}

// learners checks that every server but the leader is listed once by the server from which it learns.
func (r *randomRun) learners(leader *server) {
	r.t.Helper()
	for _, s := range r.servers {
		if s == leader {
			continue
		}
		at := leader
		if m := r.masterOf(s); m != nil {
			at = m
		}
		n := 0
		for _, l := range at.r.Learners() {
			if l.Server == s.id && l.Synced && l.Observer == (s.id > 3) {
				n++
			}
		}
		if n != 1 {
			r.t.Errorf("server %d is listed %d times by server %d: %+v", s.id, n, at.id, at.r.Learners())
		}
	}
}
