package zab

import (
	"fmt"

	"bellwether/internal/ensemble"
	"bellwether/internal/fifo"
	"bellwether/internal/peerwire"
	"bellwether/internal/record"
	"bellwether/wire"
)

// LearnerOptions set how a learner behaves.
type LearnerOptions struct {
	TermStart
	// Link is the connection to Leader, which exists when the term begins.
	Link   LinkID
	Leader ensemble.ServerID
	// Elected is the last zxid of the leader's history when it was elected, as the votes for it said, or the zxid with which a
	// former leader or a reconfiguration has named it. The history that it sends must contain that; see lacks. 0 or less: not known.
	Elected wire.Zxid
	// Observer says that this server has no vote and acknowledges no proposals.
	Observer bool
	// Reconfig makes the learner adopt the leader's configuration. Otherwise the
	// configuration of the files holds, whatever the leader sends.
	Reconfig bool
	// CompatibleOnly makes the learner offer no extensions, like a compatible peer.
	CompatibleOnly bool
	// NativeOnly makes the learner leave a leader that is not a native peer, because such
	// a leader could not check the passwords of sessions.
	NativeOnly bool
	// Barred says that this server may have lost its history with its disk. It then
	// promises no epoch, because a promise says that no acknowledged transaction is missing.
	Barred bool
	// ServeObservers makes a follower serve observers once it serves, as an observer master. DiskLog
	// says that the driver answers ReadLog, for observers that lack more transactions than
	// are in memory.
	ServeObservers, DiskLog bool
	// Master is the server at the other end of Link: Leader, or a follower that serves
	// this observer.
	Master ensemble.ServerID
}

// step is how far a learner has come.
type step uint8

const (
	joining    step = iota // FOLLOWERINFO is sent
	accepting              // the epoch is being saved
	introduced             // ACKEPOCH is sent
	adopting               // the history arrives
	logging                // NEWLEADER has come: the log or the snapshot is being made durable
	saving                 // currentEpoch is being saved
	adopted                // ACK is sent
	following              // UPTODATE has come
	ended
)

// Learner is the state machine of a follower or an observer, for one term. See the package
// comment.
//
// Invariants, until the term has ended:
//   - The step never goes back.
//   - opened <= decided <= tail, once the history arrives.
//   - Before the step following, the log ends at opened or, from the step logging on, at
//     target. What the leader has sent beyond that is in pending, which ends at tail and
//     ascends.
//   - When following, pending is empty, tail is the end of the log, and decided is
//     what has been handed out for applying.
//   - unacked ascends, ends at tail, and is empty before following.
//   - In touches, confirmed <= token, sent ascends, told <= reports, asked <= reports, and
//     wanted <= reports + 1.
type Learner struct {
	opt        LearnerOptions
	log        *Log
	generation uint64

	now       int64
	step      step
	began     int64
	adoptedAt int64 // when the history began to arrive
	heard     int64 // when the last packet came
	native    bool  // the leader is a native peer: an extension is agreed on
	extension int32 // the version of the extension; 0: there is none
	lease     int64 // lease of a native leader, in ms
	silence   silence

	epoch          wire.Epoch
	acceptedBefore bool // this server had accepted the epoch before
	how            SyncMode
	claimed        wire.Zxid     // the end of the log, as ACKEPOCH said
	opened         wire.Zxid     // the zxid after which the history from the leader begins
	tail           wire.Zxid     // the last transaction proposed
	decided        wire.Zxid     // the last transaction committed
	pending        []*record.Txn // proposed, not in the log yet
	members        *ensemble.Membership
	// designated is who leads under members: this leader, unless a reconfiguration
	// has named another.
	designated ensemble.ServerID
	target     wire.Zxid // what must be durable before the next step

	unacked fifo.Queue[wire.Zxid] // appended, not acknowledged
	touches touches
	early   int // number of pings that Heartbeat has answered and that Step has not received yet
	syncs   fifo.Queue[pendingSync]
	master  *observerMaster // nil: this learner serves no observers
	doubted bool            // the tree of this server differs from the leader's, or was found wrong

	ready Ready
}

