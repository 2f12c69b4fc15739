package check

import (
	"fmt"
	"slices"

	"bellwether/internal/ensemble"
	"bellwether/internal/peerwire"
	"bellwether/internal/zab"
	"bellwether/wire"
)

// Durable holds what a server would find on its disk after a power failure. Known says that this was
// read from the disk. Otherwise it is what the server's store reports, which counts only if
// the disk has not been replaced and has not lied.
type Durable struct {
	Known             bool
	Accepted, Current wire.Epoch
	Zxid              wire.Zxid
}

// durability checks that what a server acknowledges or promises is on its disk, and so is the epoch that it
// gives for its history. It may say that it has accepted an epoch that is not there yet, because that
// only makes the leader choose a later one.
type durability struct{ met [durabilityRules]int }

// The premises of durability.
const (
	epochAnnounced = iota
	epochPromised
	epochAcknowledged
	txnAcknowledged
	durabilityRules
)

func (*durability) Name() string { return "Durability" }

// Met returns the counts of the rules.
func (c *durability) Met() []Count {
	return []Count{{"an epoch is announced", c.met[epochAnnounced]}, {"an epoch is promised", c.met[epochPromised]},
		{"an epoch is acknowledged", c.met[epochAcknowledged]}, {"the disk is read when a transaction is acknowledged", c.met[txnAcknowledged]}}
}

func (c *durability) See(o any) string {
	e, ok := o.(Promised)
	if !ok {
		return ""
	}
	z, disk := e.Packet.Zxid, e.Disk
	switch kind := e.Packet.Type; {
	case !e.ByLearner && kind == peerwire.PacketLeaderInfo:
		c.met[epochAnnounced]++
		if disk.Accepted < z.Epoch() {
			return fmt.Sprintf("leader %d announces epoch %d, but its disk has epoch %d", e.Server, z.Epoch(), disk.Accepted)
		}
	case !e.ByLearner:
	case kind == peerwire.PacketAckEpoch:
		return c.promised(&e)
	case kind == peerwire.PacketAck && z.Counter() == 0:
		c.met[epochAcknowledged]++
		if disk.Current < z.Epoch() {
			return fmt.Sprintf("server %d acknowledges epoch %d, but its disk has epoch %d", e.Server, z.Epoch(), disk.Current)
		}
	case kind == peerwire.PacketAck:
		if disk.Known {
			c.met[txnAcknowledged]++
		}
		if disk.Zxid < z {
			return fmt.Sprintf("server %d acknowledges %v, but only transactions up to %v are durable", e.Server, z, disk.Zxid)
		}
	}
	return ""
}

// promised checks the promise of an epoch, which names the epoch of the server's history.
func (c *durability) promised(e *Promised) string {
	var ack peerwire.EpochAck
	if wire.Decode(e.Packet.Data, &ack) != nil || ack.CurrentEpoch == peerwire.NoEpoch {
		return ""
	}
	c.met[epochPromised]++
	switch disk := e.Disk; {
	case disk.Accepted < e.Term:
		return fmt.Sprintf("server %d promises epoch %d, but its disk has epoch %d", e.Server, e.Term, disk.Accepted)
	case disk.Current < wire.Epoch(ack.CurrentEpoch):
		return fmt.Sprintf("server %d says that its history is of epoch %d, but its disk has epoch %d", e.Server, ack.CurrentEpoch, disk.Current)
	}
	return ""
}

// quorums checks what a leader does because a quorum has promised or acknowledged something: the quorum
// must have it on its disks then, as seen from outside. It also checks that no server promises an epoch
// to two leaders.
//
// Disks that were replaced or have lied count as having everything, because the packets of their servers
// came from the state that was lost.
type quorums struct {
	present Present
	leaders map[wire.Epoch]ensemble.ServerID // established leaders
	serves  map[ensemble.ServerID]wire.Epoch // the epoch in which a server has served last
	invited map[wire.Epoch]bool              // the epoch's leader has sent NEWLEADER
	terms   map[zab.LinkID]wire.Epoch        // the epoch that was announced on a link
	to      map[promiseOfEpoch]ensemble.ServerID
	// joined holds, for each leader, the servers that have joined it since it announced an epoch, each with the epoch that it
	// had accepted.
	joined map[ensemble.ServerID]acceptedEpochs
	// announced holds the epochs that leaders have announced. Several leaders can announce the same one, because a leader does so
	// before a quorum has promised it.
	announced map[announcement]bool
	commits   int
	met       [quorumRules]int
}

// acceptedEpochs are the epochs that servers have accepted.
type acceptedEpochs map[ensemble.ServerID]wire.Epoch

// promiseOfEpoch is a server's promise to follow the leader of an epoch.
type promiseOfEpoch struct {
	server ensemble.ServerID
	epoch  wire.Epoch
}

// The premises of quorums.
const (
	promisedToLeader = iota
	epochChosen
	termBegins
	leaderServes
	txnCommitted
	bothNeeded
	quorumRules
)

// commitsEvery is of how many commits one is compared with the disks, because that takes long.
const commitsEvery = 64

func newQuorums(p Present) *quorums {
	return &quorums{present: p, leaders: map[wire.Epoch]ensemble.ServerID{}, serves: map[ensemble.ServerID]wire.Epoch{}, invited: map[wire.Epoch]bool{},
		terms: map[zab.LinkID]wire.Epoch{}, to: map[promiseOfEpoch]ensemble.ServerID{}, joined: map[ensemble.ServerID]acceptedEpochs{}, announced: map[announcement]bool{}}
}

