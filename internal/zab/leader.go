package zab

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"bellwether/internal/ensemble"
	"bellwether/internal/peerwire"
	"bellwether/wire"
)

// Limits on what learners may ask of a leader.
const (
	// EpochMax is the highest epoch that is accepted: the zxids of later epochs would
	// be negative.
	EpochMax wire.Epoch = math.MaxInt32 - 1
	// epochAhead is how far the accepted epoch of a learner may be ahead of the
	// leader's. It is larger than a week of failed elections, one every 10 s.
	epochAhead = 1 << 16
	// unansweredMax is how many pings may be unanswered. A learner that owes so many
	// answers gets no more pings.
	unansweredMax = 256
	// snapMax and diffMax are how many learners are synchronised at a time, by snapshot and
	// otherwise, unless the options say otherwise.
	snapMax, diffMax = 10, 100
)

// TermStart holds what a role begins with: the server's id, its epochs, the memberships,
// and the timeouts.
type TermStart struct {
	ID ensemble.ServerID
	// Accepted and Current are the epochs of the last SaveAccepted and SaveCurrent
	// handed out, whether they are durable yet or not; at the start of the process,
	// the epochs on the disk.
	Accepted, Current wire.Epoch
	// Generation is the last generation of the previous role. The new role begins with
	// the next one.
	Generation uint64
	// Committed is the committed membership. LastSeen is a newer membership that was
	// proposed, or nil.
	Committed, LastSeen *ensemble.Membership

	TickMS    int64 // tickTime
	InitLimit int64 // ticks for discovery and synchronisation
	SyncLimit int64 // ticks that a peer may be silent
	// DiscoverMS is how long a learner waits for the leader's epoch. A leader waits
	// twice as long for a quorum to join, and as long again for a quorum to promise
	// the epoch. If it is 0 or more than InitLimit, InitLimit counts instead.
	DiscoverMS int64
}

// discovery returns the timeout for a part of discovery in ms: DiscoverMS multiplied by
// times.
func (t *TermStart) discovery(times int64) int64 {
	limit := t.InitLimit * t.TickMS
	if t.DiscoverMS == 0 {
		return limit
	}
	return min(times*t.DiscoverMS, limit)
}

// busyMax returns how long after its last Step a learner still answers pings early
// (Learner.Heartbeat), in ms.
func (t *TermStart) busyMax() int64 { return t.SyncLimit * t.TickMS / 2 }

// LagMax returns how far a connected learner can lag behind, in ms: the learner has
// processed everything that was sent to it longer ago than that. A learner can answer
// pings early for busyMax, and the leader closes its link when it is silent for SyncLimit.
func (l *Leader) LagMax() int64 { return l.opt.busyMax() + l.opt.SyncLimit*l.opt.TickMS }

// LeaderOptions set how a leader behaves.
type LeaderOptions struct {
	TermStart
	// CompatibleOnly makes the leader treat every learner as a compatible peer, without
	// extensions.
	CompatibleOnly bool
	// NativeOnly makes the leader refuse a learner that is not a native peer, because such
	// a learner could not check the passwords of sessions.
	NativeOnly bool
	// HeartbeatMS is how often native peers are pinged (0: 100). Compatible peers are
	// pinged every half tick. LeaseMS is how old the last ping that a quorum has
	// answered may be for sessions to be confirmed (0: 500).
	HeartbeatMS, LeaseMS int64
	// DiskLog says that the driver answers ReadLog, for learners that lack more
	// transactions than are in memory.
	DiskLog bool
	// ForceSnap makes the leader send a snapshot to every learner.
	ForceSnap bool
	// SnapMax and DiffMax are how many learners are synchronised at a time, by
	// snapshot and otherwise (0: 10 and 100). Further observers are refused.
	SnapMax, DiffMax int
	// Above is an epoch: the new epoch is later than Above, because a member has
	// accepted Above or a later epoch.
	Above wire.Epoch
	// Claims is the zxid that this server's vote has claimed, if that zxid is later than
	// the end of the log. It then has epoch Current and counter 0.
	Claims wire.Zxid
	// Tried holds the servers to which this server has transferred leadership since it last followed a
	// leader: none of them has led.
	Tried map[ensemble.ServerID]bool
	// CounterMax is the last counter of an epoch (0: 0xfffffffe). The term ends when
	// the transaction with this counter is committed.
	CounterMax uint32
}

