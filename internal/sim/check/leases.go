package check

import (
	"fmt"

	"bellwether/internal/ensemble"
	"bellwether/internal/peerwire"
	"bellwether/internal/record"
	"bellwether/internal/replica"
	"bellwether/internal/zab"
	"bellwether/wire"
)

// leases checks what a server may answer because of its leader's heartbeats. It uses only the packets
// that servers send. A quorum has confirmed a time if each of its members has answered a heartbeat
// that the leader sent then or later. The acknowledgement of a reconfiguration counts like such an
// answer: the servers of the new list may not have answered a heartbeat yet when it holds.
//
//   - A leader confirms touched sessions to a learner only while the time that a quorum has confirmed
//     is at most LeaseMS old.
//   - A leader answers a client's ping only then.
//   - A follower answers a client's ping only when its leader has confirmed a report of sessions that the
//     follower sent after the ping had arrived: an answer to a heartbeat, or a TOUCH.
//   - A client's sync is answered only when a quorum has confirmed a time after it arrived, unless it is refused
//     because its session ends.
//
// These rules are those of Bellwether's servers; ZooKeeper's servers have none of them. One more is about links with
// ZooKeeper's servers, which take commits and answers to syncs in one order:
//
//   - The leader answers the sync of a learner before the commit of a transaction that it has proposed later.
type leases struct {
	present Present
	links   map[zab.LinkID]*heartbeats
	latest  map[pair]int64                   // µs at which the latest heartbeat was sent that a learner has answered to a leader
	leads   map[ensemble.ServerID]bool       // the server was established as a leader in the last term in which it served
	joins   map[ensemble.ServerID]zab.LinkID // the last link on which a server has sent something to a leader
	follows map[ensemble.ServerID]zab.LinkID // that link when the server was established last
	pings   map[replica.ConnID]pingOfClient  // the ping of a connection that is not answered
	syncs   map[replica.ConnID][]int64       // µs at which the syncs of a connection arrived that are not answered
	met     [leaseRules]int
}

// LeaseMS is how old the time that a quorum has confirmed may be, by the leader's clock.
const LeaseMS = 500

// leaseMax is LeaseMS in µs, by the slowest clock, with the millisecond to which servers round.
const leaseMax = LeaseMS*1000*101/100 + 1000

// The premises of the rules.
const (
	touchConfirmed = iota
	leaderAnswersPing
	followerAnswersPing
	syncAnswered
	commitBehindSync
	leaseRules
)

// pair is a leader and a learner.
type pair struct{ leader, learner ensemble.ServerID }

// heartbeats is what was sent on a link.
type heartbeats struct {
	leader, learner ensemble.ServerID
	dead            bool        // the leader's process has ended; its learner may not know that yet
	serving         bool        // UPTODATE was sent; the learner answers the heartbeats that follow
	sent            []int64     // µs at which the heartbeats were sent that are not answered yet
	reports         int64       // how many answers and TOUCHes the learner has sent
	confirmed       int64       // how many of these the leader has confirmed
	reconfig        wire.Zxid   // the last reconfiguration that was proposed on the link; 0: none
	reconfigAt      int64       // µs at which it was proposed
	asked           []wire.Zxid // for each sync of the learner that is not answered, where the leader's log ended when it took it; only with a server of ZooKeeper
	early           int         // syncs that were answered in the batch in which they were taken
	synced          int64       // µs: the latest time that a quorum had confirmed when the leader answered a sync of its learner; 0: it has answered none
}

// pingOfClient is a client's ping when it arrived: the time, the link of the server with its leader
// then, and how many reports the server had sent on it.
type pingOfClient struct {
	at      int64
	link    zab.LinkID
	reports int64
}

func newLeases(p Present) *leases {
	return &leases{present: p, links: map[zab.LinkID]*heartbeats{}, latest: map[pair]int64{}, leads: map[ensemble.ServerID]bool{},
		joins: map[ensemble.ServerID]zab.LinkID{}, follows: map[ensemble.ServerID]zab.LinkID{}, pings: map[replica.ConnID]pingOfClient{}, syncs: map[replica.ConnID][]int64{}}
}

func (*leases) Name() string { return "Leases" }

