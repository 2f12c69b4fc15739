package zab

import (
	"fmt"

	"bellwether/internal/ensemble"
	"bellwether/internal/fifo"
	"bellwether/internal/peerwire"
	"bellwether/internal/record"
	"bellwether/wire"
)

// LearnerOptions fix what a learner does.
type LearnerOptions struct {
	Terms
	// Link is the connection to Leader; both exist when the term begins.
	Link   LinkID
	Leader ensemble.ServerID
	// Observer: it takes no part in decisions.
	Observer bool
	// Reconfig: the leader's configuration is taken over. Else that of the
	// files holds, whatever the leader says.
	Reconfig bool
	// Plain: no extensions of ours are offered.
	Plain bool
}

// step is how far a learner has come.
type step uint8

const (
	joining    step = iota // FOLLOWERINFO is sent
	accepting              // the epoch is being saved
	introduced             // ACKEPOCH is sent
	adopting               // the history arrives
	logging                // NEWLEADER has come: the log is being synced, or the snapshot installed
	saving                 // currentEpoch is being saved
	adopted                // ACK is sent
	following              // UPTODATE has come
	ended
)

// Learner is the part of a follower or an observer. See the package comment.
//
// Invariants, until the term has ended:
//   - The step never goes back.
//   - opened <= decided <= tail, once the history arrives.
//   - Before following, the log ends at opened or, from logging on, at target; what
//     the leader has sent beyond that is in pending, which ends at tail and ascends.
//   - When following, pending is empty, tail is the end of the log, and decided is
//     what has been handed out for applying.
//   - unacked ascends, ends at tail, and is empty before following.
//   - In touches, confirmed <= token, and sent ascends.
type Learner struct {
	opt        LearnerOptions
	log        *Log
	generation uint64

	now       int64
	step      step
	began     int64
	adoptedAt int64 // when the history began to arrive
	heard     int64 // when the last packet came
	ours      bool  // extensions are agreed on
	hands     bool  // hand-overs among them
	lease     int64 // of a leader of our kind, in ms
	silence   silence

	epoch   wire.Epoch
	known   bool // the epoch had been accepted before
	how     How
	claimed wire.Zxid     // the end of the log, as the leader was told
	opened  wire.Zxid     // where the history of the leader begins to arrive
	tail    wire.Zxid     // the last one proposed
	decided wire.Zxid     // the last one committed
	pending []*record.Txn // proposed, not in the log yet
	members *ensemble.Membership
	// designated leads under members: this leader, unless one was committed
	// since that names another.
	designated ensemble.ServerID
	target     wire.Zxid // what must be durable before the next step

	unacked fifo.Queue[wire.Zxid] // appended, not acknowledged
	touches touches
	early   int // pings that were answered and that no Step has brought yet
	syncs   fifo.Queue[pendingSync]

	ready Ready
}

// NewLearner begins a term under a leader that this server is connected to.
func NewLearner(now int64, o LearnerOptions, log *Log) *Learner {
	r := &Learner{opt: o, log: log, generation: o.Generation + 1, now: now, began: now, heard: now, designated: o.Leader}
	info := &peerwire.LearnerInfo{Server: o.ID, Version: peerwire.QuorumVersion, ConfigVersion: o.Committed.Version()}
	p := &peerwire.QuorumPacket{Type: peerwire.PacketFollowerInfo, Zxid: wire.MakeZxid(o.Accepted, 0), Data: wire.Append(nil, info)}
	if o.Observer {
		p.Type = peerwire.PacketObserverInfo
	}
	if !o.Plain {
		p.Data = wire.Append(p.Data, &peerwire.Extension{Version: peerwire.ExtensionVersion})
	}
	r.send(p)
	return r
}

// Step takes one event, which happened at now, in ms of a clock that does not
// go back. After the term is over it does nothing.
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
	case Leave:
		r.giveUp(e.Why)
	case Tick:
		r.tick()
	}
}