func (*quorums) Name() string { return "Quorums" }

// Met returns the counts of the rules.
func (c *quorums) Met() []Count {
	return []Count{{"an epoch is promised", c.met[promisedToLeader]}, {"an epoch is chosen", c.met[epochChosen]}, {"a term begins", c.met[termBegins]},
		{"a leader serves", c.met[leaderServes]}, {"a commit is compared with the disks", c.met[txnCommitted]},
		{"a membership is proposed", c.met[bothNeeded]}}
}

func (c *quorums) See(o any) string {
	switch e := o.(type) {
	case Forgot:
		for p := range c.to {
			if p.server == e.Server {
				delete(c.to, p)
			}
		}
	case Promised:
		return c.sent(&e)
	case Established:
		c.serves[e.Server] = e.Epoch
		if e.Role == peerwire.Leading {
			c.leaders[e.Epoch] = e.Server
			c.met[leaderServes]++
			return c.lack(e.Server, 0, fmt.Sprintf("serves in epoch %d", e.Epoch), func(d *Durable) bool { return d.Current >= e.Epoch })
		}
	case Committed:
		leader, known := c.leaders[c.serves[e.Server]] // the next leader may commit what a leader has proposed
		if c.commits++; c.commits%commitsEvery == 0 && known {
			c.met[txnCommitted]++
			return c.lack(leader, e.Txn.Zxid, fmt.Sprintf("has committed %v", e.Txn.Zxid), func(d *Durable) bool { return d.Zxid >= e.Txn.Zxid })
		}
	}
	return ""
}

// announcement is an epoch that a leader announces.
type announcement struct {
	leader ensemble.ServerID
	epoch  wire.Epoch
}

func (c *quorums) sent(e *Promised) string {
	switch z := e.Packet.Zxid; e.Packet.Type {
	case peerwire.PacketFollowerInfo:
		if c.joined[e.To.Server] == nil {
			c.joined[e.To.Server] = acceptedEpochs{}
		}
		c.joined[e.To.Server][e.Server] = z.Epoch()
	case peerwire.PacketLeaderInfo:
		c.terms[e.Link] = z.Epoch()
		return c.chosen(e.Server, z.Epoch())
	case peerwire.PacketNewLeader:
		if !c.invited[z.Epoch()] {
			c.invited[z.Epoch()] = true
			c.met[termBegins]++
			return c.lack(e.Server, 0, fmt.Sprintf("begins the term of epoch %d", z.Epoch()), func(d *Durable) bool { return d.Accepted >= z.Epoch() })
		}
	case peerwire.PacketAckEpoch:
		return c.promises(e)
	}
	return ""
}

// chosen checks the epoch that a leader announces first: a quorum has joined the leader before, and has accepted only
// earlier epochs.
func (c *quorums) chosen(leader ensemble.ServerID, epoch wire.Epoch) string {
	a := announcement{leader, epoch}
	if c.announced[a] {
		return ""
	}
	c.announced[a] = true
	joined := c.joined[leader]
	delete(c.joined, leader)
	v := find(c.present.Servers(), leader)
	if v == nil || v.Members == nil {
		return ""
	}
	c.met[epochChosen]++
	if HasQuorum(v.Members, func(id ensemble.ServerID) bool {
		accepted, has := joined[id]
		return id == leader || has && accepted < epoch
	}) {
		return ""
	}
	return fmt.Sprintf("leader %d announces epoch %d, but no quorum that has accepted only earlier epochs has joined it", leader, epoch)
}

// promises checks that a server has promised an epoch to no other leader.
func (c *quorums) promises(e *Promised) string {
	var ack peerwire.EpochAck
	if wire.Decode(e.Packet.Data, &ack) != nil || ack.CurrentEpoch == peerwire.NoEpoch {
		return ""
	}
	p := promiseOfEpoch{e.Server, c.terms[e.Link]}
	c.met[promisedToLeader]++
	before, known := c.to[p]
	c.to[p] = e.To.Server
	if known && before != e.To.Server {
		return fmt.Sprintf("server %d promises epoch %d to server %d, and has promised it to server %d before", e.Server, p.epoch, e.To.Server, before)
	}
	return ""
}

// lack says what is wrong if a quorum of the leader's list, or of the one that its log proposes, does not have
// something on disk: the history up to commits, or an epoch if that is 0. A list that is proposed behind a
// transaction does not count for it: the leader may have proposed it after the commit.
func (c *quorums) lack(leader ensemble.ServerID, commits wire.Zxid, does string, has func(*Durable) bool) string {
	v := find(c.present.Servers(), leader)
	if v == nil || v.Members == nil {
		return ""
	}
	disks, proposed := c.present.Disks(commits > 0), v.Proposed
	if proposed != nil && commits > 0 && proposed.Version() > int64(commits) {
		proposed = nil
	}
	var missing []ensemble.ServerID
	onDisk := func(id ensemble.ServerID) bool {
		for i := range disks {
			if d := &disks[i]; d.ID == id {
				if yes := !d.Known || has(&d.Durable); yes {
					return true
				}
			}
		}
		missing = append(missing, id)
		return false
	}
	if proposed != nil {
		c.met[bothNeeded]++
	}
	if HasQuorum(v.Members, onDisk) && (proposed == nil || HasQuorum(proposed, onDisk)) {
		return ""
	}
	slices.Sort(missing)
	missing = slices.Compact(missing)
	return fmt.Sprintf("leader %d %s, but no quorum has that on its disks: %v have not", leader, does, missing)
}
