package zab

import (
	"fmt"
	"math"
	"slices"

	"bellwether/internal/ensemble"
	"bellwether/internal/peerwire"
	"bellwether/wire"
)

// Limits of what learners may ask of a leader.
const (
	// EpochMax is the highest epoch that is accepted from anyone: zxids of
	// later ones would be negative.
	EpochMax wire.Epoch = math.MaxInt32 - 1
	// epochAhead is by how much the epoch that a learner has accepted may be
	// ahead of what a leader has accepted itself: a vain attempt to lead every
	// ten seconds, of which it knew nothing for a week, is less.
	epochAhead = 1 << 16
	// beatsMax is how many pings a learner may leave unanswered before it gets
	// no further ones.
	beatsMax = 256
)

// Terms are what a role begins with: who this server is, what it has promised,
// and the waits.
type Terms struct {
	ID ensemble.ServerID
	// Accepted and Current are the epochs of the last duties handed out, done or
	// not; at the start of the process those on the disk.
	Accepted, Current wire.Epoch
	// Generation is that of the role before; the new one begins with the next.
	Generation uint64
	// Committed is the membership; LastSeen a newer one that was proposed, or nil.
	Committed, LastSeen *ensemble.Membership

	TickMS    int64 // tickTime
	InitLimit int64 // ticks for discovery and synchronisation
	SyncLimit int64 // ticks that a peer may be silent
	// DiscoverMS is how long a learner waits for the leader's epoch, and half of
	// how long a leader waits for a quorum to join, and then for one to promise
	// the epoch. 0, or more than InitLimit: InitLimit.
	DiscoverMS int64
}

// discovery is how many times DiscoverMS a part of discovery may take, in ms.
func (t *Terms) discovery(times int64) int64 {
	limit := t.InitLimit * t.TickMS
	if t.DiscoverMS == 0 {
		return limit
	}
	return min(times*t.DiscoverMS, limit)
}

// busyMax is for how long after its last Step a learner answers pings that no Step
// has brought, in ms.
func (t *Terms) busyMax() int64 { return t.SyncLimit * t.TickMS / 2 }

// LagMax is by how much a learner that this leader keeps can lag behind, in ms: it
// has stepped everything that was sent to it longer ago. It answers pings for
// busyMax without having done that, and is given up when it has been silent for
// SyncLimit.
func (l *Leader) LagMax() int64 { return l.opt.busyMax() + l.opt.SyncLimit*l.opt.TickMS }

// LeaderOptions fix what a leader does.
type LeaderOptions struct {
	Terms
	// Plain: no extensions of ours are agreed to.
	Plain bool
	// BeatMS is how often learners of our kind are pinged (0: 100), LeaseMS how
	// old a ping answered by a quorum may be for sessions to be confirmed
	// (0: 500). Others are pinged every half tick.
	BeatMS, LeaseMS int64
	// DiskLog: the log on disk may be asked where memory does not reach back.
	DiskLog bool
	// ForceSnap: every learner gets a snapshot.
	ForceSnap bool
	// SnapMax and DiffMax are how many learners are synchronised at a time, in
	// either way (0: 10 and 100). Observers beyond that are turned away.
	SnapMax, DiffMax int
	// Above is an epoch that a member is known to have accepted, or an earlier
	// one than that: the new one is later.
	Above wire.Epoch
	// Claims is the end of the history that this server's vote has claimed, if it
	// is later than the end of the log: the zero of the epoch Current.
	Claims wire.Zxid
	// CounterMax is the last counter that is given out in an epoch
	// (0: 0xfffffffe); behind it the term ends.
	CounterMax uint32
}