// NewLearner begins a term under a leader, to which this server is connected.
func NewLearner(now int64, o LearnerOptions, log *Log) *Learner {
	r := &Learner{opt: o, log: log, generation: o.Generation + 1, now: now, began: now, heard: now, designated: o.Leader}
	info := &peerwire.LearnerInfo{Server: o.ID, Version: peerwire.QuorumVersion, ConfigVersion: o.Committed.Version()}
	p := &peerwire.QuorumPacket{Type: peerwire.PacketFollowerInfo, Zxid: wire.MakeZxid(o.Accepted, 0), Data: wire.Append(nil, info)}
	if o.Observer {
		p.Type = peerwire.PacketObserverInfo
	}
	if !o.CompatibleOnly {
		p.Data = wire.Append(p.Data, &peerwire.Extension{Version: peerwire.ExtensionVersion})
	}
	r.send(p)
	return r
}

// Step takes one event, which happened at now, in ms of a clock that does not
// go back. After the term is over, Step does nothing.
func (r *Learner) Step(now int64, e Event) {
	if r.now = now; r.step == ended {
		return
	}
	switch e := e.(type) {
	case Received:
		if e.Link == r.opt.Link {
			r.heardNow()
			r.packet(e.Packet)
		}
	case Progress:
		if e.Link == r.opt.Link {
			r.heardNow()
		}
	case Closed:
		if e.Link == r.opt.Link {
			r.giveUp("the connection to the leader ended: " + e.Why)
		}
	case Synced:
		r.logSynced(e)
	case Saved:
		r.saved(e)
	case Installed:
		r.installed(e)
	case Refused:
		r.refused(e)
	case Forward:
		r.forward(e)
	case Sync:
		r.sync(e)
	case Revalidate:
		r.revalidate(e)
	case Touched:
		r.touched(e)
	case Fitness:
		r.tellFitness(e)
	case TreeReport:
		r.reportTree(e)
	case LeaveMaster:
		r.leaveMaster()
	case Leave:
		r.giveUp(e.Why)
	case Tick:
		r.tick()
	}
	if r.master != nil {
		r.master.step(e)
	}
}

// Ready returns what is to be done after the steps since the last call.
func (r *Learner) Ready() Ready {
	r.ask()
	out := r.ready
	out.Generation = r.generation
	out.Confirmed = r.touches.confirmed
	out.Wake = Never
	if r.step != ended {
		out.Wake = min(r.heard+r.leaderTimeout()+1, r.nextAsk())
	}
	r.ready = Ready{}
	return out
}

// Generation returns the generation of the log, for TermStart of the next role.
func (r *Learner) Generation() uint64 { return r.generation }

// Answered reports whether the leader has sent its epoch, or the term is over.
func (r *Learner) Answered() bool { return r.step != joining }

// LeaseMS returns the lease that a native leader has sent; 0 for a compatible leader.
func (r *Learner) LeaseMS() int64 {
	if !r.native {
		return 0
	}
	return r.lease
}

// Heard returns when the last packet of the leader came.
func (r *Learner) Heard() int64 { return r.heard }

// Native reports whether the leader is a native peer, which confirms touched sessions
// without being asked.
func (r *Learner) Native() bool { return r.native }

func (r *Learner) send(p *peerwire.QuorumPacket) {
	r.ready.Send = append(r.ready.Send, Message{Link: r.opt.Link, Packet: p})
}

func (r *Learner) report(h Observation) { r.ready.Observations = append(r.ready.Observations, h) }

// giveUp ends the term. Pending transactions are forgotten; they were not logged.
func (r *Learner) giveUp(why string) {
	if r.step == ended {
		return
	}
	role := peerwire.Following
	if r.opt.Observer {
		role = peerwire.Observing
	}
	r.step, r.pending = ended, nil
	if r.master != nil {
		r.master.close()
	}
	r.ready.Close = append(r.ready.Close, r.opt.Link)
	r.ready.GiveUp = why
	r.report(GaveUp{role, r.epoch, why, r.now - r.began, r.ready.Successor != nil, r.opt.Link})
}