// Met returns the counts of the rules.
func (c *leases) Met() []Count {
	return []Count{{"touched sessions are confirmed", c.met[touchConfirmed]}, {"a leader answers a ping", c.met[leaderAnswersPing]},
		{"a follower answers a ping", c.met[followerAnswersPing]}, {"a sync is answered", c.met[syncAnswered]},
		{"a commit is told to a server of ZooKeeper whose sync waits", c.met[commitBehindSync]}}
}

func (c *leases) See(o any) string {
	switch e := o.(type) {
	case Restarted:
		c.restarted(e.Server)
	case Established:
		c.leads[e.Server] = e.Role == peerwire.Leading
		c.follows[e.Server] = c.joins[e.Server]
	case Promised:
		if e.ByLearner {
			return c.fromLearner(&e)
		}
		return c.fromLeader(&e)
	case SyncsTaken:
		c.taken(&e)
	case Asked:
		c.arrived(&e)
	case Replied:
		if e.Op == wire.OpSync {
			return c.synced(&e)
		}
		return c.ponged(&e)
	}
	return ""
}

// arrived records a client's ping or sync.
func (c *leases) arrived(e *Asked) {
	if e.Op == wire.OpSync {
		c.syncs[e.Conn] = append(c.syncs[e.Conn], e.At)
		return
	}
	k := pingOfClient{at: e.At, link: c.follows[e.Server]}
	if h := c.links[k.link]; h != nil {
		k.reports = h.reports
	}
	c.pings[e.Conn] = k
}

// restarted ends the links of an earlier process. What its learners have answered does not count for
// the next process. What it has answered itself still counts for its leader.
func (c *leases) restarted(id ensemble.ServerID) {
	for _, h := range c.links {
		h.dead = h.dead || h.leader == id
	}
	for p := range c.latest {
		if p.leader == id {
			delete(c.latest, p)
		}
	}
	delete(c.follows, id)
	c.leads[id] = false
}

func (c *leases) link(e *Promised) *heartbeats {
	h := c.links[e.Link]
	if h == nil {
		h = &heartbeats{leader: e.Server, learner: e.To.Server}
		if e.ByLearner {
			h.leader, h.learner = h.learner, h.leader
		}
		c.links[e.Link] = h
	}
	return h
}

func (c *leases) fromLeader(e *Promised) string {
	switch h := c.link(e); e.Packet.Type {
	case peerwire.PacketUpToDate:
		h.serving = true
	case peerwire.PacketPing:
		if h.serving {
			h.sent = append(h.sent, e.At)
		}
		return c.confirms(h, e)
	case peerwire.PacketTouch:
		return c.confirms(h, e)
	case peerwire.PacketProposal:
		if t, err := record.DecodeTxn(e.Packet.Data); err == nil && t.Type == wire.OpReconfig {
			h.reconfig, h.reconfigAt = t.Zxid, e.At
		}
	case peerwire.PacketSync:
		h.synced = max(h.synced, c.confirmedTime(h.leader))
		if len(h.asked) > 0 {
			h.asked = h.asked[1:]
		} else {
			h.early++
		}
	case peerwire.PacketCommit, peerwire.PacketCommitActivate, peerwire.PacketInform:
		if z := e.Packet.Zxid; len(h.asked) > 0 {
			if c.met[commitBehindSync]++; z > h.asked[0] {
				return fmt.Sprintf("leader %d tells server %d of the commit of %v before it answers a sync that it took when its log ended at %v", e.Server, h.learner, z, h.asked[0])
			}
		}
	}
	return ""
}

// taken records the syncs that a leader has taken from a learner.
func (c *leases) taken(e *SyncsTaken) {
	h := c.links[e.Link]
	if h == nil {
		return
	}
	early := min(h.early, e.N)
	h.early -= early
	for range e.N - early {
		h.asked = append(h.asked, e.Log)
	}
}

// confirms checks a heartbeat or a TOUCH that confirms reports of its learner.
func (c *leases) confirms(h *heartbeats, e *Promised) string {
	var info peerwire.PingInfo
	if !c.native(h.leader) || !c.native(h.learner) || wire.Decode(e.Packet.Data, &info) != nil || info.Confirmed <= h.confirmed {
		return ""
	}
	h.confirmed = info.Confirmed
	c.met[touchConfirmed]++
	if at := c.confirmedTime(h.leader); at+leaseMax < e.Since {
		return fmt.Sprintf("leader %d confirms sessions to server %d although no quorum has answered a heartbeat of the last %d ms",
			h.leader, h.learner, (e.Since-at)/1000)
	}
	return ""
}