func (o *LeaderOptions) defaults() {
	if o.BeatMS == 0 {
		o.BeatMS = 100
	}
	if o.LeaseMS == 0 {
		o.LeaseMS = 500
	}
	o.BeatMS = min(o.BeatMS, o.TickMS/2)
	o.LeaseMS = min(o.LeaseMS, o.SyncLimit*o.TickMS/2)
	if o.SnapMax == 0 {
		o.SnapMax = 10
	}
	if o.DiffMax == 0 {
		o.DiffMax = 100
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

// Leader is the leading server's part. See the package comment.
type Leader struct {
	opt LeaderOptions
	log *Log
	commitment

	now        int64
	phase      phase
	began      int64 // of the term
	phaseBegan int64
	deadline   int64 // of the phase

	epoch      wire.Epoch // highest accepted so far plus one; fixed when discovery is over
	summary    summary
	generation uint64
	synced     bool      // the log of the start is durable
	current    bool      // currentEpoch is durable
	proposed   wire.Zxid // the last zxid given out
	handing    *handing  // nil: it does not hand over

	links   map[LinkID]*link
	seekers map[ensemble.ServerID]seeker
	order   []*link // by arrival
	beat    beats
	nextHB  int64 // when to look at the links, and to ping unless Beat has
	nextTC  int64 // when to check the quorum

	ready Ready
}

// summary is what histories are compared by.
type summary struct {
	current wire.Epoch
	last    wire.Zxid
}

func (s summary) less(o summary) bool {
	return s.current < o.current || s.current == o.current && s.last < o.last
}

// NewLeader begins a term of the server that won an election. Its whole log
// counts from here on: that it won commits the end of it, once a quorum has it.
func NewLeader(now int64, o LeaderOptions, log *Log) *Leader {
	o.defaults()
	l := &Leader{
		opt: o, log: log, now: now, began: now,
		commitment: commitment{self: o.ID, committed: o.Committed, lastSeen: newer(o.Committed, o.LastSeen), servers: map[ensemble.ServerID]*link{}},
		epoch:      max(o.Accepted, o.Above) + 1, summary: summary{o.Current, max(log.Last(), o.Claims)}, generation: o.Generation + 1,
		links: map[LinkID]*link{}, seekers: map[ensemble.ServerID]seeker{}, nextHB: now + o.BeatMS, beat: beats{due: now + o.BeatMS}, nextTC: now + o.TickMS,
	}
	l.ready.Sync = true // before currentEpoch is saved the log must be durable
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

// Step takes one event, which happened at now, in ms of a clock that does not
// go back. After the term is over it does nothing.
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
	case HandOver:
		l.handOver(e)
	case Slept:
		l.slept(e.MS)
	case Tick:
		l.tick()
	}
	l.handOn()
}

// Ready hands out what has come of the steps since the last call.
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
	w := min(l.deadline, l.nextHB, l.nextTC)
	if l.handing != nil {
		w = min(w, l.handing.began+handOverMax)
	}
	return w
}

// Generation is that of the log; the next role is given it.
func (l *Leader) Generation() uint64 { return l.generation }

// Epoch is the term's number, 0 until it is known.
func (l *Leader) Epoch() wire.Epoch {
	if l.phase == discovering {
		return 0
	}
	return l.epoch
}

// enter begins a phase and its time limit.
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

// giveUp ends the term: all links are closed, so that learners look again at
// once instead of waiting for the silence.
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
	l.tell(GaveUp{peerwire.Leading, l.epoch, why, l.now - l.began, l.ready.Successor != nil, 0})
}

func (l *Leader) tell(h Happening) { l.ready.Happenings = append(l.ready.Happenings, h) }

// refused: the disk could not do what was asked, by this role or an earlier one.
func (l *Leader) refused(e Refused) {
	l.ready.Rebuild = l.log.Refuse(e)
	l.giveUp("the disk: " + e.Why)
}

// epochZero is the zxid that stands for the epoch itself.
func (l *Leader) epochZero() wire.Zxid { return wire.MakeZxid(l.epoch, 0) }

// send queues a packet for a link.
func (l *Leader) send(k *link, p *peerwire.QuorumPacket) {
	l.ready.Send = append(l.ready.Send, Message{Link: k.id, Packet: p})
}

// drop ends a link from this side.
func (l *Leader) drop(k *link, why string) {
	l.ready.Close = append(l.ready.Close, k.id)
	l.forget(k, why)
}

// refuse ends a link for what came over it.
func (l *Leader) refuse(k *link, why string) {
	l.ready.Close = append(l.ready.Close, k.id)
	l.remove(k)
	l.tell(LearnerLost{Learner: k.name(), Why: why, Link: k.id, Nobody: k.state == linkNew, Refused: true})
}

// forget tells of the end of a link.
func (l *Leader) forget(k *link, why string) {
	l.remove(k)
	l.tell(LearnerLost{Learner: k.name(), Why: why, Link: k.id, Nobody: k.state == linkNew || k.vain})
}