// refused ends the term because the disk could not do a duty of this role or an
// earlier one.
func (r *Learner) refused(e Refused) {
	r.ready.Rebuild = r.log.Refuse(e)
	r.giveUp("the disk: " + e.Why)
}

// packet handles a packet of the leader. A packet that breaks the protocol ends the term.
func (r *Learner) packet(p *peerwire.QuorumPacket) {
	switch r.step {
	case joining:
		r.leaderInfo(p)
	case accepting:
		r.giveUp(fmt.Sprintf("the leader sent %v before its epoch was promised", p.Type))
	case introduced:
		r.opening(p)
	case following:
		r.afterUpToDate(p)
	default:
		r.history(p)
	}
}

// leaderInfo handles LEADERINFO. The new epoch is made durable before it is promised.
func (r *Learner) leaderInfo(p *peerwire.QuorumPacket) {
	var info peerwire.LeaderInfo
	e := p.Zxid.Epoch()
	switch err := wire.Decode(p.Data, &info); {
	case p.Type != peerwire.PacketLeaderInfo:
		r.giveUp(fmt.Sprintf("the leader sent %v instead of its epoch", p.Type))
		return
	case err != nil:
		r.giveUp("the leader's epoch cannot be read: " + err.Error())
		return
	case p.Zxid < 0 || e > EpochMax+1 || info.Version < peerwire.QuorumVersion:
		r.giveUp(fmt.Sprintf("the leader offers epoch %d in version %#x of the protocol", e, info.Version))
		return
	case e < r.opt.Accepted:
		r.report(OldEpoch{r.opt.Leader, r.opt.Link, e, r.opt.Current, r.opt.Accepted})
		r.giveUp(fmt.Sprintf("the leader's epoch %d is older than %d, which was accepted", e, r.opt.Accepted))
		return
	}
	ext, answered := peerwire.FindExtension(p.Data, peerwire.LeaderInfoLen)
	if r.opt.NativeOnly && !answered {
		r.giveUp("the leader is a ZooKeeper server: " + nativeOnlyRemedy)
		return
	}
	r.native = answered && !r.opt.CompatibleOnly
	if r.native {
		r.extension = min(ext.Version, peerwire.ExtensionVersion)
	}
	// The lease that a leader claims is limited to the longest that its options allow.
	r.lease = min(max(0, int64(ext.LeaseMS)), r.opt.SyncLimit*r.opt.TickMS/2)
	r.silence.floor = 2 * r.lease
	r.epoch, r.acceptedBefore = e, e == r.opt.Accepted
	if r.acceptedBefore {
		r.promise()
		return
	}
	r.step = accepting
	r.ready.SaveAccepted = e
}

// relays reports whether the leader knows of the observers that this server serves.
func (r *Learner) relays() bool { return r.extension >= peerwire.ExtensionRelay }

// promise sends ACKEPOCH: this server follows no earlier leader, and its log ends here.
// An epoch that was accepted before is not promised twice, and a server that may have lost
// its history cannot promise one: the packet then has NoEpoch. The leader, also a ZooKeeper
// leader, synchronises such a learner when a quorum of others has promised.
// If this leader must send a snapshot (wantSnapshot), the learner claims an empty log. The false
// claim decides nothing, because it comes without a promise.
func (r *Learner) promise() {
	ack, last := &peerwire.EpochAck{CurrentEpoch: int32(r.opt.Current)}, r.log.last
	if r.acceptedBefore || r.opt.Barred {
		ack.CurrentEpoch = peerwire.NoEpoch
	}
	if r.acceptedBefore && r.log.wantsSnapshot {
		last = 0
	}
	r.log.wantsSnapshot = false
	r.claimed = last
	r.step = introduced
	r.ready.Joined = true
	r.send(&peerwire.QuorumPacket{Type: peerwire.PacketAckEpoch, Zxid: last, Data: wire.Append(nil, ack)})
}

func (r *Learner) saved(e Saved) {
	switch {
	case e.Generation != r.generation:
	case r.step == accepting && e.Accepted == r.epoch:
		r.promise()
	case r.step == saving && e.Current == r.epoch:
		r.acknowledge()
	}
}