func (c *leases) fromLearner(e *Promised) string {
	h := c.link(e)
	c.joins[h.learner] = max(c.joins[h.learner], e.Link)
	if p := (pair{h.leader, h.learner}); e.Packet.Type == peerwire.PacketAck && h.reconfig > 0 && e.Packet.Zxid >= h.reconfig && !h.dead {
		c.latest[p] = max(c.latest[p], h.reconfigAt)
	}
	switch {
	case e.Packet.Type == peerwire.PacketTouch:
		h.reports++
		return ""
	case e.Packet.Type != peerwire.PacketPing, e.Packet.Zxid < 0: // a negative zxid: reports sessions to a ZooKeeper leader, and answers nothing
		return ""
	case len(h.sent) == 0:
		return fmt.Sprintf("server %d answers a heartbeat that leader %d has not sent", h.learner, h.leader)
	}
	at := h.sent[0]
	h.sent = h.sent[1:]
	h.reports++
	if h.dead {
		return ""
	}
	p := pair{h.leader, h.learner}
	c.latest[p] = max(c.latest[p], at)
	return ""
}

// forever is the time that a quorum of one server has confirmed.
const forever = 1 << 60

// confirmedTime returns the latest time, in µs, that a quorum of the leader's list has confirmed to it; 0: none.
func (c *leases) confirmedTime(leader ensemble.ServerID) int64 {
	v := find(c.present.Servers(), leader)
	if v == nil || v.Members == nil {
		return forever // the caller has no list to compare with
	}
	has := func(t int64) bool {
		return HasQuorum(v.Members, func(id ensemble.ServerID) bool { return id == leader || c.latest[pair{leader, id}] >= t })
	}
	if has(forever) {
		return forever
	}
	latest := int64(0)
	for _, id := range v.Members.Voters() {
		if t := c.latest[pair{leader, id}]; t > latest && has(t) {
			latest = t
		}
	}
	return latest
}

// native reports whether a server is Bellwether's.
func (c *leases) native(id ensemble.ServerID) bool {
	v := find(c.present.Servers(), id)
	return v != nil && !v.Compatible
}

// ponged checks the answer to a client's ping. Local sessions need no leader.
func (c *leases) ponged(e *Replied) string {
	k, ok := c.pings[e.Conn]
	delete(c.pings, e.Conn)
	if !ok || !c.native(e.Server) || c.present.Recipe().LocalSessions {
		return ""
	}
	if c.leads[e.Server] {
		c.met[leaderAnswersPing]++
		if at := c.confirmedTime(e.Server); at+leaseMax < k.at {
			return fmt.Sprintf("leader %d answers a client's ping although no quorum had answered a heartbeat of the %d ms before it arrived",
				e.Server, (k.at-at)/1000)
		}
		return ""
	}
	h := c.links[c.follows[e.Server]]
	if h == nil || !c.native(h.leader) {
		return ""
	}
	before := int64(0)
	if k.link == c.follows[e.Server] {
		before = k.reports
	}
	c.met[followerAnswersPing]++
	if h.confirmed <= before {
		return fmt.Sprintf("server %d answers a client's ping although leader %d has confirmed only its first %d reports, and %d were sent before the ping arrived",
			e.Server, h.leader, h.confirmed, before)
	}
	return ""
}

// synced checks the answer to a client's sync.
func (c *leases) synced(e *Replied) string {
	waiting := c.syncs[e.Conn]
	if len(waiting) == 0 {
		return fmt.Sprintf("server %d answers a sync that it has not received", e.Server)
	}
	arrived := waiting[0]
	c.syncs[e.Conn] = waiting[1:]
	leader, at := e.Server, int64(0)
	if h := c.links[c.follows[e.Server]]; h != nil && !c.leads[e.Server] {
		leader, at = h.leader, h.synced // the leader may have ended since
	} else {
		at = c.confirmedTime(leader)
	}
	if e.Err != wire.OK || !c.native(e.Server) || !c.native(leader) {
		return ""
	}
	c.met[syncAnswered]++
	if at < arrived {
		return fmt.Sprintf("server %d answers a sync although no quorum has answered a heartbeat that leader %d sent in the %d ms after it arrived",
			e.Server, leader, (arrived-at)/1000)
	}
	return ""
}