// Ready hands out what has come of the steps since the last call.
func (r *Learner) Ready() Ready {
	out := r.ready
	out.Generation = r.generation
	out.Confirmed = r.touches.confirmed
	out.Wake = Never
	if r.step != ended {
		out.Wake = r.heard + r.patience() + 1
	}
	r.ready = Ready{}
	return out
}

// Generation is that of the log; the next role is given it.
func (r *Learner) Generation() uint64 { return r.generation }

// Answered reports whether the leader has said anything, or the term is over.
func (r *Learner) Answered() bool { return r.step != joining }

// LeaseMS is the lease of a leader of our kind, as it says; 0 for others.
func (r *Learner) LeaseMS() int64 {
	if !r.ours {
		return 0
	}
	return r.lease
}

// Heard is when the leader was last heard.
func (r *Learner) Heard() int64 { return r.heard }

// Ours reports whether the leader confirms touched sessions, as those of our
// kind do by themselves.
func (r *Learner) Ours() bool { return r.ours }

func (r *Learner) send(p *peerwire.QuorumPacket) {
	r.ready.Send = append(r.ready.Send, Message{Link: r.opt.Link, Packet: p})
}

func (r *Learner) tell(h Happening) { r.ready.Happenings = append(r.ready.Happenings, h) }

// giveUp ends the term. What is pending was not logged, and is forgotten.
func (r *Learner) giveUp(why string) {
	if r.step == ended {
		return
	}
	role := peerwire.Following
	if r.opt.Observer {
		role = peerwire.Observing
	}
	r.step, r.pending = ended, nil
	r.ready.Close = append(r.ready.Close, r.opt.Link)
	r.ready.GiveUp = why
	r.tell(GaveUp{role, r.epoch, why, r.now - r.began, r.ready.Successor != nil, r.opt.Link})
}

// refused: the disk could not do what was asked, by this role or an earlier one.
func (r *Learner) refused(e Refused) {
	r.ready.Rebuild = r.log.Refuse(e)
	r.giveUp("the disk: " + e.Why)
}

// packet takes what the leader sends. What breaks the protocol ends the term.
func (r *Learner) packet(p *peerwire.QuorumPacket) {
	switch r.step {
	case joining:
		r.leaderInfo(p)
	case accepting:
		r.giveUp(fmt.Sprintf("the leader sent %v before its epoch was promised", p.Type))
	case introduced:
		r.opening(p)
	case following:
		r.live(p)
	default:
		r.history(p)
	}
}

// leaderInfo takes the new epoch. It is durable before it is promised.
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
		r.tell(OldEpoch{r.opt.Leader, r.opt.Link, e, r.opt.Current, r.opt.Accepted})
		r.giveUp(fmt.Sprintf("the leader's epoch %d is older than %d, which was accepted", e, r.opt.Accepted))
		return
	}
	ext, answered := peerwire.FindExtension(p.Data, peerwire.LeaderInfoLen)
	r.ours = answered && !r.opt.Plain
	r.hands = r.ours && ext.Version >= peerwire.ExtensionHandOver
	// What a leader says of its lease counts within the bounds of its options.
	r.lease = min(max(0, int64(ext.LeaseMS)), r.opt.SyncLimit*r.opt.TickMS/2)
	r.silence.floor = 2 * r.lease
	r.epoch, r.known = e, e == r.opt.Accepted
	if r.known {
		r.promise()
		return
	}
	r.step = accepting
	r.ready.SaveAccepted = e
}

// promise says that no earlier leader will be followed, and where the log
// ends. An epoch that was accepted before is not promised twice. Where this
// leader asked in vain for a truncation, an empty log is claimed, so that it
// sends a snapshot: nothing is decided by that, since it is no promise.
func (r *Learner) promise() {
	ack, last := &peerwire.EpochAck{CurrentEpoch: int32(r.opt.Current)}, r.log.last
	if r.known {
		ack.CurrentEpoch = peerwire.NoEpoch
		if r.log.stuck {
			last = 0
		}
	}
	r.log.stuck = false
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