func (o *LeaderOptions) defaults() {
	if o.HeartbeatMS == 0 {
		o.HeartbeatMS = 100
	}
	if o.LeaseMS == 0 {
		o.LeaseMS = 500
	}
	o.HeartbeatMS = min(o.HeartbeatMS, o.TickMS/2)
	o.LeaseMS = min(o.LeaseMS, o.SyncLimit*o.TickMS/2)
	if o.SnapMax == 0 {
		o.SnapMax = snapMax
	}
	if o.DiffMax == 0 {
		o.DiffMax = diffMax
	}
	if o.CounterMax == 0 {
		o.CounterMax = math.MaxUint32 - 1
	}
}

// phase is how far a term has come.
type phase uint8

const (
	discovering   phase = iota // waiting for a quorum of accepted epochs
	promising                  // waiting for a quorum that promises the epoch
	synchronising              // waiting for a quorum with the same history
	serving
	over
)

// Leader is the state machine of a server that leads, for one term. See the package comment.
type Leader struct {
	opt LeaderOptions
	log *Log
	commitment

	now        int64
	phase      phase
	began      int64 // when the term began
	phaseBegan int64
	deadline   int64 // when the phase must have ended

	epoch      wire.Epoch // highest accepted so far plus one; fixed when discovery is over
	summary    summary
	generation uint64
	synced     bool      // the log with which the term began is durable
	current    bool      // currentEpoch is durable
	proposed   wire.Zxid // the last zxid given out
	transfer   *transfer // the leadership transfer under way; nil: none

	links           map[LinkID]*link
	lookingMembers  map[ensemble.ServerID]lookingMember
	routes          map[ensemble.ServerID]*route // by observer, if a follower serves it
	order           []*link                      // the links, in the order in which the learners connected
	pings           pingRounds
	trees           trees
	nextLinkCheck   int64 // when to check the links and, unless Heartbeat has done so, to send pings
	nextQuorumCheck int64 // when to check the quorum

	ready Ready
}

// summary is the part of a history that comparisons use: the history with the later
// epoch wins or, if the epochs are equal, the one with the later zxid.
type summary struct {
	current wire.Epoch
	last    wire.Zxid
}

func (s summary) less(o summary) bool {
	return s.current < o.current || s.current == o.current && s.last < o.last
}

// NewLeader begins a term of the server that won an election. Its whole log is the
// history of the term: all of it is committed once a quorum has it.
func NewLeader(now int64, o LeaderOptions, log *Log) *Leader {
	o.defaults()
	l := &Leader{
		opt: o, log: log, now: now, began: now,
		commitment: commitment{self: o.ID, committed: o.Committed, lastSeen: newer(o.Committed, o.LastSeen), servers: map[ensemble.ServerID]*link{}},
		epoch:      max(o.Accepted, o.Above) + 1, summary: summary{o.Current, max(log.Last(), o.Claims)}, generation: o.Generation + 1,
		links: map[LinkID]*link{}, lookingMembers: map[ensemble.ServerID]lookingMember{}, routes: map[ensemble.ServerID]*route{}, nextLinkCheck: now + o.HeartbeatMS, pings: pingRounds{due: now + o.HeartbeatMS}, trees: newTrees(), nextQuorumCheck: now + o.TickMS,
	}
	l.ready.Sync = true // currentEpoch may be saved only when the log is durable
	l.enter(discovering)
	l.discover()
	return l
}

func newer(committed, lastSeen *ensemble.Membership) *ensemble.Membership {
	if lastSeen == nil || lastSeen.Version() <= committed.Version() {
		return nil
	}
	return lastSeen
}

// Step takes one event. now is when it happened, in ms of a clock that does not go
// back. When the term is over Step does nothing.
func (l *Leader) Step(now int64, e Event) {
	if l.now = now; l.phase == over {
		return
	}
	switch e := e.(type) {
	case Received:
		l.received(e)
	case Propose:
		l.propose(e.Txn)
	case Synced:
		l.logSynced(e)
	case Saved:
		l.saved(e)
	case Opened:
		l.opened(e.Link)
	case Looks:
		l.looks(e)
	case Closed:
		l.closed(e.Link, e.Why)
	case LogRead:
		l.logRead(e)
	case Sync:
		l.sync(e)
	case Revalidated:
		l.revalidated(e)
	case Refused:
		l.refused(e)
	case Leave:
		l.giveUp(e.Why)
	case TransferLeadership:
		l.beginTransfer(e)
	case TreeReport:
		l.ownTree(e)
	case Touched:
		l.touched(e)
	case Slept:
		l.slept(e.MS)
	case Tick:
		l.tick()
	}
	l.continueTransfer()
}

