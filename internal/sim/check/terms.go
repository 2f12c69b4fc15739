package check

import (
	"fmt"

	"bellwether/internal/ensemble"
	"bellwether/internal/peerwire"
	"bellwether/internal/zab"
	"bellwether/wire"
)

// terms checks what leaders and learners do at the beginning and at the end of a term. It uses the packets that they
// send, and which links are open.
//
//   - A learner follows no leader whose epoch is earlier than one that it has accepted.
//   - A term begins only when a quorum has promised its epoch, and the histories of these servers are not ahead of
//     the leader's.
//   - A truncation that a leader asks for crosses no epoch: neither does the learner's log end in another epoch than that where it is
//     to be cut, nor do the transactions of the leader's history go on there in another one. As in ZooKeeper, such a learner gets a
//     snapshot. A leader of ZooKeeper sends its outstanding proposals there too.
//   - An observer acknowledges no transactions.
//   - A leader that a reconfiguration has replaced leads no longer, and neither does one to which no quorum is linked.
//   - A learner leaves a silent leader no sooner than silenceLeast after it has heard from it, so that the leader's
//     lease has ended.
type terms struct {
	present  Present
	links    map[zab.LinkID]joined
	promised map[pair]promiseWithHistory      // the last promise of a learner to a leader
	cut      map[zab.LinkID]wire.Zxid         // where the log of a learner is to be cut; until the history goes on there
	begun    map[ensemble.ServerID]wire.Epoch // the last epoch whose term a leader has begun
	replaced map[ensemble.ServerID]wire.Epoch // the last epoch in which a leader has named another one
	apart    map[ensemble.ServerID]int64      // ms of its clock since when a leader has known that no quorum is linked to it
	met      [termRules]int
}

// joined is what a learner has said on a link before it was synchronised.
type joined struct {
	observer bool
	accepted wire.Epoch // the epoch that it had accepted
	ends     wire.Zxid  // where its log ends
}

// promiseWithHistory is the promise of an epoch by a server that has the history last of the epoch current.
type promiseWithHistory struct {
	epoch, current wire.Epoch
	last           wire.Zxid
}

// The premises of the rules.
const (
	earlierEpochOffered = iota
	aheadPromises
	termPromised
	logTruncated
	observerAcknowledges
	leaderReplaced
	quorumUnlinked
	leaderSilent
	termRules
)

// silenceLeast is how long a leader must have been silent before a learner leaves it, in ms: twice its lease.
const silenceLeast = 2 * LeaseMS

// apartMost is for how many ms a leader may lead that knows that no quorum is linked to it. A leader that has closed a link
// itself notices that with its next heartbeat.
const apartMost = 150

func newTerms(p Present) *terms {
	return &terms{present: p, links: map[zab.LinkID]joined{}, promised: map[pair]promiseWithHistory{}, cut: map[zab.LinkID]wire.Zxid{}, begun: map[ensemble.ServerID]wire.Epoch{},
		replaced: map[ensemble.ServerID]wire.Epoch{}, apart: map[ensemble.ServerID]int64{}}
}

func (*terms) Name() string { return "Terms" }

// Met returns the counts of the rules.
func (c *terms) Met() []Count {
	return []Count{{"a learner is offered an earlier epoch", c.met[earlierEpochOffered]}, {"a server with more history than the leader promises", c.met[aheadPromises]},
		{"a term begins", c.met[termPromised]}, {"a log is truncated", c.met[logTruncated]},
		{"an observer acknowledges an epoch", c.met[observerAcknowledges]}, {"a reconfiguration replaces a leader", c.met[leaderReplaced]},
		{"a leader has lost the links of a quorum", c.met[quorumUnlinked]}, {"a learner leaves a silent leader", c.met[leaderSilent]}}
}

func (c *terms) See(o any) string {
	switch e := o.(type) {
	case Promised:
		if e.ByLearner {
			return c.fromLearner(&e)
		}
		return c.fromLeader(&e)
	case Standing:
		return c.stands(&e)
	case LeftSilent:
		c.met[leaderSilent]++
		if e.SilentMS < silenceLeast {
			return fmt.Sprintf("server %d leaves leader %d because of its silence, but has taken a packet of it %d ms ago", e.Server, e.Leader, e.SilentMS)
		}
	case Restarted:
		delete(c.apart, e.Server)
		delete(c.replaced, e.Server)
	}
	return ""
}