// remove takes a link out of everything.
func (l *Leader) remove(k *link) {
	delete(l.links, k.id)
	if l.servers[k.server] == k {
		delete(l.servers, k.server)
	}
	l.order = slices.DeleteFunc(l.order, func(o *link) bool { return o == k })
}

func (l *Leader) opened(id LinkID) {
	if l.links[id] != nil {
		return
	}
	k := &link{id: id, heard: l.now, began: l.now}
	l.links[id] = k
	l.order = append(l.order, k)
}

// closed: a link has ended. A leader that is left by so many that the rest is no
// quorum ends its term at once: who left looks for a leader, and would be told
// of this one.
func (l *Leader) closed(id LinkID, why string) {
	k := l.links[id]
	if k == nil {
		return
	}
	l.forget(k, why)
	l.checkLinked()
}

// tick does what is due.
func (l *Leader) tick() {
	if l.deadline <= l.now {
		l.giveUp(l.missing())
		return
	}
	if l.nextHB <= l.now {
		l.checkLinks()
		if l.beat.due <= l.now {
			l.heartbeatDue(l.now)
		}
		l.checkLinked()
		l.nextHB = l.beat.due
	}
	if l.nextTC <= l.now {
		l.nextTC = l.now + l.opt.TickMS
		l.checkQuorum()
	}
}

// missing says what a phase that took too long waited for.
func (l *Leader) missing() string {
	switch l.phase {
	case discovering:
		return "no quorum has joined in time"
	case promising:
		return fmt.Sprintf("no quorum has promised epoch %d in time", l.epoch)
	}
	return fmt.Sprintf("no quorum has taken over the history of epoch %d in time", l.epoch)
}

// checkQuorum gives up when the voters heard from lately are no quorum.
func (l *Leader) checkQuorum() {
	if l.phase != serving {
		return
	}
	silent := l.opt.SyncLimit * l.opt.TickMS
	if !l.quorum(func(id ensemble.ServerID) bool { return l.with(id, silent) }) {
		l.giveUp(fmt.Sprintf("no quorum is connected and was heard from in the last %d ms", silent))
	}
}

// checkLinked gives up when those that are connected are no quorum any more. A
// server that comes back looks for a leader that a quorum follows, so it could
// not join one that waits for it. Before the term serves what has ended the links
// may end them again: then it lasts a while.
func (l *Leader) checkLinked() {
	begun := l.phase == promising || l.phase == synchronising
	if l.Deserted() || begun && l.now >= l.began+leftMinMS && !l.committed.HasQuorum(l.mayTakePart) {
		l.giveUp("no quorum is connected any more")
	}
}

// leftMinMS is how long a term lasts at least that has not served.
const leftMinMS = 1000

// mayTakePart reports whether a server can be part of the quorum that this phase
// waits for: this server, and connected voters. One that cannot promise the epoch
// any more may follow later.
func (l *Leader) mayTakePart(id ensemble.ServerID) bool {
	if id == l.self {
		return true
	}
	k := l.linkOf(id)
	return k != nil && !k.observer && (l.phase != promising || k.promised || k.state < linkPromised)
}

// Deserted reports whether those that are connected are no quorum any more, so
// that nothing can be committed. Where this server has ended their links itself
// the term goes on until that is found in turn.
func (l *Leader) Deserted() bool {
	return l.phase == serving && !l.quorum(func(id ensemble.ServerID) bool { return l.with(id, Never) })
}

// with reports whether a server has this term's history and is connected, and
// has not been silent for longer, or is this one.
func (l *Leader) with(id ensemble.ServerID, silent int64) bool {
	k := l.linkOf(id)
	return id == l.opt.ID || k != nil && k.adopted && l.now-k.heard <= silent
}

// Spare reports whether the servers that follow are a quorum without this one,
// and could commit more than it can. A follower that has left a proposal
// unacknowledged for long, and has no more on its disk than this server, has a
// disk as slow as this one's.
func (l *Leader) Spare() bool {
	silent := l.opt.SyncLimit * l.opt.TickMS
	return l.phase == serving && l.quorum(func(id ensemble.ServerID) bool {
		k := l.linkOf(id)
		return id != l.opt.ID && l.with(id, silent) && (!l.late(k) || k.durable > l.own.durable)
	})
}

// linkOf is the link of a server, nil if there is none.
func (l *Leader) linkOf(id ensemble.ServerID) *link { return l.servers[id] }