// Ready returns what is to be done after the steps since the last call.
func (l *Leader) Ready() Ready {
	r := l.ready
	r.Generation = l.generation
	r.Wake = l.wake()
	l.ready = Ready{}
	return r
}

func (l *Leader) wake() int64 {
	if l.phase == over {
		return Never
	}
	w := min(l.deadline, l.nextLinkCheck, l.nextQuorumCheck)
	if l.transfer != nil {
		w = min(w, l.transfer.began+transferMax)
	}
	return w
}

// Generation returns the generation of the log, for TermStart of the next role.
func (l *Leader) Generation() uint64 { return l.generation }

// Epoch returns the epoch of the term, 0 until it is known.
func (l *Leader) Epoch() wire.Epoch {
	if l.phase == discovering {
		return 0
	}
	return l.epoch
}

// enter begins a phase and sets its timeout.
func (l *Leader) enter(p phase) {
	l.phase, l.phaseBegan = p, l.now
	l.deadline = l.now + l.opt.InitLimit*l.opt.TickMS
	if p == discovering || p == promising {
		l.deadline = l.now + l.opt.discovery(2)
	}
	if p == serving || p == over {
		l.deadline = Never
	}
}

// giveUp ends the term and closes all links, so that learners look for a leader at
// once instead of waiting for a timeout.
func (l *Leader) giveUp(why string) {
	if l.phase == over {
		return
	}
	l.enter(over)
	for _, k := range l.order {
		l.ready.Close = append(l.ready.Close, k.id)
	}
	l.links, l.servers, l.order = nil, nil, nil
	l.ready.GiveUp = why
	l.report(GaveUp{peerwire.Leading, l.epoch, why, l.now - l.began, l.ready.Successor != nil, 0})
}

func (l *Leader) report(h Observation) { l.ready.Observations = append(l.ready.Observations, h) }

// refused ends the term because the disk could not do a duty of this role or an
// earlier one.
func (l *Leader) refused(e Refused) {
	l.ready.Rebuild = l.log.Refuse(e)
	l.giveUp("the disk: " + e.Why)
}

// epochZero returns the zxid that stands for the epoch itself: counter 0.
func (l *Leader) epochZero() wire.Zxid { return wire.MakeZxid(l.epoch, 0) }

// send adds a packet for a link to the Ready.
func (l *Leader) send(k *link, p *peerwire.QuorumPacket) {
	l.ready.Send = append(l.ready.Send, Message{Link: k.id, Packet: p})
}

// drop closes a link for a reason of this server.
func (l *Leader) drop(k *link, why string) {
	l.ready.Close = append(l.ready.Close, k.id)
	l.forget(k, why)
}

// refuse closes a link because of what the learner has sent.
func (l *Leader) refuse(k *link, why string) {
	l.ready.Close = append(l.ready.Close, k.id)
	l.remove(k)
	l.report(LearnerLost{Learner: k.name(), Why: why, Link: k.id, Nobody: k.state == linkNew, Refused: true, Returns: k.returns})
}

// forget removes a link and reports its end.
func (l *Leader) forget(k *link, why string) {
	l.remove(k)
	l.report(LearnerLost{Learner: k.name(), Why: why, Link: k.id, Nobody: k.state == linkNew || k.acceptedLater})
}

// remove deletes a link from all indexes.
func (l *Leader) remove(k *link) {
	delete(l.links, k.id)
	if l.servers[k.server] == k {
		delete(l.servers, k.server)
	}
	if k.relays {
		maps.DeleteFunc(l.routes, func(_ ensemble.ServerID, t *route) bool { return t.link == k.id })
	}
	l.order = slices.DeleteFunc(l.order, func(o *link) bool { return o == k })
}

func (l *Leader) opened(id LinkID) {
	if l.links[id] != nil {
		return
	}
	k := &link{id: id, heard: l.now, began: l.now, fitSince: Never, ackedAt: Never, claimedAt: Never}
	l.links[id] = k
	l.order = append(l.order, k)
}