func (c *terms) fromLearner(e *Promised) string {
	k, z := c.links[e.Link], e.Packet.Zxid
	switch kind := e.Packet.Type; {
	case kind == peerwire.PacketFollowerInfo || kind == peerwire.PacketObserverInfo:
		c.links[e.Link] = joined{observer: kind == peerwire.PacketObserverInfo, accepted: z.Epoch()}
	case kind == peerwire.PacketAckEpoch:
		k.ends = z
		c.links[e.Link] = k
		return c.promises(e, k)
	case kind != peerwire.PacketAck || !k.observer:
	case z.Counter() == 0:
		c.met[observerAcknowledges]++
	default:
		if v := find(c.present.Servers(), e.Server); v != nil && !v.Compatible {
			return fmt.Sprintf("observer %d acknowledges %v", e.Server, z)
		}
	}
	return ""
}

// promises takes the answer to the epoch that a leader has announced.
func (c *terms) promises(e *Promised, k joined) string {
	if e.Term < k.accepted {
		return fmt.Sprintf("server %d, which has accepted epoch %d, follows server %d in epoch %d", e.Server, k.accepted, e.To.Server, e.Term)
	}
	var ack peerwire.EpochAck
	if wire.Decode(e.Packet.Data, &ack) == nil && ack.CurrentEpoch != peerwire.NoEpoch {
		c.promised[pair{e.To.Server, e.Server}] = promiseWithHistory{e.Term, wire.Epoch(ack.CurrentEpoch), k.ends}
	}
	return ""
}

func (c *terms) fromLeader(e *Promised) string {
	switch z := e.Packet.Zxid; e.Packet.Type {
	case peerwire.PacketLeaderInfo:
		if z.Epoch() < c.links[e.Link].accepted {
			c.met[earlierEpochOffered]++
		}
	case peerwire.PacketTrunc:
		c.met[logTruncated]++
		if ends := c.links[e.Link].ends; ends.Epoch() != z.Epoch() {
			return fmt.Sprintf("leader %d asks server %d, whose log ends at %v, for a truncation to %v of another epoch", e.Server, e.To.Server, ends, z)
		}
		c.cut[e.Link] = z
	case peerwire.PacketProposal:
		to, cut := c.cut[e.Link]
		if delete(c.cut, e.Link); !cut || to.Epoch() == z.Epoch() {
			return ""
		}
		if v := find(c.present.Servers(), e.Server); v != nil && !v.Compatible {
			return fmt.Sprintf("leader %d asks server %d for a truncation to %v, although its history goes on with %v", e.Server, e.To.Server, to, z)
		}
	case peerwire.PacketNewLeader:
		delete(c.cut, e.Link)
		if c.begun[e.Server] != z.Epoch() {
			c.begun[e.Server] = z.Epoch()
			return c.begins(e, z.Epoch())
		}
	case peerwire.PacketCommitActivate:
		var a peerwire.Activation
		if wire.Decode(e.Packet.Data, &a) == nil && a.Leader != e.Server {
			c.met[leaderReplaced]++
			c.replaced[e.Server] = e.Epoch
		}
	}
	return ""
}

// begins checks the beginning of a term. The leader's vote may have claimed the beginning of its last epoch, where a
// leader of ZooKeeper lets a snapshot end.
func (c *terms) begins(e *Promised, epoch wire.Epoch) string {
	v := find(c.present.Servers(), e.Server)
	if v == nil || v.Members == nil {
		return ""
	}
	c.met[termPromised]++
	last := max(e.Log, wire.MakeZxid(v.Current, 0))
	var ahead []ensemble.ServerID
	has := func(id ensemble.ServerID) bool {
		p, ok := c.promised[pair{e.Server, id}]
		switch {
		case id == e.Server:
			return true
		case !ok || p.epoch != epoch:
			return false
		case p.current > v.Current, p.current == v.Current && p.last > last:
			c.met[aheadPromises]++
			ahead = append(ahead, id)
			return false
		}
		return true
	}
	if HasQuorum(v.Members, has) && (v.Proposed == nil || HasQuorum(v.Proposed, has)) {
		return ""
	}
	return fmt.Sprintf("leader %d with history %v of epoch %d begins the term of epoch %d, but no quorum without more history has promised it; servers with more: %v",
		e.Server, last, v.Current, epoch, ahead)
}

// stands checks a server at the end of a batch.
func (c *terms) stands(e *Standing) string {
	if e.Leads == 0 || e.Linked {
		delete(c.apart, e.Server)
	}
	switch {
	case e.Leads == 0:
	case c.replaced[e.Server] == e.Leads:
		return fmt.Sprintf("server %d leads epoch %d, although a reconfiguration has named another leader", e.Server, e.Leads)
	case e.Linked || !e.Ticked:
	default:
		c.met[quorumUnlinked]++
		if since, known := c.apart[e.Server]; !known {
			c.apart[e.Server] = e.Mono
		} else if e.Mono-since > apartMost {
			return fmt.Sprintf("server %d leads epoch %d, although no quorum has been linked to it for %d ms", e.Server, e.Leads, e.Mono-since)
		}
	}
	return ""
}