// closed handles the end of a link. If the remaining servers are not a quorum, the term
// ends at once: the servers that left look for a leader, and this server would answer
// them that it still leads.
func (l *Leader) closed(id LinkID, why string) {
	k := l.links[id]
	if k == nil {
		return
	}
	l.forget(k, why)
	l.checkLinked()
}

// tick ends the term if a time limit has passed, and does what is due.
func (l *Leader) tick() {
	if l.deadline <= l.now {
		l.giveUp(l.missing())
		return
	}
	if l.nextLinkCheck <= l.now {
		l.checkLinks()
		l.checkFit()
		if l.pings.due <= l.now {
			l.sendDuePings(l.now)
		}
		l.checkLinked()
		l.nextLinkCheck = l.pings.due
	}
	if l.nextQuorumCheck <= l.now {
		l.nextQuorumCheck = l.now + l.opt.TickMS
		l.checkQuorum()
		l.compareTrees()
	}
}

// missing says what the current phase, which has timed out, was waiting for.
func (l *Leader) missing() string {
	switch l.phase {
	case discovering:
		return "no quorum has joined in time"
	case promising:
		return fmt.Sprintf("no quorum has promised epoch %d in time", l.epoch)
	}
	return fmt.Sprintf("no quorum has taken over the history of epoch %d in time", l.epoch)
}

// checkQuorum ends the term when the voters heard from within syncLimit are no
// quorum.
func (l *Leader) checkQuorum() {
	if l.phase != serving {
		return
	}
	silent := l.opt.SyncLimit * l.opt.TickMS
	if !l.quorum(func(id ensemble.ServerID) bool { return l.hasAdopted(id, silent) }) {
		l.giveUp(fmt.Sprintf("no quorum is connected and was heard from in the last %d ms", silent))
	}
}

// checkLinked ends the term when the connected servers are no longer a quorum. A
// server that comes back joins only a leader that a quorum follows, so it could not
// join this one. If the term has not served yet, the cause that ended the links may end
// them in the next term too, so the term lasts at least leftMinMS.
func (l *Leader) checkLinked() {
	begun := l.phase == promising || l.phase == synchronising
	if l.LostQuorum() || begun && l.now >= l.began+leftMinMS && !l.quorum(l.mayTakePart) {
		l.giveUp("no quorum is connected any more")
	}
}

// leftMinMS is how long a term lasts at least if it has not served and no quorum is
// connected.
const leftMinMS = 1000

// mayTakePart reports whether a server can be part of the quorum that this phase waits
// for. This server and connected voters can. In the phase promising, a voter that cannot
// promise the epoch any more does not count, although it may follow later.
func (l *Leader) mayTakePart(id ensemble.ServerID) bool {
	if id == l.self {
		return true
	}
	k := l.linkOf(id)
	return k != nil && l.mayVote(k) && (l.phase != promising || k.promised || k.state < linkPromised)
}

// LostQuorum reports whether the connected servers are no longer a quorum, so that
// nothing can be committed. If this server has closed their links itself, the term
// goes on until the next check.
func (l *Leader) LostQuorum() bool {
	return l.phase == serving && !l.quorum(func(id ensemble.ServerID) bool { return l.hasAdopted(id, Never) })
}

// hasAdopted returns true for this server, and for a connected server that has adopted
// this term's history and was heard from within silent ms.
func (l *Leader) hasAdopted(id ensemble.ServerID, silent int64) bool {
	k := l.linkOf(id)
	return id == l.opt.ID || k != nil && k.adopted && l.now-k.heard <= silent
}

// Dispensable reports whether the followers are a quorum without this server and could
// commit more than this server can. A follower does not count if it has left a proposal
// unacknowledged for long and has no more on its disk than this server: its disk is
// as slow as this server's.
func (l *Leader) Dispensable() bool {
	silent := l.opt.SyncLimit * l.opt.TickMS
	return l.phase == serving && l.quorum(func(id ensemble.ServerID) bool {
		k := l.linkOf(id)
		return id != l.opt.ID && l.hasAdopted(id, silent) && (!l.late(k) || k.durable > l.own.durable)
	})
}

// linkOf returns the link of a server; nil if there is none.
func (l *Leader) linkOf(id ensemble.ServerID) *link { return l.servers[id] }
